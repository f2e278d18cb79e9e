/** Syntax errors: where the script stops being Lua, and the Lua form of what was probably meant. */

import type { Token } from "../lua/lexer.js";
import type { Listing } from "../lua/listing.js";
import type { Failure } from "../lua/parser.js";
import { findSlip } from "./slips.js";
import { findStructure } from "./structure.js";
import { messageHint } from "./vocabulary.js";

const LONGEST_NEAR = 60;
const AT_LINE = /^(?:break outside|no visible label|<goto).{0,120} at line (\d{1,9})/;
/** What no line of Lua has, so that all of them can be named at once. */
const OPERATORS = new Set(["!=", "!==", "===", "&&", "||", "+=", "-=", "*=", "/=", "..=", "++"]);
const EXPRESSION_STARTS = new Set(["{", "#", "-", "~", "not", "nil", "true", "false", "function", "("]);
const NOT_CODE = new Set(["`", "#", "//"]);

/** What is known about an error's place and cause. */
export interface Finding {
  message: string;
  line: number | null;
  column: number | null;
  hint: string | null;
}

/** A syntax error that Lua reported for that line (its "near" part still in the message). */
export function explainSyntax(listing: Listing, message: string, reported: number | null): Finding {
  const at = message.lastIndexOf(" near ");
  if (at <= 0) {
    const named = AT_LINE.exec(message);
    return { message, line: named === null ? reported : Number(named[1]), column: null, hint: messageHint(message) };
  }
  let [what, near, line] = [message.slice(0, at), message.slice(at + " near ".length), reported];
  const failure = located(listing, line, near);
  if (failure === null) return { message: shortened(what, near), line, column: columnOf(listing, line, near), hint: messageHint(message) };
  const token = listing.tokens[failure.index]!;
  if (token.lastLine !== line || failure !== listing.parsed?.failure) {
    [what, near, line] = [failure.text, nearOf(token), token.lastLine];
  } else if (token.kind === "foreign") near = nearOf(token); // Lua names the first byte only
  const advice = findSlip(listing, failure, near) ?? findStructure(listing, failure);
  // The line of a token that spans several is where it ends; its column, where it begins.
  let column = token.line === line ? token.column : null;
  let hint = typeof advice === "string" ? advice : (advice?.text ?? null);
  if (advice !== null && typeof advice !== "string") [line, column] = [advice.line, advice.column];
  const others = hint === null ? "" : elsewhere(listing, failure);
  if (others !== "" && isTrusted(listing, failure)) hint = `${hint} (also ${others})`;
  return { message: shortened(what, near), line, column, hint };
}

/** Where else operators stand that Lua does not have, so that all can be mended at once. */
function elsewhere(listing: Listing, failure: Failure): string {
  const { tokens } = listing;
  const linesOf = new Map<string, number[]>();
  for (let index = failure.index + 1; index + 1 < tokens.length; index += 1) {
    const [first, second] = [tokens[index]!, tokens[index + 1]!];
    const name = first.end === second.start ? first.text + second.text : "";
    if (!OPERATORS.has(name) || first.line <= tokens[failure.index]!.line) continue;
    const lines = linesOf.get(name) ?? [];
    linesOf.set(name, lines);
    if (!lines.includes(first.line) && lines.length < 5) lines.push(first.line);
  }
  return [...linesOf].map(([name, lines]) => `${name} on line${lines.length > 1 ? "s" : ""} ${lines.join(" and ")}`).join(", ");
}

/** Where our grammar fails, if that is where Lua did. A script that is an expression is read as one. */
function located(listing: Listing, line: number | null, near: string): Failure | null {
  const plain = listing.parsed?.failure ?? null;
  if (plain === null || !agrees(listing, plain, line, near)) return null;
  const first = listing.tokens[0]!;
  if (plain.index <= 1 && (first.kind === "string" || first.kind === "number" || EXPRESSION_STARTS.has(first.text))) {
    const value = listing.parsedAsValue?.failure ?? null;
    if (value !== null && value.index > plain.index && value.text !== "<eof> expected") return value;
  }
  return plain;
}

function agrees(listing: Listing, failure: Failure, line: number | null, near: string): boolean {
  const token = listing.tokens[failure.index]!;
  if (token.kind === "bad" || token.kind === "string") return [token.line, token.lastLine, listing.tokens.at(-1)!.line].includes(line ?? 0);
  if (isForeignLetter(token)) return line === token.line;
  return token.lastLine === line && (near === `'${token.text}'` || near === token.text);
}

function isForeignLetter(token: Token): boolean {
  return token.kind === "foreign" && /[^\x00-\x7f]/.test(token.text);
}

function nearOf(token: Token): string {
  return token.kind === "eof" ? token.text : `'${token.text}'`;
}

function shortened(what: string, near: string): string {
  return `${what} near ${near.length <= LONGEST_NEAR ? near : `${near.slice(0, LONGEST_NEAR - 2)}…'`}`;
}

/** The column of the only word on the line that the message can mean. */
function columnOf(listing: Listing, line: number | null, near: string): number | null {
  const found = listing.words(line).filter((token) => `'${token.text}'` === near);
  return found.length === 1 ? found[0]!.column : null;
}

/** Whether what follows was read as code: behind a foreign comment or string, words are not what they seem. */
function isTrusted(listing: Listing, failure: Failure): boolean {
  const rest = listing.tokens.slice(failure.index);
  return !isForeignLetter(rest[0]!) && rest.every((word) => word.kind !== "bad" && !NOT_CODE.has(word.text));
}
