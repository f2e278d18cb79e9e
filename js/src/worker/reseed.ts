/**
 * A seed of its own for the hashes of a Lua state whose memory comes from the package.
 *
 * Lua hashes strings with a seed, which nobody who knows the package may guess: with it, data could be made whose keys
 * collide. So every hash is made anew, and with it the table of strings and the order of the keys of every table.
 */

import type { Machine, Pointer } from "./machine.js";

// Places in records of Lua 5.4 in wasm32.
const STATE_GLOBAL = 16;
const GLOBAL = { strings: 24, count: 28, size: 32, seed: 72, lists: [88, 96, 124] } as const; // all objects, those with finalizers, those that stay
const OBJECT = { next: 0, kind: 4 } as const;
const TEXT = { extra: 6, shortSize: 7, hash: 8, link: 12, bytes: 16 } as const; // link: the next in the table of strings, or a long one's size
const TABLE = { sizeLog: 7, nodes: 16, lastFree: 20 } as const;
const NODE = { bytes: 24, kind: 8, keyKind: 9, next: 12, key: 16 } as const;
const COLLECTABLE = 64;
const KIND = { nil: 0, false: 1, integer: 3, short: 4, table: 5, true: 17, float: 19, long: 20, dead: 11 } as const;

export function reseed(machine: Machine, seed: number): void {
  new Rehash(machine, seed).all();
}

class Rehash {
  private readonly words: Uint32Array;
  private readonly bytes: Uint8Array;
  private readonly global: Pointer;

  constructor(private readonly machine: Machine, private readonly seed: number) {
    this.bytes = machine.bytes;
    this.words = new Uint32Array(machine.bytes.buffer);
    this.global = this.word(machine.state + STATE_GLOBAL);
  }

  all(): void {
    this.words[(this.global + GLOBAL.seed) >> 2] = this.seed;
    this.strings();
    const tables: Pointer[] = [];
    for (const list of GLOBAL.lists) {
      for (let at = this.word(this.global + list); at !== 0; at = this.word(at + OBJECT.next)) {
        const kind = this.bytes[at + OBJECT.kind]!;
        if (kind === KIND.table) tables.push(at);
        else if (kind === KIND.long) this.long(at);
      }
    }
    for (const table of tables) this.table(table);
  }

  private word(at: Pointer): number {
    return this.words[at >> 2]!;
  }

  private hash(from: Pointer, size: number): number {
    return this.machine.helper.hash(from, size, this.seed) >>> 0;
  }

  /** Short strings are all in one table of lists. */
  private strings(): void {
    const { words, global } = this;
    const [buckets, size] = [this.word(global + GLOBAL.strings), this.word(global + GLOBAL.size)];
    const all: Pointer[] = [];
    for (let bucket = 0; bucket < size; bucket += 1) {
      for (let at = words[(buckets >> 2) + bucket]!; at !== 0; at = this.word(at + TEXT.link)) all.push(at);
      words[(buckets >> 2) + bucket] = 0;
    }
    if (all.length !== this.word(global + GLOBAL.count)) throw new Error("this build of Lua keeps its strings in another way");
    for (const at of all) {
      const hash = this.hash(at + TEXT.bytes, this.bytes[at + TEXT.shortSize]!);
      const bucket = (buckets >> 2) + (hash & (size - 1));
      words[(at + TEXT.hash) >> 2] = hash;
      words[(at + TEXT.link) >> 2] = words[bucket]!;
      words[bucket] = at;
    }
  }

  /** A long string has a hash when it has been a key. */
  private long(at: Pointer): void {
    const known = this.bytes[at + TEXT.extra] !== 0;
    this.words[(at + TEXT.hash) >> 2] = known ? this.hash(at + TEXT.bytes, this.word(at + TEXT.link)) : this.seed;
  }

  /** Puts the keys of a table where Lua looks for them: each at its place, or in the list that begins there. */
  private table(table: Pointer): void {
    const { bytes, words } = this;
    const size = 2 ** bytes[table + TABLE.sizeLog]!;
    const nodes = this.word(table + TABLE.nodes);
    if (this.word(table + TABLE.lastFree) === 0) return; // it has no keys, and shares its node with all that have none
    const held: Uint8Array[] = [];
    for (let index = 0; index < size; index += 1) {
      const at = nodes + index * NODE.bytes;
      const live = (bytes[at + NODE.kind]! & 15) !== KIND.nil;
      if (live) held.push(bytes.slice(at, at + NODE.bytes));
      bytes.fill(0, at, at + NODE.bytes);
    }
    const place = (node: Uint8Array): Pointer => nodes + this.position(new DataView(node.buffer), size) * NODE.bytes;
    const free = (at: Pointer): boolean => bytes[at + NODE.keyKind] === KIND.nil;
    const rest: Uint8Array[] = [];
    for (const node of held) {
      const at = place(node);
      new DataView(node.buffer).setInt32(NODE.next, 0, true);
      if (free(at)) bytes.set(node, at);
      else rest.push(node);
    }
    let last = nodes + size * NODE.bytes;
    for (const node of rest) {
      do last -= NODE.bytes;
      while (!free(last));
      const first = place(node);
      bytes.set(node, last);
      const next = (first + NODE.next) >> 2;
      const after = words[next]! === 0 ? 0 : first + (words[next]! | 0) * NODE.bytes;
      words[(last + NODE.next) >> 2] = after === 0 ? 0 : (after - last) / NODE.bytes;
      words[next] = (last - first) / NODE.bytes;
    }
    words[(table + TABLE.lastFree) >> 2] = nodes + size * NODE.bytes;
  }

  /** The number of the node at which Lua looks for a key first. */
  private position(node: DataView, size: number): number {
    const kind = node.getUint8(NODE.keyKind) & ~COLLECTABLE;
    const odd = (size - 1) | 1;
    switch (kind) {
      case KIND.short:
      case KIND.long:
        return this.word(node.getUint32(NODE.key, true) + TEXT.hash) & (size - 1);
      case KIND.false:
        return 0;
      case KIND.true:
        return 1 & (size - 1);
      case KIND.integer:
        return Number(node.getBigUint64(NODE.key, true) % BigInt(odd));
      case KIND.float:
      case KIND.dead:
        throw new Error("the prelude has a table with a key of a kind that is not known here");
      default: // what is compared by its address
        return node.getUint32(NODE.key, true) % odd;
    }
  }
}
