/** Methods of Python's text and containers; another object's method of that name is its own. */

import { at, compared, Dict, format_, has, isDict, items_, iter, len_, Options, PySet, remove, set, T, text, truth, Tuple, eq, UnicodeEncodeError_, ValueError_ } from "./values.js";

/* eslint-disable @typescript-eslint/no-explicit-any */
type Any = any;
type Method = (own: Any, ...given: Any[]) => Any;

type Kind = "text" | "list" | "dict" | "set" | "bytes" | "number";

/** Methods of text, lists and so on; `methods.pop(x)` calls the one that x has. */
const OF: Record<string, Partial<Record<Kind, Method>>> = {
  // text
  split: { text: split },
  join: { text: (own, parts) => [...iter(parts)].join(own) },
  strip: {
    text: (own, marks) => trimmed(own, marks, true, true),
    bytes: (own) => own.subarray(Math.max(0, own.findIndex(isInk)), own.findLastIndex(isInk) + 1),
  },
  lstrip: { text: (own, marks) => trimmed(own, marks, true, false) },
  rstrip: { text: (own, marks) => trimmed(own, marks, false, true) },
  startswith: { text: (own, start) => (Array.isArray(start) ? start.some((each) => own.startsWith(each)) : own.startsWith(start)) },
  endswith: { text: (own, end) => (Array.isArray(end) ? end.some((each) => own.endsWith(each)) : own.endsWith(end)) },
  find: { text: (own, part, from = 0) => own.indexOf(part, from) },
  rfind: { text: (own, part, from = 0, to = own.length) => within(own.slice(from, to).lastIndexOf(part), from) },
  replace: { text: (own, old, instead, count = -1) => (count < 0 ? own.replaceAll(old, () => instead) : own.replace(old, () => instead)) },
  lower: { text: (own) => own.toLowerCase() },
  upper: { text: (own) => own.toUpperCase() },
  casefold: { text: (own) => own.toLowerCase().replaceAll("ß", "ss") },
  capitalize: { text: (own) => own.slice(0, 1).toUpperCase() + own.slice(1).toLowerCase() },
  isdigit: { text: (own) => /^\d+$/.test(own) },
  isdecimal: { text: (own) => /^\d+$/.test(own) },
  isalpha: { text: (own) => /^\p{L}+$/u.test(own) },
  isalnum: { text: (own) => /^[\p{L}\p{N}]+$/u.test(own) },
  isspace: { text: (own) => /^\s+$/.test(own) },
  isupper: { text: (own) => own !== own.toLowerCase() && own === own.toUpperCase() },
  islower: { text: (own) => own !== own.toUpperCase() && own === own.toLowerCase() },
  isidentifier: { text: (own) => /^[\p{L}_][\p{L}\p{N}_]*$/u.test(own) },
  isascii: { text: (own) => /^[\x00-\x7f]*$/.test(own) },
  isprintable: { text: (own) => !/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u.test(own) },
  partition: { text: (own, part) => parted(own, part, own.indexOf(part), T(own, "", "")) },
  rpartition: { text: (own, part) => parted(own, part, own.lastIndexOf(part), T("", "", own)) },
  removeprefix: { text: (own, start) => (own.startsWith(start) ? own.slice(start.length) : own) },
  removesuffix: { text: (own, end) => (end !== "" && own.endsWith(end) ? own.slice(0, -end.length) : own) },
  splitlines: { text: (own) => (own === "" ? [] : own.replace(/(?:\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])$/, "").split(/\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/)) },
  title: { text: (own) => own.replace(/\p{L}+/gu, (word: string) => word.slice(0, 1).toUpperCase() + word.slice(1).toLowerCase()) },
  expandtabs: { text: (own, size) => own.replaceAll("\t", " ".repeat(size)) },
  zfill: { text: (own, size) => own.padStart(size, "0") },
  ljust: { text: (own, size) => own.padEnd(size) },
  rjust: { text: (own, size) => own.padStart(size) },
  translate: { text: (own, table) => [...own].map((mark) => (table.has(mark.codePointAt(0)) ? (table.get(mark.codePointAt(0)) ?? "") : mark)).join("") },
  encode: { text: encoded },
  decode: { bytes: decoded },
  format: { text: formatted },
  is_integer: { number: Number.isInteger },
  // lists
  append: { list: (own, item) => void own.push(item) },
  extend: { list: (own, items) => { for (const item of iter(items)) own.push(item); } },
  insert: { list: (own, index, item) => void own.splice(index, 0, item) },
  sort: { list: (own, { key, reverse }: Any = {}) => void own.splice(0, own.length, ...sorted_(own, new Options({ key, reverse }))) },
  reverse: { list: (own) => void own.reverse() },
  index: {
    text: (own, part, from = 0) => found(own.indexOf(part, from)),
    list: (own, item) => found(own.findIndex((each: Any) => eq(each, item))),
  },
  count: {
    text: (own, part) => own.split(part).length - 1,
    list: (own, item) => own.filter((each: Any) => eq(each, item)).length,
  },
  pop: {
    list: (own, index = -1) => own.splice(index, 1)[0],
    dict: (own, key, other) => { const value = has(own, key) ? at(own, key) : other; remove(own, key); return value; },
    set: (own) => { const [first] = own; own.delete(first); return first; },
  },
  clear: { list: (own) => void (own.length = 0), dict: (own) => own.clear() },
  copy: { list: (own) => [...own], dict: (own) => new Dict(items_(own)), set: (own) => new PySet(own) },
  popleft: { list: (own) => own.shift() },
  // dicts and sets
  get: { dict: (own, key, other = null) => (own instanceof Map ? (own.has(key) ? own.get(key) : other) : Object.hasOwn(own, key) ? own[key] : other) },
  items: { dict: items_ },
  keys: { dict: (own) => new PySet(iter(own)) },
  values: { dict: (own) => (own instanceof Map ? [...own.values()] : Object.values(own)) },
  setdefault: { dict: (own, key, other = null) => { if (!has(own, key)) set(own, key, other); return at(own, key); } },
  update: {
    dict: (own, more) => { for (const [key, value] of isDict(more) ? items_(more) : more) set(own, key, value); },
    set: (own, ...many) => { for (const items of many) for (const item of iter(items)) own.add(item); },
  },
  add: { set: (own, item) => own.add(item) },
  discard: { set: (own, item) => void own.delete(item) },
  union: { set: (own, ...many) => new PySet([own, ...many].flatMap((items) => [...iter(items)])) },
  intersection: { set: (own, other) => new PySet([...own].filter((item) => [...iter(other)].includes(item))) },
  difference: { set: (own, other) => new PySet([...own].filter((item) => ![...iter(other)].includes(item))) },
  isdisjoint: { set: (own, other) => ![...iter(other)].some((item) => own.has(item)) },
  issuperset: { set: (own, other) => [...iter(other)].every((item) => own.has(item)) },
  issubset: { set: (own, other) => [...own].every((item) => other.has(item)) },
};

function kindOf(own: Any): Kind | "" {
  if (typeof own === "string") return "text";
  if (typeof own === "number") return "number";
  if (Array.isArray(own)) return "list";
  if (isDict(own)) return "dict";
  if (own instanceof PySet) return "set";
  if (own instanceof Uint8Array) return "bytes";
  return own instanceof String ? "text" : "";
}

/** The method of text or a container of that name; undefined where the object has its own. */
function builtin(own: Any, name: string, kinds: (typeof OF)[string]): Method | undefined {
  const kind = kindOf(own);
  if (kind === "") return undefined;
  const isOwn = kind === "list" && own.constructor !== Array && own.constructor !== Tuple && Object.hasOwn(own.constructor.prototype, name);
  return isOwn ? undefined : kinds[kind];
}

export const methods: Record<string, Method> = Object.fromEntries(
  Object.entries(OF).map(([name, kinds]) => [
    name,
    (own: Any, ...given: Any[]) => {
      const method = builtin(own, name, kinds);
      return method === undefined ? own[name](...given) : method(own, ...given);
    },
  ]),
);

/** An attribute that may be a method: with its object. */
export function bound(object: Any, name: string): Any {
  const method = Object.hasOwn(OF, name) ? builtin(object, name, OF[name]!) : undefined;
  if (method !== undefined) return (...given: Any[]) => method(object, ...given);
  const found = object[name];
  const isMethod = typeof found === "function" && !Object.hasOwn(object, name) && found.prototype === undefined;
  return isMethod ? found.bind(object) : found;
}

function split(own: string, by: Any = null, most: Any = -1): string[] {
  if (by instanceof Options) return split(own, by["sep"] ?? null, by["maxsplit"] ?? -1);
  if (most instanceof Options) return split(own, by, most["maxsplit"] ?? -1);
  if (by === null) return own.trim() === "" ? [] : own.trim().split(/\s+/);
  const parts = own.split(by);
  return most < 0 || parts.length <= most + 1 ? parts : [...parts.slice(0, most), parts.slice(most).join(by)];
}

function trimmed(own: string, marks: string | null | undefined, start: boolean, end: boolean): string {
  let [first, stop] = [0, own.length];
  const cut = (mark: string): boolean => (marks == null ? /\s/.test(mark) : marks.includes(mark));
  while (start && first < stop && cut(own.charAt(first))) first += 1;
  while (end && stop > first && cut(own.charAt(stop - 1))) stop -= 1;
  return own.slice(first, stop);
}

function isInk(byte: number): boolean {
  return byte > 32 || (byte > 13 && byte < 32) || byte < 9;
}

function within(place: number, from: number): number {
  return place < 0 ? -1 : place + from;
}

function found(place: number): number {
  if (place < 0) throw new ValueError_("it is not there");
  return place;
}

function parted(own: string, part: string, place: number, absent: Tuple): Tuple {
  return place < 0 ? absent : T(own.slice(0, place), part, own.slice(place + part.length));
}

const LONE_HALF = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function encoded(own: string, form = "utf-8", errors = "strict"): Uint8Array {
  if (form.startsWith("utf-16")) {
    const units = own.split("").map((unit) => unit.charCodeAt(0));
    return Uint8Array.from(units.flatMap((unit) => (form === "utf-16-be" ? [unit >> 8, unit & 255] : [unit & 255, unit >> 8])));
  }
  const kept = own.replace(LONE_HALF, (half) => {
    if (errors === "strict") throw new UnicodeEncodeError_("surrogates not allowed");
    return errors === "replace" ? "?" : `\\u${half.charCodeAt(0).toString(16)}`;
  });
  return new TextEncoder().encode(kept);
}

/** What is not text in that form is written `\xNN` for the errors "backslashreplace", and else as \ufffd. */
function decoded(own: Uint8Array, form = "utf-8", errors = "strict"): string {
  if (form === "utf-16") return new TextDecoder("utf-16le", { ignoreBOM: true }).decode(own);
  if (form === "latin-1") return Array.from(own, (byte) => String.fromCharCode(byte)).join("");
  if (errors !== "backslashreplace") return new TextDecoder("utf-8", { ignoreBOM: true }).decode(own);
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let text = "";
  for (let at = 0; at < own.length; ) {
    const size = own[at]! < 0x80 ? 1 : own[at]! >= 0xf0 ? 4 : own[at]! >= 0xe0 ? 3 : 2;
    try {
      if (size > 1 && form === "ascii") throw new TypeError("it is not ASCII");
      text += decoder.decode(own.slice(at, at + size));
      at += size;
    } catch {
      text += `\\x${own[at]!.toString(16).padStart(2, "0")}`;
      at += 1;
    }
  }
  return text;
}

/** `"{name} {}".format(…)`. */
function formatted(own: string, ...given: Any[]): string {
  const named = given.at(-1) instanceof Options ? given.pop() : {};
  let next = 0;
  return own.replace(/\{\{|\}\}|\{(\w*)(?::([^{}]*))?\}/g, (whole, name: string | undefined, form = "") =>
    name === undefined ? whole[0]! : format_(name === "" ? given[next++] : /^\d+$/.test(name) ? given[Number(name)] : named[name], form),
  );
}

// Functions

export function sorted_(items: Any, { key, reverse }: Any = {}): Any[] {
  const keyed = [...iter(items)].map((item) => [key ? key(item) : item, item]);
  keyed.sort(([a], [b]) => (reverse ? compared(b, a) : compared(a, b)));
  return keyed.map(([, item]) => item);
}

export function any_(items: Any): boolean {
  for (const item of iter(items)) if (truth(item)) return true;
  return false;
}

export function all_(items: Any): boolean {
  for (const item of iter(items)) if (!truth(item)) return false;
  return true;
}

function best(sign: number) {
  return (...given: Any[]): Any => {
    const options = given.at(-1) instanceof Options ? given.pop() : {};
    const items = given.length === 1 ? [...iter(given[0])] : given;
    if (items.length === 0) {
      if ("default" in options) return options.default;
      throw new ValueError_("of nothing");
    }
    const key = options.key ?? ((item: Any) => item);
    return items.reduce((kept, item) => (sign * compared(key(item), key(kept)) > 0 ? item : kept));
  };
}
export const max_ = best(1);
export const min_ = best(-1);

export function* enumerate_(items: Any, first: Any = 0): Generator<Any[]> {
  let index = first instanceof Options ? first["start"] : first;
  for (const item of iter(items)) yield [index++, item];
}

export function* zip_(...given: Any[]): Generator<Any[]> {
  if (given.at(-1) instanceof Options) given.pop();
  const sources = given.map((each) => iter(each)[Symbol.iterator]());
  for (;;) {
    const next = sources.map((source) => source.next());
    if (next.length === 0 || next.some(({ done }) => done)) return;
    yield T(...next.map(({ value }) => value));
  }
}

export function map_(call: Any, ...given: Any[]): Any[] {
  if (given.length === 1) return [...iter(given[0])].map((item) => call(item));
  return [...zip_(...given)].map((items) => call(...items));
}

export function filter_(call: Any, items: Any): Any[] {
  return [...iter(items)].filter((item) => truth(call === null ? item : call(item)));
}

export function reversed_(items: Any): Any[] {
  return [...iter(items)].reverse();
}

export function sum_(items: Any, first: Any = 0): Any {
  let total = first;
  for (const item of iter(items)) total = typeof total === "number" ? total + Number(item) : [...total, ...item];
  return total;
}

/** `range(…)`. */
class Range {
  constructor(readonly start: number, readonly stop: number, readonly step: number) {}
  __len__(): number {
    return Math.max(0, Math.ceil((this.stop - this.start) / this.step));
  }
  __contains__(item: Any): boolean {
    return Number.isInteger(item) && item >= this.start && item < this.stop && (item - this.start) % this.step === 0;
  }
  *[Symbol.iterator](): Generator<number> {
    for (let at = this.start; this.step > 0 ? at < this.stop : at > this.stop; at += this.step) yield at;
  }
}

export function range_(first: number, stop?: number, step = 1): Range {
  return stop === undefined ? new Range(0, first, 1) : new Range(first, stop, step);
}

export function next_(source: Any, ...other: Any[]): Any {
  const { done, value } = typeof source.next === "function" ? source.next() : iter(source)[Symbol.iterator]().next();
  if (done && other.length === 0) throw new ValueError_("there is nothing more");
  return done ? other[0] : value;
}

export function iter_(items: Any): Iterator<Any> {
  return iter(items)[Symbol.iterator]();
}

export function getattr_(object: Any, name: string, other?: Any): Any {
  return object[name] === undefined ? other : object[name];
}

export function callable_(value: Any): boolean {
  return typeof value === "function";
}

const ids = new WeakMap<object, number>();
let lastId = 0;

/** What tells objects apart. */
export function id_(value: Any): Any {
  if (typeof value !== "object" || value === null) return value;
  const known = ids.get(value);
  if (known === undefined) ids.set(value, (lastId += 1));
  return known ?? lastId;
}

export function ord_(mark: string): number {
  return mark.codePointAt(0)!;
}

export function chr_(code: number): string {
  return String.fromCodePoint(code);
}

export const abs_ = (value: Any): Any => (value < 0 ? -value : value);

/** Functions of the types themselves, such as `dict.fromkeys`. */
export const types: Record<string, Any> = {
  dict_fromkeys: (keys: Any, value: Any = null) => new Dict([...iter(keys)].map((key) => [key, value] as [Any, Any])),
  float_fromhex: (written: string) => {
    const [, whole, part = "", power = "0"] = /^0x([0-9a-f]*)\.?([0-9a-f]*)(?:p([-+]?\d+))?$/i.exec(written) ?? [];
    if (whole === undefined) throw new ValueError_("invalid hexadecimal floating-point string");
    return Number.parseInt(`${whole}${part}` || "0", 16) * 2 ** (Number(power) - 4 * part.length);
  },
  int_from_bytes: (items: Uint8Array) => items.reduce((value, byte) => value * 256 + byte, 0),
  MappingProxyType: (table: Any) => table,
  str_upper: (own: string) => own.toUpperCase(),
  str_lower: (own: string) => own.toLowerCase(),
  str_strip: (own: string) => own.trim(),
  frozenset_union: (...many: Any[]) => new PySet(many.flatMap((items) => [...iter(items)])),
};

export { at, len_ };

/** A property of a class by Python's protocol: `descriptor.__get__(object, class)`, until the object has its own. */
export function described(owner: Any, name: string, descriptor: Any): void {
  Object.defineProperty(owner.prototype, name, { get() { return descriptor.__get__(this, owner); }, configurable: true });
}

/** `object.__dict__`, for what is set there. */
export function attributes(object: Any): Any {
  return { __setitem__: (name: string, value: Any) => void Object.defineProperty(object, name, { value, enumerable: true }) };
}

/** A function with its name, which a bundler may change. */
export function named(name: string, call: Any): Any {
  return Object.defineProperty(call, "name", { value: name });
}

export function name_of(value: Any): string {
  return value.name;
}
