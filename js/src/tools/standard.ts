/** Schemas of other libraries (zod, valibot, arktype), through the interfaces of https://standardschema.dev that they share. */

import { isObject } from "../values.js";
import type { SchemaObject } from "./document.js";
import { path_text } from "#python/schema/problems.js";
import { T } from "../python/values.js";

/** Standard Schema: what validates. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** Standard JSON Schema: what describes itself too. */
    readonly jsonSchema?: { readonly input: Describe; readonly output: Describe } | undefined;
  };
}

type Describe = (options: { readonly target: "draft-2020-12" }) => Record<string, unknown>;
type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly PathPart[] | undefined }[] };
type PathPart = PropertyKey | { readonly key: PropertyKey };

/** What a function gets whose parameters are that schema. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- a JSON Schema says nothing to TypeScript
export type ArgumentsOf<Schema> = Schema extends StandardSchema<any, infer Output> ? Output : any;

/** Whether it has the interface; arktype's types are functions. */
export function isStandard(schema: unknown): schema is StandardSchema {
  if ((typeof schema !== "object" && typeof schema !== "function") || schema === null) return false;
  const standard = (schema as Partial<StandardSchema>)["~standard"];
  return isObject(standard) && typeof standard["validate"] === "function";
}

/** Its JSON Schema; throws an Error that says what to give instead. */
export function describe(schema: StandardSchema, side: "input" | "output"): SchemaObject {
  const { vendor, jsonSchema } = schema["~standard"];
  if (jsonSchema === undefined) throw new Error(`this schema of ${vendor} has no Standard JSON Schema (~standard.jsonSchema)`);
  try {
    const { $schema: _, ...made } = jsonSchema[side]({ target: "draft-2020-12" });
    return made;
  } catch (problem) {
    throw new Error(`${vendor} cannot describe this schema as JSON Schema: ${(problem as Error).message}`);
  }
}

/** The value as the schema makes it, or what is wrong with it. */
export async function validate(schema: StandardSchema, value: unknown): Promise<{ value: unknown } | { problems: string[] }> {
  const result = await schema["~standard"].validate(value);
  if (result.issues === undefined) return { value: result.value };
  return {
    problems: result.issues.map(({ message, path = [] }) => {
      const keys = path.map((part) => (typeof part === "object" ? part.key : part));
      return keys.length === 0 ? message : `${path_text(T(...keys.map((key) => (typeof key === "symbol" ? String(key) : key))))}: ${message}`;
    }),
  };
}
