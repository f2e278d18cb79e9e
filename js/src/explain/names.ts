/** Hints for what is missing: unknown globals, members of libraries, tools and methods; values that are nil or null. */

import { didYouMean, nearest } from "../suggest.js";
import { corrected, withLine } from "./slips.js";
import { declared, ScriptValue, type RuntimeFailure } from "./values.js";
import {
  advice, entry, fact, factMessage, fillForm, form, isLibrary, isMember, lastOf, libraryOf, memberAdvice, methodAdvice, nearestTools,
  toolName, unknownTool, words,
} from "./vocabulary.js";

const FEW = 12;

/** A global that is nil where its value was needed. */
export function unknownGlobal(failure: RuntimeFailure, name: string, called: boolean): string | null {
  return (
    scoped(failure, name) ??
    (called ? (tryBlock(failure) ?? prefixedString(failure, name) ?? foreignCall(failure, name)) : foreignTable(failure, name)) ??
    toolOfName(failure, name, called) ??
    memberOfName(name, called) ??
    nearestName(failure, name, called)
  );
}

/** A field that is nil where a function (or a table) was needed. */
export function unknownField(failure: RuntimeFailure, called: boolean): string | null {
  const { value } = failure;
  if (value === null) return null;
  const { root } = value;
  if (root === "tools" && !value.isOfResult && !failure.isLocal("tools")) return unknownTool(fullPath(value), failure.tools);
  if (isLibrary(root) && value.path.length === 2) {
    const [local] = declared(failure.listing, root).map((index) => failure.listing.tokens[index]!);
    const hiding = local ?? failure.parameter(root);
    if (hiding === undefined) return called ? unknownMember(value, root, value.token.text) : null;
    const own = root === "list" && called ? method(value) : null; // a usual name for a list of the script's own
    return own ?? `the local '${root}' of line ${hiding.line} hides the library of that name: rename it`;
  }
  return called && value.index > value.start ? method(value) : null;
}

/** A method that is nil. */
export function unknownMethod(failure: RuntimeFailure): string | null {
  const { value } = failure;
  if (value === null) return null;
  if (isLibrary(value.root) && value.index === value.start + 2 && !failure.isLocal(value.root)) return unknownMember(value, value.root, value.token.text);
  return method(value);
}

/** A name that is declared, but elsewhere: further down, in another block, in an earlier run. */
function scoped(failure: RuntimeFailure, name: string): string | null {
  const line = failure.line ?? 0;
  const { tokens, parsed } = failure.listing;
  for (const index of parsed?.functions ?? []) {
    const plain = tokens[index - 1]!.text === "function";
    if (tokens[index]!.text === name && plain && tokens[index]!.line > line) {
      return `${name} is defined on line ${tokens[index]!.line}, after this line runs: move its definition up`;
    }
  }
  for (const index of declared(failure.listing, name).slice(0, FEW)) {
    const at = tokens[index]!.line;
    if (isInsideItself(failure, index)) return `${name} is not visible yet inside its own function; write: local function ${name}(…) … end`;
    if (at > line) return `${name} is declared on line ${at}, after this line: move its declaration up`;
    if (at < line) return `the local ${name} of line ${at} exists only inside its block: declare it before the block`;
  }
  const parameter = failure.parameter(name);
  if (parameter !== undefined) return `${name} is a parameter of the function on line ${parameter.line} and exists only inside it`;
  if (failure.earlier.some((listing) => declared(listing, name).length > 0)) {
    return `${name} was a local of an earlier run, and locals do not persist: assign it there without local`;
  }
  return null;
}

/** `local f = function(n) return f(n - 1) end`. */
function isInsideItself({ listing: { tokens, parsed }, line }: RuntimeFailure, index: number): boolean {
  if (tokens[index + 1]?.text !== "=" || tokens[index + 2]?.text !== "function") return false;
  const closing = parsed?.pairs.find(([begin]) => begin === index + 2)?.[1];
  return closing !== undefined && tokens[index]!.line <= (line ?? 0) && (line ?? 0) <= tokens[closing]!.line;
}

/** `try { f() } catch (e) { }`, which Lua reads as a call of `try` with a table. */
function tryBlock({ value, listing }: RuntimeFailure): string | null {
  if (value === null) return null;
  const { tokens } = listing;
  for (let index = Math.max(0, value.start - 200); index < value.start; index += 1) {
    if (!["try", "finally"].includes(tokens[index]!.text) || tokens[index + 1]!.text !== "{") continue;
    const close = listing.closing(index + 1);
    if (close !== null && close > value.start) return words.statements["try"]!;
  }
  return null;
}

/** `f"hello {name}"`. */
function prefixedString({ value }: RuntimeFailure, name: string): string | null {
  if (!["f", "r", "b", "rf", "fr"].includes(name) || value?.following.kind !== "string") return null;
  if (value.following.start !== value.token.end) return null;
  if (!name.includes("f")) return "strings have no prefix letters in Lua: remove it";
  return withLine(words.facts["f_string"]!, concatenated(value.following.text.slice(1, -1)));
}

/** A text with `{holes}` as Lua joins it; null when there is nothing to join or it cannot be told. */
function concatenated(text: string): string | null {
  if (text.includes('"') || text.includes("\\") || text.length > 200) return null;
  const pieces = text.split(/\{([^{}]{1,80})\}/);
  const holes = pieces.filter((_, at) => at % 2 === 1);
  if (holes.length === 0 || !holes.every((hole) => /^ *[A-Za-z_][\w.[\]]* *$/.test(hole))) return null;
  return pieces.flatMap((piece, at) => (piece === "" ? [] : [at % 2 === 1 ? piece.trim() : `"${piece}"`])).join(" .. ");
}

function foreignCall(failure: RuntimeFailure, name: string): string | null {
  const counts = name === "range" || (name === "len" && failure.words.some((word) => word.text === "range"));
  const loop = counts || name === "enumerate" ? loopOf(failure) : null;
  if (loop) return counts ? `Lua counts in the loop's header; write: ${loop}` : `ipairs gives index and value; write: ${loop}`;
  if (isBehindNew(failure) && entry(words.functions, name) === undefined) {
    return `Lua has no new; ${fillForm(entry(words.modules, name)?.[""] ?? "call the function that creates the value")}`;
  }
  if (entry(words.absent, name) === undefined && toolsCalled(failure, name).length > 0) return null;
  return advice(name, true, failure.value?.arguments() ?? []);
}

/** Paths of tools whose last part is that name. */
function toolsCalled(failure: RuntimeFailure, name: string): string[] {
  return failure.tools.filter((path) => lastOf(path) === name).sort();
}

/** `local d = new Date()`, which Lua reads as two statements. */
function isBehindNew({ value, listing }: RuntimeFailure): boolean {
  return value !== null && value.start > 0 && listing.tokens[value.start - 1]!.text === "new";
}

/** The loop header of the line, as Lua writes it. */
export function loopOf(failure: RuntimeFailure): string | null {
  const header = /\bfor\b.*?\bdo\b/.exec(failure.listing.line(failure.line) ?? "");
  return header === null ? null : corrected(header[0]);
}

function foreignTable(failure: RuntimeFailure, name: string): string | null {
  const [forms, { value, listing }] = [entry(words.modules, name), failure];
  if (forms === undefined || value === null || value.following.text !== ".") return advice(name, false, []);
  const member = listing.tokens[value.stop + 1]!.text;
  const given = new ScriptValue(listing, value.start, value.stop + 1, value.stop + 2).arguments();
  const lower = member.toLowerCase();
  if (name === "Math" && entry(forms, member) === undefined && isMember("math", lower)) {
    return `the library is called math; write: math.${lower}(${given.join(", ") || "…"})`;
  }
  return `there is no ${name} here; ${fillForm(entry(forms, member) ?? forms[""]!, given)}`;
}

/** `True`, `None` and the like, which a script reads without having defined them. */
export function foreignConstant(failure: RuntimeFailure): string | null {
  const name = /^'(\w{1,40})' is not defined$/.exec(failure.message)?.[1];
  const word = name === undefined ? undefined : entry(words.constants, name);
  if (word === undefined) return null;
  return withLine(factMessage("alternative_constant", { language: "Lua", word, name: name! }), corrected(failure.listing.line(failure.line)));
}

/** `get_weather{…}` and `github.create_issue{…}` without `tools.` in front. */
function toolOfName(failure: RuntimeFailure, name: string, called: boolean): string | null {
  const [path] = called ? toolsCalled(failure, name) : failure.tools.filter((each) => each.startsWith(`${name}.`)).sort();
  return path === undefined ? null : fact("tool_name", { name, tool: toolName(path) });
}

/** `format(x)` for `string.format(x)`. */
function memberOfName(name: string, called: boolean): string | null {
  const library = called ? libraryOf(name) : null;
  return library === null ? null : fact("library_member", { name, library, arguments: "…" });
}

function nearestName(failure: RuntimeFailure, name: string, called: boolean): string | null {
  const { tokens, parsed } = failure.listing;
  const locals = parsed?.locals.map((index) => tokens[index]!.text) ?? [];
  const known = new Set([...failure.names, ...locals, ...(failure.names.length > 0 ? words.base : [])]);
  for (const own of [name, "_G", "_VERSION"]) known.delete(own);
  const close = nearest(name, known, false, 2);
  if (close.length > 0) return didYouMean(close);
  return didYouMean(called && name.length > 3 ? nearestTools(name, failure.tools).map(toolName) : []);
}

/** The whole dotted name that follows `tools.`, also behind the part that is nil: `tools.githb.create_issue`. */
function fullPath(value: ScriptValue): string {
  const { tokens } = value.listing;
  let { stop } = value;
  while (tokens[stop]!.text === "." && tokens[stop + 1]!.kind === "name") stop += 2;
  const path = new ScriptValue(value.listing, value.start, value.index, stop).path.slice(1);
  if (path.length > 0) return path.join(".");
  return value.token.kind === "string" ? value.token.text.slice(1, -1) : "";
}

function unknownMember(value: ScriptValue, library: string, name: string): string | null {
  const found = memberAdvice(library, name, value.arguments());
  return found === null || found.startsWith("did you mean") ? found : `there is no ${library}.${name}; ${found}`;
}

/** `list.push(x)`, `text:split(",")`: methods of other languages. */
function method(value: ScriptValue): string | null {
  if (value.receiver === "…") return null;
  let given = value.arguments();
  if (given[0] === value.receiver && value.sign === ".") given = given.slice(1);
  const found = methodAdvice(value.token.text, value.receiver, given);
  return found === null ? null : `there is no method ${value.token.text}; ${found}`;
}

// Values that are nil or null

/** Something named that is nil: unknown globals, tools, wrong ways to a length or to an element. */
export function nilName(failure: RuntimeFailure): string | null {
  const { complaint, value } = failure;
  if (complaint.type !== "nil") return null;
  if (complaint.role === "global") {
    const comment = value !== null && value.start > 0 && value.listing.tokens[value.start - 1]!.text === "//"; // `x = 1 // comment`
    return comment ? "comments begin with -- in Lua; // divides" : unknownGlobal(failure, complaint.name, false);
  }
  if (complaint.role === "local" || complaint.role === "upvalue") return uninitialised(failure, complaint.name);
  if (complaint.role !== "field" || value === null) return null;
  if (["length", "len", "Length"].includes(value.token.text) && value.index > value.start) return `write: ${form("length", { value: value.receiver })}`;
  return (complaint.action === "index" ? unknownField(failure, false) : null) ?? zeroBased(value);
}

/** A local that was declared without a value, or with a word that is none. */
function uninitialised(failure: RuntimeFailure, name: string): string | null {
  const { tokens } = failure.listing;
  const [index, ...others] = declared(failure.listing, name);
  if (index === undefined || others.length > 0) return null;
  const next = tokens[index + 1]!.text;
  if (next === "=" && tokens[index + 2]?.text === "await") return words.statements["await"]!;
  if (tokens[index - 1]!.text !== "local" || ["=", ",", "<"].includes(next) || isAssignedAgain(failure, index, name)) return null;
  const value = entry({ "perform arithmetic on": "0", concatenate: '""', index: "{}", "get length of": "{}" }, failure.complaint.action);
  return value === undefined ? null : `${name} is declared without a value on line ${tokens[index]!.line}; write: local ${name} = ${value}`;
}

/** Whether it gets a value elsewhere that does not need its own: `n = n + 1` gives it none. */
function isAssignedAgain({ listing }: RuntimeFailure, index: number, name: string): boolean {
  const { tokens } = listing;
  return tokens.slice(0, -1).some((token, at) => {
    if (token.text !== name || token.kind !== "name" || at === index || !["=", ","].includes(tokens[at + 1]!.text)) return false;
    return !tokens.slice(at + 1, listing.span(token.line)[1]).some((word) => word.text === name);
  });
}

/** `list[0]`, and `list[i]` in a loop that counts from 0. */
function zeroBased(value: ScriptValue): string | null {
  const { tokens } = value.listing;
  const texts = (first: number, stop: number): string => tokens.slice(first, stop).map((token) => token.text).join(" ");
  if (value.sign !== "[") return null;
  if (texts(value.index, value.stop) === "- 1 ]") return fact("last_element", { value: value.receiver });
  if (value.stop !== value.index + 2) return null;
  const key = value.token.text;
  if (key === "0") return fact("first_element", { value: value.receiver });
  for (let index = value.index - 1; index > 2; index -= 1) {
    if (texts(index - 3, index + 2) === `for ${key} = 0 ,`) return `${words.facts["first_element"]}; write: for ${key} = 1, #${value.receiver} do`;
  }
  return null;
}

/** `a.b.c` where `a.b` is nil. */
export function nilParent(failure: RuntimeFailure): string | null {
  const { complaint, value } = failure;
  if (complaint.role === "") return givenToLibrary(failure);
  if (complaint.role !== "field" || value === null || value.text === "…") return null;
  if (isAssigned(failure)) return `${value.text} is nil; make it a table first: ${value.text} = {}`;
  return `${value.text} is nil; check it before using its fields: if ${value.text} then … end`;
}

/** ipairs(nil) and table.unpack(nil), which Lua reports without naming them. */
export function givenToLibrary(failure: RuntimeFailure): string | null {
  const { type } = failure.complaint;
  for (const name of ["ipairs", "unpack"]) {
    const calls = failure.callsOf(name);
    const given = calls.length === 1 ? calls[0]!.arguments()[0] : undefined;
    if (given !== undefined && !["…", "nil", "null"].includes(given)) {
      return `${calls[0]!.text} needs a list, but ${given} is ${type === "nil" ? "nil" : `a ${type}`}`;
    }
  }
  return null;
}

/** `x.y` where `x` is json.null; the message names `y`. */
export function nullParent(failure: RuntimeFailure): string {
  const receivers = new Set(failure.fieldsOf(failure.complaint.name).map((value) => value.receiver));
  receivers.delete("…");
  receivers.delete("null");
  if (receivers.size !== 1) return "json.null has no fields: it is only for sending a null";
  return `${[...receivers][0]} is json.null, which has no fields: it is only for sending a null`;
}

/** `local result = pcall(f)`, whose first value only says whether it went well. */
export function pcallResult({ complaint, listing: { tokens } }: RuntimeFailure): string | null {
  for (let index = 0; index < tokens.length - 2; index += 1) {
    const [token, sign, called] = [tokens[index]!, tokens[index + 1]!.text, tokens[index + 2]!.text];
    if (token.text === complaint.name && token.kind === "name" && sign === "=" && (called === "pcall" || called === "xpcall")) {
      return `the first result of pcall is true or false; write: local ok, ${complaint.name} = ${called}(…)`;
    }
  }
  return null;
}

/** Whether the line assigns to a field of the value. */
export function isAssigned({ value }: RuntimeFailure): boolean {
  if (value === null) return false;
  const { tokens } = value.listing;
  const close = value.following.text === "[" ? value.listing.closing(value.stop) : null;
  return tokens[Math.min(close === null ? value.stop + 2 : close + 1, tokens.length - 1)]!.text === "=";
}
