/** Compact text of values, bounded. */

import { count, counted, entriesOf, isTable, numberText } from "../values.js";
import { byText } from "../tools/naming.js";

type Note = (leftOut: number, total: number) => string;

/** The beginning and the end of a text, and its whole length in characters. */
export class Clip {
  private readonly chars: string | string[];
  readonly total: number;

  constructor(text: string) {
    const whole = clean(text);
    this.chars = /[\ud800-\udbff]/.test(whole) ? Array.from(whole) : whole;
    this.total = this.chars.length;
  }

  /** The whole text if it has room, else its head and tail around `note(characters left out, all of them)`. */
  fit(room: number, given: Note): string {
    if (this.total <= room) return this.part(0, this.total);
    let note = given;
    if (sizeOf(note(this.total, this.total)) > Math.floor(room / 2)) {
      note = (leftOut, total) => `… [${count(leftOut)} of ${count(total)} characters left out] …`;
    }
    const left = room - sizeOf(note(this.total, this.total));
    if (left < 16) return room > 0 ? `${this.part(0, room - 1)}…` : "";
    const tail = Math.floor(left / 3);
    return this.part(0, left - tail) + note(this.total - left, this.total) + this.part(this.total - tail, this.total);
  }

  private part(from: number, to: number): string {
    const part = this.chars.slice(from, to);
    return typeof part === "string" ? part : part.join("");
  }
}

/** The length in characters, as the Python package counts. */
export function sizeOf(text: string): number {
  return /[\ud800-\udbff]/.test(text) ? Array.from(text).length : text.length;
}

/** The value as JSON: sorted keys, no spaces; bytes as escaped text, NaN as NaN. */
export function compact(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "number") return numberText(value);
  if (typeof value === "bigint") return String(value);
  if (value instanceof Uint8Array) return JSON.stringify(binary(value));
  if (Array.isArray(value)) return `[${value.map(compact).join(",")}]`;
  if (!isTable(value)) return JSON.stringify(value);
  return `{${named(value).map(([name, item]) => `${JSON.stringify(name)}:${compact(item)}`).join(",")}}`;
}

/** At most `limit` characters of the value's JSON. */
export function short(value: unknown, limit: number): string {
  const text = Array.from(clean(compact(value)));
  return text.length > limit ? `${text.slice(0, limit - 1).join("")}…` : text.join("");
}

/** What kind of thing a large value is, in a few words. */
export function shape(value: unknown): string {
  if (typeof value === "string") return `a string of ${counted(sizeOf(value), "character")}`;
  if (value instanceof Uint8Array) return `a binary string of ${counted(value.length, "byte")}`;
  if (Array.isArray(value)) return `an array of ${counted(value.length, "element")}`;
  if (!isTable(value)) return "a number";
  const entries = named(value);
  const inside = entries.slice(0, 8).map(([name, item]) => clean(name.slice(0, 40)) + sizeNote(item));
  return `a table with ${count(entries.length)} keys (${inside.join(", ")}${entries.length > 8 ? ", …" : ""})`;
}

/** Bytes as text: what is not UTF-8 as \xNN; data that is not text at all by its first bytes and its size. */
export function binary(value: Uint8Array): string {
  const sample = value.slice(0, 4096);
  const text = escaped(sample);
  const odd = (text.match(/\\x/g) ?? []).length + sample.filter((byte) => byte < 32 && ![9, 10, 13].includes(byte)).length;
  if (value.length > 256 && odd * 10 > sample.length) {
    const start = Array.from(value.slice(0, 24), (byte) =>
      byte < 32 || byte > 127 ? `\\x${byte.toString(16).padStart(2, "0")}` : String.fromCharCode(byte),
    ).join("");
    return `<binary, ${count(value.length)} bytes: ${start}…>`;
  }
  return escaped(value);
}

function escaped(bytes: Uint8Array): string {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let text = "";
  let at = 0;
  while (at < bytes.length) {
    const size = bytes[at]! < 0x80 ? 1 : bytes[at]! >= 0xf0 ? 4 : bytes[at]! >= 0xe0 ? 3 : 2;
    try {
      text += decoder.decode(bytes.slice(at, at + size));
      at += size;
    } catch {
      text += `\\x${bytes[at]!.toString(16).padStart(2, "0")}`;
      at += 1;
    }
  }
  return text;
}

/** The text without half surrogate pairs, which no provider's JSON can carry. */
export function clean(text: string): string {
  return text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, (half) =>
    `\\u${half.charCodeAt(0).toString(16)}`,
  );
}

/** Items in a fixed order, integer keys first; an integer that is also there as a string is written [1]. */
function named(value: Map<string | number, unknown> | Record<string, unknown> | unknown[]): [string, unknown][] {
  const entries = entriesOf(value);
  const texts = new Set(entries.filter(([key]) => typeof key === "string").map(([key]) => key));
  return entries
    .sort(([a], [b]) =>
      typeof a === "number" && typeof b === "number" ? a - b : typeof a === "number" ? -1 : typeof b === "number" ? 1 : byText(a, b),
    )
    .map(([key, item]) => [typeof key === "number" && texts.has(String(key)) ? `[${key}]` : String(key), item]);
}

function sizeNote(value: unknown): string {
  let size = 0;
  if (typeof value === "string" || value instanceof Uint8Array || Array.isArray(value)) size = value.length;
  else if (isTable(value)) size = entriesOf(value).length;
  return size > 99 ? `: ${count(size)}` : "";
}
