/** Snapshots: a worker's wasm memory and what belongs to it, compressed, behind a digest or a signature. */

import { UsageError } from "../errors.js";
import { build, version } from "../languages.js";
import type { SavedMemory } from "../protocol.js";
import { isObject } from "../values.js";

const KIND = "moonbox snapshot ";
const MAGIC = `${KIND}2\n`;
const DIGEST = /^(sha256|hmac-sha256) ([0-9a-f]{64})\n/;
const LONGEST_DIGEST = 80;
const NEWLINE = 10;
const DAMAGED = "the snapshot is damaged, or somebody has changed it";

/** Enough to go on in another worker, process or machine with the same build of moonbox. */
export interface Image extends SavedMemory {
  number: number;
  sources: [string, string][];
  language: string;
  features: string[];
}

/** With a key the bytes are signed: `unpack` with the same key takes nothing else. */
export async function pack(image: Image, key: Uint8Array | null): Promise<Uint8Array> {
  const { bytes, ...rest } = image;
  const head = new TextEncoder().encode(`${JSON.stringify({ ...rest, version, build, size: bytes.length })}\n`);
  const content = joined([head, await through(new CompressionStream("deflate"), bytes)]);
  const name = key === null ? "sha256" : "hmac-sha256";
  return joined([new TextEncoder().encode(`${MAGIC}${name} ${await digest(content, key)}\n`), content]);
}

/** The image, which holds at most so many bytes; throws UsageError that says what is wrong with the snapshot. */
export async function unpack(packed: Uint8Array, key: Uint8Array | null, mostBytes: number): Promise<Image> {
  const start = new TextDecoder("latin1").decode(packed.subarray(0, MAGIC.length + LONGEST_DIGEST));
  if (!start.startsWith(KIND)) throw new UsageError("these bytes are not a snapshot of a Repl");
  if (!start.startsWith(MAGIC)) throw new UsageError("the snapshot was made by another version of moonbox, in another format");
  const match = DIGEST.exec(start.slice(MAGIC.length));
  if (match === null) throw new UsageError(DAMAGED);
  const content = packed.subarray(MAGIC.length + match[0].length);
  if (key !== null && match[1] !== "hmac-sha256") {
    throw new UsageError("the snapshot is not signed, and this Sandbox has a snapshotKey");
  }
  if (key === null && match[1] === "hmac-sha256") {
    throw new UsageError("the snapshot is signed: restore it in a Sandbox with the same snapshotKey");
  }
  if ((await digest(content, key)) !== match[2]) {
    throw new UsageError(key === null ? DAMAGED : `${DAMAGED}, or it was signed with another snapshotKey`);
  }
  const headEnd = content.indexOf(NEWLINE);
  const head = readHead(new TextDecoder().decode(content.subarray(0, Math.max(headEnd, 0))));
  if (head.size > mostBytes) {
    throw new UsageError(`the snapshot has ${head.size} bytes, too many for maxMemory of this Sandbox: give it a higher limit`);
  }
  let bytes: Uint8Array;
  try {
    bytes = await through(new DecompressionStream("deflate"), content.subarray(headEnd + 1), head.size);
  } catch {
    throw new UsageError(DAMAGED);
  }
  if (bytes.length !== head.size) throw new UsageError(DAMAGED);
  return { ...head, bytes };
}

function readHead(text: string): Omit<Image, "bytes"> & { size: number } {
  let head: unknown;
  try {
    head = JSON.parse(text);
  } catch {
    throw new UsageError(DAMAGED);
  }
  if (!isObject(head)) throw new UsageError(DAMAGED);
  if (head["version"] !== version) {
    throw new UsageError(`the snapshot was made by moonbox ${String(head["version"])}; this is ${version}`);
  }
  if (head["build"] !== build) throw new UsageError(`the snapshot was made by another build of moonbox ${version}`);
  const { number, sources, language, features, places, references, base, size } = head;
  const whole = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
  const list = (value: unknown, holds: (item: unknown) => boolean): boolean => Array.isArray(value) && value.every(holds);
  const text_ = (value: unknown): boolean => typeof value === "string";
  const known =
    [number, base, size].every(whole) && list(places, whole) && (places as number[]).length === 4 && text_(language) &&
    list(features, text_) && list(sources, (pair) => list(pair, text_) && (pair as string[]).length === 2) &&
    isObject(references) && Object.values(references).every(whole);
  if (!known) throw new UsageError(DAMAGED);
  return { number, sources, language, features, places, references, base, size } as Omit<Image, "bytes"> & { size: number };
}

/** SHA-256 in hexadecimal, or the HMAC with a key. */
async function digest(content: Uint8Array, key: Uint8Array | null): Promise<string> {
  const data = content as Uint8Array<ArrayBuffer>;
  let made: ArrayBuffer;
  if (key === null) made = await crypto.subtle.digest("SHA-256", data);
  else {
    const method = { name: "HMAC", hash: "SHA-256" };
    const imported = await crypto.subtle.importKey("raw", key as Uint8Array<ArrayBuffer>, method, false, ["sign"]);
    made = await crypto.subtle.sign("HMAC", imported, data);
  }
  return Array.from(new Uint8Array(made), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The key of a Sandbox as bytes. */
export function snapshotKey(given: string | Uint8Array | null | undefined): Uint8Array | null {
  if (given === null || given === undefined) return null;
  const key = typeof given === "string" ? new TextEncoder().encode(given) : given;
  if (!(key instanceof Uint8Array)) throw new UsageError("snapshotKey must be a string or bytes");
  if (key.length < 16) throw new UsageError(`snapshotKey must have at least 16 bytes, not ${key.length}`);
  return key;
}

async function through(
  transform: CompressionStream | DecompressionStream, bytes: Uint8Array, most = Infinity,
): Promise<Uint8Array> {
  const source = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream();
  const reader = source.pipeThrough(transform as unknown as ReadableWritablePair<Uint8Array, Uint8Array<ArrayBuffer>>).getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return joined(parts);
    size += value.length;
    if (size > most) {
      await reader.cancel();
      throw new UsageError(DAMAGED);
    }
    parts.push(value);
  }
}

function joined(parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
