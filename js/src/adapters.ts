/**
 * Where JavaScript users are: tools of an MCP client as a source, and code mode for the AI SDK and LangChain.js.
 *
 * Nothing is imported of these packages: their objects are handed in, and are used through the few methods named here.
 */

import type { CallOptions, CodeMode } from "./codemode/mode.js";
import { ToolError } from "./errors.js";
import { Media } from "./media.js";
import { checkOptions } from "./suggest.js";
import type { SchemaObject } from "./tools/document.js";
import type { StandardSchema } from "./tools/standard.js";
import { tool, type Tool } from "./tools/tool.js";

/** What is used of `Client` of `@modelcontextprotocol/sdk`. */
export interface McpClient {
  listTools(params?: { cursor?: string }): Promise<{ tools: McpTool[]; nextCursor?: string | undefined }>;
  callTool(params: { name: string; arguments: Record<string, unknown> }, schema?: undefined, options?: { signal?: AbortSignal }): Promise<unknown>;
}

interface McpTool {
  name: string;
  description?: string | undefined;
  inputSchema: object;
  outputSchema?: object | undefined;
  annotations?: { readOnlyHint?: boolean; destructiveHint?: boolean; idempotentHint?: boolean; openWorldHint?: boolean } | undefined;
}

interface McpBlock {
  type: string;
  text?: string;
  data?: string;
  mimeType?: string;
  /** Of an embedded resource: its text, or its bytes as base64. */
  resource?: { uri?: string; mimeType?: string; text?: string; blob?: string };
}

/** A server that does not come to an end is left there. */
const MOST_PAGES = 100;
const MOST_TOOLS = 2_000;

/** The tools of a connected MCP client, in a namespace where one is given. */
export async function mcpTools(client: McpClient, options: { namespace?: string; timeout?: number } = {}): Promise<Tool[]> {
  checkOptions(options, ["namespace", "timeout"]);
  const found: McpTool[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < MOST_PAGES && found.length < MOST_TOOLS; pages += 1) {
    const page = await client.listTools(cursor === undefined ? {} : { cursor });
    found.push(...page.tools);
    if (page.nextCursor === undefined || page.nextCursor === cursor) break;
    cursor = page.nextCursor;
  }
  return found.map(({ name, description = "", inputSchema, outputSchema, annotations = {} }) =>
    tool({
      name,
      description,
      namespace: options.namespace ?? null,
      timeout: options.timeout ?? null,
      parameters: inputSchema as SchemaObject,
      returns: (outputSchema ?? null) as SchemaObject | null,
      hints: {
        readOnly: annotations.readOnlyHint ?? null, destructive: annotations.destructiveHint ?? null,
        idempotent: annotations.idempotentHint ?? null, openWorld: annotations.openWorldHint ?? null,
      },
      call: async (args, { signal }) => mcpResult(await client.callTool({ name, arguments: args }, undefined, { signal })),
    }),
  );
}

function mcpResult(answer: unknown): unknown {
  const { content = [], structuredContent, isError } = answer as { content?: McpBlock[]; structuredContent?: unknown; isError?: boolean };
  const text = content.filter((block) => block.type === "text").map((block) => block.text ?? "").join("\n");
  if (isError) throw new ToolError(text || "the MCP server reported an error without a message");
  if (structuredContent !== undefined) return structuredContent;
  const others = content.filter((block) => block.type !== "text").map(reference);
  if (others.length === 0) return text;
  return text === "" && others.length === 1 ? others[0] : [...(text === "" ? [] : [text]), ...others];
}

/** A block that is not text: its medium, or what there is to say about it. */
function reference({ type, data, mimeType = "", resource, ...rest }: McpBlock): unknown {
  if (data !== undefined) return Media.fromBase64(data, mimeType);
  if (resource?.blob !== undefined) return Media.fromBase64(resource.blob, resource.mimeType, resource.uri);
  return { type, ...rest, ...resource, ...(mimeType && { mimeType }) };
}

/** The code tool and the direct tools for `generateText({ tools })` of the AI SDK (`ai`, from version 6). */
export function aiTools(mode: CodeMode, options: { conversation?: string } = {}): Record<string, AiTool> {
  checkOptions(options, ["conversation"]);
  return Object.fromEntries(
    mode.definitions("anthropic").map(({ name, description, input_schema }) => [
      name,
      {
        description,
        inputSchema: asStandard(input_schema),
        execute: async (args: unknown, { abortSignal } = {}) => mode.handle(name, args, cancelledBy(abortSignal, options)),
      },
    ]),
  );
}

export interface AiTool {
  description: string;
  inputSchema: StandardSchema<unknown, unknown> & { "~standard": { jsonSchema: object } };
  execute(args: unknown, options?: { abortSignal?: AbortSignal | undefined }): Promise<string>;
}

/** A JSON Schema as a Standard Schema that lets everything through: code mode itself says what is wrong, to the model. */
function asStandard(schema: SchemaObject): AiTool["inputSchema"] {
  const describe = (): SchemaObject => schema;
  return {
    "~standard": { version: 1, vendor: "moonbox", validate: (value) => ({ value }), jsonSchema: { input: describe, output: describe } },
  };
}

/** The same for LangChain.js; `make` is the function `tool` of `@langchain/core/tools`. */
export function langchainTools<Made>(
  mode: CodeMode, make: (call: (args: never, config?: { signal?: AbortSignal }) => Promise<string>, fields: { name: string; description: string; schema: SchemaObject }) => Made,
  options: { conversation?: string } = {},
): Made[] {
  checkOptions(options, ["conversation"]);
  return mode.definitions("anthropic").map(({ name, description, input_schema }) =>
    make(async (args, config) => mode.handle(name, args, cancelledBy(config?.signal, options)), { name, description, schema: input_schema }),
  );
}

/** The options of a call that ends with what asked for it. */
function cancelledBy(signal: AbortSignal | undefined, options: CallOptions): CallOptions {
  return signal === undefined ? options : { ...options, signal };
}
