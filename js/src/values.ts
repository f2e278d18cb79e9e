/**
 * Values that cross between host and script, and how each JavaScript value becomes one.
 *
 *     JavaScript                       in the script
 *     null, undefined                  null
 *     boolean, string                  boolean, string
 *     number                           integer where it is whole, else float
 *     bigint                           integer (64 bits)
 *     Uint8Array, ArrayBuffer          string of the same bytes
 *     array, Set                       array
 *     Float32Array and the like        array of numbers
 *     object, Map                      table; keys of a Map may be integers
 *     Date                             string, ISO 8601
 *     Media                            table: the handle of a medium, see media.ts
 *     anything with toJSON()           what that gives
 *
 * Back from a script: an integer beyond 2^53 is a bigint, a string that is not UTF-8 a Uint8Array, and a table whose
 * keys are not all strings a Map.
 */

import { ConversionError } from "./errors.js";
import { fromEntries, setField, stringifiableData } from "./json.js";
import { base64, Media } from "./media.js";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const SAFE = BigInt(Number.MAX_SAFE_INTEGER);
const TAG = "\u0001";

type Path = string | [Path, string | number];

/** What keeps the media that cross. */
export interface MediaKeeper {
  keep(medium: Media): void;
}

/** How many elements a value may have in all. They are counted before they are copied: lists may share others, or be sparse. */
export class Room {
  private left: number;
  /** The arrays and objects around the one that is being copied. */
  private readonly around: object[] = [];

  constructor(private readonly most = 10_000_000) {
    this.left = most;
  }

  take(elements: number): void {
    this.left -= elements;
    if (this.left < 0) throw new ConversionError(`the value has more than ${count(this.most)} elements in all`, "array");
  }

  /** What `copy` makes of a container; throws where the container is one of those around it. */
  inside(value: object, path: Path, copy: () => unknown): unknown {
    if (this.around.includes(value)) throw new ConversionError(`${where(path)} contains itself`, "depth");
    this.around.push(value);
    const copied = copy();
    this.around.pop();
    return copied;
  }
}

/** Lowers any supported value to what can cross; throws ConversionError naming the path. */
export function plain(
  value: unknown, allowNan = true, maxDepth = 64, path: Path = "value", media: MediaKeeper | null = null, room = new Room(),
): unknown {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "undefined":
      return null;
    case "number":
      if (Number.isFinite(value) || allowNan) return value;
      throw new ConversionError(`${where(path)} is ${value}, which is not a JSON number`);
    case "bigint":
      if (value >= INT64_MIN && value <= INT64_MAX) return value >= -SAFE && value <= SAFE ? Number(value) : value;
      throw new ConversionError(`${where(path)} is an integer of more than 64 bits (${value}); send it as a string`);
    case "object":
      return value === null ? null : room.inside(value, path, () => plainObject(value, allowNan, maxDepth, path, media, room));
    default:
      throw new ConversionError(`${where(path)} is a ${typeof value}, which cannot cross to a script; return JSON-like data`);
  }
}

function plainObject(
  value: object, allowNan: boolean, maxDepth: number, path: Path, media: MediaKeeper | null, room: Room,
): unknown {
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (value instanceof DataView || value instanceof Uint8ClampedArray) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  if (maxDepth <= 0) throw new ConversionError(`${where(path)} is nested too deeply`, "depth");
  const inner = (item: unknown, key: string | number): unknown => plain(item, allowNan, maxDepth - 1, [path, key], media, room);
  if (Array.isArray(value)) {
    room.take(value.length);
    return value.map(inner);
  }
  if (value instanceof Set || ArrayBuffer.isView(value)) return plainObject([...(value as Iterable<unknown>)], allowNan, maxDepth, path, media, room);
  if (value instanceof Media) {
    media?.keep(value);
    return value.handle();
  }
  if (value instanceof Map) {
    room.take(value.size);
    const entries = [...value].map(([key, item]): [string | number, unknown] => {
      if (typeof key !== "string" && !Number.isSafeInteger(key)) {
        throw new ConversionError(`${where(path)} has a key of type ${typeof key}; keys must be strings or integers`);
      }
      return [key, inner(item, key)];
    });
    return entries.every(([key]) => typeof key === "string") ? fromEntries(entries) : new Map(entries);
  }
  const toJson = (value as { toJSON?: unknown }).toJSON;
  if (typeof toJson === "function" && toJson !== exactJson) return plain(toJson.call(value), allowNan, maxDepth, path, media, room);
  const made: Record<string, unknown> = {};
  const keys = Object.keys(value);
  const kind = Object.getPrototypeOf(value) === Object.prototype ? "Object" : Object.prototype.toString.call(value).slice(8, -1);
  if (kind === "Error" || (kind !== "Object" && keys.length === 0)) { // such as a Promise, a Response: its content is not in its fields
    const instead = kind === "Error" ? "throw it, or return its message" : "return JSON-like data";
    throw new ConversionError(`${where(path)} is of type ${kind}, which cannot cross to a script; ${instead}`);
  }
  room.take(keys.length);
  for (const key of keys) {
    const item = (value as Record<string, unknown>)[key];
    if (item === undefined) continue;
    const lowered = typeof item === "string" || typeof item === "boolean" ? item : inner(item, key);
    setField(made, key, lowered);
  }
  return made;
}

/** Throws ConversionError where a plain value is larger than the limits allow, naming size and limit. */
export function measure(
  value: unknown, limits: { maxString: number; maxArray: number; maxDepth: number }, path: Path = "value",
  depth = limits.maxDepth,
): void {
  if (typeof value === "string" || value instanceof Uint8Array) {
    if (value.length <= limits.maxString / 4) return;
    const size = typeof value === "string" ? new TextEncoder().encode(value).length : value.length;
    if (size > limits.maxString) {
      throw new ConversionError(
        `${where(path)} is a string of ${count(size)} bytes; max_string is ${count(limits.maxString)}`, "string",
      );
    }
  } else if (isTable(value)) {
    const size = Array.isArray(value) ? value.length : value instanceof Map ? value.size : Object.keys(value).length;
    if (size > limits.maxArray) {
      const what = Array.isArray(value) ? "an array" : "a table";
      throw new ConversionError(
        `${where(path)} is ${what} of ${count(size)} elements; max_array is ${count(limits.maxArray)}`, "array",
      );
    }
    if (depth <= 0) throw new ConversionError(`${where(path)} is nested deeper than max_depth`, "depth");
    const look = (item: unknown, key: string | number): void => {
      const isText = typeof item === "string";
      if (isText ? (item as string).length > 64 : typeof item === "object" && item !== null) {
        measure(item, limits, [path, key], depth - 1);
      }
    };
    if (Array.isArray(value)) value.forEach(look);
    else if (value instanceof Map) value.forEach(look);
    else for (const key of Object.keys(value)) look(value[key], key);
  }
}

export function isTable(value: unknown): value is unknown[] | Map<string | number, unknown> | Record<string, unknown> {
  return typeof value === "object" && value !== null && !(value instanceof Uint8Array);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return isTable(value) && !Array.isArray(value) && !(value instanceof Map);
}

export function entriesOf(value: unknown[] | Map<string | number, unknown> | Record<string, unknown>): [string | number, unknown][] {
  if (Array.isArray(value)) return value.map((item, index) => [index, item]);
  return value instanceof Map ? [...value] : Object.entries(value);
}

/** A number with commas between its thousands. */
export function count(value: number): string {
  return value.toLocaleString("en-US");
}

/** `1 call`, `2 calls`, `1,500 calls`. */
export function counted(value: number, singular: string): string {
  return `${count(value)} ${singular}${value === 1 ? "" : "s"}`;
}

/** A number as Python writes it in answers: whole ones as integers while that is exact, others as its `repr`. */
export function numberText(value: number): string {
  if (Number.isSafeInteger(value)) return String(value); // -0 is 0
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
  const [digits, power] = value.toExponential().split("e") as [string, string];
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  return Number.isInteger(value) ? `${value}.0` : String(value);
}

function floatName(value: number): string {
  return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

/** A plain value as strict JSON data: bytes, integer keys, NaN and infinity become tagged objects. */
export function toJsonable(value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) {
    return { $float: floatName(value) };
  }
  if (value instanceof Uint8Array) return { $bytes: base64(value) };
  if (Array.isArray(value)) return value.map(toJsonable);
  if (!isTable(value)) return value;
  const entries = entriesOf(value).map(([key, item]): [string | number, unknown] => [key, toJsonable(item)]);
  const tagged = entries.length === 1 && ["$bytes", "$pairs", "$float"].includes(String(entries[0]![0]));
  if (tagged || entries.some(([key]) => typeof key !== "string")) return { $pairs: entries };
  return fromEntries(entries);
}

/** Whether JavaScript's own JSON would make another number of it: a bigint, -0.0, or a float that looks like a large integer. */
function isSpecial(item: unknown): item is number | bigint {
  if (typeof item !== "number") return typeof item === "bigint";
  return Object.is(item, -0) || (Number.isInteger(item) && !Number.isSafeInteger(item));
}

function floatText(value: number): string {
  return Object.is(value, -0) ? "-0.0" : numberText(value);
}

/** JSON text; integers of more than 53 bits and floats that look like integers are written as they are. */
export function toJson(value: unknown, indent?: number): string {
  const kept: string[] = [];
  const mark = `big:${crypto.randomUUID()}:`; // no value can contain it
  const text = JSON.stringify(
    value,
    function (this: Record<string, unknown>, key, given: unknown) {
      const item = writesExactly(this[key]) ? this[key] : given;
      return isSpecial(item) ? mark + (kept.push(typeof item === "bigint" ? String(item) : floatText(item)) - 1) : item;
    },
    indent,
  );
  return kept.length === 0 ? text : text.replace(new RegExp(`"${mark}(\\d+)"`, "g"), (_, at: string) => kept[Number(at)]!);
}

/** `toJSON` of arrays and objects of a script that have such integers. */
function exactJson(this: object): unknown {
  return stringifiableData(this);
}

function writesExactly(value: unknown): value is object {
  return typeof value === "object" && value !== null && (value as { toJSON?: unknown }).toJSON === exactJson;
}

/** A value of a script, which `JSON.stringify` can write: it refuses bigints. */
function stringifiable<Value extends object>(value: Value): Value {
  if (Object.hasOwn(value, "toJSON") || !Object.values(value).some((item) => typeof item === "bigint")) return value;
  return Object.defineProperty(value, "toJSON", { value: exactJson });
}

// The wire

/** A plain value as the text that a worker reads; see worker/decode.ts. */
export function toWire(value: unknown): string {
  return isSimple(value) ? JSON.stringify(value) : tagged(value);
}

/** Whether the value is JSON as it is: the usual case, for which the engine's own writer is several times faster. */
function isSimple(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  if (typeof value === "bigint" || value === undefined || value instanceof Uint8Array || value instanceof Map) return false;
  if (typeof value !== "object" || value === null) return true;
  if (Array.isArray(value)) return value.every(isSimple);
  for (const key of Object.keys(value)) {
    if (key.charCodeAt(0) === 1 || !isSimple((value as Record<string, unknown>)[key])) return false;
  }
  return true;
}

function tagged(value: unknown): string {
  switch (typeof value) {
    case "string":
      return quoted(value);
    case "number":
      if (!Number.isFinite(value)) return `{"\\u0001f":"${floatName(value)}"}`;
      return Object.is(value, -0) ? "-0.0" : String(value);
    case "bigint":
      return String(value);
    case "boolean":
      return value ? "true" : "false";
  }
  if (value === null || value === undefined) return "null";
  if (value instanceof Uint8Array) {
    return `{"\\u0001b":${JSON.stringify(Array.from(value, (byte) => String.fromCharCode(byte)).join(""))}}`;
  }
  if (Array.isArray(value)) return `[${value.map(tagged).join(",")}]`;
  const entries = entriesOf(value as Record<string, unknown>);
  if (entries.some(([key]) => typeof key !== "string" || key.startsWith(TAG))) {
    const pairs = entries.map(([key, item]) => `[${typeof key === "number" ? key : quoted(key)},${tagged(item)}]`);
    return `{"\\u0001m":[${pairs.join(",")}]}`;
  }
  return `{${entries.map(([key, item]) => `${quoted(key as string)}:${tagged(item)}`).join(",")}}`;
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

const BIG = `${TAG}i`;
const NON_FINITE = new Map([["nan", NaN], ["inf", Infinity], ["-inf", -Infinity]]);
const LONG_NUMBER = /\d{16}/;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** What a worker wrote; throws SyntaxError. Elements in all are bounded by the limits of the worker's side. */
export function fromWire(text: string, allowNan = false): unknown {
  const data = LONG_NUMBER.test(text) ? withBigIntegers(text) : text;
  const value: unknown = JSON.parse(data);
  return data.includes("\\u0001") ? restored(value, allowNan) : value;
}

/** The JSON text with each integer that a number cannot hold as a tagged object. */
function withBigIntegers(text: string): string {
  const parts: string[] = [];
  let copied = 0;
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (!isNumeric(code)) at += 1;
    else {
      const from = at;
      while (at < text.length && isNumeric(text.charCodeAt(at))) at += 1;
      if (at - from < 16) continue;
      const number = text.slice(from, at);
      if (/[.eE]/.test(number) || Number.isSafeInteger(Number(number))) continue;
      parts.push(text.slice(copied, from), `{"\\u0001i":"${number}"}`);
      copied = at;
    }
  }
  return parts.join("") + text.slice(copied);
}

function isNumeric(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || code === 0x2d || code === 0x2b || code === 0x2e || code === 0x65 || code === 0x45;
}

/**
 * Where a JSON string ends that begins with the quote at that place. A regular expression would do, but it keeps a
 * stack, which long strings overflow.
 */
export function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; ) {
    const quote = text.indexOf('"', at);
    if (quote < 0) return text.length;
    let slashes = 0;
    while (text.charCodeAt(quote - 1 - slashes) === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return quote + 1;
    at = quote + 1;
  }
}

function restored(value: unknown, allowNan: boolean): unknown {
  const inner = (item: unknown): unknown => restored(item, allowNan);
  if (Array.isArray(value)) return stringifiable(value.map(inner));
  if (!isObject(value)) return value;
  const entries = Object.entries(value);
  if (entries.length === 1 && entries[0]![0].startsWith(TAG)) {
    const [tag, item] = entries[0]!;
    if (tag === BIG && typeof item === "string" && /^-?\d{1,19}$/.test(item)) {
      const integer = BigInt(item);
      if (integer >= INT64_MIN && integer <= INT64_MAX) return integer;
    }
    if (tag === `${TAG}f` && allowNan && typeof item === "string" && NON_FINITE.has(item)) return NON_FINITE.get(item);
    if (tag === `${TAG}b` && typeof item === "string") return Uint8Array.from(item, (char) => char.charCodeAt(0));
    if (tag === `${TAG}m` && Array.isArray(item)) return new Map(item.map((pair) => keyAndValue(pair, inner)));
    throw new SyntaxError("a malformed value");
  }
  return stringifiable(fromEntries(entries.map(([key, item]) => [key, inner(item)])));
}

function keyAndValue(pair: unknown, inner: (item: unknown) => unknown): [string | number, unknown] {
  const [key, item] = Array.isArray(pair) && pair.length === 2 ? pair : [null, null];
  const name = isObject(key) ? inner(key) : key;
  if (typeof name !== "string" && typeof name !== "number" && typeof name !== "bigint") throw new SyntaxError("a malformed key");
  return [name as string | number, inner(item)];
}

function where(path: Path): string {
  if (typeof path === "string") return path;
  const [outer, key] = path;
  return typeof key === "string" ? `${where(outer)}.${key}` : `${where(outer)}[${key}]`;
}
