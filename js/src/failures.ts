/**
 * Results that are nothing but a failure: the forms in which tools return an error as data instead of raising it.
 *
 * An object with `error` (text, an object, a list, or true), `errors` (text, an object or a list), `success: false` or
 * `status: "error"`; a list of one such object; text that is JSON of one of these forms. Beside it there may be `ok`,
 * `code`, `message`, `detail` and `details`, and fields that are null. A result with any other field is data.
 */

import { ToolError } from "./errors.js";
import { flat } from "./tools/signature.js";
import { isObject } from "./values.js";

/** What becomes of such a result: the script gets it as data, or as an error. */
export type Failures = "return" | "raise";
export const FAILURES: readonly string[] = ["return", "raise"];
const CODES: readonly unknown[] = ["not_found", "invalid", "denied", "conflict", "rate_limited", "timeout", "unavailable"];
const RETRYABLE: readonly string[] = ["rate_limited", "timeout", "unavailable"];
const FIELDS: readonly string[] = ["error", "errors", "success", "ok", "status", "code", "message", "detail", "details"];
const SUCCESS: readonly string[] = ["ok", "success", "succeeded", "complete", "completed", "done"];
const LONGEST_TEXT = 500;
const LONGEST_JSON = 4_096;
const MOST_FIELDS = 15;
const DEEPEST = 3;

type Fields = Record<string, unknown>;

/** What a result that is nothing but a failure says, on one line; null for every other result. */
export function failureIn(result: unknown): string | null {
  const fields = failureFields(result);
  return fields === null ? null : textOf(fields);
}

/** Throws ToolError where the result is nothing but a failure. */
export function raiseFailure(result: unknown, tool: string | null): void {
  const fields = failureFields(result);
  if (fields === null) return;
  const code = codeOf(fields);
  throw new ToolError(textOf(fields), { code, retryable: RETRYABLE.includes(code), data: result, tool });
}

/** Text of a tool without what breaks, hides or turns a line, cut with `…` where it is longer. */
export function oneLine(given: string, longest: number): string {
  const text = Array.from(given.slice(0, 8 * longest)).slice(0, 4 * longest).join("");
  const chars = Array.from(flat(text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, " ")));
  return chars.length <= longest ? chars.join("") : `${chars.slice(0, longest - 1).join("").trimEnd()}…`;
}

/** The fields of the failure, without those that are null. */
function failureFields(result: unknown): Fields | null {
  let value = typeof result === "string" ? parsed(result) : result;
  if (Array.isArray(value) && value.length === 1) value = value[0];
  if (!isObject(value) || Object.keys(value).length > MOST_FIELDS) return null;
  const fields = Object.fromEntries(Object.entries(value).filter(([, item]) => item !== null && item !== undefined));
  return isFailure(fields) ? fields : null;
}

function parsed(text: string): unknown {
  if (text.length > LONGEST_JSON || !/^\s*[{[]/.test(text)) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isFailure(fields: Fields): boolean {
  const { success = false, ok = false, status = "error", message = "" } = fields;
  if (!Object.keys(fields).every((name) => FIELDS.includes(name)) || typeof message !== "string") return false;
  if (success !== false || ok !== false || !mayFail(status)) return false;
  return firstOf(fields) !== undefined || fields["success"] === false || fields["status"] === "error";
}

function isNamed(error: unknown): boolean {
  if (typeof error === "string" || Array.isArray(error)) return error.length > 0;
  return isObject(error) && Object.keys(error).length > 0;
}

/** Whether the status can be that of a failure; a number is an HTTP status. */
function mayFail(status: unknown): boolean {
  if (typeof status === "number" || typeof status === "bigint") return status >= 400;
  return status === false || (typeof status === "string" && !SUCCESS.includes(status.toLowerCase()));
}

/** The first of `error` and `errors` that says something; undefined where neither does. */
function firstOf(fields: Fields): unknown {
  const { error, errors } = fields;
  return error === true ? error : [error, errors].find(isNamed);
}

function codeOf(fields: Fields): string {
  let error = firstOf(fields);
  if (Array.isArray(error)) error = error[0];
  const code = [fields["code"], isObject(error) ? error["code"] : null].find((item) => CODES.includes(item));
  return typeof code === "string" ? code : "tool_error";
}

function textOf(fields: Fields): string {
  const said = words(fields["error"]) || words(fields["errors"]);
  const message = words(fields["message"]);
  const text = [said, message === said ? "" : message].filter(Boolean).join(": ") || words(fields["detail"]) || words(fields["details"]);
  if (text) return text;
  if (firstOf(fields) !== undefined) return "an error without a text";
  return fields["success"] === false ? "success is false" : "status is error";
}

/** The text in a value: of an object its message or else its plain fields, of a list its first element's. */
function words(value: unknown, depth = 0): string {
  if (typeof value === "string") return oneLine(value, LONGEST_TEXT);
  if (depth === DEEPEST) return "";
  if (Array.isArray(value)) {
    const text = value.length > 0 ? words(value[0], depth + 1) : "";
    return text && value.length > 1 ? `${text} (and ${value.length - 1} more)` : text;
  }
  if (!isObject(value)) return "";
  for (const name of ["message", "error", "detail"]) {
    const text = Object.hasOwn(value, name) ? words(value[name], depth + 1) : "";
    if (text) return text;
  }
  const plain = Object.entries(value).filter(([, item]) => typeof item === "string" || typeof item === "bigint" || Number.isInteger(item));
  return oneLine(plain.map(([key, item]) => `${key}: ${String(item)}`).join(", "), LONGEST_TEXT);
}
