/** CodeMode: one code tool with a catalog, the tools that stay direct, and the answers to the model's calls. */

import { jsonReply } from "../audit/answer.js";
import type { Run } from "../audit/records.js";
import { ClosedError, UsageError, WorkerError } from "../errors.js";
import { filled, language, type Texts } from "../languages.js";
import type { Media } from "../media.js";
import type { ClientCalls } from "../sandbox/calls.js";
import type { SpendOptions } from "../limits.js";
import { checkRunOptions, labelText, type PurposeOptions } from "../sandbox/options.js";
import type { Repl, RunOptions } from "../sandbox/repl.js";
import type { Sandbox } from "../sandbox/sandbox.js";
import { checkOptions, unknown } from "../suggest.js";
import type { Tool } from "../tools/tool.js";
import { choose, makeCatalog, roughTokens, type Catalog, type Choice, type CountTokens } from "./catalog.js";
import { CodeTool } from "./code_tool.js";
import {
  findScript, fromTool, inFormat, parseArguments, providerNames, shorten, type Definition, type Definitions, type Format,
} from "./definitions.js";
import { ClientWork, Paused, type Begin } from "./paused.js";
import { explainMisdirected, Routes } from "./routing.js";

export interface CodeModeSettings {
  /** Tools that the model calls directly too, beside scripts. */
  keepVisible?: readonly string[];
  /** Add each tool's JSON Schema to the catalog. */
  fullSchemas?: boolean;
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
  systemPrompt?: string | null;
  /** Past this the catalog shows less: signatures, then names, then only how to search. */
  catalogTokens?: number | null;
  /** The longest description that the provider takes; the code tool's parameter then says the rest. */
  descriptionChars?: number | null;
  /** The longest answer to the model, in characters: about 5,000 tokens. An answer that is cut keeps its value. */
  maxChars?: number;
  /** Whether the code tool answers with text, or with JSON: result, output and error. */
  reply?: "text" | "json";
}

const DEFAULTS: Required<CodeModeSettings> = {
  keepVisible: [], fullSchemas: false, mode: "always", approvals: false, name: null, parameter: null, description: null,
  systemPrompt: null, catalogTokens: 8000, descriptionChars: null, maxChars: 20_000, reply: "text",
};

export interface CodeModeOptions {
  countTokens?: CountTokens;
  /** Seconds after which a conversation that is not used ends. */
  idleSeconds?: number | null;
  maxConversations?: number;
  /** Whether you resume what pauses; with false, only the model calls client-side tools, directly. */
  canPause?: boolean;
  /** Answers calls of client-side tools, sync or async; then nothing pauses. */
  clientCalls?: ClientCalls;
}

export interface CallOptions extends SpendOptions, PurposeOptions, Pick<RunOptions, "onProgress" | "signal"> {
  conversation?: string;
}

export interface ReplyOptions extends CallOptions {
  /** Whether a call of a client-side tool may wait for you: `reply.paused` then takes the answers. Otherwise it fails. */
  pause?: boolean;
}

/** The answer to one call of the model's. */
export interface Reply {
  text: string;
  isError: boolean;
  run: Run | null;
  /** What the script returned or showed of images, audio and files, or the tool returned. */
  media: readonly Media[];
  /** What waits for your answers; then the text says so too. */
  paused: Paused | null;
}

interface View {
  code: Definition;
  catalog: Catalog;
  direct: Map<string, Tool>;
  choice: Choice;
  /** What was added beside tools. */
  added: Map<string, string>;
}

interface Conversation {
  repl: Repl;
  used: number;
  users: number;
  /** Ends with what is under way: one call after another, each until its end or until it pauses. */
  turn: Promise<unknown>;
  /** Whether a script waits for the client's answers. */
  paused: boolean;
}

/** How one part of the work on a call is done: until its end, or until it pauses. */
type Turn = (work: () => Promise<Reply>) => Promise<Reply>;

const CALL_OPTIONS = ["limits", "timeout", "context", "labels", "signal", "onProgress", "conversation", "pause"];
const BUSY = "error: an earlier script of this conversation waits for the client's answers; resume it first";
const ENDED = "error: the conversation was ended while the script waited; its state is lost";

/** What the model is shown of a Sandbox's tools, and the handler of its calls. */
export class CodeMode {
  readonly settings: Required<CodeModeSettings>;
  private readonly texts: Texts;
  private readonly count: CountTokens;
  private readonly routes: Routes;
  private readonly codeTool: CodeTool;
  private readonly kept = new Map<string, Conversation>();
  private readonly idle: number | null;
  private readonly most: number;
  private readonly clientCalls: ClientCalls | null;
  private view: View | null = null;
  private isClosed = false;

  constructor(
    readonly sandbox: Sandbox,
    settings: CodeModeSettings = {},
    options: CodeModeOptions = {},
  ) {
    this.settings = checkedSettings(settings);
    checkOptions(options, ["countTokens", "idleSeconds", "maxConversations", "canPause", "clientCalls"]);
    this.texts = language(sandbox.language).texts;
    this.count = options.countTokens ?? roughTokens;
    this.idle = options.idleSeconds === undefined ? 3600 : options.idleSeconds;
    this.most = options.maxConversations ?? 100;
    this.clientCalls = options.clientCalls ?? null;
    if (this.clientCalls !== null && typeof this.clientCalls !== "function") {
      throw new UsageError(`clientCalls must be a function that answers a call, not ${shorten(this.clientCalls)}`);
    }
    const clientTools = this.clientCalls !== null ? "hidden" : options.canPause === false ? "direct" : "kept";
    this.routes = new Routes(sandbox.toolbox, this.settings.keepVisible, this.settings.approvals, clientTools);
    this.codeTool = new CodeTool(this.settings, this.texts, this.routes, sandbox, this.count);
  }

  // What the model is shown

  /** The code tool's name. */
  get toolName(): string {
    return this.codeTool.name;
  }

  get parameter(): string {
    return this.codeTool.parameter;
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
  get directTools(): Tool[] {
    return [...this.current().direct.values()];
  }

  /** The tools that scripts reach. */
  get hiddenTools(): Tool[] {
    return this.choice.code ? [...this.routes.hidden] : [];
  }

  /**
   * The code tool and the direct tools in a provider's format. `labels` are those of the conversation: groups of tools that they
   * name get their signatures first.
   */
  definitions<Form extends Format = "openai">(form: Form = "openai" as Form, { labels }: { labels?: Record<string, string> } = {}): Definitions[Form] {
    const view = this.current();
    const direct = definitionsOf(view.direct);
    const code = labels && !view.choice.both ? this.codeTool.definition(this.makeCatalog(labels), view.added) : view.code;
    const shown = view.choice.code ? [code, ...direct] : direct;
    return inFormat(shown.map((item) => item.within(this.settings.descriptionChars)), form);
  }

  /** An addition to the system prompt, at most 500 bytes. */
  get systemPrompt(): string {
    const view = this.current();
    return view.choice.code && !view.choice.both ? this.codeTool.prompt() : (this.settings.systemPrompt ?? "");
  }

  // The model's calls

  /** Answers one call: what goes back to the model. What the model got wrong is in the text, nothing is thrown. */
  async handle(name: string, given: unknown, options: CallOptions = {}): Promise<string> {
    return (await this.reply(name, given, { ...options, pause: false })).text;
  }

  /** Like `handle`, with the Run, media and whether it failed. */
  async reply(name: string, given: unknown, options: ReplyOptions = {}): Promise<Reply> {
    checkRunOptions(options, CALL_OPTIONS);
    const prepared = this.prepare(name, given);
    if (!Array.isArray(prepared)) return prepared;
    const [tool, what] = prepared;
    const { conversation: id = "", pause: _, onProgress, ...own } = options;
    const forRun = id === "" ? own : { ...own, labels: { conversation: labelText(id), ...own.labels } };
    if (tool !== null) {
      const turn: Turn = (work) => this.guarded(work);
      return turn(() => this.start((more) => this.sandbox.call(tool.path, what as Record<string, unknown>, { ...forRun, ...more }), options, turn));
    }
    const conversation = this.conversation(id);
    const turn: Turn = (work) => this.guarded(() => this.inTurn(conversation, work));
    return turn(async () => {
      if (conversation.paused) return failed(BUSY);
      return this.start((more) => conversation.repl.run(what as string, { ...forRun, ...(onProgress && { onProgress }), ...more }), options, turn, conversation);
    });
  }

  private async start(begin: Begin, options: ReplyOptions, turn: Turn, conversation: Conversation | null = null): Promise<Reply> {
    if (options.pause && this.clientCalls === null) {
      const work = new ClientWork(begin, options.signal, () => {
        if (conversation !== null) conversation.paused = false;
      });
      return this.step(work, turn, conversation);
    }
    return this.answer(await begin(this.clientCalls === null ? {} : { clientCalls: this.clientCalls }));
  }

  /** Goes on until the run has ended, or waits for the client. */
  private async step(work: ClientWork, turn: Turn, conversation: Conversation | null): Promise<Reply> {
    const isPaused = (paused: boolean): void => {
      if (conversation !== null) conversation.paused = paused;
    };
    const run = await work.next();
    if (run !== null) return this.answer(run);
    isPaused(true);
    const paused = new Paused(
      work.calls,
      (answers) =>
        turn(() => {
          isPaused(false);
          work.answer(answers);
          return this.step(work, turn, conversation);
        }),
      () => work.cancel(),
    );
    return { text: String(paused), isError: false, run: null, media: [], paused };
  }

  /** One after another in a conversation. */
  private async inTurn(conversation: Conversation, work: () => Promise<Reply>): Promise<Reply> {
    conversation.users += 1;
    const reply = conversation.turn.then(() => {
      if (conversation.repl.closed) throw new ClosedError("this CodeMode is closed");
      return work();
    });
    conversation.turn = reply.catch(() => undefined);
    try {
      return await reply;
    } finally {
      conversation.users -= 1;
      conversation.used = performance.now();
    }
  }

  /** The answer, also where no run came about. */
  private async guarded(work: () => Promise<Reply>): Promise<Reply> {
    try {
      return await work();
    } catch (problem) {
      if (problem instanceof ClosedError) {
        if (this.isClosed || this.sandbox.closed) throw problem;
        return failed(ENDED);
      }
      if (problem instanceof WorkerError) return failed(`error: ${problem.message}`);
      throw problem;
    }
  }

  /** The Repl of a conversation. */
  async repl(conversation = ""): Promise<Repl> {
    this.current();
    return this.conversation(conversation).repl;
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

  /** Takes a conversation without waiting: calls come in their order, and no other call ends one that is being taken. */
  private conversation(name: string): Conversation {
    const now = performance.now();
    const free = [...this.kept].filter(([other, kept]) => other !== name && kept.users === 0);
    const isIdle = (kept: Conversation): boolean => this.idle !== null && now - kept.used > this.idle * 1000;
    const idle = free.filter(([, kept]) => isIdle(kept)).map(([other]) => other);
    const others = this.kept.size - (this.kept.has(name) ? 1 : 0) - idle.length;
    const rest = free.map(([other]) => other).filter((other) => !idle.includes(other));
    const outdated = [...idle, ...rest.slice(0, Math.max(0, others + 1 - this.most))];
    let kept = this.kept.get(name);
    if (kept === undefined) {
      const repl = this.sandbox.lazyRepl({
        toolbox: this.routes.hidden,
        beforeWrite: (run) => {
          const direct = [...(this.view?.direct ?? [])].filter(([, tool]) => !this.routes.hidden.has(tool.path));
          return explainMisdirected(run, new Map(direct));
        },
      });
      kept = { repl, used: now, users: 0, turn: Promise.resolve(), paused: false };
    }
    this.kept.delete(name);
    this.kept.set(name, kept); // the most recently used is last
    kept.used = now;
    kept.turn = Promise.allSettled([kept.turn, ...outdated.map((other) => this.end(other))]);
    return kept;
  }

  /** What is shown now; made anew when the tools have changed. */
  private current(): View {
    if (this.isClosed) throw new ClosedError("this CodeMode is closed");
    const added = this.sandbox.added;
    const same = this.view !== null && JSON.stringify([...this.view.added]) === JSON.stringify([...added]);
    if (this.routes.update() || this.view === null || !same) this.view = this.makeView(added);
    return this.view;
  }

  private makeCatalog(labels?: Record<string, string>): Catalog {
    const { fullSchemas, catalogTokens: budget } = this.settings;
    return makeCatalog(this.routes.hidden, this.texts, { fullSchemas, budget, count: this.count, leaveOut: this.routes.kept, labels });
  }

  private makeView(added: Map<string, string>): View {
    const { settings, count } = this;
    const catalog = this.makeCatalog();
    const code = this.codeTool.definition(catalog, added);
    const direct = providerNames(this.routes.direct, [this.toolName]);
    const everything = providerNames(this.sandbox.toolbox, [this.toolName]);
    const lean = this.codeTool.lean(everything);
    const choice = choose(settings.mode, [code, ...definitionsOf(direct)], definitionsOf(everything), lean, {
      prompt: this.codeTool.prompt(), hidden: this.codeTool.reached, count,
    });
    const shown = choice.code && !choice.both ? direct : everything;
    return { code: choice.both ? lean : code, catalog, direct: shown, choice, added };
  }

  /** The script, or the tool and its arguments, or the answer to an invalid call. */
  private prepare(name: unknown, given: unknown): [Tool | null, unknown] | Reply {
    const view = this.current();
    if (typeof name !== "string") return failed(`error: the tool's name must be a string, not ${shorten(name)}`);
    const read = parseArguments(given);
    if (view.choice.code && name === this.toolName) return this.source(read);
    const tool = view.direct.get(name) ?? [...view.direct.values()].find((each) => each.path === name);
    if (tool === undefined) return failed(this.unknown(name, view));
    if (read === null) return failed(`error: the arguments of ${name} must be a JSON object, not ${shorten(given)}`);
    return [tool, read];
  }

  private source(given: Record<string, unknown> | null): [null, string] | Reply {
    const wanted = `error: ${this.toolName} takes one argument: {"${this.parameter}": "<script>"}`;
    if (given === null) return failed(`${wanted}; the arguments were not a JSON object`);
    const source = findScript(given, this.parameter);
    return source === null ? failed(`${wanted}, not ${shorten(given)}`) : [null, source];
  }

  private unknown(name: string, view: View): string {
    const path = this.routes.hidden.has(name) ? name : name.replaceAll("__", ".");
    if (view.choice.code && this.routes.hidden.has(path)) {
      const call = filled(this.texts.call, { name: this.texts.written(this.routes.hidden.alias(path)) });
      return `error: ${name} is called from a script: use ${this.toolName} and write ${call}`;
    }
    return `error: ${unknown("tool", name, [...(view.choice.code ? [this.toolName] : []), ...view.direct.keys()])}`;
  }

  private answer(run: Run): Reply {
    const { maxChars, reply } = this.settings;
    const text = run.forModel(maxChars);
    return { text: reply === "json" ? jsonReply(run, text, maxChars) : text, isError: !run.ok, run, media: run.media, paused: null };
  }
}

/** The settings over the defaults; throws UsageError where one is wrong. */
function checkedSettings(given: CodeModeSettings): Required<CodeModeSettings> {
  checkOptions(given, Object.keys(DEFAULTS), "setting");
  const settings = { ...DEFAULTS, ...given };
  const refuse = (name: string, wanted: string, value: unknown): never => {
    throw new UsageError(`${name} must be ${wanted}, not ${shorten(value)}`);
  };
  for (const [name, choices] of [["mode", ["always", "auto", "never"]], ["reply", ["text", "json"]]] as const) {
    if (!(choices as readonly string[]).includes(settings[name])) refuse(name, `one of ${choices.join(", ")}`, settings[name]);
  }
  for (const name of ["fullSchemas", "approvals"] as const) {
    if (typeof settings[name] !== "boolean") refuse(name, "true or false", settings[name]);
  }
  for (const [name, least] of [["catalogTokens", 1], ["descriptionChars", 200], ["maxChars", 500]] as const) {
    const value = settings[name];
    if (value === null && name !== "maxChars") continue;
    if (typeof value !== "number" || !(value >= least)) refuse(name, `at least ${least}`, value);
  }
  for (const name of ["name", "parameter", "description", "systemPrompt"] as const) {
    const value = settings[name];
    if (value !== null && typeof value !== "string") refuse(name, "a string", value);
    if (value === null || !["name", "parameter"].includes(name) || /^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(value)) continue;
    refuse(name, "1 to 64 letters, digits and underscores, not beginning with a digit", value);
  }
  if (!Array.isArray(settings.keepVisible)) refuse("keepVisible", "an array", settings.keepVisible);
  return settings;
}

function failed(text: string): Reply {
  return { text, isError: true, run: null, media: [], paused: null };
}

function definitionsOf(tools: Map<string, Tool>): Definition[] {
  return [...tools].map(([name, tool]) => fromTool(tool, name));
}
