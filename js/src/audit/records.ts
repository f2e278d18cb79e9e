/** Records of what a script did: Run, Usage and Call, whose fields are those of the JSON form in camelCase. */

import type { ScriptError } from "../errors.js";
import type { Limits } from "../limits.js";
import type { Media } from "../media.js";
import { jsonForm, stringifiableData } from "../json.js";
import { toJson, toJsonable } from "../values.js";
import { renderRun } from "./answer.js";

export type CallStatus = "ok" | "error" | "denied" | "timeout" | "cancelled" | "in_flight";

export interface CallError {
  code: string;
  message: string;
  retryable: boolean;
  data: unknown;
  detail: string | null;
}

/** One tool call inside a run. */
export interface Call {
  readonly index: number;
  readonly tool: string;
  readonly arguments: unknown;
  readonly status: CallStatus;
  readonly ok: boolean;
  readonly result: unknown;
  readonly error: CallError | null;
  /** Seconds since the epoch. */
  readonly started: number;
  readonly queued: number;
  readonly duration: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly approval: string | null;
  /** Who decided; empty where the approver did not say. */
  readonly approvalBy: string;
  readonly approvalReason: string;
  /** The arguments before a person edited them; null where nobody did. */
  readonly originalArguments: unknown;
  readonly retryOf: number | null;
  readonly batch: number;
}

export interface Usage {
  wall: number;
  cpu: number;
  operations: number | null;
  peakMemory: number;
  calls: number;
  bytesIn: number;
  bytesOut: number;
  /** Whether the worker ran on the Python package's native loop; there is none here. */
  native: boolean;
}

export interface RunFields {
  id: string;
  source: string;
  language: string;
  values: unknown[];
  output: string;
  outputCut: number;
  calls: Call[];
  usage: Usage;
  error: ScriptError | null;
  started: number;
  repl: string;
  number: number;
  /** The run that called the tool script of which this is an execution; tool scripts are the Python package's. */
  parent: string;
  /** The tool script that was executed. */
  tool: string;
  seed: number;
  observations: [string, unknown][];
  stateLost: boolean;
  /** The name under which later scripts of the Repl find the value, where it is large. */
  kept: string;
  /** The name under which they find what was printed, where that is long. */
  keptOutput: string;
  /** What a look at the script before it ran had to say; the Python package looks, this one does not. */
  notes: unknown[];
  /** What the script returned or showed of images, audio and files; not in the JSON form, which has their handles. */
  media: Media[];
  /** What it was allowed to spend. */
  limits: Limits | null;
  /** For whom it was, and why, as the host said. */
  labels: Readonly<Record<string, string>>;
}

export interface Run extends Readonly<RunFields> {}

/** The complete record of one script execution. */
export class Run {
  constructor(fields: RunFields) {
    Object.assign(this, fields);
    Object.freeze(this);
  }

  get ok(): boolean {
    return this.error === null;
  }

  /** The first returned value; null when there is none. */
  get value(): unknown {
    return this.values.length > 0 ? this.values[0] : null;
  }

  /** The value, or throws the error. */
  unwrap(): unknown {
    if (this.error !== null) throw this.error;
    return this.value;
  }

  /** The text that goes back to the model, at most `maxChars` characters long: 20,000 are about 5,000 tokens. */
  forModel(maxChars = 20_000): string {
    return renderRun(this, maxChars);
  }

  with(changes: Partial<RunFields>): Run {
    return new Run({ ...(this as RunFields), ...changes });
  }

  /** Plain JSON data: bytes, NaN and integer keys are tagged. */
  toDict(): Record<string, unknown> {
    return {
      id: this.id,
      ok: this.ok,
      state: this.ok ? "ok" : "failed",
      language: this.language,
      source: this.source,
      values: this.values.map(toJsonable),
      output: this.output,
      output_cut: this.outputCut,
      calls: this.calls.map(callDict),
      usage: jsonForm(this.usage),
      error: this.error === null ? null : toJsonable(this.error.toDict()),
      started: this.started,
      repl: this.repl,
      number: this.number,
      parent: this.parent,
      tool: this.tool,
      seed: this.seed,
      observations: this.observations.map(([name, value]) => [name, toJsonable(value)]),
      state_lost: this.stateLost,
      kept: this.kept,
      kept_output: this.keptOutput,
      notes: [...this.notes],
      limits: this.limits === null ? null : this.limits.toDict(),
      labels: { ...this.labels },
    };
  }

  /** What `JSON.stringify` writes. */
  toJSON(): unknown {
    return stringifiableData(this.toDict());
  }

  /** One line of JSON, unless `indent` is given. */
  toJson(indent?: number): string {
    return toJson(this.toDict(), indent);
  }
}

function callDict(call: Call): Record<string, unknown> {
  return {
    ...jsonForm(call),
    arguments: toJsonable(call.arguments),
    result: toJsonable(call.result),
    original_arguments: toJsonable(call.originalArguments),
    error: call.error === null ? null : { ...call.error, data: toJsonable(call.error.data) },
  };
}
