/** Where a run failed, from the message's prefix, the frames or the source; and the traceback that shows it. */

import type { Frame } from "../errors.js";
import type { Listing } from "../lua/listing.js";
import { expressionEnd } from "../lua/parser.js";
import { isObject } from "../values.js";
import type { EngineError } from "./report.js";
import { lastOf } from "./vocabulary.js";

const PREFIX = /^(script(?:#\d{1,9})?|moonbox\/\w{1,30}):(\d{1,9}): ?/;
const CALLED = /bad argument #\d+ to '(\w{1,40})'|(?:in table for|to) '(\w{1,40})'|([\w.]{1,120})(?:: | expects)/;
const GONE = "gone"; // in the place of a chunk: the frame that was here is not there any more
const LITERALS = new Set(["nil", "true", "false"]);
const ENDS = new Set(["end", "else", "elseif", "until", ";", "<eof>"]);
const ALIASES: Record<string, string[]> = { "json.decode": ["decode", "parse"], "json.encode": ["encode", "stringify"] };
const LONGEST_NAME = 80;
const WIDEST = 100;
const MOST_SHOWN = 10;
const MAIN = "main chunk";
const UNPRINTABLE = /(?! )[\p{C}\p{Z}]/gu;

/** Where it happened: `chunk` and `at` name the line itself, `line` the one in the script of this run. */
export interface Location {
  chunk: string;
  at: number | null;
  line: number | null;
  frames: [string, number, string][];
}

/** The message without the places that Lua puts in front, and those places. */
export function splitPrefix(given: string, current: string): [string, [string, number][]] {
  let message = given;
  const places: [string, number][] = [];
  for (let match = PREFIX.exec(message); match !== null && places.length < 8; match = PREFIX.exec(message)) {
    message = message.slice(match[0].length);
    places.push([match[1]!, Number(match[2])]);
  }
  const own = places.filter(([chunk]) => chunk.startsWith("script"));
  for (const [chunk, line] of own.slice(1).reverse()) { // an error that was caught and raised again as text
    message = chunk === current ? `line ${line}: ${message}` : `line ${line} of ${runName(chunk)}: ${message}`;
  }
  return [message, own.slice(0, 1)];
}

export function locate(
  error: EngineError, message: string, prefix: [string, number][], listings: Map<string, Listing>, current: string,
): Location {
  let frames = error.frames.filter(([chunk]) => chunk !== GONE);
  const returned = error.frames[0]?.[0] === GONE ? returnedCall(error, message, listings) : null;
  if (returned !== null) frames = [[...returned, "a function"], ...frames];
  let chunk: string;
  let at: number;
  if (returned === null && prefix[0] !== undefined) {
    [chunk, at] = prefix[0];
    const position = frames.findIndex((frame) => frame[0] === chunk && frame[1] === at);
    if (position >= 0) frames = frames.slice(position); // `error(text, 2)` names the caller
  } else if (frames[0] !== undefined) {
    [chunk, at] = frames[0];
  } else {
    const guessed = guess(listings.get(current), error, message);
    return { chunk: current, at: guessed, line: guessed, frames: [] };
  }
  const divided = dividedAt(message, at, listings.get(chunk));
  if (divided !== null) {
    frames = frames.map((frame, index) => (index === 0 && frame[0] === chunk ? [chunk, divided, frame[2]] : frame));
    at = divided;
  }
  const line = chunk === current ? at : (frames.find(([name]) => name === current)?.[1] ?? null);
  return { chunk, at: at > 0 ? at : null, line: line !== null && line > 0 ? line : null, frames };
}

/** The only `return f(…)` in a function that can be the call that failed: that function left no frame. */
function returnedCall(error: EngineError, message: string, listings: Map<string, Listing>): [string, number] | null {
  if (error.kind === "stop") return null;
  const names = namesOf(error, message);
  const places = [...listings].flatMap(([chunk, listing]) => [...new Set(lastCalls(listing, names))].map((line): [string, number] => [chunk, line]));
  return places.length === 1 ? places[0]! : null;
}

/** Lines in functions with `return` and a call of one of these names, or of a field by a computed one. */
function lastCalls(listing: Listing, names: string[]): number[] {
  const { tokens, parsed } = listing;
  const outermost = new Set(parsed?.returns); // those keep their frame
  return tokens.slice(0, -1).flatMap((token, index) => {
    if (token.text !== "return" || token.kind !== "keyword" || outermost.has(index)) return [];
    const stop = expressionEnd(tokens, index + 1);
    return stop !== null && tokens[stop]!.text !== "," && isCall(listing, index + 1, stop, names) ? [token.line] : [];
  });
}

function isCall(listing: Listing, start: number, stop: number, names: string[]): boolean {
  const { tokens } = listing;
  for (let at = start; at < stop; at += 1) {
    const { text, kind } = tokens[at]!;
    if (text === "(" || text === "{" || kind === "string") {
      const end = kind === "string" ? at : listing.closing(at);
      if (end === stop - 1) return at > start && (names.includes(tokens[at - 1]!.text) || tokens[at - 1]!.text === "]");
    }
    if (text === "(" || text === "[" || text === "{") at = listing.closing(at) ?? stop;
    else if (kind !== "name" && kind !== "string" && text !== "." && text !== ":") return false;
  }
  return false;
}

/** What the function or tool that the error is about is called. */
function namesOf(error: EngineError, message: string): string[] {
  if (error.kind === "tool") {
    const tool = isObject(error.data) ? error.data["tool"] : undefined;
    return typeof tool === "string" ? [lastOf(tool)] : [];
  }
  const match = CALLED.exec(message);
  const full = match?.[1] ?? match?.[2] ?? match?.[3];
  return full === undefined ? [] : (ALIASES[full] ?? [lastOf(full)]);
}

/** Lua's wasm build does not keep the line of an integer division; the only one in the script is it. */
function dividedAt(message: string, at: number, listing: Listing | undefined): number | null {
  if (listing === undefined || !/^attempt to (?:divide by zero|perform 'n(?:\/\/|%%?)0')$/.test(message)) return null;
  const sign = message.includes("%") ? "%" : "//";
  const lines = new Set(listing.tokens.filter((token) => token.kind === "op" && token.text === sign).map((token) => token.line));
  return lines.has(at) || lines.size !== 1 ? null : [...lines][0]!;
}

/** The line of a value that the script returned and that cannot leave it: no frame is left of that. */
function guess(listing: Listing | undefined, error: EngineError, message: string): number | null {
  if (listing === undefined || !listing.whole || (error.kind === "stop" && !message.startsWith("value"))) return null;
  const { tokens, parsed } = listing;
  const lines = new Set(tokens.slice(0, -1).map((token) => token.line));
  if (lines.size === 1) return [...lines][0]!;
  const returns = (parsed?.returns ?? []).filter((index) => {
    const [first, after] = [tokens[index + 1]!, tokens[index + 2] ?? tokens.at(-1)!];
    const literal = first.kind === "number" || first.kind === "string" || LITERALS.has(first.text);
    return !ENDS.has(first.text) && !(literal && ENDS.has(after.text));
  });
  const places = new Set(returns.map((index) => tokens[index]!.line));
  return places.size === 1 ? [...places][0]! : null;
}

/** The engine's frames with their source lines. */
export function framesOf(frames: [string, number, string][], listings: Map<string, Listing>): Frame[] {
  return frames.map(([chunk, line, name]) => ({
    line: line > 0 ? line : null,
    function: name.slice(0, LONGEST_NAME).replace(/^(?:global|local|method|field|upvalue)(?= ')/, "function"),
    source: shownSource(listings.get(chunk)?.line(line) ?? null),
    chunk: chunk.slice(0, LONGEST_NAME),
  }));
}

function shownSource(text: string | null): string | null {
  return text === null ? null : [...visible(text.trim())].slice(0, WIDEST).join("");
}

/** The line where it happened, then the calls, innermost first; `current` is the script of this run. */
export function traceback(
  location: Location, frames: Frame[], listings: Map<string, Listing>, current: string, column: number | null,
): string {
  const parts: string[] = [];
  const listing = listings.get(location.chunk);
  if (location.at !== null && listing !== undefined) {
    if (location.chunk !== current) parts.push(`in ${runName(location.chunk)}, an earlier one:`);
    const text = listing.line(location.at);
    const blank = text?.trim() === "";
    const shown = blank ? (location.at >= listing.lineCount ? "(end of the script)" : "") : text;
    if (shown !== null) parts.push(pointedLine(shown, location.at, blank ? 1 : column));
  }
  return [...parts, ...calls(frames, current)].filter((part) => part !== "").join("\n");
}

/** That line with its number, and a caret below the column or the first word; of a long line a part around it. */
export function pointedLine(text: string, line: number, column: number | null): string {
  let shown = [...visible(text.replaceAll("\t", " "))];
  let at = column === null ? shown.findIndex((char) => char !== " ") : [...text.slice(0, column - 1)].length;
  at = at < 0 ? 0 : Math.min(at, shown.length);
  if (shown.length > WIDEST) {
    const start = Math.max(0, Math.min(at - WIDEST / 2, shown.length - WIDEST));
    const [before, after] = [start > 0 ? ["…"] : [], start + WIDEST < shown.length ? ["…"] : []];
    shown = [...before, ...shown.slice(start, start + WIDEST), ...after];
    at += before.length - start;
  }
  return `${line} | ${shown.join("")}\n${" ".repeat(String(line).length)} | ${" ".repeat(at)}^`;
}

/** The text without characters that would change how a terminal shows what follows. */
function visible(text: string): string {
  return text.replace(UNPRINTABLE, "·");
}

/** `in function 'total' (line 3), called from line 9`; a line for each call where there are more. */
function calls(frames: Frame[], current: string): string[] {
  if (frames.length === 0 || (frames.length === 1 && frames[0]!.function === MAIN)) return [];
  const steps: [string, number][] = [];
  for (const frame of frames) {
    const text = frameText(frame, current);
    if (steps.at(-1)?.[0] === text) steps.at(-1)![1] += 1;
    else steps.push([text, 1]);
  }
  let shown = steps.map(([text, times]) => text + (times > 1 ? ` ${times} times` : ""));
  const leftOut = shown.length - MOST_SHOWN;
  if (leftOut > 1) shown = [...shown.slice(0, MOST_SHOWN - 3), `… ${leftOut} more …`, ...shown.slice(-3)];
  return `in ${shown.join(shown.length <= 2 ? ", called from " : ",\ncalled from ")}`.split("\n");
}

function frameText(frame: Frame, current: string): string {
  let where = frame.line === null ? "an unknown line" : `line ${frame.line}`;
  if (frame.chunk !== current) where = `${where} of ${runName(frame.chunk)}${frame.source ? `: ${frame.source}` : ""}`;
  return frame.function === MAIN ? where : `${visible(frame.function)} (${where})`;
}

function runName(chunk: string): string {
  return `run ${chunk.split("#")[1] ?? 1}`;
}
