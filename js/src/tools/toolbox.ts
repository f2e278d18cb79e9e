/** Toolbox: an ordered set of tools, by path, that can change while it is used. */

import { ArgumentError, ToolDefinitionError } from "../errors.js";
import { unknown } from "../suggest.js";
import { adopted, isNamedByKey, type ForeignTool } from "./foreign.js";
import { mcpTools, type McpClient } from "./mcp.js";
import { aliases, checkName, LONGEST_NAME } from "./naming.js";
import { Tool, type ToolView } from "./tool.js";

/**
 * A Tool, a Toolbox, a tool of the AI SDK, of LangChain.js or a function definition of OpenAI, an object from namespace to such, or an
 * array of such. A tool of the AI SDK stands under its name, as it does there.
 */
export type ToolSource = Tool | Toolbox | ForeignTool | ToolSource[] | { [name: string]: ToolSource };
/** Also what lists its tools when it is asked: clients of MCP, of the official SDK, the AI SDK or LangChain.js. */
export type ListedSource = ToolSource | ToolLister | ListedSource[] | { [name: string]: ListedSource };
/** A client that gives its tools when it is asked. */
export type ToolLister = McpClient | { tools(): Promise<ToolSource> } | { getTools(): Promise<ToolSource[]> };

export class Toolbox implements Iterable<Tool> {
  private tools = new Map<string, Tool>();
  private aliasOf = new Map<string, string>();
  private byAlias = new Map<string, Tool>();
  readonly view = new ToolboxView(this);
  /** Grows with every change. */
  revision = 0;

  constructor(tools: ToolSource = []) {
    this.add(tools);
  }

  static of(tools: ToolSource): Toolbox {
    return tools instanceof Toolbox ? tools : new Toolbox(tools);
  }

  /** A Toolbox of sources of which some list their tools first: `await Toolbox.from({ shop: client })`. */
  static async from(source: ListedSource): Promise<Toolbox> {
    return Toolbox.of(await listed(source));
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

/** A toolbox as the modules that are translated from the Python package read it; what tools return is not learned here. */
class ToolboxView {
  readonly learned = { state: "", schema: () => null };

  constructor(private readonly own: Toolbox) {}

  get revision(): number {
    return this.own.revision;
  }
  __len__(): number {
    return this.own.size;
  }
  aliases(): Map<string, string> {
    return new Map([...this.own].map((tool) => [tool.path, this.own.alias(tool)]));
  }
  alias(tool: ToolView): string {
    return this.own.alias(tool.tool);
  }
  get(path: string): ToolView | null {
    return this.own.get(path)?.view ?? null;
  }
  has(path: string): boolean {
    return this.own.has(path);
  }
  resolve(name: string): ToolView {
    return this.own.resolve(name).view;
  }
  *[Symbol.iterator](): Iterator<ToolView> {
    for (const tool of this.own) yield tool.view;
  }
}

function* flat(source: ToolSource, space: string | null, key: string | null = null): Iterable<Tool> {
  if (source instanceof Tool) {
    yield space === null ? source : source.with({ namespace: source.namespace === null ? space : `${space}.${source.namespace}` });
  } else if (source instanceof Toolbox || Array.isArray(source)) {
    for (const item of source) yield* flat(item, space);
  } else if (typeof source === "object" && source !== null) {
    const own = adopted(source, key);
    if (own !== null) yield* flat(own, space);
    else if (lister(source) !== null) throw new ToolDefinitionError("a client lists its tools when it is asked: give `await Toolbox.from(…)`");
    else {
      for (const [name, inner] of Object.entries(source as { [name: string]: ToolSource })) {
        const within = isNamedByKey(inner) ? space : space === null ? checkName(name, "namespace") : `${space}.${checkName(name, "namespace")}`;
        yield* flat(inner, within, name);
      }
    }
  } else {
    throw new ToolDefinitionError(`${String(source)} is not a tool; give Tools, Toolboxes, or an object of namespaces`);
  }
}

/** The method that lists a client's tools; null where it is no client. */
function lister(source: object): (() => Promise<ToolSource>) | null {
  const given = source as Partial<Record<"listTools" | "callTool" | "tools" | "getTools", unknown>>;
  if (typeof given.listTools === "function" && typeof given.callTool === "function") return () => mcpTools(source as McpClient);
  for (const name of ["tools", "getTools"] as const) {
    if (typeof given[name] === "function") return () => (source as Record<string, () => Promise<ToolSource>>)[name]!();
  }
  return null;
}

/** The source with the tools of its clients in their places. */
async function listed(source: ListedSource): Promise<ToolSource> {
  if (source instanceof Tool || source instanceof Toolbox || typeof source !== "object" || source === null) return source;
  if (Array.isArray(source)) return Promise.all(source.map(listed));
  const list = lister(source);
  if (list !== null) return list();
  if (isNamedByKey(source) || adopted(source, null) !== null) return source as ToolSource;
  const entries = Object.entries(source as { [name: string]: ListedSource }).map(async ([name, inner]) => [name, await listed(inner)] as const);
  return Object.fromEntries(await Promise.all(entries));
}
