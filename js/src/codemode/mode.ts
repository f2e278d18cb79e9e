/** CodeMode: one code tool with a catalog, the tools that stay direct, and the answers to the model's calls. */

import type { Run } from "../audit/records.js";
import { ClosedError, UsageError, WorkerError } from "../errors.js";
import { filled, language, type Texts, written } from "../languages.js";
import type { Media } from "../media.js";
import type { Repl } from "../sandbox/repl.js";
import type { Sandbox } from "../sandbox/sandbox.js";
import { unknown } from "../suggest.js";
import { byText } from "../tools/naming.js";
import type { Tool } from "../tools/tool.js";
import { choose, makeCatalog, roughTokens, withResults, type Catalog, type Choice, type CountTokens } from "./catalog.js";
import {
  findScript, fromTool, inFormat, parseArguments, providerNames, shorten, within, type Definition, type Format,
} from "./definitions.js";
import { explainMisdirected, Routes } from "./routing.js";

export interface CodeModeSettings {
  /** Tools that the model calls directly too, beside scripts. */
  keep_visible?: readonly string[];
  /** Add each tool's JSON Schema to the catalog. */
  full_schemas?: boolean;
  /** always: the code tool; never: every tool direct; auto: the code tool where that is smaller, or else both. */
  mode?: "always" | "auto" | "never";
  /** Let scripts reach tools that need a person's approval: the script waits. */
  approvals?: boolean;
  /** The code tool's name; by default lua_repl or rhai_repl. */
  name?: string | null;
  /** The name of its one parameter; by default source_code. */
  parameter?: string | null;
  /** Replaces the code tool's description; the catalog still follows it. */
  description?: string | null;
  /** Replaces the system prompt addition. */
  system_prompt?: string | null;
  /** Past this the catalog shows less: signatures, then names, then only how to search. */
  catalog_tokens?: number | null;
  /** The longest description that the provider takes; the code tool's parameter then says the rest. */
  description_chars?: number | null;
  /** The longest answer to the model. */
  max_chars?: number;
}

const DEFAULTS: Required<CodeModeSettings> = {
  keep_visible: [], full_schemas: false, mode: "always", approvals: false, name: null, parameter: null, description: null,
  system_prompt: null, catalog_tokens: 8000, description_chars: null, max_chars: 50_000,
};

export interface CodeModeOptions {
  count_tokens?: CountTokens;
  /** Seconds after which a conversation that is not used ends. */
  idle_seconds?: number | null;
  max_conversations?: number;
}

/** The answer to one call of the model's. */
export interface Reply {
  text: string;
  is_error: boolean;
  run: Run | null;
  /** What the script returned or showed of images, audio and files, or the tool returned. */
  media: readonly Media[];
}

interface View {
  code: Definition;
  catalog: Catalog;
  direct: Map<string, Tool>;
  choice: Choice;
}

interface Conversation {
  repl: Repl;
  used: number;
  users: number;
}

/** What the model is shown of a Sandbox's tools, and the handler of its calls. */
export class CodeMode {
  readonly settings: Required<CodeModeSettings>;
  private readonly texts: Texts;
  private readonly count: CountTokens;
  private readonly routes: Routes;
  private readonly kept = new Map<string, Conversation>();
  private readonly idle: number | null;
  private readonly most: number;
  private view: View | null = null;
  private isClosed = false;

  constructor(
    readonly sandbox: Sandbox,
    settings: CodeModeSettings = {},
    options: CodeModeOptions = {},
  ) {
    const known = Object.keys(DEFAULTS);
    for (const name of Object.keys(settings)) {
      if (!known.includes(name)) throw new UsageError(unknown("setting", name, known));
    }
    this.settings = { ...DEFAULTS, ...settings };
    if (!["always", "auto", "never"].includes(this.settings.mode)) {
      throw new UsageError(`mode must be one of always, auto, never, not ${shorten(this.settings.mode)}`);
    }
    this.texts = language(sandbox.language).texts;
    this.count = options.count_tokens ?? roughTokens;
    this.idle = options.idle_seconds === undefined ? 3600 : options.idle_seconds;
    this.most = options.max_conversations ?? 100;
    this.routes = new Routes(sandbox.toolbox, this.settings.keep_visible, this.settings.approvals);
  }

  // What the model is shown

  /** The code tool's name. */
  get tool_name(): string {
    return this.settings.name ?? this.texts.name;
  }

  get parameter(): string {
    return this.settings.parameter ?? this.texts.parameter;
  }

  /** The code tool's description, catalog included. */
  get description(): string {
    return this.current().code.description;
  }

  get catalog(): Catalog {
    return this.current().catalog;
  }

  /** Whether the code tool is offered, and what either way costs. */
  get choice(): Choice {
    return this.current().choice;
  }

  /** The tools that the model calls itself. */
  get direct_tools(): Tool[] {
    return [...this.current().direct.values()];
  }

  /** The tools that scripts reach. */
  get hidden_tools(): Tool[] {
    return this.choice.code ? [...this.routes.hidden] : [];
  }

  /** The code tool and the direct tools in a provider's format. */
  definitions(form: Format = "openai"): Record<string, unknown>[] {
    const view = this.current();
    const direct = definitionsOf(view.direct);
    const shown = view.choice.code ? [view.code, ...direct] : direct;
    return inFormat(shown.map((item) => within(item, this.settings.description_chars)), form);
  }

  /** An addition to the system prompt, at most 500 bytes. */
  get system_prompt(): string {
    const view = this.current();
    return view.choice.code && !view.choice.both ? this.prompt() : (this.settings.system_prompt ?? "");
  }

  // The model's calls

  /** Answers one call: what goes back to the model. What the model got wrong is in the text, nothing is thrown. */
  async handle(name: string, given: unknown, options: { conversation?: string } = {}): Promise<string> {
    return (await this.reply(name, given, options)).text;
  }

  /** Like `handle`, with the Run and whether it failed. */
  async reply(name: string, given: unknown, options: { conversation?: string } = {}): Promise<Reply> {
    const prepared = this.prepare(name, given);
    if (!Array.isArray(prepared)) return prepared;
    const [tool, what] = prepared;
    try {
      if (tool !== null) return this.answer(await this.sandbox.call(tool.path, what as Record<string, unknown>));
      const conversation = await this.conversation(options.conversation ?? "");
      conversation.users += 1;
      try {
        return this.answer(await conversation.repl.run(what as string));
      } finally {
        conversation.users -= 1;
        conversation.used = performance.now();
      }
    } catch (problem) {
      if (problem instanceof ClosedError) {
        if (this.isClosed || this.sandbox.closed) throw problem;
        return failed("error: the conversation was ended while the script waited; its state is lost");
      }
      if (problem instanceof WorkerError) return failed(`error: ${problem.message}`);
      throw problem;
    }
  }

  /** The Repl of a conversation. */
  async repl(conversation = ""): Promise<Repl> {
    this.current();
    return (await this.conversation(conversation)).repl;
  }

  /** The conversations that have script state, the most recently used last. */
  get conversations(): string[] {
    return [...this.kept.keys()];
  }

  /** Ends a conversation: its state is gone. Whether there was one. */
  async end(conversation = ""): Promise<boolean> {
    const kept = this.kept.get(conversation);
    this.kept.delete(conversation);
    await kept?.repl.close();
    return kept !== undefined;
  }

  /** Ends every conversation; the Sandbox stays open. */
  async close(): Promise<void> {
    this.isClosed = true;
    const all = [...this.kept.values()];
    this.kept.clear();
    await Promise.all(all.map((kept) => kept.repl.close()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // Inside

  private async conversation(name: string): Promise<Conversation> {
    const now = performance.now();
    const free = [...this.kept].filter(([other, kept]) => other !== name && kept.users === 0);
    const isIdle = (kept: Conversation): boolean => this.idle !== null && now - kept.used > this.idle * 1000;
    const idle = free.filter(([, kept]) => isIdle(kept)).map(([other]) => other);
    const others = this.kept.size - (this.kept.has(name) ? 1 : 0) - idle.length;
    const rest = free.map(([other]) => other).filter((other) => !idle.includes(other));
    const outdated = [...idle, ...rest.slice(0, Math.max(0, others + 1 - this.most))];
    let kept = this.kept.get(name);
    if (kept === undefined) {
      const repl = this.sandbox.lazy_repl({
        toolbox: this.routes.hidden,
        before_write: (run) => {
          const direct = [...(this.view?.direct ?? [])].filter(([, tool]) => !this.routes.hidden.has(tool.path));
          return explainMisdirected(run, new Map(direct));
        },
      });
      kept = { repl, used: now, users: 0 };
    }
    this.kept.delete(name);
    this.kept.set(name, kept); // the most recently used is last
    kept.used = now;
    await Promise.all(outdated.map((other) => this.end(other)));
    return kept;
  }

  /** What is shown now; made anew when the tools have changed. */
  private current(): View {
    if (this.isClosed) throw new ClosedError("this CodeMode is closed");
    if (this.routes.update() || this.view === null) this.view = this.makeView();
    return this.view;
  }

  private makeView(): View {
    const { settings, count } = this;
    const catalog = makeCatalog(this.routes.hidden, this.texts, {
      full_schemas: settings.full_schemas, budget: settings.catalog_tokens, count, leave_out: this.routes.kept,
    });
    const code = this.codeDefinition(catalog);
    const direct = providerNames(this.routes.direct, [this.tool_name]);
    const everything = providerNames(this.sandbox.toolbox, [this.tool_name]);
    const lean = this.leanDefinition(everything);
    const choice = choose(settings.mode, [code, ...definitionsOf(direct)], definitionsOf(everything), lean, {
      prompt: this.prompt(), hidden: this.reached, count,
    });
    const shown = choice.code && !choice.both ? direct : everything;
    return { code: choice.both ? lean : code, catalog, direct: shown, choice };
  }

  private codeDefinition(catalog: Catalog): Definition {
    const { description } = this.settings;
    const parts = [description ?? this.texts.description];
    const { hidden, kept } = this.routes;
    if (this.reached > 0) {
      if (description === null) parts.push(this.texts.with_tools, ...this.limits());
      if (catalog.tools > 0) parts.push(catalog.text);
    }
    if (kept.size > 0) {
      const names = [...kept].map((path) => written(this.texts, hidden.alias(path))).sort(byText).join(", ");
      parts.push(filled(this.texts.also_in_scripts, { names }));
    }
    const parameter = { type: "string", description: this.texts.parameter_description };
    return this.codeTool(parts.join("\n"), parameter, this.reached === 0);
  }

  /** The code tool beside direct definitions of every tool: these say the rest. */
  private leanDefinition(everything: Map<string, Tool>): Definition {
    const { texts, settings, routes: { hidden } } = this;
    const parts = [settings.description ?? texts.lean];
    if ([...hidden].some((tool) => tool.namespace)) parts.push(texts.lean_namespaces);
    const direct = [...everything].filter(([, tool]) => !hidden.has(tool.path)).map(([name]) => name);
    if (direct.length > 0) parts.push(filled(texts.not_in_scripts, { names: direct.join(", ") }));
    return withResults(this.codeTool(parts.join(" "), { type: "string" }, false), hidden, texts, this.count);
  }

  /** How many tools scripts reach. */
  private get reached(): number {
    return this.routes.hidden.paths().length;
  }

  private codeTool(description: string, parameter: Record<string, string>, readOnlyHint: boolean): Definition {
    return {
      name: this.tool_name,
      description,
      parameters: {
        type: "object",
        properties: { [this.parameter]: parameter },
        required: [this.parameter],
        additionalProperties: false,
      },
      returns: null,
      annotations: { readOnlyHint },
      overflow: this.parameter,
    };
  }

  private prompt(): string {
    if (this.settings.system_prompt !== null) return this.settings.system_prompt;
    const chosen = this.reached > 0 ? this.texts.system_prompt : this.texts.system_prompt_without_tools;
    return filled(chosen, { name: this.tool_name });
  }

  private limits(): string[] {
    const { max_tool_calls, timeout } = this.sandbox.limits;
    const what = [
      ...(max_tool_calls === null ? [] : [`${max_tool_calls} tool calls`]),
      ...(timeout === null ? [] : [`${timeout} seconds`]),
    ].join(" and ");
    return what && this.texts.limits ? [filled(this.texts.limits, { what })] : [];
  }

  /** The script, or the tool and its arguments, or the answer to an invalid call. */
  private prepare(name: unknown, given: unknown): [Tool | null, unknown] | Reply {
    const view = this.current();
    if (typeof name !== "string") return failed(`error: the tool's name must be a string, not ${shorten(name)}`);
    const read = parseArguments(given);
    if (view.choice.code && name === this.tool_name) return this.source(read);
    const tool = view.direct.get(name) ?? [...view.direct.values()].find((each) => each.path === name);
    if (tool === undefined) return failed(this.unknown(name, view));
    if (read === null) return failed(`error: the arguments of ${name} must be a JSON object, not ${shorten(given)}`);
    return [tool, read];
  }

  private source(given: Record<string, unknown> | null): [null, string] | Reply {
    const wanted = `error: ${this.tool_name} takes one argument: {"${this.parameter}": "<script>"}`;
    if (given === null) return failed(`${wanted}; the arguments were not a JSON object`);
    const source = findScript(given, this.parameter);
    return source === null ? failed(`${wanted}, not ${shorten(given)}`) : [null, source];
  }

  private unknown(name: string, view: View): string {
    const path = this.routes.hidden.has(name) ? name : name.replaceAll("__", ".");
    if (view.choice.code && this.routes.hidden.has(path)) {
      const call = filled(this.texts.call, { name: written(this.texts, this.routes.hidden.alias(path)) });
      return `error: ${name} is called from a script: use ${this.tool_name} and write ${call}`;
    }
    return `error: ${unknown("tool", name, [...(view.choice.code ? [this.tool_name] : []), ...view.direct.keys()])}`;
  }

  private answer(run: Run): Reply {
    return { text: run.for_model(this.settings.max_chars), is_error: !run.ok, run, media: run.media };
  }
}

function failed(text: string): Reply {
  return { text, is_error: true, run: null, media: [] };
}

function definitionsOf(tools: Map<string, Tool>): Definition[] {
  return [...tools].map(([name, tool]) => fromTool(tool, name));
}
