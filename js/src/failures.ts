/** Results that are nothing but a failure, as the Python package recognises them. */

import * as python from "#python/failures.js";
import { ToolError } from "./errors.js";

/** What becomes of such a result: the script gets it as data, or as an error. */
export type Failures = "return" | "raise";
export const FAILURES: readonly string[] = python.FAILURES;

/** Throws ToolError where the result is nothing but a failure. */
export function raiseFailure(result: unknown, tool: string | null): void {
  const failure = python.failure_of(result);
  if (failure === null) return;
  throw new ToolError(failure.text, { code: failure.code, retryable: python.RETRYABLE.has(failure.code), data: result, tool });
}
