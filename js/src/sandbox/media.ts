/** The media of one Repl, and how they reach tools: a script passes handles, a tool gets what its schema asks for. */

import { ConversionError } from "../errors.js";
import { Media, PREFIX } from "../media.js";
import { short } from "#python/schema/problems.js";
import { lowered } from "../python/values.js";
import type { Tool } from "../tools/tool.js";
import { fromEntries, setField } from "../json.js";
import { count, entriesOf, isObject, isTable } from "../values.js";

/** What one Repl keeps; one medium may take a quarter of it. */
const MAX_BYTES = 64 * 1024 * 1024;
const MAX_COUNT = 1000;
const MOST_FOUND = 20;
const MOST_SEARCHED = 20_000;
const UNKNOWN = "this medium is unknown here: it was never given to this Repl, or has been dropped to make room";

/** The media that one Repl was given; the oldest are dropped when they take too much. */
export class MediaStore {
  private readonly kept = new Map<string, Media>();
  private size = 0;

  constructor(private readonly maxBytes = MAX_BYTES) {}

  get isEmpty(): boolean {
    return this.kept.size === 0;
  }

  /** Takes one in; throws ConversionError where it is too large. */
  keep(medium: Media): void {
    const most = Math.floor(this.maxBytes / 4);
    if (medium.size > most) {
      throw new ConversionError(`${medium.name} has ${count(medium.size)} bytes; one medium may have ${count(most)}`, "string");
    }
    if (this.kept.has(medium.address)) return;
    this.kept.set(medium.address, medium);
    this.size += medium.size;
    for (const [address, old] of this.kept) {
      if (this.size <= this.maxBytes && this.kept.size <= MAX_COUNT) break;
      this.kept.delete(address);
      this.size -= old.size;
    }
  }

  /** By its handle, or by the address in it. */
  get(handle: unknown): Media | null {
    const address = isObject(handle) ? handle["media"] : handle;
    return (typeof address === "string" && this.kept.get(address)) || null;
  }

  /** The media whose handles are in these values, each once. */
  foundIn(values: readonly unknown[]): Media[] {
    if (this.isEmpty) return [];
    const found = new Set<Media>();
    const waiting = [...values].reverse();
    for (let searched = 0; waiting.length > 0 && found.size < MOST_FOUND && searched < MOST_SEARCHED; searched += 1) {
      const item = waiting.pop();
      if (!isTable(item)) continue;
      const medium = this.get(item);
      if (medium !== null) found.add(medium);
      else for (const [, inner] of entriesOf(item).slice(0, MOST_SEARCHED).reverse()) waiting.push(inner);
    }
    return [...found];
  }
}

/** A call's arguments with the address of a medium instead of its handle, where the tool wants text or bytes. */
export function asAddresses(given: unknown[], tool: Tool): unknown[] {
  if (given.length !== 1 || !isObject(given[0])) return given;
  let named = given[0];
  const { order } = tool.binder;
  if (isHandle(named) && !order.includes("media") && order.length > 0) {
    named = fromEntries([[order[0]!, named]]); // a handle is one argument, not the names of several
  } else if (!Object.values(named).some(isHandle)) return given;
  const entries = Object.entries(named).map(([name, value]) => [name, isHandle(value) && wantsText(name, tool) ? value["media"] : value]);
  return [Object.fromEntries(entries)];
}

/**
 * The arguments with the medium itself: as Media where the parameter's schema is `Media.schema`; for an address as bytes,
 * as base64 or as a data URI. The schema decides: `"format": "binary"` is bytes; where it speaks of base64 it is that.
 */
export function withContents(given: Record<string, unknown>, tool: Tool, store: MediaStore): Record<string, unknown> {
  const changed = { ...given };
  for (const [name, value] of Object.entries(given)) {
    if (!isObject(value) && !isAddress(value)) continue;
    const schema = schemaOf(name, tool);
    const medium = store.get(value);
    if (isObject(value)) {
      if (!takesMedia(schema)) continue;
      if (medium === null) throw tool.binder.error([`${name}: ${UNKNOWN}, got ${short(value)}`], tool.path);
      setField(changed, name, medium);
    } else if (medium !== null) setField(changed, name, contentFor(schema, medium));
  }
  return changed;
}

type Handle = Record<string, unknown> & { media: string };

/** Whether a value looks like the handle of a medium. */
function isHandle(value: unknown): value is Handle {
  return isObject(value) && isAddress(value["media"]);
}

function isAddress(value: unknown): value is string {
  return typeof value === "string" && value.startsWith(PREFIX);
}

function schemaOf(name: string, tool: Tool): Record<string, unknown> {
  return lowered(tool.binder.accepted.fields.get(name)?.says ?? {});
}

function wantsText(name: string, tool: Tool): boolean {
  const kinds = tool.binder.accepted.fields.get(name)?.kinds ?? null;
  return kinds !== null && kinds.has("string") && !kinds.has("object");
}

/** Whether a parameter has the schema of a medium; its description may be another. */
function takesMedia(schema: Record<string, unknown>): boolean {
  const fields = ["required", "properties"] as const;
  return fields.every((field) => JSON.stringify(schema[field]) === JSON.stringify(Media.schema[field]));
}

function contentFor(schema: Record<string, unknown>, medium: Media): string | Uint8Array {
  if (schema["format"] === "binary") return medium.data;
  const words = ["format", "contentEncoding", "description"].map((key) => String(schema[key] ?? "")).join(" ").toLowerCase();
  return words.includes("base64") || schema["format"] === "byte" ? medium.base64 : medium.dataUri;
}
