/** Hints for what Rhai's compiler and runtime report: slips from Rust and others, reserved words as keys, limits. */

import type { ScriptError } from "../errors.js";
import type { Foreign } from "../languages.js";
import type { Limits } from "../limits.js";
import { lineOf } from "./report.js";

const NOT_FOUND = /Function not found: ([A-Za-z_]\w{0,60}) \(?/;
const MACRO = /'([A-Za-z_]\w{0,60})!' cannot run/;
const RESERVED = /'([A-Za-z_]\w{0,60})' is a reserved keyword/;
const RECURSION = "a function calls itself too often: add a case that returns without another call, or use a loop";
const FIELDS: Record<string, keyof Limits> = {
  time: "timeout",
  operations: "maxOperations",
  calls: "maxToolCalls",
  memory: "maxMemory",
  output: "maxOutput",
  string: "maxString",
  array: "maxArray",
};

/** A better hint than the error has; null where there is none. */
export function rhaiHint(error: ScriptError, source: string, limits: Limits, foreign: Foreign): string | null {
  if (error.kind === "limit") return limited(error, limits);
  const reserved = RESERVED.exec(error.message)?.[1];
  if (reserved !== undefined) return asKey(reserved, error, source);
  const macro = MACRO.exec(error.message)?.[1];
  if (macro !== undefined) {
    const form = word(foreign.functions, macro);
    return form === null ? `there are no macros: write ${macro}(…)` : `there are no macros; ${form}`;
  }
  const missing = error.hint === null ? NOT_FOUND.exec(error.message)?.[1] : undefined;
  if (missing === undefined) return null;
  const form = word(foreign.methods, missing)?.replaceAll("{self}", "list").replaceAll("{0}", "x");
  return form ?? word(foreign.functions, missing);
}

/** `#{match: 1}` and `map.match`. */
function asKey(name: string, error: ScriptError, source: string): string | null {
  const text = error.column === null ? null : lineOf(source, error.line);
  if (text === null) return null;
  const before = text.slice(0, error.column! - 1);
  const behind = text.slice(error.column! - 1 + name.length).trimStart();
  if (before.trimEnd().endsWith(".")) return `a reserved word as a name is written in quotes: map["${name}"]`;
  if (behind.startsWith(":") && (/(?:#\{|,)\s*$/.test(before) || before.trim() === "")) {
    return `a reserved word as a name is written in quotes: #{"${name}": …}`;
  }
  return null;
}

function limited(error: ScriptError, limits: Limits): string | null {
  if (error.limit === "depth" && error.message.startsWith("Stack overflow")) return RECURSION;
  const field = FIELDS[error.limit ?? ""];
  if (field === undefined || error.hint === null || error.message.includes(field) || error.hint.includes(field)) return null;
  const hint = error.limit === "array" ? "keep fewer elements: work on parts, and keep only what is needed" : error.hint;
  return `${field} is ${String(limits[field])}: ${hint}`;
}

function word(words: Record<string, string>, name: string): string | null {
  return Object.hasOwn(words, name) ? words[name]! : null;
}
