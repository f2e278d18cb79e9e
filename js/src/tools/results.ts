/** What comes back from a tool: its value within the limits, or its failure as scripts may see it. */

import { ArgumentError, ConversionError, Denied, ToolError } from "../errors.js";
import { raiseFailure, type Failures } from "../failures.js";
import type { Limits } from "../limits.js";
import { measure, plain, Room, type MediaKeeper } from "../values.js";
import type { Tool } from "./tool.js";

const LONGEST_MESSAGE = 500;
const LONGEST_DETAIL = 20_000;
const ELEMENT_BYTES = 16; // what one element takes in a script, at least
const RETRYABLE_STATUS = new Set([408, 425, 429, 500, 502, 503, 504]);
/** By HTTP status; any other 4xx is `invalid`, any other 5xx `tool_error`. */
const STATUSES: Record<number, string> = {
  401: "denied", 402: "denied", 403: "denied", 407: "denied", 451: "denied", 404: "not_found", 410: "not_found",
  409: "conflict", 412: "conflict", 423: "conflict", 408: "timeout", 504: "timeout", 425: "unavailable",
  502: "unavailable", 503: "unavailable", 429: "rate_limited",
};
const CODES: Record<string, string> = { EACCES: "denied", EPERM: "denied", ENOENT: "not_found", EEXIST: "conflict" };
const CONNECTION = new Set(["ECONNREFUSED", "ECONNRESET", "ENOTFOUND", "EPIPE", "EAI_AGAIN", "EHOSTUNREACH"]);

/** How results are converted. */
export interface ResultSettings {
  limits: Limits;
  allowNan: boolean;
  media: MediaKeeper;
  /** What becomes of a result that is nothing but a failure. */
  failures: Failures;
}

/** The plain value that crosses to the script; throws ToolError with code `result_too_large` or `bad_result`. */
export function convertResult(given: unknown, tool: Tool, settings: ResultSettings): unknown {
  const value = tool.parseJson && tool.returns === null && typeof given === "string" ? parsed(given, settings.limits) : given;
  try {
    return convert(value, settings, tool.path);
  } catch (problem) {
    if (!(problem instanceof ConversionError)) throw problem;
    const code = problem.limit ? "result_too_large" : "bad_result";
    throw new ToolError(`the result of ${tool.path} cannot be used: ${problem.message}`, { code, tool: tool.path });
  }
}

export function convert(value: unknown, { limits, allowNan, media, failures }: ResultSettings, tool: string | null = null): unknown {
  const lowered = plain(value, allowNan, limits.maxDepth, "result", media, new Room(Math.floor(limits.maxMemory / ELEMENT_BYTES)));
  measure(lowered, limits, "result");
  if (failures === "raise") raiseFailure(lowered, tool);
  return lowered;
}

/** The error a script is given for whatever was thrown, also for an object that does not let itself be read. */
export function toToolError(error: unknown, tool: string | null): ToolError {
  try {
    return describedError(error, tool);
  } catch {
    return new ToolError(typeof error, { tool });
  }
}

function describedError(error: unknown, tool: string | null): ToolError {
  if (error instanceof ToolError) {
    const { code, message, retryable, detail } = error;
    const Kind = [Denied, ArgumentError].find((kind) => error instanceof kind) ?? ToolError;
    // A copy: several tools may throw the same one.
    return new Kind(message, { code, retryable, data: dataOf(error), tool: error.tool ?? tool, detail: detail ?? detailOf(error) });
  }
  if (error === null || error === undefined) return new ToolError(`the tool threw ${error}: throw an Error with a message`, { tool });
  const status = statusOf(error);
  const [code, retryable] = classify(error, status);
  const { name: named, message: said } = (error ?? {}) as { name?: unknown; message?: unknown }; // not all that is thrown is an Error
  const name = typeof named === "string" && named ? named : typeof error;
  const text = String(typeof said === "string" || error instanceof Error ? said : error).trim();
  const message = bounded(scrub(text ? `${name}: ${text}` : name));
  const data = status === null ? null : { status };
  return new ToolError(message, { code, retryable, data, tool, detail: detailOf(error) });
}

function dataOf(error: ToolError): unknown {
  try {
    return plain(error.data);
  } catch {
    return null;
  }
}

/** Text without absolute paths (their last part stays) and without what looks like a credential. */
export function scrub(given: string): string {
  let text = given.slice(0, 4 * LONGEST_MESSAGE);
  for (const [pattern, replacement] of SECRETS) text = text.replace(pattern, replacement);
  return text
    .replace(/\bfile:\/{1,3}[^\s'"]+/gi, "file:…")
    .replace(WINDOWS_PATH, (_, last: string) => `…\\${last}`)
    .replace(POSIX_PATH, (_, last: string) => `…/${last}`);
}

/** The data that the text encodes, or the text itself. */
function parsed(text: string, limits: Limits): unknown {
  if (!/^\s*[{[]/.test(text)) return text;
  try {
    return plain(JSON.parse(text), true, limits.maxDepth);
  } catch {
    return text;
  }
}

/** The HTTP status in the errors of HTTP clients. */
function statusOf(error: unknown): number | null {
  const given = (typeof error === "object" && error !== null ? error : {}) as {
    status?: unknown; statusCode?: unknown; response?: { status?: unknown; statusCode?: unknown };
  };
  const found = [given.response?.status, given.response?.statusCode, given.status, given.statusCode];
  const status = found.find((value) => Number.isInteger(value) && (value as number) >= 400 && (value as number) < 600);
  return (status as number | undefined) ?? null;
}

function classify(error: unknown, status: number | null): [string, boolean] {
  const given = (typeof error === "object" && error !== null ? error : {}) as {
    name?: unknown; code?: unknown; cause?: { code?: unknown };
  };
  const name = String(given.name ?? "");
  const code = String(given.code ?? given.cause?.code ?? "");
  if (name.includes("Timeout") || code === "ETIMEDOUT") return ["timeout", true];
  if (CONNECTION.has(code) || name === "NetworkError" || (name === "TypeError" && /fetch failed/.test(String(error)))) {
    return ["unavailable", true];
  }
  if (status !== null) return [STATUSES[status] ?? (status < 500 ? "invalid" : "tool_error"), RETRYABLE_STATUS.has(status)];
  if (name === "AbortError") return ["cancelled", false];
  return [Object.hasOwn(CODES, code) ? CODES[code]! : "tool_error", false];
}

function detailOf(error: unknown): string {
  const text = error instanceof Error ? (error.stack ?? String(error)) : String(error);
  return text.length <= LONGEST_DETAIL ? text : `${text.slice(0, 2_000)}\n…\n${text.slice(-LONGEST_DETAIL + 2_000)}`;
}

function bounded(text: string): string {
  return text.length <= LONGEST_MESSAGE ? text : `${text.slice(0, LONGEST_MESSAGE - 1).trimEnd()}…`;
}

const NAMES = "(?:token|api[_-]?key|access[_-]?key|auth|credentials?|session(?:[_-]?id)?|signature|sig|key)";
const WORSE = "(?:pass(?:word|wd|phrase)|pwd|secret|authorization)";
const VALUE = "[^\\s\"',;&)}\\]]";
const SECRETS: [RegExp, string][] = [
  [/(?<=:\/\/)[^/\s:@]{1,200}:[^/\s@]{1,200}(?=@)/g, "***"],
  [/\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi, "$1 ***"],
  [new RegExp(`\\b([\\w-]{0,40}${WORSE}["']?\\s?[=:]\\s?["']?)(?!bearer |basic )${VALUE}{3,}`, "gi"), "$1***"],
  [new RegExp(`\\b([\\w-]{0,40}${NAMES}["']?=["']?)${VALUE}{4,}`, "gi"), "$1***"],
  [new RegExp(`\\b([\\w-]{0,40}${NAMES}["']?:\\s?["']?)(?=\\D{0,200}\\d)${VALUE}{12,}`, "gi"), "$1***"],
  [/\b(?:sk|pk|rk|gh[pousr]|xox[abprs]|glpat|AKIA|ASIA|AIza)[-_A-Za-z0-9]{12,}/g, "***"],
  [/\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?/g, "***"],
];
const PART = "[^\\s/\\\\'\":;,()<>|]";
const POSIX_PATH = new RegExp(
  `(?<![\\w/.])(?<!GET )(?<!PUT )(?<!POST )(?<!HEAD )(?<!PATCH )(?<!DELETE )(?:~|\\.\\.)?/(?!/)(?:${PART}{1,120}/)+(${PART}{0,120})`, "g",
);
const WINDOWS_PATH = new RegExp(`\\b[A-Za-z]:\\\\(?:${PART}{1,120}\\\\)*(${PART}{0,120})`, "g");
