/** JSON Schemas: their types, and what is read of them without a validator. */

import { kind_of } from "#python/schema/tree.js";

/** A JSON Schema: an object, or true or false. */
export type Schema = unknown;
export type SchemaObject = Record<string, unknown>;

/** The JSON type of a plain value; a whole number is an integer, bytes are a string. */
export const kindOf: (value: unknown) => string = kind_of;

export function partsOf(schema: SchemaObject, keyword: string): Schema[] {
  const parts = schema[keyword];
  return Array.isArray(parts) ? parts : [];
}
