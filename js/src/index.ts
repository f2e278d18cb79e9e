/// <reference lib="esnext.disposable" preserve="true" />
/** moonbox: a language model acts by writing one sandboxed script that calls your tools. */

export { Limits, type LimitFields, type LimitOptions } from "./limits.js";
export { run, Sandbox, type ReplOptions, type SandboxOptions } from "./sandbox/sandbox.js";
export { type Repl, type RunOptions } from "./sandbox/repl.js";
export { type Progress } from "./sandbox/progress.js";
export { type Approve, type ClientCalls, type ClientOptions, type Decision, type ToolCall } from "./sandbox/calls.js";
export { Media, media, type MediaHandle, type MediaOptions } from "./media.js";
export { Run, type Call, type CallError, type CallStatus, type Usage } from "./audit/records.js";
export { type AuditOption, type Sink } from "./audit/sinks.js";
export type { Failures } from "./failures.js";
export { Tool, tool, type Hints, type Policy, type ToolContext, type ToolOptions } from "./tools/tool.js";
export { type ArgumentsOf, type StandardSchema } from "./tools/standard.js";
export { type AiSdkTool, type ForeignTool, type LangchainTool, type OpenAiFunction } from "./tools/foreign.js";
export { Toolbox, type ListedSource, type ToolLister, type ToolSource } from "./tools/toolbox.js";
export { render, type Level } from "./tools/signature.js";
export {
  ArgumentError, AuditError, ClosedError, ConversionError, Denied, MoonboxError, ScriptError, ToolDefinitionError, ToolError,
  UsageError, WorkerError, type ErrorKind, type Frame, type LimitName,
} from "./errors.js";
export { version, type LanguageName, type LuaFeature } from "./languages.js";
export { isolate } from "./isolate.js";
export {
  CodeMode, type CallOptions, type CodeModeOptions, type CodeModeSettings, type Reply, type ReplyOptions,
} from "./codemode/mode.js";
export { type Answers, type Paused } from "./codemode/paused.js";
export { results, type Answered } from "./codemode/results.js";
export { type Catalog, type Choice } from "./codemode/catalog.js";
export { type Definitions, type Format, type ObjectSchema } from "./codemode/definitions.js";
export { aiTools, codeTool, langchainTools, type AiTool, type CodeToolOptions } from "./adapters.js";
export { mcpTools, type McpClient } from "./tools/mcp.js";
