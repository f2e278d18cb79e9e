/**
 * Validation of values against JSON Schema (2020-12, and what older drafts spell otherwise).
 *
 * Values come from scripts, so that nothing here depends on what they inherit, and everything is counted: a value that
 * takes too much work is not valid. Integers may be bigints. Formats are words for people, as in the Python package.
 */

import { isObject, isTable } from "../values.js";
import { canonical, isWhole, tableOf } from "./canonical.js";
import { kindOf, partsOf, type Schema, type SchemaObject } from "./document.js";
import { CHARACTERS_A_STEP, Effort, TooMuchEffort } from "./effort.js";
import { Pattern } from "./pattern.js";

const DEEPEST = 500;
const STEPS_A_SCHEMA = 4;
const TYPES = new Set(["array", "boolean", "integer", "null", "number", "object", "string"]);
const ONE_SCHEMA = [
  "additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
  "unevaluatedItems", "unevaluatedProperties",
];
const LISTS_OF_SCHEMAS = ["allOf", "anyOf", "oneOf", "prefixItems"];
const MAPS_OF_SCHEMAS = ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];
const COUNTS = ["maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems", "minLength", "minProperties"];
const BOUNDS = ["exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"];

/** The names and positions that rules beside an `unevaluated…` have looked at. */
type Evaluated = Set<string | number>;

/** One schema document, checked and ready; throws SyntaxError that says what is wrong with it. */
export class Validator {
  private readonly patterns = new Map<string, Pattern>();
  private readonly choices = new WeakMap<object, Set<string>>();
  private readonly named = new Map<string, Schema>();
  private readonly checked = new Set<object>();

  constructor(private readonly root: SchemaObject) {
    const references: string[] = [];
    this.check(root, "", references);
    for (const ref of references) this.check(this.resolve(ref), ref, references); // it may lead to where no keyword leads
  }

  /** Whether the value fits the schema, which is part of the document or refers to it; throws TooMuchEffort. */
  isValid(value: unknown, effort: Effort, schema: Schema = this.root): boolean {
    try {
      return this.fits(schema, value, effort, 0, null);
    } catch (problem) {
      if (problem instanceof RangeError) throw new TooMuchEffort(problem.message);
      throw problem;
    }
  }

  // The document

  private check(schema: unknown, path: string, references: string[]): void {
    if (typeof schema === "boolean") return;
    const wrong = (keyword: string, wanted: string): never => {
      throw new SyntaxError(`${path || "the schema"}: ${keyword} must be ${wanted}`);
    };
    if (!isObject(schema)) throw new SyntaxError(`${path || "the schema"} must be a schema: an object, true or false`);
    if (this.checked.has(schema)) return;
    this.checked.add(schema);
    const given = (names: string[]): [string, unknown][] =>
      names.filter((name) => Object.hasOwn(schema, name)).map((name) => [name, schema[name]]);
    const texts = (value: unknown): boolean => Array.isArray(value) && value.every((item) => typeof item === "string");
    for (const [name, value] of given(["$ref", "$dynamicRef", "$recursiveRef"])) {
      references.push(typeof value === "string" ? value : wrong(name, "text"));
    }
    for (const [name, value] of given(["$anchor", "$dynamicAnchor"])) this.named.set(`#${typeof value === "string" ? value : wrong(name, "text")}`, schema);
    for (const [, value] of given(["$id"])) if (typeof value === "string") this.named.set(value, schema);
    for (const [name, value] of given(["type"])) {
      const types = Array.isArray(value) ? value : [value];
      if (!types.every((type) => TYPES.has(type))) wrong(name, `one or several of ${[...TYPES].join(", ")}`);
    }
    for (const [name, value] of given(["required"])) if (!texts(value)) wrong(name, "a list of names");
    for (const [name, value] of given(["enum"])) if (!Array.isArray(value)) wrong(name, "a list");
    for (const [name, value] of given(COUNTS)) if (typeof value !== "number" || !(value >= 0)) wrong(name, "a count");
    for (const [name, value] of given(BOUNDS)) {
      const older = typeof value === "boolean" && name.startsWith("exclusive");
      if (!older && (typeof value !== "number" || (name === "multipleOf" && !(value > 0)))) wrong(name, "a number");
    }
    for (const [name, value] of given(["uniqueItems"])) if (typeof value !== "boolean") wrong(name, "true or false");
    for (const [name, value] of given(["pattern"])) this.pattern(typeof value === "string" ? value : wrong(name, "text"));
    for (const [name, value] of given(["dependentRequired"])) {
      if (!isObject(value) || !Object.values(value).every(texts)) wrong(name, "lists of names by name");
    }
    const inner = (part: unknown, place: string): void => this.check(part, `${path}/${place}`, references);
    for (const [name, value] of given(ONE_SCHEMA)) {
      if (name === "items" && Array.isArray(value)) value.forEach((part, at) => inner(part, `items/${at}`));
      else inner(value, name);
    }
    for (const [name, value] of given(LISTS_OF_SCHEMAS)) {
      (Array.isArray(value) ? value : wrong(name, "a list of schemas")).forEach((part: unknown, at: number) => inner(part, `${name}/${at}`));
    }
    for (const [name, value] of given([...MAPS_OF_SCHEMAS, "dependencies"])) {
      for (const [key, part] of Object.entries(isObject(value) ? value : wrong(name, "schemas by name"))) {
        if (name === "patternProperties") this.pattern(key);
        if (name !== "dependencies" || !texts(part)) inner(part, `${name}/${key}`);
      }
    }
  }

  private pattern(source: string): Pattern {
    const known = this.patterns.get(source);
    if (known !== undefined) return known;
    const made = new Pattern(source);
    this.patterns.set(source, made);
    return made;
  }

  private resolve(ref: string): Schema {
    if (ref === "#") return this.root;
    const named = this.named.get(ref);
    if (named !== undefined) return named;
    let node: unknown = ref.startsWith("#/") ? this.root : undefined;
    for (const raw of ref.startsWith("#/") ? decoded(ref).slice(2).split("/") : []) {
      const token = raw.replaceAll("~1", "/").replaceAll("~0", "~");
      node = (isObject(node) || Array.isArray(node)) && Object.hasOwn(node, token) ? (node as SchemaObject)[token] : undefined;
    }
    if (!isObject(node) && typeof node !== "boolean") throw new SyntaxError(`the reference ${ref} leads nowhere`);
    this.named.set(ref, node);
    return node;
  }

  // Values

  private fits(schema: Schema, value: unknown, effort: Effort, depth: number, seen: Evaluated | null): boolean {
    effort.spend(STEPS_A_SCHEMA);
    if (typeof schema === "boolean") return schema;
    if (depth > DEEPEST) throw new TooMuchEffort("references lead too deep");
    const rules = schema as SchemaObject;
    const here = "unevaluatedProperties" in rules || "unevaluatedItems" in rules ? new Set<string | number>() : seen;
    const inner = (part: Schema, item: unknown): boolean => this.fits(part, item, effort, depth + 1, null);
    /** A rule about the value itself: what it has looked at counts where the value fits it. */
    const same = (part: Schema): boolean => {
      const looked = here === null ? null : new Set<string | number>();
      const fits = this.fits(part, value, effort, depth + 1, looked);
      if (fits && looked !== null) for (const name of looked) here!.add(name);
      return fits;
    };
    for (const name of ["$ref", "$dynamicRef", "$recursiveRef"]) {
      if (typeof rules[name] === "string" && !same(this.resolve(rules[name]))) return false;
    }
    if (!this.fitsItself(rules, value, effort)) return false;
    if (!partsOf(rules, "allOf").every(same)) return false;
    if ("anyOf" in rules) {
      const branches = partsOf(rules, "anyOf");
      if (!(here === null ? branches.some(same) : branches.filter(same).length > 0)) return false; // each may look at more
    }
    if ("oneOf" in rules && partsOf(rules, "oneOf").filter(same).length !== 1) return false;
    if ("not" in rules && inner(rules["not"], value)) return false;
    if ("if" in rules) {
      const branch = same(rules["if"]) ? "then" : "else";
      if (branch in rules && !same(rules[branch])) return false;
    }
    if (Array.isArray(value)) {
      if (!this.fitsArray(rules, value, effort, inner, here)) return false;
    } else if (isTable(value)) {
      if (!this.fitsObject(rules, tableOf(value), effort, inner, same, here)) return false;
    }
    if (seen !== null && here !== seen) for (const name of here!) seen.add(name);
    return true;
  }

  private fitsItself(rules: SchemaObject, value: unknown, effort: Effort): boolean {
    const kind = kindOf(value);
    if ("type" in rules) {
      const types = Array.isArray(rules["type"]) ? rules["type"] : [rules["type"]];
      if (!types.includes(kind) && !(kind === "integer" && types.includes("number"))) return false;
    }
    if ("const" in rules && canonical(value, effort) !== canonical(rules["const"], effort)) return false;
    if ("enum" in rules && !this.choicesOf(rules["enum"] as unknown[]).has(canonical(value, effort))) return false;
    if (typeof value === "number" || typeof value === "bigint") return fitsNumber(rules, value);
    return kind !== "string" || this.fitsText(rules, value as string | Uint8Array, effort);
  }

  private choicesOf(options: unknown[]): Set<string> {
    const known = this.choices.get(options) ?? new Set(options.map((option) => canonical(option, new Effort(Infinity))));
    this.choices.set(options, known);
    return known;
  }

  private fitsText(rules: SchemaObject, given: string | Uint8Array, effort: Effort): boolean {
    if (!("minLength" in rules || "maxLength" in rules || "pattern" in rules)) return true;
    effort.spend(given.length / CHARACTERS_A_STEP);
    const text = typeof given === "string" ? given : Array.from(given, (byte) => String.fromCharCode(byte)).join("");
    if ("minLength" in rules || "maxLength" in rules) {
      let length = 0;
      for (let at = 0; at < text.length; at += text.codePointAt(at)! > 0xffff ? 2 : 1) length += 1;
      if (!isWithin(rules, "minLength", length, "maxLength")) return false;
    }
    return !("pattern" in rules) || this.pattern(rules["pattern"] as string).test(text, effort);
  }

  private fitsArray(
    rules: SchemaObject, value: unknown[], effort: Effort, inner: (part: Schema, item: unknown) => boolean, seen: Evaluated | null,
  ): boolean {
    if (!isWithin(rules, "minItems", value.length, "maxItems")) return false;
    const older = Array.isArray(rules["items"]); // drafts before 2020-12
    const heads = partsOf(rules, older ? "items" : "prefixItems");
    const rest = older ? "additionalItems" : "items";
    if (!heads.slice(0, value.length).every((part, at) => inner(part, value[at]))) return false;
    heads.forEach((_, at) => seen?.add(at));
    if (rest in rules) {
      for (let at = heads.length; at < value.length; at += 1) {
        if (!inner(rules[rest], value[at])) return false;
        seen?.add(at);
      }
    }
    if ("contains" in rules) {
      let found = 0;
      value.forEach((item, at) => {
        if (!inner(rules["contains"], item)) return;
        found += 1;
        seen?.add(at);
      });
      if (!isWithin({ minContains: 1, ...rules }, "minContains", found, "maxContains")) return false;
    }
    if (rules["uniqueItems"] === true && new Set(value.map((item) => canonical(item, effort))).size < value.length) return false;
    if ("unevaluatedItems" in rules) {
      for (const [at, item] of value.entries()) {
        if (!seen!.has(at) && !inner(rules["unevaluatedItems"], item)) return false;
        seen!.add(at);
      }
    }
    return true;
  }

  private fitsObject(
    rules: SchemaObject, value: SchemaObject, effort: Effort, inner: (part: Schema, item: unknown) => boolean,
    same: (part: Schema) => boolean, seen: Evaluated | null,
  ): boolean {
    const names = Object.keys(value);
    const has = (name: string): boolean => Object.hasOwn(value, name);
    effort.spend(names.length);
    if (!isWithin(rules, "minProperties", names.length, "maxProperties")) return false;
    if (!(partsOf(rules, "required") as string[]).every(has)) return false;
    for (const keyword of ["dependentRequired", "dependentSchemas", "dependencies"]) {
      for (const [name, part] of Object.entries(isObject(rules[keyword]) ? rules[keyword] : {})) {
        if (has(name) && !(Array.isArray(part) ? part.every(has) : same(part))) return false;
      }
    }
    if ("propertyNames" in rules && !names.every((name) => inner(rules["propertyNames"], name))) return false;
    const named = isObject(rules["properties"]) ? rules["properties"] : {};
    const patterns = Object.entries(isObject(rules["patternProperties"]) ? rules["patternProperties"] : {});
    for (const name of names) {
      let known = Object.hasOwn(named, name);
      if (known && !inner(named[name], value[name])) return false;
      for (const [source, part] of patterns) {
        if (!this.pattern(source).test(name, effort)) continue;
        known = true;
        if (!inner(part, value[name])) return false;
      }
      if (!known && "additionalProperties" in rules) {
        known = true;
        if (!inner(rules["additionalProperties"], value[name])) return false;
      }
      if (known) seen?.add(name);
    }
    if ("unevaluatedProperties" in rules) {
      for (const name of names) {
        if (!seen!.has(name) && !inner(rules["unevaluatedProperties"], value[name])) return false;
        seen!.add(name);
      }
    }
    return true;
  }
}

function isWithin(rules: SchemaObject, least: string, size: number, most: string): boolean {
  return !(size < (rules[least] as number)) && !(size > (rules[most] as number));
}

function fitsNumber(rules: SchemaObject, value: number | bigint): boolean {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = rules as Record<string, number | boolean | undefined>;
  if (typeof minimum === "number" && (exclusiveMinimum === true ? !(value > minimum) : !(value >= minimum))) return false;
  if (typeof maximum === "number" && (exclusiveMaximum === true ? !(value < maximum) : !(value <= maximum))) return false;
  if (typeof exclusiveMinimum === "number" && !(value > exclusiveMinimum)) return false;
  if (typeof exclusiveMaximum === "number" && !(value < exclusiveMaximum)) return false;
  if (typeof multipleOf !== "number") return true;
  if (isWhole(value) && Number.isInteger(multipleOf)) return BigInt(value) % BigInt(multipleOf) === 0n;
  const times = Number(value) / multipleOf;
  return Math.abs(times - Math.round(times)) <= 4 * Number.EPSILON * Math.abs(times);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
