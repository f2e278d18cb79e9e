/** Results: the answers to a model's calls as messages of its provider, images, audio and files as blocks of their own. */

import { UsageError } from "../errors.js";
import type { Media } from "../media.js";
import { unknown } from "../suggest.js";
import { FORMATS, type Format } from "./definitions.js";
import type { Reply } from "./mode.js";

type Block = Record<string, unknown>;

/** One call of the model's, and the answer to it. */
export interface Answered {
  /** The provider's own name of the call; Gemini and MCP need none. */
  id?: string;
  /** The tool's name. */
  name: string;
  reply: Reply;
}

const MOST_MCP_MEDIA = 8;
const ANTHROPIC_IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const CHAT_SOUNDS = ["audio/wav", "audio/x-wav", "audio/mpeg", "audio/mp3"];

/**
 * What is appended to the conversation for these answers: messages (`openai`, `anthropic`), input items
 * (`openai-responses`), contents (`gemini`), or one result for each call (`mcp`). What a provider has no block for stays a
 * handle in the text.
 */
export function results(form: Format, answered: readonly Answered[]): Block[] {
  const make = Object.hasOwn(WRITERS, form) ? WRITERS[form] : null;
  if (make === null) throw new UsageError(unknown("format", String(form), FORMATS));
  return make(answered);
}

const WRITERS: Record<Format, (answered: readonly Answered[]) => Block[]> = {
  openai: (answered) => [
    ...answered.map(({ id, reply }) => ({ role: "tool", tool_call_id: id, content: reply.text })),
    ...afterwards(answered, chatPart, (title, parts) => ({ role: "user", content: [{ type: "text", text: title }, ...parts] })),
  ],
  "openai-responses": (answered) =>
    answered.map(({ id, reply }) => {
      const parts = reply.media.filter((medium) => medium.kind !== "audio").map(responsePart);
      const output = parts.length > 0 ? [{ type: "input_text", text: reply.text }, ...parts] : reply.text;
      return { type: "function_call_output", call_id: id, output };
    }),
  anthropic: (answered) => [{ role: "user", content: answered.map(toolResult) }],
  gemini: (answered) => [
    {
      role: "user",
      parts: answered.map(({ id, name, reply }) => ({
        functionResponse: { ...(id ? { id } : {}), name, response: { [reply.isError ? "error" : "output"]: reply.text } },
      })),
    },
    ...afterwards(
      answered,
      (medium) => ({ inlineData: { data: medium.base64, mimeType: medium.type } }),
      (title, parts) => ({ role: "user", parts: [{ text: title }, ...parts] }),
    ),
  ],
  mcp: (answered) =>
    answered.map(({ reply }) => ({
      content: [{ type: "text", text: reply.text }, ...reply.media.slice(0, MOST_MCP_MEDIA).map(mcpBlock)],
      isError: reply.isError,
    })),
};

/** The media of all answers in a message of their own, where results have no place for them. */
function afterwards(
  answered: readonly Answered[], part: (medium: Media) => Block | null, message: (title: string, parts: Block[]) => Block,
): Block[] {
  const media = answered.flatMap(({ reply }) => [...reply.media]).filter((medium) => part(medium) !== null);
  if (media.length === 0) return [];
  return [message(`From the tools: ${media.map((medium) => medium.name).join(", ")}`, media.map((medium) => part(medium)!))];
}

function toolResult({ id, reply }: Answered): Block {
  const blocks = reply.media.map(anthropicBlock).filter((block) => block !== null);
  return {
    type: "tool_result",
    tool_use_id: id,
    content: blocks.length > 0 ? [{ type: "text", text: reply.text }, ...blocks] : reply.text,
    ...(reply.isError ? { is_error: true } : {}),
  };
}

function chatPart(medium: Media): Block | null {
  if (medium.kind === "image") return { type: "image_url", image_url: { url: medium.dataUri } };
  if (medium.kind === "file") return { type: "file", file: { filename: medium.name, file_data: medium.dataUri } };
  if (!CHAT_SOUNDS.includes(medium.type)) return null;
  const format = medium.type.endsWith("wav") ? "wav" : "mp3";
  return { type: "input_audio", input_audio: { data: medium.base64, format } };
}

function responsePart(medium: Media): Block {
  if (medium.kind === "image") return { type: "input_image", image_url: medium.dataUri, detail: "auto" };
  return { type: "input_file", filename: medium.name, file_data: medium.dataUri };
}

function anthropicBlock(medium: Media): Block | null {
  const source = { type: "base64", media_type: medium.type, data: medium.base64 };
  if (ANTHROPIC_IMAGES.includes(medium.type)) return { type: "image", source };
  return medium.type === "application/pdf" ? { type: "document", source, title: medium.name } : null;
}

function mcpBlock(medium: Media): Block {
  if (medium.kind !== "file") return { type: medium.kind, data: medium.base64, mimeType: medium.type };
  return { type: "resource", resource: { uri: medium.address, mimeType: medium.type, blob: medium.base64 } };
}
