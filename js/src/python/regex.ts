/** Python's `re`: its patterns as JavaScript writes them. */

import { Options, T, text, Tuple, WIDE } from "./values.js";

/* eslint-disable @typescript-eslint/no-explicit-any */
type Any = any;

export const [ASCII, IGNORECASE, VERBOSE, DOTALL, MULTILINE] = [1, 2, 4, 8, 16];
const PARTS = /\\Z|\\A|\\[\s\S]|\[\^?\]?(?:\\[\s\S]|[^\]\\])*\]|\(\?P<|\(\?P=(\w+)\)|\(\?#[^)]*\)|([*+?}])\+|[\s\S]/g;

/** The pattern in JavaScript. What never gives back (`*+`) may give back here: that finds the same, only later. */
function translated(pattern: string, flags: number): string {
  const written = flags & VERBOSE! ? packed(pattern) : pattern;
  return written.replace(PARTS, (part: string, reference: string | undefined, repeated: string | undefined) => {
    if (part === "\\Z") return "(?![\\s\\S])";
    if (part === "\\A") return "(?<![\\s\\S])";
    if (part === "(?P<") return "(?<";
    if (reference !== undefined) return `\\k<${reference}>`;
    if (repeated !== undefined) return repeated;
    // `[^\W…]`: a character of words, of whatever alphabet, but these.
    if (part.startsWith("[^\\W") && !(flags & ASCII!)) return `(?:(?![${part.slice(4)})[\\p{L}\\p{N}_])`;
    return /^\[\^?\]/.test(part) ? part.replace("]", "\\]") : part;
  });
}

/** A verbose pattern without its blanks and comments. */
function packed(pattern: string): string {
  return pattern.replace(/(\\[\s\S]|\[\^?\]?(?:\\[\s\S]|[^\]\\])*\])|\s+|#[^\n]*/g, (_, kept: string | undefined) => kept ?? "");
}

export class Match {
  private indices: Any = null;
  constructor(
    readonly re: Pattern,
    readonly string: string,
    private readonly found: RegExpExecArray,
  ) {}
  __getitem__(group: number | string): string | null {
    return (typeof group === "number" ? this.found[group] : this.found.groups![group]) ?? null;
  }
  __bool__(): boolean {
    return true;
  }
  group(...groups: (number | string)[]): Any {
    return groups.length > 1 ? T(...groups.map((each) => this.__getitem__(each))) : this.__getitem__(groups[0] ?? 0);
  }
  groups(): Tuple {
    return T(...this.found.slice(1).map((each) => each ?? null));
  }
  groupdict(): Map<string, string | null> {
    return new Map(Object.entries(this.found.groups ?? {}).map(([name, value]) => [name, value ?? null]));
  }
  /** Where it is, in characters. */
  span(group: number | string = 0): Tuple {
    const places = this.units(group);
    return WIDE.test(this.string) ? T(...places.map((place) => (place < 0 ? place : Array.from(this.string.slice(0, place)).length))) : places;
  }
  /** Where it is, in units of JavaScript's text. */
  units(group: number | string = 0): Tuple {
    if (group === 0) return T(this.found.index, this.found.index + this.found[0].length);
    const own = this.__getitem__(group);
    if (own === null) return T(-1, -1);
    // Most groups end with the whole: then their place is known.
    if (this.found[0].endsWith(own) && !this.found[0].slice(0, -own.length || undefined).includes(own)) {
      const stop = this.found.index + this.found[0].length;
      return T(stop - own.length, stop);
    }
    this.indices ??= this.re.placed(this.string, this.found.index);
    return T(...(typeof group === "number" ? this.indices[group] : this.indices.groups[group]));
  }
  start(group: number | string = 0): number {
    return this.span(group)[0];
  }
  end(group: number | string = 0): number {
    return this.span(group)[1];
  }
  get lastindex(): number | null {
    for (let index = this.found.length - 1; index > 0; index -= 1) if (this.found[index] !== undefined && !this.re.isInner(index)) return index;
    return null;
  }
  get lastgroup(): string | null {
    const index = this.lastindex;
    return index === null ? null : (this.re.names[index] ?? null);
  }
  expand(template: string): string {
    return template.replace(/\\g<(\w+)>|\\(\d)|\\(.)/g, (_, name: string | undefined, digit: string | undefined, mark: string) => {
      if (name === undefined && digit === undefined) return mark === "n" ? "\n" : mark;
      const group = name ?? digit!;
      return this.__getitem__(/^\d+$/.test(group) ? Number(group) : group) ?? "";
    });
  }
}

export class Pattern {
  private readonly made = new Map<string, RegExp>();
  constructor(
    readonly pattern: string,
    readonly flags: number = 0,
  ) {}

  /** Most patterns of a module are not used by most scripts: each is translated when it is used first. */
  private get source(): string {
    return (this.written ??= translated(this.pattern, this.flags));
  }
  private written: string | null = null;

  private get marks(): string {
    const { flags } = this;
    return (flags & IGNORECASE! ? "i" : "") + (flags & DOTALL! ? "s" : "") + (flags & MULTILINE! ? "m" : "") + (this.source.includes("\\p{") ? "u" : "");
  }

  get groups(): number {
    return this.numbered.names.length - 1;
  }

  /** The names of groups, by number. */
  get names(): (string | undefined)[] {
    return this.numbered.names;
  }

  private get numbered(): { names: (string | undefined)[]; inner: Set<number> } {
    return (this.numbers ??= this.number());
  }
  private numbers: { names: (string | undefined)[]; inner: Set<number> } | null = null;

  /** Numbers the groups, and notes which lie within others. */
  private number(): { names: (string | undefined)[]; inner: Set<number> } {
    const names: (string | undefined)[] = [undefined];
    const inner = new Set<number>();
    const open: boolean[] = [];
    for (const { 0: part, index } of this.source.matchAll(/\\[\s\S]|\[(?:\\[\s\S]|[^\]\\])*\]|\(|\)/g)) {
      if (part === ")") open.pop();
      if (part !== "(") continue;
      const behind = this.source.slice(index + 1, index + 80);
      const name = /^\?<([A-Za-z_]\w*)>/.exec(behind)?.[1];
      const counts = name !== undefined || !behind.startsWith("?");
      if (counts) {
        if (open.includes(true)) inner.add(names.length);
        names.push(name);
      }
      open.push(counts);
    }
    return { names, inner };
  }

  /** Whether a group lies within another. */
  isInner(index: number): boolean {
    return this.numbered.inner.has(index);
  }

  private at(marks: string, wrap = (source: string) => source): RegExp {
    let known = this.made.get(marks);
    if (known === undefined) this.made.set(marks, (known = new RegExp(wrap(this.source), this.marks + marks.replace("w", ""))));
    return known;
  }
  /** The places of the groups of a match. */
  placed(subject: string, index: number): Any {
    const pattern = this.at("yd");
    pattern.lastIndex = index;
    return (pattern.exec(subject) as Any).indices;
  }
  private run(pattern: RegExp, subject: string, from: number): Match | null {
    pattern.lastIndex = from;
    const found = pattern.exec(subject);
    return found === null ? null : new Match(this, subject, found);
  }
  search(subject: string, from = 0): Match | null {
    return this.run(this.at("g"), subject, from);
  }
  match(subject: string, from = 0): Match | null {
    return this.run(this.at("y"), subject, from);
  }
  fullmatch(subject: string): Match | null {
    return this.run(this.at("yw", (source) => `(?:${source})(?![\\s\\S])`), subject, 0);
  }
  *finditer(subject: string, from = 0): Generator<Match> {
    const pattern = this.at("g");
    for (let at = from; at <= subject.length; ) {
      const match = this.run(pattern, subject, at);
      if (match === null) return;
      const [start, end] = match.units();
      at = start === end ? end + 1 : end;
      yield match;
    }
  }
  findall(subject: string): Any[] {
    return [...this.finditer(subject)].map((match) => (this.groups === 0 ? match.group() : this.groups === 1 ? (match.group(1) ?? "") : match.groups()));
  }
  sub(replacement: Any, subject: string, most: Any = 0): string {
    const count = most instanceof Options ? most["count"] : most;
    const parts: string[] = [];
    let last = 0;
    for (const match of this.finditer(subject)) {
      const [start, end] = match.units();
      parts.push(subject.slice(last, start), typeof replacement === "function" ? text(replacement(match)) : match.expand(replacement));
      last = end;
      if (count > 0 && parts.length >= 2 * count) break;
    }
    return parts.join("") + subject.slice(last);
  }
  split(subject: string, most: Any = 0): Any[] {
    const count = most instanceof Options ? most["maxsplit"] : most;
    const parts: Any[] = [];
    let last = 0;
    for (const match of this.finditer(subject)) {
      const [start, end] = match.units();
      if (start === end || (count > 0 && parts.length >= count)) continue;
      parts.push(subject.slice(last, start), ...match.groups());
      last = end;
    }
    return [...parts, subject.slice(last)];
  }
}

const known = new Map<string, Pattern>();

export function compile(pattern: Any, flags = 0): Pattern {
  if (pattern instanceof Pattern) return pattern;
  const key = `${flags}:${pattern}`;
  let made = known.get(key);
  if (made === undefined) known.set(key, (made = new Pattern(pattern, flags)));
  return made;
}

export const search = (pattern: Any, subject: string, flags = 0): Match | null => compile(pattern, flags).search(subject);
export const match = (pattern: Any, subject: string, flags = 0): Match | null => compile(pattern, flags).match(subject);
export const fullmatch = (pattern: Any, subject: string, flags = 0): Match | null => compile(pattern, flags).fullmatch(subject);
export const findall = (pattern: Any, subject: string, flags = 0): Any[] => compile(pattern, flags).findall(subject);
export const finditer = (pattern: Any, subject: string, flags = 0): Generator<Match> => compile(pattern, flags).finditer(subject);
export const sub = (pattern: Any, replacement: Any, subject: string, options: Any = 0): string => compile(pattern, options instanceof Options ? options["flags"] ?? 0 : 0).sub(replacement, subject, options instanceof Options ? options["count"] ?? 0 : options);
export const split = (pattern: Any, subject: string, options: Any = 0): Any[] => compile(pattern).split(subject, options);
export const escape = (subject: string): string => subject.replace(/[-[\]{}()*+?.,\\^$|#\s&~]/g, "\\$&");
