/** Binding: a call's arguments, named or positional, made into one validated object. */

import { close } from "#python/schema/closing.js";
import * as python from "#python/schema/problems.js";
import { parameter_list } from "#python/tools/signature.js";
import { SchemaNode } from "#python/schema/tree.js";
import { ArgumentError, ToolDefinitionError } from "../errors.js";
import { fromEntries, setField } from "../json.js";
import { T } from "../python/values.js";
import { entriesOf, isObject, isTable } from "../values.js";
import { compileCoercion, isJson, jsonForm, Refused, type Coerce } from "./coercion.js";
import { accepts, Document, NARRATION, type SchemaObject } from "./document.js";
import { Effort, TooMuchEffort } from "./effort.js";
import { Validator } from "./validation.js";

const MOST_EFFORT = 1_000_000; // looks at one value
const TOO_MUCH = "the arguments are too much work to validate: pass less data, or shorter text";

/** Everything about a tool's parameters that is worked out once and used for every call. */
export class Binder {
  readonly document: Document;
  readonly order: string[];
  private readonly validator: Validator;
  private readonly coerce: Coerce | null;
  private readonly defaults: [string, unknown][];
  /** The schema as the translated modules read it. */
  readonly accepted: unknown;

  constructor(readonly parameters: SchemaObject) {
    this.document = new Document(lowered(close(parameters)));
    this.accepted = new SchemaNode(this.document.root);
    let effort: number;
    try {
      effort = this.document.effort();
    } catch {
      throw new ToolDefinitionError("parameters has a chain of references that is too long");
    }
    if (effort > MOST_EFFORT) {
      throw new ToolDefinitionError("parameters nests too many alternatives within alternatives to be validated");
    }
    this.order = this.document.positionalOrder();
    try {
      this.validator = new Validator(this.document.root as SchemaObject);
    } catch (problem) {
      throw new ToolDefinitionError(`parameters is not a valid JSON Schema: ${(problem as Error).message}`);
    }
    this.coerce = compileCoercion(this.document);
    this.defaults = this.findDefaults();
  }

  /** An object with defaults filled in that fits the schema; throws ArgumentError with every problem. */
  bind(given: unknown, tool: string, firstIndex = 0, isJsonCall = false): SchemaObject {
    try {
      return this.validated(given, tool, firstIndex, isJsonCall);
    } catch (problem) {
      if (problem instanceof TooMuchEffort) throw this.error([TOO_MUCH], tool);
      if (problem instanceof RangeError) throw this.error(["the arguments are nested too deeply"], tool);
      throw problem;
    }
  }

  /**
   * What is wrong with a call's arguments whatever the run puts in place of UNKNOWN and REST of the Python package's check;
   * throws the ArgumentError of arguments that are known.
   */
  certainProblems(given: unknown[], tool: string, firstIndex: number): string[] {
    if (python.is_known(given)) {
      this.bind(given.map(lowered), tool, firstIndex);
      return [];
    }
    if (given.length === 1 && given[0] === python.UNKNOWN) return []; // a table of named arguments, or the first of them
    const first = given[0];
    const isOpen = given.length === 1 && first instanceof Map && first.has(python.REST);
    const written = isOpen ? [new Map([...first].filter(([key]) => key !== python.REST))] : given;
    const entries = Object.entries(this.name(written, tool, false));
    const known = fromEntries(entries.filter(([, value]) => python.is_known(value)).map(([name, value]) => [name, lowered(value)]));
    const coerced = this.coerce === null ? known : (this.coerce(known, new Effort()) as SchemaObject);
    const filled = this.filled({ ...Object.fromEntries(entries), ...coerced });
    return this.found(isOpen ? new Map<unknown, unknown>([...Object.entries(filled), [python.REST, python.UNKNOWN]]) : filled, new Effort(), firstIndex);
  }

  private validated(given: unknown, tool: string, firstIndex: number, isJsonCall: boolean): SchemaObject {
    const named = this.name(given, tool, isJsonCall);
    const changed = this.coerce === null ? named : (this.coerce(named, new Effort()) as SchemaObject);
    const bound = this.filled(changed === named ? { ...named } : changed);
    if (this.isValid(bound)) return bound;
    // Coercion guesses at the branch of a union that was meant; what fits as it came is taken as it came.
    if (changed !== named) {
      const asGiven = this.filled({ ...named });
      if (this.isValid(asGiven)) return asGiven;
    }
    throw this.error(this.problems(bound, firstIndex), tool);
  }

  /** The arguments by the names of their parameters, valid or not; what cannot be named keeps its position as its key. */
  named(given: unknown, tool: string): unknown {
    try {
      return this.name(given, tool, false);
    } catch {
      const first = Array.isArray(given) && given.length === 1 ? given[0] : null;
      const alone = isTable(first) && (!Array.isArray(first) || !this.takesArrayFirst());
      const table = alone ? first : given;
      if (!isTable(table)) return given;
      const entries: [string | number, unknown][] = Array.isArray(table)
        ? table.map((value, index) => [index + 1, value])
        : entriesOf(table);
      const taken = new Set(entries.map(([key]) => key));
      const named = entries.map(([key, value]): [string | number, unknown] => {
        const name = typeof key === "number" ? this.order[key - 1] : undefined;
        return [name === undefined || taken.has(name) ? key : name, value];
      });
      return named.some(([key]) => typeof key === "number") ? new Map(named) : fromEntries(named);
    }
  }

  /** What a caller is told of invalid arguments. */
  error(problems: string[], tool: string): ArgumentError {
    const lines = problems.map((problem) => `- ${problem}`).join("\n");
    const listed = parameter_list(this.accepted);
    const valid = listed ? `valid parameters: ${listed}` : "it takes no parameters";
    return new ArgumentError(`invalid arguments for ${tool}:\n${lines}\n${valid}`, { tool });
  }

  private name(given: unknown, tool: string, isJsonCall: boolean): SchemaObject {
    if (given === null || given === undefined) return {};
    if (!Array.isArray(given)) {
      if (isTable(given)) return this.place(entriesOf(given), tool);
      throw this.error([`expected named arguments or an array of them, got ${python.short(given)}`], tool);
    }
    let values: unknown[] = given;
    if (values.length === 1 && isTable(values[0])) {
      const table = values[0];
      if (!Array.isArray(table)) return this.place(entriesOf(table), tool);
      if (table.length === 0) return {};
      if (isJsonCall || !this.takesArrayFirst()) values = table;
    }
    return this.place(values.map((value, index) => [index + 1, value]), tool);
  }

  /** Integer keys, counted from 1, replaced by the names of the parameters in those positions. */
  private place(entries: [string | number, unknown][], tool: string): SchemaObject {
    const named = fromEntries(entries.filter(([name]) => typeof name === "string"));
    const placed = entries.filter((entry): entry is [number, unknown] => typeof entry[0] === "number").sort(([a], [b]) => a - b);
    const positions = placed.map(([position]) => position);
    if (positions.length > 0 && (positions[0]! < 1 || positions.at(-1)! > this.order.length)) {
      const takes = this.order.length > 0 ? `at most ${this.order.length} (${this.order.join(", ")})` : "no arguments";
      let what = `${positions.length} positional argument${positions.length > 1 ? "s" : ""}`;
      if (positions.some((position, index) => position !== index + 1)) {
        what = `a table with the key ${positions[0]! > 0 ? positions.at(-1) : positions[0]}`;
      }
      throw this.error([`got ${what}; ${tool} takes ${takes}`], tool);
    }
    for (const [position, value] of placed) {
      const name = this.order[position - 1]!;
      if (Object.hasOwn(named, name)) {
        throw this.error([`${name}: given twice, by name and as positional argument ${position}`], tool);
      }
      setField(named, name, value);
    }
    return named;
  }

  private takesArrayFirst(): boolean {
    const first = this.order[0];
    return first !== undefined && accepts(this.document.kinds(this.document.properties(this.document.root)[first]), "array");
  }

  private filled(bound: SchemaObject): SchemaObject {
    for (const [name, value] of this.defaults) {
      if (!Object.hasOwn(bound, name)) setField(bound, name, structuredClone(value));
    }
    return bound;
  }

  private isValid(bound: SchemaObject): boolean {
    try {
      return this.validator.isValid(isJson(bound) ? bound : jsonForm(bound, this.document), new Effort());
    } catch (problem) {
      if (problem instanceof Refused) return false;
      throw problem;
    }
  }

  private fits(effort: Effort): (rules: unknown, value: unknown) => boolean {
    return (rules, value) => this.validator.isValid(lowered(value), effort, lowered(rules) as SchemaObject);
  }

  /** The problems that the Python package's walk over value and schema names. */
  private found(bound: unknown, effort: Effort, firstIndex: number): string[] {
    return python.find_problems(this.accepted, bound, this.fits(effort), firstIndex);
  }

  private problems(bound: SchemaObject, firstIndex: number): string[] {
    const effort = new Effort();
    const fits = this.fits(effort);
    const found = this.found(bound, effort, firstIndex);
    if (found.length > 0) return found;
    if (!isJson(bound)) {
      try {
        jsonForm(bound, this.document);
      } catch (problem) {
        if (problem instanceof Refused) return [`${python.path_text(T(...problem.path), firstIndex)}: ${problem.reason}`];
        throw problem;
      }
    }
    for (const [keyword, rule] of Object.entries(this.document.root as SchemaObject)) {
      if (keyword !== "properties" && keyword !== "additionalProperties" && !fits({ [keyword]: rule }, bound)) {
        return [`the arguments together do not satisfy '${keyword}': ${python.short(rule, 200)}`];
      }
    }
    return ["the arguments do not fit the schema"];
  }

  private findDefaults(): [string, unknown][] {
    const { document } = this;
    const defaults: [string, unknown][] = [];
    for (const [name, part] of Object.entries(document.properties(document.root))) {
      const schema = document.deref(part);
      if (isObject(schema) && "default" in schema) {
        // Servers send defaults that their own schema refuses; those are not filled in.
        if (this.validator.isValid(schema["default"], new Effort(), schema)) defaults.push([name, schema["default"]]);
      } else if (
        name === NARRATION && document.required(document.root).includes(name) && accepts(document.kinds(part), "string")
      ) {
        defaults.push([name, ""]); // scripts are not shown it, so they cannot be asked for it
      }
    }
    return defaults;
  }
}

/** A value of the check as data of the host: tables with names as objects. */
function lowered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(lowered);
  if (!(value instanceof Map)) return value;
  const entries = [...value].map(([key, item]): [string | number, unknown] => [key, lowered(item)]);
  return entries.some(([key]) => typeof key === "number") ? new Map(entries) : fromEntries(entries);
}
