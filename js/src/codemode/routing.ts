/**
 * Routing: which tools scripts reach, and which the model calls directly. One predicate decides both. What scripts do not
 * reach is direct, and so is what `keepVisible` names, which scripts reach all the same. Client-side tools are direct
 * unless a function answers them; scripts reach them if the caller can pause.
 */

import { misdirection, without_narration } from "#python/codemode/misdirected.js";
import type { Run } from "../audit/records.js";
import { UsageError } from "../errors.js";
import { Dict } from "../python/values.js";
import { unknown } from "../suggest.js";
import type { Tool } from "../tools/tool.js";
import { Toolbox } from "../tools/toolbox.js";

/** Client-side tools without a function: only scripts reach them, or the model too, or only the model. */
export type ClientTools = "hidden" | "kept" | "direct";

/** Whether scripts may reach the tool; then it leaves the direct list, unless it is kept there too. */
export function isEligible(tool: Tool, approvals = false): boolean {
  const { hints } = tool;
  if (tool.execution || hints.clientSide || hints.cpuBound) return false;
  if (tool.policy === "approve") return approvals;
  return tool.policy === "auto" && !hints.destructive;
}

/** What scripts reach of a toolbox, and what the model does. Follows it when it changes. */
export class Routes {
  private seen = -1;
  /** What the model calls itself, in the toolbox's order. */
  direct: Tool[] = [];
  /** What scripts reach. */
  readonly hidden = new Toolbox();
  /** The paths of those among them that the model calls directly too. */
  kept: ReadonlySet<string> = new Set();

  constructor(
    private readonly source: Toolbox,
    private readonly keepVisible: readonly string[],
    private readonly approvals: boolean,
    private readonly clientTools: ClientTools = "kept",
  ) {
    for (const name of keepVisible) {
      if (!isPattern(name) && !source.has(name)) throw new UsageError(`keepVisible: ${unknown("tool", name, source.paths())}`);
    }
    this.update();
  }

  /** Takes over what has changed in the toolbox; whether anything had. */
  update(): boolean {
    if (this.source.revision === this.seen) return false;
    this.seen = this.source.revision;
    const isKept = (tool: Tool): boolean =>
      (tool.answeredByCaller && this.clientTools === "kept") ||
      this.keepVisible.some((name) => (isPattern(name) ? fits(tool.path, name) || fits(tool.name, name) : name === tool.path));
    const tools = [...this.source];
    const isDirect = (tool: Tool): boolean => tool.answeredByCaller && this.clientTools === "direct";
    const reached = tools.filter((tool) => isEligible(tool, this.approvals) && !isDirect(tool));
    this.kept = new Set(reached.filter(isKept).map((tool) => tool.path));
    this.direct = tools.filter((tool) => !reached.includes(tool) || this.kept.has(tool.path));
    const hidden = reached.map((tool): Tool => without_narration(tool.view).tool);
    const gone = this.hidden.paths().filter((path) => !hidden.some((tool) => tool.path === path));
    if (gone.length > 0) this.hidden.remove(...gone);
    this.hidden.add(hidden, true);
    return true;
  }
}

function isPattern(name: string): boolean {
  return /[*?[]/.test(name);
}

/** Whether a name fits a pattern with `*`, `?` and `[abc]`: a tool's path or, in any namespace, its own name. */
function fits(name: string, pattern: string): boolean {
  const text = pattern.replace(/\[!?[^\]]+\]|[\s\S]/g, (part) => {
    if (part === "*") return "[\\s\\S]*";
    if (part === "?") return "[\\s\\S]";
    if (part.length > 1) return part.replace("[!", "[^").replaceAll("\\", "\\\\");
    return part.replace(/[.+^${}()|[\]\\/-]/, "\\$&");
  });
  return new RegExp(`^${text}$`).test(name);
}

/** The run with a hint, if it failed on one of the direct tools; `direct` has them by the names that models use. */
export function explainMisdirected(run: Run, direct: Map<string, Tool>): Run {
  const hint: string | null = run.error && misdirection(run.error, run.source, new Dict([...direct].map(([name, tool]) => [name, tool.view])));
  return hint === null ? run : run.with({ error: run.error!.with({ hint }) });
}
