/** Lua's wasm module as the package has it: its memory small at first, with the prelude already in it. */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const MEMORY = 5;
const DATA = 11;
const DATA_COUNT = 12;
const FIRST_PAGES = 32; // the data, 1 MB of stack, and the prelude
const FEATURES = ["bulk-memory", "bulk-memory-opt", "sign-ext", "mutable-globals", "nontrapping-float-to-int"].map((name) => `--enable-${name}`);
const LARGEST_GAP = 32; // zeros between two pieces of data; where there are more, they are left out

/**
 * The module whose code can return to the loop of events in the middle of a script, made by Binaryen: that needs half a
 * minute on a slow machine, so what it made is kept in the folder.
 */
export function suspendable(bytes, folder) {
  const require = createRequire(import.meta.url);
  const binaryen = dirname(require.resolve("binaryen"));
  const { version } = JSON.parse(readFileSync(join(binaryen, "package.json"), "utf8"));
  const kept = join(folder, `suspendable-${createHash("sha256").update(version).update(bytes).digest("hex").slice(0, 16)}.wasm`);
  if (!existsSync(kept)) {
    const work = mkdtempSync(join(tmpdir(), "moonbox-wasm-"));
    try {
      writeFileSync(join(work, "in.wasm"), bytes);
      const asyncify = ["--asyncify", "--pass-arg=asyncify-imports@env.invoke_vii", "-O2"];
      execFileSync(process.execPath, [join(binaryen, "bin/wasm-opt"), ...FEATURES, ...asyncify, join(work, "in.wasm"), "-o", join(work, "out.wasm")]);
      writeFileSync(kept, readFileSync(join(work, "out.wasm")));
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  }
  return readFileSync(kept);
}

/** The module with a small memory; shared, so that the host can interrupt a script from outside, or not. */
export function withSmallMemory(bytes, isShared) {
  return joined(sections(bytes).map(({ id, content }) => {
    if (id !== MEMORY) return { id, content };
    if (content[0] !== 1 || content[1] !== 1) throw new Error("Lua's wasm module declares its memory in another way");
    const [, end] = number(content, 2);
    return { id, content: Buffer.concat([Buffer.from([1, isShared ? 3 : 1, 0x80 | FIRST_PAGES, 0x00]), content.subarray(end)]) };
  }));
}

/** The module with that memory as its data, and what belongs to it in a section of that name. */
export function withMemory(bytes, memory, name, prepared) {
  const pieces = [];
  for (let at = 0; at < memory.length;) {
    if (memory[at] === 0) at += 1;
    else {
      const from = at;
      let last = at;
      for (; at < memory.length && at - last <= LARGEST_GAP; at += 1) if (memory[at] !== 0) last = at;
      pieces.push([from, memory.subarray(from, last + 1)]);
    }
  }
  const data = pieces.flatMap(([from, piece]) => [Buffer.from([0, 0x41, ...signed(from), 0x0b, ...unsigned(piece.length)]), piece]);
  const title = Buffer.from(name);
  const kept = sections(bytes).filter(({ id }) => id !== DATA && id !== DATA_COUNT);
  const at = kept.findIndex(({ id }) => id > 9);
  kept.splice(at, 0, { id: DATA_COUNT, content: Buffer.from(unsigned(pieces.length)) });
  return joined([
    ...kept,
    { id: DATA, content: Buffer.concat([Buffer.from(unsigned(pieces.length)), ...data]) },
    { id: 0, content: Buffer.concat([Buffer.from(unsigned(title.length)), title, Buffer.from(JSON.stringify(prepared))]) },
  ]);
}

function sections(bytes) {
  const found = [];
  for (let at = 8; at < bytes.length;) {
    const [size, from] = number(bytes, at + 1);
    found.push({ id: bytes[at], content: bytes.subarray(from, from + size) });
    at = from + size;
  }
  return found;
}

function joined(all) {
  return Buffer.concat([
    Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]),
    ...all.flatMap(({ id, content }) => [Buffer.from([id, ...unsigned(content.length)]), content]),
  ]);
}

/** The number at that place, and where it ends. */
function number(bytes, at) {
  let value = 0;
  for (let shift = 0; ; shift += 7, at += 1) {
    value |= (bytes[at] & 127) << shift;
    if (bytes[at] < 128) return [value >>> 0, at + 1];
  }
}

function unsigned(value) {
  return value < 128 ? [value] : [(value & 127) | 128, ...unsigned(value >>> 7)];
}

function signed(value) {
  return value < 64 ? [value] : [(value & 127) | 128, ...signed(value >>> 7)];
}
