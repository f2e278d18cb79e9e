/** The code tool: its name, its definition in both sizes, and the prompt that goes with it. */

import { filled, type Texts } from "../languages.js";
import type { Sandbox } from "../sandbox/sandbox.js";
import { visible } from "../tools/signature.js";
import type { Tool } from "../tools/tool.js";
import { withResults, type Catalog, type CountTokens } from "./catalog.js";
import { define, type Definition } from "./definitions.js";
import type { CodeModeSettings } from "./mode.js";
import type { Routes } from "./routing.js";

const MOST_NAMES = 12;
/** Limits that no script comes near by chance: the description leaves them out. */
const [FAR_CALLS, FAR_SECONDS] = [500, 120];

export class CodeTool {
  readonly name: string;
  readonly parameter: string;

  constructor(
    private readonly settings: Required<CodeModeSettings>,
    private readonly texts: Texts,
    private readonly routes: Routes,
    private readonly box: Sandbox,
    private readonly count: CountTokens,
  ) {
    this.name = settings.name ?? texts.name;
    this.parameter = settings.parameter ?? texts.parameter;
  }

  /** The definition with the catalog, and the first sentences about what was added beside tools. */
  definition(catalog: Catalog, added: ReadonlyMap<string, string>): Definition {
    const { description } = this.settings;
    const { texts, routes: { hidden, kept } } = this;
    const parts = description === null ? [texts.description, this.hasRecords(catalog) ? texts.helpers : ""] : [description];
    if (this.reached > 0 && description === null) {
      const paged = [...hidden].some((tool) => tool.pagingForm !== null);
      const grouped = [...hidden].some((tool) => tool.namespace);
      parts.push(texts.with_tools, grouped ? texts.groups : "", paged ? texts.paging : "", this.failuresText(), this.limitsText());
    }
    if (added.size > 0) parts.push(texts.added_title, ...[...added].map(([name, said]) => addedLine(name, said)));
    parts.push(catalog.text);
    if (kept.size > 0) {
      const names = [...kept].map((path) => this.texts.written(hidden.alias(path))).sort().join(", ");
      parts.push(filled(this.texts.also_in_scripts, { names }));
    }
    const parameter = { type: "string", description: this.texts.parameter_description };
    return this.made(parts.filter(Boolean).join("\n"), parameter, this.reached === 0);
  }

  /** Whether scripts may get lists of objects, or objects by their keys: the helpers are for these. */
  private hasRecords(catalog: Catalog): boolean {
    if (this.reached === 0 || ["names", "search"].includes(catalog.detail)) return true;
    return [...this.routes.hidden].some((tool) => tool.returns === null || tool.returns === undefined) || RECORDS.test(catalog.text);
  }

  /** The code tool beside direct definitions of every tool: these say the rest. */
  lean(everything: Map<string, Tool>): Definition {
    const { texts, settings, routes: { hidden } } = this;
    const parts = [settings.description ?? texts.lean];
    if ([...hidden].some((tool) => tool.namespace)) parts.push(texts.lean_namespaces);
    const direct = [...everything].filter(([, tool]) => !hidden.has(tool.path)).map(([name]) => name);
    if (direct.length > 0) parts.push(filled(texts.not_in_scripts, { names: direct.join(", ") }));
    return withResults(this.made(parts.join(" "), { type: "string" }, false), hidden, texts, this.count);
  }

  /** How many tools scripts reach. */
  get reached(): number {
    return this.routes.hidden.paths().length;
  }

  private made(description: string, parameter: Record<string, string>, readOnlyHint: boolean): Definition {
    const properties = { [this.parameter]: parameter };
    const parameters = { type: "object", properties, required: [this.parameter], additionalProperties: false };
    return define(this.name, description, parameters, { readOnlyHint }, this.parameter);
  }

  /** The addition to the system prompt. */
  prompt(): string {
    if (this.settings.systemPrompt !== null) return this.settings.systemPrompt;
    const chosen = this.reached > 0 ? this.texts.system_prompt : this.texts.system_prompt_without_tools;
    return filled(chosen, { name: this.name });
  }

  /** What becomes of results that are nothing but a failure, and of which tools' results the opposite. */
  private failuresText(): string {
    const { texts, routes: { hidden }, box: { failures } } = this;
    const others = [...hidden].filter((tool) => tool.failures !== null && tool.failures !== failures);
    const turned = others.length === this.reached;
    const text = (failures === "raise") !== turned ? texts.failures_raise : texts.failures_return;
    if (others.length === 0 || turned) return text;
    const names = this.grouped(others);
    const listed = names.slice(0, MOST_NAMES).join(", ") + (names.length > MOST_NAMES ? ", …" : "");
    return `${text} ${filled(texts.failures_except, { names: listed })}`;
  }

  /** The names of tools as scripts write them; a namespace of which these are all the tools is one name. */
  private grouped(tools: Tool[]): string[] {
    const { texts, routes: { hidden } } = this;
    const isWhole = (space: string): boolean => [...hidden].every((tool) => tool.namespace !== space || tools.includes(tool));
    const names = tools.map((tool) => (tool.namespace !== null && isWhole(tool.namespace) ? `${tool.namespace}.*` : hidden.alias(tool)));
    return [...new Set(names)].map((name) => visible(texts.written(name)));
  }

  private limitsText(): string {
    const { maxToolCalls, timeout } = this.box.limits;
    const what = [
      ...((maxToolCalls ?? FAR_CALLS) >= FAR_CALLS ? [] : [`${maxToolCalls} tool calls`]),
      ...((timeout ?? FAR_SECONDS) >= FAR_SECONDS ? [] : [`${timeout} seconds`]),
    ].join(" and ");
    return what ? filled(this.texts.limits, { what }) : "";
  }
}

/** One function, value or entry; the sentence often begins with the name already. */
function addedLine(name: string, said: string): string {
  return visible(said.startsWith(name) ? `- ${said}` : `- ${name} — ${said}`);
}
/** In a catalog: a list of objects, an object of objects, a result of which nothing is known. */
const RECORDS = /(?:\}|\b(?:[A-Z]\w*|any|object))\[\]|: array\b|-> (?:any|array|object)\b|\{\[string\]: [A-Z{]/;

