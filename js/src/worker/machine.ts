/** Lua's wasm module, set up: its imports, its allocator, and the few calls of its C API that are used here. */

import { format, fromSeconds, type Moment } from "./dates.js";
import { HOST_FUNCTIONS, helperModule, type HelperExports } from "./helper.js";

export type Pointer = number;
/** A C function that Lua calls: it gets the state and says how many results it has pushed. */
export type HostFunction = (state: Pointer) => number;

interface Exports {
  memory: WebAssembly.Memory;
  __indirect_function_table: WebAssembly.Table;
  __wasm_call_ctors(): void;
  malloc(size: number): Pointer;
  realloc(block: Pointer, size: number): Pointer;
  free(block: Pointer): void;
  stackSave(): Pointer;
  stackRestore(at: Pointer): void;
  setThrew(threw: number, value: number): void;
  emscripten_stack_init(): void;
  emscripten_stack_get_end(): Pointer;
  /** Only where the code can return to the loop of events in the middle of a script (Binaryen's Asyncify). */
  asyncify_start_unwind?(into: Pointer): void;
  asyncify_stop_unwind?(): void;
  asyncify_start_rewind?(from: Pointer): void;
  asyncify_stop_rewind?(): void;
  lua_newstate(allocate: number, userdata: Pointer): Pointer;
  luaL_openlibs(state: Pointer): void;
  luaL_loadbufferx(state: Pointer, text: Pointer, size: number, name: Pointer, mode: Pointer): number;
  luaL_ref(state: Pointer, table: number): number;
  luaL_unref(state: Pointer, table: number, ref: number): void;
  lua_callk(state: Pointer, count: number, results: number, context: number, continuation: number): void;
  lua_checkstack(state: Pointer, count: number): number;
  lua_createtable(state: Pointer, list: number, fields: number): void;
  lua_getfield(state: Pointer, index: number, name: Pointer): number;
  lua_gethook(state: Pointer): number;
  lua_gettop(state: Pointer): number;
  lua_isinteger(state: Pointer, index: number): number;
  lua_isyieldable(state: Pointer): number;
  lua_newthread(state: Pointer): Pointer;
  lua_resetthread(state: Pointer): number;
  lua_resume(thread: Pointer, from: Pointer, count: number, results: Pointer): number;
  lua_yieldk(state: Pointer, results: number, context: number, continuation: number): number;
  lua_pcallk(
    state: Pointer, count: number, results: number, handler: number, context: number, continuation: number,
  ): number;
  lua_pushboolean(state: Pointer, value: number): void;
  lua_pushcclosure(state: Pointer, address: number, upvalues: number): void;
  lua_pushinteger(state: Pointer, value: bigint): void;
  lua_pushlstring(state: Pointer, text: Pointer, size: number): Pointer;
  lua_pushnil(state: Pointer): void;
  lua_pushnumber(state: Pointer, value: number): void;
  lua_pushvalue(state: Pointer, index: number): void;
  lua_rawget(state: Pointer, index: number): number;
  lua_rawgeti(state: Pointer, index: number, position: bigint): number;
  lua_rawset(state: Pointer, index: number): void;
  lua_rawseti(state: Pointer, index: number, position: bigint): void;
  lua_rotate(state: Pointer, index: number, by: number): void;
  lua_sethook(state: Pointer, hook: number, mask: number, count: number): void;
  lua_settop(state: Pointer, top: number): void;
  lua_toboolean(state: Pointer, index: number): number;
  lua_tointegerx(state: Pointer, index: number, ok: Pointer): bigint;
  lua_tolstring(state: Pointer, index: number, size: Pointer): Pointer;
  lua_tonumberx(state: Pointer, index: number, ok: Pointer): number;
  lua_type(state: Pointer, index: number): number;
}

export const REGISTRY = -1001000;
export const MULTIPLE = -1;
export const TYPE = { none: -1, nil: 0, boolean: 1, light: 2, number: 3, string: 4, table: 5, function: 6 } as const;
const SCRATCH = 64 * 1024;
const PAGE = 65536;
const MOST_FRAMES = 512 * 1024; // bytes for what the code has on its stack when it returns to the loop of events
const LONGJMP = Symbol("longjmp");
const BAD_FILE = 8; // EBADF: there are no files

/** One Lua state in a wasm memory of its own. What it runs, it runs in a coroutine, which can leave the wasm code in the middle. */
export class Machine {
  readonly lua: Exports;
  readonly helper: HelperExports;
  readonly memory: WebAssembly.Memory;
  bytes!: Uint8Array;
  words!: Int32Array;
  state: Pointer = 0;
  private scratch: Pointer = 0;
  private readonly encoder = new TextEncoder();
  private readonly decoder = new TextDecoder();

  /** What Lua calls; whoever uses the machine sets it. */
  functions!: Record<(typeof HOST_FUNCTIONS)[number], HostFunction>;
  goingOn!: HostFunction;

  constructor(module: WebAssembly.Module) {
    const instance = new WebAssembly.Instance(module, this.imports());
    this.lua = instance.exports as unknown as Exports;
    this.memory = this.lua.memory;
    this.refresh();
    const helper = new WebAssembly.Instance(new WebAssembly.Module(helperModule(this.memory)), {
      env: {
        memory: this.memory,
        realloc: this.lua.realloc,
        free: this.lua.free,
        pushinteger: this.lua.lua_pushinteger,
        rawseti: this.lua.lua_rawseti,
        dispatch: (state: Pointer, number: number) => (this.functions[HOST_FUNCTIONS[number]!] ?? this.goingOn)(state),
      },
    });
    this.helper = helper.exports as unknown as HelperExports;
    this.lua.emscripten_stack_init();
  }

  /** Makes a fresh Lua state, in a module without a memory of ours. */
  protected open(): void {
    this.lua.__wasm_call_ctors();
    this.fillTable();
    this.scratch = this.lua.malloc(SCRATCH);
    const main = this.lua.lua_newstate(this.tableStart, 0);
    if (main === 0) throw new Error("Lua could not be started: not enough memory");
    this.lua.luaL_openlibs(main);
    this.state = this.lua.lua_newthread(main);
    this.lua.luaL_ref(main, REGISTRY);
  }

  private tableStart = 0;
  hostAddresses: number[] = [];
  private goesOn = 0;

  /** Puts the same functions at the same places of the table, in every worker. */
  private fillTable(): void {
    if (this.tableStart !== 0) return;
    this.table(this.helper.allocate);
    this.hostAddresses = HOST_FUNCTIONS.map((_, number) => this.table(this.helper[`host_${number}`]!));
    this.goesOn = this.table(this.helper.goes_on);
  }

  private table(f: CallableFunction): number {
    const table = this.lua.__indirect_function_table;
    const at = table.grow(1);
    table.set(at, f);
    if (this.tableStart === 0) this.tableStart = at;
    return at;
  }

  /** How much of the memory is in use, and what belongs to it: enough to go on elsewhere. */
  save(): { size: number; places: number[] } {
    let end = this.bytes.length;
    const words = this.words;
    while (end > 0 && words[(end >> 2) - 1] === 0) end -= 4;
    const places = [this.state, this.scratch, this.lua.stackSave(), this.helper.used.value as number];
    return { size: end, places };
  }

  /** Goes on from a saved memory; null where it is in place. The first bytes of this one, so many, may hold another. */
  load(image: Uint8Array | null, places: number[], used: number): void {
    this.fillTable();
    const missing = image === null ? 0 : Math.ceil((image.length - this.bytes.length) / PAGE);
    if (missing > 0) this.memory.grow(missing);
    this.refresh();
    if (image !== null) {
      this.bytes.set(image);
      if (image.length < used) this.bytes.fill(0, image.length, used);
    }
    [this.state, this.scratch] = [places[0]!, places[1]!];
    this.lua.stackRestore(places[2]!);
    this.helper.used.value = places[3]!;
  }

  // Strings

  /** Pushes bytes as a Lua string. */
  pushBytes(value: Uint8Array): void {
    const block = value.length <= SCRATCH ? this.scratch : this.malloc(value.length);
    this.bytes.set(value, block);
    try {
      this.lua.lua_pushlstring(this.state, block, value.length);
    } finally {
      if (block !== this.scratch) this.lua.free(block);
    }
  }

  pushText(value: string): void {
    this.pushBytes(this.encoder.encode(value));
  }

  /** A block of the wasm memory; the caller frees it. */
  malloc(size: number): Pointer {
    const block = this.lua.malloc(size);
    if (block === 0) throw new RangeError("not enough memory");
    return block;
  }

  /** The bytes of a Lua string as a copy of our own. */
  toBytes(index: number, state = this.state): Uint8Array<ArrayBuffer> {
    const sizeAt = this.scratch;
    const text = this.lua.lua_tolstring(state, index, sizeAt);
    const size = this.words[sizeAt >> 2]! >>> 0;
    return this.bytes.slice(text, text + size) as Uint8Array<ArrayBuffer>;
  }

  /** Where a Lua string lies; it must stay on the stack meanwhile. */
  locate(index: number, state: Pointer): [Pointer, number] {
    const text = this.lua.lua_tolstring(state, index, this.scratch);
    return [text, this.words[this.scratch >> 2]! >>> 0];
  }

  toText(index: number, state = this.state): string {
    return this.decoder.decode(this.toBytes(index, state));
  }

  // Calls

  /** Loads a chunk of text and leaves it on the stack. */
  loadChunk(source: string, name: string): void {
    this.load_(this.encoder.encode(source), name, "t");
  }

  /** The same for what `string.dump` made of a chunk when this package was built. */
  loadCode(code: Uint8Array, name: string): void {
    this.load_(code, name, "b");
  }

  private load_(text: Uint8Array, name: string, mode: "t" | "b"): void {
    const label = this.encoder.encode(`=${name}\0${mode}\0`);
    const block = this.malloc(text.length + label.length);
    this.bytes.set(text, block);
    this.bytes.set(label, block + text.length);
    const at = block + text.length;
    const status = this.lua.luaL_loadbufferx(this.state, block, text.length, at, at + label.length - 2);
    this.lua.free(block);
    if (status !== 0) throw new Error(this.toText(-1));
  }

  /** Calls what is on the stack below its arguments; raises what Lua raised. */
  call(count: number, results: number): void {
    if (this.lua.lua_pcallk(this.state, count, results, 0, 0, 0) !== 0) {
      const message = this.lua.lua_type(this.state, -1) === TYPE.string ? this.toText(-1) : "an error without a message";
      this.pop(1);
      throw new Error(message);
    }
  }

  // Leaving the wasm code in the middle of a script

  /** Runs what is on the stack below its arguments, or goes on with what has yielded: the status as `lua_resume` has it. */
  resume(count: number): number {
    return this.lua.lua_resume(this.state, 0, count, this.scratch);
  }

  /** Whether the host function that is running for that state can yield. */
  canYield(state: Pointer): boolean {
    return state === this.state && this.lua.lua_isyieldable(state) !== 0;
  }

  /** Ends the host function that is running, which never returns here; when the script is resumed, `goingOn` has its results. */
  yield_(state: Pointer): never {
    this.lua.lua_yieldk(state, 0, 0, this.goesOn);
    throw new Error("lua_yieldk has returned");
  }

  // The same where even functions of C may wait for the script

  private frames: Pointer = 0;
  private going: "out" | "in" | null = null;

  /** The host function that is running returns at once, and with it everything below `lua_resume`; it is called again by `goOn`. */
  suspend(): void {
    this.frames = this.malloc(MOST_FRAMES);
    this.words.set([this.frames + 8, this.frames + MOST_FRAMES], this.frames >> 2);
    this.going = "out";
    this.lua.asyncify_start_unwind!(this.frames);
  }

  /** Whether the call of `lua_resume` that has returned is not over. */
  suspended(): boolean {
    if (this.going !== "out") return false;
    this.lua.asyncify_stop_unwind!();
    return true;
  }

  /** The next call of `lua_resume`, with the same arguments, goes on where the last one was suspended. */
  goOn(): void {
    this.going = "in";
    this.lua.asyncify_start_rewind!(this.frames);
  }

  /** Whether the host function that is running was suspended, and goes on now. */
  resumes(): boolean {
    if (this.going !== "in") return false;
    this.going = null;
    this.lua.asyncify_stop_rewind!();
    this.lua.free(this.frames);
    return true;
  }

  pop(count: number): void {
    this.lua.lua_settop(this.state, -count - 1);
  }

  /** Takes the value on top of the stack into the registry. */
  reference(): number {
    return this.lua.luaL_ref(this.state, REGISTRY);
  }

  pushReference(reference: number, state = this.state): void {
    this.lua.lua_rawgeti(state, REGISTRY, BigInt(reference));
  }

  setField(name: string, push: () => void): void {
    this.pushText(name);
    push();
    this.lua.lua_rawset(this.state, -3);
  }

  private refresh(): void {
    this.bytes = new Uint8Array(this.memory.buffer);
    this.words = new Int32Array(this.memory.buffer);
  }

  // Imports

  private imports(): WebAssembly.Imports {
    const refuse = answering(-BAD_FILE);
    const wasiRefuse = answering(BAD_FILE);
    return {
      env: {
        abort: () => {
          throw new Error("Lua aborted");
        },
        exit: (_status: number) => {
          throw new Error("Lua exited");
        },
        system: answering(-1)[1],
        invoke_vii: (index: number, first: number, second: number) => {
          const stack = this.lua.stackSave();
          try {
            this.lua.__indirect_function_table.get(index)(first, second);
          } catch (problem) {
            this.lua.stackRestore(stack);
            if (problem !== LONGJMP) throw problem;
            this.lua.setThrew(1, 0);
          }
        },
        _emscripten_throw_longjmp: () => {
          throw LONGJMP;
        },
        emscripten_resize_heap: (size: number) => this.grow(size >>> 0),
        emscripten_date_now: () => 0, // scripts have the host's clock; of the seed of Lua's hashes, which is made of the time, see reseed.ts
        _emscripten_get_now_is_monotonic: () => 1,
        strftime: (into: Pointer, most: number, pattern: Pointer, moment: Pointer) => {
          const made = this.encoder.encode(format(this.textAt(pattern), this.momentAt(moment)));
          if (made.length + 1 > most) return 0;
          this.bytes.set(made, into);
          this.bytes[into + made.length] = 0;
          return made.length;
        },
        _gmtime_js: (seconds: bigint, into: Pointer) => this.writeMoment(fromSeconds(seconds), into),
        _localtime_js: (seconds: bigint, into: Pointer) => this.writeMoment(fromSeconds(seconds), into),
        _mktime_js: (_moment: Pointer) => -1n,
        _tzset_js: (_zone: Pointer, _light: Pointer, _names: Pointer) => undefined,
        __syscall_openat: refuse[4],
        __syscall_fcntl64: refuse[3],
        __syscall_ioctl: refuse[3],
        __syscall_dup3: refuse[3],
        __syscall_unlinkat: refuse[3],
        __syscall_rmdir: refuse[1],
        __syscall_renameat: refuse[4],
        __syscall_readlinkat: refuse[4],
      },
      wasi_snapshot_preview1: {
        fd_write: wasiRefuse[4],
        fd_read: wasiRefuse[4],
        fd_close: wasiRefuse[1],
        fd_seek: wasiRefuse[4],
        environ_sizes_get: (count: Pointer, size: Pointer) => {
          this.words[count >> 2] = 0;
          this.words[size >> 2] = 0;
          return 0;
        },
        environ_get: answering(0)[2],
      },
    };
  }

  private grow(size: number): number {
    const missing = Math.ceil((size - this.bytes.length) / PAGE);
    if (missing <= 0) return 1;
    const step = Math.max(missing, Math.min(64, Math.max(8, Math.ceil(this.bytes.length / PAGE / 8))));
    for (const pages of [step, missing]) {
      try {
        this.memory.grow(pages);
        this.refresh();
        return 1;
      } catch {
        // more than the memory's maximum
      }
    }
    return 0;
  }

  private textAt(at: Pointer): string {
    let end = at;
    while (this.bytes[end] !== 0) end += 1;
    return this.decoder.decode(this.bytes.slice(at, end));
  }

  private momentAt(at: Pointer): Moment {
    const [second, minute, hour, day, month, year, weekday, yearday] = this.words.subarray(at >> 2, (at >> 2) + 8);
    return {
      second: second!, minute: minute!, hour: hour!, day: day!, month: month!, year: year!, weekday: weekday!,
      yearday: yearday!,
    };
  }

  private writeMoment(of: Moment, into: Pointer): void {
    const fields = [of.second, of.minute, of.hour, of.day, of.month, of.year, of.weekday, of.yearday, 0, 0, 0];
    this.words.set(fields, into >> 2);
  }
}

/** Functions of no, one, and up to four parameters: one with as many as wasm gives it costs less. */
function answering(value: number): Record<0 | 1 | 2 | 3 | 4, CallableFunction> {
  return [() => value, (_: number) => value, (_: number, __: number) => value, (_: number, __: number, ___: number) => value, (_: number, __: number, ___: number, ____: number) => value];
}

/** Whether an exception is Lua's own error on its way to whoever catches it: it must be let through. */
export function isLuaError(problem: unknown): boolean {
  return problem === LONGJMP;
}
