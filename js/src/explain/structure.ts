/** Blocks, brackets and statements that do not end where they should. */

import type { Token } from "../lua/lexer.js";
import type { Listing } from "../lua/listing.js";
import { expressionEnd, parse, type Failure } from "../lua/parser.js";
import { nearest } from "../suggest.js";
import { corrected, isLua, withLine, type Advice } from "./slips.js";

const CLOSERS: Record<string, string> = { "(": ")", "[": "]", "{": "}" };
const HEADERS = new Set(["if", "elseif", "while", "for"]);
const LONG_KEYWORDS = ["else", "elseif", "function", "local", "repeat", "return", "then", "until", "while"];

/** What is missing or too many at the place where the script stops being Lua. */
export function findStructure(listing: Listing, failure: Failure): Advice | string | null {
  const rules = [unfinished, missingOpener, elseIf, missingEnd, unclosed, misplaced, missingReturn, misspelled];
  for (const rule of rules) {
    const found = rule(listing, failure);
    if (found !== null) return found;
  }
  return null;
}

function unfinished(listing: Listing, { text, index }: Failure): string | null {
  if (!text.startsWith("unfinished long")) return null;
  return `the ${text.slice("unfinished ".length)} that begins on line ${listing.tokens[index]!.line} is never closed: add ]]`;
}

/** A condition without `then`, a loop without `do`. */
function missingOpener(listing: Listing, failure: Failure): Advice | null {
  const word = { "'then' expected": "then", "'do' expected": "do" }[failure.text];
  const [header, before] = [listing.tokens[failure.statement]!, listing.tokens.at(failure.index - 1)!];
  const text = listing.line(header.line) ?? "";
  if (word === undefined || !HEADERS.has(header.text) || header.line !== before.lastLine || `${text} `.includes(` ${word} `)) return null;
  const cut = before.column - 1 + before.text.length;
  const line = `${text.slice(0, cut)} ${word} ${text.slice(cut).trim()}`.trim();
  return isLua(line) ? { text: `${word} is missing; write: ${line}`, line: header.line, column: before.column } : null;
}

/** `else if`, which opens a second `if` that needs an `end` of its own. */
function elseIf(listing: Listing, failure: Failure): Advice | null {
  if (!failure.text.startsWith("'end' expected") || listing.tokens[failure.index]!.kind !== "eof") return null;
  const words: Token[] = [];
  let joined: Token | null = null;
  for (const token of listing.tokens) {
    const last = words.at(-1);
    if (token.text === "if" && last?.text === "else" && last.line === token.line) {
      words[words.length - 1] = { ...last, text: "elseif" };
      joined ??= token;
    } else words.push(token);
  }
  const parsed = joined === null ? null : parse(words);
  if (joined === null || parsed === null || parsed.failure !== null) return null;
  const explanation = "else if opens another if that needs an end of its own; use elseif";
  return { text: withLine(explanation, corrected(listing.line(joined.line))), line: joined.line, column: joined.column };
}

/** An `end` too few: indentation tells which block lacks it. */
function missingEnd(listing: Listing, failure: Failure): string | null {
  const { tokens, parsed } = listing;
  const expected = /^'(?:end|until)' expected/.test(failure.text);
  if (!expected || tokens[failure.index]!.kind !== "eof" || parsed === null) return null;
  for (const [opener, closing] of parsed.pairs) {
    const [first, last] = [tokens[opener]!, tokens[closing]!];
    const beginsLine = listing.span(last.line)[0] === closing;
    if (first.line !== last.line && beginsLine && last.column < tokens[listing.span(first.line)[0]]!.column) {
      return `the ${first.text} of line ${first.line} seems to have no end: the end of line ${last.line} closes it`;
    }
  }
  const block = failure.blocks.at(-1);
  if (block === undefined) return null;
  const [keyword, index] = block;
  return `the ${keyword} of line ${tokens[index]!.line} is never closed: add ${keyword === "repeat" ? "until" : "end"}`;
}

/** A bracket that is open at the end of the script or before this line, and a comma too few. */
function unclosed(listing: Listing, failure: Failure): string | null {
  const [token, before] = [listing.tokens[failure.index]!, listing.tokens.at(failure.index - 1)!];
  if (failure.brackets.length === 0 || !failure.text.includes("expected")) return null;
  const opener = listing.tokens[failure.brackets.at(-1)!]!;
  const close = CLOSERS[opener.text]!;
  if (token.kind === "eof") return `the ${opener.text} of line ${opener.line} is never closed: add ${close}`;
  if (before.lastLine === token.line || !failure.text.startsWith(`'${close}' expected`)) return null;
  if (token.kind === "keyword" || token.column <= listing.tokens[listing.span(opener.line)[0]]!.column) {
    return `the ${opener.text} of line ${opener.line} is not closed before this line: add ${close}`;
  }
  return opener.text === "{" ? `table fields are separated by commas: one is missing at the end of line ${before.lastLine}` : null;
}

/** An `end` too many, one too few before this line, and statements behind a `return`. */
function misplaced(listing: Listing, failure: Failure): string | null {
  const [token, before] = [listing.tokens[failure.index]!, listing.tokens.at(failure.index - 1)!];
  if (failure.text === "<eof> expected" && token.text === "end") {
    return "this end closes nothing: remove it, or look for a block that was closed too early";
  }
  const behind = failure.afterReturn && before.lastLine !== token.line && token.text !== "end";
  if (!behind || (token.kind !== "name" && token.kind !== "keyword")) return null;
  const [keyword, index] = failure.blocks.at(-1) ?? ["repeat", 0];
  const { line } = listing.tokens[index]!;
  if (keyword !== "repeat" && token.column <= listing.tokens[listing.span(line)[0]]!.column) {
    return `the ${keyword} of line ${line} is not closed before this line: add end`;
  }
  return "return must be the last statement of its block: nothing may follow it";
}

/** An expression as the last line, and one that stands where a statement must be. */
function missingReturn(listing: Listing, failure: Failure): Advice | string | null {
  const { tokens } = listing;
  const first = failure.statement;
  if (!["syntax error", "unexpected symbol"].includes(failure.text) || failure.blocks.length > 0 || failure.afterReturn) return null;
  if (failure.text === "unexpected symbol" && failure.index !== first) return null;
  const stop = expressionEnd(tokens, first, true);
  const alone = first === 0 || tokens[first - 1]!.lastLine < tokens[first]!.line || tokens[first - 1]!.text === ";";
  if (stop === null || !alone) return null;
  const [text, end] = [listing.text(first, stop), tokens[stop]!];
  if (text === "…") return "an expression is not a statement: return its value, or assign it";
  if (end.kind === "eof" || (end.text === ";" && tokens[stop + 1]!.kind === "eof")) {
    return { text: `the last line is an expression; write: return ${text}`, line: tokens[first]!.line, column: tokens[first]!.column };
  }
  if (end.line <= tokens[stop - 1]!.lastLine) return null;
  if (tokens[failure.index]!.text === "==") {
    return `== compares, = assigns; to assign write: ${listing.text(first, failure.index)} = ${listing.text(failure.index + 1, stop)}`;
  }
  return `an expression is not a statement; use its value, for example: local result = ${text}`;
}

/** `retrun x`, `if x tehn`. */
function misspelled(listing: Listing, failure: Failure): Advice | null {
  for (const index of [failure.index, failure.statement]) {
    const word = listing.tokens[index]!;
    const [keyword] = word.kind === "name" ? nearest(word.text, LONG_KEYWORDS) : [];
    if (keyword !== undefined && failure.index <= index + 1) return { text: `did you mean ${keyword}?`, line: word.line, column: word.column };
  }
  return null;
}
