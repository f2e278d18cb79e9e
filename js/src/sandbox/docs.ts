/** The documentation that scripts read through `docs`, as the Python package writes it. */

import { Docs as PythonDocs } from "#python/runs/docs.js";
import { ToolSearch } from "#python/tools/search.js";
import { functionDocs, type Language } from "../languages.js";
import { Dict, lowered } from "../python/values.js";
import type { Toolbox } from "../tools/toolbox.js";

/** Answers `docs[name]`, `docs.search` and `docs.describe` for one Repl. */
export class Docs {
  private readonly own;

  constructor(toolbox: Toolbox, entries: ReadonlyMap<string, string>, language: Language) {
    this.own = new PythonDocs(toolbox.view, new Dict(entries), language.name, null, new ToolSearch(toolbox.view));
  }

  /** What a question costs: searching, and finding the nearest name, look at every tool. */
  cost(what: string): number {
    return this.own.cost(what);
  }

  /** The value for the script; throws ToolError where the question is malformed. */
  answer(what: string, given: unknown[]): unknown {
    return lowered(this.own.answer(what, given));
  }

  /** The first sentence of each entry that was added, by name. */
  added(): Map<string, string> {
    return this.own.added(functionDocs);
  }
}
