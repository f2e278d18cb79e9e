/** Tool: a named function of the host, with everything that a call of it needs. */

import { SchemaNode } from "#python/schema/tree.js";
import { paging_form } from "#python/tools/paging.js";
import { ToolDefinitionError, ToolError } from "../errors.js";
import { FAILURES, type Failures } from "../failures.js";
import { lowered } from "../python/values.js";
import { checkOptions, unknown } from "../suggest.js";
import { isObject } from "../values.js";
import { Binder } from "./binding.js";
import type { SchemaObject } from "./document.js";
import { checkName } from "./naming.js";
import { describe, isStandard, validate, type ArgumentsOf, type StandardSchema } from "./standard.js";

export type Policy = "auto" | "approve" | "direct";
const POLICIES: readonly string[] = ["auto", "approve", "direct"];
const FLAGS = ["readOnly", "destructive", "idempotent", "cpuBound", "clientSide", "openWorld"] as const;
const HINTS: readonly string[] = [...FLAGS, "risk", "category"];
const RISKS: readonly unknown[] = ["low", "medium", "high"];
const MCP_HINTS = {
  readOnly: "readOnlyHint", destructive: "destructiveHint", idempotent: "idempotentHint", openWorld: "openWorldHint",
} as const;
const DEEPEST_SCHEMA = 100;
/** What JSON Schema knows about an object: a schema without any of it is not meant as one. */
const KEYWORDS = new Set([
  ..."$schema $id $ref $defs $anchor $dynamicRef $comment definitions type properties required additionalProperties".split(" "),
  ..."patternProperties unevaluatedProperties propertyNames minProperties maxProperties dependentRequired dependentSchemas".split(" "),
  ..."dependencies allOf anyOf oneOf not if then else enum const title description default examples deprecated readOnly".split(" "),
  ..."format items prefixItems contains pattern minimum maximum minLength maxLength minItems maxItems nullable".split(" "),
]);

/** What a tool says about itself; absent means that it does not say. */
export interface Hints extends Partial<Record<(typeof FLAGS)[number], boolean | null>> {
  /** How much harm a wrong call can do. */
  risk?: "low" | "medium" | "high" | null;
  /** What it belongs to, in one word: files, mail, admin. */
  category?: string | null;
}

/** The call that a tool is answering. */
export interface ToolContext {
  runId: string;
  replId: string;
  tool: string;
  /** 1 for the first call of the run. */
  index: number;
  /** Aborted when nobody waits for the call any more. */
  signal: AbortSignal;
  /** What the Sandbox and the run were given as `context`: a database, a user, a session. */
  extra: Readonly<Record<string, unknown>>;
  /** The labels of the run. */
  labels: Readonly<Record<string, string>>;
}

/** A tool's function. A Standard Schema gives the type of its arguments; a JSON Schema gives `any`. */
export type ToolFunction<Parameters = SchemaObject> = (args: ArgumentsOf<Parameters>, context: ToolContext) => unknown;

export interface ToolOptions<Parameters extends SchemaObject | StandardSchema = SchemaObject | StandardSchema> {
  name: string;
  /** Without it the tool is a client-side tool: whoever runs the script answers its calls. */
  call?: ToolFunction<Parameters>;
  description?: string;
  /** A JSON Schema of type object, or a Standard Schema (zod, valibot, arktype), whose output the function gets. */
  parameters?: Parameters | null;
  /** The JSON Schema of `parameters`, for a Standard Schema that cannot describe itself. */
  jsonSchema?: SchemaObject | null;
  /** A JSON Schema of the result, or a Standard Schema that can describe itself. */
  returns?: SchemaObject | StandardSchema | null;
  namespace?: string | null;
  /** auto: scripts may call it; approve: a person must agree to each call; direct: never offered to scripts. */
  policy?: Policy;
  hints?: Hints;
  /** Seconds that one call may take. */
  timeout?: number | null;
  /** How many calls of it may run at the same moment. */
  maxConcurrency?: number | null;
  /** Make data of text that is JSON, where there is no result schema. */
  parseJson?: boolean;
  /** Of a result that is nothing but a failure: "return" gives the data, "raise" an error; by default as the Sandbox says. */
  failures?: Failures | null;
  /** It runs scripts itself, so that scripts must not reach it. */
  execution?: boolean;
  tags?: string[];
}

const OPTIONS = [
  ...["name", "call", "description", "parameters", "jsonSchema", "returns", "namespace", "policy", "hints", "timeout"],
  ...["maxConcurrency", "parseJson", "failures", "execution", "tags"],
];

/** Makes a Tool from its schema and a function, sync or async, that gets one object of named arguments. */
export function tool<Parameters extends SchemaObject | StandardSchema = SchemaObject>(options: ToolOptions<Parameters>): Tool {
  return new Tool(options as ToolOptions);
}

/** Stands for the function of a client-side tool. */
function unanswered(): never {
  throw new ToolError("this tool is answered by the client, and nothing asks the client here; a program answers it with clientCalls", { code: "client_unavailable" });
}

export class Tool {
  readonly name: string;
  readonly call: ToolFunction;
  /** It has no function here: whoever runs the script, or handles the model's call, answers its calls. */
  readonly answeredByCaller: boolean;
  readonly description: string;
  readonly parameters: SchemaObject;
  readonly returns: SchemaObject | null;
  readonly namespace: string | null;
  readonly policy: Policy;
  readonly hints: Hints;
  readonly timeout: number | null;
  readonly maxConcurrency: number | null;
  readonly parseJson: boolean;
  readonly failures: Failures | null;
  readonly execution: boolean;
  readonly tags: string[];
  /** Its identity in a toolbox: `github.create_issue`, or the name alone. */
  readonly path: string;
  readonly binder: Binder;
  private readonly standard: StandardSchema | null;
  private described_: ToolView | undefined;

  constructor(private readonly options: ToolOptions) {
    checkOptions(options, OPTIONS);
    this.name = checkName(options.name);
    this.namespace = options.namespace == null ? null : checkName(options.namespace, "namespace");
    this.policy = options.policy ?? "auto";
    if (!POLICIES.includes(this.policy)) this.fail(unknown("policy", String(this.policy), POLICIES));
    const { call = unanswered } = options;
    if (typeof call !== "function") this.fail(`${String(call)} is not callable`);
    this.call = call;
    this.answeredByCaller = options.call === undefined;
    if (this.answeredByCaller && this.policy === "approve") this.fail("policy 'approve' needs a function");
    this.description = options.description ?? "";
    this.timeout = this.number("timeout", options.timeout, false);
    this.maxConcurrency = this.number("maxConcurrency", options.maxConcurrency, true);
    this.parseJson = options.parseJson ?? true;
    this.failures = options.failures ?? null;
    if (this.failures !== null && !FAILURES.includes(this.failures)) this.fail(`failures must be 'return' or 'raise', not '${String(this.failures)}'`);
    this.execution = options.execution ?? false;
    this.tags = [...(options.tags ?? [])];
    this.hints = this.checkHints(options.hints ?? {});
    this.standard = isStandard(options.parameters) ? options.parameters : null;
    if (this.standard === null && options.jsonSchema != null) this.fail("jsonSchema is for a Standard Schema as parameters");
    this.parameters = this.objectSchema(this.copied("parameters", this.described("parameters", options.jsonSchema ?? options.parameters)));
    this.returns = this.copied("returns", this.described("returns", options.returns));
    this.path = this.namespace === null ? this.name : `${this.namespace}.${this.name}`;
    try {
      this.binder = new Binder(this.parameters);
    } catch (problem) {
      this.fail((problem as Error).message);
    }
  }

  /** The tool as the modules that are translated from the Python package read it. */
  get view(): ToolView {
    return (this.described_ ??= new ToolView(this));
  }

  /** Arguments that fit the JSON Schema, as the Standard Schema makes them; throws ArgumentError with what it refuses. */
  async refined(given: Record<string, unknown>): Promise<unknown> {
    if (this.standard === null) return given;
    const result = await validate(this.standard, given);
    if ("problems" in result) throw this.binder.error(result.problems, this.path);
    return result.value;
  }

  /** The part of each parameter that it is paged with (`cursor`, `page`, `offset`, `limit`) and its name; null when it is not paged. */
  get pagingForm(): Record<string, string> | null {
    const form: Map<string, string> | null = paging_form(this.view);
    return form === null ? null : Object.fromEntries(form);
  }

  /** A copy with some fields changed. */
  with(changes: Partial<ToolOptions>): Tool {
    return new Tool({ ...this.options, ...changes });
  }

  /** MCP tool annotations; what MCP has no word for is left out. */
  mcpHints(): Record<string, boolean> {
    const made: Record<string, boolean> = {};
    for (const [ours, theirs] of Object.entries(MCP_HINTS)) {
      const value = this.hints[ours as keyof typeof MCP_HINTS];
      if (value != null) made[theirs] = value;
    }
    return made;
  }

  private fail(message: string): never {
    throw new ToolDefinitionError(`tool '${this.name}': ${message}`);
  }

  private number(what: string, value: number | null | undefined, whole: boolean): number | null {
    if (value == null) return null;
    if (typeof value !== "number" || !(value > 0) || value === Infinity || (whole && !Number.isInteger(value))) {
      const wanted = whole ? "a whole number of at least 1" : "a number of seconds above 0";
      this.fail(`${what} must be ${wanted}, not ${String(value)}`);
    }
    return value;
  }

  private checkHints(hints: Hints): Hints {
    for (const [name, value] of Object.entries(hints)) {
      if (!HINTS.includes(name)) throw new ToolDefinitionError(unknown("hint", name, HINTS));
      if (value === null || value === undefined) continue;
      if (name === "risk") {
        if (!RISKS.includes(value)) throw new ToolDefinitionError(`hint 'risk' must be low, medium or high, not ${String(value)}`);
      } else if (name === "category") {
        if (typeof value !== "string" || !value) throw new ToolDefinitionError(`hint 'category' must be a word, not ${String(value)}`);
      } else if (typeof value !== "boolean") {
        throw new ToolDefinitionError(`hint '${name}' must be true, false or null, not ${String(value)}`);
      }
    }
    return { ...hints };
  }

  /** A schema that is the tool's own, so that its giver may change theirs; null for none. */
  private copied(what: string, schema: unknown): SchemaObject | null {
    if (schema == null || (isPlain(schema) && Object.keys(schema).length === 0)) return null;
    if (!isPlain(schema)) this.fail(`${what} must be a JSON Schema (a plain object) or a Standard Schema, not ${kindOf(schema)}`);
    if (!Object.keys(schema).some((key) => KEYWORDS.has(key) || key.startsWith("x-"))) {
      const given = Object.keys(schema).slice(0, 3).join(", ");
      this.fail(`${what} is not a JSON Schema: it has no keyword of one, only ${given}; write {type: "object", properties: {…}}`);
    }
    let level: unknown[] = [schema];
    for (let depth = 0; depth < DEEPEST_SCHEMA; depth += 1) {
      level = level.flatMap((item) => Object.values(item as object)).filter((part) => typeof part === "object" && part !== null);
    }
    if (level.length > 0) this.fail(`${what} is nested deeper than ${DEEPEST_SCHEMA} levels`);
    return structuredClone(schema);
  }

  private described(what: "parameters" | "returns", schema: unknown): unknown {
    if (!isStandard(schema)) return schema;
    try {
      return describe(schema, what === "parameters" ? "input" : "output");
    } catch (problem) {
      const advice = what === "parameters" ? "give its JSON Schema as jsonSchema" : "give a JSON Schema instead";
      this.fail(`${what}: ${(problem as Error).message}; ${advice}`);
    }
  }

  private objectSchema(schema: SchemaObject | null): SchemaObject {
    if (schema === null) return { type: "object", properties: {} };
    const declared = new SchemaNode(schema).kinds;
    if (declared !== null && !declared.has("object")) {
      this.fail(`parameters must be a JSON Schema of type object, not ${[...declared].sort().join("|")}`);
    }
    return schema;
  }
}

/** A tool as the modules that are translated from the Python package read it. */
export class ToolView {
  readonly name;
  readonly namespace;
  readonly path;
  readonly description;
  readonly policy;
  readonly timeout;
  readonly tags;
  readonly parameters;
  readonly returns;
  readonly accepted;
  readonly hints;
  private node: unknown;

  constructor(readonly tool: Tool) {
    ({ name: this.name, namespace: this.namespace, path: this.path, description: this.description, policy: this.policy } = tool);
    ({ timeout: this.timeout, tags: this.tags, parameters: this.parameters, returns: this.returns } = tool);
    this.accepted = tool.binder.accepted;
    const { readOnly: read_only, destructive, idempotent, openWorld: open_world } = tool.hints;
    this.hints = { read_only, destructive, idempotent, open_world, to_mcp: () => tool.mcpHints() };
  }
  with_shape(): this {
    return this;
  }
  with_(changes: Map<string, unknown>): ToolView {
    return this.tool.with(Object.fromEntries([...changes].map(([name, value]) => [name, lowered(value)]))).view;
  }
  get returned(): unknown {
    return (this.node ??= new SchemaNode(this.returns));
  }
  get binder() {
    const { own } = this.tool.binder;
    own.validator.begin();
    return own;
  }
}

function isPlain(value: unknown): value is SchemaObject {
  if (!isObject(value)) return false;
  const prototype = Object.getPrototypeOf(value) as object | null;
  return prototype === null || Object.getPrototypeOf(prototype) === null; // also of another realm
}

function kindOf(value: unknown): string {
  return isObject(value) ? `an instance of ${value.constructor?.name || "a class"}` : Array.isArray(value) ? "an array" : typeof value;
}
