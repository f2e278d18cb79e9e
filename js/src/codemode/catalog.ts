/** The catalog: the hidden tools as text on the code tool's description, as detailed as a budget allows. */

import { filled, type Texts, written } from "../languages.js";
import { byText } from "../tools/naming.js";
import { firstSentence, flat, lengthOf, parametersSchema, sharedWords, Signatures, typeText, visible, worthSaying } from "../tools/signature.js";
import type { Tool } from "../tools/tool.js";
import type { Toolbox } from "../tools/toolbox.js";
import { count, counted, isObject } from "../values.js";
import { inFormat, type Definition } from "./definitions.js";

export type Detail = "schemas" | "full" | "brief" | "signatures" | "names" | "search";
const STEPS: Detail[] = ["full", "brief", "signatures", "names", "search"];
const LONGEST_LINE = 4000;
const MOST_NAMESPACES = 60;
const MOST_NAMED_GROUPS = 20;
const SHARED_BY = 3;
const MOST_OPENINGS = 4;
const LEAN_TOKENS = 250;

export interface Catalog {
  text: string;
  detail: Detail;
  tools: number;
  tokens: number;
}

/** Which way the tools are shown, and why. `both`: every tool is direct, with a lean code tool beside them. */
export interface Choice {
  code: boolean;
  codeTokens: number;
  directTokens: number;
  reason: string;
  both: boolean;
  bothTokens: number;
}

export type CountTokens = (text: string) => number;

/** What `makeCatalog` takes besides the tools; `labels` are those of the conversation. */
interface CatalogOptions {
  fullSchemas: boolean;
  budget: number | null;
  count: CountTokens;
  leaveOut?: ReadonlySet<string>;
  labels?: Readonly<Record<string, string>> | undefined;
}

/**
 * The most detailed catalog within the budget of tokens. Its text depends on what is given alone, byte for byte. Where there is no
 * room for all signatures, groups that a label names keep theirs.
 */
export function makeCatalog(toolbox: Toolbox, texts: Texts, options: CatalogOptions): Catalog {
  const tools = [...toolbox].filter((tool) => !options.leaveOut?.has(tool.path)).sort((a, b) => {
    const [[aSpace, aName], [bSpace, bName]] = [place(a, toolbox), place(b, toolbox)];
    return byText(aSpace, bSpace) || byText(aName, bName) || byText(a.path, b.path);
  });
  if (tools.length === 0) return { text: "", detail: "full", tools: 0, tokens: 0 };
  const steps: Detail[] = options.fullSchemas ? ["schemas", ...STEPS] : STEPS;
  for (const step of steps) {
    let text = catalogText(step, tools, toolbox, texts);
    const fits = (longer: string): boolean => options.budget === null || options.count(longer) <= options.budget;
    if (!fits(text) && step !== "search") continue;
    if (step === "names" || step === "search") {
      let chosen: Tool[] = [];
      for (const group of namedGroups(tools, toolbox, options.labels ?? {})) {
        const longer = catalogText(step, tools, toolbox, texts, [...chosen, ...group]);
        if (fits(longer)) [text, chosen] = [longer, [...chosen, ...group]];
      }
    }
    return { text, detail: step, tools: tools.length, tokens: options.count(text) };
  }
  throw new Error("unreachable");
}

/** The tools of each group that a label names. */
function namedGroups(tools: Tool[], toolbox: Toolbox, labels: Readonly<Record<string, string>>): Tool[][] {
  const texts = Object.values(labels).map((text) => text.toLowerCase());
  const named = new Set(texts.flatMap((text) => [text, ...(text.match(/[\p{L}\p{N}_]+/gu) ?? [])]));
  const groups = groupsOf(tools, toolbox, (tool) => tool.path);
  return groups.filter((group) => named.has(group.place.slice(0, -1).toLowerCase())).slice(0, MOST_NAMED_GROUPS).map((group) => group.tools);
}

/** Takes what the mode says; `auto` takes the code tool where it is smaller, and both otherwise. `hidden` is how many tools scripts would reach. */
export function choose(
  mode: string, withCode: Definition[], allDirect: Definition[], lean: Definition,
  options: { prompt: string; hidden: number; count: CountTokens },
): Choice {
  const codeTokens = options.count(sent(withCode)) + (options.prompt ? options.count(options.prompt) : 0);
  const directTokens = options.count(sent(allDirect));
  const bothTokens = directTokens + options.count(sent([lean]));
  let [code, both, why] = [true, true, "direct definitions are smaller, and a lean code tool is beside them"];
  if (mode === "never") [code, both, why] = [false, false, "mode is never"];
  else if (mode === "always" || allDirect.length === 0) [code, both, why] = [true, false, `mode is ${mode}`];
  else if (options.hidden === 0) [code, both, why] = [false, false, "no tool may be called from scripts"];
  else if (codeTokens < directTokens) [code, both, why] = [true, false, "the code tool is smaller"];
  const costs = `${counted(codeTokens, "token")} with the code tool, ${count(directTokens)} with every tool direct, ${count(bothTokens)} with both`;
  return { code, codeTokens: codeTokens, directTokens: directTokens, reason: `${why} (${costs})`, both, bothTokens: bothTokens };
}

/** A lean code tool that also says what the tools return, as far as it is known and there is room. */
export function withResults(definition: Definition, tools: Iterable<Tool>, texts: Texts, count: CountTokens): Definition {
  const results: string[] = [];
  let described = definition;
  for (const tool of tools) {
    const text = isObject(tool.returns) ? typeText(tool.returns, 2) : "";
    if (!text.includes("{")) continue; // no field to know
    results.push(visible(`${tool.path} ${text}`));
    const line = filled(texts.lean_results, { results: results.join("; ") });
    const longer = { ...definition, description: `${definition.description}\n${line}` };
    if (count(sent([longer])) > LEAN_TOKENS) break;
    described = longer;
  }
  return described;
}

/** The definitions as a request carries them; the formats differ by a few characters for each tool. */
function sent(definitions: Definition[]): string {
  return JSON.stringify(inFormat(definitions, "anthropic"));
}

/** About four bytes to a token: good enough to compare definitions, not to bill by. */
export function roughTokens(text: string): number {
  return Math.ceil(new TextEncoder().encode(text).length / 4);
}

/** All tools at that step; those of `detailed` with signatures where the others have none. */
function catalogText(step: Detail, tools: Tool[], toolbox: Toolbox, texts: Texts, detailed: Tool[] = []): string {
  const nameOf = (tool: Tool): string => place(tool, toolbox)[1];
  const call = (tool: Tool): string => filled(texts.call, { name: written(texts, toolbox.alias(tool)) });
  const before = detailed.length > 0 ? [catalogText("brief", detailed, toolbox, texts)] : [];
  if (step === "names") {
    const groups = groupsOf(tools.filter((tool) => !detailed.includes(tool)), toolbox, nameOf);
    if (groups.length === 0) return before.join("\n");
    const first = (groups.find((group) => group.place) ?? groups[0]!).tools[0]!;
    const lines = groups.map(({ place: space, tools: members }) =>
      `- ${space ? `${space.slice(0, -1)}: ` : ""}${members.map(nameOf).join(", ")}`,
    );
    return [...before, filled(texts.names_title, { call: call(first) }), ...lines].join("\n");
  }
  if (step === "search") {
    const spaces = groupsOf(tools, toolbox, nameOf).map((group) => group.place.slice(0, -1) || "tools");
    const more = spaces.length - MOST_NAMESPACES;
    const namespaces = spaces.slice(0, MOST_NAMESPACES).join(", ") + (more > 0 ? ` and ${more} more` : "");
    return [...before, filled(texts.search_title, { count: tools.length, namespaces, call: call(tools.at(-1)!) })].join("\n");
  }
  const shown = withoutSharedOpenings(tools);
  const [groups, shared] = [groupsOf(shown, toolbox, fingerprint), sharedWords(shown)];
  const signatures = new Signatures(groups.flatMap((group) => group.tools), { facts: step === "full" });
  const lines = groups.flatMap((group) =>
    group.tools.map((tool) => line(step, tool, written(texts, `${group.place}${nameOf(tool)}`), signatures, shared)),
  );
  const types = signatures.types().map((text) => {
    const chars = Array.from(text);
    return chars.length <= LONGEST_LINE ? text : `${chars.slice(0, LONGEST_LINE).join("")}…`;
  });
  return [...(types.length > 0 ? [texts.types_title, ...types] : []), texts.catalog_title, ...lines].join("\n");
}

/** One tool; whatever its description and schema hold, it begins one line and imitates no other. */
function line(step: Detail, tool: Tool, name: string, signatures: Signatures, shared: ReadonlySet<string>): string {
  const words = step === "signatures" ? "" : worthSaying(tool, step === "full", shared);
  let text = `- ${signatures.signature(tool, name)}${words}`;
  if (lengthOf(text) > LONGEST_LINE) text = `- ${signatures.signature(tool, name, false)}${words}`;
  if (lengthOf(text) > LONGEST_LINE) text = `- ${visible(name)}(…)${words}`;
  return step === "schemas" ? `${text}\n  schema: ${parametersSchema(tool)}` : text;
}

/** Tools of a namespace, or of several that have the same; `place` stands before their names. */
interface Group {
  tools: Tool[];
  place: string;
}

/** The tools by namespace; namespaces whose tools are alike by that key are one group. */
function groupsOf(tools: Tool[], toolbox: Toolbox, key: (tool: Tool) => string): Group[] {
  const spaces = new Map<string, Tool[]>();
  for (const tool of tools) {
    const [space] = place(tool, toolbox);
    spaces.set(space, [...(spaces.get(space) ?? []), tool]);
  }
  const groups = new Map<string, { tools: Tool[]; spaces: string[] }>();
  for (const [space, members] of spaces) {
    const alike = JSON.stringify([space === "", ...members.map(key)]);
    if (!groups.has(alike)) groups.set(alike, { tools: members, spaces: [] });
    groups.get(alike)!.spaces.push(space);
  }
  return [...groups.values()].map((group) => ({
    tools: group.tools,
    place: group.spaces[0] === "" ? "" : `${together(group.spaces)}.`,
  }));
}

/** Several names as one: `{acme, globex}_math`. */
function together(names: string[]): string {
  if (names.length === 1) return names[0]!;
  const backwards = (text: string): string => Array.from(text).reverse().join("");
  const head = commonStart(names).replace(/[A-Za-z0-9]+$/, "");
  const rest = names.map((name) => name.slice(head.length));
  const tail = backwards(commonStart(rest.map(backwards))).replace(/^[A-Za-z0-9]+/, "");
  return `${head}{${rest.map((name) => name.slice(0, name.length - tail.length)).join(", ")}}${tail}`;
}

function commonStart(names: string[]): string {
  const sorted = [...names].sort(byText);
  const [first, last] = [sorted[0]!, sorted.at(-1)!];
  let at = 0;
  while (at < first.length && first[at] === last[at]) at += 1;
  return first.slice(0, at);
}

/** Equal for tools that are written the same, but for their namespaces. */
function fingerprint(tool: Tool): string {
  return JSON.stringify([tool.name, tool.description, tool.parameters, tool.returns]);
}

/** The tools without the sentences with which every tool of a namespace begins: they tell none from another. */
function withoutSharedOpenings(tools: Tool[]): Tool[] {
  const spaces = new Map<string | null, Tool[]>();
  for (const tool of tools) spaces.set(tool.namespace, [...(spaces.get(tool.namespace) ?? []), tool]);
  const descriptions = new Map<string, string>();
  for (const group of spaces.values()) {
    withoutOpening(group).forEach((text, index) => descriptions.set(group[index]!.path, text));
  }
  return tools.map((tool) => {
    const description = descriptions.get(tool.path)!;
    return description === tool.description ? tool : tool.with({ description });
  });
}

function withoutOpening(tools: Tool[]): string[] {
  let texts = tools.map((tool) => tool.description);
  if (texts.length < SHARED_BY) return texts;
  for (let times = 0; times < MOST_OPENINGS; times += 1) {
    const whole = (text: string): string => firstSentence(text, Array.from(text).length + 1);
    const opening = whole(texts[0]!);
    const flattened = texts.map(flat);
    const rest = flattened.map((text) => text.slice(opening.length).trim());
    const alike = texts.every((text) => whole(text) === opening);
    if (!alike || !rest.every(Boolean) || !flattened.every((text) => text.startsWith(opening))) break;
    texts = rest;
  }
  return texts;
}

/** The namespace and the name as scripts write them. */
function place(tool: Tool, toolbox: Toolbox): [string, string] {
  const alias = toolbox.alias(tool);
  const at = alias.lastIndexOf(".");
  return at < 0 ? ["", alias] : [alias.slice(0, at), alias.slice(at + 1)];
}
