/** The way of a call: resolve, validate, approval, slot, invoke, convert. */

import type { Call, CallStatus } from "../audit/records.js";
import { ArgumentError, ConversionError, Denied, ToolError, UsageError } from "../errors.js";
import type { Failures } from "../failures.js";
import type { Language } from "../languages.js";
import type { Limits } from "../limits.js";
import { changedParts, fingerprint, type Fingerprint } from "../tools/fingerprint.js";
import { convert, convertResult, toToolError, type ResultSettings } from "../tools/results.js";
import type { Tool } from "../tools/tool.js";
import type { Toolbox } from "../tools/toolbox.js";
import { isObject, plain } from "../values.js";
import { Docs } from "./docs.js";
import { asAddresses, withContents, type MediaStore } from "./media.js";
import type { Purpose } from "./options.js";

const MOST_LEFT = 64;
const LONGEST_NAME = 200;
const LONGEST_REASON = 2000;

/** A function of the host that scripts call by its bare name, with positional arguments. */
export interface HostFunction {
  name: string;
  /** Null for `show`, which the run itself carries out. */
  call: ((...given: unknown[]) => unknown) | null;
  /** Whether it is spent from `max_tool_calls`. */
  counted: boolean;
}

/** A call as `approve` and `clientCalls` see it. */
export interface ToolCall {
  /** How answers to several calls of a run name it. */
  id: number;
  /** The path of the tool, as in the record of a call. */
  tool: string;
  /** The tool itself. */
  definition: Tool;
  arguments: Record<string, unknown>;
  index: number;
  runId: string;
  replId: string;
  /** The script that makes the call; empty for a direct call. */
  source: string;
  language: string;
  /** The parts of the tool's definition that changed since the person said "always" about it. */
  changed: string[];
  /** What the tool finds as `extra` of its context. */
  context: Readonly<Record<string, unknown>>;
  /** The labels of the run. */
  labels: Readonly<Record<string, string>>;
}

/** What is said besides a decision, for the trail; the script gets the reason of a refusal. */
export interface DecisionNotes {
  /** Who decided. */
  by?: string;
  reason?: string;
}

type FullDecision = DecisionNotes &
  ({ kind: "allow" | "always" | "deny" } | { kind: "edit"; arguments: Record<string, unknown> });

/** What an approve callback may answer; `edit` goes on with other arguments, which are validated again. */
export type Decision = boolean | "allow" | "deny" | "always" | null | undefined | FullDecision;

export type Approve = (call: ToolCall) => Decision | Promise<Decision>;

/** Answers a call of a client-side tool; a ToolError that it returns or throws is what the script gets. */
export type ClientCalls = (call: ToolCall) => unknown;

export interface ClientOptions {
  /** Answers the calls of client-side tools, sync or async; without it they fail. */
  clientCalls?: ClientCalls;
  /** Called when the script, and everything that it has under way, waits for `clientCalls`. */
  onWaiting?: () => void;
}

/** What a call needs to know of its run. */
export interface RunInfo {
  id: string;
  purpose: Purpose;
  replId: string;
  source: string;
  /** Stops the run's clock until the returned function is called. */
  pause(): () => void;
  /** When something is due earlier than it was. */
  changed(): void;
  /** Who answers the calls of client-side tools; null where nobody does. */
  client: ClientCalls | null;
}

/** One call, from its arrival to its answer. */
export class CallEntry {
  tool: string;
  arguments: unknown;
  status: CallStatus = "in_flight";
  result: unknown = null;
  error: Call["error"] = null;
  approval: string | null = null;
  approvalBy = "";
  approvalReason = "";
  originalArguments: unknown = null;
  retryOf: number | null = null;
  bytesOut = 0;
  /** In milliseconds of the monotonic clock: when the tool's own timeout passes. */
  deadline: number | null = null;
  /** Why it may wait for its tool until the deadline; empty once the tool has begun. */
  obstacle = "";
  readonly started = Date.now() / 1000;
  private readonly received = performance.now();
  private began: number | null = null;
  private ended: number | null = null;
  readonly abort = new AbortController();

  constructor(
    readonly id: number,
    readonly target: string,
    readonly given: unknown[],
    readonly index: number,
    readonly batch: number,
    readonly bytesIn: number,
    readonly failuresBefore: number,
  ) {
    const at = target.indexOf(".");
    this.tool = target.slice(at + 1);
    const named = target.startsWith("tools.") && given.length === 1 && isObject(given[0]);
    this.arguments = named ? given[0] : given;
  }

  get open(): boolean {
    return this.status === "in_flight";
  }

  /** The tool itself starts now. */
  begin(timeout: number | null): void {
    if (this.abort.signal.aborted) throw new ToolError("the run is over", { code: "cancelled" });
    this.began = performance.now();
    this.obstacle = "";
    if (timeout !== null) this.deadline = this.began + timeout * 1000;
  }

  /** A person has decided about it. */
  decide({ kind, by = "", reason = "" }: FullDecision): void {
    this.approval = { allow: "allowed", always: "always", edit: "edited", deny: "denied" }[kind];
    this.approvalBy = by.slice(0, LONGEST_NAME);
    this.approvalReason = reason.slice(0, LONGEST_REASON);
  }

  finish(): void {
    this.ended ??= performance.now();
  }

  close(status: CallStatus, result: unknown = null, error: ToolError | null = null): void {
    this.finish();
    this.status = status;
    this.result = result;
    if (error !== null) {
      const { code, message, retryable, data, detail } = error;
      this.error = { code, message, retryable, data, detail };
    }
  }

  toCall(): Call {
    const ended = this.ended ?? performance.now();
    const began = this.began ?? ended;
    return {
      index: this.index,
      tool: this.tool,
      arguments: this.arguments,
      status: this.status,
      ok: this.status === "ok",
      result: this.result,
      error: this.error,
      started: this.started,
      queued: Math.max(0, began - this.received) / 1000,
      duration: Math.max(0, ended - began) / 1000,
      bytesIn: this.bytesIn,
      bytesOut: this.bytesOut,
      approval: this.approval,
      approvalBy: this.approvalBy,
      approvalReason: this.approvalReason,
      originalArguments: this.originalArguments,
      retryOf: this.retryOf,
      batch: this.batch,
    };
  }
}

/** Calls whose tools have not ended, those included that nobody waits for any more: these are counted and bounded. */
export class RunningCalls {
  private readonly entries = new Set<CallEntry>();

  /** A call begins; throws ToolError where too many have been left behind. */
  enter(entry: CallEntry): () => void {
    if (this.entries.size >= MOST_LEFT && [...this.entries].filter((each) => each.abort.signal.aborted).length >= MOST_LEFT) {
      throw new ToolError(
        `${MOST_LEFT} earlier calls timed out or were given up, and their tools are still running; ` +
          "no other call is made until some of them have ended",
        { code: "busy", retryable: true },
      );
    }
    this.entries.add(entry);
    return () => void this.entries.delete(entry);
  }
}

/** The calls of each tool that run at this moment, and those that wait for one of them to end. */
export class ToolSlots {
  private readonly running = new Map<string, Set<CallEntry>>();
  private readonly waiting = new Map<string, [CallEntry, () => void][]>();

  async enter(tool: Tool, entry: CallEntry): Promise<() => void> {
    if (tool.maxConcurrency === null) return () => undefined;
    const busy = this.running.get(tool.path) ?? new Set();
    this.running.set(tool.path, busy);
    if (busy.size < tool.maxConcurrency) busy.add(entry);
    else {
      const queue = this.waiting.get(tool.path) ?? [];
      this.waiting.set(tool.path, queue);
      await new Promise<void>((resolve) => queue.push([entry, resolve]));
    }
    return () => {
      busy.delete(entry);
      const [next, resume] = this.waiting.get(tool.path)?.shift() ?? [];
      if (next !== undefined) busy.add(next);
      resume?.();
    };
  }

  /** Whether every slot is held by a call that its run no longer waits for. */
  areLeft(tool: Tool): boolean {
    const busy = [...(this.running.get(tool.path) ?? [])];
    return busy.length === tool.maxConcurrency && busy.every((entry) => entry.abort.signal.aborted);
  }
}

/** A tool's definition of which a person said "always". */
export interface Remembered {
  definition: Fingerprint;
  decision: FullDecision;
}

export interface CallSettings {
  toolbox: Toolbox;
  functions: ReadonlyMap<string, HostFunction>;
  docs: ReadonlyMap<string, string>;
  limits: Limits;
  language: Language;
  allowNan: boolean;
  /** What becomes of results that are nothing but a failure, where the tool does not say. */
  failures: Failures;
  approve: Approve | null;
  slots: ToolSlots;
  running: RunningCalls;
  /** What the Repl was given of images, audio and files. */
  media: MediaStore;
  /** The definitions, by the tools' paths, of which a person said "always": a changed one is another tool. */
  always: Map<string, Remembered>;
  /** A call by the model itself, not by a script. */
  direct: boolean;
}

export type CallResult = [CallStatus, unknown, ToolError | null];

/** The way of every call of one Repl under the same limits, or of one direct call. */
export class CallPath {
  readonly docs: Docs;

  constructor(readonly settings: CallSettings) {
    this.docs = new Docs(settings.toolbox, settings.docs, settings.language);
  }

  /** Carries a call out; whatever goes wrong on the way is in the result. */
  async perform(entry: CallEntry, run: RunInfo): Promise<CallResult> {
    try {
      const result = await this.invoke(entry, run);
      entry.finish();
      return ["ok", result, null];
    } catch (problem) {
      entry.finish();
      const error = toToolError(problem, entry.tool);
      const status = error instanceof Denied ? "denied" : error.code === "timeout" ? "timeout" : "error";
      return [status, null, error];
    }
  }

  private resultSettings(tool: Tool | null): ResultSettings {
    const { limits, allowNan, media, failures } = this.settings;
    return { limits, allowNan, media, failures: tool?.failures ?? failures };
  }

  private async invoke(entry: CallEntry, run: RunInfo): Promise<unknown> {
    const { settings } = this;
    const at = entry.target.indexOf(".");
    const [space, name] = [entry.target.slice(0, at), entry.target.slice(at + 1)];
    const added = space === "fn" ? settings.functions.get(name) : undefined;
    if (added !== undefined) {
      const ended = settings.running.enter(entry);
      try {
        entry.begin(null);
        return added.call === null ? null : this.convert(await added.call(...entry.given));
      } finally {
        ended();
      }
    }
    if (space !== "tools") throw new ArgumentError(`there is no function '${name}'`, { code: "unknown_function" });
    const tool = settings.toolbox.resolve(name);
    this.bind(tool, entry);
    if (tool.policy === "direct" && !settings.direct) {
      throw new Denied(`scripts cannot call the tool '${tool.path}'; use a direct tool call instead`);
    }
    const refined = (): Promise<unknown> =>
      tool.refined(withContents(entry.arguments as Record<string, unknown>, tool, settings.media));
    if (tool.policy === "approve" || tool.answeredByCaller) await refined(); // before a person is asked
    if (tool.answeredByCaller && run.client !== null) return this.askClient(run.client, tool, entry, run);
    if (tool.policy === "approve") await this.approved(tool, entry, run);
    const ended = settings.running.enter(entry);
    if (tool.timeout !== null && settings.slots.areLeft(tool)) {
      entry.obstacle =
        `${tool.path} takes ${tool.maxConcurrency} call${tool.maxConcurrency === 1 ? "" : "s"} at once (maxConcurrency), ` +
        "and earlier ones that timed out are still running";
      entry.deadline = performance.now() + tool.timeout * 1000;
      run.changed();
    }
    const leave = await settings.slots.enter(tool, entry);
    try {
      entry.begin(tool.timeout);
      run.changed();
      const context = {
        runId: run.id, replId: run.replId, tool: tool.path, index: entry.index, signal: entry.abort.signal,
        extra: run.purpose.context, labels: run.purpose.labels,
      };
      const result = await tool.call(await refined(), context);
      return convertResult(result, tool, this.resultSettings(tool));
    } finally {
      leave();
      ended();
    }
  }

  private bind(tool: Tool, entry: CallEntry): void {
    entry.tool = tool.path;
    const first = this.settings.direct ? 0 : this.settings.language.first_index;
    const given = this.settings.media.isEmpty ? entry.given : asAddresses(entry.given, tool);
    try {
      entry.arguments = tool.binder.bind(given, tool.path, first, this.settings.direct);
    } catch (problem) {
      entry.arguments = tool.binder.named(given, tool.path);
      throw problem;
    }
  }

  /** Has the caller answer; the run's clock stands still meanwhile. */
  private async askClient(client: ClientCalls, tool: Tool, entry: CallEntry, run: RunInfo): Promise<unknown> {
    entry.begin(null);
    const resume = run.pause();
    try {
      const answer = await client(this.view(tool, entry, run, []));
      if (answer instanceof ToolError) throw answer;
      return this.convert(answer, tool);
    } finally {
      resume();
    }
  }

  private view(tool: Tool, entry: CallEntry, run: RunInfo, changed: string[]): ToolCall {
    const { language, direct } = this.settings;
    return {
      id: entry.id, tool: tool.path, definition: tool, arguments: entry.arguments as Record<string, unknown>, index: entry.index,
      runId: run.id, replId: run.replId, source: run.source, language: direct ? "direct" : language.name, changed,
      context: run.purpose.context, labels: run.purpose.labels,
    };
  }

  /** Asks the person, unless they said "always" about the tool as it is defined now. */
  private async approved(tool: Tool, entry: CallEntry, run: RunInfo): Promise<void> {
    const before = this.settings.always.get(tool.path);
    const definition = fingerprint(tool);
    const changed = before === undefined ? [] : changedParts(before.definition, definition);
    const known = before !== undefined && changed.length === 0;
    const decision = known ? before.decision : await this.ask(tool, entry, run, changed);
    if (decision.kind === "always") this.settings.always.set(tool.path, { definition, decision });
    entry.decide(decision);
    if (decision.kind === "deny") {
      throw new Denied(`a person declined this call${decision.reason ? `: ${decision.reason}` : ""}`, { code: "approval_denied" });
    }
    if (decision.kind === "edit") {
      entry.originalArguments = entry.arguments;
      entry.arguments = tool.binder.bind(decision.arguments, tool.path, this.settings.language.first_index);
    }
  }

  /** Asks the person; the run's clock stands still meanwhile. */
  private async ask(tool: Tool, entry: CallEntry, run: RunInfo, changed: string[]): Promise<FullDecision> {
    const { approve } = this.settings;
    if (approve === null) {
      entry.approval = "denied";
      throw new Denied(
        `the tool '${tool.path}' needs a person's approval, and nobody can be asked here; go on without it`,
        { code: "approval_unavailable" },
      );
    }
    const resume = run.pause();
    try {
      return decisionOf(await approve(this.view(tool, entry, run, changed)));
    } catch (problem) {
      if (problem instanceof ToolError) throw problem; // it was thrown for the script
      throw new Denied(
        `the tool '${tool.path}' needs a person's approval, and the host could not ask for it; go on without it`,
        { code: "approval_unavailable", detail: String((problem as Error)?.stack ?? problem) },
      );
    } finally {
      resume();
    }
  }

  private convert(result: unknown, tool: Tool | null = null): unknown {
    try {
      return convert(result, this.resultSettings(tool));
    } catch (problem) {
      if (!(problem instanceof ConversionError)) throw problem;
      throw new ToolError(problem.message, { code: problem.limit ? "result_too_large" : "bad_result" });
    }
  }
}

/** What the script gets of an error. */
export function errorValue(error: ToolError, tool: string | null): Record<string, unknown> {
  const value: Record<string, unknown> = { code: error.code, message: error.message, retryable: error.retryable };
  const name = error.tool ?? tool;
  if (name) value["tool"] = name;
  if (error.data !== null && error.data !== undefined) value["data"] = plain(error.data);
  return value;
}

function decisionOf(said: Decision): FullDecision {
  if (said === true || said === "allow") return { kind: "allow" };
  if (said === false || said === null || said === undefined || said === "deny") return { kind: "deny" };
  if (said === "always") return { kind: "always" };
  if (typeof said === "object" && ["allow", "always", "deny", "edit"].includes(said.kind)) {
    for (const name of ["by", "reason"] as const) {
      if (typeof (said[name] ?? "") !== "string") throw new UsageError(`\`${name}\` of a decision must be a string`);
    }
    return said;
  }
  throw new UsageError(
    "approve must return true, false, 'allow', 'deny', 'always', { kind: 'deny', reason } or { kind: 'edit', arguments }; " +
      `not ${JSON.stringify(said)}`,
  );
}
