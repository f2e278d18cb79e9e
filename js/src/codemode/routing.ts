/**
 * Routing: which tools scripts reach, and which the model calls directly. One predicate decides both. What scripts do not
 * reach is direct, and so is what `keepVisible` names, which scripts reach all the same. Client-side tools are direct
 * unless a function answers them; scripts reach them if the caller can pause.
 */

import { NARRATION } from "#python/schema/tree.js";
import type { Run } from "../audit/records.js";
import { UsageError, type ScriptError } from "../errors.js";
import { unknown } from "../suggest.js";
import type { SchemaObject } from "../tools/document.js";
import { safeAlias } from "../tools/naming.js";
import type { Tool } from "../tools/tool.js";
import { Toolbox } from "../tools/toolbox.js";
import { isObject } from "../values.js";

/** Client-side tools without a function: only scripts reach them, or the model too, or only the model. */
export type ClientTools = "hidden" | "kept" | "direct";

const LONGEST_LINE = 10_000;
const NAMED = /\((?:field|global|method) '([^']*)'\)|(?:Function|Module) not found: (\w+)/;

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
    const hidden = reached.map(withoutNarration);
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
  const { error } = run;
  if (error === null) return run;
  const name = error.code === "unknown_tool" ? askedFor(error, direct) : called(error, run.source, direct);
  if (name === null) return run;
  const hint = `scripts cannot call '${direct.get(name)!.path}'; call the tool '${name}' directly, outside a script`;
  return run.with({ error: error.with({ hint }) });
}

function withoutNarration(tool: Tool): Tool {
  const properties = tool.parameters["properties"];
  if (!isObject(properties) || !(NARRATION in properties)) return tool;
  const parameters = structuredClone(tool.parameters);
  const narration = (parameters["properties"] as SchemaObject)[NARRATION];
  if (isObject(narration) && !("default" in narration)) narration["default"] = "Called from a script.";
  const required = Array.isArray(parameters["required"]) ? parameters["required"] : [];
  parameters["required"] = required.filter((name) => name !== NARRATION);
  return tool.with({ parameters });
}

function askedFor(error: ScriptError, direct: Map<string, Tool>): string | null {
  const asked = (error.tool ?? "").replace(/^tools\./, "");
  for (const [name, tool] of direct) if ([tool.path, name, safeAlias(tool.path)].includes(asked)) return name;
  return null;
}

/** The direct tool that the failing line means; the longest, where `a` and `a.b` both fit. */
function called(error: ScriptError, source: string, direct: Map<string, Tool>): string | null {
  if (error.kind !== "runtime" || !/nil value|not found/.test(error.message)) return null;
  const lines = source.split("\n");
  const line = (error.frames.find((frame) => frame.source)?.source ?? (error.line ? lines[error.line - 1] : undefined) ?? source).slice(0, LONGEST_LINE);
  const named = NAMED.exec(error.message);
  const missing = named?.[1] ?? named?.[2] ?? "";
  let best: string | null = null;
  for (const [name, tool] of direct) {
    if (!isWritten(tool.path, line, missing)) continue;
    if (best === null || tool.path.length > direct.get(best)!.path.length) best = name;
  }
  return best;
}

function isWritten(path: string, line: string, missing: string): boolean {
  const escape = (text: string): string => text.replace(/[.*+?^${}()|[\]\\-]/g, "\\$&");
  return [path, safeAlias(path)].some((text) => {
    const dotted = text.split(".").map(escape).join("\\s*(?:\\.|::)\\s*");
    if (text.split(".").includes(missing) && new RegExp(`(?<![\\w])${dotted}(?![\\w])`).test(line)) return true;
    return new RegExp(`tools\\s*\\[\\s*["']${escape(text)}["']\\s*\\]`).test(line);
  });
}
