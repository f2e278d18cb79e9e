/** What is wrong with a call's arguments, in words that let a model correct the call. */

import { nearest, suggestion } from "../suggest.js";
import { fromEntries } from "../json.js";
import { count, counted, entriesOf, isObject, isTable, numberText } from "../values.js";
import { accepts, Document, kindOf, partsOf, type Kinds, type Schema, type SchemaObject } from "./document.js";
import type { Effort } from "./effort.js";
import { isIdentifier } from "./naming.js";
import { typeText } from "./signature.js";

const MOST_PROBLEMS = 12;
const MOST_STEPS = 5_000;
const LONGEST_KEY = 100;
type Path = (string | number)[];
/** Whether a value fits a small schema. */
export type Fits = (keyword: string, rule: unknown, value: unknown) => boolean;

/** Problems as lines such as `items[3].price: expected number, got "x" (string)`. */
export function findProblems(document: Document, value: unknown, fits: Fits, effort: Effort, firstIndex = 0): string[] {
  const walker = new Walker(document, fits, effort, firstIndex);
  walker.walk(document.root, value, []);
  const lines = walker.problems.map(([path, text]) => (path ? `${path}: ${text}` : text));
  return lines.length > MOST_PROBLEMS ? [...lines.slice(0, MOST_PROBLEMS), "… and more"] : lines;
}

/** `items[3].price`. */
export function pathText(path: Path, firstIndex = 0): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part + firstIndex}]`;
    else {
      const name = part.length > LONGEST_KEY ? `${part.slice(0, LONGEST_KEY)}…` : part;
      if (isIdentifier(name)) text += text ? `.${name}` : name;
      else text += text ? `[${JSON.stringify(name)}]` : name;
    }
  }
  return text;
}

/** A value as it came, bounded: `"7" (string)`, `[1,2] (array)`, `null`. */
export function short(value: unknown, longest = 60): string {
  if (value instanceof Uint8Array) return "a string that is not UTF-8";
  if (value === null || value === undefined || typeof value === "boolean") return String(value ?? null);
  if (Array.isArray(value) && value.length > 20) return `an array of ${count(value.length)} items`;
  if (isTable(value) && !Array.isArray(value) && entriesOf(value).length > 20) {
    return `an object of ${count(entriesOf(value).length)} keys`;
  }
  const whole = typeof value === "bigint" ? String(value) : typeof value === "number" ? numberText(value) : JSON.stringify(bounded(value, longest));
  const text = whole.length <= longest ? whole : `${whole.slice(0, longest - 1)}…`;
  return `${text} (${kindOf(value)})`;
}

class Walker {
  readonly problems: [string, string][] = [];
  private readonly open = new Map<object, Set<string>>();
  private steps = 0;

  constructor(
    private readonly document: Document,
    private readonly fits: Fits,
    private readonly effort: Effort,
    private readonly firstIndex: number,
  ) {}

  walk(given: Schema, value: unknown, path: Path): void {
    if (typeof value === "symbol") return; // only the run knows it
    this.steps += 1;
    const schema = this.document.deref(given);
    if (this.steps > MOST_STEPS || this.problems.length > MOST_PROBLEMS) return;
    if (schema === false) this.note(path, `no value is allowed here, got ${short(value)}`);
    if (!isObject(schema) || !this.enter(schema, path)) return;
    const wrong = this.wrongType(schema, value);
    if (wrong !== null) return this.note(path, wrong);
    for (const text of this.ownRules(schema, value)) this.note(path, text);
    for (const part of partsOf(schema, "allOf")) this.walk(part, value, path);
    for (const keyword of ["anyOf", "oneOf"]) {
      if (Array.isArray(schema[keyword]) && !this.fits(keyword, schema[keyword], value)) this.union(schema, keyword, value, path);
    }
    if (Array.isArray(value)) this.array(schema, value, path);
    else if (isTable(value)) this.table(schema, value as SchemaObject, path);
  }

  private enter(schema: object, path: Path): boolean {
    const paths = this.open.get(schema) ?? new Set();
    const key = JSON.stringify(path);
    if (paths.has(key)) return false;
    this.open.set(schema, paths.add(key));
    return true;
  }

  private note(path: Path, text: string): void {
    const place = pathText(path, this.firstIndex);
    if (!this.problems.some(([other, said]) => other === place && said === text)) this.problems.push([place, text]);
  }

  private wrongType(schema: SchemaObject, value: unknown): string | null {
    const wanted = this.document.kinds(schema);
    const expected = typeText(schema, this.document, 0);
    if (typeof value === "number" && !Number.isFinite(value) && wanted !== null) {
      const name = Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
      return `expected ${expected}, got ${name}, which is not a JSON number`;
    }
    if (value instanceof Uint8Array && !takesBytes(schema, wanted, this.document)) return `expected ${expected}, got ${short(value)}`;
    const kind = kindOf(value);
    if (accepts(wanted, kind)) return null;
    const indexes = value instanceof Map && [...value.keys()].some((key) => typeof key === "number");
    const note = indexes && wanted?.has("array") ? "; the indexes of an array run from 1 without gaps" : "";
    return `expected ${expected}, got ${short(value)}${note}`;
  }

  private *ownRules(schema: SchemaObject, value: unknown): Iterable<string> {
    const options = schema["enum"];
    if (Array.isArray(options) && !this.fits("enum", options, value)) {
      yield `expected ${listed(options)}, got ${short(value)}${meant(value, options)}`;
    }
    for (const [keyword, wording] of Object.entries(RULES)) {
      if (!(keyword in schema) || this.fits(keyword, schema[keyword], value)) continue;
      const rule = keyword === "const" ? JSON.stringify(schema[keyword]) : String(schema[keyword]);
      yield `expected ${bound(wording, schema[keyword], rule)}, got ${amount(keyword, value)}`;
    }
  }

  private union(schema: SchemaObject, keyword: string, value: unknown, path: Path): void {
    const before = this.problems.length;
    const branches = partsOf(schema, keyword);
    const tag = tagOf(this.document, branches, value, this.effort);
    if (tag !== null) this.tag(tag[0], tag[1], value as SchemaObject, path);
    else {
      const at = this.document.bestBranch(branches, value, this.effort);
      if (at !== null) this.walk(branches[at], value, path);
    }
    if (this.problems.length === before) {
      const how = keyword === "oneOf" ? "exactly one" : "one";
      this.note(path, `expected ${how} of ${typeText(schema, this.document, 1)}, got ${short(value)}`);
    }
  }

  /** The key that tells the branches of a union apart has a value that belongs to none of them. */
  private tag(name: string, options: string[], value: Map<string | number, unknown> | SchemaObject, path: Path): void {
    const given = entriesOf(value).find(([key]) => key === name);
    if (given === undefined) this.note([...path, name], `missing, expected ${listed(options)}`);
    else this.note([...path, name], `expected ${listed(options)}, got ${short(given[1])}${meant(given[1], options)}`);
  }

  /** Keys that a rule for `propertyNames` refuses; `closing` makes such rules. */
  private keys(rule: SchemaObject, names: Set<string | number>, path: Path): void {
    const options = [rule, ...partsOf(rule, "anyOf")].find((part) => isObject(part) && Array.isArray(part["enum"]));
    const named = isObject(options) ? fromEntries((options["enum"] as string[]).map((name) => [name, true])) : {};
    for (const key of names) {
      if (this.problems.length > MOST_PROBLEMS) return;
      if (this.fits("propertyNames", rule, fromEntries([[String(key), null]]))) continue;
      this.note([...path, String(key).slice(0, LONGEST_KEY + 1)], this.unknown(String(key), named, names, path));
    }
  }

  private table(schema: SchemaObject, value: Map<string | number, unknown> | SchemaObject, path: Path): void {
    const named = isObject(schema["properties"]) ? schema["properties"] : {};
    const items = entriesOf(value);
    const names = new Set(items.map(([name]) => name));
    for (const name of partsOf(schema, "required") as string[]) {
      if (names.has(name)) continue;
      const expected = typeText(Object.hasOwn(named, name) ? named[name] : true, this.document, 1);
      this.note([...path, name], `missing${expected === "any" ? "" : `, expected ${expected}`}`);
    }
    if (isObject(schema["propertyNames"])) this.keys(schema["propertyNames"], names, path);
    const rest = "additionalProperties" in schema ? schema["additionalProperties"] : true;
    const patterns = isObject(schema["patternProperties"]) && Object.keys(schema["patternProperties"]).length > 0;
    for (const [key, item] of items) {
      const name = String(key).slice(0, LONGEST_KEY + 1); // paths are compared and shown, so that they stay short
      if (typeof key === "string" && Object.hasOwn(named, key)) this.walk(named[key], item, [...path, name]);
      else if (rest === false && !patterns) this.note([...path, name], this.unknown(String(key), named, names, path));
      else if (isObject(rest) && !patterns) this.walk(rest, item, [...path, name]);
    }
  }

  private unknown(name: string, named: SchemaObject, given: Set<string | number>, path: Path): string {
    const known = Object.keys(named);
    if (path.length === 0) {
      const outer = known.find((option) => Object.hasOwn(this.document.properties(named[option]), name));
      return `unknown parameter${outer === undefined ? suggestion(name, known) : `; did you mean '${outer}.${name}'?`}`;
    }
    const free = known.filter((option) => !given.has(option));
    const close = nearest(name, free.length > 0 ? free : known, true);
    if (close.length > 0) return `unknown key; did you mean '${close[0]}'?`;
    return `unknown key${known.length > 0 ? `; known keys: ${known.slice(0, 20).join(", ")}` : ""}`;
  }

  private array(schema: SchemaObject, value: unknown[], path: Path): void {
    let items = schema["items"];
    let first = schema["prefixItems"];
    if (Array.isArray(items)) [first, items] = [items, schema["additionalItems"]]; // drafts before 2020-12
    const heads = Array.isArray(first) ? first : [];
    if (value.length > heads.length && items === false) {
      this.note(path, `expected at most ${counted(heads.length, "item")}, got ${value.length}`);
    }
    for (const [index, item] of value.entries()) {
      if (this.problems.length > MOST_PROBLEMS) return;
      const part: unknown = index < heads.length ? heads[index] : items;
      if (isObject(part)) this.walk(part, item, [...path, index]);
    }
  }
}

/**
 * The key whose listed values tell all branches of a union for objects apart, and those values.
 *
 * null where there is no such key, or where it has one of the values.
 */
function tagOf(document: Document, branches: Schema[], value: unknown, effort: Effort): [string, string[]] | null {
  if (!isTable(value) || Array.isArray(value)) return null;
  const objects = branches.filter((branch) => accepts(document.kinds(branch), "object"));
  const named = objects.map((branch) => document.properties(branch));
  if (named.length < 2) return null;
  for (const name of Object.keys(named[0]!)) {
    effort.spend(named.length);
    const options = named.map((fields) => optionsOf(document.deref(Object.hasOwn(fields, name) ? fields[name] : true)));
    if (options.some((each) => each.length === 0)) continue;
    const all = [...new Set(options.flat())];
    const given = entriesOf(value).find(([key]) => key === name);
    return given !== undefined && all.includes(given[1] as string) ? null : [name, all];
  }
  return null;
}

/** The texts that a schema lists as its only values. */
function optionsOf(schema: Schema): string[] {
  if (!isObject(schema)) return [];
  const options = "const" in schema ? [schema["const"]] : schema["enum"];
  return Array.isArray(options) && options.every((option) => typeof option === "string") ? options : [];
}

function listed(options: unknown[]): string {
  const texts = options.slice(0, 20).map((option) => JSON.stringify(option)).join(", ");
  return `one of ${texts}${options.length > 20 ? ", …" : ""}`;
}

function meant(value: unknown, options: unknown[]): string {
  return typeof value === "string" ? suggestion(value, options.map(String)) : "";
}

function takesBytes(schema: SchemaObject, wanted: Kinds, document: Document): boolean {
  if (wanted === null || schema["format"] === "binary") return true;
  const branches = [...partsOf(schema, "anyOf"), ...partsOf(schema, "oneOf")].map((branch) => document.deref(branch));
  return branches.some((part) => isObject(part) && part["format"] === "binary");
}

/** A rule in words; a noun behind the number is in the singular or the plural. */
function bound(wording: string, rule: unknown, text: string): string {
  const [start, noun] = wording.split("{} ");
  if (noun !== undefined && typeof rule === "number" && Number.isInteger(rule)) return start! + counted(rule, noun.replace(/s$/, ""));
  return wording.replace("{}", () => text);
}

function amount(keyword: string, value: unknown): string {
  if (/Items$|Properties$/.test(keyword) && keyword !== "uniqueItems" && isTable(value)) return String(entriesOf(value).length);
  if (/Length$/.test(keyword) && typeof value === "string") {
    return value ? `${Array.from(value).length} in ${short(value)}` : "the empty string";
  }
  return short(value);
}

/** Enough of the value to write `longest` characters, so that a large one costs nothing. */
function bounded(value: unknown, longest: number, depth = 3): unknown {
  if (typeof value === "string") return value.slice(0, longest);
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Uint8Array) return `<${value.length} bytes>`;
  if (Array.isArray(value)) return depth ? value.slice(0, longest).map((item) => bounded(item, longest, depth - 1)) : "…";
  if (!isTable(value)) return value;
  if (!depth) return "…";
  const kept = entriesOf(value).slice(0, longest);
  return fromEntries(kept.map(([name, item]) => [String(name).slice(0, longest), bounded(item, longest, depth - 1)]));
}

const RULES: Record<string, string> = {
  const: "{}",
  minimum: "at least {}",
  maximum: "at most {}",
  exclusiveMinimum: "more than {}",
  exclusiveMaximum: "less than {}",
  multipleOf: "a multiple of {}",
  minLength: "at least {} characters",
  maxLength: "at most {} characters",
  pattern: "text that matches {}",
  minItems: "at least {} items",
  maxItems: "at most {} items",
  uniqueItems: "items without duplicates",
  minProperties: "at least {} keys",
  maxProperties: "at most {} keys",
};
