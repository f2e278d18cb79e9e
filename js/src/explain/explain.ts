/** Errors that teach: what the engine reports of a failed run, in words for the model that must correct its script. */

import type { ScriptError } from "../errors.js";
import type { Language } from "../languages.js";
import type { Limits } from "../limits.js";
import { explainLua } from "./lua.js";
import type { EngineError } from "./report.js";
import { explainTranslated } from "./translated.js";

/** The error for the model. `sources` maps the chunks of a Repl's runs to their text; the run that failed is the last. */
export function explain(
  error: EngineError, sources: Map<string, string>, limits: Limits, language: Language, tools: readonly string[],
): ScriptError {
  return language.runtime === null ? explainLua(error, sources, limits, language, tools) : explainTranslated(error, sources, limits, language);
}
