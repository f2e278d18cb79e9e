/**
 * Errors of moonbox, split by what the caller should do about them.
 *
 *     MoonboxError
 *     ├── UsageError            the call or configuration is wrong: fix it
 *     │   ├── ToolDefinitionError  a tool cannot be made from what was given
 *     │   └── ClosedError       the Sandbox or Repl is closed
 *     ├── ConversionError       a value cannot cross between host and script
 *     ├── ScriptError           a run failed: show it to whoever wrote the script
 *     ├── ToolError             a tool failed: thrown by tools, seen by scripts
 *     │   ├── ArgumentError     the arguments do not fit the tool's schema
 *     │   └── Denied            a person or a policy refused the call
 *     ├── AuditError            the audit trail cannot be written: check where it is kept
 *     └── WorkerError           a worker could not be started, or died
 */

import type { Run } from "./audit/records.js";
import { stringifiableData } from "./json.js";

export type ErrorKind = "syntax" | "runtime" | "tool" | "limit" | "denied" | "crashed" | "cancelled" | "check";
export type LimitName = "operations" | "time" | "memory" | "calls" | "output" | "string" | "array" | "depth" | "source";

export const LIMIT_NAMES: readonly string[] = [
  "operations", "time", "memory", "calls", "output", "string", "array", "depth", "source",
];
const DENIALS = new Set(["denied", "not_granted", "approval_denied", "approval_unavailable"]);

/** Whether a call's error of this code means that the call is not allowed. */
export function isDenial(code: unknown): boolean {
  return typeof code === "string" && DENIALS.has(code);
}

export class MoonboxError extends Error {
  // Written out in every class: minifiers rename classes.
  override get name(): string {
    return "MoonboxError";
  }

  /** What `JSON.stringify` writes; by itself it leaves out the message of an Error. */
  toJSON(): Record<string, unknown> {
    return { name: this.name, message: this.message };
  }
}

export class UsageError extends MoonboxError {
  override get name(): string {
    return "UsageError";
  }
}

export class ToolDefinitionError extends UsageError {
  override get name(): string {
    return "ToolDefinitionError";
  }
}

export class ClosedError extends UsageError {
  override get name(): string {
    return "ClosedError";
  }
}

export class WorkerError extends MoonboxError {
  override get name(): string {
    return "WorkerError";
  }
}

export class AuditError extends MoonboxError {
  override get name(): string {
    return "AuditError";
  }

  constructor(
    message: string,
    /** The finished run that could not be written: its calls have taken effect. */
    readonly run: Run,
    options: { cause?: unknown } = {},
  ) {
    super(message, options);
  }
}

export class ConversionError extends MoonboxError {
  override get name(): string {
    return "ConversionError";
  }

  constructor(
    message: string,
    readonly limit: LimitName | null = null,
  ) {
    super(message);
  }
}

export interface ToolErrorFields {
  code?: string;
  retryable?: boolean;
  data?: unknown;
  tool?: string | null;
  detail?: string | null;
}

/** A tool's failure as the script sees it. Throw it inside a tool to choose what the script is told. */
export class ToolError extends MoonboxError {
  override get name(): string {
    return "ToolError";
  }

  code: string;
  retryable: boolean;
  data: unknown;
  tool: string | null;
  /** Stays in the audit trail and never reaches the script. */
  detail: string | null;

  constructor(message: string, fields: ToolErrorFields = {}) {
    super(message);
    this.code = fields.code ?? "tool_error";
    this.retryable = fields.retryable ?? false;
    this.data = fields.data ?? null;
    this.tool = fields.tool ?? null;
    this.detail = fields.detail ?? null;
  }

  /** Without `detail`, which a tool that returns an error would show to the script. */
  override toJSON(): Record<string, unknown> {
    const { code, message, retryable, data, tool } = this;
    return { code, message, retryable, data: stringifiableData(data), tool };
  }
}

export class ArgumentError extends ToolError {
  override get name(): string {
    return "ArgumentError";
  }

  constructor(message: string, fields: ToolErrorFields = {}) {
    super(message, { code: "invalid", ...fields });
  }
}

export class Denied extends ToolError {
  override get name(): string {
    return "Denied";
  }

  constructor(message: string, fields: ToolErrorFields = {}) {
    super(message, { code: "denied", ...fields });
  }
}

/** One level of a script's traceback. */
export interface Frame {
  line: number | null;
  function: string;
  source: string | null;
  chunk: string;
}

export interface ScriptErrorFields {
  line?: number | null;
  column?: number | null;
  traceback?: string;
  limit?: LimitName | null;
  hint?: string | null;
  code?: string | null;
  tool?: string | null;
  retryable?: boolean;
  data?: unknown;
  frames?: Frame[];
}

/** Why a run failed, in words for the model that must fix the script. */
export class ScriptError extends MoonboxError {
  override get name(): string {
    return "ScriptError";
  }

  readonly line: number | null;
  readonly column: number | null;
  /** The source line with a caret, and the calls that led there. */
  readonly traceback: string;
  /** Which limit ended the run; null unless `kind` is "limit". */
  readonly limit: LimitName | null;
  readonly hint: string | null;
  readonly code: string | null;
  readonly tool: string | null;
  readonly retryable: boolean;
  readonly data: unknown;
  readonly frames: Frame[];

  constructor(
    readonly kind: ErrorKind,
    message: string,
    fields: ScriptErrorFields = {},
  ) {
    super(message);
    this.line = fields.line ?? null;
    this.column = fields.column ?? null;
    this.traceback = fields.traceback ?? "";
    this.limit = fields.limit ?? null;
    this.hint = fields.hint ?? null;
    this.code = fields.code ?? null;
    this.tool = fields.tool ?? null;
    this.retryable = fields.retryable ?? false;
    this.data = fields.data ?? null;
    this.frames = fields.frames ?? [];
  }

  with(changes: ScriptErrorFields): ScriptError {
    const { line, column, traceback, limit, hint, code, tool, retryable, data, frames } = this;
    return new ScriptError(this.kind, this.message, {
      line, column, traceback, limit, hint, code, tool, retryable, data, frames, ...changes,
    });
  }

  toDict(): Record<string, unknown> {
    const { kind, message, line, column, traceback, limit, hint, code, tool, retryable, data, frames } = this;
    return { kind, message, line, column, traceback, limit, hint, code, tool, retryable, data, frames };
  }

  /** `toDict` as `JSON.stringify` can write it. */
  override toJSON(): Record<string, unknown> {
    return { ...this.toDict(), data: stringifiableData(this.data) };
  }

  override toString(): string {
    const where = this.line === null ? "" : ` (line ${this.line})`;
    const what = this.limit ? `${this.kind}: ${this.limit}` : this.kind;
    return `${what}${where}: ${this.message}${this.hint ? `\nhint: ${this.hint}` : ""}`;
  }
}
