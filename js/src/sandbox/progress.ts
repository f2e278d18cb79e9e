/** Progress: how far a script says that it is. */

import { ToolError } from "../errors.js";

const LONGEST_TEXT = 200;
const LARGEST = 2 ** 63;

/** What a script gave to `progress(done, total, text)`. */
export interface Progress {
  readonly done: number;
  readonly total: number | null;
  readonly text: string;
}

/** From the arguments; throws a ToolError where they make no sense. */
export function progressOf(given: readonly unknown[]): Progress {
  const [done, total = null, text = null] = given;
  if (!isNumber(done) || !(total === null || isNumber(total)) || !(text === null || typeof text === "string")) {
    const message = "write: progress(done, total, text), two numbers and a text; total and text may be left out";
    throw new ToolError(message, { code: "invalid" });
  }
  const words = [...(text ?? "").split(/\s+/u).filter(Boolean).join(" ")];
  return { done: Number(done), total: total === null ? null : Number(total), text: words.slice(0, LONGEST_TEXT).join("") };
}

function isNumber(value: unknown): value is number | bigint {
  return (typeof value === "number" || typeof value === "bigint") && Math.abs(Number(value)) < LARGEST;
}
