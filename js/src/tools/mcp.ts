/** Tools of an MCP client as a source. Its package is not imported: the client is used through the two methods named here. */

import { ToolError } from "../errors.js";
import { Media } from "../media.js";
import { checkOptions } from "../suggest.js";
import type { SchemaObject } from "./document.js";
import { tool, type Tool } from "./tool.js";

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
