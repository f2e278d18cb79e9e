/** A tool's schema as text for a model, at named levels of detail, as the Python package writes it. */

import * as python from "#python/tools/signature.js";
import { type_text } from "#python/schema/type_reader.js";
import { SchemaNode } from "#python/schema/tree.js";
import type { Tool } from "./tool.js";

export type Level = "name" | "signature" | "brief" | "full" | "schema";

/** The tool at that level of detail; `name` replaces its path, where a script writes it differently. */
export function render(tool: Tool, level: Level = "brief", name: string = tool.path): string {
  return python.render(tool.view, level, name);
}

/** Signatures of several tools, in which each type that they share is written once. */
export class Signatures {
  private readonly own;

  constructor(tools: Tool[], options: { facts?: boolean; factsOfResults?: boolean } = {}) {
    this.own = new python.Signatures(tools.map((tool) => tool.view), undefined, options.facts, options.factsOfResults);
  }

  /** `name(a: number) -> Order`, and `-> …` in place of a result that is left out. */
  signature(tool: Tool, name: string, result = true): string {
    return this.own.signature(tool.view, name, result);
  }

  /** `Order = {…}` for each type that the signatures since the last time name. */
  types(): string[] {
    return this.own.types();
  }

  /** The signature and its types on one line. */
  alone(tool: Tool, name: string): string {
    return this.own.alone(tool.view, name);
  }
}

/** A sentence about a tool for a list of many: nothing where it only repeats the signature's names. */
export function worthSaying(tool: Tool, facts: boolean, shared?: ReadonlySet<string>): string {
  return python.worth_saying(tool.view, facts, shared);
}

/** Words in the first sentences of a quarter of the tools and more: they tell none from another. */
export function sharedWords(tools: readonly Tool[]): ReadonlySet<string> {
  return python.shared_words(tools.map((tool) => tool.view));
}

/** The JSON Schema of a tool's parameters on one line. */
export function parametersSchema(tool: Tool): string {
  return python.parameters_schema(tool.view);
}

/** A schema as a short type, so many levels deep: `integer|null`, `"a"|"b"`, `{id: integer, tags?: string[]}`. */
export function typeText(schema: unknown, nested = 1): string {
  return type_text(new SchemaNode(schema), nested);
}

/** The text with what cannot be seen, or breaks or turns a line, spelled out as JSON would. */
export const visible: (text: string) => string = python.visible;
/** The first sentence on one line, cut with `…` where it is longer. */
export const firstSentence: (text: string, longest?: number) => string = python.first_sentence;
/** The length in characters, as the Python package counts. */
export function lengthOf(text: string): number {
  return /[\ud800-\udbff]/.test(text) ? Array.from(text).length : text.length;
}

/** Words with one space between them. */
export function flat(text: string): string {
  return text.split(/\s+/u).filter(Boolean).join(" ");
}
