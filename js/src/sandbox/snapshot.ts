/** Snapshots: a worker's wasm memory and what belongs to it, compressed. */

import { UsageError } from "../errors.js";
import { version } from "../languages.js";
import type { SavedMemory } from "../protocol.js";

const MAGIC = "moonbox snapshot 1\n";

/** Enough to go on in another worker, process or machine with the same version of moonbox. */
export interface Image extends SavedMemory {
  number: number;
  sources: [string, string][];
  language: string;
  features: string[];
}

export async function pack(image: Image): Promise<Uint8Array> {
  const { bytes, ...rest } = image;
  const head = new TextEncoder().encode(`${MAGIC}${JSON.stringify({ ...rest, version, size: bytes.length })}\n`);
  const body = await through(new CompressionStream("deflate"), bytes);
  const packed = new Uint8Array(head.length + body.length);
  packed.set(head);
  packed.set(body, head.length);
  return packed;
}

export async function unpack(packed: Uint8Array): Promise<Image> {
  const headEnd = packed.indexOf(10, MAGIC.length);
  const magic = new TextDecoder().decode(packed.subarray(0, MAGIC.length));
  if (magic !== MAGIC || headEnd < 0) throw new UsageError("these bytes are not a snapshot of a Repl");
  const head = JSON.parse(new TextDecoder().decode(packed.subarray(MAGIC.length, headEnd))) as Omit<Image, "bytes"> & {
    version: string;
    size: number;
  };
  if (head.version !== version) {
    throw new UsageError(`the snapshot was made by moonbox ${head.version}; this is ${version}`);
  }
  let bytes: Uint8Array;
  try {
    bytes = await through(new DecompressionStream("deflate"), packed.subarray(headEnd + 1), head.size);
  } catch {
    throw new UsageError("the snapshot is damaged");
  }
  if (bytes.length !== head.size) throw new UsageError("the snapshot is damaged");
  return { ...head, bytes };
}

async function through(
  transform: CompressionStream | DecompressionStream, bytes: Uint8Array, most = Infinity,
): Promise<Uint8Array<ArrayBuffer>> {
  const source = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream();
  const reader = source.pipeThrough(transform as unknown as ReadableWritablePair<Uint8Array, Uint8Array<ArrayBuffer>>).getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > most) {
      await reader.cancel();
      throw new UsageError("the snapshot is larger than it says");
    }
    parts.push(value);
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
