/** JSON values as text, to compare them. */

import { fromEntries } from "../json.js";
import { isTable } from "../values.js";
import { CHARACTERS_A_STEP, type Effort } from "./effort.js";

/** Keys as text: only explanations meet tables with other keys. */
export function tableOf(value: object): Record<string, unknown> {
  return value instanceof Map ? fromEntries([...value].map(([name, item]) => [String(name), item])) : (value as Record<string, unknown>);
}

/** Text that is the same for equal JSON values only. */
export function canonical(value: unknown, effort: Effort): string {
  effort.spend(1);
  if (typeof value === "number" || typeof value === "bigint") return String(isWhole(value) ? BigInt(value) : value);
  if (typeof value === "string") {
    effort.spend(value.length / CHARACTERS_A_STEP);
    return JSON.stringify(value);
  }
  if (value instanceof Uint8Array) return `bytes${value.join()}`;
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item, effort)).join()}]`;
  if (!isTable(value)) return String(value ?? null);
  const table = tableOf(value);
  const fields = Object.keys(table).sort().map((name) => `${canonical(name, effort)}:${canonical(table[name], effort)}`);
  return `{${fields.join()}}`;
}

export function isWhole(value: number | bigint): boolean {
  return typeof value === "bigint" || Number.isInteger(value);
}
