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
 *     object, Map                      table; keys of a Map may be integers
 *     Date                             string, ISO 8601
 *     Media                            table: the handle of a medium, see media.ts
 *     anything with toJSON()           what that gives
 *
 * Back from a script: an integer beyond 2^53 is a bigint, a string that is not UTF-8 a Uint8Array, and a table whose
 * keys are not all strings a Map.
 */

import { ConversionError } from "./errors.js";
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

/** Lowers any supported value to what can cross; throws ConversionError naming the path. */
export function plain(
  value: unknown, allowNan = true, maxDepth = 64, path: Path = "value", media: MediaKeeper | null = null,
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
      return value === null ? null : plainObject(value, allowNan, maxDepth, path, media);
    default:
      throw new ConversionError(`${where(path)} is a ${typeof value}, which cannot cross to a script; return JSON-like data`);
  }
}

function plainObject(value: object, allowNan: boolean, maxDepth: number, path: Path, media: MediaKeeper | null): unknown {
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  if (maxDepth <= 0) throw new ConversionError(`${where(path)} is nested too deeply (or contains itself)`, "depth");
  const inner = (item: unknown, key: string | number): unknown => plain(item, allowNan, maxDepth - 1, [path, key], media);
  if (Array.isArray(value)) return value.map(inner);
  if (value instanceof Set) return [...value].map(inner);
  if (value instanceof Media) {
    media?.keep(value);
    return value.handle();
  }
  if (value instanceof Map) {
    const entries = [...value].map(([key, item]): [string | number, unknown] => {
      if (typeof key !== "string" && !Number.isSafeInteger(key)) {
        throw new ConversionError(`${where(path)} has a key of type ${typeof key}; keys must be strings or integers`);
      }
      return [key, inner(item, key)];
    });
    return entries.every(([key]) => typeof key === "string") ? fromEntries(entries) : new Map(entries);
  }
  const toJson = (value as { toJSON?: unknown }).toJSON;
  if (typeof toJson === "function") return plain(toJson.call(value), allowNan, maxDepth, path, media);
  const made: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    const item = (value as Record<string, unknown>)[key];
    const kind = typeof item;
    if (kind === "undefined") continue;
    const lowered = kind === "string" || kind === "boolean" ? item : inner(item, key);
    if (key === "__proto__") setField(made, key, lowered);
    else made[key] = lowered;
  }
  return made;
}

function setField(object: object, key: string, value: unknown): void {
  Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
}

/** An object with these fields; `__proto__` is a field like any other. */
export function fromEntries(entries: Iterable<[string | number, unknown]>): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (const [key, item] of entries) {
    if (key === "__proto__") setField(made, key, item);
    else made[key] = item;
  }
  return made;
}

/** Throws ConversionError where a plain value is larger than the limits allow, naming size and limit. */
export function measure(
  value: unknown, limits: { max_string: number; max_array: number; max_depth: number }, path: Path = "value",
  depth = limits.max_depth,
): void {
  if (typeof value === "string" || value instanceof Uint8Array) {
    if (value.length <= limits.max_string / 4) return;
    const size = typeof value === "string" ? new TextEncoder().encode(value).length : value.length;
    if (size > limits.max_string) {
      throw new ConversionError(
        `${where(path)} is a string of ${count(size)} bytes; max_string is ${count(limits.max_string)}`, "string",
      );
    }
  } else if (isTable(value)) {
    const size = Array.isArray(value) ? value.length : value instanceof Map ? value.size : Object.keys(value).length;
    if (size > limits.max_array) {
      const what = Array.isArray(value) ? "an array" : "a table";
      throw new ConversionError(
        `${where(path)} is ${what} of ${count(size)} elements; max_array is ${count(limits.max_array)}`, "array",
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

/** A plain value as strict JSON data: bytes, integer keys, NaN and infinity become tagged objects. */
export function toJsonable(value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) {
    return { $float: Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf" };
  }
  if (value instanceof Uint8Array) return { $bytes: base64(value) };
  if (Array.isArray(value)) return value.map(toJsonable);
  if (!isTable(value)) return value;
  const entries = entriesOf(value).map(([key, item]): [string | number, unknown] => [key, toJsonable(item)]);
  const tagged = entries.length === 1 && ["$bytes", "$pairs", "$float"].includes(String(entries[0]![0]));
  if (tagged || entries.some(([key]) => typeof key !== "string")) return { $pairs: entries };
  return fromEntries(entries);
}

/** JSON text; integers of more than 53 bits are written as they are. */
export function toJson(value: unknown, indent?: number): string {
  const kept: string[] = [];
  const mark = "\u0001\u0002big:";
  const text = JSON.stringify(
    value,
    (_, item: unknown) => (typeof item === "bigint" ? mark + (kept.push(String(item)) - 1) : item),
    indent,
  );
  return kept.length === 0 ? text : text.replace(/"\\u0001\\u0002big:(\d+)"/g, (_, at: string) => kept[Number(at)]!);
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
      return Number.isFinite(value) ? (Object.is(value, -0) ? "-0.0" : String(value)) : Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
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

const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;
const BIG = "\u0001i";

/** What a worker wrote; throws SyntaxError. Elements in all are bounded by the limits of the worker's side. */
export function fromWire(text: string): unknown {
  let data = text;
  if (/\d{16}/.test(text)) {
    data = text.replace(STRING_OR_NUMBER, (item) =>
      !/^-?\d{16,}$/.test(item) || Number.isSafeInteger(Number(item)) ? item : `{"\\u0001i":"${item}"}`,
    );
  }
  if (/NaN|Infinity/.test(data)) {
    data = data.replace(/"(?:[^"\\]|\\.)*"|NaN|-?Infinity/g, (item) => (item.startsWith('"') ? item : `{"\\u0001f":"${item}"}`));
  }
  const value: unknown = JSON.parse(data);
  return data.includes("\\u0001") || data.includes(TAG) ? restored(value) : value;
}

function restored(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(restored);
  if (!isObject(value)) return value;
  const entries = Object.entries(value);
  if (entries.length === 1 && entries[0]![0].startsWith(TAG)) {
    const [tag, item] = entries[0]!;
    switch (tag) {
      case BIG:
        return BigInt(item as string);
      case `${TAG}f`:
        return Number(item);
      case `${TAG}b`:
        return Uint8Array.from(item as string, (char) => char.charCodeAt(0));
      case `${TAG}m`:
        return new Map((item as [string | number, unknown][]).map(([key, inner]) => [restored(key) as string | number, restored(inner)]));
      case `${TAG}t`: {
        const [names, ...columns] = item as [string[], ...unknown[][]];
        return rowsOf(names, columns);
      }
    }
    throw new SyntaxError("a malformed value");
  }
  return fromEntries(entries.map(([key, item]) => [key, restored(item)]));
}

/** An array of objects from one column for each field. */
function rowsOf(names: string[], columns: unknown[][]): Record<string, unknown>[] {
  const rows: Record<string, unknown>[] = columns[0]!.map(() => ({}));
  names.forEach((name, column) => {
    const values = columns[column]!;
    for (let row = 0; row < rows.length; row += 1) {
      const value = values[row];
      const item = typeof value === "object" && value !== null ? restored(value) : value;
      if (name === "__proto__") setField(rows[row]!, name, item);
      else rows[row]![name] = item;
    }
  });
  return rows;
}

function where(path: Path): string {
  if (typeof path === "string") return path;
  const [outer, key] = path;
  return typeof key === "string" ? `${where(outer)}.${key}` : `${where(outer)}[${key}]`;
}
