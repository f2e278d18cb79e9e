/** Sandbox: configuration, and the Repls made from it. */

import type { Run } from "../audit/records.js";
import { openSink, type AuditOption, type Sink } from "../audit/sinks.js";
import { ClosedError, UsageError } from "../errors.js";
import { FAILURES, type Failures } from "../failures.js";
import { language, type Language, type LanguageName, type LuaFeature } from "../languages.js";
import { Limits, type LimitOptions } from "../limits.js";
import type { SavedMemory } from "../protocol.js";
import { checkOptions, unknown } from "../suggest.js";
import { Toolbox, type ToolSource } from "../tools/toolbox.js";
import { RunningCalls, ToolSlots, type Approve } from "./calls.js";
import { DIRECT_OPTIONS, DirectCall, type DirectOptions } from "./direct.js";
import { Docs } from "./docs.js";
import { mostBytes } from "./engine.js";
import { checkRunOptions, purposeOf, RUN_OPTIONS, type Purpose, type PurposeOptions } from "./options.js";
import { define, Repl, standardAdditions, type Additions, type RunOptions } from "./repl.js";
import { snapshotKey, unpack } from "./snapshot.js";
import { Workers } from "./workers.js";

export interface SandboxOptions {
  tools?: ToolSource;
  limits?: Limits | LimitOptions;
  language?: LanguageName;
  /** Optional parts of Lua: "coroutines", "metatables". */
  luaFeatures?: Iterable<LuaFeature>;
  /** Asked for each call of a tool with policy "approve". */
  approve?: Approve | null;
  /** Where every run is written as a line of JSON. */
  audit?: AuditOption | null;
  allowNan?: boolean;
  /** Whether scripts are checked before they run: unknown tools, wrong arguments, words of other languages. */
  check?: boolean;
  /** Of results that are nothing but a failure: "return" gives scripts the data, "raise" makes an error of it. */
  failures?: Failures;
  /** What tools find as `extra` of their context: a database, a session. */
  context?: Record<string, unknown>;
  /** Signs snapshots, at least 16 bytes: `restore` then takes only those that were signed with the same key. */
  snapshotKey?: string | Uint8Array | null;
  /** In browsers: where the page serves `moonbox/worker`, for a Content-Security-Policy that refuses `worker-src blob:`. */
  workerUrl?: string | URL | null;
}

const REPL_OPTIONS = ["limits", "toolbox", "beforeWrite", "context", "labels"];
const OPTIONS = ["tools", "limits", "language", "luaFeatures", "approve", "audit", "allowNan", "check", "failures", "context", "snapshotKey", "workerUrl"];

/** What the Repls and direct calls of one Sandbox share. */
export interface Setup {
  language: Language;
  features: ReadonlySet<string>;
  allowNan: boolean;
  check: boolean;
  failures: Failures;
  purpose: Purpose;
  snapshotKey: Uint8Array | null;
  approve: Approve | null;
  sink: Sink | null;
  workers: Workers;
  slots: ToolSlots;
  running: RunningCalls;
  additions: Additions;
  /** The memory of a worker in which no script has run, with the tools and the language: one that served another Repl goes on from it. */
  template: SavedMemory | null;
  /** Workers that began without it. The second one gives it: a Sandbox of one run needs none. */
  begun: number;
}

export interface ReplOptions extends PurposeOptions {
  limits?: Limits | LimitOptions;
  toolbox?: Toolbox;
  /** Changes a run's record before it is written and returned. */
  beforeWrite?: (run: Run) => Run;
}

export class Sandbox {
  readonly toolbox: Toolbox;
  readonly limits: Limits;
  readonly language: LanguageName;
  private readonly setup: Setup;
  private readonly repls = new Set<Repl>();
  private readonly calls = new Map<DirectCall, Promise<Run>>();
  private isClosed = false;

  constructor(options: SandboxOptions = {}) {
    checkOptions(options, OPTIONS);
    for (const name of ["check", "allowNan"] as const) {
      if (typeof (options[name] ?? false) !== "boolean") throw new UsageError(`${name} must be true or false, not ${String(options[name])}`);
    }
    if (typeof options.luaFeatures === "string") throw new UsageError(`luaFeatures must be a list: write ["${options.luaFeatures}"]`);
    const chosen = language(options.language);
    const features = new Set<string>(options.luaFeatures ?? []);
    for (const feature of features) {
      if (!chosen.features.includes(feature)) throw new UsageError(unknown("feature", feature, chosen.features));
    }
    if (options.approve !== undefined && options.approve !== null && typeof options.approve !== "function") {
      throw new UsageError(`approve must be a function, not ${JSON.stringify(options.approve) ?? String(options.approve)}`);
    }
    const { failures = "return" } = options;
    if (!FAILURES.includes(failures)) throw new UsageError(`failures must be 'return' or 'raise', not '${String(failures)}'`);
    this.toolbox = Toolbox.of(options.tools ?? []);
    this.limits = Limits.of(options.limits);
    this.language = chosen.name as LanguageName;
    this.setup = {
      language: chosen,
      features,
      allowNan: options.allowNan ?? false,
      check: options.check ?? true,
      failures,
      purpose: purposeOf({ context: options.context ?? {} }, { context: {}, labels: {} }),
      snapshotKey: snapshotKey(options.snapshotKey),
      approve: options.approve ?? null,
      sink: openSink(options.audit),
      workers: new Workers(workerAddress(options.workerUrl)),
      slots: new ToolSlots(),
      running: new RunningCalls(),
      additions: standardAdditions(),
      template: null,
      begun: 0,
    };
  }

  get failures(): Failures {
    return this.setup.failures;
  }

  get closed(): boolean {
    return this.isClosed;
  }

  /** A live script environment in a worker of its own. */
  async repl(options: ReplOptions = {}): Promise<Repl> {
    return this.keep(this.make(options)).open();
  }

  /** A Repl that starts its worker at the first run. */
  lazyRepl(options: ReplOptions = {}): Repl {
    return this.keep(this.make(options));
  }

  /** A Repl with the state of a snapshot. Tools, functions and limits are those of this Sandbox. */
  async restore(snapshot: Uint8Array, options: ReplOptions = {}): Promise<Repl> {
    this.checkOpen();
    checkOptions(options, REPL_OPTIONS);
    if (!(snapshot instanceof Uint8Array)) throw new UsageError(`a snapshot is a Uint8Array, not ${typeof snapshot}`);
    const limits = this.limits.with({ limits: options.limits });
    const image = await unpack(snapshot, this.setup.snapshotKey, mostBytes(limits.maxMemory));
    if (image.language !== this.language) {
      throw new UsageError(`the snapshot is of a Sandbox with language '${image.language}'; this one has '${this.language}'`);
    }
    const listed = (features: Iterable<string>): string => [...features].sort().join(", ") || "no features";
    if (listed(image.features) !== listed(this.setup.features)) {
      throw new UsageError(
        `the snapshot is of a Sandbox with ${listed(image.features)}; this one has ${listed(this.setup.features)} (luaFeatures)`,
      );
    }
    const repl = new Repl(
      this.setup, options.toolbox ?? this.toolbox, limits, purposeOf(options, this.setup.purpose),
      options.beforeWrite ?? null, (closed) => this.repls.delete(closed), image,
    );
    return this.keep(repl).open();
  }

  /** Runs one script in a Repl of its own. */
  async run(source: string, options: RunOptions = {}): Promise<Run> {
    checkRunOptions(options);
    const repl = this.keep(this.make({ limits: this.limits.with(options) }, true));
    try {
      return await repl.run(source, options);
    } finally {
      await repl.close();
    }
  }

  /** Calls one tool without a script, as a model does directly; the Run has the call and its value. */
  async call(name: string, given: Record<string, unknown> | unknown[] = {}, options: DirectOptions = {}): Promise<Run> {
    this.checkOpen();
    checkRunOptions(options, DIRECT_OPTIONS);
    const purpose = purposeOf(options, this.setup.purpose);
    const direct = new DirectCall(this.setup, this.toolbox, this.limits.with(options), name, given, options, purpose);
    const written = direct.run().then(async (run) => {
      await this.setup.sink?.write(run);
      return run;
    });
    this.calls.set(direct, written);
    return written.finally(() => this.calls.delete(direct));
  }

  /** Adds a global to Repls that are made from now on. */
  define(name: string, value: unknown, options: { doc?: string; counted?: boolean } = {}): void {
    this.setup.additions = define(this.setup.additions, name, value, options);
  }

  /** Adds an entry that scripts read as docs[name], in Repls that are made from now on. */
  document(name: string, text: string): void {
    const { additions } = this.setup;
    this.setup.additions = { ...additions, docs: new Map(additions.docs).set(name, text), revision: additions.revision + 1 };
  }

  /** What `define` and `document` have added, by name: the first sentence of its documentation. */
  get added(): Map<string, string> {
    return new Docs(this.toolbox, this.setup.additions.docs, this.setup.language).added();
  }

  /** Ends every Repl and every direct call. */
  async close(): Promise<void> {
    this.isClosed = true;
    for (const call of this.calls.keys()) call.cancel();
    await Promise.allSettled([...this.calls.values()]);
    await Promise.all([...this.repls].map((repl) => repl.close()));
    this.setup.workers.close();
    await this.setup.sink?.close?.();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private make(options: ReplOptions, forOneRun = false): Repl {
    this.checkOpen();
    checkOptions(options, REPL_OPTIONS);
    return new Repl(
      this.setup, options.toolbox ?? this.toolbox, this.limits.with({ limits: options.limits }), purposeOf(options, this.setup.purpose),
      options.beforeWrite ?? null, (closed) => this.repls.delete(closed), null, forOneRun,
    );
  }

  private keep(repl: Repl): Repl {
    this.repls.add(repl);
    return repl;
  }

  private checkOpen(): void {
    if (this.isClosed) throw new ClosedError("the Sandbox is closed");
  }
}

/** Runs one script in a Sandbox of its own, for one-off use; the options are those of a Sandbox and of a run. */
export async function run(source: string, options: SandboxOptions & RunOptions = {}): Promise<Run> {
  const isOfRun = (name: string): boolean => RUN_OPTIONS.includes(name) && !OPTIONS.includes(name);
  const chosen = (wanted: boolean): object => Object.fromEntries(Object.entries(options).filter(([name]) => isOfRun(name) === wanted));
  const box = new Sandbox(chosen(false));
  try {
    return await box.run(source, chosen(true));
  } finally {
    await box.close();
  }
}

function workerAddress(given: string | URL | null | undefined): string | null {
  if (given === null || given === undefined) return null;
  if (typeof given === "string" || given instanceof URL) return String(given);
  throw new UsageError(`workerUrl must be a string or a URL, not ${typeof given}`);
}
