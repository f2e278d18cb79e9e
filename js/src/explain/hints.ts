/** Hints for Lua's errors that need no syntax tree: Lua's message, one line of the script, and the tables of the Python package. */

import { didYouMean, nearest } from "../suggest.js";
import { luaHints } from "../languages.js";

const FEW = 12;
const NIL = /^attempt to (call|index) a nil value \((global|field) '(\w{1,80})'\)$/;
const LOOP = /\bfor\s+([\w\s,]{1,120}?)\s+in\s+(.{1,200}?)\s+do\b/;
const NUMBER = /^value\S{0,200} is (?:NaN|-?infinity)\b/;

/** What was wrong, where it happened, and what there is instead. */
export interface Failure {
  message: string;
  /** The line of the script without its comments. */
  line: string;
  /** The paths of the tools. */
  tools: readonly string[];
}

export function luaHint(failure: Failure): string | null {
  const { message } = failure;
  if (message === "json.decode expects a string, got table") return "the value is a table already: use it without json.decode";
  if (message === "attempt to call a table value (for iterator)") return loopHint(failure.line);
  if (NUMBER.test(message)) return "it usually comes from a division by 0: check the divisor first";
  const fraction = /^bad argument #\d+ to '(\w{1,40})' \(number has no integer representation\)/.exec(message);
  if (fraction !== null) {
    return fraction[1] === "format"
      ? "%d takes integers only: use %.2f for others, or math.floor(x)"
      : "an integer is needed: use math.floor(x) or x // 1";
  }
  const missing = NIL.exec(message);
  if (missing !== null) return missing[2] === "global" ? (luaHints.absent[missing[3]!] ?? null) : toolHint(missing[3]!, failure);
  for (const [pattern, hint] of luaHints.messages) {
    const found = new RegExp(`^(?:${pattern})`).exec(message);
    if (found !== null) return hint.replace(/\\(\d)/g, (_, group: string) => found[Number(group)] ?? "");
  }
  return null;
}

/** Where the word that the message names begins in the line; null unless it is there once. */
export function columnOf(message: string, line: string): number | null {
  if (message.endsWith("(for iterator)")) {
    const loop = /\bfor\s+[\w\s,]{1,120}?\s+(?=in\b)/.exec(line);
    return loop === null ? null : loop.index + loop[0].length;
  }
  const divided = /^attempt to (?:divide by zero|perform 'n\/\/0')$/.test(message);
  const named = /\((?:global|field|local|upvalue|method) '(\w{1,80})'\)$|^bad argument #\d+ to '(\w{1,40})'/.exec(message);
  const word = divided ? "//" : named === null ? null : `\\b${named[1] ?? named[2]}\\b`;
  const places = word === null ? [] : [...line.matchAll(new RegExp(word, "g"))];
  return places.length === 1 ? places[0]!.index : null;
}

function toolHint(name: string, { line, tools }: Failure): string | null {
  const written = new RegExp(`\\btools\\.((?:\\w+\\.)*${name}(?:\\.\\w+(?=\\s*[({"']))*)\\b`).exec(line)?.[1];
  if (written === undefined) return null;
  if (tools.length === 0) return "there are no tools here";
  const close = nearestTools(written, tools).map((path) => `tools.${path}`);
  if (close.length > 0) return didYouMean(close);
  if (tools.length <= FEW) return `the tools are: ${[...tools].sort().map((path) => `tools.${path}`).join(", ")}`;
  return 'no tool has that name; docs.search("words") finds tools';
}

/** Tools that were probably meant: of that name elsewhere, spelled alike, or with the same words. */
function nearestTools(path: string, tools: readonly string[]): string[] {
  const lastOf = (known: string): string => known.slice(known.lastIndexOf(".") + 1);
  const same = tools.filter((known) => known !== path && lastOf(known) === lastOf(path)).sort();
  if (same.length > 0) return same.slice(0, 3);
  const ends = new Map([...tools].sort().reverse().map((known) => [lastOf(known), known]));
  const first = (found: string[], other: () => string[]): string[] => (found.length > 0 ? found : other());
  return first(nearest(path, tools, false, 3), () =>
    first(nearest(lastOf(path), ends.keys(), false, 3).map((end) => ends.get(end)!), () => nearest(path, tools, true, 3)),
  );
}

function loopHint(line: string): string {
  const [, names, value] = LOOP.exec(line) ?? [];
  const known = names !== undefined && value !== undefined && !value.startsWith("{");
  return `${luaHints.loop}; write: ${known ? `for ${names} in ${/^_,/.test(names) ? "ipairs" : "pairs"}(${value}) do` : "for _, item in ipairs(list) do"}`;
}
