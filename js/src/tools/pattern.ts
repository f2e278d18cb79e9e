/**
 * Patterns: JavaScript's regular expressions, matched in time that grows with the text times the pattern.
 *
 * The engine's own matcher goes back and tries again, which can take years, and nothing ends it: it runs on the host's
 * thread. Here all ways through a pattern are followed together, a character at a time (Thompson's construction), and
 * each step is counted. The engine still decides what is a pattern, and which characters a class holds.
 */

import type { Effort } from "./effort.js";

type Node =
  | { kind: "char"; fits: Fits }
  | { kind: "sequence" | "choice"; parts: Node[] }
  | { kind: "repeat"; body: Node; least: number; most: number }
  | { kind: "place"; place: Place }
  | { kind: "look"; body: Node; behind: boolean; negated: boolean };
type Place = "start" | "end" | "border" | "inside";
type Fits = (char: string) => boolean;
type Instruction =
  | { op: "char"; fits: Fits }
  | { op: "split"; other: number }
  | { op: "jump"; to: number }
  | { op: "place"; place: Place }
  | { op: "look"; program: Instruction[]; behind: boolean; negated: boolean }
  | { op: "match" };

const MOST_INSTRUCTIONS = 20_000;
const INSTRUCTIONS_A_STEP = 8; // to make room for them
const ASCII = 128;
const QUANTIFIER = /[*+?]\??|\{(\d+)(,?)(\d*)\}\??/y;
const ESCAPE = /\\(?:[pP]\{[^}]*\}|u\{[0-9a-fA-F]+\}|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Za-z]|[\s\S])/uy;
const WORD = /\w/;

/** One pattern; throws SyntaxError where it is none, or one that cannot be matched in bounded time. */
export class Pattern {
  private readonly program: Instruction[];
  private readonly atStart: boolean;
  private readonly whole: boolean; // code points, not halves of surrogate pairs

  constructor(source: string) {
    const flags = flagsOf(source);
    const tree = new Parser(source, flags).parse();
    this.whole = flags === "u";
    this.atStart = beginsAtStart(tree);
    this.program = programOf(tree, false);
  }

  /** Whether the pattern fits somewhere in the text; throws TooMuchEffort. */
  test(text: string, effort: Effort): boolean {
    return this.run(this.program, text, 0, false, this.atStart, effort);
  }

  private run(program: Instruction[], text: string, from: number, back: boolean, fixed: boolean, effort: Effort): boolean {
    effort.spend(program.length / INSTRUCTIONS_A_STEP);
    const seen = new Int32Array(program.length).fill(-1);
    let current: number[] = [];
    let following: number[] = [];
    /** Follows everything that takes no character; true where the pattern has matched. */
    const add = (into: number[], first: number, at: number): boolean => {
      const waiting = [first];
      while (waiting.length > 0) {
        const index = waiting.pop()!;
        effort.spend(1);
        if (seen[index] === at) continue;
        seen[index] = at;
        const step = program[index]!;
        switch (step.op) {
          case "match":
            return true;
          case "char":
            into.push(index);
            break;
          case "jump":
            waiting.push(step.to);
            break;
          case "split":
            waiting.push(step.other, index + 1);
            break;
          case "place":
            if (isPlace(step.place, text, at)) waiting.push(index + 1);
            break;
          case "look":
            if (this.run(step.program, text, at, step.behind, true, effort) !== step.negated) waiting.push(index + 1);
        }
      }
      return false;
    };
    for (let at = from; ; ) {
      if ((at === from || !fixed) && add(current, 0, at)) return true;
      const char = back ? this.before(text, at) : this.after(text, at);
      if (char === "" || (fixed && current.length === 0)) return false;
      at += back ? -char.length : char.length;
      for (const index of current) {
        effort.spend(1);
        if ((program[index] as { fits: Fits }).fits(char) && add(following, index + 1, at)) return true;
      }
      [current, following] = [following, current];
      following.length = 0;
    }
  }

  private after(text: string, at: number): string {
    return at >= text.length ? "" : this.whole ? String.fromCodePoint(text.codePointAt(at)!) : text[at]!;
  }

  private before(text: string, at: number): string {
    if (at <= 0) return "";
    const pair = this.whole && at > 1 && text.codePointAt(at - 2)! > 0xffff;
    return pair ? text.slice(at - 2, at) : text[at - 1]!;
  }
}

/** Unicode's rules where the source follows them, else the older ones, which allow more escapes. */
function flagsOf(source: string): string {
  try {
    new RegExp(source, "u");
    return "u";
  } catch {
    new RegExp(source); // throws SyntaxError where the source is no pattern at all
    return "";
  }
}

function isPlace(place: Place, text: string, at: number): boolean {
  if (place === "start") return at === 0;
  if (place === "end") return at === text.length;
  const isBorder = WORD.test(text[at - 1] ?? "") !== WORD.test(text[at] ?? "");
  return isBorder === (place === "border");
}

/** Reads a source that the engine has accepted. */
class Parser {
  private at = 0;

  constructor(
    private readonly source: string,
    private readonly flags: string,
  ) {}

  parse(): Node {
    return this.choice();
  }

  private choice(): Node {
    const parts = [this.sequence()];
    while (this.take("|")) parts.push(this.sequence());
    return parts.length === 1 ? parts[0]! : { kind: "choice", parts };
  }

  private sequence(): Node {
    const parts: Node[] = [];
    while (this.at < this.source.length && !"|)".includes(this.source[this.at]!)) parts.push(this.repeated(this.term()));
    return { kind: "sequence", parts };
  }

  private repeated(body: Node): Node {
    QUANTIFIER.lastIndex = this.at;
    const match = QUANTIFIER.exec(this.source);
    if (match === null) return body;
    this.at += match[0].length;
    const sign = match[0][0]!;
    if (sign !== "{") return { kind: "repeat", body, least: sign === "+" ? 1 : 0, most: sign === "?" ? 1 : Infinity };
    const least = Number(match[1]);
    return { kind: "repeat", body, least, most: match[3] ? Number(match[3]) : match[2] ? Infinity : least };
  }

  private term(): Node {
    if (this.take("^")) return { kind: "place", place: "start" };
    if (this.take("$")) return { kind: "place", place: "end" };
    if (this.take("\\b")) return { kind: "place", place: "border" };
    if (this.take("\\B")) return { kind: "place", place: "inside" };
    if (this.take("(")) return this.group();
    return { kind: "char", fits: this.char() };
  }

  private group(): Node {
    for (const [opening, behind, negated] of LOOKS) {
      if (this.take(opening)) return { kind: "look", body: this.closed(), behind, negated };
    }
    if (!this.take("?:") && this.take("?<")) this.at = this.source.indexOf(">", this.at) + 1;
    else if (this.source[this.at] === "?") throw new SyntaxError(`the pattern ${this.source} has a group of an unknown kind`);
    return this.closed();
  }

  private closed(): Node {
    const body = this.choice();
    this.take(")");
    return body;
  }

  /** One character, or a class of them. */
  private char(): Fits {
    const from = this.at;
    const first = this.source[from]!;
    if (first === "[") {
      for (this.at += 1; this.source[this.at] !== "]"; this.at += 1) if (this.source[this.at] === "\\") this.at += 1;
      this.at += 1;
    } else if (first === "\\") {
      if (/[1-9k]/.test(this.source[from + 1]!)) {
        throw new SyntaxError(`the pattern ${this.source} refers back to a group, which cannot be matched in bounded time`);
      }
      ESCAPE.lastIndex = from;
      const escape = ESCAPE.exec(this.source)![0];
      this.at += this.flags === "u" || !/^\\[pPu]./.test(escape) || /^\\u[0-9a-fA-F]{4}$/.test(escape) ? escape.length : 2;
    } else this.at += this.flags === "u" ? String.fromCodePoint(this.source.codePointAt(from)!).length : 1;
    const atom = this.source.slice(from, this.at);
    return remembered(new RegExp(`^(?:${/^[{}\]]$/.test(atom) ? `\\${atom}` : atom})$`, this.flags));
  }

  private take(text: string): boolean {
    if (!this.source.startsWith(text, this.at)) return false;
    this.at += text.length;
    return true;
  }
}

const LOOKS: [string, boolean, boolean][] = [["?=", false, false], ["?!", false, true], ["?<=", true, false], ["?<!", true, true]];

function remembered(fits: RegExp): Fits {
  const known = new Uint8Array(ASCII);
  let [last, lastFits] = ["", false];
  return (char) => {
    const code = char.charCodeAt(0);
    if (code >= ASCII) {
      if (char !== last) [last, lastFits] = [char, fits.test(char)];
      return lastFits;
    }
    known[code] ||= fits.test(char) ? 1 : 2;
    return known[code] === 1;
  };
}

function beginsAtStart(node: Node): boolean {
  if (node.kind === "place") return node.place === "start";
  if (node.kind === "choice") return node.parts.every(beginsAtStart);
  return node.kind === "sequence" && node.parts.length > 0 && beginsAtStart(node.parts[0]!);
}

/** The instructions for a tree; `back` reads the text from right to left. */
function programOf(tree: Node, back: boolean): Instruction[] {
  const made: Instruction[] = [];
  const emit = (step: Instruction): number => {
    if (made.length >= MOST_INSTRUCTIONS) throw new SyntaxError("a pattern repeats too much to be matched");
    return made.push(step) - 1;
  };
  const split = (): { op: "split"; other: number } => {
    const step = { op: "split" as const, other: 0 };
    emit(step);
    return step;
  };
  const write = (node: Node): void => {
    switch (node.kind) {
      case "char":
        return void emit({ op: "char", fits: node.fits });
      case "place":
        return void emit({ op: "place", place: node.place });
      case "look":
        return void emit({ op: "look", program: programOf(node.body, node.behind), behind: node.behind, negated: node.negated });
      case "sequence":
        return (back ? [...node.parts].reverse() : node.parts).forEach(write);
      case "choice": {
        const jumps = node.parts.slice(0, -1).map((part) => {
          const step = split();
          write(part);
          const jump = { op: "jump" as const, to: 0 };
          emit(jump);
          step.other = made.length;
          return jump;
        });
        write(node.parts.at(-1)!);
        for (const jump of jumps) jump.to = made.length;
        return;
      }
      case "repeat":
        return repeat(node.body, node.least, node.most);
    }
  };
  const repeat = (body: Node, least: number, most: number): void => {
    for (let times = 0; times < least; times += 1) {
      const before = made.length;
      write(body);
      if (made.length === before) break; // nothing, however often
    }
    if (most === Infinity) {
      const at = made.length;
      const step = split();
      write(body);
      emit({ op: "jump", to: at });
      step.other = made.length;
      return;
    }
    const steps: { other: number }[] = [];
    for (let times = least; times < most; times += 1) {
      steps.push(split());
      write(body);
    }
    for (const step of steps) step.other = made.length;
  };
  write(tree);
  emit({ op: "match" });
  return made;
}
