/** Direct calls: one tool called without a script, along the same way as from one. */

import { Run } from "../audit/records.js";
import { isDenial, ScriptError, ToolError } from "../errors.js";
import type { Limits, SpendOptions } from "../limits.js";
import type { Toolbox } from "../tools/toolbox.js";
import { CallEntry, CallPath, type CallResult, type ClientOptions, type RunInfo } from "./calls.js";
import { RunClock } from "./clock.js";
import { MediaStore } from "./media.js";
import type { Purpose, PurposeOptions } from "./options.js";
import { randomHex } from "./repl.js";
import type { Setup } from "./sandbox.js";

export interface DirectOptions extends ClientOptions, SpendOptions, PurposeOptions {
  /** Ends the call when it is aborted. */
  signal?: AbortSignal;
}

export const DIRECT_OPTIONS = ["limits", "timeout", "context", "labels", "signal", "clientCalls", "onWaiting"];

const LONGEST_WAIT = 2 ** 31 - 1;

/** One call and its record: a Run whose language is "direct". */
export class DirectCall implements RunInfo {
  readonly id = randomHex(16);
  readonly replId = "";
  readonly source = "";
  private readonly media = new MediaStore();
  private readonly clock: RunClock;
  private readonly entry: CallEntry;
  private readonly path: CallPath;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private end: (result: CallResult) => void = () => undefined;
  private readonly givenUp = new Promise<CallResult>((resolve) => {
    this.end = resolve;
  });

  constructor(
    setup: Setup,
    toolbox: Toolbox,
    private readonly limits: Limits,
    private readonly tool: string,
    given: Record<string, unknown> | unknown[],
    private readonly options: DirectOptions,
    readonly purpose: Purpose,
  ) {
    const { language, allowNan, failures, approve, slots, running } = setup;
    this.entry = new CallEntry(1, `tools.${tool}`, Array.isArray(given) ? given : [given], 1, 1, 0, 0);
    this.path = new CallPath({
      toolbox, functions: new Map(), docs: new Map(), limits, language, allowNan, failures, approve, slots, running, media: this.media,
      always: new Map(), direct: true,
    });
    this.clock = new RunClock(limits.timeout, () => this.changed());
    this.clock.waits(true);
  }

  async run(): Promise<Run> {
    const { entry } = this;
    const { signal } = this.options;
    const cancel = (): void => this.cancel();
    signal?.addEventListener("abort", cancel, { once: true });
    if (signal?.aborted) cancel();
    else this.changed();
    const [status, result, error] = await (signal?.aborted ? this.givenUp : Promise.race([this.path.perform(entry, this), this.givenUp]));
    signal?.removeEventListener("abort", cancel);
    clearTimeout(this.timer);
    entry.close(status, result, error);
    if (error === null) return this.record(result, null);
    const { code, message, retryable, data } = error;
    const kind = status === "cancelled" ? status : isDenial(code) ? "denied" : "tool";
    return this.record(null, new ScriptError(kind, message, { code, tool: entry.tool, retryable, data }));
  }

  /** Ends the call: its tool goes on without us. */
  cancel(): void {
    this.giveUp("cancelled", "the call was cancelled");
  }

  private giveUp(status: "cancelled" | "timeout", message: string): void {
    this.entry.abort.abort();
    this.end([status, null, new ToolError(message, { code: status, retryable: status === "timeout", tool: this.tool })]);
  }

  pause(): () => void {
    return this.clock.ask();
  }

  changed(): void {
    clearTimeout(this.timer);
    const deadlines = [this.clock.deadline(), this.entry.deadline].filter((at) => at !== null);
    if (deadlines.length === 0) return;
    const wait = Math.min(...deadlines) - performance.now();
    this.timer = setTimeout(() => this.giveUp("timeout", `${this.entry.tool} did not answer in time`), Math.min(Math.max(0, wait), LONGEST_WAIT));
  }

  get client(): RunInfo["client"] {
    const { clientCalls, onWaiting } = this.options;
    if (clientCalls === undefined) return null;
    return (call) => {
      const answer = clientCalls(call);
      onWaiting?.();
      return answer;
    };
  }

  private record(result: unknown, error: ScriptError | null): Run {
    const values = error === null ? [result] : [];
    return new Run({
      id: this.id, source: this.tool, language: "direct", values, output: "", outputCut: 0, calls: [this.entry.toCall()],
      usage: {
        wall: this.clock.elapsed(), cpu: 0, operations: null, peakMemory: 0, calls: 1, bytesIn: 0, bytesOut: 0, native: false,
      },
      error, started: this.entry.started, repl: "", number: 1, parent: "", tool: "", seed: 0, observations: [], stateLost: false,
      kept: "", keptOutput: "", notes: [], media: this.media.foundIn(values), limits: this.limits, labels: this.purpose.labels,
    });
  }
}
