/** A tool's schema as text for a model, at named levels of detail; byte for byte what the Python package writes. */

import { UsageError } from "../errors.js";
import { unknown } from "../suggest.js";
import { isObject } from "../values.js";
import { Document, NARRATION, type Schema, type SchemaObject } from "./document.js";
import { begin, lengthOf, oneLine, SENTENCE, sentences, telling } from "./facts.js";
import { pagingForm } from "./paging.js";
import { words } from "./search.js";
import type { Tool } from "./tool.js";
import { joined, minified, Reader, singular, TypeBook, type Template } from "./types.js";

export const LEVELS = ["name", "signature", "brief", "full", "schema"] as const;
export type Level = (typeof LEVELS)[number];

const LONGEST_SENTENCE = 140;
const MOST_FIELDS_IN_MESSAGES = 16;
const FEW = 4;
const MOST_SENTENCES = 2;

/** The tool at that level of detail; `name` replaces its path, where a script writes it differently. */
export function render(tool: Tool, level: Level = "brief", name: string = tool.path): string {
  const signatures = new Signatures([tool]);
  switch (level) {
    case "name":
      return name;
    case "signature":
      return signatures.alone(tool, name);
    case "brief":
      return signatures.alone(tool, name) + sentence(tool);
    case "full":
      return described(tool, new Signatures([tool], { factsOfResults: true }), name).join("\n");
    case "schema":
      return `${signatures.alone(tool, name)}${sentence(tool)}\n  schema: ${parametersSchema(tool)}`;
  }
  throw new UsageError(unknown("level", String(level), LEVELS));
}

/** Signatures of several tools, in which each type that they share is written once. */
export class Signatures {
  private readonly book: TypeBook;
  private readonly parameters = new Map<string, Template>();
  private readonly results = new Map<string, Template>();

  constructor(tools: Tool[], options: { facts?: boolean; factsOfResults?: boolean } = {}) {
    const facts = options.facts ?? false;
    this.book = new TypeBook(tools.map((tool) => tool.name));
    for (const tool of tools) {
      this.parameters.set(tool.path, this.book.enter(parametersOf(tool, this.book, facts)));
      if (tool.returns === null) continue;
      const reader = new Reader(this.book, new Document(tool.returns), { facts: facts || (options.factsOfResults ?? false) });
      this.results.set(tool.path, this.book.enter(reader.read(tool.returns, thing(tool.name))));
    }
  }

  /** `name(a: number) -> Order`, and `-> …` in place of a result that is left out. */
  signature(tool: Tool, name: string, result = true): string {
    let text = name + this.book.text(this.parameters.get(tool.path)!);
    const returned = this.results.get(tool.path);
    if (returned !== undefined) text += ` -> ${result ? this.book.text(returned) : "…"}`;
    return visible(text) + (pagingForm(tool) === null ? "" : " -- paged");
  }

  /** `Order = {…}` for each type that the signatures since the last time name. */
  types(): string[] {
    return this.book.definitions().map(visible);
  }

  /** The signature and its types on one line. */
  alone(tool: Tool, name: string): string {
    const text = this.signature(tool, name);
    const types = this.types();
    return types.length > 0 ? `${text} where ${types.join(", ")}` : text;
  }
}

/** The lines of a tool's full documentation. */
function described(tool: Tool, signatures: Signatures, path: string): string[] {
  const lines = [signatures.signature(tool, path) + sentence(tool), ...signatures.types()];
  const description = tool.description.trim();
  const first = firstSentence(tool.description);
  const rest = description.startsWith(first) ? description.slice(first.length).trim() : description;
  if (rest && oneLine(description) !== first) {
    lines.push(...rest.split(/\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/).map((line) => `> ${oneLine(line)}`.trimEnd()));
  }
  const parameters = shown(tool.document).flatMap(([name, part]) => {
    const said = [defaultText(part, tool.document).replace(/^, /, ""), descriptionOf(part, tool.document)].filter(Boolean);
    return said.length > 0 ? [`  ${visible(name)}: ${said.join(". ")}`] : [];
  });
  if (parameters.length > 0) lines.push("parameters:", ...parameters);
  if (tool.returns !== null) {
    const returns = new Document(tool.returns);
    const about = [descriptionOf(tool.returns, returns)].filter(Boolean);
    for (const [name, part] of Object.entries(returns.properties(returns.root))) {
      const text = descriptionOf(part, returns);
      if (text) about.push(`${visible(name)}: ${text}`);
    }
    if (about.length > 0) lines.push("returns:", ...about.map((text) => `  ${text}`));
  }
  const notes = notesOf(tool);
  if (notes.length > 0) lines.push(`notes: ${notes.join(", ")}`);
  return lines;
}

/** ` — ` and the first sentence of the description. */
export function sentence(tool: Tool): string {
  const first = firstSentence(tool.description);
  return first ? ` — ${visible(first)}` : "";
}

/**
 * The same for a list of many tools: without a sentence that only repeats the signature's names, and with facts, also with later
 * sentences that tell what to know.
 */
export function worthSaying(tool: Tool, facts: boolean, shared: ReadonlySet<string> = new Set()): string {
  const first = firstSentence(tool.description);
  const stems = words(first);
  const called = new Set(words(tool.path));
  const known = new Set([...called, ...shared, ...fieldNames(tool).flatMap(words)]);
  const repeats = stems.length > 0 && called.has(stems[0]!) && stems.every((stem) => known.has(stem));
  const said = !first || repeats ? [] : [first];
  if (facts) {
    const later = sentences(oneLine(begin(tool.description))).slice(1).filter(telling);
    said.push(...later.filter((text) => lengthOf(text) <= LONGEST_SENTENCE).slice(0, MOST_SENTENCES));
  }
  return said.length > 0 ? ` — ${visible(said.join(" "))}` : "";
}

/** The names of its parameters, and of the fields of what it returns. */
function fieldNames(tool: Tool): string[] {
  const returns = new Document(tool.returns ?? {});
  return [...Object.keys(tool.document.properties(tool.document.root)), ...Object.keys(returns.properties(returns.root))];
}

/** Words in the first sentences of a quarter of the tools and more: they tell none from another. */
export function sharedWords(tools: readonly Tool[]): Set<string> {
  const counts = new Map<string, number>();
  for (const tool of tools) {
    for (const stem of new Set(words(firstSentence(tool.description)))) counts.set(stem, (counts.get(stem) ?? 0) + 1);
  }
  return new Set([...counts].filter(([, count]) => count >= Math.max(FEW, tools.length / 4)).map(([stem]) => stem));
}

/** The JSON Schema of a tool's parameters on one line. */
export function parametersSchema(tool: Tool): string {
  return visible(minified(withoutNarration(tool.parameters)));
}

/** A schema as a short type, so many levels deep: `integer|null`, `"a"|"b"`, `{id: integer, tags?: string[]}`. */
export function typeText(schema: Schema, document: Document, nested = 1): string {
  const book = new TypeBook([], MOST_FIELDS_IN_MESSAGES);
  return book.plain(new Reader(book, document, { depth: nested }).read(schema));
}

/** The text with what cannot be seen, or breaks or turns a line, spelled out as JSON would. */
export function visible(text: string): string {
  return text.replace(/(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (char) =>
    Array.from({ length: char.length }, (_, at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""),
  );
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
  const must = new Set(document.required(document.root));
  return shown(document)
    .map(([name, part]) => `${name}${must.has(name) ? "*" : ""} (${typeText(part, document, 0)}${defaultText(part, document)})`)
    .join(", ");
}

/** Each parameter that is shown, and its schema. */
function shown(document: Document): [string, Schema][] {
  const named = document.properties(document.root);
  return document.positionalOrder().filter((name) => name !== NARRATION).map((name) => [name, named[name]]);
}

function parametersOf(tool: Tool, book: TypeBook, facts: boolean): Template {
  const must = new Set(tool.document.required(tool.document.root));
  const reader = new Reader(book, tool.document, { facts });
  return ["(", ...joined(", ", shown(tool.document).map(([name, part]) => reader.field(name, part, must.has(name)))), ")"];
}

/** What a tool of that name gives: the order of `get_order`. */
function thing(name: string): string {
  const parts = name.match(/[A-Z]?[a-z0-9]+|[A-Z]+/g) ?? [];
  return singular((parts.length > 1 ? parts.slice(1) : parts).join("_"));
}

function notesOf(tool: Tool): string[] {
  const { hints } = tool;
  const pairs: [unknown, string][] = [
    [hints.readOnly, "changes nothing"],
    [hints.destructive, "may delete or overwrite"],
    [hints.idempotent, "safe to repeat"],
    [hints.openWorld, "reaches outside services"],
    [tool.policy === "approve", "a person must approve each call"],
    [tool.timeout !== null, `timeout ${tool.timeout} s`],
  ];
  return pairs.filter(([holds]) => holds).map(([, text]) => text);
}

function defaultText(schema: Schema, document: Document): string {
  const part = document.deref(schema);
  if (!isObject(part) || part["default"] === undefined || part["default"] === null) return "";
  const text = visible(minified(part["default"]));
  return lengthOf(text) <= 60 ? `, default ${text}` : "";
}

function descriptionOf(schema: Schema, document: Document): string {
  const part = document.deref(schema);
  const text = isObject(part) ? part["description"] : null;
  return typeof text === "string" ? oneLine(text) : "";
}

function withoutNarration(schema: SchemaObject): SchemaObject {
  const properties = schema["properties"];
  if (!isObject(properties) || !(NARRATION in properties)) return schema;
  const { [NARRATION]: _, ...kept } = properties;
  const changed: SchemaObject = { ...schema, properties: kept };
  if (Array.isArray(schema["required"])) changed["required"] = schema["required"].filter((name) => name !== NARRATION);
  return changed;
}

/** Whether the characters before and after this place are drawn as one. */
function joins(chars: string[], at: number): boolean {
  return /\p{M}/u.test(chars[at]!) || "\u200d\ufe0f".includes(chars[at]!) || chars[at - 1] === "\u200d";
}
