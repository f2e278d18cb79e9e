/** Lua's wasm module as the package has it: its memory shared and small at first, with the prelude already in it. */

const MEMORY = 5;
const DATA = 11;
const DATA_COUNT = 12;
const FIRST_PAGES = 32; // the data, 1 MB of stack, and the prelude
const LARGEST_GAP = 32; // zeros between two pieces of data; where there are more, they are left out

/** The module with its memory declared as shared, so that the host can interrupt a script from outside. */
export function withSharedMemory(bytes) {
  return joined(sections(bytes).map(({ id, content }) => {
    if (id !== MEMORY) return { id, content };
    if (content[0] !== 1 || content[1] !== 1) throw new Error("Lua's wasm module declares its memory in another way");
    const [, end] = number(content, 2);
    return { id, content: Buffer.concat([Buffer.from([1, 3, 0x80 | FIRST_PAGES, 0x00]), content.subarray(end)]) };
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
