/** Hints for operators and library functions that refuse the values they are given. */

import { expressionEnd } from "../lua/parser.js";
import { isLua, LONGEST_LINE } from "./slips.js";
import { operandBefore, type RuntimeFailure, type ScriptValue } from "./values.js";
import { factMessage, form, isLibrary, isMember } from "./vocabulary.js";

const TEXT = /^attempt to (add|sub|mul|div|mod|pow|unm|idiv) a '(\w{1,40})' with a '(\w{1,40})'$/;
const COMPARE = /^attempt to compare (?:two ([\w. ]{1,80}) values|([\w. ]{1,80}) with ([\w. ]{1,80}))$/;
const BAD = /^bad argument #(\d{1,3}) to '([\w ]{1,40})' \(([^\n]{1,200})\)$/;
const SELF = /^calling '(\w{1,40})' on bad self/;
const INVALID = /^invalid value \((\w+)\) at index (\d+) in table for 'concat'$/;
const LOOP = /^(?:bad 'for' (limit|initial value|step) \(number expected, got (\w+)\)|'for' step is zero)$/;
const LEAVES = /^((?:value|argument|[\w.]+: argument|json\.encode: value)[^\s]*) is (.+)/;
const GOT = /^([\w ]{1,40}) expected, got ([\w ]{1,40})$/;
const INSERT = "write table.insert(list, value) to append, table.insert(list, position, value) to insert";
const WRAPPED = new Set(["rep", "gsub", "format"]);
const ONLY_FOR_SENDING = "is json.null, which is only for sending a null: write nil for a missing value";

/** Arithmetic, .. and # on a value of the wrong type. */
export function operationHint(failure: RuntimeFailure): string | null {
  const { complaint, value } = failure;
  const what = value !== null && value.text !== "…" ? value.text : "";
  if (complaint.type === "null") return `${what || "the value"} ${ONLY_FOR_SENDING}`;
  if (complaint.type === "function") return what ? `${what} is a function: call it with ${what}(…)` : null;
  if (complaint.action === "concatenate") return joined(complaint.type, what);
  if (complaint.action === "perform arithmetic on") return calculated(failure, what);
  return complaint.action === "get length of" && complaint.type === "nil" && what ? `${what} is nil, so it has no length: check it first` : null;
}

function joined(kind: string, what: string): string | null {
  const name = what || "x";
  if (kind === "nil") return what ? `${what} is nil; where it may be missing write: (${what} or "")` : null;
  if (kind === "boolean") return `${what || "a boolean"} must be converted to a string first: tostring(${name})`;
  return kind === "table" ? `convert a table to a string with json.encode(${name}), a list with table.concat(${name}, ", ")` : null;
}

function calculated(failure: RuntimeFailure, what: string): string | null {
  const { type, role } = failure.complaint;
  if (type !== "nil") return null;
  if (role !== "") return role === "field" && what ? `${what} is nil; where it may be missing write: (${what} or 0)` : null;
  if (failure.callsOf("tonumber").length === 1) return "tonumber returned nil: its argument is not a number";
  const [first, second] = failure.words;
  return first?.text === "print" && second?.kind === "string" ? "print needs parentheses around all of its argument: print(… + …)" : null;
}

/** `"a" + "b"`, `"=" * 40`, `"%d" % 5`. */
export function textArithmeticHint(failure: RuntimeFailure): string | null {
  const match = TEXT.exec(failure.message);
  if (match === null) return null;
  const [, action, left, right] = match;
  const kinds = [left, right];
  if (kinds.includes("nil")) return "one of the two is nil: check it first";
  if (kinds.includes("table") || kinds.includes("boolean")) return null;
  if (action === "add") {
    const line = withDots(failure);
    return `+ works on numbers only, strings are joined with ..${line ? `; write: ${line}` : ""}`;
  }
  if (action === "mul" && right === "number") return "* works on numbers only; repeat a string with string.rep(s, n)";
  if (action === "mod") return "% works on numbers only; format strings with string.format(format, …)";
  return "arithmetic needs numbers: convert the string with tonumber(s)";
}

/** The line with its only + as .. instead. */
function withDots(failure: RuntimeFailure): string | null {
  const text = failure.listing.line(failure.line);
  const signs = failure.words.filter((token) => token.text === "+" && token.kind === "op");
  if (text === null || text.length > LONGEST_LINE || signs.length !== 1) return null;
  const { column } = signs[0]!;
  const line = `${text.slice(0, column - 1)}..${text.slice(column)}`.trim();
  return isLua(line) ? line : null;
}

/** `<` and its like between values of different types. */
export function comparisonHint(failure: RuntimeFailure): string | null {
  const match = COMPARE.exec(failure.message);
  if (match === null) return null;
  const kinds = match[1] !== undefined ? [match[1]] : [match[2], match[3]];
  if (kinds.includes("nil")) {
    const what = comparedWithLiteral(failure);
    if (what) return `${what} is nil; where it may be missing write: (${what} or 0)`;
    return "one side of the comparison is nil: check it first, or give it a default such as (x or 0)";
  }
  if (kinds.includes("null")) return `${comparedWithLiteral(failure) || "one side of the comparison"} ${ONLY_FOR_SENDING}`;
  if (kinds.length === 2 && kinds.includes("number") && kinds.includes("string")) {
    return "strings and numbers cannot be compared: convert the string with tonumber(s)";
  }
  if (kinds.every((kind) => kind === "table")) {
    return "tables cannot be ordered; compare one of their fields, as in table.sort(list, function(a, b) return a.key < b.key end)";
  }
  return kinds.includes("function") ? "one side of the comparison is a function: call it" : null;
}

/** The value that the line's only comparison sets against a number. */
function comparedWithLiteral({ listing, span }: RuntimeFailure): string {
  const signs = span.filter((index) => ["<", "<=", ">", ">="].includes(listing.tokens[index]!.text));
  if (signs.length !== 1 || listing.tokens[signs[0]! + 1]!.kind !== "number") return "";
  const what = operandBefore(listing, signs[0]!);
  return what === "…" ? "" : what;
}

export function argumentHint(failure: RuntimeFailure): string | null {
  const { message } = failure;
  const bad = BAD.exec(message);
  if (bad !== null) return badArgument(failure, bad[2]!, Number(bad[1]), bad[3]!);
  const self = SELF.exec(message);
  if (self !== null) return badSelf(failure, self[1]!);
  const invalid = INVALID.exec(message);
  if (invalid !== null) return notJoined(invalid[1]!, invalid[2]!);
  const loop = LOOP.exec(message);
  if (loop !== null) return loopBound(failure, loop[1] ?? "", loop[2] ?? "");
  if (message.startsWith("invalid order function for sorting")) return factMessage("comparator", { sign: "<" });
  const leaves = LEAVES.exec(message);
  return leaves === null ? null : cannotLeave(failure, leaves[1]!, leaves[2]!);
}

function badArgument(failure: RuntimeFailure, name: string, number: number, why: string): string | null {
  const [, wanted, got] = GOT.exec(why) ?? [];
  const calls = failure.callsOf(name);
  const call = calls.length === 1 ? calls[0]! : null;
  if (name === "for iterator" && got !== undefined) return got === "nil" ? null : `pairs needs a table, but this is a ${got}`;
  if (name === "insert" && why.includes("position out of bounds")) return `${INSERT}; a position is from 1 to #list + 1`;
  if (name === "format") return formatHint(why, call, number);
  const colon = got === "no value" && call !== null ? dotForColon(call) : null;
  if (colon !== null) return colon;
  if (why.includes("number has no integer representation")) return "an integer is needed: use math.floor(x) or x // 1";
  return call !== null && (got === "nil" || got === "null") ? missingArgument(call, number, got, wanted!) : null;
}

function formatHint(why: string, call: ScriptValue | null, number: number): string | null {
  if (why.includes("number has no integer representation")) return "%d takes integers only: use %.2f for others, or math.floor(x)";
  if (why.startsWith("number expected, got string")) return "%d and %f take numbers: use %s for strings, or tonumber(s)";
  if (why === "no value" || why === "bad argument" || why.includes("got no value")) {
    return "there are more % options than values: give one value for each, and write %% for a percent sign";
  }
  return why.startsWith("number expected, got nil") && call !== null ? missingArgument(call, number, "nil", "number") : null;
}

/** `name.upper()` for `name:upper()`. */
function dotForColon(call: ScriptValue): string | null {
  if (call.sign !== "." || isLibrary(call.root) || !isMember("string", call.token.text)) return null;
  return `methods are called with a colon; write: ${call.receiver}:${call.token.text}(${call.arguments().join(", ")})`;
}

function missingArgument(call: ScriptValue, number: number, got: string, wanted: string): string | null {
  // Functions that the sandbox wraps count the value before the colon, as Lua itself does not.
  const given = call.arguments()[number - 1 - (call.sign === ":" && WRAPPED.has(call.token.text) ? 1 : 0)];
  if (given === undefined || ["…", "nil", "null"].includes(given)) return null;
  return `${given} is ${got === "nil" ? "nil" : "json.null"}, but ${call.text} needs a ${wanted} there: check it first`;
}

/** `string:upper(x)` for `string.upper(x)`. */
function badSelf(failure: RuntimeFailure, name: string): string | null {
  const [call, ...others] = failure.callsOf(name);
  if (call === undefined || others.length > 0 || !isLibrary(call.root)) return null;
  return `library functions are called with a dot; write: ${call.root}.${name}(${call.arguments().join(", ")})`;
}

function notJoined(kind: string, index: string): string {
  if (kind === "nil") return `the list has no element ${index}: table.concat needs all of 1 to #list`;
  if (kind === "table") return "table.concat joins only strings and numbers: build a list of strings first";
  return "table.concat joins only strings and numbers: use tostring on each element first";
}

function loopBound(failure: RuntimeFailure, part: string, got: string): string | null {
  if (part === "") return "the step of a loop must not be 0";
  const { words } = failure;
  const length = words.findIndex((token, index) => token.text === "length" && index > 1 && words[index - 1]!.text === "." && got === "nil");
  if (length >= 0) return `write: ${form("length", { value: words[length - 2]!.text })}`;
  if (got === "string") return "loop bounds must be numbers: convert the string with tonumber(s)";
  if (got === "table" && part === "limit") return "loop bounds must be numbers: the length of a list is #list";
  return got === "nil" ? `${bound(failure, part) || "one of the bounds of the loop"} is nil, but loop bounds must be numbers` : null;
}

/** The text of a bound in the loop's header. */
function bound({ listing, listing: { tokens }, span }: RuntimeFailure, part: string): string {
  const header = span.find((index) => tokens[index]!.text === "for");
  if (header === undefined || tokens[header + 2]!.text !== "=") return "";
  let first = header + 3;
  for (const name of ["initial value", "limit", "step"]) {
    const stop = expressionEnd(tokens, first);
    if (stop === null || name === part) {
      const text = stop === null ? "" : listing.text(first, stop);
      return text === "…" || text === "nil" ? "" : text;
    }
    first = stop + 1;
  }
  return "";
}

function cannotLeave(failure: RuntimeFailure, path: string, what: string): string | null {
  if (what.startsWith("a function")) {
    const name = path === "value" ? returnedName(failure) : "";
    if (name) return `${name} is a function; to return its result write: return ${name}()`;
    return "only data can leave the script: call the function, or remove the field";
  }
  if (/^(?:NaN|-?infinity)/.test(what)) return "it usually comes from a division by 0: check the divisor first";
  return what.endsWith("cannot leave the script") && what.includes("again") ? "remove the field that refers back to the table" : null;
}

/** The name that the script returns, if it returns just that. */
function returnedName({ listing: { tokens, parsed } }: RuntimeFailure): string {
  const index = parsed?.returns.find((each) => tokens[each + 1]!.kind === "name" && tokens[each + 2]!.kind === "eof");
  if (index !== undefined) return tokens[index + 1]!.text;
  return tokens.length === 2 && tokens[0]!.kind === "name" ? tokens[0]!.text : "";
}
