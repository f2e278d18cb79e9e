/** Execution: one run, from the command to its record. */

import { short } from "#python/compact.js";
import { Run } from "../audit/records.js";
import { ScriptError, ToolError } from "../errors.js";
import { discoveryBudget, filled } from "../languages.js";
import type { EngineError, explain, nameSlowCall } from "../scripts.js";
import { REASON, REASON_NAMES, type Done, type MemoryReport, type Report, type SavedMemory } from "../protocol.js";
import { count, fromWire, isObject, toWire } from "../values.js";
import { CallEntry, errorValue, type CallPath, type CallResult, type ClientCalls, type RunInfo } from "./calls.js";
import { RunClock } from "./clock.js";
import type { Link } from "./link.js";
import type { Purpose } from "./options.js";
import { progressOf, type Progress } from "./progress.js";
import { secondsToSleep } from "./sleep.js";

const GRACE = 400; // milliseconds that a worker has to stop by itself before it is terminated
const POKE = 2; // milliseconds between two looks at a script that must stop
const MOST_OBSERVATIONS = 10_000;
const REMEMBERED_FAILURES = 32;
const LONGEST_MESSAGE = 100_000;
const LONGEST_SHOWN = 10_000;
const TOO_MUCH_DISCOVERY = "this run has asked docs too often; keep the answers in variables, or go on in the next run";

const MOST_SHOWN = 1000;
const TOO_MUCH_SHOWN = `this run has called show ${MOST_SHOWN} times; put the values into a table and show that`;

export interface ExecutionOptions {
  runId: string;
  replId: string;
  number: number;
  seed: number;
  source: string;
  sources: Map<string, string>;
  /** JSON of pairs of a name and a value. */
  inputs: string | null;
  /** Why the script is not run. */
  refused: ScriptError | null;
  explain: typeof explain;
  nameSlowCall: typeof nameSlowCall;
  stateLostBefore: boolean;
  purpose: Purpose;
  clientCalls: ClientCalls | null;
  /** Everything that is under way waits for `clientCalls`. */
  onWaiting: () => void;
  /** The script says how far it is. */
  onProgress: (progress: Progress) => void;
  /** The script waits for its tools, or computes again. */
  rests: (rests: boolean) => void;
  /** A worker that has the memory with this run in it. */
  returns: () => Promise<Link>;
}

export class Execution implements RunInfo {
  workerLost = false;
  private readonly entries: CallEntry[] = [];
  private readonly open = new Map<number, CallEntry>();
  private readonly failed: CallEntry[] = [];
  private readonly output: Uint8Array[] = [];
  private readonly observations: [string, unknown][] = [];
  private readonly shown = new Map<string, unknown>(); // handles of media
  private timesShown = 0;
  private printed = 0; // bytes of output, shown ones included
  private replies: string[] = [];
  private answered: CallEntry[] = [];
  private waiting = false; // the script waits for an answer
  private place: "worker" | "leaving" | "memory" | "returning" = "worker"; // where the script is
  private left: (memory: SavedMemory | null) => void = () => undefined;
  private holder: ReturnType<typeof setInterval> | undefined; // keeps the process alive while there is no worker
  private flushing = false;
  private readonly sleeping = new Map<number, ReturnType<typeof setTimeout>>();
  private budget: number | null;
  private discovery = discoveryBudget;
  private batches = 0;
  private atClient = 0; // calls that wait for the client's answer
  private sent = 0;
  private received = 0;
  private readonly started = Date.now() / 1000;
  private readonly clock: RunClock;
  private stopping = 0;
  private broken: { problem: unknown } | null = null; // what a callback of the host has thrown
  private timer: ReturnType<typeof setTimeout> | null = null;
  private done: Done | null = null;
  private values: unknown[] = [];
  private error: ScriptError | null = null;
  private end!: () => void;
  private readonly over = new Promise<void>((resolve) => {
    this.end = resolve;
  });

  constructor(
    private link: Link,
    private readonly calls: CallPath,
    private readonly options: ExecutionOptions,
  ) {
    this.budget = calls.settings.limits.maxToolCalls;
    this.clock = new RunClock(calls.settings.limits.timeout, () => this.changed());
  }

  get id(): string {
    return this.options.runId;
  }

  get replId(): string {
    return this.options.replId;
  }

  get purpose(): Purpose {
    return this.options.purpose;
  }

  get source(): string {
    return this.options.source;
  }

  /** Runs the script to its end. */
  async run(signal?: AbortSignal): Promise<Run> {
    const source = new TextEncoder().encode(this.options.source);
    const { maxMemory, maxSource } = this.calls.settings.limits;
    if (source.length > maxSource) {
      const message = `the script has ${source.length} bytes; maxSource is ${maxSource}`;
      this.error = this.explain({ kind: "stop", message, limit: "source", frames: [], data: null, extra: {} });
      return this.record();
    }
    if (this.options.source.length > maxMemory / 4) {
      const size = this.options.source.length;
      const message = `the script has ${size} characters, too many for maxMemory = ${maxMemory} bytes`;
      this.error = this.explain({ kind: "stop", message, limit: "memory", frames: [], data: null, extra: {} });
      return this.record();
    }
    if (this.options.refused !== null) {
      this.error = this.options.refused;
      return this.record();
    }
    if (signal?.aborted) {
      this.error = this.explain({ kind: "stop", message: "", limit: REASON_NAMES[REASON.cancelled]!, frames: [], data: null, extra: {} });
      return this.record();
    }
    const cancel = (): void => this.stop(REASON.cancelled);
    this.link.reset();
    this.listen();
    this.sent += source.length;
    if (this.options.inputs !== null) this.link.post({ kind: "inputs", json: this.options.inputs });
    this.link.post({ kind: "run", source, number: this.options.number, seed: this.options.seed });
    this.changed();
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      await this.over;
    } finally {
      signal?.removeEventListener("abort", cancel);
      if (this.timer !== null) clearTimeout(this.timer);
      for (const timer of this.sleeping.values()) clearTimeout(timer);
      this.release();
      this.left(null);
    }
    for (const entry of this.open.values()) entry.abort.abort(); // what has begun goes on without us, in flight
    if (this.broken !== null) throw this.broken.problem;
    return this.record();
  }

  // The worker

  private listen(): void {
    this.link.hold(true);
    this.link.onReport = (report, problem) => this.take(report, problem);
  }

  private release(): void {
    clearInterval(this.holder);
    if (this.place === "memory" || this.place === "returning") return;
    this.link.onReport = () => undefined;
    this.link.hold(false);
    this.options.rests(false);
  }

  /** Lets the script leave its worker while it waits for its tools; `left` gets the memory, or null where it stays. */
  leave(left: (memory: SavedMemory | null) => void): void {
    if (this.place !== "worker" || !this.waiting || this.stopping || this.done !== null || this.link.sending) return left(null);
    this.left = left;
    this.place = "leaving";
    this.link.leave();
  }

  private hasLeft(memory: MemoryReport | null): void {
    if (this.place !== "leaving") throw new Error("nobody has asked it to leave");
    this.place = "worker";
    const saved = memory && this.link.saved(memory);
    if (saved !== null) {
      this.release();
      this.place = "memory";
      this.holder = setInterval(() => undefined, 2 ** 30);
    }
    this.left(saved);
    if (this.stopping) this.halt();
    else this.flush();
  }

  private async goBack(): Promise<void> {
    this.place = "returning";
    try {
      this.link = await this.options.returns();
    } catch (problem) {
      return this.lose((problem as Error).message);
    }
    if (this.workerLost) return this.link.terminate();
    clearInterval(this.holder);
    this.place = "worker";
    this.listen();
    if (this.stopping) this.halt();
    else this.flush();
    this.link.post({ kind: "goOn" });
  }

  get client(): ClientCalls | null {
    const { clientCalls } = this.options;
    if (clientCalls === null) return null;
    return async (call) => {
      this.atClient += 1;
      queueMicrotask(() => this.flush()); // validation may have kept the call until after its batch was looked at
      try {
        return await clientCalls(call);
      } finally {
        this.atClient -= 1;
      }
    };
  }

  /** What the script gives the model besides the result: media as such, all else as part of the output. */
  private show(values: unknown[]): void {
    const { limits, media } = this.calls.settings;
    this.timesShown += 1;
    if (this.timesShown > MOST_SHOWN) throw new ToolError(TOO_MUCH_SHOWN, { code: "limit_show" });
    for (const { address } of media.foundIn(values)) this.shown.set(address, { media: address });
    if (this.printed >= limits.maxOutput) return;
    const lines = values.map((value) => {
      const medium = isObject(value) ? media.get(value) : null;
      return medium === null ? short(value, LONGEST_SHOWN) : `[${medium.name}: ${medium.type}, ${count(medium.size)} bytes]`;
    });
    const text = new TextEncoder().encode(lines.map((line) => `${line}\n`).join(""));
    const part = text.subarray(0, Math.max(0, limits.maxOutput - this.printed));
    this.printed += part.length;
    this.output.push(part);
  }

  // The clock

  pause(): () => void {
    return this.clock.ask();
  }

  /** Sets the timer for what is due next, unless the run is being stopped: then the timer is that of `stop`. */
  changed(): void {
    if (this.stopping) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    if (this.done !== null || this.error !== null) return;
    const deadlines = [this.clock.deadline(), ...[...this.open.values()].map((entry) => entry.deadline)].filter((at) => at !== null);
    if (deadlines.length === 0) return;
    const wait = Math.min(Math.min(...deadlines) - performance.now(), 2 ** 31 - 1);
    this.timer = setTimeout(() => this.tick(), Math.max(0, wait));
  }

  private tick(): void {
    const now = performance.now();
    if (now >= (this.clock.deadline() ?? Infinity) - 0.5) return this.stop(REASON.time);
    for (const entry of [...this.open.values()]) {
      if (entry.deadline === null || now < entry.deadline - 0.5) continue;
      const message = entry.obstacle || `${entry.tool} did not answer within its timeout`;
      const error = new ToolError(message, { code: entry.obstacle ? "busy" : "timeout", retryable: true, tool: entry.tool });
      this.answer(entry, ["timeout", null, error]);
      entry.abort.abort();
    }
    this.changed();
  }

  /** Ends the run: the script has a moment to stop by itself, and gets no more answers. */
  stop(reason: number): void {
    if (this.stopping || this.done !== null) return;
    this.stopping = reason;
    this.halt();
  }

  private halt(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    if (this.place === "memory") return void this.goBack();
    if (this.place === "returning") return;
    if (this.place === "worker") this.link.stop(this.options.number, this.stopping);
    const until = performance.now() + GRACE;
    const poke = (): void => {
      if (this.done !== null || this.workerLost) return;
      if (performance.now() >= until) return this.lose("it did not stop");
      if (this.place === "worker") this.link.interrupt();
      this.timer = setTimeout(poke, POKE);
    };
    this.timer = setTimeout(poke, POKE);
  }

  /** The worker is gone, or is ended now. */
  lose(problem: string, byItself = false): void {
    if (this.done !== null || this.workerLost) return;
    this.workerLost = true;
    if (this.place === "worker" || this.place === "leaving") {
      this.output.push(this.link.unsentOutput());
      this.link.abandon();
    }
    if (this.stopping) {
      const limit = REASON_NAMES[this.stopping] ?? "";
      this.error = this.explain({ kind: "stop", message: "", limit, frames: [], data: null, extra: {} });
    } else {
      const how = byItself ? `ended unexpectedly (${problem})` : `had to be ended (${problem})`;
      this.error = new ScriptError("crashed", `the worker ${how}; what the scripts had defined is lost`);
    }
    this.end();
  }

  // What the worker reports

  private take(report: Report | null, problem: string): void {
    if (report === null) return this.lose(problem, true);
    try {
      switch (report.kind) {
        case "output":
          this.received += report.text.length;
          this.printed += report.text.length;
          this.output.push(report.text);
          return;
        case "calls":
          this.received += report.calls.length;
          this.waits(true);
          return this.takeCalls(report.calls);
        case "more":
          this.waits(true);
          return this.flush();
        case "cancel":
          for (const id of this.read(report.ids) as number[]) this.cancel(id);
          return;
        case "left":
          return this.hasLeft(report.memory);
        case "done":
          this.received += report.values.length + report.message.length + report.extra.length;
          if (report.outcome === "ok") this.values = this.read(report.values) as unknown[];
          else this.error = this.explain(engineError(report, this.calls.settings.allowNan));
          this.done = report;
          return this.end();
      }
    } catch (failure) {
      this.lose(`it sent what is not a value: ${(failure as Error).message.slice(0, 200)}`);
    }
  }

  private read(bytes: Uint8Array): unknown {
    return fromWire(new TextDecoder().decode(bytes), this.calls.settings.allowNan);
  }

  private takeCalls(payload: Uint8Array): void {
    const items = this.read(payload) as [number, string, unknown[]][];
    const calls = items.filter(([id, target, given]) => {
      const at = target.indexOf(".");
      const space = target.slice(0, at);
      if (space !== "sys" && space !== "docs" && !this.isOwn(target)) return true;
      this.answerQuestion(id, space, target.slice(at + 1), given);
      return false;
    });
    if (this.budget !== null) {
      this.budget -= calls.filter(([, target]) => this.counts(target)).length;
      if (this.budget < 0) return this.stop(REASON.calls);
    }
    if (calls.length > 0) this.batches += 1;
    const share = Math.floor(payload.length / items.length);
    for (const [id, target, given] of calls) {
      const entry = new CallEntry(id, target, given, this.entries.length + 1, this.batches, share, this.failed.length);
      this.entries.push(entry);
      this.open.set(id, entry);
      if (this.stopping) this.cancel(id);
      else this.calls.perform(entry, this).then((result) => this.answer(entry, result)).catch((problem) => this.lose(String(problem)));
    }
    this.flush();
  }

  /** Whether it is `show` or `progress`, unless the host has defined a function of that name. */
  private isOwn(target: string): boolean {
    return target.startsWith("fn.") && this.calls.settings.functions.get(target.slice(3))?.call === null;
  }

  /** About the clock or the documentation, `show` or `progress`: answered at once, not counted, no call in the record. */
  private answerQuestion(id: number, space: string, name: string, given: unknown[]): void {
    if (space === "sys") {
      const value = name === "time" ? Math.floor(Date.now() / 1000) : Math.round(this.clock.elapsed() * 1e6) / 1e6;
      if (this.observations.length < MOST_OBSERVATIONS) this.observations.push([`os.${name}`, value]);
      this.replies.push(`[${id},true,${name === "time" ? value : float(value)}]`);
      return;
    }
    try {
      let answer: unknown = null;
      if (space === "docs") answer = this.lookUp(name, given);
      else if (name === "show") this.show(given);
      else if (name === "sleep" || name === "sleep_until") return this.sleep(id, name, given);
      else this.tell(progressOf(given));
      this.replies.push(`[${id},true,${toWire(answer)}]`);
    } catch (problem) {
      if (!(problem instanceof ToolError)) throw problem;
      this.replies.push(`[${id},false,${toWire(errorValue(problem, null))}]`);
    }
  }

  /** Answers when the time is over, unless the run is over before. */
  private sleep(id: number, name: "sleep" | "sleep_until", given: unknown[]): void {
    const deadline = this.clock.deadline();
    const seconds = secondsToSleep(name, given, deadline === null ? null : (deadline - performance.now()) / 1000);
    const wakes = Date.now() + 1000 * seconds;
    const look = (): void => {
      this.sleeping.delete(id);
      const left = wakes - Date.now();
      if (left > 0) return void this.sleeping.set(id, setTimeout(look, Math.min(left, 2 ** 31 - 1)));
      this.replies.push(`[${id},true,null]`);
      this.flush();
    };
    this.sleeping.set(id, setTimeout(look, Math.min(1000 * seconds, 2 ** 31 - 1)));
  }

  /** Tells the host; what its callback throws, other than a ToolError for the script, ends the run. */
  private tell(progress: Progress): void {
    try {
      this.options.onProgress(progress);
    } catch (problem) {
      if (!(problem instanceof ToolError)) this.broken = { problem };
      throw problem;
    }
  }

  private lookUp(name: string, given: unknown[]): unknown {
    this.discovery -= this.calls.docs.cost(name);
    if (this.discovery < 0) throw new ToolError(TOO_MUCH_DISCOVERY, { code: "limit_docs" });
    return this.calls.docs.answer(name, given);
  }

  private counts(target: string): boolean {
    return !target.startsWith("fn.") || (this.calls.settings.functions.get(target.slice(3))?.counted ?? true);
  }

  private answer(entry: CallEntry, [status, result, error]: CallResult): void {
    if (!this.open.delete(entry.id) || this.workerLost || this.done !== null) return;
    this.findRetry(entry);
    let text: string;
    try {
      text = toWire(error === null ? result : errorValue(error, entry.tool));
    } catch { // it would be longer than a string can be
      const message = `the result of ${entry.tool} cannot be used: it is too long`;
      [status, result, error] = ["error", null, new ToolError(message, { code: "result_too_large", tool: entry.tool })];
      text = toWire(errorValue(error, entry.tool));
    }
    entry.close(status, result, error);
    this.answered.push(entry);
    if (error !== null) this.failed.push(entry);
    this.replies.push(`[${entry.id},${error === null},${text}]`);
    // Answers that come at the same moment go together.
    if (this.open.size === 0) this.flush();
    else if (!this.flushing) {
      this.flushing = true;
      setTimeout(() => {
        this.flushing = false;
        this.flush();
      }, 0);
    }
  }

  private cancel(id: number): void {
    const entry = this.open.get(id);
    if (entry === undefined) return;
    this.open.delete(id);
    entry.close("cancelled");
    entry.abort.abort();
  }

  private waits(waiting: boolean): void {
    this.waiting = waiting;
    this.clock.waits(waiting);
    this.options.rests(waiting && !this.link.sending);
  }

  private flush(): void {
    if (!this.waiting || this.stopping || this.workerLost || this.place === "leaving" || this.place === "returning") return;
    if (this.place === "worker" && this.link.sending) {
      this.waits(false);
      return this.link.send(null);
    }
    if (this.replies.length === 0) {
      if (this.atClient > 0 && this.atClient === this.open.size) this.options.onWaiting();
      return;
    }
    if (this.place === "memory") return void this.goBack();
    const answer = new TextEncoder().encode(`[${this.replies.join(",")}]`);
    for (const entry of this.answered) entry.bytesOut = Math.floor(answer.length / this.replies.length);
    this.replies = [];
    this.answered = [];
    this.sent += answer.length;
    this.waits(false);
    this.link.send(answer);
  }

  /** Notes the latest call with the same tool and arguments that had failed before this one came. */
  private findRetry(entry: CallEntry): void {
    const latest = this.failed.slice(0, entry.failuresBefore).slice(-REMEMBERED_FAILURES);
    const same = latest.findLast(
      (earlier) => earlier.tool === entry.tool && toWire(earlier.arguments) === toWire(entry.arguments),
    );
    entry.retryOf = same?.index ?? null;
  }

  // The end

  private explain(error: EngineError): ScriptError {
    const { limits, language, toolbox } = this.calls.settings;
    return this.options.explain(error, this.options.sources, limits, language, [...toolbox].filter((tool) => tool.policy !== "direct").map((tool) => tool.path));
  }

  private record(): Run {
    const { done, options, values } = this;
    const calls = this.entries.map((entry) => entry.toCall());
    const error = this.error && options.nameSlowCall(this.error, options.source, calls, this.clock.elapsed());
    const kept = done?.kept && options.replId ? filled(this.calls.settings.language.texts.kept, { number: options.number }) : "";
    return new Run({
      id: options.runId,
      source: options.source,
      language: this.calls.settings.language.name,
      values,
      output: decoded(this.output),
      outputCut: done?.cut ?? 0,
      calls,
      usage: {
        wall: this.clock.elapsed(),
        cpu: done?.cpu ?? 0,
        operations: done?.operations ?? null,
        peakMemory: done?.memory ?? 0,
        calls: this.entries.length,
        bytesIn: this.sent,
        bytesOut: this.received,
        native: false,
      },
      error,
      started: this.started,
      repl: options.replId,
      number: options.number,
      parent: "",
      tool: "",
      seed: options.seed,
      observations: this.observations,
      stateLost: this.workerLost || options.stateLostBefore,
      kept: kept && done!.kept & 1 && values.length > 0 ? kept : "",
      keptOutput: kept && done!.kept & 2 ? `${kept}_printed` : "",
      notes: [],
      media: this.calls.settings.media.foundIn([...this.shown.values(), ...values]),
      limits: this.calls.settings.limits,
      labels: options.purpose.labels,
    });
  }
}

/** What the engine reported of a run, or of a script that was only compiled. */
export function engineError(done: Done, allowNan: boolean): EngineError {
  const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
  const extra = done.extra.length > 0 ? fromWire(text(done.extra), allowNan) : {};
  const given = isObject(extra) ? extra : {};
  const data = given["data"];
  return {
    kind: done.outcome,
    message: text(done.message).slice(0, LONGEST_MESSAGE),
    limit: done.limit,
    frames: done.frames.length > 0 ? (fromWire(text(done.frames)) as [string, number, string][]) : [],
    data: Array.isArray(data) && data.length > 0 ? (data[0] ?? null) : null,
    extra: given,
  };
}

function decoded(parts: Uint8Array[]): string {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return parts.map((part) => decoder.decode(part, { stream: true })).join("") + decoder.decode();
}

/** A number that is a float in the script, whole or not. */
function float(value: number): string {
  return Number.isInteger(value) ? `${value}.0` : String(value);
}
