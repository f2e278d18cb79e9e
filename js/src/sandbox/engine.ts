/** Lua's wasm module, compiled for workers whose memory may grow to a given size. */

import { isNode } from "./link.js";

const PAGE = 65536;
const FIRST_PAGES = 256;
const MOST_PAGES = 32768;

/** One for each Sandbox: a module is compiled once for each size of memory. */
export class EngineModules {
  private bytes: Promise<Uint8Array<ArrayBuffer>> | null = null;
  private readonly compiled = new Map<number, Promise<WebAssembly.Module>>();

  /** A module for scripts that may hold so many bytes; values on their way in and out need room of their own. */
  for(maxMemory: number): Promise<WebAssembly.Module> {
    const pages = mostPages(maxMemory);
    let module = this.compiled.get(pages);
    if (module === undefined) {
      this.bytes ??= readModule();
      module = this.bytes.then((bytes) => WebAssembly.compile(withMaximum(bytes, pages)));
      this.compiled.set(pages, module);
    }
    return module;
  }
}

function mostPages(maxMemory: number): number {
  return Math.min(MOST_PAGES, FIRST_PAGES + Math.ceil((3 * maxMemory) / PAGE) + 512);
}

/** The bytes to which the memory of a worker may grow, whose scripts may hold so many. */
export function mostBytes(maxMemory: number): number {
  return mostPages(maxMemory) * PAGE;
}

async function readModule(): Promise<Uint8Array<ArrayBuffer>> {
  const url = new URL("./lua.wasm", import.meta.url);
  if (isNode() && url.protocol === "file:") {
    const { readFile } = await import("node:fs/promises");
    return new Uint8Array(await readFile(url));
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`lua.wasm could not be loaded: HTTP ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

/** The module with another maximum of its memory, which stands in three bytes of its fifth section. */
function withMaximum(given: Uint8Array<ArrayBuffer>, pages: number): Uint8Array<ArrayBuffer> {
  const bytes = given.slice();
  let at = 8;
  const number = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]!;
      value |= (byte & 127) << shift;
      if (byte < 128) return value >>> 0;
    }
  };
  while (at < bytes.length) {
    const id = bytes[at++];
    const end = number() + at;
    if (id === 5) {
      at += 2; // one memory, with a maximum, shared
      number();
      bytes.set([(pages & 127) | 128, ((pages >> 7) & 127) | 128, (pages >> 14) & 127], at);
      return bytes;
    }
    at = end;
  }
  throw new Error("lua.wasm has no memory");
}
