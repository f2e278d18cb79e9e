/** Types of schemas as short text; a type that several places share is written once, under a name. Byte for byte what the Python package writes. */

import { isObject } from "../values.js";
import type { Document, Schema, SchemaObject } from "./document.js";
import { allowedValues, lengthOf, remark } from "./facts.js";
import { isIdentifier } from "./naming.js";

/** The name of a type that its places call differently. */
const NO_NAME = "Type";
const PLAIN = new Set(["string", "integer", "number", "boolean", "null"]);
const MOST_CHOICES = 20;
const LONGEST_CHOICES = 200;
const MOST_FIELDS = 60;
const MOST_SUBSCHEMAS = 1000; // of one schema; a server's schema may be built to grow without end
const DEEPEST = 30;
const SMALL = 30; // characters of a type without a title that says more than a name would
const MOST_COPIES = 32; // of a type without a name: types within types would grow without end
const MOST_BRANCHES = 16;
const LONGEST_NAME = 40;
const MOST_WORDS = 5;
const LONGEST_CHAIN = 32;
const WORDS = new Set(["$ref", "$defs", "definitions", "title", "description", "default", "examples", "$schema"]);
const RESERVED = ["Fn"];
const OF_TEXT = new Set([["string"], ["string", "|", "null"], ["string", "[]"]].map((template) => JSON.stringify(template)));

/** Text, remarks that say nothing about the type, and the numbers of object types between them. */
export type Template = (string | number | { fact: string })[];

/** One object type as it stands at one place of a schema. */
interface Shape {
  body: Template;
  hint: string;
  /** Whether the hint is a name that the schema gives, rather than the field's. */
  titled: boolean;
  isMap: boolean;
  /** Equal for shapes that are the same type; -1 until it is known. */
  kind: number;
}

/** Types of any number of schemas, each written with the names of all. */
export class TypeBook {
  readonly shapes: Shape[] = [];
  private classified = 0;
  private readonly taken: Set<string>;
  private readonly kinds = new Map<string, number>();
  private readonly first = new Map<number, Shape>();
  private readonly roots: Template[] = [];
  private names: Map<number, string> | null = null;
  private readonly used = new Set<number>();
  private readonly defined = new Set<number>();
  private readonly said = new Set<string>();

  constructor(taken: Iterable<string> = [], readonly mostFields = MOST_FIELDS) {
    this.taken = new Set([...RESERVED, ...taken]);
  }

  /** Takes in what a Reader of this book has read, and what will be written once. */
  enter(template: Template): Template {
    this.classify();
    this.roots.push(template);
    this.names = null;
    return template;
  }

  /** A template with its types, by their names where they have names. */
  text(template: Template): string {
    return template.map((piece) => (typeof piece === "number" ? this.gap(piece) : textOf(piece))).join("");
  }

  /** A template that a Reader with a depth has read, without names. */
  plain(template: Template): string {
    return template.map((piece) => (typeof piece === "number" ? this.plain(this.shapes[piece]!.body) : textOf(piece))).join("");
  }

  /** `Name = {…}` for each type that was used by name since the last time, and for those within. */
  definitions(): string[] {
    const lines: string[] = [];
    for (;;) {
      const fresh = [...this.used].filter((kind) => !this.defined.has(kind));
      if (fresh.length === 0) return lines;
      for (const kind of fresh) {
        this.defined.add(kind);
        lines.push(`${this.chosen().get(kind)!} = ${this.text(this.first.get(kind)!.body)}`);
      }
    }
  }

  /** Whether this is not said yet of a field of that name. */
  isNew(name: string, said: string): boolean {
    const known = this.said.size;
    this.said.add(JSON.stringify([name, said]));
    return this.said.size > known;
  }

  /** The shape is complete: it is classified now, unless it contains what is not complete. */
  close(at: number): void {
    const gaps = this.shapes[at]!.body.filter((piece) => typeof piece === "number");
    if (gaps.every((gap) => this.shapes[gap]!.kind >= 0)) this.settle(at, this.key(at));
  }

  /** Takes in another name for a type: a title, or else what the names of its fields have in common. */
  suggest(at: number, hint: string, titled: boolean): void {
    const first = this.first.get(this.shapes[at]!.kind) ?? this.shapes[at]!;
    if (!hint || first.titled) return;
    first.hint = titled || !first.hint ? hint : commonEnd(first.hint, hint) || NO_NAME;
    first.titled = titled;
  }

  private gap(number: number): string {
    const { kind } = this.shapes[number]!;
    const name = this.chosen().get(kind);
    if (name === undefined) return this.text(this.first.get(kind)!.body);
    this.used.add(kind);
    return name;
  }

  /** Tells which shapes are the same type. A type that contains itself is compared with all that it reaches. */
  private classify(): void {
    const pending: number[] = [];
    for (let at = this.classified; at < this.shapes.length; at += 1) if (this.shapes[at]!.kind < 0) pending.push(at);
    const keys = pending.map((at) => this.key(at));
    pending.forEach((at, index) => this.settle(at, keys[index]!));
    this.classified = this.shapes.length;
  }

  private settle(at: number, key: string): void {
    const shape = this.shapes[at]!;
    if (!this.kinds.has(key)) this.kinds.set(key, this.kinds.size);
    shape.kind = this.kinds.get(key)!;
    if (!this.first.has(shape.kind)) this.first.set(shape.kind, shape);
    this.suggest(at, shape.hint, shape.titled);
  }

  private key(start: number): string {
    const numbers = new Map([[start, 0]]);
    const queue = [start];
    const key: unknown[] = [];
    for (const at of queue) {
      key.push(null);
      for (const piece of this.shapes[at]!.body) {
        if (typeof piece === "string") key.push(piece);
        else if (typeof piece === "number") {
          const { kind } = this.shapes[piece]!;
          if (kind < 0 && !numbers.has(piece)) {
            numbers.set(piece, numbers.size);
            queue.push(piece);
          }
          key.push(kind >= 0 ? [kind] : numbers.get(piece));
        }
      }
    }
    return JSON.stringify(key);
  }

  /** The types that have names. */
  private chosen(): Map<number, string> {
    this.names ??= this.choose();
    return this.names;
  }

  private choose(): Map<number, string> {
    const [order, looped] = this.order();
    const uses = new Map<number, number>();
    for (const kind of this.gaps(this.roots)) uses.set(kind, (uses.get(kind) ?? 0) + 1);
    const names = new Map<number, string>();
    const used = new Set(this.taken);
    for (const kind of order) { // what holds a type is before it
      const shape = this.first.get(kind)!;
      const name = free(typeName(shape.hint) || NO_NAME, used);
      let times = uses.get(kind) ?? 0;
      const size = shape.body.reduce<number>((sum, piece) => sum + (typeof piece === "number" ? 8 : lengthOf(textOf(piece))), 0);
      const saves = (times - 1) * size > (times + 1) * name.length + 6 && !shape.isMap && (shape.titled || size > SMALL);
      if (saves || looped.has(kind) || times > MOST_COPIES) {
        names.set(kind, name);
        used.add(name);
        times = 1;
      }
      for (const inner of this.gaps([shape.body])) uses.set(inner, (uses.get(inner) ?? 0) + times);
    }
    return names;
  }

  /** The types from the outside in, in the order of their first use, and those that contain themselves. */
  private order(): [number[], Set<number>] {
    const done = new Set<number>();
    const open = new Set<number>();
    const looped = new Set<number>();
    for (const root of this.gaps(this.roots).reverse()) {
      const stack: [number, boolean][] = [[root, false]];
      while (stack.length > 0) {
        const [kind, leaving] = stack.pop()!;
        if (leaving) {
          open.delete(kind);
          done.add(kind);
        } else if (open.has(kind)) {
          looped.add(kind);
        } else if (!done.has(kind)) {
          open.add(kind);
          stack.push([kind, true]);
          for (const inner of this.gaps([this.first.get(kind)!.body])) stack.push([inner, false]);
        }
      }
    }
    return [[...done].reverse(), looped];
  }

  private gaps(templates: Template[]): number[] {
    return templates.flatMap((template) => template.filter((piece) => typeof piece === "number").map((piece) => this.shapes[piece]!.kind));
  }
}

/** Reads the schemas of one document into templates of a book; only so deep where a depth is given. */
export class Reader {
  private readonly shapes = new Map<object, number>();
  private readonly done = new Map<object, Template>();
  private readonly open = new Set<object>();
  private left = MOST_SUBSCHEMAS;
  private readonly facts: boolean;
  private depth: number | null;

  constructor(private readonly book: TypeBook, private readonly document: Document, options: { facts?: boolean; depth?: number } = {}) {
    this.facts = options.facts ?? false;
    this.depth = options.depth ?? null;
  }

  /** One schema; `hint` is a name for it. */
  read(given: Schema, hint = "", titled = false): Template {
    if (isObject(given) && typeof given["$ref"] === "string") {
      const last = given["$ref"].split("/").at(-1)!;
      if (typeName(last)) [hint, titled] = [last, true];
    }
    const schema = this.target(given);
    if (schema === false) return ["never"];
    if (!isObject(schema)) return ["any"];
    const known = this.done.get(schema);
    if (known !== undefined) {
      if (known.length === 1 && typeof known[0] === "number") this.book.suggest(known[0], hint, titled);
      return known;
    }
    if (this.open.has(schema) || this.left <= 0 || this.open.size >= DEEPEST) return this.again(schema);
    const title = schema["title"];
    if (typeof title === "string" && typeName(title)) [hint, titled] = [title, true];
    this.left -= 1;
    this.open.add(schema);
    const chosen = this.choices(schema);
    let template: Template = [chosen];
    if (!chosen) template = this.union(schema, hint, titled) ?? this.typed(schema, hint, titled);
    this.open.delete(schema);
    if (this.depth === null) this.done.set(schema, template);
    return template;
  }

  /** `name?: type`, with the values that its description allows, and what else that says. */
  field(name: string, schema: Schema, required: boolean): Template {
    let template = this.read(schema, name);
    const part = this.document.deref(schema);
    const description = isObject(part) ? part["description"] : null;
    const words = typeof description === "string" ? description : "";
    const values = OF_TEXT.has(JSON.stringify(template)) ? allowedValues(words) : [];
    if (values.length > 0) {
      const listed = values.map(minified).join("|");
      template = [template.includes("[]") ? `(${listed})` : listed, ...template.slice(1)];
    }
    const said = this.facts ? remark(name, words, isObject(part) ? part : {}) : "";
    const fact = said && this.book.isNew(name, said) ? [{ fact: ` (${said})` }] : [];
    return [`${keyText(name)}${required ? "" : "?"}: `, ...template, ...fact];
  }

  /** What a reference leads to: the same object wherever nothing but words stands beside the reference. */
  private target(given: Schema): Schema {
    let schema = given;
    for (let step = 0; step < LONGEST_CHAIN; step += 1) {
      if (!isObject(schema) || typeof schema["$ref"] !== "string" || Object.keys(schema).some((key) => !WORDS.has(key))) break;
      schema = this.document.pointer(schema["$ref"]);
    }
    return this.document.deref(schema);
  }

  /** A schema within itself, or one for which there is no more room. */
  private again(schema: SchemaObject): Template {
    const at = this.shapes.get(schema);
    if (at === undefined) return [this.kindsText(schema)];
    const others = [...(this.document.kinds(schema) ?? [])].filter((kind) => kind !== "object").sort();
    return either([[at], ...others.map((kind) => [kind])]);
  }

  private kindsText(schema: SchemaObject): string {
    return [...(this.document.kinds(schema) ?? [])].sort().join("|") || "any";
  }

  private choices(schema: SchemaObject): string {
    const values = "const" in schema ? [schema["const"]] : schema["enum"];
    if (!Array.isArray(values) || values.length === 0) return "";
    const text = values.map(minified).join("|");
    return values.length <= MOST_CHOICES && lengthOf(text) <= LONGEST_CHOICES ? text : this.kindsText(schema);
  }

  private union(schema: SchemaObject, hint: string, titled: boolean): Template | null {
    const named = isObject(schema["properties"]) && Object.keys(schema["properties"]).length > 0;
    for (const keyword of ["anyOf", "oneOf"]) {
      const branches = schema[keyword];
      if (Array.isArray(branches) && branches.length > 0 && !named) {
        return either(branches.slice(0, MOST_BRANCHES).map((branch) => this.read(branch, hint)));
      }
    }
    const parts = schema["allOf"];
    if (!Array.isArray(parts) || "type" in schema || "properties" in schema) return null;
    if (parts.length === 1) return this.read(parts[0], hint, titled);
    if (Object.keys(this.document.properties(schema)).length > 0) return null;
    for (const part of parts) {
      const template = this.read(part, hint);
      if (template.length !== 1 || template[0] !== "any") return template;
    }
    return ["any"];
  }

  private typed(schema: SchemaObject, hint: string, titled: boolean): Template {
    const declared = schema["type"];
    let kinds = [...(this.document.kinds(schema) ?? [])].sort();
    if (typeof declared === "string") kinds = [declared];
    else if (Array.isArray(declared)) kinds = declared.map(String);
    const template = either(kinds.map((kind) => this.one(kind, schema, hint, titled)));
    return template.length > 0 ? template : ["any"];
  }

  private one(kind: string, schema: SchemaObject, hint: string, titled: boolean): Template {
    if (kind === "array") return this.array(schema, hint);
    if (kind === "object") return this.object(schema, hint, titled);
    if (kind === "string" && schema["contentMediaType"] === "application/json") {
      const inner = schema["contentSchema"];
      return isObject(inner) ? ["string (JSON: ", ...this.read(inner, hint), ")"] : ["string (JSON)"];
    }
    return [PLAIN.has(kind) ? kind : "any"]; // a server's result schema may say anything
  }

  private array(schema: SchemaObject, hint: string): Template {
    const first = schema["prefixItems"];
    if (Array.isArray(first)) return ["[", ...joined(", ", first.slice(0, MOST_BRANCHES).map((part) => this.read(part, hint))), "]"];
    const items = schema["items"];
    if (!isObject(items)) return ["array"];
    const inner = this.read(items, singular(hint));
    return hasBar(inner) ? ["(", ...inner, ")[]"] : [...inner, "[]"];
  }

  private object(schema: SchemaObject, hint: string, titled: boolean): Template {
    const named = Object.entries(this.document.properties(schema));
    const must = new Set(this.document.required(schema));
    const given = truthy(schema["additionalProperties"]) ? schema["additionalProperties"] : firstValue(schema["patternProperties"]);
    const rest = isObject(given) && Object.keys(given).length > 0 ? given : null;
    if ((named.length === 0 && rest === null) || this.depth === 0) return ["object"];
    const at = this.book.shapes.length;
    const shape: Shape = { body: [], hint, titled, isMap: named.length === 0, kind: -1 };
    this.book.shapes.push(shape);
    if (this.depth === null) this.shapes.set(schema, at);
    else this.depth -= 1;
    this.fill(shape, at, named, must, rest);
    if (this.depth !== null) this.depth += 1;
    return [at];
  }

  private fill(shape: Shape, at: number, named: [string, Schema][], must: Set<string>, rest: Schema): void {
    const most = this.book.mostFields;
    const fields = named.slice(0, most).map(([name, part]) => this.field(name, part, must.has(name)));
    if (rest !== null) fields.push(["[string]: ", ...this.read(rest, singular(shape.hint))]);
    if (named.length > most) fields.push(["…"]);
    shape.body = ["{", ...joined(", ", fields), "}"];
    this.book.close(at);
  }
}

/** A title, a key or a field's name as the name of a type; empty where nothing can be made of it. */
export function typeName(text: string): string {
  const words = text.match(/[A-Za-z0-9]+/g) ?? [];
  if (words.length === 0 || words.length > MOST_WORDS) return "";
  const name = words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join("").slice(0, LONGEST_NAME);
  return /^\d/.test(name) ? `T${name}` : name;
}

/** The name of one element of a list of that name. */
export function singular(name: string): string {
  for (const [ending, instead] of [["ies", "y"], ["sses", "ss"], ["xes", "x"]] as const) {
    if (name.endsWith(ending) && lengthOf(name) > ending.length + 1) return name.slice(0, -ending.length) + instead;
  }
  return /[^su]s$/u.test(name) ? name.slice(0, -1) : name;
}

/** A field's name as scripts write it. */
export function keyText(name: string): string {
  return isIdentifier(name) ? name : `[${minified(name)}]`;
}

/** JSON without spaces. */
export function minified(value: unknown): string {
  return JSON.stringify(value);
}

/** The templates with that text between them. */
export function joined(between: string, parts: Template[]): Template {
  return parts.flatMap((part, at) => (at > 0 ? [between, ...part] : part));
}

function textOf(piece: string | { fact: string }): string {
  return typeof piece === "string" ? piece : piece.fact;
}

/** The last words that two names share: the address of `address` and `billing_address`. */
function commonEnd(left: string, right: string): string {
  if (left === right) return left;
  const split = (name: string): string[] => name.match(/[A-Z]?[a-z0-9]+|[A-Z]+/g) ?? [];
  const [words, others] = [split(left), split(right)];
  let shared = 0;
  while (
    shared < Math.min(words.length, others.length) &&
    words.at(-1 - shared)!.toLowerCase() === others.at(-1 - shared)!.toLowerCase()
  ) shared += 1;
  return words.slice(words.length - shared).join("_");
}

function free(name: string, used: Set<string>): string {
  let [number, candidate] = [1, name];
  while (used.has(candidate)) {
    number += 1;
    candidate = `${name}${number}`;
  }
  return candidate;
}

/** Whether Python takes the value for true. */
function truthy(value: unknown): boolean {
  return isObject(value) ? Object.keys(value).length > 0 : Boolean(value);
}

function firstValue(table: unknown): unknown {
  return isObject(table) ? Object.values(table)[0] : null;
}

function either(templates: Template[]): Template {
  const unique = [...new Map(templates.map((template) => [JSON.stringify(template), template])).values()];
  return unique.some((template) => template.length === 1 && template[0] === "any") ? ["any"] : joined("|", unique);
}

/** Whether a `|` stands outside all brackets and strings. */
function hasBar(template: Template): boolean {
  let depth = 0;
  const text = template.map((piece) => (typeof piece === "number" ? "" : textOf(piece))).join("");
  for (const char of text.replace(/"(?:[^"\\]|\\.)*"/gs, "")) {
    if ("{[(".includes(char)) depth += 1;
    else if ("}])".includes(char)) depth -= 1;
    if (char === "|" && depth === 0) return true;
  }
  return false;
}
