/** Runtime errors: which value could not do what was asked of it, and the Lua form of what was probably meant. */

import * as names from "./names.js";
import { argumentHint, comparisonHint, operationHint, textArithmeticHint } from "./operands.js";
import { withLine } from "./slips.js";
import type { RuntimeFailure } from "./values.js";
import { fact, factMessage, form, isLibrary, lastOf, messageHint, toolName, words } from "./vocabulary.js";

const BAD_ARGUMENT = /^bad argument #\d{1,3} to '(\w{1,40})'/;
const NO_FIELD = /^a (list|string) has no field '(\w{1,100})'$/;
const NO_ELEMENT = /^a string has no element (-?[\w.]{1,30})$/;
const PATH = /^[A-Za-z_][\w.[\]]{0,60}$/;
const WRAPPERS = new Set(["content", "data", "entries", "items", "list", "records", "result", "results", "rows", "value", "values"]);
const SIGNS: Record<string, string[]> = {
  compare: ["<", "<=", ">", ">="], add: ["+"], sub: ["-"], mul: ["*"], div: ["/"], mod: ["%"], concatenate: [".."], divide: ["//"],
};

/** The column of the word that the error is about, where there is only one that it can be. */
export function columnOf(failure: RuntimeFailure): number | null {
  const { complaint, message, value } = failure;
  const only = (columns: number[]): number | null => (columns.length === 1 ? columns[0]! : null);
  const namedKey = complaint.action === "index" && complaint.type === "null";
  if (value !== null && !namedKey) return value.token.column;
  if (namedKey) return only(failure.fieldsOf(complaint.name).map((field) => failure.listing.tokens.at(field.index - 2)!.column));
  const bad = BAD_ARGUMENT.exec(message);
  if (bad !== null) return only(failure.callsOf(bad[1]!).map((call) => call.token.column));
  const action = message.startsWith("attempt to ") ? (message.split(" ")[2] ?? "") : "";
  const signs = (Object.hasOwn(SIGNS, action) ? SIGNS[action] : undefined) ?? (message.includes("for iterator") ? ["in"] : []);
  return only(failure.words.filter((token) => token.kind !== "string" && signs.includes(token.text)).map((token) => token.column));
}

/** What to write instead; null where nothing is known for sure. */
export function runtimeHint(failure: RuntimeFailure): string | null {
  const { complaint } = failure;
  if (complaint.action === "call") return notCallable(failure);
  if (complaint.action === "index") return notIndexable(failure);
  if (complaint.action !== "") {
    return names.nilName(failure) ?? operationHint(failure) ?? (complaint.role === "" ? names.givenToLibrary(failure) : null);
  }
  return (
    textArithmeticHint(failure) ?? comparisonHint(failure) ?? argumentHint(failure) ?? names.foreignConstant(failure) ??
    colonCall(failure) ?? noSuchField(failure) ?? noCharacter(failure) ?? other(failure)
  );
}

function notCallable(failure: RuntimeFailure): string | null {
  const { complaint } = failure;
  if (complaint.role === "for iterator") {
    return complaint.type === "table" ? withLine(words.facts["loop"]!, names.loopOf(failure) ?? "for _, item in ipairs(list) do") : null;
  }
  if (complaint.type.startsWith("library tools.")) return namespace(failure, complaint.type.slice("library tools.".length));
  const hidden = shadowed(failure);
  if (hidden !== null || complaint.type !== "nil") return hidden;
  if (complaint.role === "global") return names.unknownGlobal(failure, complaint.name, true);
  if (complaint.role === "field") return names.unknownField(failure, true);
  return complaint.role === "method" ? names.unknownMethod(failure) : null;
}

function namespace(failure: RuntimeFailure, space: string): string | null {
  const members = failure.tools.filter((path) => path.startsWith(`${space}.`)).sort();
  if (members.length === 0) return null;
  const more = members.length > 8 ? ` and ${members.length - 8} more` : "";
  return `tools.${space} holds several tools; call one of them: ${members.slice(0, 8).map(toolName).join(", ")}${more}`;
}

/** A function's name that was given another value. */
function shadowed({ complaint: { name, role, type }, listing }: RuntimeFailure): string | null {
  if (!words.base.includes(name) && !isLibrary(name)) return null;
  if (role === "local" || role === "upvalue") return `the local '${name}' hides the function of that name: rename it`;
  const assigned = role === "global" && type !== "nil" && !["null", "docs", "tools"].includes(name) && listing.whole;
  return assigned ? `the script assigned another value to '${name}': use another name` : null;
}

function notIndexable(failure: RuntimeFailure): string | null {
  const { complaint, value } = failure;
  switch (complaint.type) {
    case "nil":
      return names.nilName(failure) ?? names.nilParent(failure);
    case "null":
      return names.nullParent(failure);
    case "function":
      return value === null ? null : `${value.text} is a function: call it before reading fields`;
    case "boolean":
      return names.pcallResult(failure);
    case "number":
      return complaint.role === "" ? names.givenToLibrary(failure) : null;
    case "string":
      return names.isAssigned(failure) ? "strings cannot be changed: make a new one with .. or string.gsub" : null;
  }
  return null;
}

/** `tools:echo{…}`, `json:encode(x)`. */
function colonCall(failure: RuntimeFailure): string | null {
  const name = /^([\w.]{1,120}): argument(?:\[1\])? is a library/.exec(failure.message)?.[1];
  if (name === undefined || !failure.words.map((token) => token.text).join("").includes(`:${lastOf(name)}`)) return null;
  return fact("colon_call", { tool: name });
}

/** `list.length`, `list.items`, `text.value`. */
function noSuchField(failure: RuntimeFailure): string | null {
  const [, kind, name] = NO_FIELD.exec(failure.message) ?? [];
  if (name === undefined) return null;
  const receivers = new Set(failure.fieldsOf(name).map((value) => value.receiver));
  const receiver = receivers.size === 1 ? [...receivers][0]! : "";
  const written = PATH.test(receiver) ? receiver : kind === "list" ? "list" : "text";
  if (words.lengths.includes(name)) return `write: ${form("length", { value: written })}`;
  if (kind === "string") return `${written} is text; if it is JSON, write: json.decode(${written}).${name}`;
  if (WRAPPERS.has(name)) return `${written} is the list itself: for _, item in ipairs(${written}) do … end`;
  return `read it from an element, such as ${written}[1].${name}, or loop: for _, item in ipairs(${written}) do … item.${name} … end`;
}

/** `text[1]`, and `text[0]` as other languages count. */
function noCharacter(failure: RuntimeFailure): string | null {
  const match = NO_ELEMENT.exec(failure.message);
  if (match === null) return null;
  const reads = new Map(failure.fieldsOf("?").map((value) => [`${value.receiver}\0${value.text}`, value]));
  const [read] = reads.size === 1 ? reads.values() : [];
  let receiver = read?.receiver ?? "";
  let key = (read?.text ?? "").slice(receiver.length + 1, -1);
  if (!PATH.test(receiver) || !PATH.test(key)) [receiver, key] = [PATH.test(receiver) ? receiver : "text", match[1]!];
  if (key === "0") return `characters are counted from 1; write: ${receiver}:sub(1, 1)`;
  return `strings cannot be indexed; write: ${receiver}:sub(${key}, ${key})`;
}

function other({ message, functions }: RuntimeFailure): string | null {
  if (message.includes("stack overflow")) {
    const name = functions.find((each) => each !== "main chunk");
    return `${name ? `the ${name}` : "a function"} calls itself endlessly: add a case that returns without another call`;
  }
  if (message === "json.decode expects a string, got table") return factMessage("decoded", { what: "the value", function: "json.decode" });
  return messageHint(message);
}
