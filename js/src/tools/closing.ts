/**
 * Closing: a schema in which a key that no part of it names is an error, at every depth.
 *
 * A schema that names properties and does not speak of others means no others: `additionalProperties: false` is added.
 * Several parts may speak of one object (`allOf`, `if`, a union beside properties): their names count together, as one
 * rule for `propertyNames`. A definition that is used both alone and as such a part gets a copy that is not closed.
 * Conditions (`if`, `not`, `contains`) mean the same as before at every depth.
 */

import { fromEntries } from "../json.js";
import { isObject } from "../values.js";
import { Document, partsOf, type Schema, type SchemaObject } from "./document.js";

/** The schema of a value; one of several of the same value; a question about a value, to be left as it is. */
type Mode = "whole" | "part" | "condition";
/** The keys that the parts of a schema know. */
interface Known {
  /** Described by a part: without any, the schema says nothing about its keys. */
  declared: Set<string>;
  /** Required, or part of a condition. */
  mentioned: Set<string>;
  patterns: Set<string>;
}

const MOST_SCHEMAS = 20_000;
const UNIONS = ["anyOf", "oneOf", "allOf"];
const BRANCHES = ["then", "else"];
const CONDITIONS = new Set(["contains", "if", "not", "propertyNames"]);
const BY_NAME = ["patternProperties", "properties"];
const DEPENDENT = ["dependencies", "dependentSchemas"];
const DEFINITIONS = ["$defs", "definitions"];
const EXTRA = ["additionalProperties", "unevaluatedProperties"];
const INSIDE = new Set([...EXTRA, "additionalItems", "items", "prefixItems", "unevaluatedItems"]);
const OTHER_KEYS = [...BRANCHES, ...DEPENDENT, ...EXTRA, "if"];
const OTHER_RULES = [...OTHER_KEYS, ...UNIONS, "$ref"];
const UNREADABLE = ["$dynamicRef", "$recursiveRef", "const", "enum"];

/** The schema of a tool's parameters, closed at every depth; only at its top where that cannot be done. */
export function close(parameters: SchemaObject): SchemaObject {
  let closed = parameters;
  try {
    closed = new Closer(parameters).close();
  } catch (problem) {
    if (!(problem instanceof Unclosable) && !(problem instanceof RangeError)) throw problem;
  }
  if (!("properties" in closed) || has(closed, [...OTHER_RULES, "$dynamicRef", "patternProperties"])) return closed;
  return { ...closed, additionalProperties: false }; // a tool that names no parameter takes none
}

/** A schema that is too large, or whose references cannot be followed. */
class Unclosable extends Error {}

class Closer {
  private readonly document: Document;
  private left = MOST_SCHEMAS;
  private readonly copies = new Map<string, string>();
  private readonly waiting: [string, string, Mode][] = [];

  constructor(private readonly root: SchemaObject) {
    this.document = new Document(root);
  }

  close(): SchemaObject {
    const closed = this.walk(this.root, "whole") as SchemaObject;
    const copied: [string, Schema][] = [];
    for (let next = this.waiting.pop(); next !== undefined; next = this.waiting.pop()) {
      const [name, ref, mode] = next;
      let target = this.document.pointer(ref);
      if (target === this.root) {
        const head = [...DEFINITIONS, "$id", "$schema"];
        target = fromEntries(Object.entries(this.root).filter(([keyword]) => !head.includes(keyword)));
      }
      copied.push([name, this.walk(target, mode)]);
    }
    if (copied.length === 0) return closed;
    return { ...closed, $defs: fromEntries([...Object.entries(mapOf(closed, "$defs")), ...copied]) };
  }

  private walk(schema: Schema, mode: Mode): Schema {
    if (!isObject(schema)) return schema;
    this.left -= 1;
    if (this.left < 0 || ("$id" in schema && schema !== this.root)) throw new Unclosable();
    const same = mode === "whole" && !delegates(schema) ? "part" : mode;
    const walked = fromEntries(
      Object.entries(schema).map(([keyword, value]) => [keyword, this.keyword(keyword, value, mode, same)]),
    );
    return mode === "whole" ? this.closed(schema, walked) : walked;
  }

  private keyword(keyword: string, value: unknown, mode: Mode, same: Mode): unknown {
    const inside = mode === "condition" ? "condition" : "whole";
    const each = (part: unknown, use: Mode): unknown =>
      Array.isArray(part) ? part.map((item) => this.walk(item as Schema, use)) : this.walk(part as Schema, use);
    const byName = (use: Mode): SchemaObject =>
      fromEntries(Object.entries(value as SchemaObject).map(([name, part]) => [name, this.walk(part as Schema, use)]));
    if (keyword === "$ref" && typeof value === "string") return this.reference(value, same);
    if (CONDITIONS.has(keyword)) return this.walk(value as Schema, "condition");
    if (UNIONS.includes(keyword) || BRANCHES.includes(keyword)) return each(value, same);
    if (INSIDE.has(keyword)) return each(value, inside);
    if (isObject(value) && (BY_NAME.includes(keyword) || DEFINITIONS.includes(keyword))) return byName(inside);
    if (isObject(value) && DEPENDENT.includes(keyword)) return byName(same);
    return value;
  }

  /** The reference itself where it leads to a definition of whole values, else one to a copy for this use. */
  private reference(ref: string, mode: Mode): string {
    if (!isPointer(ref) || (mode === "whole" && /^#(\/(\$defs|definitions)\/[^/]+)?$/.test(ref))) return ref;
    const key = `${mode} ${ref}`;
    let label = this.copies.get(key);
    if (label === undefined) {
      label = `${mode}${this.copies.size + 1}`;
      while (Object.hasOwn(mapOf(this.root, "$defs"), label)) label += "_";
      this.copies.set(key, label);
      this.waiting.push([label, ref, mode]);
    }
    return `#/$defs/${label}`;
  }

  private closed(schema: SchemaObject, walked: SchemaObject): SchemaObject {
    if (delegates(schema) || has(schema, EXTRA)) return walked;
    const known: Known = { declared: new Set(), mentioned: new Set(), patterns: new Set() };
    if (!this.collect(schema, known, new Set()) || known.declared.size === 0) return walked;
    const names = [...new Set([...known.declared, ...known.mentioned])];
    const own = mapOf(schema, "properties");
    const alone = known.patterns.size === 0 && names.every((name) => Object.hasOwn(own, name));
    if (alone && !has(schema, OTHER_RULES)) return { ...walked, additionalProperties: false };
    const listed = { enum: names };
    const patterns = [...known.patterns].map((pattern) => ({ pattern }));
    const rule = patterns.length > 0 ? { anyOf: [listed, ...patterns] } : listed;
    return { ...walked, allOf: [...partsOf(walked, "allOf"), { propertyNames: rule }] };
  }

  /** Gathers the keys that a schema and its parts know; false where one allows keys that it does not name. */
  private collect(schema: Schema, known: Known, seen: Set<object>): boolean {
    if (!isObject(schema) || seen.has(schema)) return true;
    seen.add(schema);
    if (has(schema, UNREADABLE) || EXTRA.some((keyword) => keyword in schema && schema[keyword] !== false)) return false;
    if ("$ref" in schema && !isPointer(schema["$ref"])) return false;
    for (const name of Object.keys(mapOf(schema, "properties"))) known.declared.add(name);
    for (const name of required(schema)) known.mentioned.add(name);
    for (const pattern of Object.keys(mapOf(schema, "patternProperties"))) known.patterns.add(pattern);
    if ("if" in schema && !this.collect(schema["if"] as Schema, { ...known, declared: known.mentioned }, seen)) return false;
    return this.parts(schema).every((part) => this.collect(part, known, seen));
  }

  /** The schemas beside it that speak of the same value. */
  private parts(schema: SchemaObject): Schema[] {
    return [
      ...("$ref" in schema ? [this.document.pointer(schema["$ref"] as string)] : []),
      ...UNIONS.flatMap((keyword) => partsOf(schema, keyword)),
      ...DEPENDENT.flatMap((keyword) => Object.values(mapOf(schema, keyword)) as Schema[]),
      ...BRANCHES.filter((keyword) => keyword in schema).map((keyword) => schema[keyword] as Schema),
    ];
  }
}

/** Whether it leaves all keys to one other schema, or to one of several. */
function delegates(schema: SchemaObject): boolean {
  const others = [...UNIONS, "$ref"].filter((keyword) => keyword in schema);
  if (others.length !== 1 || has(schema, [...OTHER_KEYS, ...BY_NAME])) return false;
  return others[0] !== "allOf" || partsOf(schema, "allOf").length === 1;
}

function has(schema: SchemaObject, keywords: string[]): boolean {
  return keywords.some((keyword) => keyword in schema);
}

function mapOf(schema: SchemaObject, keyword: string): SchemaObject {
  return isObject(schema[keyword]) ? schema[keyword] : {};
}

function isPointer(ref: unknown): boolean {
  return typeof ref === "string" && (ref === "#" || ref.startsWith("#/"));
}

/** Names that a schema asks for, whether it describes them or not. */
function required(schema: SchemaObject): string[] {
  const names: unknown[] = [...partsOf(schema, "required")];
  for (const keyword of ["dependentRequired", ...DEPENDENT]) {
    for (const [name, needed] of Object.entries(mapOf(schema, keyword))) {
      names.push(name, ...(Array.isArray(needed) ? needed : []));
    }
  }
  return names.filter((name): name is string => typeof name === "string");
}
