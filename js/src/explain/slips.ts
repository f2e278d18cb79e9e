/** Slips of models that think in other languages: the patterns of the Python package, asked about a line that is not Lua. */

import { tokenize, type Token } from "../lua/lexer.js";
import type { Listing } from "../lua/listing.js";
import { parse, type Failure } from "../lua/parser.js";
import { entry, words } from "./vocabulary.js";

export const LONGEST_LINE = 120;
const MARK = "¦";
const STRING = /"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/g;
const COMMENT = /--.*/;
const FRAMES = ["{}", "{} end", "if x then {} end", "if x then {}", "return {}", "for i = 1, 2 do {} end", "f({})"];
const OPENING = new RegExp(String.raw`^\s*\}?\s*(\w+)\b(?!\s*[=.,\[])(\s*;?\s*${MARK})?`);
const BEFORE_BLOCKS = new Set(["try", "catch", "switch", "except", "finally", "import", "class", "with"]);

/** A hint, and the line and column that it is about. */
export interface Advice {
  text: string;
  line: number;
  column: number | null;
}

/** A line with its strings out of the way, so that patterns see code alone. */
class Line {
  readonly masked: string;
  private readonly strings: string[] = [];

  constructor(text: string) {
    const keep = (string: string): string => `"${this.strings.push(string) - 1}"`;
    this.masked = text.replace(STRING, keep).replace(COMMENT, "").trimEnd();
  }

  /** The text of a pattern with the line's own strings in it. */
  restored(text: string): string {
    return text.replace(/"(\d+)"/g, (mask, number: string) => this.strings[Number(number)] ?? mask);
  }
}

/** An explanation and, where there is one, the line to write. */
export function withLine(explanation: string, line: string | null): string {
  return line ? `${explanation}; write: ${line}` : explanation;
}

/** That line with everything put right that can be; null unless something was and the result is Lua. */
export function corrected(text: string | null): string | null {
  if (text === null || text.length > LONGEST_LINE) return null;
  const line = new Line(text);
  const before = line.masked.trim();
  let code = before;
  for (const [pattern, template] of words.rewrites) {
    code = code.replace(compiled(pattern, "g"), (...found: unknown[]) => fill(template, found as string[], groupsOf(found)));
  }
  const result = line.restored(code.trim());
  return code !== before && isLua(result) ? result : null;
}

/** Whether the text can stand as one line of a Lua script. */
export function isLua(text: string): boolean {
  return FRAMES.some((frame) => parse(tokenize(frame.replace("{}", () => text)))?.failure === null);
}

/** What the line shows at which the script stops being Lua, or else the line of the statement. */
export function findSlip(listing: Listing, failure: Failure, near: string): Advice | null {
  const [token, start] = [listing.tokens[failure.index]!, listing.tokens[failure.statement]!];
  const ends = token.kind === "eof";
  const found = ends ? null : asked(listing, failure, near, token.line, token);
  if (found !== null) return found;
  const before = listing.tokens.at(failure.index - 1)!;
  for (const line of new Set([start.line, before.lastLine])) {
    const other = line < token.line || ends ? asked(listing, failure, near, line, null) : null;
    if (other !== null) return other;
  }
  return null;
}

/** What is said of a line in which Lua stopped at that word, or behind it. */
function asked(listing: Listing, failure: Failure, near: string, number: number, token: Token | null): Advice | null {
  const text = listing.line(number);
  if (text === null || text.length > 4 * LONGEST_LINE) return null;
  const at = token !== null ? token.column - 1 : text.replace(COMMENT, "").trimEnd().length;
  const marked = `${text.slice(0, at)}${MARK}${text.slice(at)}`;
  const raw = token !== null ? marked : `${text.trimEnd()}${MARK}`;
  const line = new Line(marked);
  const column = token?.column ?? text.length - text.trimStart().length + 1;
  const word = statementOf(line.masked);
  if (word !== null) return { text: word, line: number, column };
  for (const slip of words.slips) {
    if (slip.failure && !compiled(slip.failure).test(failure.text)) continue;
    if (slip.within && !isWithin(listing, failure, slip.within)) continue;
    const [subject, pattern] = slip.line ? [line.masked, slip.line] : slip.text ? [raw, slip.text] : [near, slip.near];
    const match = compiled(pattern).exec(subject);
    if (match === null) continue;
    const hint = line.restored(fill(slip.hint, match, match.length - 1).replaceAll(MARK, ""));
    const written = slip.corrected ? corrected(text) : null;
    return { text: written ? withLine(hint, written) : slip.example ? `${hint}; ${slip.example}` : hint, line: number, column };
  }
  return null;
}

/** A statement that opens with a word of another language. */
function statementOf(code: string): string | null {
  const opening = OPENING.exec(code);
  const text = opening === null ? undefined : entry(words.statements, opening[1]!);
  return text && (opening![2] || BEFORE_BLOCKS.has(opening![1]!)) ? text : null;
}

function isWithin(listing: Listing, failure: Failure, what: string): boolean {
  if (what === "loop") return failure.blocks.some(([keyword]) => ["for", "while", "repeat"].includes(keyword));
  return failure.brackets.length > 0 && listing.tokens[failure.brackets.at(-1)!]!.text === what;
}

function fill(template: string, found: ArrayLike<string | undefined>, groups: number): string {
  return template.replace(/\{(\d)\}/g, (hole, group: string) => (Number(group) <= groups ? (found[Number(group)] ?? "") : hole));
}

/** How many groups a pattern has, from what `replace` hands over: the match, the groups, the place and the text. */
function groupsOf(found: unknown[]): number {
  return found.findIndex((each) => typeof each === "number") - 1;
}

const patterns = new Map<string, RegExp>();

function compiled(pattern: string, flags = ""): RegExp {
  const key = `${flags}/${pattern}`;
  const known = patterns.get(key) ?? new RegExp(pattern, flags);
  patterns.set(key, known);
  return known;
}
