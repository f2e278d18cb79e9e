/** The answer to the model: what a run returned and printed, or what went wrong and what to change. */

import { UsageError, type ScriptError } from "../errors.js";
import { failureIn, oneLine } from "../failures.js";
import { filled, language, LANGUAGES, type Texts } from "../languages.js";
import { flat } from "../tools/signature.js";
import { count, counted, entriesOf, isTable } from "../values.js";
import { binary, Clip, compact, shape, short, sizeOf } from "./compact.js";
import type { Call, Run } from "./records.js";

const MIN_CHARS = 500;
const LISTED_CALLS = 20;
const MOST_FAILURES = 5;
const LONGEST_FAILURE = 200;
const PRINTED = "printed:\n";
const RETURNED = "\n\nreturned:\n";
const STATE_LOST = "state was lost: globals set before are gone, the next run starts afresh";
const KINDS: Record<string, string> = {
  syntax: "syntax error", runtime: "runtime error", tool: "tool error", limit: "limit reached", check: "check failed",
};
const STATUSES: Record<string, string> = {
  error: "failed",
  denied: "denied",
  timeout: "timed out, may still have taken effect",
  cancelled: "cancelled, may have taken effect",
  in_flight: "in flight when the run ended, may have taken effect",
};

/** The text for the model, at most `maxChars` long; an error and its hint come first and are never cut away. */
export function renderRun(run: Run, maxChars = 20_000): string {
  if (maxChars < MIN_CHARS) throw new UsageError(`maxChars must be at least ${MIN_CHARS}, not ${maxChars}`);
  if (run.error === null) return success(run, maxChars);
  return run.language === "direct" ? problem(run.error, maxChars) : failure(run, run.error, maxChars);
}

/**
 * The same as JSON: `result`, `output`, and `error` where the script failed; `text` is what `renderRun` made of it. Several
 * returned values are a list. What is too long is replaced by the text, cut, under `note`. `failures` has a sentence about
 * each result that was nothing but a failure.
 */
export function jsonReply(run: Run, text: string, maxChars: number): string {
  const { error, output, values } = run;
  const result = values.length === 1 ? values[0] : values.length > 0 ? [...values] : null;
  const failures = failureNotes(run, maxChars);
  let whole = compact(error === null ? { result, output, ...(failures.length > 0 ? { failures } : {}) } : { error: { kind: error.kind, message: text }, output });
  let room = maxChars;
  while (sizeOf(whole) > maxChars) { // JSON escapes characters, so that a text may need more room than its length
    room = Math.floor(room / 2);
    const note = new Clip(text).fit(room, linesNote);
    whole = compact(
      error === null
        ? { result: null, output: "", note: `too long for this reply, and cut: ${note}` }
        : { error: { kind: error.kind, message: note }, output: "" },
    );
  }
  return whole;
}

function success(run: Run, given: number): string {
  const notes = [...(run.outputCut ? [printedTooMuch(run.outputCut)] : []), ...(run.stateLost ? [STATE_LOST] : []), ...failureNotes(run, given)];
  const end = notes.map((note) => `\n[${note}]`).join("");
  let room = given - sizeOf(end);
  const printed = new Clip(run.output.trimEnd());
  if (run.values.length === 0) {
    if (printed.total) return printed.fit(room, outputNote(run)) + end;
    return `ok (${textsOf(run.language).no_value})${end}`;
  }
  const returned = new Clip(returnedText(run.values));
  if (!printed.total) return returned.fit(room, valueNote(run)) + end;
  room -= RETURNED.length + PRINTED.length;
  const [forValue, forOutput] = shares([returned.total, printed.total], room) as [number, number];
  return PRINTED + printed.fit(forOutput, outputNote(run)) + RETURNED + returned.fit(forValue, valueNote(run)) + end;
}

/** The only line of the script that names the tool. */
export function lineNaming(tool: string, source: string): number | null {
  const name = new RegExp(`\\b${tool.slice(tool.lastIndexOf(".") + 1).replace(/[^A-Za-z0-9]/g, ".")}\\b`);
  const lines = source.split("\n").flatMap((text, index) => (name.test(text) ? [index + 1] : []));
  return lines.length === 1 ? lines[0]! : null;
}

/**
 * A sentence about each result that was nothing but a failure; calls of one tool that say the same share one. A direct call
 * has none: its value is the failure.
 */
function failureNotes(run: Run, room: number): string[] {
  const groups = new Map<string, { tool: string; text: string; calls: number[] }>();
  for (const call of run.language === "direct" ? [] : run.calls) {
    const text = returnedFailure(call);
    if (text === null) continue;
    const key = JSON.stringify([call.tool, text]);
    if (!groups.has(key)) groups.set(key, { tool: call.tool, text, calls: [] });
    groups.get(key)!.calls.push(call.index);
  }
  const most = Math.max(1, Math.min(MOST_FAILURES, Math.floor(room / 1_000)));
  const notes = [...groups.values()].slice(0, most).map(({ tool, text, calls: [first = 0, ...others] }) => {
    const line = lineNaming(tool, run.source);
    const which = others.length > 0 ? `calls ${count(first)} and ${count(others.length)} more` : `call ${count(first)}`;
    const where = oneLine(tool, 100) + (line === null ? "" : `, line ${line}`);
    return `${which} (${where}) returned a failure and raised no error: ${quoted(text, Math.min(LONGEST_FAILURE, Math.floor(room / 5)))}`;
  });
  const left = [...groups.values()].slice(most).reduce((sum, { calls }) => sum + calls.length, 0);
  return left ? [...notes, `${counted(left, "more call")} returned a failure`] : notes;
}

/** What the call's result says if it is nothing but a failure that was not raised. */
function returnedFailure(call: Call): string | null {
  return call.ok ? failureIn(call.result) : null;
}

/** Text of a tool, which its quotes and its one line tell apart from ours. */
function quoted(text: string, longest: number): string {
  return JSON.stringify(oneLine(text, longest));
}

function failure(run: Run, error: ScriptError, given: number): string {
  const state = stateText(run, error);
  const cut = run.outputCut ? `\n[${printedTooMuch(run.outputCut)}]` : "";
  const what = problem(error, Math.floor((given * 6) / 10));
  const room = given - sizeOf(what) - state.length - cut.length - PRINTED.length - 4;
  const calls = run.calls.length > 0 ? new Clip([...callLines(run.calls, error)].join("\n")) : null;
  const printed = new Clip(run.output.trimEnd());
  const [forCalls, forOutput] = shares([calls?.total ?? 0, printed.total], room) as [number, number];
  let text = what + state;
  if (calls !== null) text += (state ? "\n" : "\n\n") + calls.fit(forCalls, linesNote);
  if (printed.total) text += `\n\n${PRINTED}` + printed.fit(forOutput, outputNote(run));
  return text + cut;
}

function problem(error: ScriptError, room: number): string {
  const hint = error.hint ? `\nhint: ${error.hint}` : "";
  const data = error.data === null || error.data === undefined ? "" : `\ndata: ${short(error.data, 500)}`;
  const parts = [headline(error) + error.message, hint, where(error), data].map((part) => new Clip(part));
  const rooms = shares(parts.map((part) => part.total), room);
  return parts.map((part, index) => part.fit(rooms[index]!, linesNote)).join("");
}

function where(error: ScriptError): string {
  const lines = error.traceback.replace(/^\n+|\n+$/g, "").split("\n").filter((line, index, all) => line || all.length > 1);
  const first = error.message.split("\n")[0]!;
  if (lines.length > 0 && first.length > 9 && lines[0]!.endsWith(first)) lines.shift(); // it is in the headline already
  return lines.map((line) => `\n${line}`).join("");
}

function headline(error: ScriptError): string {
  const line = error.line === null ? "" : ` on line ${error.line}`;
  const about = (error.kind === "check" ? [] : [error.tool, error.code]) // of a check no call was made
    .filter((item): item is string => !!item && !error.message.includes(item))
    .map((item) => item.slice(0, 100));
  if (error.limit) about.unshift(error.limit);
  if (error.retryable) about.push("may work if tried again");
  return `${KINDS[error.kind] ?? error.kind}${line}${about.length > 0 ? ` (${about.join(", ")})` : ""}: `;
}

function stateText(run: Run, error: ScriptError): string {
  if (run.stateLost) return `\n\n${STATE_LOST}`;
  if (error.kind === "syntax" || error.kind === "check") return run.repl ? "\n\nnothing was run; state is unchanged" : "\n\nnothing was run";
  if (!run.repl) return ""; // a script by itself: whatever it had set is gone with it
  return "\n\nstate kept: globals set before the error are still there";
}

function* callLines(calls: readonly Call[], problem: ScriptError): Iterable<string> {
  const line = (call: Call): string => callLine(call, problem);
  const done = calls.filter(isDone).length;
  const counts = [done > 0 ? `${done} ok` : "", notOk(calls.length - done)].filter(Boolean).join(", ");
  yield `calls already made (${counts}); do not repeat those that changed something:`;
  if (calls.length <= LISTED_CALLS) {
    yield* calls.map(line);
    return;
  }
  const half = LISTED_CALLS / 2;
  yield* calls.slice(0, half).map(line);
  const hidden = calls.slice(half, -half);
  const failed = notOk(hidden.filter((call) => !isDone(call)).length);
  yield `… ${counted(hidden.length, "more call")}${failed ? `, ${failed}` : ", all ok"} …`;
  yield* calls.slice(-half).map(line);
}

function isDone(call: Call): boolean {
  return call.ok && returnedFailure(call) === null;
}

function notOk(failed: number): string {
  return failed ? `${failed} not ok` : "";
}

function callLine(call: Call, problem: ScriptError): string {
  let what = STATUSES[call.status] ?? call.status;
  const returned = returnedFailure(call);
  if (returned !== null) what = `returned a failure: ${quoted(returned, 160)}`;
  if (call.error !== null && call.status === "error") {
    what += ` (${call.error.code.slice(0, 60)})`;
    const told = problem.kind === "tool" && call.error.message === problem.message; // in the headline already
    if (call.error.message && !told) what += `: ${flat(call.error.message).slice(0, 160)}`;
  }
  return `${call.index}. ${call.tool.slice(0, 100)} ${short(call.arguments, 100)}: ${what}`;
}

function returnedText(values: readonly unknown[]): string {
  if (values.length !== 1) {
    return `${values.length} values:${values.map((value, index) => `\n${index + 1}: ${compact(value)}`).join("")}`;
  }
  const value = values[0];
  if (typeof value === "string") return value.trim() ? value : `"${value}"`; // providers refuse an empty answer
  return value instanceof Uint8Array ? binary(value) : compact(value);
}

/** Divides the room so that no part gets more than it wants, or less than it could have. */
function shares(wanted: number[], given: number): number[] {
  const made = wanted.map(() => 0);
  const order = wanted.map((_, index) => index).sort((a, b) => wanted[a]! - wanted[b]!);
  let room = Math.max(given, 0);
  order.forEach((index, done) => {
    made[index] = Math.min(wanted[index]!, Math.floor(room / (order.length - done)));
    room -= made[index]!;
  });
  return made;
}

function valueNote(run: Run): (leftOut: number, total: number) => string {
  const value = run.values.length === 1 ? run.values[0] : [...run.values];
  const advice = run.kept
    ? `the value is ${shape(value)}, kept as ${run.kept}. Read on without calling anything again: `
    : `the value is ${shape(value)}. Return less: filter, count or sum in the script. To read on, `;
  return (leftOut, total) =>
    `\n[… ${count(leftOut)} of ${count(total)} characters left out here; ${advice}${partOf(value, run.language, run.kept)} …]\n`;
}

function partOf(value: unknown, name: string, kept: string): string {
  const texts = textsOf(name);
  const part = (text: string): string => text.replaceAll("big", kept || "big");
  const whole = (text: string): string => (kept ? text : `${texts.keep}: ${text}`);
  if (typeof value === "string" || value instanceof Uint8Array || !isTable(value)) return whole(part(texts.part_of_text));
  if (Array.isArray(value)) return whole(part(texts.part_of_list));
  let [key, most] = ["key", -1];
  for (const [name_, item] of entriesOf(value)) {
    if (typeof name_ !== "string" || !/^[A-Za-z_]\w{0,40}$/.test(name_)) continue;
    const size = typeof item === "string" ? item.length : isTable(item) ? entriesOf(item).length : 0;
    if (size > most) [key, most] = [name_, size];
  }
  return whole(filled(part(texts.part_of_map), { key }));
}

function textsOf(name: string): Texts {
  return (LANGUAGES[name] ?? language()).texts;
}

function printedTooMuch(bytes: number): string {
  return `${count(bytes)} more bytes were printed and are lost: print less, or return a value`;
}

function outputNote(run: Run): (leftOut: number, total: number) => string {
  const advice = run.keptOutput
    ? `kept as ${run.keptOutput}. Read on: ${textsOf(run.language).part_of_text.replaceAll("big", run.keptOutput)}`
    : "print less, or return only what is needed";
  return (leftOut, total) => `\n[… ${count(leftOut)} of ${count(total)} printed characters left out here; ${advice} …]\n`;
}

function linesNote(leftOut: number, total: number): string {
  return `\n… [${count(leftOut)} of ${count(total)} characters left out] …\n`;
}
