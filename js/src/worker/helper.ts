/**
 * A small wasm module beside Lua's: the allocator that holds the memory limit, and the C functions that lead to the host.
 *
 * The allocator runs for every table and string that a script makes. As wasm it costs a few nanoseconds; as JavaScript
 * it would cost more than the allocation itself.
 */

const I32 = 0x7f;
const I64 = 0x7e;
const F64 = 0x7c;

/** What Lua can call: the names in the order of their numbers. */
export const HOST_FUNCTIONS = ["reason", "exchange", "cancel", "emit", "decode", "enter", "leave", "adopt"] as const;
const GOES_ON = HOST_FUNCTIONS.length;

export interface HelperExports {
  used: WebAssembly.Global;
  limit: WebAssembly.Global;
  peak: WebAssembly.Global;
  allocate: CallableFunction;
  push_integer(state: number, value: number): void;
  raw_set_index(state: number, index: number, position: number): void;
  /** The hash of a string of Lua's, of that place and size. */
  hash(from: number, size: number, seed: number): number;
  /** What Lua calls when a script goes on that has left its worker in `exchange`. */
  goes_on: CallableFunction;
  [name: `host_${number}`]: CallableFunction;
}

/** The module's bytes. Its imports: `memory`, `realloc`, `free`, `dispatch(L, number)`, `pushinteger`, `rawseti`. */
export function helperModule(memory: WebAssembly.Memory): Uint8Array<ArrayBuffer> {
  const types = [
    func([I32, I32, I32, I32], [I32]), // 0 allocate
    func([I32, I32], [I32]), // 1 realloc, dispatch
    func([I32], []), // 2 free
    func([I32], [I32]), // 3 a C function
    func([I32, F64], []), // 4 push_integer
    func([I32, I64], []), // 5 lua_pushinteger
    func([I32, I32, I32], []), // 6 raw_set_index
    func([I32, I32, I64], []), // 7 lua_rawseti
    func([I32, I32, I32], [I32]), // 8 hash, a continuation
  ];
  const imports = [
    imported("realloc", 1),
    imported("free", 2),
    imported("dispatch", 1),
    imported("pushinteger", 5),
    imported("rawseti", 7),
  ];
  const globals = ["used", "limit", "peak"];
  const isShared = typeof SharedArrayBuffer === "function" && memory.buffer instanceof SharedArrayBuffer;
  const memoryType = [isShared ? 3 : 1, 0, 0x80, 0x80, 4]; // up to 65536 pages
  const firstHost = imports.length + 4;
  const bodies = [
    body(ALLOCATE, 1),
    body([get(0), get(1), 0xb0, 0x10, 3].flat()), // i64.trunc_f64_s
    body([get(0), get(1), get(2), 0xac, 0x10, 4].flat()), // i64.extend_i32_s
    body(HASH),
    ...[...HOST_FUNCTIONS, "goes_on"].map((_, number) => body([get(0), 0x41, number, 0x10, 2].flat())),
  ];
  const declared = [0, 4, 6, 8, ...HOST_FUNCTIONS.map(() => 3), 8];
  const exported = [
    ...globals.map((name, index) => [...text(name), 3, index]),
    [...text("allocate"), 0, imports.length],
    [...text("push_integer"), 0, imports.length + 1],
    [...text("raw_set_index"), 0, imports.length + 2],
    [...text("hash"), 0, imports.length + 3],
    ...HOST_FUNCTIONS.map((_, number) => [...text(`host_${number}`), 0, firstHost + number]),
    [...text("goes_on"), 0, firstHost + GOES_ON],
  ];
  return new Uint8Array([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, vector(types)),
    ...section(2, vector([...imports, [...text("env"), ...text("memory"), 2, ...memoryType]])),
    ...section(3, vector(declared.map((type) => [type]))),
    ...section(6, vector(globals.map(() => [I32, 1, 0x41, 0, 0x0b]))),
    ...section(7, vector(exported)),
    ...section(10, vector(bodies)),
  ]);
}

const get = (index: number): number[] => [0x20, index];
const set = (index: number): number[] => [0x21, index];
const read = (global: number): number[] => [0x23, global];
const write = (global: number): number[] => [0x24, global];
const USED = 0;
const LIMIT = 1;
const PEAK = 2;
const END = 0x0b;
const RETURN_NULL = [0x41, 0, 0x0f];
const IF = [0x04, 0x40];

// (userdata, block, old size, new size) -> block; local 4 is the new block.
const ALLOCATE = [
  // Without a block the old size is a type tag of Lua's.
  ...[get(1), 0x45, IF, 0x41, 0, set(2), END].flat(),
  ...[get(3), 0x45, IF, get(1), 0x10, 1, read(USED), get(2), 0x6b, write(USED), RETURN_NULL, END].flat(),
  // Refused: there is a limit, the block grows, and would be more than the limit allows.
  ...[read(LIMIT), 0x41, 0, 0x47, get(3), get(2), 0x4b, 0x71].flat(),
  ...[read(USED), get(3), 0x6a, get(2), 0x6b, read(LIMIT), 0x4b, 0x71, IF, RETURN_NULL, END].flat(),
  ...[get(1), get(3), 0x10, 0, 0x22, 4, 0x45, IF, RETURN_NULL, END].flat(),
  ...[read(USED), get(3), 0x6a, get(2), 0x6b, write(USED)].flat(),
  ...[read(USED), read(PEAK), 0x4b, IF, read(USED), write(PEAK), END].flat(),
  ...get(4),
];

// (from, size, seed) -> hash; the size becomes the end of what is not read, the seed the hash.
const HASH = [
  ...[get(2), get(1), 0x73, set(2), get(0), get(1), 0x6a, set(1)].flat(),
  ...[0x03, 0x40, get(1), get(0), 0x4b, IF].flat(),
  ...[get(1), 0x41, 1, 0x6b, set(1), get(2), get(2), 0x41, 5, 0x74, get(2), 0x41, 2, 0x76, 0x6a].flat(),
  ...[get(1), 0x2d, 0, 0, 0x6a, 0x73, set(2), 0x0c, 1, END, END, get(2)].flat(),
];

function func(parameters: number[], results: number[]): number[] {
  return [0x60, parameters.length, ...parameters, results.length, ...results];
}

function imported(name: string, type: number): number[] {
  return [...text("env"), ...text(name), 0, type];
}

function body(code: number[], locals = 0): number[] {
  const whole = [...(locals ? [1, locals, I32] : [0]), ...code, END];
  return [...size(whole.length), ...whole];
}

function text(value: string): number[] {
  return [value.length, ...Array.from(value, (char) => char.charCodeAt(0))];
}

function vector(items: number[][]): number[] {
  return [...size(items.length), ...items.flat()];
}

function section(id: number, content: number[]): number[] {
  return [id, ...size(content.length), ...content];
}

function size(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...size(value >>> 7)];
}
