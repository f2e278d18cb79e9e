/**
 * JSON text made into Lua values. It is read where it lies in the wasm memory: strings without escapes are never copied
 * into JavaScript.
 *
 * Beside JSON, answers of the host hold what JSON lacks as an object with one key that starts with the byte 1, as in
 * encode.lua: `\u0001b` bytes, `\u0001m` pairs of keys and values, `\u0001f` a number that is not finite.
 */

import type { Machine, Pointer } from "./machine.js";

const DEEPEST = 990;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;
const ESCAPES: Record<string, number> = { '"': 34, "\\": 92, "/": 47, b: 8, f: 12, n: 10, r: 13, t: 9 };

/** Why a text is not JSON. */
export class JsonProblem extends Error {}

/** What the prelude gives for marking what comes in; references into Lua's registry. */
export interface Marks {
  mark: number;
  null: number;
  /** Present where a null field is absent and remembered: `fields(table, names)` and `array(table, count)`. */
  nulls?: { fields: number; array: number };
}

export class Decoder {
  private at = 0;
  private end = 0;
  private start = 0;
  private state: Pointer = 0;
  private depth = 0;
  private tagged = false;

  constructor(
    private readonly machine: Machine,
    private readonly marks: Marks,
  ) {}

  /** Pushes the value of a whole text; raises JsonProblem. */
  document(state: Pointer, text: Pointer, size: number): void {
    this.begin(state, text, size, false);
    this.checkText();
    this.space();
    this.value();
    this.space();
    if (this.at < this.end) this.fail("Extra data", this.at);
  }

  /** Pushes a value that the host wrote. */
  trusted(state: Pointer, text: Pointer, size: number): void {
    this.begin(state, text, size, true);
    this.value();
  }

  /** Pushes id, ok and value of each answer in `[[id, ok, value], …]`; returns how many values that are. */
  answers(state: Pointer, text: Pointer, size: number): number {
    this.begin(state, text, size, true);
    let count = 0;
    this.at += 1;
    while (this.peek() === 0x5b) {
      if (this.machine.lua.lua_checkstack(state, 16) === 0) throw new RangeError("not enough memory");
      this.at += 1;
      this.value();
      this.at += 1;
      this.value();
      this.at += 1;
      if (this.peek() === 0x6e) {
        this.at += 4;
        this.machine.lua.lua_pushnil(state); // by itself, null is nil
      } else this.value();
      this.at += 1;
      count += 3;
      if (this.peek() === 0x2c) this.at += 1;
    }
    return count;
  }

  private begin(state: Pointer, text: Pointer, size: number, tagged: boolean): void {
    this.state = state;
    this.start = this.at = text;
    this.end = text + size;
    this.depth = 0;
    this.tagged = tagged;
  }

  private peek(): number {
    return this.at < this.end ? this.machine.bytes[this.at]! : -1;
  }

  private space(): void {
    const bytes = this.machine.bytes;
    while (this.at < this.end) {
      const byte = bytes[this.at]!;
      if (byte !== 32 && byte !== 10 && byte !== 13 && byte !== 9) return;
      this.at += 1;
    }
  }

  /** Pushes one value. */
  private value(): void {
    const lua = this.machine.lua;
    switch (this.peek()) {
      case QUOTE:
        return this.string();
      case 0x7b:
        return this.object();
      case 0x5b:
        return this.array();
      case 0x6e:
        this.word("null");
        if (this.marks.nulls !== undefined) return lua.lua_pushnil(this.state);
        return this.machine.pushReference(this.marks.null, this.state);
      case 0x74:
        this.word("true");
        return lua.lua_pushboolean(this.state, 1);
      case 0x66:
        this.word("false");
        return lua.lua_pushboolean(this.state, 0);
      default:
        return this.number();
    }
  }

  private isNull(): boolean {
    const bytes = this.machine.bytes;
    return this.peek() === 0x6e && bytes[this.at + 1] === 0x75 && this.at + 4 <= this.end;
  }

  private word(text: string): void {
    if (this.ascii(this.at, this.at + text.length) !== text) this.fail("Expecting value", this.at);
    this.at += text.length;
  }

  private number(): void {
    const from = this.at;
    const bytes = this.machine.bytes;
    let to = from;
    const negative = bytes[to] === 0x2d;
    if (negative) to += 1;
    let value = 0;
    const digits = to;
    for (let byte = bytes[to]!; to < this.end && byte >= 48 && byte <= 57; byte = bytes[to]!) {
      value = value * 10 + (byte - 48);
      to += 1;
    }
    const next = to < this.end ? bytes[to] : 0;
    const plain = next !== 0x2e && next !== 0x65 && next !== 0x45;
    if (plain && to > digits && to - digits < 16 && (bytes[digits] !== 48 || to - digits === 1)) {
      this.at = to;
      return this.machine.helper.push_integer(this.state, negative ? -value : value);
    }
    this.longNumber(from);
  }

  /** A number with a point or an exponent, a very long one, or none at all. */
  private longNumber(from: number): void {
    const bytes = this.machine.bytes;
    let to = from;
    while (to < this.end && /[-+.0-9eE]/.test(String.fromCharCode(bytes[to]!))) to += 1;
    NUMBER.lastIndex = 0;
    const text = NUMBER.exec(this.ascii(from, to))?.[0];
    if (text === undefined) return this.constant(from);
    this.at = from + text.length;
    if (/[.eE]/.test(text)) this.machine.lua.lua_pushnumber(this.state, Number(text));
    else this.integer(text);
  }

  private integer(text: string): void {
    const value = text.length < 40 ? BigInt(text) : 1n << 70n;
    if (BigInt.asIntN(64, value) === value) this.machine.lua.lua_pushinteger(this.state, value);
    else this.machine.lua.lua_pushnumber(this.state, Number(text));
  }

  private constant(from: number): never {
    for (const name of ["NaN", "Infinity", "-Infinity"]) {
      if (this.ascii(from, from + name.length) === name) throw new JsonProblem(`${name} is not JSON`);
    }
    this.fail("Expecting value", from);
  }

  private string(): void {
    const bytes = this.machine.bytes;
    const from = this.at + 1;
    let to = from;
    while (to < this.end) {
      const byte = bytes[to]!;
      if (byte === QUOTE) {
        this.at = to + 1;
        this.machine.lua.lua_pushlstring(this.state, from, to - from);
        return;
      }
      if (byte === BACKSLASH) return this.escaped(from, to);
      if (byte < 32) this.fail("Invalid control character at", to);
      to += 1;
    }
    this.fail("Unterminated string starting at", from - 1);
  }

  private escaped(from: number, firstEscape: number): void {
    const bytes = this.machine.bytes;
    const made: number[] = [];
    for (let index = from; index < firstEscape; index += 1) made.push(bytes[index]!);
    let to = firstEscape;
    for (;;) {
      if (to >= this.end) this.fail("Unterminated string starting at", from - 1);
      const byte = bytes[to]!;
      if (byte === QUOTE) break;
      if (byte < 32) this.fail("Invalid control character at", to);
      to += 1;
      if (byte !== BACKSLASH) {
        made.push(byte);
        continue;
      }
      if (to >= this.end) this.fail("Unterminated string starting at", from - 1);
      const escape = String.fromCharCode(bytes[to]!);
      to += 1;
      if (escape === "u") {
        let code = this.hex(to);
        to += 4;
        if (code >= 0xd800 && code < 0xdc00 && bytes[to] === BACKSLASH && bytes[to + 1] === 0x75 && to + 6 <= this.end) {
          const low = this.hex(to + 2);
          if (low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            to += 6;
          }
        }
        pushCode(made, code);
      } else if (ESCAPES[escape] !== undefined) made.push(ESCAPES[escape]);
      else this.fail("Invalid \\escape: ", to - 2);
    }
    this.at = to + 1;
    this.pushMade(made);
  }

  private pushMade(made: number[]): void {
    const block = this.machine.malloc(made.length || 1);
    this.machine.bytes.set(made, block);
    try {
      this.machine.lua.lua_pushlstring(this.state, block, made.length);
    } finally {
      this.machine.lua.free(block);
    }
  }

  private hex(at: number): number {
    const text = this.ascii(at, Math.min(at + 4, this.end));
    if (!/^[0-9a-fA-F]{4}$/.test(text)) this.fail("Invalid \\uXXXX escape", at - 1);
    return parseInt(text, 16);
  }

  private enter(): void {
    this.depth += 1;
    if (this.depth > DEEPEST) throw new JsonProblem("nested too deeply");
    if (this.machine.lua.lua_checkstack(this.state, 16) === 0) throw new RangeError("not enough memory");
  }

  private array(): void {
    const { lua, helper } = this.machine;
    const nulls = this.marks.nulls;
    this.enter();
    this.at += 1;
    this.machine.pushReference(this.marks.mark, this.state);
    lua.lua_createtable(this.state, 4, 0);
    let count = 0;
    let holes = false;
    this.space();
    if (this.peek() !== 0x5d) {
      for (;;) {
        count += 1;
        if (nulls !== undefined && this.isNull()) {
          this.word("null");
          holes = true;
        } else {
          this.value();
          helper.raw_set_index(this.state, -2, count);
        }
        this.space();
        if (this.peek() === 0x5d) break;
        if (this.peek() !== 0x2c) this.fail("Expecting ',' delimiter", this.at);
        this.at += 1;
        this.space();
      }
    }
    this.at += 1;
    if (holes && nulls !== undefined) {
      this.machine.pushReference(nulls.array, this.state);
      lua.lua_rotate(this.state, -3, 1); // nulls.array, mark, table
      lua.lua_rotate(this.state, -2, 1); // nulls.array, table, mark
      lua.lua_settop(this.state, -2);
      helper.push_integer(this.state, count);
      lua.lua_callk(this.state, 2, 1, 0, 0);
    } else lua.lua_callk(this.state, 1, 1, 0, 0);
    this.depth -= 1;
  }

  private object(): void {
    const { lua } = this.machine;
    const nulls = this.marks.nulls;
    this.at += 1;
    this.space();
    if (this.tagged && this.special()) return;
    this.enter();
    lua.lua_createtable(this.state, 0, 4);
    let absent: number[] | undefined;
    if (this.peek() !== 0x7d) {
      for (;;) {
        if (this.peek() !== QUOTE) this.fail("Expecting property name enclosed in double quotes", this.at);
        const keyAt = this.at;
        this.string();
        this.space();
        if (this.peek() !== 0x3a) this.fail("Expecting ':' delimiter", this.at);
        this.at += 1;
        this.space();
        if (nulls !== undefined && this.isNull()) {
          this.word("null");
          (absent ??= []).push(keyAt);
          lua.lua_pushnil(this.state); // of two fields of one name the last counts
        } else this.value();
        lua.lua_rawset(this.state, -3);
        this.space();
        if (this.peek() === 0x7d) break;
        if (this.peek() !== 0x2c) this.fail("Expecting ',' delimiter", this.at);
        this.at += 1;
        this.space();
      }
    }
    this.at += 1;
    if (absent !== undefined && nulls !== undefined) this.markAbsent(absent, nulls.fields);
    this.depth -= 1;
  }

  /** Marks the table on top of the stack with the names of its null fields, whose keys are read again. */
  private markAbsent(absent: number[], mark: number): void {
    const { lua, helper } = this.machine;
    const after = this.at;
    this.machine.pushReference(mark, this.state);
    lua.lua_rotate(this.state, -2, 1);
    lua.lua_createtable(this.state, absent.length, 0);
    absent.forEach((keyAt, index) => {
      this.at = keyAt;
      this.string();
      helper.raw_set_index(this.state, -2, index + 1);
    });
    lua.lua_callk(this.state, 2, 1, 0, 0);
    this.at = after;
  }

  /** An object that stands for what JSON lacks; false where it is none. */
  private special(): boolean {
    const head = this.ascii(this.at, this.at + 10);
    if (!head.startsWith('"\\u0001')) return false;
    const letter = head[7];
    this.at += 10; // with the colon
    if (letter === "b") this.latin();
    else if (letter === "f") this.nonFinite();
    else this.pairs();
    this.at += 1;
    return true;
  }

  /** A string in which each character stands for a byte. */
  private latin(): void {
    this.string();
    const bytes = new TextDecoder().decode(this.machine.toBytes(-1, this.state));
    this.machine.lua.lua_settop(this.state, -2);
    this.pushMade(Array.from(bytes, (char) => char.charCodeAt(0) & 255));
  }

  /** "nan", "inf" or "-inf". */
  private nonFinite(): void {
    this.string();
    const name = this.machine.toText(-1, this.state);
    this.machine.lua.lua_settop(this.state, -2);
    this.machine.lua.lua_pushnumber(this.state, name === "nan" ? NaN : name === "inf" ? Infinity : -Infinity);
  }

  private pairs(): void {
    this.enter();
    this.machine.lua.lua_createtable(this.state, 0, 4);
    this.at += 1;
    while (this.peek() === 0x5b) {
      this.at += 1;
      this.value();
      this.at += 1;
      if (this.marks.nulls !== undefined && this.isNull()) {
        this.word("null");
        this.machine.lua.lua_settop(this.state, -2);
      } else {
        this.value();
        this.machine.lua.lua_rawset(this.state, -3);
      }
      this.at += 1;
      if (this.peek() === 0x2c) this.at += 1;
    }
    this.at += 1;
    this.depth -= 1;
  }

  private ascii(from: number, to: number): string {
    let text = "";
    const bytes = this.machine.bytes;
    for (let index = from; index < to && index < this.end; index += 1) text += String.fromCharCode(bytes[index]!);
    return text;
  }

  private checkText(): void {
    const text = this.machine.bytes.slice(this.start, this.end);
    try {
      new TextDecoder("utf-8", { fatal: true }).decode(text);
    } catch {
      throw new JsonProblem("the text is not UTF-8");
    }
    if (text[0] === 0xef && text[1] === 0xbb && text[2] === 0xbf) {
      this.fail("Unexpected UTF-8 BOM (decode using utf-8-sig)", this.start);
    }
  }

  private fail(message: string, at: number): never {
    const before = new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.machine.bytes.slice(this.start, at));
    const line = before.split("\n").length;
    const column = Array.from(before.slice(before.lastIndexOf("\n") + 1)).length + 1;
    throw new JsonProblem(`${message} at line ${line}, column ${column}`);
  }
}

function pushCode(into: number[], code: number): void {
  if (code >= 0xd800 && code < 0xe000) into.push(63); // half of a pair, which no UTF-8 text can hold
  else if (code < 0x80) into.push(code);
  else if (code < 0x800) into.push(0xc0 | (code >> 6), 0x80 | (code & 63));
  else if (code < 0x10000) into.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
  else into.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
}
