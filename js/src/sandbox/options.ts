/** For whom a run is: what its tools are given, and what the trail says of it. */

import { sha256 } from "@noble/hashes/sha2.js";
import { UsageError } from "../errors.js";
import { checkOptions } from "../suggest.js";
import { isObject } from "../values.js";

const MOST_LABELS = 16;
const LONGEST_LABEL = 256;
/** Separators, controls, format characters, unassigned ones and halves of pairs; a plain space is printable. */
const UNPRINTABLE = /[^ \P{Z}]|\p{C}/u;

export interface PurposeOptions {
  /** What tools find as `extra` of their context, over the Sandbox's; it is not written to the trail. */
  context?: Record<string, unknown>;
  /** Short texts by name for the trail, such as { user: "ann" }: for whom the run is, and why. */
  labels?: Record<string, string>;
}

/** What a run's tools find as `extra`, and its labels. */
export interface Purpose {
  readonly context: Readonly<Record<string, unknown>>;
  readonly labels: Readonly<Record<string, string>>;
}

export const RUN_OPTIONS = ["limits", "timeout", "context", "labels", "signal", "clientCalls", "onWaiting", "inputs", "onProgress"];

/** Refuses what would fail in the middle of a run, and options that nothing reads. */
export function checkRunOptions(options: object, known: readonly string[] = RUN_OPTIONS): void {
  checkOptions(options, known);
  const { signal } = options as { signal?: Partial<AbortSignal> | null };
  if (signal !== undefined && signal !== null && typeof signal.addEventListener !== "function") {
    throw new UsageError(`signal must be an AbortSignal, not ${shown(signal)}`);
  }
  for (const name of ["onProgress", "onWaiting", "clientCalls"] as const) {
    const given = (options as Record<string, unknown>)[name];
    if (given !== undefined && given !== null && typeof given !== "function") {
      throw new UsageError(`${name} must be a function, not ${shown(given)}`);
    }
  }
}

/** The options over `base`. */
export function purposeOf(options: PurposeOptions, base: Purpose): Purpose {
  const { context, labels } = options;
  if (context !== undefined && context !== null && !isObject(context)) {
    throw new UsageError(`context must be an object from names to values, not ${shown(context)}`);
  }
  if (labels !== undefined && labels !== null) checkLabels(labels);
  const both = { ...base.labels, ...labels };
  const count = Object.keys(both).length;
  if (count > MOST_LABELS) throw new UsageError(`there are ${count} labels; at most ${MOST_LABELS} are possible`);
  return { context: { ...base.context, ...context }, labels: both };
}

function checkLabels(labels: unknown): void {
  if (!isObject(labels)) throw new UsageError(`labels must be an object of strings, not ${shown(labels)}`);
  for (const [name, text] of Object.entries(labels)) {
    if (!/^[A-Za-z0-9_./-]{1,64}$/.test(name)) {
      throw new UsageError(`the name of a label must be 1 to 64 letters, digits or any of _ . - /, not ${shown(name.slice(0, 100))}`);
    }
    if (typeof text !== "string") throw new UsageError(`the label '${name}' must be a string, not ${shown(text)}`);
    const length = [...text].length;
    if (length > LONGEST_LABEL) {
      throw new UsageError(`the label '${name}' has ${length} characters; at most ${LONGEST_LABEL} are possible`);
    }
    if (UNPRINTABLE.test(text)) throw new UsageError(`the label '${name}' must be one line of printable text`);
  }
}

/** The text as a label has it; the start of its digest where it is too long or not printable. */
export function labelText(text: string): string {
  if ([...text].length <= LONGEST_LABEL && !UNPRINTABLE.test(text)) return text;
  return Array.from(sha256(new TextEncoder().encode(text)).subarray(0, 8), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function shown(value: unknown): string {
  return typeof value === "string" ? `'${value}'` : (JSON.stringify(value) ?? String(value));
}
