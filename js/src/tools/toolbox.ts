/** Toolbox: an ordered set of tools, by path, that can change while it is used. */

import { ArgumentError, ToolDefinitionError } from "../errors.js";
import { unknown } from "../suggest.js";
import { aliases, checkName, LONGEST_NAME } from "./naming.js";
import { Tool } from "./tool.js";

/** A Tool, a Toolbox, an object from namespace to such, or an array of such. */
export type ToolSource = Tool | Toolbox | ToolSource[] | { [namespace: string]: ToolSource };

export class Toolbox implements Iterable<Tool> {
  private tools = new Map<string, Tool>();
  private aliasOf = new Map<string, string>();
  private byAlias = new Map<string, Tool>();
  /** Grows with every change. */
  revision = 0;

  constructor(tools: ToolSource = []) {
    this.add(tools);
  }

  static of(tools: ToolSource): Toolbox {
    return tools instanceof Toolbox ? tools : new Toolbox(tools);
  }

  [Symbol.iterator](): Iterator<Tool> {
    return [...this.tools.values()][Symbol.iterator]();
  }

  get size(): number {
    return this.tools.size;
  }

  has(path: string): boolean {
    return this.tools.has(path);
  }

  /** The tool with exactly this path. */
  get(path: string): Tool | undefined {
    return this.tools.get(path);
  }

  paths(): string[] {
    return [...this.tools.keys()];
  }

  /** The alias under which a script can write a tool as `tools.<alias>`. */
  alias(tool: Tool | string): string {
    return this.aliasOf.get(this.resolve(typeof tool === "string" ? tool : tool.path).path)!;
  }

  /** The tool with this path or alias; throws ArgumentError (`unknown_tool`) that names the nearest ones. */
  resolve(name: string): Tool {
    const found = this.tools.get(name) ?? this.byAlias.get(name);
    if (found !== undefined) return found;
    const asked = name.slice(0, LONGEST_NAME);
    throw new ArgumentError(unknown("tool", asked, this.byAlias.keys(), 3), { code: "unknown_tool", tool: asked });
  }

  /** Adds tools; with `replace`, one of the same path gives way, in its place. */
  add(source: ToolSource, replace = false): this {
    const next = new Map(this.tools);
    for (const tool of flat(source, null)) {
      if (next.has(tool.path) && !replace) {
        throw new ToolDefinitionError(
          `there are two tools named '${tool.path}'; rename one (name: …), give it a namespace, or add it with replace`,
        );
      }
      next.set(tool.path, tool);
    }
    return this.publish(next);
  }

  /** Takes tools out, by path or alias. */
  remove(...names: string[]): this {
    const next = new Map(this.tools);
    for (const name of names) next.delete(this.resolve(name).path);
    return this.publish(next);
  }

  private publish(tools: Map<string, Tool>): this {
    this.tools = tools;
    this.aliasOf = aliases(tools.keys());
    this.byAlias = new Map([...this.aliasOf].map(([path, alias]) => [alias, tools.get(path)!]));
    this.revision += 1;
    return this;
  }
}

function* flat(source: ToolSource, space: string | null): Iterable<Tool> {
  if (source instanceof Tool) {
    yield space === null ? source : source.with({ namespace: source.namespace === null ? space : `${space}.${source.namespace}` });
  } else if (source instanceof Toolbox || Array.isArray(source)) {
    for (const item of source) yield* flat(item, space);
  } else if (typeof source === "object" && source !== null) {
    for (const [name, inner] of Object.entries(source)) {
      yield* flat(inner, space === null ? checkName(name, "namespace") : `${space}.${checkName(name, "namespace")}`);
    }
  } else {
    throw new ToolDefinitionError(`${String(source)} is not a tool; give Tools, Toolboxes, or an object of namespaces`);
  }
}
