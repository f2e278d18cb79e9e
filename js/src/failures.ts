/** Results that are nothing but a failure, as the Python package recognises them. */

import * as python from "#python/failures.js";
import { one_line } from "#python/wording.js";
import { ToolError } from "./errors.js";

/** What becomes of such a result: the script gets it as data, or as an error. */
export type Failures = "return" | "raise";
export const FAILURES: readonly string[] = python.FAILURES;
/** Text of a tool without what breaks, hides or turns a line, cut with `…` where it is longer. */
export const oneLine: (text: string, longest: number) => string = one_line;

/** What a result that is nothing but a failure says, on one line; null for every other result. */
export function failureIn(result: unknown): string | null {
  return python.failure_of(result)?.text ?? null;
}

/** Throws ToolError where the result is nothing but a failure. */
export function raiseFailure(result: unknown, tool: string | null): void {
  const failure = python.failure_of(result);
  if (failure === null) return;
  throw new ToolError(failure.text, { code: failure.code, retryable: python.RETRYABLE.has(failure.code), data: result, tool });
}
