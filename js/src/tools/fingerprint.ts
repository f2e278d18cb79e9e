/** The fingerprint of a tool: each part of its definition that a person's decision may rest on. */

import { isObject } from "../values.js";
import type { Tool } from "./tool.js";

export type Fingerprint = Readonly<Record<string, string>>;

export function fingerprint(tool: Tool): Fingerprint {
  return {
    description: tool.description,
    parameters: text(tool.parameters),
    result: text(tool.returns),
    hints: text(tool.hints),
    code: String(tool.call),
  };
}

/** The names of the parts that differ. */
export function changedParts(before: Fingerprint, after: Fingerprint): string[] {
  return Object.keys(after).filter((name) => before[name] !== after[name]);
}

/** JSON with the fields in the order of their names. */
function text(part: unknown): string {
  return JSON.stringify(part, (_, value: unknown) =>
    isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
}
