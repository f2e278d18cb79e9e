/** Lua's errors: what was wrong, on which line, and what to write instead. */

import { isDenial, ScriptError, type ErrorKind, type ScriptErrorFields } from "../errors.js";
import type { Limits } from "../limits.js";
import type { Token } from "../lua/lexer.js";
import { Listing } from "../lua/listing.js";
import { isObject } from "../values.js";
import { limitHint, limitMessage } from "./limits.js";
import { framesOf, locate, splitPrefix, traceback, type Location } from "./location.js";
import { limitOf, LONGEST_MESSAGE, type EngineError } from "./report.js";
import { columnOf, runtimeHint } from "./runtime.js";
import { explainSyntax } from "./syntax.js";
import { RuntimeFailure } from "./values.js";
import { fact, lastOf, toolName } from "./vocabulary.js";

const LONGEST_NAME = 200;

export function explainLua(error: EngineError, sources: Map<string, string>, limits: Limits, tools: readonly string[]): ScriptError {
  try {
    return compose(error, sources, limits, tools);
  } catch {
    // A flaw in a hint must never cost the error that it is about.
    const limit = limitOf(error.limit);
    const kind = error.kind === "stop" ? (limit === null ? "cancelled" : "limit") : error.kind;
    return new ScriptError(kind as ErrorKind, error.message.slice(0, LONGEST_MESSAGE), { limit });
  }
}

/** The error with everything that can be said about it. */
function compose(error: EngineError, sources: Map<string, string>, limits: Limits, tools: readonly string[]): ScriptError {
  const current = [...sources.keys()].at(-1) ?? "script";
  const listings = new Map([...sources].map(([name, source]) => [name, new Listing(source)]));
  const raw = error.message.slice(0, LONGEST_MESSAGE + 200).split("\nstack traceback:\n\t[C]")[0]!;
  const [said, prefix] = splitPrefix(raw, current);
  let message = said.length <= LONGEST_MESSAGE ? said : `${said.slice(0, LONGEST_MESSAGE)}…`;
  if (error.kind === "syntax") {
    const listing = listings.get(current) ?? new Listing("");
    const { line, column, hint, ...found } = explainSyntax(listing, message, prefix[0]?.[1] ?? null);
    const place = { chunk: current, at: line, line, frames: [] };
    return new ScriptError("syntax", found.message, {
      line, column: inCharacters(listing, line, column), hint, traceback: traceback(place, [], listings, current, column),
    });
  }
  if (error.kind !== "tool" && error.data === null) message = tidied(message);
  const location = locate(error, message, prefix, listings, current);
  const report: Report = { error, message, location, listings, current, listing: listings.get(location.chunk) ?? new Listing("") };
  if (error.kind === "stop") return stopped(report, limits);
  return error.kind === "tool" ? failedTool(report) : failedAtRuntime(report, tools);
}

/** An engine's error, and where it happened; `listing` is the script in whose line it did. */
interface Report {
  error: EngineError;
  message: string;
  location: Location;
  listings: Map<string, Listing>;
  current: string;
  listing: Listing;
}

function explained(report: Report, kind: ErrorKind, message: string, column: number | null, more: ScriptErrorFields): ScriptError {
  const { location, listings, current, listing } = report;
  const frames = framesOf(location.frames, listings);
  return new ScriptError(kind, message, {
    line: location.line,
    column: location.chunk === current ? inCharacters(listing, location.at, column) : null,
    traceback: traceback(location, frames, listings, current, column),
    frames,
    ...more,
  });
}

/** A column counted in characters, as people and Python do, where JavaScript counts halves of some. */
function inCharacters(listing: Listing, line: number | null, column: number | null): number | null {
  return column === null ? null : [...(listing.line(line) ?? "").slice(0, column - 1)].length + 1;
}

function failedAtRuntime(report: Report, tools: readonly string[]): ScriptError {
  const { error, location, listings, message } = report;
  const code = isObject(error.data) ? textOf(error.data["code"]) : null;
  // Of a table that the script raised, the script knows best what it means.
  if (error.data !== null) return explained(report, "runtime", message, null, { data: error.data, code });
  const given = error.extra["names"];
  const names = Array.isArray(given) ? given.map(String) : [];
  const earlier = [...listings].filter(([name]) => name !== location.chunk && name !== report.current).map(([, listing]) => listing);
  const functions = framesOf(location.frames, new Map()).map((frame) => frame.function);
  const failure = new RuntimeFailure(report.listing, location.at, message, tools, names, earlier.reverse(), functions);
  return explained(report, "runtime", message, columnOf(failure), { hint: runtimeHint(failure), code });
}

function failedTool(report: Report): ScriptError {
  const fields = isObject(report.error.data) ? report.error.data : {};
  const [code, tool] = [textOf(fields["code"]), textOf(fields["tool"])];
  const retryable = fields["retryable"] === true;
  const denied = isDenial(code);
  const name = tool ? toolName(tool) : "tools.name";
  const words = report.listing.words(report.location.at);
  let hint: string | null = null;
  if (denied) hint = "do not repeat this call: continue without it, or ask for permission";
  else if (isCalledAtOnce(words)) hint = fact("called_too_early", { function: "pcall", tool: name, arguments: "{…}" });
  else if (retryable) hint = `a retry may succeed; to continue without it write: local ok, result = pcall(${name}, {…})`;
  const named = words.filter((word) => word.kind === "name" && word.text === lastOf(tool ?? ""));
  const column = named.length === 1 ? named[0]!.column : null;
  return explained(report, denied ? "denied" : "tool", report.message, column, { hint, code, tool, retryable, data: fields["data"] ?? null });
}

/** `pcall(tools.x{…})`, which calls the tool before pcall begins. */
function isCalledAtOnce(words: readonly Token[]): boolean {
  return words.some((word, index) => {
    if (word.text !== "pcall" || words[index + 1]?.text !== "(" || words[index + 2]?.text !== "tools") return false;
    let end = index + 3;
    while (end + 1 < words.length && words[end]!.text === ".") end += 2;
    return words[end]?.text === "{" || words[end]?.text === "(";
  });
}

function stopped(report: Report, limits: Limits): ScriptError {
  const limit = limitOf(report.error.limit);
  const message = limitMessage(report.error.limit, report.message, limits);
  if (limit === null) return explained(report, "cancelled", message, null, {});
  const listing = report.listings.get(report.current) ?? new Listing("");
  const { line } = report.location;
  let hint = limitHint(limit, limits, message);
  if (limit === "time") hint = `${line === null ? "" : `it was at line ${line}; `}${slowLine(listing, line) || hint}`;
  if (limit === "memory") hint = `${hint}; build long strings with table.concat, not with .. in a loop${recursion(listing)}`;
  return explained(report, "limit", message, null, { limit, hint });
}

/** A function that calls itself, which uses up memory when it does not end. */
function recursion({ parsed, tokens }: Listing): string {
  const bodies = new Map(parsed?.pairs);
  for (const name of parsed?.functions ?? []) {
    let opener = name;
    while (opener > Math.max(-1, name - 8) && tokens[opener]!.text !== "function") opener -= 1;
    const body = tokens.slice(0, bodies.get(opener) ?? name);
    if (body.some((token, index) => index > name && token.text === tokens[name]!.text && tokens[index + 1]!.text === "(")) {
      return `; make sure that ${tokens[name]!.text}, which calls itself, ends`;
    }
  }
  return "";
}

/** What the line shows that took the time: tool calls, an endless loop, or neither. */
function slowLine(listing: Listing, line: number | null): string {
  if (line === null) return "";
  if (listing.words(line).some((word) => word.text === "tools" && word.kind === "name")) {
    return "tool calls count too: make fewer of them, or run them at the same time with parallel";
  }
  const { parsed, tokens } = listing;
  for (const [opener, closing] of parsed?.pairs ?? []) {
    const endless = tokens[opener]!.text === "while" && tokens[opener + 1]!.text === "true";
    const inside = tokens[opener]!.line <= line && line <= tokens[closing]!.line;
    const leaves = tokens.slice(opener, closing).some((token) => token.text === "break" || token.text === "return");
    if (endless && inside && !leaves) return `the loop of line ${tokens[opener]!.line} never ends: add a break or a condition`;
  }
  return "";
}

/** Lua's message without the names of our own functions behind its library, and with null called null. */
function tidied(message: string): string {
  const text = message
    .replace(/\bto 'raw_(\w{1,20})'/g, "to '$1'")
    .replaceAll(" (for iterator 'for iterator')", " (for iterator)")
    .replaceAll("(field 'integer index')", "(field '?')");
  return /^(?:attempt to |invalid value \()/.test(text) ? text.replaceAll("userdata", "null") : text;
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value.slice(0, LONGEST_NAME) : null;
}
