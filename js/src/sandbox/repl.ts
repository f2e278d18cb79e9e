/** Repl: one live script environment with state, in one worker of its own. */

import type { Run } from "../audit/records.js";
import { ClosedError, ConversionError, UsageError, WorkerError, type ScriptError } from "../errors.js";
import { functionDocs, openedBy, runtimeOf, type Language } from "../languages.js";
import type { Limits, SpendOptions } from "../limits.js";
import type { Done, Environment, MemoryReport, Report, SavedMemory, WorkerLimits } from "../protocol.js";
import type * as scripts from "../scripts.js";
import { checkOptions } from "../suggest.js";
import { isIdentifier } from "../tools/naming.js";
import type { Toolbox } from "../tools/toolbox.js";
import { fromWire, isObject, plain, toWire } from "../values.js";
import { CallPath, type ClientOptions, type HostFunction, type Remembered } from "./calls.js";
import { engineModule } from "./engine.js";
import { engineError, Execution } from "./execution.js";
import type { Link } from "./link.js";
import { MediaStore } from "./media.js";
import type { Progress } from "./progress.js";
import { checkRunOptions, purposeOf, type Purpose, type PurposeOptions } from "./options.js";
import type { Setup } from "./sandbox.js";
import { pack, type Image } from "./snapshot.js";

const KEPT_SOURCES = 20;
const LONGEST_CHECKED = 64_000; // characters, as in check/checker.py
const SOON = 10; // milliseconds: a script whose tools answer in less keeps its worker
const PART = "\u001f"; // separates the parts of a name; a tool's own name may contain dots

/** What was added to one Sandbox or Repl beside its tools. */
export interface Additions {
  functions: Map<string, HostFunction>;
  values: Map<string, unknown>;
  docs: Map<string, string>;
  revision: number;
}

/** What says what is wrong with scripts. */
type Judge = Pick<typeof scripts, "explain" | "nameSlowCall"> & { checker: scripts.Checker };

export interface RunOptions extends ClientOptions, SpendOptions, PurposeOptions {
  /** Ends the run when it is aborted; the Repl stays usable. */
  signal?: AbortSignal;
  /** Globals of this run only. */
  inputs?: Record<string, unknown>;
  /** Called when the script calls `progress(done, total, text)`. */
  onProgress?: (progress: Progress) => void;
}

/** Runs scripts one after another in one environment: globals persist from run to run. */
export class Repl {
  /** Empty for a Repl of one run. */
  readonly id: string;
  private link: Link | null = null;
  private configured = "";
  private limitsSet: Limits | null = null;
  private memory = 0; // the largest max_memory for which the worker has room
  private number = 0;
  private readonly sources = new Map<string, string>();
  private readonly always = new Map<string, Remembered>();
  private readonly media = new MediaStore();
  private readonly kept = new Set<string>(); // names of what runs have left
  private additions: Additions;
  private judge: Promise<Judge> | null = null;
  private readonly restored: boolean;
  private hasState = false;
  private lossUnseen = false;
  private isClosed = false;
  private turn: Promise<unknown> = Promise.resolve();
  private waiting = 0; // pieces of work that are not done

  constructor(
    private readonly setup: Setup,
    readonly toolbox: Toolbox,
    readonly limits: Limits,
    private readonly purpose: Purpose,
    private readonly beforeWrite: ((run: Run) => Run) | null,
    private readonly onClose: (repl: Repl) => void,
    image: Image | null = null,
    forOneRun = false,
  ) {
    this.id = forOneRun ? "" : randomHex(6);
    this.additions = setup.additions;
    this.image = image;
    this.restored = image !== null;
    if (image !== null) {
      this.number = image.number;
      for (const [chunk, source] of image.sources) this.sources.set(chunk, source);
      this.hasState = true;
    }
  }

  /** The state, while no worker has it. */
  private image: SavedMemory | null;

  get closed(): boolean {
    return this.isClosed;
  }

  /** Starts the worker now rather than at the first run. */
  async open(): Promise<this> {
    await this.inTurn(() => this.acquire());
    return this;
  }

  /** Runs one script to its end. What the script did wrong is in the Run; nothing of it is thrown. */
  run(source: string, options: RunOptions = {}): Promise<Run> {
    if (typeof source !== "string") throw new UsageError(`the script must be a string, not ${typeof source}`);
    checkRunOptions(options);
    const inputs = lowerInputs(options.inputs, this.setup.language, this.media);
    const given = { ...options, limits: this.limits.with(options) };
    const purpose = purposeOf(options, this.purpose);
    return this.inTurn(() => this.runNow(source, given, inputs, purpose));
  }

  private async runNow(
    source: string, options: RunOptions & { limits: Limits }, inputs: [string, unknown][], purpose: Purpose,
  ): Promise<Run> {
    const { limits } = options;
    const { setup } = this;
    const [link, { explain, nameSlowCall, checker }] = await Promise.all([this.acquire(limits), this.judging()]);
    const added = [...this.addedNames(), ...inputs.map(([name]) => name)];
    const refused = setup.check ? checker.refusal(source, await this.outline(link, source), this.toolbox, added) : null;
    if (this.isClosed) throw new ClosedError("the Repl is closed"); // while the worker started
    this.update(link, limits);
    this.number += 1;
    this.sources.set(this.number === 1 ? "script" : `script#${this.number}`, source);
    if (this.sources.size > KEPT_SOURCES) this.sources.delete(this.sources.keys().next().value!);
    const execution = new Execution(link, this.callPath(limits), {
      runId: randomHex(16),
      replId: this.id,
      number: this.number,
      seed: Math.floor(Math.random() * 2 ** 48),
      source,
      sources: this.sources,
      inputs: inputs.length > 0 ? toWire(inputs) : null,
      refused,
      explain,
      nameSlowCall,
      stateLostBefore: this.lossUnseen,
      purpose,
      clientCalls: options.clientCalls ?? null,
      onWaiting: options.onWaiting ?? (() => undefined),
      onProgress: options.onProgress ?? (() => undefined),
      rests: (rests) => (rests && this.link?.isShared ? setup.workers.rest(this, SOON) : setup.workers.work(this)),
      returns: () => this.acquire(limits),
    });
    this.lossUnseen = false;
    this.running = execution;
    let run: Run;
    try {
      run = await execution.run(options.signal);
    } finally {
      this.running = null;
      if (execution.workerLost) await this.forget();
    }
    if (execution.workerLost) this.link = this.image = null;
    this.hasState = !execution.workerLost;
    for (const name of [run.kept, run.keptOutput]) if (name !== "") this.kept.add(name).add(name.replace(/_\d+/, ""));
    if (this.beforeWrite !== null) run = this.beforeWrite(run);
    await this.setup.sink?.write(run);
    return run;
  }

  private running: Execution | null = null;

  /** The check and the explanations, which are loaded while the first worker starts. */
  private judging(): Promise<Judge> {
    this.judge ??= import("../scripts.js").then((loaded) => {
      const checker = new loaded.Checker(this.setup.language);
      if (this.restored) checker.skip();
      return { ...loaded, checker };
    });
    return this.judge;
  }

  /** The tree of a script in a language whose compiler is in the worker; null where there is none. */
  private async outline(link: Link, source: string): Promise<Uint8Array | null> {
    if (this.setup.language.runtime === null || source.length > LONGEST_CHECKED) return null;
    const bytes = new TextEncoder().encode(source);
    return (await ask<{ text: Uint8Array }>(link, "outline", () => link.post({ kind: "outline", source: bytes }))).text;
  }

  /** The globals of earlier scripts are gone. */
  private async forget(): Promise<void> {
    (await this.judge)?.checker.forget();
  }

  /** What is wrong with a script, without running it; null when it compiles and the check finds nothing that cannot work. */
  check(source: string): Promise<ScriptError | null> {
    return this.inTurn(async () => {
      const [link, { checker, explain }] = await Promise.all([this.acquire(), this.judging()]);
      const done = await ask<Done>(link, "done", () => link.post({ kind: "check", source: new TextEncoder().encode(source) }));
      if (done.outcome === "ok") {
        return this.setup.check ? checker.found(source, await this.outline(link, source), this.toolbox, this.addedNames()) : null;
      }
      return explain(engineError(done, this.setup.allowNan), new Map([["script", source]]), this.limits, this.setup.language, []);
    });
  }

  /** Adds a global: a value, or a function that scripts call by name with positional arguments. */
  define(name: string, value: unknown, options: { doc?: string; counted?: boolean } = {}): void {
    this.additions = define(this.additions, name, value, options);
  }

  /** Adds an entry that scripts read as docs[name]. */
  document(name: string, text: string): void {
    this.additions = { ...this.additions, docs: new Map(this.additions.docs).set(name, text), revision: this.additions.revision + 1 };
  }

  /** Names and kinds of what scripts have defined. */
  globals(): Promise<Record<string, string>> {
    return this.inTurn(async () => {
      const link = await this.acquire();
      const report = await ask<{ names: Uint8Array }>(link, "globals", () => link.post({ kind: "globals" }));
      const pairs = fromWire(new TextDecoder().decode(report.names)) as [string, string][];
      return Object.fromEntries(pairs.sort(([a], [b]) => (a < b ? -1 : 1)));
    });
  }

  /** The whole state as compressed bytes: globals, closures, coroutines. `Sandbox.restore` makes a Repl of them. */
  snapshot(): Promise<Uint8Array> {
    return this.inTurn(async () => {
      const link = await this.acquire();
      return pack({
        ...(await saveMemory(link)),
        number: this.number,
        sources: [...this.sources],
        language: this.setup.language.name,
        features: [...this.setup.features],
      }, this.setup.snapshotKey);
    });
  }

  /** Starts afresh: what scripts defined is gone; what was added with `define` stays. */
  reset(): Promise<void> {
    return this.inTurn(async () => {
      this.drop();
      this.image = null;
      this.hasState = false;
      this.sources.clear();
      this.kept.clear();
      await this.forget();
      this.number = 0;
    });
  }

  /** Gives the worker up. A run that is going on is stopped. */
  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    this.setup.workers.work(this); // no other Repl asks for its worker any more
    this.running?.stop(2);
    await this.turn;
    this.drop();
    this.onClose(this);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // One after another

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.isClosed) return Promise.reject(new ClosedError("the Repl is closed"));
    if (this.running === null) this.setup.workers.work(this);
    this.waiting += 1;
    const result = this.turn.then(() => {
      if (this.isClosed) throw new ClosedError("the Repl is closed");
      return work();
    });
    this.turn = result.catch(() => undefined).then(() => {
      this.waiting -= 1;
      if (this.waiting === 0 && this.link !== null && !this.isClosed) this.setup.workers.rest(this);
    });
    return result;
  }

  /** Globals that the host has added, and those of the features. */
  private addedNames(): string[] {
    const { functions, values } = this.additions;
    const added = [...functions.keys(), ...values.keys()].map((name) => name.split(".")[0]!);
    return [...added, ...this.kept, ...[...this.setup.features].flatMap((feature) => openedBy[feature] ?? [])];
  }

  private callPath(limits: Limits): CallPath {
    const { setup } = this;
    return new CallPath({
      toolbox: this.toolbox,
      functions: this.additions.functions,
      docs: this.additions.docs,
      limits,
      language: setup.language,
      allowNan: setup.allowNan,
      failures: setup.failures,
      approve: setup.approve,
      slots: setup.slots,
      running: setup.running,
      media: this.media,
      always: this.always,
      direct: false,
    });
  }

  // The worker

  private async acquire(limits = this.limits): Promise<Link> {
    const needed = Math.max(this.limits.maxMemory, limits.maxMemory, this.image === null ? 0 : this.memory);
    if (this.link !== null && !this.link.ended) {
      if (needed <= this.memory) return this.link;
      this.image = await saveMemory(this.link); // its memory cannot grow so far: another goes on
      this.drop();
    }
    if (this.link !== null) this.lossUnseen ||= this.hasState;
    const { setup } = this;
    const link = await setup.workers.take();
    const saved = this.image;
    const goesOn = saved?.run !== undefined;
    const memory = saved ?? (link.begun || setup.language.runtime !== null ? setup.template : null);
    const image = memory === null ? null : { ...memory, fresh: saved === null };
    try {
      const [module, runtime] = await Promise.all([engineModule(needed, link.isShared), image === null ? runtimeOf(setup.language) : null]);
      if (!goesOn) [this.configured, this.limitsSet] = [this.mark(), this.limits];
      await link.start({
        module,
        seed: crypto.getRandomValues(new Uint32Array(1))[0]!,
        runtime,
        limits: this.workerLimits(goesOn ? limits : this.limits),
        environment: this.environment(),
        ...(image === null ? {} : { image }),
      });
    } catch (problem) {
      link.terminate();
      throw problem; // the next run tries again with the same image
    }
    this.image = null;
    this.memory = needed;
    link.onReport = () => undefined;
    this.link = link;
    if (image === null && (setup.begun += 1) === 2) setup.template = await saveMemory(link);
    return link;
  }

  private drop(): void {
    if (this.link !== null) this.setup.workers.give(this.link);
    this.link = null;
  }

  /**
   * Takes the state out of the worker, which another Repl needs; the next run goes on from it in another one. So does a run
   * whose script waits for its tools, when they have answered.
   */
  park(): Promise<Link | null> {
    const { running } = this;
    if (running !== null) {
      return new Promise((resolve) => {
        running.leave((saved) => {
          const { link } = this;
          if (saved !== null) [this.image, this.link] = [saved, null];
          resolve(saved === null ? null : link);
        });
      });
    }
    return this.inTurn(async () => {
      const { link } = this;
      if (link === null || link.ended) return null;
      this.image = await saveMemory(link);
      this.link = null;
      return link;
    });
  }

  /** Brings the worker up to date. */
  private update(link: Link, limits: Limits): void {
    const mark = this.mark();
    if (mark !== this.configured) {
      this.configured = mark;
      link.post({ kind: "configure", environment: this.environment() });
    }
    if (limits !== this.limitsSet) {
      this.limitsSet = limits;
      link.post({ kind: "limits", limits: this.workerLimits(limits) });
    }
  }

  private mark(): string {
    return `${this.toolbox.revision}/${this.additions.revision}`;
  }

  private workerLimits(limits: Limits): WorkerLimits {
    return { ...(limits.toDict() as unknown as WorkerLimits), allow_nan: this.setup.allowNan };
  }

  /** What the worker needs to know: names, values and the parameters for paging, nothing else of the tools. */
  private environment(): Environment {
    const tools: [string, string, Record<string, string>?][] = [];
    for (const tool of this.toolbox) {
      if (tool.policy === "direct") continue;
      const name = tool.namespace === null ? tool.name : tool.namespace + PART + tool.name;
      const alias = this.toolbox.alias(tool);
      const aliases = [this.setup.language.texts.identifiers(alias), alias].map((each) => each.replaceAll(".", PART));
      const form = tool.pagingForm;
      for (const each of new Set([name, ...aliases])) {
        tools.push(form === null ? [each, `tools.${tool.path}`] : [each, `tools.${tool.path}`, form]);
      }
    }
    const placed = (name: string): string => name.replaceAll(".", PART);
    return {
      json: toWire({
        tools,
        functions: [...this.additions.functions.keys()].map((name) => [placed(name), `fn.${name}`]),
        values: [...this.additions.values].map(([name, value]) => [placed(name), value]),
        features: Object.fromEntries([...this.setup.features].map((feature) => [feature, true])),
      }),
    };
  }
}

/** What every script finds. */
export function standardAdditions(): Additions {
  return {
    functions: new Map(Object.keys(functionDocs).map((name) => [name, { name, call: null, counted: false }])),
    values: new Map(),
    docs: new Map(Object.entries(functionDocs)),
    revision: 0,
  };
}

/** The additions with one more value or function. */
export function define(
  before: Additions, name: string, value: unknown, options: { doc?: string; counted?: boolean },
): Additions {
  checkOptions(options, ["doc", "counted"]);
  if (typeof name !== "string" || !name.split(".").every(isIdentifier)) {
    throw new UsageError(`'${name}' is not a name that a script can write; use letters, digits and _ (and . between parts)`);
  }
  const functions = new Map(before.functions);
  const values = new Map(before.values);
  functions.delete(name);
  values.delete(name);
  if (typeof value === "function") {
    functions.set(name, { name, call: value as HostFunction["call"], counted: options.counted ?? true });
  } else {
    values.set(name, lowered(name, value));
  }
  const docs = options.doc ? new Map(before.docs).set(name, options.doc) : before.docs;
  return { functions, values, docs, revision: before.revision + 1 };
}

/** The inputs of a run as plain values. Their names must hide nothing of what scripts find. */
function lowerInputs(inputs: Record<string, unknown> | undefined, language: Language, media: MediaStore): [string, unknown][] {
  if (inputs === undefined || inputs === null) return [];
  if (!isObject(inputs)) throw new UsageError(`inputs must be an object from names to values, not ${typeof inputs}`);
  const taken = language.runtime === null ? language.docs : {}; // elsewhere functions and variables are apart
  return Object.entries(inputs).map(([name, value]) => {
    if (!isIdentifier(name)) throw new UsageError(`'${name}' is not a name that a script can write; use letters, digits and _`);
    if (Object.hasOwn(taken, name)) {
      throw new UsageError(`the input '${name}' would hide what scripts find under that name: choose another name`);
    }
    return [name, lowered(name, value, media)];
  });
}

function lowered(name: string, value: unknown, media: MediaStore | null = null): unknown {
  try {
    return plain(value, true, 64, name, media);
  } catch (problem) {
    if (!(problem instanceof ConversionError)) throw problem;
    throw new UsageError(`the global '${name}' cannot be defined: ${problem.message}`);
  }
}

async function saveMemory(link: Link): Promise<SavedMemory> {
  const { memory } = await ask<{ memory: MemoryReport }>(link, "saved", () => link.post({ kind: "save" }));
  return link.saved(memory);
}

/** Sends a command and waits for the report of that kind. */
function ask<T>(link: Link, kind: Report["kind"], send: () => void): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    link.hold(true);
    link.onReport = (report, problem) => {
      link.onReport = () => undefined;
      link.hold(false);
      if (report?.kind === kind) resolve(report as T);
      else reject(new WorkerError(`the worker was lost: ${problem || "it sent an unexpected report"}`));
    };
    send();
  });
}

export function randomHex(bytes: number): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
