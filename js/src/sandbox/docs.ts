/** The documentation that scripts read through `docs`. */

import { ArgumentError } from "../errors.js";
import type { Language } from "../languages.js";
import { ToolSearch } from "../tools/search.js";
import { render } from "../tools/signature.js";
import type { Tool } from "../tools/tool.js";
import type { Toolbox } from "../tools/toolbox.js";

const MOST_RESULTS = 50;
const MOST_TEXT = 500;

/** Answers `docs[name]`, `docs.search` and `docs.describe` for one Repl. */
export class Docs {
  private readonly searching: ToolSearch;

  constructor(
    private readonly toolbox: Toolbox,
    private readonly entries: ReadonlyMap<string, string>,
    private readonly language: Language,
  ) {
    this.searching = new ToolSearch(toolbox);
  }

  /** The value for the script; throws ToolError where the question is malformed. */
  answer(what: string, given: unknown[]): unknown {
    const first = given[0];
    if (typeof first !== "string" || !first.trim()) {
      throw new ArgumentError(`docs.${what} expects text, for example docs.${what}("…")`);
    }
    if (first.length > MOST_TEXT) {
      throw new ArgumentError(`docs.${what} expects at most ${MOST_TEXT} characters, got ${first.length}`);
    }
    if (what === "get") return this.get(first);
    if (what === "describe") return this.get(first) ?? render(this.toolbox.resolve(withoutPrefix(first)), "full");
    if (what !== "search") throw new ArgumentError(`docs has no '${what}'`, { code: "unknown_function" });
    const limit = given[1] ?? 10;
    if (typeof limit !== "number" || !Number.isInteger(limit) || limit < 1) {
      throw new ArgumentError("docs.search: the second argument is a whole number of results");
    }
    return this.search(first, Math.min(limit, MOST_RESULTS));
  }

  private get(name: string): string | null {
    const entry = this.entries.get(name);
    if (entry !== undefined) return entry;
    const builtin = Object.hasOwn(this.language.docs, name) ? this.language.docs[name]! : null;
    let tool = name.startsWith("tools.") ? this.tool(withoutPrefix(name)) : null;
    if (tool === null && builtin === null) tool = this.tool(name);
    return tool === null ? builtin : render(tool, "full");
  }

  private search(words: string, limit: number): unknown[] {
    const found = this.searching
      .search(words, limit)
      .filter((tool) => tool.policy !== "direct")
      .map((tool) => {
        const brief = render(tool, "brief");
        const at = brief.indexOf(" — ");
        return { name: tool.path, signature: render(tool, "signature"), summary: at < 0 ? "" : brief.slice(at + 3) };
      });
    if (found.length < limit) {
      const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
      for (const [name, text] of new Map([...Object.entries(this.language.docs), ...this.entries])) {
        const whole = `${name} ${text}`.toLowerCase();
        if (wanted.every((word) => whole.includes(word))) found.push({ name, signature: text.split("\n")[0]!, summary: "" });
      }
    }
    return found.slice(0, limit);
  }

  private tool(path: string): Tool | null {
    const found = this.toolbox.get(path);
    return found !== undefined && found.policy !== "direct" ? found : null;
  }
}

function withoutPrefix(name: string): string {
  return name.startsWith("tools.") ? name.slice("tools.".length) : name;
}
