/**
 * Python's values and operators for the modules that are translated from the Python package.
 *
 * Text, numbers and truth values are JavaScript's; a list is an array, a tuple a Tuple, a dict a Dict (a plain object counts as one,
 * so that JSON of the host is read as it is), a set a PySet, None is null.
 */

import { fromEntries, setField } from "../json.js";
import { numberText } from "../values.js";

/* eslint-disable @typescript-eslint/no-explicit-any */
type Any = any;

export const Ellipsis = Symbol("...");

/** Options of a function of this folder, where Python gives them by name. */
export class Options {
  [name: string]: Any;
  constructor(fields: Record<string, unknown>) {
    Object.assign(this, fields);
  }
}

export class Tuple extends Array<Any> {
  static override get [Symbol.species]() {
    return Array;
  }
  static fields: string[] | undefined;
  _replace(changes: Record<string, unknown>): Any {
    const kind = this.constructor as Any;
    return new kind(...kind.fields.map((name: string, index: number) => (name in changes ? changes[name] : this[index])));
  }
}

export function T(...items: Any[]): Tuple {
  const made = new Tuple();
  for (const item of items) made.push(item);
  return made;
}

/** A record: equal to another with equal fields, unless its class says otherwise. */
export class Struct {
  static fields: string[];
  static compared = true;
  get __struct_fields__(): string[] {
    return (this.constructor as typeof Struct).fields;
  }
}

/** The parts by which a key that is not its own identity is told apart; null where it is. */
function partsOf(key: Any): Any[] | null {
  if (key instanceof String) return ["text", key.valueOf()];
  if (Array.isArray(key)) return ["tuple", ...key];
  if (key instanceof PySet) return ["set", [...key].map((item) => JSON.stringify(item)).sort().join(",")];
  if (!(key instanceof Struct) || !(key.constructor as typeof Struct).compared) return null;
  return [key.constructor, ...key.__struct_fields__.map((name) => (key as Any)[name])];
}

function isPlainKey(key: Any): boolean {
  return typeof key !== "object" || key === null;
}

/** Composite keys by their parts, one level a part; what stands for a key is the first one that was equal. */
interface Level {
  next: Map<Any, Level>;
  key?: Any;
}

export class Dict extends Map<Any, Any> {
  private composite: Level | undefined;
  private own(key: Any, add = false): Any {
    if (isPlainKey(key)) return key;
    const parts = partsOf(key);
    if (parts === null) return key;
    let level: Level = (this.composite ??= { next: new Map() });
    for (const part of parts) {
      const kept = this.own(part, add);
      let next = level.next.get(kept);
      if (next === undefined) {
        if (!add) return undefined;
        level.next.set(kept, (next = { next: new Map() }));
      }
      level = next;
    }
    if (add) level.key ??= key;
    return level.key;
  }
  override get(key: Any): Any {
    return super.get(this.own(key));
  }
  override has(key: Any): boolean {
    return super.has(this.own(key));
  }
  override set(key: Any, value: Any): this {
    return super.set(this.own(key, true), value);
  }
  override delete(key: Any): boolean {
    return super.delete(this.own(key));
  }
}

export class PySet {
  private readonly table = new Dict();
  constructor(items: Iterable<Any> = []) {
    for (const item of items) this.table.set(item, true);
  }
  get size(): number {
    return this.table.size;
  }
  has(item: Any): boolean {
    return this.table.has(item);
  }
  add(item: Any): void {
    this.table.set(item, true);
  }
  delete(item: Any): boolean {
    return this.table.delete(item);
  }
  [Symbol.iterator](): IterableIterator<Any> {
    return this.table.keys();
  }
}

/** A plain object is a dict; an instance of a class is not. */
export function isObject(value: Any): boolean {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

export function isDict(value: Any): boolean {
  return value instanceof Map || isObject(value);
}

// Types

export const str_ = Object.assign((value: Any = ""): string => text(value), { kind: "str" });
export const int_ = Object.assign(integer, { kind: "int" });
export const float_ = Object.assign(decimal, { kind: "float" });
export const bool_ = Object.assign((value: Any = false): boolean => truth(value), { kind: "bool" });
export const list_ = Object.assign((items: Any = []): Any[] => [...iter(items)], { kind: "list" });
export const tuple_ = Object.assign((items: Any = []): Tuple => Tuple.from(iter(items)) as Tuple, {
  kind: "tuple",
  __new__: (kind: Any, items: Any[]) => new kind(...items),
});
export const dict_ = Object.assign(dict, { kind: "dict" });
export const set_ = Object.assign((items: Any = []): PySet => new PySet(iter(items)), { kind: "set" });
export const frozenset_ = Object.assign((items: Any = []): PySet => new PySet(iter(items)), { kind: "set" });
export const bytes_ = Object.assign((items: Any = []): Uint8Array => Uint8Array.from(items), { kind: "bytes" });
export const bytearray_ = bytes_;
const NoneType = { kind: "None" };

function dict(items: Any = []): Dict {
  const entries = isDict(items) ? items_(items) : items;
  const made = new Dict();
  for (const [key, value] of entries) made.set(key, value);
  return made;
}

export function items_(value: Any): [Any, Any][] {
  return value instanceof Map ? [...value] : Object.entries(value);
}

export function type_(value: Any): Any {
  switch (typeof value) {
    case "string":
      return str_;
    case "number":
      return Number.isInteger(value) ? int_ : float_;
    case "bigint":
      return int_;
    case "boolean":
      return bool_;
    case "undefined":
      return NoneType;
    case "function":
      return type_;
    case "symbol":
      return Ellipsis;
  }
  if (value === null) return NoneType;
  const kind = value.constructor;
  if (kind === Array) return list_;
  if (kind === Tuple) return tuple_;
  if (isDict(value)) return dict_;
  if (kind === PySet) return set_;
  return kind === Uint8Array ? bytes_ : kind;
}

export function isinstance(value: Any, kind: Any): boolean {
  if (Array.isArray(kind)) return kind.some((each) => isinstance(value, each));
  switch (kind.kind) {
    case undefined:
      return typeof kind === "function" && value instanceof kind;
    case "str":
      return typeof value === "string" || value instanceof String;
    case "int":
      return typeof value === "bigint" || typeof value === "boolean" || (typeof value === "number" && Number.isInteger(value));
    case "float":
      return typeof value === "number" && !Number.isInteger(value);
    case "bool":
      return typeof value === "boolean";
    case "list":
      return Array.isArray(value) && !(value instanceof Tuple);
    case "tuple":
      return value instanceof Tuple;
    case "dict":
      return isDict(value);
    case "set":
      return value instanceof PySet;
    case "bytes":
      return value instanceof Uint8Array;
    case "None":
      return value == null;
    case "callable":
      return typeof value === "function";
  }
  return true;
}

// Errors

export class Exception_ extends Error {
  constructor(...given: Any[]) {
    super(given.map(text).join(", "));
  }
}
export class ValueError_ extends Exception_ {}
export class TypeError_ extends Exception_ {}
export class KeyError_ extends Exception_ {}
export class IndexError_ extends Exception_ {}
export class OverflowError_ extends Exception_ {}
export class NotImplementedError_ extends Exception_ {}
export class RecursionError_ extends Exception_ {}
export class UnicodeEncodeError_ extends ValueError_ {}
export class AttributeError_ extends Exception_ {}

/** Whether `except` takes the error; a stack that is full is a RangeError here. */
export function caught(error: Any, kinds: Any): boolean {
  return [kinds].flat().some((kind: Any) => {
    if (kind === RecursionError_) return error instanceof RangeError;
    if (kind === Exception_) return error instanceof Error;
    if (kind === TypeError_) return error instanceof TypeError || error instanceof TypeError_;
    return error instanceof kind;
  });
}

// Truth, equality and order

export function truth(value: Any): boolean {
  if (typeof value !== "object" || value === null) return Boolean(value);
  if (Array.isArray(value)) return value.length > 0;
  if (value instanceof Map || value instanceof PySet) return value.size > 0;
  if (value instanceof Uint8Array) return value.length > 0;
  if (value.__bool__ !== undefined) return value.__bool__();
  if (value.__len__ !== undefined) return value.__len__() > 0;
  if (value instanceof String) return value.length > 0;
  return isObject(value) ? Object.keys(value).length > 0 : true;
}

export function eq(left: Any, right: Any): boolean {
  const [a, b] = [left instanceof String ? left.valueOf() : left, right instanceof String ? right.valueOf() : right];
  if (a === b || (a == null && b == null)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return typeof a !== typeof b && isNumeric(a) && isNumeric(b) && a == b;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a instanceof Tuple === b instanceof Tuple && a.length === b.length && a.every((item, index) => eq(item, b[index]));
  }
  if (a instanceof PySet) return b instanceof PySet && a.size === b.size && [...a].every((item) => b.has(item));
  if (isDict(a)) {
    const entries = items_(a);
    return isDict(b) && entries.length === len_(b) && entries.every(([key, value]) => has(b, key) && eq(value, at(b, key)));
  }
  if (a.__eq__ !== undefined) return a.__eq__(b);
  if (!(a instanceof Struct) || a.constructor !== b.constructor || !(a.constructor as typeof Struct).compared) return false;
  return a.__struct_fields__.every((name) => eq((a as Any)[name], b[name]));
}

function isNumeric(value: Any): boolean {
  return typeof value === "number" || typeof value === "bigint" || typeof value === "boolean";
}

/** Below 0, 0 or above 0, as in sorting. */
export function compared(a: Any, b: Any): number {
  if (Array.isArray(a)) {
    for (let index = 0; index < Math.min(a.length, b.length); index += 1) {
      const order = compared(a[index], b[index]);
      if (order !== 0) return order;
    }
    return a.length - b.length;
  }
  return a < b ? -1 : a > b ? 1 : 0;
}

export function lt(a: Any, b: Any): boolean {
  return a instanceof PySet ? a.size < b.size && le(a, b) : compared(a, b) < 0;
}
export function le(a: Any, b: Any): boolean {
  return a instanceof PySet ? [...a].every((item) => b.has(item)) : compared(a, b) <= 0;
}
export function gt(a: Any, b: Any): boolean {
  return lt(b, a);
}
export function ge(a: Any, b: Any): boolean {
  return le(b, a);
}

// Arithmetic

/** A whole number as a number where that is exact. */
function whole(value: bigint): number | bigint {
  return value >= -9007199254740991n && value <= 9007199254740991n ? Number(value) : value;
}

function calculated(a: Any, b: Any, plain: (a: number, b: number) => number, big: (a: bigint, b: bigint) => bigint): Any {
  if (typeof a !== "bigint" && typeof b !== "bigint") return plain(Number(a), Number(b));
  return typeof a === "number" && !Number.isInteger(a) || (typeof b === "number" && !Number.isInteger(b))
    ? plain(Number(a), Number(b))
    : whole(big(BigInt(a), BigInt(b)));
}

export function add(a: Any, b: Any): Any {
  if (typeof a === "string") return a + b;
  if (Array.isArray(a)) return a instanceof Tuple ? T(...a, ...b) : [...a, ...b];
  return calculated(a, b, (x, y) => x + y, (x, y) => x + y);
}

export function iadd(a: Any, b: Any): Any {
  if (!Array.isArray(a) || a instanceof Tuple) return add(a, b);
  for (const item of iter(b)) a.push(item);
  return a;
}

export function sub(a: Any, b: Any): Any {
  if (a instanceof PySet || a instanceof Map) return new PySet([...iter(a)].filter((item) => !has(b, item)));
  return calculated(a, b, (x, y) => x - y, (x, y) => x - y);
}

export function mul(a: Any, b: Any): Any {
  if (typeof a === "string") return a.repeat(Math.max(0, Number(b)));
  if (typeof b === "string") return mul(b, a);
  if (Array.isArray(a)) {
    const many = Array.from({ length: Math.max(0, Number(b)) }, () => [...a]).flat();
    return a instanceof Tuple ? T(...many) : many;
  }
  return Array.isArray(b) ? mul(b, a) : calculated(a, b, (x, y) => x * y, (x, y) => x * y);
}

export function div(a: Any, b: Any): number {
  return Number(a) / Number(b);
}

export function floordiv(a: Any, b: Any): Any {
  return calculated(a, b, (x, y) => Math.floor(x / y), (x, y) => (x - mod(x, y)) / y);
}

export function mod(a: Any, b: Any): Any {
  return calculated(a, b, (x, y) => ((x % y) + y) % y, (x, y) => ((x % y) + y) % y);
}

export function pow(a: Any, b: Any): Any {
  return calculated(a, b, (x, y) => x ** y, (x, y) => x ** y);
}

function or_(a: Any, b: Any): Any {
  if (a instanceof PySet) return new PySet([...a, ...iter(b)]);
  return a instanceof Map ? dict([...a, ...items_(b)]) : calculated(a, b, (x, y) => x | y, (x, y) => x | y);
}
function and_(a: Any, b: Any): Any {
  if (a instanceof PySet || a instanceof Map) return new PySet([...iter(a)].filter((item) => has(b, item)));
  return calculated(a, b, (x, y) => x & y, (x, y) => x & y);
}
export function shr(a: Any, b: Any): Any {
  return calculated(a, b, (x, y) => x >> y, (x, y) => x >> y);
}
export function xor(a: Any, b: Any): Any {
  if (a instanceof PySet) return new PySet([...sub(a, b), ...sub(b, a)]);
  return calculated(a, b, (x, y) => x ^ y, (x, y) => x ^ y);
}
export function ior(a: Any, b: Any): Any {
  return typeof a === "boolean" && typeof b === "boolean" ? a || b : or_(a, b);
}
export { and_ as and, or_ as or };

function integer(value: Any = 0, base = 10): Any {
  if (typeof value !== "string") return typeof value === "bigint" ? value : Math.trunc(Number(value));
  const written = value.trim().replaceAll("_", "").toLowerCase();
  const [, sign, digits] = /^([-+]?)(?:0[xob])?([0-9a-z]+)$/.exec(written) ?? [];
  const allowed = base === 16 ? /^[0-9a-f]+$/ : /^[0-9]+$/;
  if (digits === undefined || !allowed.test(digits)) throw new ValueError_(`invalid literal for int(): '${value}'`);
  const found = whole(BigInt(base === 16 ? `0x${digits}` : digits));
  return sign === "-" ? -found : found;
}

function decimal(value: Any = 0): number {
  if (typeof value !== "string") return Number(value);
  const written = value.trim();
  if (/^[-+]?inf(inity)?$/i.test(written)) return written.startsWith("-") ? -Infinity : Infinity;
  if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(written)) throw new ValueError_(`could not convert string to float: '${value}'`);
  return Number(written);
}

// Containers

export function iter(value: Any): Iterable<Any> {
  if (Array.isArray(value) || typeof value === "string") return value;
  if (value instanceof Map) return value.keys();
  if (typeof value?.[Symbol.iterator] === "function") return value;
  return value?.__iter__ !== undefined ? value.__iter__() : Object.keys(value);
}

/** What is taken apart into several variables. */
export function sequence(value: Any): Any[] {
  return Array.isArray(value) ? value : [...iter(value)];
}

/** A generator expression. */
export function generated(make: () => IterableIterator<Any>): IterableIterator<Any> {
  return make();
}

/** Text with characters of two units, which Python counts as one. */
export const WIDE = /[\ud800-\udbff]/;

export function len_(value: Any): number {
  if (typeof value === "string") return WIDE.test(value) ? Array.from(value).length : value.length;
  if (Array.isArray(value) || value instanceof Uint8Array) return value.length;
  if (value instanceof Map || value instanceof PySet) return value.size;
  return value.__len__ !== undefined ? value.__len__() : (value.length ?? Object.keys(value).length);
}

export function has(container: Any, item: Any): boolean {
  if (typeof container === "string") return container.includes(item);
  if (container instanceof Map || container instanceof PySet) return container.has(item);
  if (Array.isArray(container)) return container.includes(item) || (isPlainKey(item) ? typeof item === "bigint" : container.some((each) => eq(each, item)));
  if (container?.__contains__ !== undefined) return container.__contains__(item);
  if (isObject(container)) return Object.hasOwn(container, item);
  if (typeof container?.has === "function") return container.has(item);
  for (const each of iter(container)) if (eq(each, item)) return true;
  return false;
}

export function at(container: Any, key: Any): Any {
  if (typeof container === "string" && WIDE.test(container)) container = Array.from(container);
  if (Array.isArray(container) || typeof container === "string") {
    const found = container.at(key);
    if (found === undefined) throw new IndexError_("index out of range");
    return found;
  }
  if (container?.__getitem__ !== undefined) return container.__getitem__(key);
  if (container instanceof Map) {
    if (!container.has(key)) throw new KeyError_(text(key));
    return container.get(key);
  }
  if (isObject(container) && !Object.hasOwn(container, key)) throw new KeyError_(text(key));
  return container[key];
}

export function set(container: Any, key: Any, value: Any): Any {
  if (container instanceof Map) container.set(key, value);
  else if (Array.isArray(container)) container[key < 0 ? container.length + key : key] = value;
  else if (container.__setitem__ !== undefined) container.__setitem__(key, value);
  else setField(container, key, value);
  return value;
}

export function remove(container: Any, key: Any): void {
  if (container instanceof Map) container.delete(key);
  else if (Array.isArray(container)) container.splice(key, 1);
  else delete container[key];
}

/** `items[first:stop] = replacement`, or without one `del items[first:stop]`. */
export function splice(items: Any[], first: number | null, stop: number | null, replacement: Any = []): void {
  const begin = bound_(first ?? 0, items.length);
  const end = Math.max(begin, bound_(stop ?? items.length, items.length));
  items.splice(begin, end - begin, ...iter(replacement));
}

function bound_(index: number, length: number): number {
  return index < 0 ? Math.max(0, length + index) : Math.min(index, length);
}

export function slice(value: Any, first: number | null, stop: number | null, step: number | null): Any {
  if (typeof value === "string" && WIDE.test(value)) return (slice(Array.from(value), first, stop, step) as string[]).join("");
  if (step === -1) return typeof value === "string" ? [...value].reverse().join("") : [...value].reverse();
  const part = value.slice(first ?? 0, stop ?? undefined);
  const kept = step === null || step === 1 ? part : [...part].filter((_, index) => index % step === 0);
  return value instanceof Tuple ? (Tuple.from(kept) as Tuple) : typeof value === "string" && Array.isArray(kept) ? kept.join("") : kept;
}

/** A method without an object, which takes it first. */
export function unbound(kind: Any, name: string): Any {
  return (self: Any, ...given: Any[]) => self[name](...given);
}

/** The value of a cached property. */
export function keep(object: Any, name: string, value: Any): void {
  Object.defineProperty(object, name, { value });
}

/** Arguments by position and by name, by position. */
export function placed(given: Any[], names: string[], named: Record<string, Any>): Any[] {
  const open = names.slice(given.length).map((name) => (Object.hasOwn(named, name) ? named[name] : undefined));
  while (open.length > 0 && open.at(-1) === undefined) open.pop();
  return [...given, ...open];
}

/** Data with an object for each dict that was made here, so that the host can read it; what has none is the same. */
export function lowered(value: Any): Any {
  if (Array.isArray(value)) {
    const made = value.map(lowered);
    return made.some((item, index) => item !== value[index]) || value instanceof Tuple ? made : value;
  }
  if (!(value instanceof Dict)) return value;
  const entries = [...value].map(([key, item]): [Any, Any] => [key, lowered(item)]);
  return entries.every(([key]) => typeof key === "string") ? fromEntries(entries) : new Map(entries);
}

/** A dict as a plain object. */
export function plain(value: Any): Record<string, Any> {
  return value instanceof Map ? Object.fromEntries(value) : value;
}

// Text

export function text(value: Any): string {
  if (typeof value === "string") return value;
  if (value == null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return number(value);
  if (typeof value === "bigint") return String(value);
  if (value instanceof String) return value.valueOf();
  if (value.__str__ !== undefined) return value.__str__();
  return value instanceof Error ? value.message : repr_(value);
}

/** A number as Python writes it. */
function number(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  return numberText(value);
}

export function repr_(value: Any): string {
  if (typeof value === "string") {
    const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
    const escaped = JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll(quote, `\\${quote}`);
    return quote + escaped + quote;
  }
  if (value instanceof Tuple && value.constructor === Tuple) return `(${value.map(repr_).join(", ")}${value.length === 1 ? "," : ""})`;
  if (Array.isArray(value)) return `[${value.map(repr_).join(", ")}]`;
  if (isDict(value)) return `{${items_(value).map(([key, item]) => `${repr_(key)}: ${repr_(item)}`).join(", ")}}`;
  if (value?.__repr__ !== undefined) return value.__repr__();
  return typeof value === "object" && value !== null && !(value instanceof Error) ? String(value) : text(value);
}

/** `{value:form}`. */
export function format_(value: Any, form: string): string {
  const [, grouped, digits, kind] = /^0?\d*(,?)(?:\.(\d+))?([a-z]?)$/.exec(form) ?? [];
  if (kind === "f") return Number(value).toFixed(Number(digits ?? 6)).replace(/\B(?=(\d{3})+(?!\d))/g, grouped ? "," : "");
  if (kind === "g") {
    const short = Number(value).toPrecision(Number(digits ?? 6));
    return number(Number(short));
  }
  if (kind === "x") return Number(value).toString(16).padStart(Number(/^0?(\d*)/.exec(form)?.[1] || 0), "0");
  if (grouped) return text(value).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return text(value);
}

export function bytes_of(items: number[]): Uint8Array {
  return Uint8Array.from(items);
}
