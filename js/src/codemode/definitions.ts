/** Tool definitions in the form of each provider, and the reading of a model's calls, as the Python package does it. */

import * as python from "#python/codemode/definitions.js";
import { dataclasses } from "../python/stdlib.js";
import { lowered } from "../python/values.js";
import type { SchemaObject } from "../tools/document.js";
import type { Tool, ToolView } from "../tools/tool.js";

export const FORMATS: readonly string[] = python.FORMATS;
export type Format = keyof Definitions;

/** A JSON Schema of type object, as providers want it. */
export interface ObjectSchema extends SchemaObject {
  type: "object";
}

interface Named {
  name: string;
  description: string;
}

/** The form of the definitions for each provider. */
export interface Definitions {
  openai: { type: "function"; function: Named & { parameters: ObjectSchema } }[];
  "openai-responses": ({ type: "function"; parameters: ObjectSchema; strict: false } & Named)[];
  anthropic: (Named & { input_schema: ObjectSchema })[];
  gemini: { function_declarations: (Named & { parameters_json_schema: ObjectSchema })[] }[];
  mcp: (Named & { inputSchema: ObjectSchema; outputSchema?: ObjectSchema; annotations?: Record<string, boolean> })[];
}

/** What a provider is told about one tool. */
export interface Definition extends Named {
  readonly parameters: SchemaObject;
  /** The same with a description of at most so many characters; the rest moves to the parameters. */
  within(longest: number | null): Definition;
}

/** `overflow` is the parameter whose description takes what a provider has no room for in the tool's own. */
export function define(name: string, description: string, parameters: SchemaObject, annotations: Record<string, boolean>, overflow: string): Definition {
  return new python.Definition(name, description, parameters, null, annotations, overflow);
}

export function redescribed(definition: Definition, description: string): Definition {
  return dataclasses.replace(definition, { description });
}

export function fromTool(tool: Tool, name: string): Definition {
  return python.from_tool(tool.view, name);
}

/** The definitions as plain objects of that provider. */
export function inFormat<Form extends Format>(definitions: Definition[], form: Form): Definitions[Form] {
  return lowered(python.in_format(definitions, form));
}

/** Names that every provider accepts, for tools that are called directly. */
export function providerNames(tools: Iterable<Tool>, taken: Iterable<string>): Map<string, Tool> {
  const names: Map<string, ToolView> = python.provider_names(Array.from(tools, (tool) => tool.view), taken);
  return new Map([...names].map(([name, view]) => [name, view.tool]));
}

/** A call's arguments as an object; text is read as JSON, as providers send it. Null for anything else. */
export function parseArguments(given: unknown): Record<string, unknown> | null {
  return lowered(python.parse_arguments(given));
}

/** The script in a call's arguments, if there is one; also under another name that models often use for it. */
export const findScript: (given: Record<string, unknown>, parameter: string) => string | null = python.find_script;
/** A value for a message, written as Python writes it. */
export const shorten: (value: unknown) => string = python.shorten;
