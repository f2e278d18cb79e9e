/** Suggestions: which known name was probably meant by an unknown one, as the Python package says it. */

import * as python from "#python/suggest.js";
import { UsageError } from "./errors.js";

/** The options close enough to `name`, best first; with `parts` also those that share its words. */
export const nearest: (name: string, options: Iterable<string>, parts?: boolean, count?: number) => string[] = python.nearest;
/** `; did you mean 'x'?`, for the end of a message; empty where no option is close. */
export const suggestion: (name: string, options: Iterable<string>) => string = python.suggestion;
/** `unknown source 'x'; did you mean 'y'?`, or `unknown source 'x'; known sources: a, b` where none is close. */
export const unknown: (what: string, name: string, options: Iterable<string>, count?: number) => string = python.unknown;

/** Throws UsageError for a field that is none of the known ones. */
export function checkOptions(given: object, known: readonly string[], what = "option"): void {
  if (typeof given !== "object" || given === null) throw new UsageError(`${what}s must be an object, not ${String(given)}`);
  for (const name of Object.keys(given)) if (!known.includes(name)) throw new UsageError(unknown(what, name, known));
}
