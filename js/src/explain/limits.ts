/** Limits that ended a run: what was exceeded, by the number, and what to do about it in any language. */

import { lineNaming } from "../audit/answer.js";
import type { Call } from "../audit/records.js";
import type { ScriptError } from "../errors.js";
import type { Limits } from "../limits.js";

/** The message of a stop: the engine's own where it has one. */
export function limitMessage(limit: string, reported: string, limits: Limits): string {
  if (reported && !reported.startsWith("the script needed more memory")) {
    return reported.replace(/^(\S{60})\S{20,}(\S{20} (?:is|has) )/, "$1…$2");
  }
  switch (limit) {
    case "time":
      return limits.timeout === null
        ? "the script ran out of time"
        : `the script ran longer than timeout = ${limits.timeout} seconds`;
    case "calls":
      return `the script made more than max_tool_calls = ${limits.maxToolCalls} tool calls`;
    case "memory":
      return `the script needed more memory than max_memory = ${limits.maxMemory} bytes`;
    case "operations":
      return `the script used more than max_operations = ${limits.maxOperations} operations`;
    case "output":
      return `the script printed more than max_output = ${limits.maxOutput} bytes`;
    case "string":
      return `a string is longer than max_string = ${limits.maxString} bytes`;
    case "array":
      return `an array has more than max_array = ${limits.maxArray} elements`;
    case "depth":
      return `a value is nested deeper than max_depth = ${limits.maxDepth}`;
    case "source":
      return `the script is longer than max_source = ${limits.maxSource} bytes`;
    case "cancelled":
      return "the run was cancelled";
  }
  return "the run was stopped";
}

/** The part of a run's time from which on one call is what took it. */
const NEARLY_ALL = 0.8;

/** The error of a run out of time; its hint names the call that took nearly all of the time, if one did. */
export function nameSlowCall(error: ScriptError, source: string, calls: readonly Call[], spent: number): ScriptError {
  const slowest = calls.reduce<Call | null>((found, call) => (found !== null && found.duration >= call.duration ? found : call), null);
  if (error.limit !== "time" || slowest === null || slowest.duration < NEARLY_ALL * spent) return error;
  const line = lineNaming(slowest.tool, source) ?? (slowest.status === "in_flight" ? error.line : null);
  const where = line === null ? "" : ` on line ${line}`;
  const seconds = `${Math.min(slowest.duration, spent).toFixed(1)} of ${spent.toFixed(1)} seconds`;
  return error.with({ hint: `the call of '${slowest.tool}'${where} took ${seconds}: ask it for less, or go on without it` });
}

/** What to change in the script. */
export function limitHint(limit: string, limits: Limits, message: string): string | null {
  switch (limit) {
    case "time":
      return "do less in one run, or split the work over several runs";
    case "operations":
      return "do less in one run: filter in the tool calls, work on fewer items, or split the work over several runs";
    case "calls": {
      const most = limits.maxToolCalls;
      const allowed = most === 0 ? "no tool calls" : `${most} tool call${most === 1 ? "" : "s"}`;
      return `a run may make ${allowed} (max_tool_calls): ask for more with each call, or split the work over several runs`;
    }
    case "memory":
      return "process the data in parts and keep only what is needed";
    case "output":
      return "print less: return the result as a value and print only a summary";
    case "string":
      return "make shorter strings: work on parts, or keep the parts in a list";
    case "array":
      return message.startsWith("value")
        ? "return less: filter or summarise the data in the script, and return the result"
        : "send less in one call: pass the data in parts";
    case "depth":
      return "return a flatter value: only the fields that are needed";
    case "source":
      return "write a shorter script: loop instead of repeating, and get data from tools";
  }
  return null;
}
