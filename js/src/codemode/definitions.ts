/** Tool definitions in the form of each provider, from one neutral form; and the reading of a model's calls. */

import { UsageError } from "../errors.js";
import { LANGUAGES } from "../languages.js";
import { unknown } from "../suggest.js";
import { Document, partsOf, type SchemaObject } from "../tools/document.js";
import type { Tool } from "../tools/tool.js";
import { fromEntries } from "../json.js";
import { endOfString, isObject } from "../values.js";

export const FORMATS = ["openai", "openai-responses", "anthropic", "gemini", "mcp"] as const;
export type Format = (typeof FORMATS)[number];

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

const LONGEST_NAME = 64;
const LONE_HALF = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const NOT_AT_ROOT = ["oneOf", "anyOf", "allOf", "not", "enum", "const", "if", "then", "else"];
const META = ["$schema", "$id", "$anchor", "$comment", "$ref"];
const LISTS = ["anyOf", "oneOf", "allOf", "prefixItems"];
const TABLES = ["properties", "$defs", "definitions", "patternProperties"];
const SINGLE = ["items", "additionalProperties", "not", "if", "then", "else", "contains"];

/** What a provider is told about one tool. */
export interface Definition {
  name: string;
  description: string;
  parameters: SchemaObject;
  returns: SchemaObject | null;
  annotations: Record<string, boolean>;
  /** The parameter whose description takes what a provider has no room for in the tool's own. */
  overflow: string | null;
}

/** The same with a description of at most so many characters; the rest moves to the parameters. */
export function within(item: Definition, longest: number | null): Definition {
  const chars = Array.from(item.description);
  if (longest === null || chars.length <= longest) return item;
  const note = item.overflow === null ? "…" : `(Continued in the description of ${item.overflow}.)`;
  const [head, rest] = cut(item.description, longest - note.length - 1);
  const parameters = structuredClone(item.parameters);
  const place = item.overflow === null ? parameters : ((parameters["properties"] as SchemaObject)[item.overflow] as SchemaObject);
  place["description"] = [place["description"], rest].filter(Boolean).join("\n");
  return { ...item, description: item.overflow === null ? head + note : `${head}\n${note}`, parameters };
}

export function fromTool(tool: Tool, name: string): Definition {
  return {
    name,
    description: portable(tool.description) as string,
    parameters: portable(tool.parameters) as SchemaObject,
    returns: portable(tool.returns) as SchemaObject | null,
    annotations: tool.mcpHints(),
    overflow: null,
  };
}

/** The definitions as plain objects of that provider. */
export function inFormat<Form extends Format>(definitions: Definition[], form: Form): Definitions[Form];
export function inFormat(definitions: Definition[], form: Format): Record<string, unknown>[] {
  switch (form) {
    case "openai":
      return definitions.map((item) => ({ type: "function", function: named(item, "parameters") }));
    case "openai-responses":
      return definitions.map((item) => ({ type: "function", ...named(item, "parameters"), strict: false }));
    case "anthropic":
      return definitions.map((item) => named(item, "input_schema"));
    case "gemini":
      return [{ function_declarations: definitions.map((item) => named(item, "parameters_json_schema")) }];
    case "mcp":
      return definitions.map(mcp);
  }
  throw new UsageError(unknown("format", String(form), FORMATS));
}

/** Names that every provider accepts, for tools that are called directly. */
export function providerNames(tools: Iterable<Tool>, taken: Iterable<string>): Map<string, Tool> {
  const names = new Map<string, Tool>();
  const used = new Set(taken);
  const last = new Map<string, number>();
  for (const tool of tools) {
    const base = providerName(tool.path);
    let name = base;
    while (used.has(name)) {
      last.set(base, (last.get(base) ?? 1) + 1);
      const ending = `_${last.get(base)}`;
      name = base.slice(0, LONGEST_NAME - ending.length) + ending;
    }
    used.add(name);
    names.set(name, tool);
  }
  return names;
}

/** A call's arguments as an object; text is read as JSON, as providers send it. Null for anything else. */
export function parseArguments(given: unknown): Record<string, unknown> | null {
  if (given === null || given === undefined || given === "") return {};
  let data = given;
  if (typeof given === "string") {
    try {
      data = JSON.parse(given);
    } catch {
      try {
        data = JSON.parse(withEscapedLines(given)); // small models leave line breaks in strings as they are
      } catch {
        return null;
      }
    }
  }
  return isObject(data) ? { ...data } : null;
}

/** The script in a call's arguments, if there is one; also under another name that models often use for it. */
export function findScript(given: Record<string, unknown>, parameter: string): string | null {
  const names = Object.keys(given);
  let source = given[parameter];
  if ((source === undefined || source === null) && names.length === 1 && scriptNames().has(names[0]!.toLowerCase())) {
    source = given[names[0]!];
  }
  if (typeof source !== "string") return null;
  const text = source.trim();
  const fenced = text.startsWith("```") && text.endsWith("```") && text.includes("\n");
  return fenced ? `\n${text.slice(text.indexOf("\n") + 1, -3)}` : source; // line numbers stay
}

/** A value for a message, written as Python writes it. */
export function shorten(value: unknown): string {
  const text = repr(value);
  return text.length <= 80 ? text : `${text.slice(0, 79)}…`;
}

function repr(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") {
    const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
    const escaped = JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replace(/\\u00([01][0-9a-f])/g, "\\x$1");
    return quote + (quote === "'" ? escaped.replaceAll("'", "\\'") : escaped) + quote;
  }
  if (Array.isArray(value)) return `[${value.map(repr).join(", ")}]`;
  if (isObject(value)) return `{${Object.entries(value).map(([name, item]) => `${repr(name)}: ${repr(item)}`).join(", ")}}`;
  return String(value);
}

function scriptNames(): Set<string> {
  const own = Object.values(LANGUAGES).flatMap((language) => language.parameter_aliases);
  return new Set(["code", "source", "sourcecode", "script", "program", "input", ...own]);
}

function withEscapedLines(text: string): string {
  const parts: string[] = [];
  for (let at = 0; at < text.length; ) {
    const quote = text.indexOf('"', at);
    const end = quote < 0 ? text.length : endOfString(text, quote);
    const string = quote < 0 ? "" : text.slice(quote, end);
    parts.push(text.slice(at, quote < 0 ? end : quote));
    parts.push(string.replaceAll("\n", "\\n").replaceAll("\r", "\\r").replaceAll("\t", "\\t"));
    at = end;
  }
  return parts.join("");
}

/** A copy that every JSON writer takes: no half of a surrogate pair, no NaN or infinity. */
function portable(value: unknown): unknown {
  if (typeof value === "string") return value.replace(LONE_HALF, "\ufffd");
  if (Array.isArray(value)) return value.map(portable);
  if (isObject(value)) return fromEntries(Object.entries(value).map(([key, part]) => [portable(key) as string, portable(part)]));
  return typeof value === "number" && !Number.isFinite(value) ? null : value;
}

/** A schema that every provider accepts: an object without unions at its root, and every array with its items. */
export function portableSchema(parameters: SchemaObject): SchemaObject {
  const root = rootOf(parameters);
  const dropped: SchemaObject = {};
  for (const key of NOT_AT_ROOT) {
    if (key in root) {
      dropped[key] = root[key];
      delete root[key];
    }
  }
  root["type"] = "object";
  const document = new Document({ ...parameters, ...dropped });
  if (!isObject(root["properties"])) root["properties"] = {};
  if (Object.keys(dropped).length > 0) nameBranches(root, dropped, document);
  const known = root["properties"] as SchemaObject;
  if (Array.isArray(root["required"])) root["required"] = root["required"].filter((name) => Object.hasOwn(known, name));
  completeArrays(root);
  return root;
}

function providerName(path: string): string {
  const name = path.replaceAll(".", "__").replace(/[^a-zA-Z0-9_-]/gu, "_");
  return (/^[A-Za-z_]/.test(name) ? name : `_${name}`).slice(0, LONGEST_NAME);
}

function named(item: Definition, key: string): SchemaObject {
  return { name: item.name, description: item.description || item.name, [key]: portableSchema(item.parameters) };
}

/** As many whole lines as fit, and the rest; of a single long line, as many characters as fit. */
function cut(text: string, longest: number): [string, string] {
  const chars = Array.from(text);
  const end = chars.slice(0, longest + 1).lastIndexOf("\n");
  const part = (from: number, to?: number): string => chars.slice(from, to).join("");
  return end <= 0 ? [part(0, longest), part(longest)] : [part(0, end), part(end + 1)];
}

function mcp(item: Definition): SchemaObject {
  const definition: SchemaObject = {
    name: item.name, description: item.description, inputSchema: structuredClone(item.parameters),
  };
  if (item.returns !== null && item.returns["type"] === "object") definition["outputSchema"] = item.returns;
  if (Object.keys(item.annotations).length > 0) definition["annotations"] = item.annotations;
  return definition;
}

function rootOf(parameters: SchemaObject): SchemaObject {
  const target = new Document(parameters).deref(parameters);
  const beside = Object.entries(parameters).filter(([key]) => key === "$defs" || key === "definitions");
  const merged = { ...Object.fromEntries(beside), ...(isObject(target) ? target : {}) };
  return structuredClone(Object.fromEntries(Object.entries(merged).filter(([key]) => !META.includes(key))));
}

function nameBranches(root: SchemaObject, dropped: SchemaObject, document: Document): void {
  const properties = root["properties"] as SchemaObject;
  const required = [...partsOf(root, "required")];
  for (const keyword of ["allOf", "anyOf", "oneOf"]) {
    for (const branch of partsOf(dropped, keyword)) {
      for (const [name, part] of Object.entries(document.properties(branch))) {
        if (!Object.hasOwn(properties, name)) properties[name] = structuredClone(part);
      }
      if (keyword === "allOf") required.push(...document.required(branch).filter((name) => !required.includes(name)));
    }
  }
  if (required.length > 0) root["required"] = required;
  const description = root["description"];
  const before = typeof description === "string" && description ? `${description}\n` : "";
  root["description"] = `${before}The arguments must also fit this JSON Schema: ${JSON.stringify(dropped)}`;
}

/** Gives arrays without `items` one that accepts everything; some providers refuse them otherwise. */
function completeArrays(node: unknown): void {
  if (!isObject(node)) return;
  const kinds = node["type"];
  if ((kinds === "array" || (Array.isArray(kinds) && kinds.includes("array"))) && !("prefixItems" in node)) {
    if (!("items" in node)) node["items"] = {};
  }
  for (const keyword of SINGLE) completeArrays(node[keyword]);
  for (const keyword of LISTS) partsOf(node, keyword).forEach(completeArrays);
  for (const keyword of TABLES) if (isObject(node[keyword])) Object.values(node[keyword]).forEach(completeArrays);
}
