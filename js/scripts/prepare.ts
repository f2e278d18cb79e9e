/** The memory from which every worker begins: Lua with the prelude in it. The build makes it, and puts it into lua.wasm. */

import { LAYOUT, PREPARED, type Prepared } from "../src/protocol.js";
import { HOST_FUNCTIONS } from "../src/worker/helper.js";
import { Machine } from "../src/worker/machine.js";
import { reseed } from "../src/worker/reseed.js";

export { PREPARED };

const ENTRIES = ["run", "check", "outline", "configure", "limits", "inputs", "collect", "globals", "kept", "mark", "null"] as const;

/** The memory, and what belongs to it. `prelude` has the texts of its files by name. */
export function prepare(module: WebAssembly.Module, prelude: Record<string, string>): { bytes: Uint8Array; prepared: Prepared } {
  return new Preparing(module).prepare(new Preparing(module).compiled(prelude));
}

/** Throws where Lua finds a key no more after `reseed`, in a memory as workers begin with it. `lookUp` is the script that looks. */
export function check(module: WebAssembly.Module, prepared: Prepared, lookUp: string): void {
  for (const seed of [0, 1, 0x9e3779b9, 0xffffffff]) {
    const machine = new Machine(module);
    machine.load(null, prepared.places, prepared.size);
    reseed(machine, seed);
    machine.loadChunk(lookUp, "check");
    machine.call(0, 0);
  }
}

class Preparing extends Machine {
  private readonly references: Record<string, number> = {};

  constructor(module: WebAssembly.Module) {
    super(module);
    this.open();
  }

  /** The files as Lua's own code: loading it leaves no holes in the memory. */
  compiled(prelude: Record<string, string>): Record<string, Uint8Array> {
    return Object.fromEntries(Object.entries(prelude).map(([name, source]) => {
      this.loadChunk("return string.dump(...)", "dump");
      this.loadChunk(source, `moonbox/${name}`);
      this.call(1, 1);
      const code = this.toBytes(-1);
      this.pop(1);
      return [name, code];
    }));
  }

  prepare(code: Record<string, Uint8Array>): { bytes: Uint8Array; prepared: Prepared } {
    this.collecting("stop"); // nearly everything that is made here stays
    this.loadPrelude(code);
    this.collecting("restart");
    this.findHook();
    this.pushReference(this.references["collect"]!);
    this.call(0, 0);
    const { size, places } = this.save();
    const bytes = this.bytes.slice(0, size);
    bytes.fill(0, this.lua.emscripten_stack_get_end(), this.lua.stackSave()); // what is left behind on the stack
    return { bytes, prepared: { places, references: this.references, base: this.helper.used.value as number, size } };
  }

  private collecting(what: "stop" | "restart"): void {
    this.loadChunk(`collectgarbage("${what}")`, "moonbox/start");
    this.call(0, 0);
  }

  private loadPrelude(code: Record<string, Uint8Array>): void {
    const { lua, state } = this;
    this.loadChunk("local chunks = ... return function(name) return chunks[name]() end", "moonbox/import");
    lua.lua_createtable(state, 0, 16);
    for (const [name, each] of Object.entries(code)) this.setField(name, () => this.loadCode(each, `moonbox/${name}`));
    this.call(1, 1);
    const importer = this.reference();
    this.loadCode(code["main"]!, "moonbox/main");
    lua.lua_createtable(state, 0, 16);
    HOST_FUNCTIONS.forEach((name, number) => {
      this.setField(name, () => lua.lua_pushcclosure(state, this.hostAddresses[number]!, 0));
    });
    this.pushReference(importer);
    this.call(2, 1);
    for (const name of ENTRIES) this.keepEntry(name);
    this.keepNulls();
    for (const name of ["install_hook", "main_thread"]) {
      this.keepEntry(name);
      this.pushReference(this.references[name]!);
      this.call(0, 0);
    }
    this.pop(1);
  }

  /** Keeps a field of the engine's table, which is on top of the stack. */
  private keepEntry(name: string): void {
    this.pushText(name);
    this.lua.lua_rawget(this.state, -2);
    this.references[name] = this.reference();
  }

  /** Keeps the functions that mark tables with nulls. */
  private keepNulls(): void {
    this.pushText("nulls");
    this.lua.lua_rawget(this.state, -2);
    for (const name of ["fields", "array"]) {
      this.pushText(name);
      this.lua.lua_rawget(this.state, -2);
      this.references[`nulls.${name}`] = this.reference();
    }
    this.pop(1);
  }

  /** Takes the hook that the prelude installed off again; the host installs it when the script must stop. */
  private findHook(): void {
    const { lua, state, words } = this;
    const hook = lua.lua_gethook(state);
    const odd = 0x5eed;
    lua.lua_sethook(state, hook, LAYOUT.maskCount, odd);
    const at = (offset: number): number => words[(state + offset) >> 2]!;
    const places = LAYOUT.state;
    const known =
      at(places.hook) === hook &&
      at(places.baseCount) === odd &&
      at(places.count) === odd &&
      at(places.mask) === LAYOUT.maskCount &&
      at(places.call) === state + places.firstCall;
    lua.lua_sethook(state, 0, 0, 0);
    if (!known) throw new Error("this build of Lua lays out its state in another way");
    this.references["hook"] = hook;
  }
}
