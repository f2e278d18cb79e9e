/** Errors of languages that are compiled to Lua inside the worker. */

import { isDenial, ScriptError, type ScriptErrorFields } from "../errors.js";
import type { Language } from "../languages.js";
import type { Limits } from "../limits.js";
import { isObject } from "../values.js";
import { limitHint, limitMessage } from "./limits.js";
import { rhaiHint } from "./rhai.js";
import { limitOf, lineOf, LONGEST_MESSAGE, type EngineError } from "./report.js";

export function explainTranslated(
  error: EngineError, sources: Map<string, string>, limits: Limits, language: Language,
): ScriptError {
  const source = [...sources.values()].at(-1) ?? "";
  const explained = reported(error, source, limits);
  const hint = language.foreign === null ? null : rhaiHint(explained, source, limits, language.foreign);
  return hint === null ? explained : explained.with({ hint });
}

/** What the language's compiler or runtime reported: `extra` has the position, the hint and the data. */
function reported(error: EngineError, source: string, limits: Limits): ScriptError {
  const [line, column] = [positive(error.extra["line"]), positive(error.extra["column"])];
  const limit = limitOf(error.limit);
  const hint = error.extra["hint"];
  const fields: ScriptErrorFields = {
    line,
    column,
    hint: typeof hint === "string" ? hint : limit === null ? null : limitHint(limit, limits, error.message),
    traceback: pointed(source, line, column),
    frames: error.frames
      .filter(([chunk]) => chunk === "script")
      .map(([, at, name]) => ({ line: at > 0 ? at : null, function: name, source: null, chunk: "script" })),
  };
  const message = error.message.slice(0, LONGEST_MESSAGE);
  if (error.kind === "stop") {
    return new ScriptError(limit === null ? "cancelled" : "limit", limitMessage(error.limit, message, limits), { ...fields, limit });
  }
  if (error.kind === "tool" && isObject(error.data)) {
    const { code, tool, retryable, data } = error.data;
    return new ScriptError(isDenial(code) ? "denied" : "tool", message, {
      ...fields,
      code: typeof code === "string" ? code : null,
      tool: typeof tool === "string" ? tool : null,
      retryable: retryable === true,
      data: data ?? null,
    });
  }
  const kind = error.kind === "syntax" || error.kind === "tool" ? error.kind : "runtime";
  return new ScriptError(kind, message, { ...fields, data: error.data });
}

function pointed(source: string, line: number | null, column: number | null): string {
  const text = lineOf(source, line)?.replaceAll("\t", " ");
  if (text === undefined) return "";
  const at = Math.max(0, (column ?? 1) - 1);
  const start = Math.max(0, at - 100);
  const number = String(line);
  return `${number} | ${text.slice(start, start + 200)}\n${" ".repeat(number.length)} | ${" ".repeat(at - start)}^`;
}

function positive(value: unknown): number | null {
  return typeof value === "number" && Number.isInteger(value) && value > 0 ? value : null;
}
