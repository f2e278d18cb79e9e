/** Tools of other packages as sources, as they are: of the AI SDK, of LangChain.js, and function definitions of OpenAI. */

import { isObject } from "../values.js";
import type { SchemaObject } from "./document.js";
import { isStandard, type StandardSchema } from "./standard.js";
import { tool, type Tool, type ToolFunction } from "./tool.js";

/* eslint-disable @typescript-eslint/no-explicit-any -- their packages have types of their own, of which only this is used */

/** `tool({…})` of `ai`, in an object whose keys are the names. */
export interface AiSdkTool {
  inputSchema: any;
  description?: any;
  outputSchema?: any;
  needsApproval?: any;
  execute?: any;
}

/** A tool of LangChain.js. */
export interface LangchainTool {
  name: string;
  description: string;
  schema: any;
  invoke(...given: any[]): any;
}

/** A function definition of OpenAI's Chat Completions or Responses; with a function in it, as `runTools` of `openai` takes it. */
export interface OpenAiFunction {
  type: "function";
  name?: string;
  function?: { name?: string; description?: string; parameters?: any; function?: any };
  description?: any;
  parameters?: any;
}

export type ForeignTool = AiSdkTool | LangchainTool | OpenAiFunction;

/** The Tool that a tool of another package is; null where it is none. `key` is the name under which it stands. */
export function adopted(source: object, key: string | null): Tool | null {
  if ("inputSchema" in source) return key === null ? null : ofAiSdk(source as AiSdkTool, key);
  if ("invoke" in source && "schema" in source && typeof source.invoke === "function") return ofLangchain(source as LangchainTool);
  return "type" in source && source.type === "function" ? ofOpenAi(source as OpenAiFunction) : null;
}

/** Whether it stands under its own name in an object: then the key is no namespace. */
export function isNamedByKey(source: unknown): boolean {
  return typeof source === "object" && source !== null && "inputSchema" in source;
}

function ofAiSdk({ inputSchema, description, outputSchema, needsApproval, execute }: AiSdkTool, name: string): Tool {
  const call: ToolFunction = async (args, { signal, runId, index, extra }) => {
    const given = { toolCallId: `${runId}-${index}`, messages: [], abortSignal: signal, experimental_context: extra };
    const result: unknown = await execute(args, given);
    return isObject(result) && Symbol.asyncIterator in result ? last(result as unknown as AsyncIterable<unknown>) : result;
  };
  return tool({
    name,
    description: typeof description === "string" ? description : "",
    parameters: schemaOf(inputSchema),
    returns: schemaOf(outputSchema),
    policy: needsApproval ? "approve" : "auto",
    ...(typeof execute === "function" && { call }),
  });
}

function ofLangchain(source: LangchainTool): Tool {
  const { name, description, schema } = source;
  return tool({ name, description, parameters: schemaOf(schema), call: (args, { signal }) => source.invoke(args, { signal }) });
}

function ofOpenAi(source: OpenAiFunction): Tool {
  const { name = "", description = "", parameters, function: call } = (isObject(source.function) ? source.function : source) as NonNullable<OpenAiFunction["function"]>;
  return tool({ name, description: description ?? "", parameters: schemaOf(parameters), ...(typeof call === "function" && { call: (args) => call(args) }) });
}

/** The last of what a tool yields: the ones before are for a page. */
async function last(results: AsyncIterable<unknown>): Promise<unknown> {
  let found: unknown = null;
  for await (const result of results) found = result;
  return found;
}

/** A schema of theirs as a JSON Schema or a Standard Schema; the AI SDK wraps schemas in an object, or in a function that makes one. */
function schemaOf(given: any): any {
  if (given == null || isStandard(given)) return given ?? null;
  const schema = typeof given === "function" ? given() : given;
  if (isStandard(schema) || !isObject(schema) || !("jsonSchema" in schema && "validate" in schema)) return schema;
  const describe = (): SchemaObject => schema["jsonSchema"] as SchemaObject;
  const validate = async (value: unknown): Promise<any> => {
    const result = typeof schema["validate"] === "function" ? await schema["validate"](value) : { success: true, value };
    return result.success ? { value: result.value } : { issues: [{ message: String(result.error?.message ?? result.error) }] };
  };
  return { "~standard": { version: 1, vendor: "ai", validate, jsonSchema: { input: describe, output: describe } } };
}
