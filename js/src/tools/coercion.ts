/**
 * Coercion: a script's values made to fit JSON, directed by the schema.
 *
 *     an empty array where only an object fits        [] becomes {}, and the other way round
 *     integer keys where an object is wanted          {10: "x"} becomes {"10": "x"}
 *     null for an optional property that cannot be null    as if it had not been given
 *
 * Nothing else changes: a string never becomes a number.
 */

import { fromEntries, setField } from "../json.js";
import { isObject, isTable } from "../values.js";
import { accepts, Document, partsOf, type Kinds, type Schema, type SchemaObject } from "./document.js";
import type { Effort } from "./effort.js";

export type Coerce = (value: unknown, effort: Effort) => unknown;
type Step = Coerce | null;

const ANNOTATIONS = new Set(["$comment", "default", "deprecated", "description", "examples", "title"]);
const PLAIN_KEYWORDS = new Set([
  ...ANNOTATIONS, "$defs", "$schema", "additionalProperties", "definitions", "items", "maxItems", "maxProperties",
  "minItems", "minProperties", "prefixItems", "properties", "required", "type",
]);

export function compileCoercion(document: Document): Step {
  return new Compiler(document).compile(document.root);
}

/** Whether JSON can express the value exactly. */
export function isJson(value: unknown): boolean {
  if (typeof value === "string") return !/[\ud800-\udfff]/u.test(value);
  if (typeof value === "number") return Number.isFinite(value);
  if (value instanceof Uint8Array || value instanceof Map) return false;
  if (Array.isArray(value)) return value.every(isJson);
  if (isObject(value)) return Object.entries(value).every(([name, item]) => isJson(name) && isJson(item));
  return true;
}

/** A value that JSON cannot express, in a place where the schema would have to judge it. */
export class Refused extends Error {
  constructor(
    readonly path: (string | number)[],
    readonly reason: string,
  ) {
    super(reason);
  }
}

/** The value for the validator: what JSON cannot express is replaced where the schema says nothing about it. */
export function jsonForm(value: unknown, document: Document, given: Schema = document.root, path: (string | number)[] = []): unknown {
  const schema = target(given, document);
  if (saysNothing(schema)) return null;
  if (value instanceof Uint8Array && isBinary(schema, document)) return "";
  if (!isTable(value) || !isObject(schema) || Object.keys(schema).some((word) => !PLAIN_KEYWORDS.has(word))) {
    if (isJson(value)) return value;
    throw new Refused(path, reasonFor(value));
  }
  if (Array.isArray(value)) {
    const heads = partsOf(schema, "prefixItems");
    const rest = "items" in schema ? schema["items"] : true;
    return value.map((item, at) => jsonForm(item, document, at < heads.length ? heads[at] : rest, [...path, at]));
  }
  if (value instanceof Map || !Object.keys(value).every(isJson)) throw new Refused(path, reasonFor(value));
  const named = isObject(schema["properties"]) ? schema["properties"] : {};
  const rest = "additionalProperties" in schema ? schema["additionalProperties"] : true;
  return fromEntries(
    Object.entries(value).map(([name, item]) => [
      name, jsonForm(item, document, Object.hasOwn(named, name) ? named[name] : rest, [...path, name]),
    ]),
  );
}

class Compiler {
  private readonly refs = new Map<string, Step>();
  private readonly open = new Set<string>();
  /** The open references that no property or item lies behind: following one again would never end. */
  private here = new Set<string>();

  constructor(private readonly document: Document) {}

  compile(schema: Schema): Step {
    if (!isObject(schema)) return null;
    const wanted = this.document.kinds(schema);
    const steps = [
      repair(wanted),
      this.reference(schema),
      ...partsOf(schema, "allOf").map((part) => this.compile(part)),
      this.union(schema["anyOf"]),
      this.union(schema["oneOf"]),
      this.table(schema, wanted),
      this.array(schema),
    ].filter((step): step is Coerce => step !== null);
    if (steps.length < 2) return steps[0] ?? null;
    return (value, effort) => steps.reduce((changed, step) => step(changed, effort), value);
  }

  private reference(schema: SchemaObject): Step {
    const ref = schema["$ref"];
    if (typeof ref !== "string" || !ref.startsWith("#") || this.here.has(ref)) return null;
    // A type that contains itself: look the function up when it is needed.
    if (this.open.has(ref)) return (value, effort) => this.refs.get(ref)?.(value, effort) ?? value;
    if (!this.refs.has(ref)) {
      this.open.add(ref);
      this.here.add(ref);
      this.refs.set(ref, this.compile(this.document.pointer(ref)));
      this.open.delete(ref);
      this.here.delete(ref);
    }
    return this.refs.get(ref)!;
  }

  /** Compiles the schema of something within the value. */
  private inside(schema: Schema): Step {
    const here = this.here;
    this.here = new Set();
    const compiled = this.compile(schema);
    this.here = here;
    return compiled;
  }

  private union(choices: unknown): Step {
    if (!Array.isArray(choices)) return null;
    const steps = choices.map((choice) => this.compile(choice));
    if (steps.every((step) => step === null)) return null;
    return (value, effort) => {
      const at = this.document.bestBranch(choices, value, effort);
      const step = at === null ? null : steps[at];
      return step ? step(value, effort) : value;
    };
  }

  private table(schema: SchemaObject, wanted: Kinds): Step {
    const named = isObject(schema["properties"]) ? schema["properties"] : {};
    const must = new Set(partsOf(schema, "required"));
    const steps = new Map(Object.entries(named).map(([name, part]) => [name, this.inside(part)]));
    const droppable = new Set(
      Object.keys(named).filter((name) => !must.has(name) && !accepts(this.document.kinds(named[name]), "null")),
    );
    let rest = this.inside(schema["additionalProperties"]);
    if ("patternProperties" in schema) rest = null;
    if (wanted === null || !wanted.has("object")) return null;
    return (given, effort) => {
      if (!isTable(given) || Array.isArray(given)) return given;
      const value = given instanceof Map ? stringKeys(given) : given;
      if (value instanceof Map) return value;
      let result: SchemaObject = value;
      const entries = Object.entries(value);
      effort.spend(entries.length);
      for (const [name, item] of entries) {
        const step = steps.has(name) ? steps.get(name)! : rest;
        if (item === null && droppable.has(name)) {
          if (result === value) result = { ...value };
          delete result[name];
        } else if (step !== null) {
          const changed = step(item, effort);
          if (changed !== item) {
            if (result === value) result = { ...value };
            setField(result, name, changed);
          }
        }
      }
      return result;
    };
  }

  private array(schema: SchemaObject): Step {
    let items = schema["items"];
    let first = schema["prefixItems"];
    if (Array.isArray(items)) [first, items] = [items, schema["additionalItems"]]; // drafts before 2020-12
    const heads = Array.isArray(first) ? first.map((part) => this.inside(part)) : [];
    const rest = this.inside(items);
    if (rest === null && heads.every((step) => step === null)) return null;
    return (value, effort) => {
      if (!Array.isArray(value)) return value;
      effort.spend(value.length);
      let result = value;
      value.forEach((item, index) => {
        const step = index < heads.length ? heads[index]! : rest;
        const changed = step === null ? item : step(item, effort);
        if (changed !== item) {
          if (result === value) result = [...value];
          result[index] = changed;
        }
      });
      return result;
    };
  }
}

function repair(wanted: Kinds): Step {
  if (wanted === null) return null;
  const array = wanted.has("array");
  const table = wanted.has("object");
  if (array === table) return null;
  return (value) => {
    if (table && Array.isArray(value) && value.length === 0) return {};
    if (array && isObject(value) && Object.keys(value).length === 0) return [];
    return value;
  };
}

/** Integer keys as text, unless that would make two keys one. */
function stringKeys(value: Map<string | number, unknown>): Map<string | number, unknown> | SchemaObject {
  const names = new Set([...value.keys()].map(String));
  return names.size === value.size ? fromEntries([...value].map(([name, item]) => [String(name), item])) : value;
}

function saysNothing(schema: Schema): boolean {
  return schema === true || (isObject(schema) && Object.keys(schema).every((word) => ANNOTATIONS.has(word)));
}

function target(schema: Schema, document: Document): Schema {
  if (isObject(schema) && "$ref" in schema) {
    if (Object.keys(schema).some((word) => word !== "$ref" && !ANNOTATIONS.has(word))) return null;
  }
  return document.deref(schema);
}

function isBinary(schema: Schema, document: Document): boolean {
  if (!isObject(schema)) return false;
  const rules = Object.keys(schema).filter((word) => !ANNOTATIONS.has(word)).sort();
  if (rules.join() === "anyOf") return partsOf(schema, "anyOf").some((branch) => isBinary(target(branch, document), document));
  return rules.join() === "format,type" && schema["type"] === "string" && schema["format"] === "binary";
}

function reasonFor(value: unknown): string {
  if (value instanceof Uint8Array) return "a string that is not UTF-8 is not accepted here";
  if (typeof value === "number") return `${value} is not a JSON number`;
  if (typeof value === "string") return "the text is not valid Unicode: it has half of a surrogate pair";
  if (value instanceof Map) {
    const twice = [...value.keys()].find((name) => typeof name === "number" && value.has(String(name)));
    if (twice !== undefined) return `the keys ${twice} and '${twice}' are the same in JSON`;
  }
  return "the value has no exact JSON form, so that it cannot be validated here";
}
