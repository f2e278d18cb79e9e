/** A value that a runtime error speaks of: what Lua complains of, and how the script wrote it. */

import type { Token } from "../lua/lexer.js";
import type { Listing } from "../lua/listing.js";

const COMPLAINT = new RegExp(
  String.raw`^attempt to (call|index|perform arithmetic on|perform bitwise operation on|concatenate|get length of)` +
    String.raw` an? ([^()\n]{1,80}?) value` +
    String.raw`(?: \((global|local|method|field|upvalue|constant|for iterator) '([^'\n]{1,80})'\))?$`,
);
const FARTHEST = 200;
const LONGEST_CHAIN = 50;
const MOST_VALUES = 50;

/** What Lua says about a value that cannot do what was asked of it; without an action where the message is another. */
export interface Complaint {
  action: string;
  type: string;
  role: string;
  name: string;
}

export const NONE: Complaint = { action: "", type: "", role: "", name: "" };

export function readComplaint(message: string): Complaint | null {
  const match = COMPLAINT.exec(message);
  return match === null ? null : { action: match[1]!, type: match[2]!, role: match[3] ?? "", name: match[4] ?? "" };
}

/** A value in the script: its words from `start` up to before `stop`; `index` is the word that names it. */
export class ScriptValue {
  constructor(readonly listing: Listing, readonly start: number, readonly index: number, readonly stop: number) {}

  get token(): Token {
    return this.listing.tokens[this.index]!;
  }

  /** The value as the script writes it, such as `order.items[1]`. */
  get text(): string {
    return this.listing.text(this.start, this.stop);
  }

  /** What stands before the last dot, colon or bracket. */
  get receiver(): string {
    return this.index > this.start ? this.listing.text(this.start, this.index - 1) : "";
  }

  /** The sign before the word that names it; empty for a plain name. */
  get sign(): string {
    return this.index > this.start ? this.listing.tokens[this.index - 1]!.text : "";
  }

  get root(): string {
    return this.listing.tokens[this.start]!.text;
  }

  /** The names of a plain dotted chain; empty when there are other things in it. */
  get path(): string[] {
    const tokens = this.listing.tokens.slice(this.start, this.stop);
    const plain = tokens.every((token, at) => (at % 2 === 0 ? token.kind === "name" : token.text === "." || token.text === ":"));
    return plain && tokens.length % 2 === 1 ? tokens.filter((_, at) => at % 2 === 0).map((token) => token.text) : [];
  }

  /** Whether it is read from what a call returned: `tools.list{}.items`, `f()[1]`. */
  get isOfResult(): boolean {
    return this.listing.tokens.slice(this.start, this.index).some((token) => token.text === "(" || token.text === "{");
  }

  get following(): Token {
    return this.listing.tokens[this.stop]!;
  }

  /** The texts of the call's arguments; empty when it is not a call or they cannot be told. */
  arguments(): string[] {
    const { following, listing } = this;
    if (following.kind === "string") return [following.text];
    if (following.text === "{") {
      const close = listing.closing(this.stop);
      return close === null ? [] : [listing.text(this.stop, close + 1)];
    }
    return following.text === "(" ? listing.parts(this.stop).map((part) => listing.text(...part)) : [];
  }
}

/** Where a runtime error happened and what is known there. */
export class RuntimeFailure {
  complaint = NONE;
  value: ScriptValue | null = null;

  constructor(
    /** The script in whose line it happened. */
    readonly listing: Listing,
    readonly line: number | null,
    readonly message: string,
    /** Their paths, such as `add` and `github.create_issue`. */
    readonly tools: readonly string[],
    /** Globals, as far as the engine told them. */
    readonly names: readonly string[],
    /** Scripts of earlier runs, the latest first. */
    readonly earlier: readonly Listing[],
    /** The functions that were under way, innermost first. */
    readonly functions: readonly string[],
  ) {
    const complaint = readComplaint(message.replaceAll(" (for iterator)", " (for iterator 'for iterator')"));
    if (complaint === null) return;
    const values = this.valuesMeant(complaint);
    // The line has nothing of that name: the script wrote the message itself, or the line is another.
    if (values?.length === 0 && complaint.type !== "null") return;
    this.complaint = complaint;
    if (values !== null && new Set(values.map((value) => value.text)).size === 1) this.value = values[0]!;
  }

  /** Indexes of the words of its line; empty where they are not known. */
  get span(): number[] {
    if (this.line === null || !this.listing.whole) return [];
    const [first, stop] = this.listing.span(this.line);
    return Array.from({ length: stop - first }, (_, index) => first + index);
  }

  /** The values on the line that the complaint can mean; null when that cannot be told. */
  private valuesMeant(complaint: Complaint): ScriptValue[] | null {
    const known = ["global", "local", "upvalue", "field", "method"].includes(complaint.role);
    if (this.line === null || !this.listing.whole || !known) return null;
    return this.named(complaint.role, complaint.name).filter((value) => fits(value, complaint.action)).slice(0, MOST_VALUES);
  }

  private named(role: string, name: string): ScriptValue[] {
    const { listing, listing: { tokens } } = this;
    return this.span.flatMap((index) => {
      const token = tokens[index]!;
      const before = index > 0 ? tokens[index - 1]!.text : "";
      const isName = token.kind === "name" && token.text === name;
      if (role === "field") return fields(listing, index, name);
      if (role === "method") return isName && before === ":" ? [new ScriptValue(listing, startOf(tokens, index), index, index + 1)] : [];
      return isName && before !== "." && before !== ":" ? [new ScriptValue(listing, index, index, index + 1)] : [];
    });
  }

  /** Calls on the line of a function whose last name is `name`. */
  callsOf(name: string): ScriptValue[] {
    const { listing, listing: { tokens } } = this;
    return this.span
      .filter((index) => tokens[index]!.text === name && tokens[index]!.kind === "name" && isCalled(tokens[index + 1]!))
      .map((index) => new ScriptValue(listing, startOf(tokens, index), index, index + 1));
  }

  /** Fields (and methods) of that name on the line. */
  fieldsOf(name: string): ScriptValue[] {
    return [...this.named("field", name), ...this.named("method", name)];
  }

  isLocal(name: string): boolean {
    return declared(this.listing, name).length > 0 || this.parameter(name) !== undefined;
  }

  /** Where a function of the script has a parameter of that name. */
  parameter(name: string): Token | undefined {
    const { parsed, tokens } = this.listing;
    return parsed?.parameters.map((index) => tokens[index]!).find((token) => token.text === name);
  }

  get words(): Token[] {
    return this.listing.words(this.line);
  }
}

/** Where a script declares a local of that name: indexes of words. */
export function declared(listing: Listing, name: string): number[] {
  return listing.parsed?.locals.filter((index) => listing.tokens[index]!.text === name) ?? [];
}

/** The text of the plain value (names, fields, indexes) that ends before that word. */
export function operandBefore(listing: Listing, index: number): string {
  const last = listing.tokens[index - 1];
  if (last === undefined || !(last.kind === "name" || last.text === "]")) return "";
  const start = startOf(listing.tokens, index - 1);
  return listing.tokens[start]!.kind === "name" ? listing.text(start, index) : "";
}

function fields(listing: Listing, index: number, name: string): ScriptValue[] {
  const { tokens } = listing;
  const token = tokens[index]!;
  const before = index > 0 ? tokens[index - 1]!.text : "";
  if (token.kind === "name" && token.text === name && before === ".") return [new ScriptValue(listing, startOf(tokens, index), index, index + 1)];
  if (before !== "[" || index < 2 || !isValueEnd(tokens[index - 2]!)) return [];
  const close = listing.closing(index - 1);
  if (close === null) return [];
  const literal = token.kind === "string" && token.text.slice(1, -1) === name;
  const number = name === "integer index" && token.kind === "number" && close === index + 1;
  return literal || number || name === "?" ? [new ScriptValue(listing, startOf(tokens, index - 2), index, close + 1)] : [];
}

function fits(value: ScriptValue, action: string): boolean {
  const { following } = value;
  if (action === "call") return isCalled(following);
  if (action === "index") return following.kind === "op" && [".", "[", ":"].includes(following.text);
  return !(following.text === "=" && following.kind === "op");
}

function isCalled(token: Token): boolean {
  return token.kind === "string" || (token.kind === "op" && (token.text === "(" || token.text === "{"));
}

function isClosing(token: Token): boolean {
  return token.text === ")" || token.text === "]" || token.text === "}";
}

function isValueEnd(token: Token): boolean {
  return token.kind === "name" || token.kind === "string" || isClosing(token);
}

/** Where the value begins (`a.b[1]:c{}`) whose last word stands at `last`. */
function startOf(tokens: readonly Token[], last: number): number {
  let at = last;
  for (let step = 0; step < LONGEST_CHAIN; step += 1) {
    while (isClosing(tokens[at]!)) {
      const opener = openerOf(tokens, at);
      if (opener === null) return last;
      if (opener === 0 || !isValueEnd(tokens[opener - 1]!)) return opener;
      at = opener - 1;
    }
    if (at < 2 || ![".", ":"].includes(tokens[at - 1]!.text)) return at;
    at -= 2;
  }
  return last;
}

function openerOf(tokens: readonly Token[], close: number): number | null {
  let depth = 0;
  for (let index = close; index > Math.max(-1, close - FARTHEST); index -= 1) {
    if (isClosing(tokens[index]!)) depth += 1;
    else if (["(", "[", "{"].includes(tokens[index]!.text)) {
      depth -= 1;
      if (depth === 0) return index;
    }
  }
  return null;
}
