/** The documentation that scripts read through `docs`. */

import { ArgumentError } from "../errors.js";
import { filled, functionDocs, type Language } from "../languages.js";
import { ToolSearch } from "../tools/search.js";
import { firstSentence, render, Signatures, visible, worthSaying } from "../tools/signature.js";
import type { Tool } from "../tools/tool.js";
import type { Toolbox } from "../tools/toolbox.js";
import { counted } from "../values.js";

const MOST_RESULTS = 50;
const MOST_NAMES = 10_000;
const TOOLS_PER_UNIT = 20;
const MOST_TEXT = 500;
const MOST_LOOKED_AT = 20; // tools for each one that is found: others may be the same in another group

/** Answers `docs[name]`, `docs.search` and `docs.describe` for one Repl. */
export class Docs {
  private readonly searching: ToolSearch;

  constructor(
    private readonly toolbox: Toolbox,
    private readonly entries: ReadonlyMap<string, string>,
    private readonly language: Language,
  ) {
    this.searching = new ToolSearch(toolbox);
  }

  /** What a question costs: searching, and finding the nearest name, look at every tool. */
  cost(what: string): number {
    return what === "get" ? 1 : 1 + Math.floor(this.toolbox.size / TOOLS_PER_UNIT);
  }

  /** The value for the script; throws ToolError where the question is malformed. */
  answer(what: string, given: unknown[]): unknown {
    if (what === "names") return this.names().slice(0, MOST_NAMES);
    const first = given[0];
    if (what === "search" && typeof first === "string" && !first.trim()) return this.listing(limitOf(given, MOST_RESULTS));
    if (typeof first !== "string" || !first.trim()) {
      throw new ArgumentError(what === "get" ? "docs expects the name of an entry" : `docs.${what} expects text`);
    }
    if (first.length > MOST_TEXT) {
      throw new ArgumentError(`docs.${what} expects at most ${MOST_TEXT} characters, got ${first.length}`);
    }
    if (what === "get") return this.get(first);
    if (what === "describe") return this.get(first) ?? this.group(first) ?? render(this.toolbox.resolve(withoutPrefix(first)), "full");
    if (what !== "search") throw new ArgumentError(`docs has no '${what}'`, { code: "unknown_function" });
    return this.search(first, Math.min(limitOf(given, 10), MOST_RESULTS));
  }

  /** What there is, tools first, in the order in which they were added. */
  private listing(limit: number): unknown[] {
    const texts = Object.entries({ ...Object.fromEntries(this.entries), ...this.language.docs });
    const most = Math.min(limit, MOST_NAMES);
    return [...found(this.tools(), most), ...texts.map(([name, text]) => ofEntry(name, text))].slice(0, most);
  }

  /** Every name that `get` answers. */
  private names(): string[] {
    const { docs, library_docs } = this.language;
    const tools = this.tools().map((tool) => `tools.${tool.path}`);
    return [...new Set([...tools, ...this.entries.keys(), ...Object.keys(docs), ...Object.keys(library_docs)])];
  }

  private tools(): Tool[] {
    return [...this.toolbox].filter((tool) => tool.policy !== "direct");
  }

  private get(name: string): string | null {
    const entry = this.entries.get(name);
    if (entry !== undefined) return entry;
    const builtin = own(this.language.docs, name);
    let tool = name.startsWith("tools.") ? this.tool(withoutPrefix(name)) : null;
    if (tool === null && builtin === null) tool = this.tool(name);
    return tool === null ? (builtin ?? own(this.language.library_docs, name)) : render(tool, "full");
  }

  private search(words: string, limit: number): unknown[] {
    const ranked = this.searching.search(words, limit * MOST_LOOKED_AT).filter((tool) => tool.policy !== "direct");
    const matches: Entry[] = found(ranked, limit);
    if (matches.length < limit) {
      const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
      for (const [name, text] of new Map([...Object.entries(this.language.docs), ...this.entries])) {
        const whole = `${name} ${text}`.toLowerCase();
        if (wanted.every((word) => whole.includes(word))) matches.push(ofEntry(name, text));
      }
      for (const [name, text] of Object.entries(this.language.library_docs)) {
        if (wanted.every((word) => name.toLowerCase().includes(word))) matches.push(ofEntry(name, text));
      }
    }
    return matches.slice(0, limit);
  }

  /** The tools of a namespace: types, signatures, first sentences. */
  private group(name: string): string | null {
    const { texts } = this.language;
    const space = `${withoutPrefix(name).replaceAll(texts.separator, ".")}.`;
    const named = (tool: Tool): string => texts.written(this.toolbox.alias(tool));
    const members = this.tools().filter((tool) => tool.path.startsWith(space) || this.toolbox.alias(tool).startsWith(space));
    if (members.length === 0) return null;
    const signatures = new Signatures(members, { facts: true });
    const lines = members.map((tool) => `- ${signatures.signature(tool, named(tool))}${worthSaying(tool, true)}`);
    const call = filled(texts.call, { name: named(members[0]!) });
    const title = `${visible(space.slice(0, -1))}: ${counted(members.length, "tool")}; a call is ${call}`;
    return [title, ...signatures.types(), ...lines].join("\n");
  }

  private tool(path: string): Tool | null {
    const found = this.toolbox.get(path);
    return found !== undefined && found.policy !== "direct" ? found : null;
  }
}

interface Entry {
  name: string;
  signature: string;
  summary: string;
  types?: string[];
  alsoIn?: string[];
}

/** The first sentence of each entry that was added, by name. */
export function addedEntries(entries: ReadonlyMap<string, string>): Map<string, string> {
  const own: string[] = Object.values(functionDocs);
  return new Map([...entries].filter(([, text]) => !own.includes(text)).map(([name, text]) => [name, firstSentence(text)]));
}

/** The tools as search results. The same tool of several groups is one, and a type is in the first that names it. */
function found(tools: Tool[], most: number): Entry[] {
  const alike = new Map<string, Tool[]>();
  for (const tool of tools) {
    const key = JSON.stringify([tool.name, tool.parameters, tool.returns]);
    alike.set(key, [...(alike.get(key) ?? []), tool]);
  }
  const firsts = [...alike.values()].slice(0, most);
  const signatures = new Signatures(firsts.map((same) => same[0]!));
  return firsts.map(([first, ...others]) => {
    const tool = first!;
    const signature = signatures.signature(tool, tool.path);
    const types = signatures.types();
    return {
      name: tool.path,
      signature,
      summary: firstSentence(tool.description),
      ...(types.length > 0 ? { types } : {}),
      ...(others.length > 0 ? { also_in: others.map((other) => other.namespace ?? "tools") } : {}),
    };
  });
}

function ofEntry(name: string, text: string): Entry {
  return { name, signature: text.split("\n")[0]!, summary: "" };
}

function limitOf(given: unknown[], otherwise: number): number {
  const limit = given[1] ?? otherwise;
  if (typeof limit !== "number" || !Number.isInteger(limit) || limit < 1) {
    throw new ArgumentError("docs.search: the second argument is a whole number of results");
  }
  return limit;
}

function own(texts: Record<string, string>, name: string): string | null {
  return Object.hasOwn(texts, name) ? texts[name]! : null;
}

function withoutPrefix(name: string): string {
  return name.startsWith("tools.") ? name.slice("tools.".length) : name;
}
