/** Names of tools: which are valid, and how a script writes those that are not identifiers, as the Python package does it. */

import { is_identifier } from "#python/languages/language.js";
import * as python from "#python/tools/naming.js";

export const LONGEST_NAME: number = python.LONGEST_NAME;
/** The name, if a tool or namespace may have it. */
export const checkName: (name: unknown, what?: string) => string = python.check_name;
/** The alias of each path; the same for the same set of paths, in whatever order they came. */
export const aliases: (paths: Iterable<string>) => Map<string, string> = python.aliases;

/** Whether a script can write `tools.<text>`. */
export const isIdentifier: (text: string) => boolean = is_identifier;
