/** What the engine reports of a run that failed, and where it was. */

import { LIMIT_NAMES, type LimitName } from "../errors.js";

/** What an engine reports of a run that failed. */
export interface EngineError {
  /** "syntax", "runtime", "tool" or "stop". */
  kind: string;
  message: string;
  limit: string;
  /** (chunk, line, function), innermost first. */
  frames: [string, number, string][];
  data: unknown;
  extra: Record<string, unknown>;
}

export const LONGEST_MESSAGE = 4_000;

export function limitOf(name: string): LimitName | null {
  return LIMIT_NAMES.includes(name) ? (name as LimitName) : null;
}

/** A line of a script, counted from 1; null where there is none. */
export function lineOf(source: string | undefined, line: number | null): string | null {
  return source === undefined || line === null || line < 1 ? null : (source.split(/\r\n|\r|\n/)[line - 1] ?? null);
}
