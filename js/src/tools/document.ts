/** JSON Schema documents: what a schema says about a value, read without validating anything. */

import { isObject, isTable } from "../values.js";
import { canonical } from "./canonical.js";
import type { Effort } from "./effort.js";

/** A JSON Schema: an object, or true or false. */
export type Schema = unknown;
export type SchemaObject = Record<string, unknown>;
/** JSON types; null stands for all of them. */
export type Kinds = ReadonlySet<string> | null;

/** A parameter in which some models explain themselves; it is never shown, and filled in when it is required. */
export const NARRATION = "human_intent";
const LONGEST_CHAIN = 32;
const LONGEST_WAY = 200;
const MOST_NESTED_OPTIONS = 20;
const STEPS_A_BRANCH = 16;

/** A schema together with what its `$ref`s lead to. */
export class Document {
  private readonly resolved = new Map<object, Schema>();
  private readonly knownKinds = new Map<object, Kinds>();
  private readonly open = new Set<object>();

  constructor(readonly root: Schema) {}

  /** The schema that a local `$ref` leads to; `{}` where it leads nowhere that can be read. */
  deref(schema: Schema): Schema {
    if (!isObject(schema) || typeof schema["$ref"] !== "string") return schema;
    if (!this.resolved.has(schema)) this.resolved.set(schema, this.follow(schema));
    return this.resolved.get(schema);
  }

  /** What `#/a/b` points at. */
  pointer(ref: string): Schema {
    if (!ref.startsWith("#")) return {};
    let node: unknown = this.root;
    for (const raw of safeDecode(ref).slice(1).split("/").slice(1)) {
      const token = raw.replaceAll("~1", "/").replaceAll("~0", "~");
      if (isObject(node) && Object.hasOwn(node, token)) node = node[token];
      else if (Array.isArray(node) && /^\d+$/.test(token) && Number(token) < node.length) node = node[Number(token)];
      else return {};
    }
    return isObject(node) || typeof node === "boolean" ? node : {};
  }

  /** The JSON types that the schema can accept; null where it does not say. */
  kinds(given: Schema): Kinds {
    const schema = this.deref(given);
    if (schema === false) return new Set();
    if (!isObject(schema) || this.open.has(schema)) return null;
    if (!this.knownKinds.has(schema)) {
      this.open.add(schema);
      this.knownKinds.set(schema, this.readKinds(schema));
      this.open.delete(schema);
    }
    return this.knownKinds.get(schema)!;
  }

  /** The properties an object schema names, those of its `allOf` parts included. */
  properties(given: Schema, depth = 4): SchemaObject {
    const schema = this.deref(given);
    if (!isObject(schema) || depth <= 0) return {};
    const collected: SchemaObject = isObject(schema["properties"]) ? { ...schema["properties"] } : {};
    for (const part of partsOf(schema, "allOf")) {
      for (const [name, value] of Object.entries(this.properties(part, depth - 1))) {
        if (!Object.hasOwn(collected, name)) collected[name] = value;
      }
    }
    return collected;
  }

  /** The names of the properties that must be there. */
  required(given: Schema, depth = 4): string[] {
    const schema = this.deref(given);
    if (!isObject(schema) || depth <= 0) return [];
    const names = partsOf(schema, "required").filter((name): name is string => typeof name === "string");
    for (const part of partsOf(schema, "allOf")) {
      names.push(...this.required(part, depth - 1).filter((name) => !names.includes(name)));
    }
    return names;
  }

  /** Parameter names in the order in which they are shown and filled: required ones first, narration last. */
  positionalOrder(): string[] {
    const must = new Set(this.required(this.root));
    const rank = (name: string): number => (name === NARRATION ? 2 : 0) + (must.has(name) ? 0 : 1);
    return Object.keys(this.properties(this.root)).sort((a, b) => rank(a) - rank(b));
  }

  /** How often a validator may look at one value, at worst; throws RangeError where references lead too far. */
  effort(): number {
    return this.effortOf(this.root, new Map(), []);
  }

  /** The branch of a union that the value was most likely meant for, judged by its outermost level. */
  bestBranch(branches: Schema[], value: unknown, effort: Effort): number | null {
    effort.spend(branches.length);
    const kind = kindOf(value);
    const fitting = branches.map((_, at) => at).filter((at) => accepts(this.kinds(branches[at]), kind));
    if (fitting.length < 2) return fitting[0] ?? null;
    let best = fitting[0]!;
    let most = -Infinity;
    for (const at of fitting) {
      effort.spend(STEPS_A_BRANCH);
      const likeness = this.likeness(this.deref(branches[at]), value, effort);
      if (likeness > most) [best, most] = [at, likeness];
    }
    return best;
  }

  private likeness(schema: Schema, value: unknown, effort: Effort): number {
    if (!isObject(schema)) return 0;
    if (Array.isArray(value) && value.length > 0) {
      const items = schema["items"];
      return accepts(this.kinds(isObject(items) ? items : true), kindOf(value[0])) ? 0 : -4;
    }
    if (isTable(value) && !Array.isArray(value)) return this.tableLikeness(schema, value, effort);
    const listed = lists(schema, value, effort);
    return listed === null ? 0 : listed ? 4 : -4;
  }

  private tableLikeness(schema: SchemaObject, value: SchemaObject | Map<unknown, unknown>, effort: Effort): number {
    const has = (name: string): boolean => (value instanceof Map ? value.has(name) : Object.hasOwn(value, name));
    const read = (name: string): unknown => (value instanceof Map ? value.get(name) : value[name]);
    const size = value instanceof Map ? value.size : Object.keys(value).length;
    const known = Object.entries(this.properties(schema));
    effort.spend(size + known.length);
    const shared = known.filter(([name]) => has(name));
    let score = -2 * this.required(schema).filter((name) => !has(name)).length;
    if (schema["additionalProperties"] === false) score -= size - shared.length;
    for (const [name, part] of shared) {
      const listed = lists(this.deref(part), read(name), effort);
      score += listed === null ? 1 : listed ? 8 : -8;
    }
    return score;
  }

  private effortOf(given: Schema, known: Map<object, number>, open: object[]): number {
    const schema = this.deref(given);
    if (!isObject(schema) || open.includes(schema)) return 1;
    const before = known.get(schema);
    if (before !== undefined) return before;
    if (open.length > LONGEST_WAY) throw new RangeError("references lead too far");
    open.push(schema);
    const present = (keywords: string[]): Schema[] => keywords.filter((word) => word in schema).map((word) => schema[word]);
    const same = [
      ...partsOf(schema, "anyOf"), ...partsOf(schema, "oneOf"), ...partsOf(schema, "allOf"),
      ...present(["not", "if", "then", "else"]),
    ];
    const within = [
      ...["properties", "patternProperties"].flatMap((word) => (isObject(schema[word]) ? Object.values(schema[word]) : [])),
      ...present(["items", "additionalProperties", "contains"]),
      ...partsOf(schema, "prefixItems"),
    ];
    const deeper = Math.max(0, ...within.map((part) => this.effortOf(part, known, open)));
    const effort = 1 + deeper + same.reduce<number>((sum, part) => sum + this.effortOf(part, known, open), 0);
    open.pop();
    known.set(schema, effort);
    return effort;
  }

  private follow(schema: SchemaObject): Schema {
    let reached: Schema = schema;
    for (let step = 0; step < LONGEST_CHAIN; step += 1) {
      if (!isObject(reached) || typeof reached["$ref"] !== "string") return reached;
      const { $ref, ...beside } = reached as SchemaObject & { $ref: string };
      const target = this.pointer($ref);
      reached = isObject(target) && Object.keys(beside).length > 0 ? { ...target, ...beside } : target;
    }
    return {};
  }

  private readKinds(schema: SchemaObject): Kinds {
    let kinds: Kinds = null;
    const declared = schema["type"];
    if (typeof declared === "string") kinds = new Set([declared]);
    else if (Array.isArray(declared)) kinds = new Set(declared.filter((kind) => typeof kind === "string"));
    if (Array.isArray(schema["enum"])) kinds = both(kinds, new Set(schema["enum"].map(kindOf)));
    if ("const" in schema) kinds = both(kinds, new Set([kindOf(schema["const"])]));
    for (const keyword of ["anyOf", "oneOf"]) {
      const branches = partsOf(schema, keyword);
      if (branches.length > 0) kinds = both(kinds, any(branches.map((branch) => this.kinds(branch))));
    }
    for (const part of partsOf(schema, "allOf")) kinds = both(kinds, this.kinds(part));
    if (kinds === null && ("properties" in schema || "additionalProperties" in schema)) return new Set(["object"]);
    if (kinds === null && ("items" in schema || "prefixItems" in schema)) return new Set(["array"]);
    return kinds;
  }
}

/** The JSON type of a plain value; a whole number is an integer, bytes are a string. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return "null";
  switch (typeof value) {
    case "boolean":
      return "boolean";
    case "bigint":
      return "integer";
    case "number":
      return Number.isInteger(value) ? "integer" : "number";
    case "string":
      return "string";
    default:
      return value instanceof Uint8Array ? "string" : Array.isArray(value) ? "array" : "object";
  }
}

/** Whether a value of that JSON type can fit. */
export function accepts(wanted: Kinds, kind: string): boolean {
  return wanted === null || wanted.has(kind) || (kind === "integer" && wanted.has("number"));
}

export function partsOf(schema: SchemaObject, keyword: string): Schema[] {
  const parts = schema[keyword];
  return Array.isArray(parts) ? parts : [];
}

/** Whether the value is among those that the schema lists; null where it lists none. */
function lists(schema: Schema, value: unknown, effort: Effort): boolean | null {
  if (!isObject(schema)) return null;
  const options = "const" in schema ? [schema["const"]] : schema["enum"];
  if (!Array.isArray(options)) return null;
  effort.spend(options.length);
  if (!isTable(value)) return options.includes(value);
  const text = canonical(value, effort);
  return options.slice(0, MOST_NESTED_OPTIONS).some((option) => canonical(option, effort) === text);
}

function both(left: Kinds, right: Kinds): Kinds {
  if (left === null || right === null) return left ?? right;
  const common = new Set([...left].filter((kind) => right.has(kind)));
  if ((left.has("number") || right.has("number")) && (left.has("integer") || right.has("integer"))) common.add("integer");
  return common;
}

function any(branches: Kinds[]): Kinds {
  return branches.some((branch) => branch === null) ? null : new Set(branches.flatMap((branch) => [...branch!]));
}

function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
