/** moonbox.errors, whose classes take their fields by position from translated modules. */

import * as own from "../errors.js";
import { Struct } from "./values.js";

/* eslint-disable @typescript-eslint/no-explicit-any */
type Any = any;

export const { LIMIT_NAMES, isDenial: is_denial } = own;
export const ERROR_KINDS = ["syntax", "runtime", "tool", "limit", "denied", "crashed", "cancelled", "check"];

export class Frame extends Struct {
  static override fields = ["line", "function", "source", "chunk"];
  readonly function: string;
  constructor(
    readonly line: number | null,
    name: string,
    readonly source: string | null = null,
    readonly chunk = "script",
  ) {
    super();
    this.function = name;
  }
}

/** Python's ScriptError(kind, message, **fields). */
export class ScriptError extends own.ScriptError {
  constructor(kind: own.ErrorKind, message: string, given: Map<string, Any> = new Map()) {
    const fields = Object.fromEntries(given) as own.ScriptErrorFields;
    const frames = [...(fields.frames ?? [])].map((frame) => ({ line: frame.line, function: frame.function, source: frame.source, chunk: frame.chunk }));
    super(kind, message, { ...fields, frames });
  }
  with_(changes: Map<string, Any>): own.ScriptError {
    return this.with(Object.fromEntries(changes) as own.ScriptErrorFields);
  }
}

export class ArgumentError extends own.ArgumentError {}
export class ToolDefinitionError extends own.ToolDefinitionError {}
export class UsageError extends own.UsageError {}

/** Python's ToolError(message, *, code, retryable, data, tool). */
export class ToolError extends own.ToolError {
  constructor(message: string, code?: string, retryable?: boolean, data?: unknown, tool?: string) {
    super(message, { code, retryable, data, tool });
  }
}
