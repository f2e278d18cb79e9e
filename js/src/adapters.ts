/**
 * Where JavaScript users are: code mode for the AI SDK and LangChain.js.
 *
 * Nothing is imported of these packages: their objects are handed in, and are used through the few methods named here.
 */

import { CodeMode, type CallOptions, type CodeModeSettings } from "./codemode/mode.js";
import { checkOptions } from "./suggest.js";
import { Sandbox, type SandboxOptions } from "./sandbox/sandbox.js";
import type { SchemaObject } from "./tools/document.js";
import type { StandardSchema } from "./tools/standard.js";

/** The code tool and the direct tools for `generateText({ tools })` of the AI SDK (`ai`, from version 5). */
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

/** The code tool alone, with its Sandbox: for `tools: { code: codeTool({ tools }) }` of the AI SDK. `close` ends its worker. */
export function codeTool(options: CodeToolOptions): AiTool & { readonly mode: CodeMode; close(): Promise<void> } {
  const { conversation, settings = {}, ...sandbox } = options;
  const box = new Sandbox(sandbox);
  const mode = new CodeMode(box, settings);
  const made = aiTools(mode, conversation === undefined ? {} : { conversation })[mode.toolName]!;
  const close = async (): Promise<void> => {
    await mode.close();
    await box.close();
  };
  return Object.assign(made, { mode, close });
}

/** What a Sandbox takes, the settings of its CodeMode, and the conversation whose Repl the calls share. */
export interface CodeToolOptions extends SandboxOptions {
  settings?: Omit<CodeModeSettings, "mode" | "keepVisible">;
  conversation?: string;
}

export interface AiTool {
  description: string;
  inputSchema: StandardSchema<unknown, unknown> & { "~standard": { jsonSchema: object }; jsonSchema: SchemaObject };
  execute(args: unknown, options?: { abortSignal?: AbortSignal | undefined }): Promise<string>;
}

/**
 * A JSON Schema that lets everything through, as a Standard Schema and as the AI SDK has its own: code mode itself says what is wrong,
 * to the model.
 */
function asStandard(schema: SchemaObject): AiTool["inputSchema"] {
  const describe = (): SchemaObject => schema;
  const own = { [Symbol.for("vercel.ai.schema")]: true, _type: undefined, jsonSchema: schema, validate: (value: unknown) => ({ success: true, value }) };
  return {
    ...own,
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
