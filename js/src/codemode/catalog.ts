/** The catalog: the hidden tools as text on the code tool's description, as detailed as a budget allows. */

import * as python from "#python/codemode/catalog.js";
import { filled, type Texts } from "../languages.js";
import { typeText, visible } from "../tools/signature.js";
import type { Tool, ToolView } from "../tools/tool.js";
import type { Toolbox } from "../tools/toolbox.js";
import { count, counted, isObject } from "../values.js";
import { inFormat, redescribed, type Definition } from "./definitions.js";

export type Detail = "schemas" | "full" | "brief" | "signatures" | "names" | "search";
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
export function makeCatalog(toolbox: Toolbox, texts: Texts, { fullSchemas, budget, count, leaveOut = new Set(), labels = {} }: CatalogOptions): Catalog {
  return python.make_catalog(toolbox.view, texts, fullSchemas, budget, count, {}, leaveOut, {}, labels);
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
    const longer = redescribed(definition, `${definition.description}\n${line}`);
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
export const roughTokens: CountTokens = python.rough_tokens;
