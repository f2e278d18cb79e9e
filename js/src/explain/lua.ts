/** Lua's errors: what was wrong, on which line, and how it came there. */

import { isDenial, ScriptError, type ErrorKind, type Frame, type ScriptErrorFields } from "../errors.js";
import { filled, type Language, written } from "../languages.js";
import type { Limits } from "../limits.js";
import { isObject } from "../values.js";
import { columnOf, luaHint } from "./hints.js";
import { limitHint, limitMessage } from "./limits.js";
import { limitOf, lineOf, LONGEST_MESSAGE, type EngineError } from "./report.js";

const LONGEST_NAME = 200;
const WIDEST = 100;
const MOST_SHOWN = 8;
const MAIN = "main chunk";
const PREFIX = /^(?<chunk>script(?:#\d{1,9})?|moonbox\/\w{1,30}):(?<line>\d{1,9}): ?/;
const CALLED = /bad argument #\d+ to '(\w{1,40})'|(?:in table for|to) '(\w{1,40})'|([\w.]{1,120})(?:: | expects)/;
const AT_LINE = /^(?:break outside|no visible label|<goto).{0,120} at line (\d{1,9})/;

export function explainLua(
  error: EngineError, sources: Map<string, string>, limits: Limits, language: Language, tools: readonly string[],
): ScriptError {
  const current = [...sources.keys()].at(-1) ?? "script";
  const raw = error.message.slice(0, LONGEST_MESSAGE + 200).split("\nstack traceback:\n\t[C]")[0]!;
  const [said, prefix] = splitPrefix(raw, current);
  let message = said.length <= LONGEST_MESSAGE ? said : `${said.slice(0, LONGEST_MESSAGE)}…`;
  if (error.kind === "syntax") return explainSyntax(message, prefix, sources, current);
  if (error.kind !== "tool" && error.data === null) message = tidied(message);
  const location = locate(error, message, prefix, sources, current);
  const line = location.at === null ? "" : (uncommented(sources.get(location.chunk) ?? "")[location.at - 1] ?? "");
  const column = error.kind === "runtime" ? columnOf(message, line) : null;
  const make = (kind: ErrorKind, text: string, fields: ScriptErrorFields): ScriptError =>
    new ScriptError(kind, text, {
      line: location.line,
      column: column === null ? null : column + 1,
      traceback: traceback(location, sources, current, column),
      frames: framesOf(location.frames, sources),
      ...fields,
    });
  if (error.kind === "stop") {
    const limit = limitOf(error.limit);
    const text = limitMessage(error.limit, message, limits);
    if (limit === null) return make("cancelled", text, {});
    return make("limit", text, { limit, hint: luaLimitHint(limit, limits, text, location.line) });
  }
  if (error.kind === "tool") {
    const fields = isObject(error.data) ? error.data : {};
    const [code, tool] = [textOf(fields["code"]), textOf(fields["tool"])];
    const retryable = fields["retryable"] === true;
    const denied = isDenial(code);
    const name = tool === null ? "tools.name" : filled(language.texts.tool, { name: written(language.texts, tool) });
    let hint: string | null = null;
    if (denied) hint = "do not repeat this call: continue without it, or ask for permission";
    else if (retryable) hint = `a retry may succeed; to continue without it write: local ok, result = pcall(${name}, {…})`;
    return make(denied ? "denied" : "tool", message, { hint, code, tool, retryable, data: fields["data"] ?? null });
  }
  const code = isObject(error.data) ? textOf(error.data["code"]) : null;
  return make("runtime", message, { data: error.data, code, hint: error.data === null ? luaHint({ message, line, tools }) : null });
}

function explainSyntax(message: string, prefix: [string, number][], sources: Map<string, string>, current: string): ScriptError {
  const at = message.lastIndexOf(" near ");
  const named = at <= 0 ? AT_LINE.exec(message) : null;
  let line = named === null ? (prefix[0]?.[1] ?? null) : Number(named[1]);
  let text = message;
  if (at > 0) {
    const code = codeLines(sources.get(current) ?? "");
    const [what, given] = [message.slice(0, at), message.slice(at + 6)];
    const near = foreign(given, lineOf(sources.get(current), line));
    text = `${what} near ${near.length <= 60 ? near : `${near.slice(0, 58)}…'`}`;
    if (line !== null) line = causeOf(what, near, line, code) ?? line;
  }
  const place = { chunk: current, at: line, line, frames: [] };
  return new ScriptError("syntax", text, { line, traceback: traceback(place, sources, current) });
}

/** The lines of a script with their comments and strings blanked out, so that columns stay; short ones only. */
function uncommented(source: string): string[] {
  return source.split("\n").map((text) => text.replace(/--.*$|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g, (found) => " ".repeat(found.length)));
}

/** The lines of a script without their comments and the contents of their strings: enough to look for words. */
function codeLines(source: string): string[] {
  const parts: string[] = [];
  const unclosed = new Set<string>(); // long brackets that nothing closes: each is looked for once
  let at = 0;
  for (MARK.lastIndex = 0; ; ) {
    const mark = MARK.exec(source);
    parts.push(source.slice(at, mark === null ? source.length : mark.index));
    if (mark === null) break;
    let end = mark.index + mark[0].length;
    if (mark[1] !== undefined) {
      const closing = `]${mark[1]}]`;
      const found = unclosed.has(closing) ? -1 : source.indexOf(closing, end);
      if (found < 0) unclosed.add(closing);
      else parts.push("\n".repeat(source.slice(end, found).split("\n").length - 1));
      end = found < 0 ? lineEnd(source, end) : found + closing.length;
    } else if (mark[0] === "--") end = lineEnd(source, end);
    else {
      while (end < source.length && source[end] !== mark[0] && source[end] !== "\n") end += source[end] === "\\" ? 2 : 1;
      if (source[end] === mark[0]) end += 1;
      parts.push('""');
    }
    at = MARK.lastIndex = end;
  }
  return parts.join("").split("\n").map((text) => text.trim());
}

const MARK = /--\[(=*)\[|--|["']/g;

function lineEnd(source: string, from: number): number {
  const end = source.indexOf("\n", from);
  return end < 0 ? source.length : end;
}

/** Lua names the first byte of a character that it does not know; a reader wants the character. */
function foreign(near: string, line: string | null): string {
  const char = /^'<\\\d+>'$/.test(near) ? /[^\x00-\x7f]/u.exec(line ?? "") : null;
  return char === null ? near : `'${char[0]}'`;
}

/** The line to change, where that is not the one at which Lua gave up; null where nothing is known. */
function causeOf(what: string, near: string, line: number, code: string[]): number | null {
  const before = (holds: (text: string) => boolean, from = line): number | null => {
    for (let at = Math.min(from, code.length); at >= 1; at -= 1) if (holds(code[at - 1]!)) return at;
    return null;
  };
  const missing = /^'(then|do)' expected$/.exec(what)?.[1];
  if (missing !== undefined) {
    const header = missing === "then" ? /^(?:if|elseif|elif|else if)\b/ : /^(?:for|while)\b/;
    return before((text) => header.test(text) && !new RegExp(`\\b${missing}\\b`).test(text));
  }
  if (what === "function arguments expected") return before((text) => /^(?:if|elif|else|for|while|def|class)\b.*:/.test(text));
  const unclosed = /^'end' expected \(to close 'if' at line (\d+)\)$/.exec(what);
  if (unclosed !== null && near === "<eof>") {
    const at = before((text) => /^else\s+if\b/.test(text));
    return at !== null && at > Number(unclosed[1]) ? at : null;
  }
  const braces = before((text) => text !== "", line - 1);
  if (braces !== null && /^(?:try|switch|do)\b.*\{$/.test(code[braces - 1]!)) return braces;
  if (what === "syntax error") {
    const first = near === "<eof>" ? "" : near.slice(1, -1);
    const here = code[line - 1] ?? "";
    if (here === "" || (first !== "" && here.startsWith(first))) return before((text) => text !== "", line - 1);
  }
  return null;
}

function tidied(message: string): string {
  let text = message
    .replace(/\bto 'raw_(\w{1,20})'/g, "to '$1'")
    .replaceAll(" (for iterator 'for iterator')", " (for iterator)")
    .replaceAll("(field 'integer index')", "(field '?')");
  if (/^(?:attempt to |invalid value \()/.test(text)) text = text.replaceAll("userdata", "null");
  return text;
}

function luaLimitHint(limit: string, limits: Limits, message: string, line: number | null): string | null {
  const general = limitHint(limit, limits, message);
  if (limit === "time") return `${line === null ? "" : `it was at line ${line}; `}${general}`;
  if (limit === "memory") return `${general}; build long strings with table.concat, not with .. in a loop`;
  return general;
}

// Where

interface Location {
  chunk: string;
  at: number | null;
  line: number | null;
  frames: [string, number, string][];
}

/** The message without the places that Lua puts in front, and those places. */
function splitPrefix(given: string, current: string): [string, [string, number][]] {
  let message = given;
  const places: [string, number][] = [];
  for (let match = PREFIX.exec(message); match !== null && places.length < 8; match = PREFIX.exec(message)) {
    message = message.slice(match[0].length);
    places.push([match.groups!["chunk"]!, Number(match.groups!["line"])]);
  }
  const own = places.filter(([chunk]) => chunk.startsWith("script"));
  for (const [chunk, line] of own.slice(1).reverse()) {
    message = chunk === current ? `line ${line}: ${message}` : `line ${line} of ${runName(chunk)}: ${message}`;
  }
  return [message, own.slice(0, 1)];
}

function locate(
  error: EngineError, message: string, prefix: [string, number][], sources: Map<string, string>, current: string,
): Location {
  let frames = error.frames.filter(([chunk]) => chunk !== "gone");
  let chunk: string;
  let at: number;
  const returned = error.frames[0]?.[0] === "gone" ? lastCall(error, message, sources) : null;
  if (returned !== null) {
    [chunk, at] = returned;
    frames = [[chunk, at, "a function"], ...frames];
  } else if (prefix[0] !== undefined) {
    [chunk, at] = prefix[0];
    const position = frames.findIndex((frame) => frame[0] === chunk && frame[1] === at);
    if (position >= 0) frames = frames.slice(position); // `error(text, 2)` names the caller
  } else if (frames[0] !== undefined) {
    [chunk, at] = frames[0];
  } else {
    const guessed = guess(sources.get(current), error, message);
    return { chunk: current, at: guessed, line: guessed, frames: [] };
  }
  at = dividedAt(message, at, sources.get(chunk)) ?? at;
  const line = chunk === current ? at : (frames.find(([name]) => name === current)?.[1] ?? null);
  return { chunk, at: at > 0 ? at : null, line: line !== null && line > 0 ? line : null, frames };
}

/** The only `return f(…)` that can be the call that failed: the function that ended in it left no frame. */
function lastCall(error: EngineError, message: string, sources: Map<string, string>): [string, number] | null {
  if (error.kind === "stop") return null;
  const tool = error.kind === "tool" && isObject(error.data) ? error.data["tool"] : undefined;
  const match = CALLED.exec(message);
  const full = typeof tool === "string" ? tool : (match?.[1] ?? match?.[2] ?? match?.[3]);
  if (full === undefined) return null;
  const name = full.slice(full.lastIndexOf(".") + 1).replace(/[^\w]/g, "");
  const call = new RegExp(`\\breturn\\s+[\\w.]*\\b${name}\\s*[({"]`);
  const places: [string, number][] = [];
  for (const [chunk, source] of sources) {
    codeLines(source).forEach((text, index) => {
      if (call.test(text)) places.push([chunk, index + 1]);
    });
  }
  return places.length === 1 ? places[0]! : null;
}

/** Lua's wasm build does not keep the line of an integer division; the only one in the script is it. */
function dividedAt(message: string, at: number, source: string | undefined): number | null {
  if (source === undefined || !/^attempt to (?:divide by zero|perform 'n(?:\/\/|%%?)0')$/.test(message)) return null;
  const lines = codeLines(source);
  const divides = (text: string): boolean => (message.includes("%") ? /%/ : /\/\//).test(text);
  if (divides(lines[at - 1] ?? "")) return null;
  const found = lines.map((_, index) => index + 1).filter((line) => divides(lines[line - 1]!));
  return found.length === 1 ? found[0]! : null;
}

/** The line of a value that the script returned and that cannot leave it: no frame is left of that. */
function guess(source: string | undefined, error: EngineError, message: string): number | null {
  if (source === undefined || (error.kind === "stop" && !message.startsWith("value"))) return null;
  const lines = source.split("\n").map((text, index): [string, number] => [text.replace(/--.*$/, "").trim(), index + 1]);
  const code = lines.filter(([text]) => text !== "");
  if (code.length === 1) return code[0]![1];
  const returns = code.filter(([text]) => /(?:^|[\s;])return\b(?!\s*(?:$|end\b|;|(?:nil|true|false|[\d.]+|"")\s*(?:$|;|end\b)))/.test(text));
  return returns.length === 1 ? returns[0]![1] : null;
}

function framesOf(frames: [string, number, string][], sources: Map<string, string>): Frame[] {
  return frames.map(([chunk, line, name]) => ({
    line: line > 0 ? line : null,
    function: name.slice(0, LONGEST_NAME).replace(/\b(?:global|local|method|field|upvalue)(?= ')/g, "function"),
    source: lineOf(sources.get(chunk), line)?.trim().slice(0, WIDEST) ?? null,
    chunk: chunk.slice(0, LONGEST_NAME),
  }));
}

/** The line where it happened, then the calls, innermost first. */
function traceback(location: Location, sources: Map<string, string>, current: string, column: number | null = null): string {
  const parts: string[] = [];
  const text = lineOf(sources.get(location.chunk), location.at);
  if (text !== null) {
    if (location.chunk !== current) parts.push(`in ${runName(location.chunk)}, an earlier one:`);
    const shown = text.trim() === "" ? "(end of the script)" : text.replaceAll("\t", " ");
    const indent = Math.min(column ?? shown.length - shown.trimStart().length, WIDEST);
    const number = `${location.at} | `;
    parts.push(number + (shown.length <= WIDEST ? shown : `${shown.slice(0, WIDEST)}…`));
    parts.push(`${" ".repeat(number.length - 2)}| ${" ".repeat(indent)}^`);
  }
  return [...parts, ...calls(framesOf(location.frames, sources), current)].join("\n");
}

function calls(frames: Frame[], current: string): string[] {
  if (frames.length === 0 || (frames.length === 1 && frames[0]!.function === MAIN)) return [];
  let steps: string[] = [];
  for (let at = 0; at < frames.length; ) {
    const text = frameText(frames[at]!, current);
    let times = 0;
    while (at < frames.length && frameText(frames[at]!, current) === text) {
      times += 1;
      at += 1;
    }
    steps.push(text + (times > 1 ? ` ${times} times` : ""));
  }
  const leftOut = steps.length - MOST_SHOWN;
  if (leftOut > 1) steps = [...steps.slice(0, MOST_SHOWN - 3), `… ${leftOut} more …`, ...steps.slice(-3)];
  return `in ${steps.join(steps.length <= 2 ? ", called from " : ",\ncalled from ")}`.split("\n");
}

function frameText(frame: Frame, current: string): string {
  let where = frame.line === null ? "an unknown line" : `line ${frame.line}`;
  if (frame.chunk !== current) where = `${where} of ${runName(frame.chunk)}${frame.source ? `: ${frame.source}` : ""}`;
  return frame.function === MAIN ? where : `${frame.function} (${where})`;
}

function runName(chunk: string): string {
  return `run ${chunk.split("#")[1] ?? 1}`;
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value.slice(0, LONGEST_NAME) : null;
}
