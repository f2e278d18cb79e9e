/** A tool's schema as text for a model, at named levels of detail; byte for byte what the Python package writes. */

import { UsageError } from "../errors.js";
import { unknown } from "../suggest.js";
import { isObject } from "../values.js";
import { Document, NARRATION, type Schema, type SchemaObject } from "./document.js";
import { isIdentifier } from "./naming.js";
import { pagingForm } from "./paging.js";
import type { Tool } from "./tool.js";

export const LEVELS = ["name", "signature", "brief", "full", "schema"] as const;
export type Level = (typeof LEVELS)[number];

const LONGEST_SENTENCE = 140;
const MOST_FIELDS = 16;
const PLAIN = new Set(["string", "integer", "number", "boolean", "null"]);
const MOST_CHOICES = 8;
const LONGEST_CHOICES = 80;
const SENTENCE = /(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)(?<!\bcf)[.!?](?=\s)|[。！？]/u;

/** The tool at that level of detail; `name` replaces its path, where a script writes it differently. */
export function render(tool: Tool, level: Level = "brief", name: string = tool.path): string {
  switch (level) {
    case "name":
      return name;
    case "signature":
      return name + signature(tool);
    case "brief":
      return name + signature(tool) + sentence(tool);
    case "full":
      return [name + signature(tool) + sentence(tool), ...details(tool)].join("\n");
    case "schema":
      return `${name}${signature(tool)}${sentence(tool)}\n  schema: ${minified(withoutNarration(tool.parameters))}`;
  }
  throw new UsageError(unknown("level", String(level), LEVELS));
}

/** A schema as a short type: `integer|null`, `"a"|"b"`, `{id: integer, tags?: string[]}`. */
export function typeText(schema: Schema, document: Document, nested = 1): string {
  return new Types(document).text(schema, nested);
}

/** The first sentence on one line, cut with `…` where it is longer. */
export function firstSentence(text: string, longest = LONGEST_SENTENCE): string {
  const paragraph = text.trim().split("\n\n")[0]!;
  let line = flat(paragraph.replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/gu, " "));
  const end = SENTENCE.exec(line);
  if (end !== null) line = line.slice(0, end.index + end[0].length);
  const chars = Array.from(line);
  if (chars.length <= longest) return line;
  let at = longest - 1;
  while (at > 0 && joins(chars, at)) at -= 1; // never between a letter and its accent, or inside a joined emoji
  return `${chars.slice(0, at).join("").trimEnd()}…`;
}

/** Words with one space between them. */
export function flat(text: string): string {
  return text.split(/\s+/u).filter(Boolean).join(" ");
}

/** `employee_id* (integer), limit (integer, default 10)`, the required ones starred. */
export function parameterList(document: Document): string {
  const named = document.properties(document.root);
  const must = new Set(document.required(document.root));
  const types = new Types(document);
  return shownNames(document)
    .map((name) => `${name}${must.has(name) ? "*" : ""} (${types.text(named[name], 0)}${defaultText(named[name], document)})`)
    .join(", ");
}

export function minified(value: unknown): string {
  return JSON.stringify(value);
}

function shownNames(document: Document): string[] {
  return document.positionalOrder().filter((name) => name !== NARRATION);
}

function signature(tool: Tool): string {
  const document = tool.document;
  const named = document.properties(document.root);
  const must = new Set(document.required(document.root));
  const types = new Types(document);
  const parts = shownNames(document).map((name) => `${key(name)}${must.has(name) ? "" : "?"}: ${types.text(named[name], 1)}`);
  const returned = tool.returns === null ? "" : ` -> ${typeText(tool.returns, new Document(tool.returns), 2)}`;
  const paged = pagingForm(tool) === null ? "" : " -- paged";
  return `(${parts.join(", ")})${returned}${paged}`;
}

function sentence(tool: Tool): string {
  const text = firstSentence(tool.description);
  return text ? ` — ${text}` : "";
}

function details(tool: Tool): string[] {
  const lines: string[] = [];
  const description = tool.description.trim();
  const first = firstSentence(tool.description);
  const rest = description.startsWith(first) ? description.slice(first.length).trim() : description;
  if (rest && flat(description) !== first) lines.push(rest);
  const document = tool.document;
  const named = document.properties(document.root);
  const must = new Set(document.required(document.root));
  const shown = shownNames(document);
  const types = new Types(document);
  if (shown.length > 0) lines.push("parameters:");
  for (const name of shown) {
    const rank = must.has(name) ? ", required" : defaultText(named[name], document) || ", optional";
    lines.push(`  ${name} (${types.text(named[name], 1)}${rank})${described(named[name], document)}`);
  }
  if (tool.returns !== null) {
    const returns = new Document(tool.returns);
    lines.push(`returns: ${typeText(tool.returns, returns, 2)}${described(tool.returns, returns)}`);
    for (const [name, part] of Object.entries(returns.properties(returns.root))) {
      const text = described(part, returns);
      if (text) lines.push(`  ${name}${text}`);
    }
  }
  const facts = factsOf(tool);
  if (facts.length > 0) lines.push(`notes: ${facts.join(", ")}`);
  return lines;
}

function factsOf(tool: Tool): string[] {
  const { hints } = tool;
  const pairs: [unknown, string][] = [
    [hints.read_only, "changes nothing"],
    [hints.destructive, "may delete or overwrite"],
    [hints.idempotent, "safe to repeat"],
    [hints.open_world, "reaches outside services"],
    [tool.policy === "approve", "a person must approve each call"],
    [tool.timeout !== null, `timeout ${tool.timeout} s`],
  ];
  return pairs.filter(([holds]) => holds).map(([, text]) => text);
}

function defaultText(schema: Schema, document: Document): string {
  const part = document.deref(schema);
  if (!isObject(part) || part["default"] === undefined || part["default"] === null) return "";
  const text = minified(part["default"]);
  return text.length <= 60 ? `, default ${text}` : "";
}

function described(schema: Schema, document: Document): string {
  const part = document.deref(schema);
  const text = isObject(part) ? part["description"] : null;
  return typeof text === "string" && text.trim() ? `: ${flat(text)}` : "";
}

function withoutNarration(schema: SchemaObject): SchemaObject {
  const properties = schema["properties"];
  if (!isObject(properties) || !(NARRATION in properties)) return schema;
  const { [NARRATION]: _, ...kept } = properties;
  const changed: SchemaObject = { ...schema, properties: kept };
  if (Array.isArray(schema["required"])) changed["required"] = schema["required"].filter((name) => name !== NARRATION);
  return changed;
}

/** One rendering: schemas that contain themselves end at their JSON type instead of never. */
class Types {
  private readonly open = new Set<object>();
  private left = 400; // subschemas; a server's schema may be built to grow without end

  constructor(private readonly document: Document) {}

  text(given: Schema, nested: number): string {
    const schema = this.document.deref(given);
    if (schema === false) return "never";
    if (!isObject(schema)) return "any";
    if (this.open.has(schema) || this.left <= 0) return this.kindsText(schema);
    this.left -= 1;
    this.open.add(schema);
    try {
      return this.choices(schema) || this.union(schema, nested) || this.typed(schema, nested) || "any";
    } finally {
      this.open.delete(schema);
    }
  }

  private kindsText(schema: SchemaObject): string {
    return either([...(this.document.kinds(schema) ?? [])].sort()) || "any";
  }

  private choices(schema: SchemaObject): string {
    const values = "const" in schema ? [schema["const"]] : schema["enum"];
    if (!Array.isArray(values) || values.length === 0) return "";
    const text = values.map(minified).join("|");
    return values.length <= MOST_CHOICES && text.length <= LONGEST_CHOICES ? text : this.kindsText(schema);
  }

  private union(schema: SchemaObject, nested: number): string {
    const named = isObject(schema["properties"]) && Object.keys(schema["properties"]).length > 0;
    for (const keyword of ["anyOf", "oneOf"]) {
      const branches = schema[keyword];
      if (Array.isArray(branches) && branches.length > 0 && !named) {
        return either(branches.slice(0, MOST_FIELDS).map((branch) => this.text(branch, nested)));
      }
    }
    const parts = schema["allOf"];
    if (Array.isArray(parts) && !("type" in schema) && Object.keys(this.document.properties(schema)).length === 0) {
      for (const part of parts) {
        const text = this.text(part, nested);
        if (text !== "any") return text;
      }
      return "any";
    }
    return "";
  }

  private typed(schema: SchemaObject, nested: number): string {
    const declared = schema["type"];
    if (Array.isArray(declared)) return either(declared.map((kind) => this.one(String(kind), schema, nested)));
    if (typeof declared === "string") return this.one(declared, schema, nested);
    const kinds = [...(this.document.kinds(schema) ?? [])].sort();
    return either(kinds.map((kind) => this.one(kind, schema, nested))) || "any";
  }

  private one(kind: string, schema: SchemaObject, nested: number): string {
    if (kind === "array") return this.array(schema, nested);
    if (kind === "object") return this.object(schema, nested);
    return PLAIN.has(kind) ? kind : "any"; // a server's result schema may say anything
  }

  private array(schema: SchemaObject, nested: number): string {
    const first = schema["prefixItems"];
    if (Array.isArray(first)) return `[${first.slice(0, MOST_FIELDS).map((part) => this.text(part, nested)).join(", ")}]`;
    const items = schema["items"];
    if (!isObject(items)) return "array";
    const text = this.text(items, nested);
    return hasBar(text) ? `(${text})[]` : `${text}[]`;
  }

  private object(schema: SchemaObject, nested: number): string {
    if (nested <= 0) return "object";
    const named = Object.entries(this.document.properties(schema));
    const must = new Set(this.document.required(schema));
    if (named.length === 0) {
      const rest = schema["additionalProperties"];
      const typed = isObject(rest) && Object.keys(rest).length > 0;
      return typed ? `{[string]: ${this.text(rest, nested - 1)}}` : "object";
    }
    const fields = named
      .slice(0, MOST_FIELDS)
      .map(([name, part]) => `${key(name)}${must.has(name) ? "" : "?"}: ${this.text(part, nested - 1)}`);
    return `{${[...fields, ...(named.length > MOST_FIELDS ? ["…"] : [])].join(", ")}}`;
  }
}

function either(texts: string[]): string {
  const unique = [...new Set(texts)];
  return unique.includes("any") ? "any" : unique.join("|");
}

/** Whether a `|` stands outside all brackets. */
function hasBar(text: string): boolean {
  let depth = 0;
  for (const char of text) {
    if ("{[(".includes(char)) depth += 1;
    else if ("}])".includes(char)) depth -= 1;
    if (char === "|" && depth === 0) return true;
  }
  return false;
}

function key(name: string): string {
  return isIdentifier(name) ? name : `[${minified(name)}]`;
}

/** Whether the characters before and after this place are drawn as one. */
function joins(chars: string[], at: number): boolean {
  return /\p{M}/u.test(chars[at]!) || "\u200d\ufe0f".includes(chars[at]!) || chars[at - 1] === "\u200d";
}
