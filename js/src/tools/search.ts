/** Search for tools by words, as the Python package ranks them. */

import { ToolSearch as PythonSearch } from "#python/tools/search.js";
import type { Tool, ToolView } from "./tool.js";
import type { Toolbox } from "./toolbox.js";

/** Ranked search over a toolbox, kept in step with its changes. */
export class ToolSearch {
  private readonly index;

  constructor(toolbox: Toolbox) {
    this.index = new PythonSearch({
      get revision() { return toolbox.revision; },
      *[Symbol.iterator]() { for (const tool of toolbox) yield tool.view; },
    });
  }

  /** The best tools for these words, best first; the same words always give the same order. */
  search(query: string, limit = 10): Tool[] {
    return this.index.search(query, limit).map(([view]: [ToolView]) => view.tool);
  }
}
