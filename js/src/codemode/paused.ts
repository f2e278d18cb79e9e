/** Client-side calls: those of tools that have no function here, which wait for the caller's answers. */

import type { Run } from "../audit/records.js";
import { ToolError, UsageError } from "../errors.js";
import type { ToolCall } from "../sandbox/calls.js";
import type { RunOptions } from "../sandbox/repl.js";
import type { Reply } from "./mode.js";

/** Answers in the order of the calls, or by `call.id`, or one ToolError for all of them. A ToolError stands for a failure. */
export type Answers = readonly unknown[] | ReadonlyMap<number, unknown> | Readonly<Record<number, unknown>> | ToolError;

export type Begin = (options: Pick<RunOptions, "clientCalls" | "onWaiting" | "signal">) => Promise<Run>;

/** Calls that wait for the caller. A script that waits keeps its worker, and its clock stands still. */
export class Paused {
  private isOver = false;

  constructor(
    /** The calls to answer: `call.tool`, `call.arguments`, `call.id`. */
    readonly calls: readonly ToolCall[],
    private readonly goOn: (answers: ReadonlyMap<number, unknown>) => Promise<Reply>,
    private readonly giveUp: () => Promise<void>,
  ) {}

  toString(): string {
    return `paused: waiting for the client's answer to ${[...new Set(this.calls.map((call) => call.tool))].join(", ")}`;
  }

  /** Answers the calls and goes on: the answer to the model, or the next pause. */
  async resume(answers: Answers): Promise<Reply> {
    const byId = this.byId(answers);
    this.end();
    return this.goOn(byId);
  }

  /** Gives the script up; the conversation stays usable. */
  async cancel(): Promise<void> {
    this.end();
    await this.giveUp();
  }

  private end(): void {
    if (this.isOver) throw new UsageError("this Paused was resumed or cancelled before");
    this.isOver = true;
  }

  private byId(answers: Answers): ReadonlyMap<number, unknown> {
    const ids = this.calls.map((call) => call.id);
    if (answers instanceof ToolError) return new Map(ids.map((id) => [id, answers]));
    if (Array.isArray(answers) && answers.length === ids.length) return new Map(ids.map((id, index) => [id, answers[index]]));
    if (typeof answers === "object" && answers !== null && !Array.isArray(answers)) {
      const given = new Map(answers instanceof Map ? answers : Object.entries(answers).map(([id, value]) => [Number(id), value]));
      if (given.size === ids.length && ids.every((id) => given.has(id))) return given;
    }
    throw new UsageError(`give one answer for each of the calls ${ids.join(", ")}: an array in their order, or an object by call.id`);
  }
}

/** What may wait for the client: the run of a script, or one direct call. */
export class ClientWork {
  private readonly waiting = new Map<number, [ToolCall, (answer: unknown) => void]>();
  private readonly control = new AbortController();
  private readonly run: Promise<Run>;
  private isWaiting = false;
  private paused: () => void = () => undefined;

  /** `signal` is the caller's; `ended` is called when the work is over, also where that was while it waited. */
  constructor(begin: Begin, signal: AbortSignal | undefined, ended: () => void) {
    this.run = begin({
      clientCalls: (call) => new Promise((answer) => this.waiting.set(call.id, [call, answer])),
      onWaiting: () => {
        this.isWaiting = true;
        this.paused();
      },
      signal: signal === undefined ? this.control.signal : AbortSignal.any([signal, this.control.signal]),
    });
    this.run.then(ended, ended); // whoever takes the next step is told
  }

  /** The calls that wait. */
  get calls(): ToolCall[] {
    return [...this.waiting.values()].map(([call]) => call);
  }

  /** The run when it has ended; null when it waits. */
  next(): Promise<Run | null> {
    const pause = new Promise<null>((resolve) => {
      if (this.isWaiting) resolve(null); // a direct call waits as soon as it begins
      this.paused = () => resolve(null);
    });
    return Promise.race([this.run, pause]);
  }

  answer(answers: ReadonlyMap<number, unknown>): void {
    this.isWaiting = false;
    for (const [id, value] of answers) {
      this.waiting.get(id)?.[1](value);
      this.waiting.delete(id);
    }
  }

  async cancel(): Promise<void> {
    this.control.abort();
    const gone = new ToolError("the client gave the call up", { code: "cancelled" });
    this.answer(new Map([...this.waiting.keys()].map((id) => [id, gone])));
    await this.run.catch(() => undefined);
  }
}
