/** The part of Python's standard library that the translated modules use. */

import { at, compared, Dict, eq, isDict, items_, iter, len_, Options, PySet, T, text, Tuple, TypeError_, ValueError_ } from "./values.js";

import { endOfString } from "../values.js";

/* eslint-disable @typescript-eslint/no-explicit-any */
type Any = any;

export const json = {
  dumps(value: Any, options: Any = {}): string {
    const [comma, colon] = options.separators ?? [", ", ": "];
    const named = (key: Any): string => (typeof key === "string" ? key : key === null ? "null" : typeof key === "boolean" ? String(key) : text(key));
    const write = (part: Any): string => {
      if (part == null) return "null";
      if (typeof part === "string") return escaped(part, options.ensure_ascii !== false);
      if (typeof part === "boolean") return String(part);
      if (typeof part === "number" && !Number.isFinite(part)) return Number.isNaN(part) ? "NaN" : part > 0 ? "Infinity" : "-Infinity";
      if (typeof part === "number" || typeof part === "bigint") return text(part);
      if (Array.isArray(part)) return `[${part.map(write).join(comma)}]`;
      if (isDict(part)) {
        const entries = items_(part);
        if (options.sort_keys) {
          if (new Set(entries.map(([key]) => typeof key)).size > 1) throw new TypeError_("keys of several types have no order");
          entries.sort(([a], [b]) => compared(a, b));
        }
        return `{${entries.map(([key, item]) => `${escaped(named(key), options.ensure_ascii !== false)}${colon}${write(item)}`).join(comma)}}`;
      }
      if (options.default === undefined) throw new TypeError_("this is not JSON");
      return write(options.default(part));
    };
    return write(value);
  },
  loads(source: string, { strict = true }: Any = {}): Any {
    try {
      return JSON.parse(source);
    } catch {
      if (strict) throw new ValueError_("this is not JSON");
      return json.loads(withEscapedLines(source));
    }
  },
};

function escaped(value: string, ascii: boolean): string {
  const written = JSON.stringify(value).replaceAll("\u007f", ascii ? "\\u007f" : "\u007f");
  return ascii ? written.replace(/[\u0080-\uffff]/g, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`) : written;
}

/** The JSON text with line breaks and tabs in its strings spelled out. */
function withEscapedLines(source: string): string {
  const parts: string[] = [];
  for (let at = 0; at < source.length; ) {
    const quote = source.indexOf('"', at);
    const from = quote < 0 ? source.length : quote;
    const end = quote < 0 ? from : endOfString(source, from);
    parts.push(source.slice(at, from), source.slice(from, end).replaceAll("\n", "\\n").replaceAll("\r", "\\r").replaceAll("\t", "\\t"));
    at = end;
  }
  return parts.join("");
}

export const functools = {
  /** Remembers what a function has returned for the same arguments. */
  cache(call: Any): Any {
    const known = new Dict();
    return (...given: Any[]) => {
      const key = T(...given);
      if (!known.has(key)) known.set(key, call(...given));
      return known.get(key);
    };
  },
  partial: (call: Any, ...first: Any[]) => (...given: Any[]) => call(...first, ...given),
};

export const itertools = {
  *islice(items: Any, first: number, stop?: number): Generator<Any> {
    const [from, to] = stop === undefined ? [0, first] : [first, stop];
    let index = 0;
    if (to <= 0) return;
    for (const item of iter(items)) {
      if (index >= from) yield item;
      index += 1;
      if (index >= to) return;
    }
  },
  *pairwise(items: Any): Generator<Tuple> {
    let [before, first] = [null as Any, true];
    for (const item of iter(items)) {
      if (!first) yield T(before, item);
      [before, first] = [item, false];
    }
  },
  *groupby(items: Any, options: Any = {}): Generator<Any[]> {
    const key = typeof options === "function" ? options : (options.key ?? ((item: Any) => item));
    let group: Any[] = [];
    let kept: Any;
    for (const item of iter(items)) {
      const own = key(item);
      if (group.length > 0 && !eq(own, kept)) {
        yield [kept, group];
        group = [];
      }
      kept = own;
      group.push(item);
    }
    if (group.length > 0) yield [kept, group];
  },
  *chain(...many: Any[]): Generator<Any> {
    for (const items of many) yield* iter(items);
  },
  *count(first = 0): Generator<number> {
    for (let at = first; ; at += 1) yield at;
  },
};

class Counter extends Dict {
  constructor(items: Any = []) {
    super();
    for (const item of iter(items)) this.set(item, this.__getitem__(item) + 1);
  }
  __getitem__(key: Any): number {
    return this.has(key) ? this.get(key) : 0;
  }
  total(): number {
    return [...this.values()].reduce((sum, count) => sum + count, 0);
  }
  most_common(count?: number): Any[] {
    return [...this].sort(([, a], [, b]) => b - a).slice(0, count);
  }
}

export const collections = {
  Counter: (items: Any = []) => new Counter(items),
  deque: (items: Any = []) => [...iter(items)],
};
export const collections_abc = { Mapping: { kind: "dict" }, Callable: { kind: "callable" }, Sequence: { kind: "list" } };

export const bisect = {
  bisect_left(items: Any, wanted: Any, { key = (item: Any) => item }: Any = {}): number {
    let [low, high] = [0, len_(items)];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compared(key(items[middle]), wanted) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  },
};

export const operator = {
  attrgetter: (name: string) => (object: Any) => object[name],
  itemgetter: (key: Any) => (object: Any) => at(object, key),
};

export const math = {
  ...Object.fromEntries((["floor", "ceil", "log", "log10", "log2", "sqrt", "trunc"] as const).map((name) => [name, Math[name]])),
  isfinite: Number.isFinite,
  isnan: Number.isNaN,
  isinf: (value: number) => Math.abs(value) === Infinity,
  inf: Infinity,
} as Record<string, Any>;

function copied(value: Any, deep: boolean): Any {
  const inner = (part: Any): Any => (deep ? copied(part, true) : part);
  if (value instanceof Tuple) return value;
  if (Array.isArray(value)) return value.map(inner);
  if (value instanceof Map) return new Dict([...value].map(([key, part]) => [key, inner(part)] as [Any, Any]));
  if (value instanceof PySet) return new PySet(value);
  if (isDict(value)) return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, inner(part)]));
  if (typeof value !== "object" || value === null) return value;
  return Object.assign(Object.create(Object.getPrototypeOf(value)), value);
}
export const copy = { copy: (value: Any) => copied(value, false), deepcopy: (value: Any) => copied(value, true) };

const CATEGORIES = ["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"].map((name) => [name, new RegExp(`^\\p{${name}}`, "u")] as const);
export const unicodedata = {
  category: (mark: string) => CATEGORIES.find(([, pattern]) => pattern.test(mark))?.[0] ?? "L",
  combining: (mark: string) => (/^\p{M}/u.test(mark) ? 1 : 0),
  normalize: (form: string, own: string) => own.normalize(form),
};

export const urllib_parse = {
  unquote(written: string): string {
    const bytes = [...new TextEncoder().encode(written)];
    const found: number[] = [];
    for (let at = 0; at < bytes.length; at += 1) {
      const code = bytes[at] === 37 ? Number.parseInt(String.fromCharCode(bytes[at + 1] ?? 0, bytes[at + 2] ?? 0), 16) : Number.NaN;
      found.push(Number.isNaN(code) ? bytes[at]! : code);
      if (!Number.isNaN(code)) at += 2;
    }
    return new TextDecoder().decode(Uint8Array.from(found));
  },
};

function asdict(value: Any): Dict {
  return new Dict(value.__struct_fields__.map((name: string) => [name, value[name]]));
}
export const msgspec_structs = {
  asdict,
  replace(value: Any, changes: Options): Any {
    return new value.constructor(...value.__struct_fields__.map((name: string) => (name in changes ? changes[name] : value[name])));
  },
};
export const dataclasses = { replace: msgspec_structs.replace };
export const msgspec = { structs: msgspec_structs };

/** One thread: nothing to wait for. */
export const threading = { Lock: () => null, RLock: () => null, local: () => ({}) };

/** A Literal is the tuple of its values. */
export const typing = { get_args: (literal: Tuple) => literal };
