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

/** A schema as a short type, so many levels deep: `integer|null`, `"a"|"b"`, `{id: integer, tags?: string[]}`. */
export function typeText(schema: unknown, nested = 1): string {
  return type_text(new SchemaNode(schema), nested);
}

/** The text with what cannot be seen, or breaks or turns a line, spelled out as JSON would. */
export const visible: (text: string) => string = python.visible;
