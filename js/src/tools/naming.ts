/** Names of tools: which are valid, and how a script writes those that are not identifiers. */

import { ToolDefinitionError } from "../errors.js";

export const LONGEST_NAME = 128;
const RESERVED = new Set([
  ...["and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if"],
  ...["in", "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while"],
]);

/** Whether a script can write `tools.<text>`. */
export function isIdentifier(text: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(text) && !RESERVED.has(text);
}

/** The name, if a tool or namespace may have it. */
export function checkName(name: unknown, what = "tool name"): string {
  if (typeof name !== "string") throw new ToolDefinitionError(`a ${what} must be a string, not ${typeof name}`);
  if (!name) throw new ToolDefinitionError(`a ${what} must not be empty`);
  if (name.length > LONGEST_NAME) {
    throw new ToolDefinitionError(
      `the ${what} '${name.slice(0, 32)}'… has ${name.length} characters; at most ${LONGEST_NAME} are allowed`,
    );
  }
  if (name !== name.trim() || /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u.test(name)) {
    throw new ToolDefinitionError(`the ${what} '${name}' has surrounding white space or a character that cannot be printed`);
  }
  if (name.split(".").includes("")) {
    throw new ToolDefinitionError(
      `the ${what} '${name}' has an empty part; dots separate parts, as in 'github.create_issue'`,
    );
  }
  return name;
}

/** The path with each part made a Lua identifier, before collisions are resolved. */
export function safeAlias(path: string): string {
  return path.split(".").map(safePart).join(".");
}

/** The alias of each path; the same for the same set of paths, in whatever order they came. */
export function aliases(paths: Iterable<string>): Map<string, string> {
  const ordered = [...new Set(paths)].sort(byText);
  const spaces = new Set(ordered.flatMap((path) => prefixes(safeAlias(path))));
  const exact = ordered.filter((path) => safeAlias(path) === path && !spaces.has(path));
  const chosen = new Map(exact.map((path) => [path, path]));
  const taken = new Set(exact);
  const last = new Map<string, number>();
  for (const path of ordered) {
    if (chosen.has(path)) continue;
    const alias = safeAlias(path);
    const base = spaces.has(alias) ? `${alias}_` : alias;
    let candidate = base;
    while (taken.has(candidate) || spaces.has(candidate)) {
      last.set(base, (last.get(base) ?? 1) + 1);
      candidate = `${base}_${last.get(base)}`;
    }
    chosen.set(path, candidate);
    taken.add(candidate);
  }
  return chosen;
}

/** In the order of the characters' codes. */
export function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function safePart(part: string): string {
  let safe = part.replace(/[^A-Za-z0-9_]/gu, "_");
  if (/^\d/.test(safe)) safe = `_${safe}`;
  return RESERVED.has(safe) ? `${safe}_` : safe;
}

function prefixes(alias: string): string[] {
  const parts = alias.split(".");
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("."));
}
