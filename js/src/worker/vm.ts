/** The Lua virtual machine of one Repl: the prelude in it, and the calls between them. */

import {
  LAYOUT, PREPARED, REASON, REASON_NAMES, WORD, type Done, type Environment, type MemoryReport, type Prepared, type Start,
  type SuspendedRun, type WorkerLimits,
} from "../protocol.js";
import { Decoder, JsonProblem, type Marks } from "./decode.js";
import { isLuaError, Machine, MULTIPLE, TYPE, type Pointer } from "./machine.js";
import { reseed } from "./reseed.js";

const SLACK = 64 * 1024; // what a host call may need of Lua's memory for its own values
const NODE_COST = 48; // bytes of Lua's memory for each element of a JSON text, at the least
const MOST_GARBAGE = 256 * 1024; // bytes that are not collected before the first script
const YIELDED = 1;
const KEPT_FROM = 500; // bytes; see prelude/kept.lua

/** What the virtual machine asks of its worker. */
export interface Wire {
  readonly control: Int32Array;
  /** Sends calls (JSON, may be empty). */
  send(calls: Uint8Array): void;
  /** The answers, which lie in the wasm memory; null when the run must stop. It waits for them where it has shared memory. */
  receive(machine: Machine, canLeave: boolean): { at: Pointer; size: number } | "leave" | null;
  /** Where there is no shared memory: resolves when the answers, or a reason to stop, have come. */
  readonly arrival: (() => Promise<void>) | null;
  cancel(ids: Uint8Array): void;
  emit(text: Uint8Array): void;
}

export class VM {
  readonly machine: Machine;
  private readonly control: Int32Array;
  private readonly prepared: Prepared;
  private references: Record<string, number> = {};
  private decoder!: Decoder;
  private reason = 0;
  private number = 0;
  private used = false;
  private base = 0;
  private limits!: WorkerLimits;
  private limitsReference = 0;
  private printed = 0;
  private began = 0;
  private waits = 0;
  private waited = 0;

  constructor(
    start: Start,
    private readonly wire: Wire,
    before: VM | null,
  ) {
    this.control = wire.control;
    this.machine = start.module === null ? before!.machine : new Machine(start.module);
    this.prepared = start.module === null ? before!.prepared : preparedIn(start.module);
    this.machine.functions = {
      reason: (state) => this.pushNumber(state, this.currentReason()),
      exchange: (state) => this.exchange(state),
      cancel: (state) => {
        this.wire.cancel(this.machine.toBytes(1, state));
        return 0;
      },
      emit: (state) => this.pushNumber(state, this.emit(this.machine.toBytes(1, state))),
      decode: (state) => this.decode(state),
      enter: (state) => this.enter(state),
      leave: (state) => this.leave(state),
      adopt: (state) => this.adopt(state),
    };
    const image = start.image ?? { ...this.prepared, bytes: null, fresh: true };
    this.machine.load(image.bytes, image.places, this.prepared.size);
    if (start.image === undefined) reseed(this.machine, start.seed);
    this.references = image.references;
    this.base = image.base;
    this.used = !image.fresh;
    this.makeDecoder();
    this.control[WORD.hook] = this.references["hook"]!;
    this.machine.goingOn = (state) => this.answered(state);
    this.clearThreads();
    if (image.run !== undefined) this.take(image.run, start.limits);
    else {
      this.configure(start.environment, start.runtime);
      this.setLimits(start.limits);
    }
  }

  /** The run whose script is suspended in the memory becomes this worker's. */
  private take(run: SuspendedRun, limits: WorkerLimits): void {
    this.limits = limits;
    ({ number: this.number, printed: this.printed, limitsReference: this.limitsReference } = run);
    this.machine.helper.peak.value = run.peak;
    this.waits = performance.now();
    this.began = this.waits - run.spent;
    Atomics.store(this.control, WORD.running, this.number);
  }

  /** The run leaves this worker. */
  left(): MemoryReport {
    const { number, printed, limitsReference, machine } = this;
    const spent = this.waits - this.began - this.waited;
    Atomics.store(this.control, WORD.running, 0);
    this.number = 0;
    return { ...this.memory(), run: { number, printed, limitsReference, spent, peak: machine.helper.peak.value as number } };
  }

  private makeDecoder(): void {
    const { mark, null: nothing, "nulls.fields": fields, "nulls.array": array } = this.references;
    const marks: Marks = { mark: mark!, null: nothing! };
    if (fields !== undefined && array !== undefined) marks.nulls = { fields, array };
    this.decoder = new Decoder(this.machine, marks);
  }

  configure(environment: Environment, runtime: string | null = null): void {
    const { machine } = this;
    machine.pushReference(this.references["configure"]!);
    this.pushJson(environment.json);
    if (runtime !== null) machine.setField("runtime", () => machine.pushText(runtime));
    machine.call(1, 0);
    if (this.used) return;
    if (this.memoryUsed() - this.base > MOST_GARBAGE) this.collect();
    this.base = this.memoryUsed(); // what tools and a runtime take is not the script's
    if (this.limitsReference) this.setLimits(this.limits);
  }

  setLimits(limits: WorkerLimits): void {
    const { machine } = this;
    this.limits = limits;
    const entries: Record<string, number | boolean> = {
      max_memory: limits.max_memory,
      max_string: limits.max_string,
      max_array: limits.max_array,
      max_nodes: Math.min(limits.max_array * 20, Math.floor(limits.max_memory / 64)), // shared tables unfold into many
      max_depth: limits.max_depth,
      max_output: limits.max_output,
      allow_nan: limits.allow_nan,
      memory_soft: limits.max_memory + this.base,
      memory_base: this.base,
      polling: false,
    };
    if (limits.max_operations !== null) entries["max_operations"] = limits.max_operations;
    if (this.limitsReference) machine.lua.luaL_unref(machine.state, -1001000, this.limitsReference);
    this.pushJson(JSON.stringify(entries));
    machine.lua.lua_pushvalue(machine.state, -1);
    this.limitsReference = machine.reference();
    machine.pushReference(this.references["limits"]!);
    machine.lua.lua_rotate(machine.state, -2, 1);
    machine.call(1, 0);
  }

  /** Globals of the next run, and of that run only: JSON of pairs of a name and a value. */
  setInputs(json: string): void {
    this.machine.pushReference(this.references["inputs"]!);
    this.pushJson(json);
    this.machine.call(1, 0);
  }

  private pushJson(json: string): void {
    const { machine } = this;
    const text = new TextEncoder().encode(json);
    const block = machine.malloc(text.length || 1);
    machine.bytes.set(text, block);
    this.decoder.trusted(machine.state, block, text.length);
    machine.lua.free(block);
  }

  // Running

  /** null where the script has left the worker. */
  async run(source: Uint8Array, number: number, seed: number): Promise<Done | null> {
    const { machine } = this;
    const { lua, state } = machine;
    this.reason = 0;
    this.printed = 0;
    this.waited = 0;
    this.number = number;
    this.used = true;
    lua.lua_sethook(state, 0, 0, 0); // a stop of the run before may have come when it had ended
    Atomics.store(this.control, WORD.running, number);
    this.began = performance.now();
    // What a run with a higher limit left behind and nobody holds must not raise the limit of this one.
    if (this.memoryUsed() > this.limits.max_memory + this.base) this.collect();
    machine.helper.peak.value = machine.helper.used.value;
    this.limitMemory(source.length);
    return this.driven(() => {
      machine.pushReference(this.references["run"]!);
      machine.pushBytes(source);
      machine.pushText(number === 1 ? "script" : `script#${number}`);
      machine.helper.push_integer(state, seed);
      machine.pushReference(this.limitsReference);
      return 4;
    });
  }

  /** The script that has left a worker, with its mail. */
  goOn(): Promise<Done | null> {
    return this.driven(() => 0);
  }

  /** Resumes the script with arguments, so many. */
  private async driven(push: () => number): Promise<Done | null> {
    const { machine } = this;
    const { lua, state } = machine;
    let done: Done;
    try {
      const count = push();
      let status = machine.resume(count);
      while (machine.suspended()) {
        await this.wire.arrival!();
        machine.goOn();
        status = machine.resume(count);
      }
      if (status === YIELDED) {
        machine.helper.limit.value = 0;
        return null;
      }
      done = status === 0 ? this.read(0) : this.broken(machine.toText(-1));
      if (status !== 0) lua.lua_resetthread(state);
    } catch (problem) {
      if (problem instanceof RangeError && /memory/.test(problem.message)) done = this.broken("not enough memory");
      else throw problem;
      lua.lua_resetthread(state);
    }
    Atomics.store(this.control, WORD.running, 0);
    this.number = this.reason = 0;
    machine.helper.limit.value = 0;
    lua.lua_settop(state, 0);
    this.clearThreads();
    lua.lua_sethook(state, 0, 0, 0);
    done.memory = Math.max(0, (machine.helper.peak.value as number) - this.base);
    done.cpu = Math.max(0, performance.now() - this.began - this.waited) / 1000;
    done.cut = Math.max(0, this.printed - this.limits.max_output);
    if (done.limit === "memory") this.collect();
    if (done.values.length >= KEPT_FROM || this.printed >= KEPT_FROM) done.kept = this.keptFlags();
    return done;
  }

  private keptFlags(): number {
    this.machine.pushReference(this.references["kept"]!);
    this.machine.call(0, 1);
    const flags = this.machine.lua.lua_tonumberx(this.machine.state, -1, 0);
    this.machine.pop(1);
    return flags;
  }

  check(source: Uint8Array): Done {
    const { machine } = this;
    const bottom = machine.lua.lua_gettop(machine.state);
    machine.pushReference(this.references["check"]!);
    machine.pushBytes(source);
    machine.pushText("script");
    machine.call(2, MULTIPLE);
    const done = this.read(bottom);
    machine.lua.lua_settop(machine.state, bottom);
    return done;
  }

  globals(): Uint8Array {
    return this.asked("globals");
  }

  /** The tree of a script in another language, as JSON. */
  outline(source: Uint8Array): Uint8Array {
    return this.asked("outline", source);
  }

  private asked(entry: string, argument: Uint8Array | null = null): Uint8Array {
    const { machine } = this;
    machine.pushReference(this.references[entry]!);
    if (argument !== null) machine.pushBytes(argument);
    machine.call(argument === null ? 0 : 1, 1);
    const text = machine.toBytes(-1);
    machine.pop(1);
    return text;
  }

  save(): MemoryReport {
    this.collect();
    return this.memory();
  }

  private memory(): MemoryReport {
    const { size, places } = this.machine.save();
    return { size, places, references: this.references, base: this.base, bytes: this.wire.arrival && this.machine.bytes.slice(0, size) };
  }

  private collect(): void {
    this.machine.pushReference(this.references["collect"]!);
    this.machine.call(0, 0);
  }

  /** The results of `engine.run`, above that place of the stack. */
  private read(bottom: number): Done {
    const { machine } = this;
    const { lua, state } = machine;
    const top = lua.lua_gettop(state);
    const text = (position: number): Uint8Array =>
      bottom + position <= top && lua.lua_type(state, bottom + position) === TYPE.string
        ? machine.toBytes(bottom + position)
        : new Uint8Array();
    const done = blank();
    done.outcome = machine.toText(bottom + 1);
    const operations = bottom + 5;
    if (operations <= top && lua.lua_type(state, operations) === TYPE.number) {
      done.operations = lua.lua_tonumberx(state, operations, 0);
    }
    if (done.outcome === "ok") done.values = text(2);
    else if (done.outcome === "stop") {
      done.limit =
        lua.lua_type(state, bottom + 2) === TYPE.string
          ? machine.toText(bottom + 2)
          : (REASON_NAMES[lua.lua_tonumberx(state, bottom + 2, 0)] ?? "");
      done.message = text(3);
      done.frames = text(4);
      done.extra = text(6);
    } else {
      done.message = text(2);
      done.frames = text(3);
      done.extra = text(4);
    }
    return done;
  }

  private broken(message: string): Done {
    const done = blank();
    const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
    const reason = this.currentReason();
    done.outcome = "stop";
    if (reason) done.limit = REASON_NAMES[reason] ?? "";
    else if (message.includes("not enough memory")) {
      done.limit = "memory";
      done.message = encode("the script needed more memory than max_memory allows");
    } else {
      done.outcome = "runtime";
      done.message = encode(message);
    }
    return done;
  }

  private memoryUsed(): number {
    return (this.machine.helper.used.value as number) >>> 0;
  }

  private limitMemory(extra: number): void {
    const most = Math.max(this.limits.max_memory + this.base, this.memoryUsed() + extra) + SLACK;
    this.machine.helper.limit.value = Math.min(most, 0x7fffffff);
  }

  // What the prelude calls

  private currentReason(): number {
    if (this.number !== 0 && Atomics.load(this.control, WORD.stopRun) === this.number) {
      return Atomics.load(this.control, WORD.stopReason);
    }
    return this.reason;
  }

  private pushNumber(state: Pointer, value: number): number {
    this.machine.helper.push_integer(state, value);
    return 1;
  }

  private exchange(state: Pointer): number {
    const { machine } = this;
    if (!machine.resumes()) {
      this.waits = performance.now();
      this.wire.send(machine.toBytes(1, state));
      machine.helper.limit.value = 0;
      if (this.wire.arrival !== null) {
        machine.suspend();
        return 0;
      }
    }
    return this.answered(state);
  }

  /** Pushes the answers, and says how many values they are. */
  private answered(state: Pointer): number {
    const { machine } = this;
    let size = 0;
    let block = 0;
    try {
      const mail = this.wire.receive(machine, machine.canYield(state));
      if (mail === "leave") return machine.yield_(state);
      this.waited += performance.now() - this.waits;
      if (mail === null) {
        if (this.currentReason() === 0) this.reason = REASON.cancelled;
        return this.pushNumber(state, -1);
      }
      block = mail.at;
      const count = this.decoder.answers(state, mail.at, mail.size);
      size = count * 64; // the stack may have to grow for them
      return count;
    } catch (problem) {
      if (isLuaError(problem)) throw problem;
      if (this.currentReason() === 0) this.reason = problem instanceof RangeError ? REASON.memory : REASON.cancelled;
      machine.lua.lua_settop(state, 0);
      return this.pushNumber(state, -1);
    } finally {
      if (block) machine.lua.free(block);
      this.limitMemory(size);
    }
  }

  /** 0 when it was printed whole, 1 when max_output is reached. */
  private emit(text: Uint8Array): number {
    const room = this.limits.max_output - this.printed;
    this.printed += text.length;
    if (room > 0) this.wire.emit(text.length <= room ? text : text.slice(0, room));
    return text.length <= room ? 0 : 1;
  }

  /** (true, value) or (false, why not); nothing when there is not enough memory. */
  private decode(state: Pointer): number {
    const { machine } = this;
    const [at, size] = machine.locate(1, state);
    let nodes = 0;
    for (let index = at; index < at + size; index += 1) {
      const byte = machine.bytes[index];
      if (byte === 0x2c || byte === 0x5b || byte === 0x7b) nodes += 1;
    }
    if (nodes * NODE_COST > this.limits.max_memory) return 0;
    machine.helper.limit.value = 0;
    const top = machine.lua.lua_gettop(state);
    try {
      machine.lua.lua_pushboolean(state, 1);
      this.decoder.document(state, at, size);
      return 2;
    } catch (problem) {
      if (isLuaError(problem)) throw problem;
      machine.lua.lua_settop(state, top);
      if (!(problem instanceof JsonProblem)) return 0;
      machine.lua.lua_pushboolean(state, 0);
      const message = new TextEncoder().encode(problem.message);
      const block = machine.malloc(message.length);
      machine.bytes.set(message, block);
      machine.lua.lua_pushlstring(state, block, message.length);
      machine.lua.free(block);
      return 2;
    } finally {
      this.limitMemory(0);
    }
  }

  // The coroutines that are running now: the host looks at them when the script must stop.

  private enter(state: Pointer): number {
    const level = this.machine.lua.lua_tonumberx(state, 1, 0);
    const thread = parseInt(this.machine.toText(2, state), 16);
    const control = this.control;
    if (level < control.length - WORD.firstThread) {
      const count = control[WORD.threads]!;
      for (let at = count; at < level; at += 1) control[WORD.firstThread + at] = control[WORD.firstThread]!;
      control[WORD.firstThread + level] = thread;
      Atomics.store(control, WORD.threads, level + 1);
    }
    // A stop that came before the host could know of this coroutine.
    if (this.currentReason() !== 0) this.machine.lua.lua_sethook(thread, this.references["hook"]!, LAYOUT.maskCount, 1);
    return 0;
  }

  private leave(state: Pointer): number {
    const level = this.machine.lua.lua_tonumberx(state, 1, 0);
    const count = Atomics.load(this.control, WORD.threads);
    if (level < count) Atomics.store(this.control, WORD.threads, level);
    return 0;
  }

  private adopt(state: Pointer): number {
    this.machine.lua.lua_sethook(parseInt(this.machine.toText(1, state), 16), 0, 0, 0);
    return 0;
  }

  private clearThreads(): void {
    this.control[WORD.firstThread] = this.machine.state;
    Atomics.store(this.control, WORD.threads, 1);
  }
}

function preparedIn(module: WebAssembly.Module): Prepared {
  const [section] = WebAssembly.Module.customSections(module, PREPARED);
  return JSON.parse(new TextDecoder().decode(section)) as Prepared;
}

function blank(): Done {
  const none = (): Uint8Array => new Uint8Array();
  return {
    kind: "done", outcome: "ok", limit: "", message: none(), values: none(), frames: none(), extra: none(),
    operations: null, memory: 0, cpu: 0, cut: 0, kept: 0,
  };
}
