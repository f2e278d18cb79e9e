/** Lua's wasm module, compiled for workers whose memory may grow to a given size. */

import { wasm } from "../languages.js";

const PAGE = 65536;
const MORE_PAGES = 768;
const MOST_PAGES = 32768;

const compiled = new Map<string, Promise<WebAssembly.Module>>();

/**
 * A module for scripts that may hold so many bytes; values on their way in and out need room of their own. Each size is
 * compiled once, for all workers of the process.
 */
export function engineModule(maxMemory: number, isShared: boolean): Promise<WebAssembly.Module> {
  const pages = mostPages(maxMemory);
  const key = `${pages}/${isShared}`;
  let module = compiled.get(key);
  if (module === undefined) {
    module = wasm(isShared).then((bytes) => WebAssembly.compile(withMaximum(bytes, pages)));
    compiled.set(key, module);
    module.catch(() => compiled.delete(key)); // the next worker tries again
  }
  return module;
}

function mostPages(maxMemory: number): number {
  return Math.min(MOST_PAGES, Math.ceil((3 * maxMemory) / PAGE) + MORE_PAGES);
}

/** The bytes to which the memory of a worker may grow, whose scripts may hold so many. */
export function mostBytes(maxMemory: number): number {
  return mostPages(maxMemory) * PAGE;
}

/** The module with another maximum of its memory, which stands in three bytes of its fifth section. */
function withMaximum(bytes: Uint8Array<ArrayBuffer>, pages: number): Uint8Array<ArrayBuffer> {
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
      at += 2; // one memory, with a maximum
      number();
      bytes.set([(pages & 127) | 128, ((pages >> 7) & 127) | 128, (pages >> 14) & 127], at);
      return bytes;
    }
    at = end;
  }
  throw new Error("lua.wasm has no memory");
}
