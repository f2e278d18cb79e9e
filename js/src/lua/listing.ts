/** A script's source as hints look at it: its lines, its words, and its own text between two words. */

import { tokenize, type Token } from "./lexer.js";
import { parse, type Parsed } from "./parser.js";
import type { Expression } from "./tree.js";

const MOST_READ = 64_000;
/** Characters and words that are read; of what comes later only the line in question is looked at. */
const MOST_WORDS = 12_000;
const LONGEST_QUOTE = 100;
const OPENERS: Record<string, string> = { "(": ")", "[": "]", "{": "}" };
const CLOSERS = new Set(Object.values(OPENERS));
const DEEPER = new Set([...Object.keys(OPENERS), "function", "if", "do", "repeat"]);
const HIGHER = new Set([...CLOSERS, "end", "until"]);

/** One script's source. What it needs is made when it is first asked for. */
export class Listing {
  private made: { starts?: number[]; tokens?: Token[]; parsed?: Parsed | null; value?: Parsed | null; closing?: Map<number, number> } = {};

  constructor(private readonly source: string) {}

  private get starts(): number[] {
    return (this.made.starts ??= [0, ...[...this.source.matchAll(/\r\n|\n\r|\n|\r/g)].map((match) => match.index + match[0].length)]);
  }

  get lineCount(): number {
    return this.starts.length;
  }

  /** The text of a line, without its end. */
  line(number: number | null): string | null {
    if (number === null || number < 1 || number > this.starts.length) return null;
    return this.source.slice(this.starts[number - 1], this.starts[number] ?? this.source.length).replace(/[\r\n]+$/, "");
  }

  get tokens(): Token[] {
    return (this.made.tokens ??= tokenize(this.source.slice(0, MOST_READ), 1, MOST_WORDS));
  }

  /** Whether all of it is read into words. */
  get whole(): boolean {
    return this.source.length <= MOST_READ && this.tokens.length <= MOST_WORDS;
  }

  /** What the parser makes of it; null when it is too long or too deep to say. */
  get parsed(): Parsed | null {
    if (this.made.parsed === undefined) this.made.parsed = this.whole ? parse(this.tokens) : null;
    return this.made.parsed;
  }

  /** The same when parsed as an expression, as a script may be. */
  get parsedAsValue(): Parsed | null {
    if (this.made.value === undefined) this.made.value = this.whole ? parse(this.tokens, true) : null;
    return this.made.value;
  }

  /** The first word that begins on that line, and the one behind the last. */
  span(line: number): [number, number] {
    const { tokens } = this;
    const bound = (holds: (token: Token) => boolean): number => {
      let [low, high] = [0, tokens.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (holds(tokens[middle]!)) low = middle + 1;
        else high = middle;
      }
      return low;
    };
    const [first, stop] = [bound((token) => token.line < line), bound((token) => token.line <= line)];
    return [first, stop > first && tokens[stop - 1]!.kind === "eof" ? stop - 1 : stop];
  }

  /** The words of one line, also of one that lies past what was read. */
  words(line: number | null): Token[] {
    if (line === null) return [];
    if (this.whole || line < this.tokens.at(-1)!.line) return this.tokens.slice(...this.span(line));
    return tokenize((this.line(line) ?? "").slice(0, MOST_READ), line, MOST_WORDS).slice(0, -1);
  }

  /** The script's own text from one word up to before another, on one line and not too long. */
  text(first: number, stop: number): string {
    if (stop <= first) return "";
    const [start, end] = [this.tokens[first]!.start, this.tokens[stop - 1]!.end];
    const text = end - start > 4 * LONGEST_QUOTE ? "…" : this.source.slice(start, end).replace(/\s+/g, " ").trim();
    return text.length <= LONGEST_QUOTE ? text : "…";
  }

  /** The script's own text of a value, as far as its end is known. */
  textOf(value: Expression): string {
    return value.stop > 0 ? this.text(value.at, value.stop) : "…";
  }

  /** The line and column of a word. */
  place(index: number): [number, number] {
    const token = this.tokens[Math.min(index, this.tokens.length - 1)]!;
    return [token.line, token.column];
  }

  /** The bracket that closes the one at `opener`; null when there is none or they do not match. */
  closing(opener: number): number | null {
    return (this.made.closing ??= this.brackets()).get(opener) ?? null;
  }

  private brackets(): Map<number, number> {
    const pairs = new Map<number, number>();
    let open: number[] = [];
    this.tokens.forEach((token, index) => {
      if (token.kind !== "op") return;
      if (Object.hasOwn(OPENERS, token.text)) open.push(index);
      else if (CLOSERS.has(token.text) && open.length > 0) {
        const opener = open.pop()!;
        if (OPENERS[this.tokens[opener]!.text] === token.text) pairs.set(opener, index);
        else open = [];
      }
    });
    return pairs;
  }

  /** What stands between commas inside a pair of brackets, as (first, stop) of each part. */
  parts(opener: number): [number, number][] {
    const close = this.closing(opener);
    if (close === null) return [];
    const parts: [number, number][] = [];
    let [first, depth] = [opener + 1, 0];
    for (let index = opener + 1; index < close; index += 1) {
      const token = this.tokens[index]!;
      const text = token.kind === "op" || token.kind === "keyword" ? token.text : "";
      if (DEEPER.has(text)) depth += 1;
      else if (HIGHER.has(text)) depth -= 1;
      else if ((text === "," || text === ";") && depth === 0) {
        parts.push([first, index]);
        first = index + 1;
      }
    }
    parts.push([first, close]);
    return parts.filter(([begin, stop]) => begin < stop);
  }
}
