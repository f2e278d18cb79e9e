/** The words of Lua as scripts find them, and what to write for those of other languages: tables of the Python package. */

import { luaHints as words } from "../languages.js";
import { didYouMean, nearest } from "../suggest.js";

export { words };
const FEW = 12;
const MAGIC = /[\^$()%.[\]*+?-]/g;
const QUOTED = /^(?:"[^"]*"|'[^']*')$/;
const SIMPLE = /^[A-Za-z_][\w.]*(?:\[[\w.]+\]|\([\w., ]*\))?$/;
const LITERAL = /^(?:[0-9.]+|"[^"]*"|'[^']*'|\{[^{}]*\})$/;
const IDENTIFIER = /^[A-Za-z_]\w*$/;

/** The entry of a table that a script's word may name; undefined where there is none. */
export function entry<T>(table: Record<string, T>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

export function isLibrary(name: string): boolean {
  return Object.hasOwn(words.libraries, name);
}

export function isMember(library: string, name: string): boolean {
  return words.libraries[library]!.includes(name);
}

/** How a script names the tool with that path. */
export function toolName(path: string): string {
  const plain = path.split(".").every((part) => IDENTIFIER.test(part) && !words.reserved.includes(part));
  return plain ? `tools.${path}` : `tools["${path}"]`;
}

/** One of the facts about these texts of the script, with what to write. */
export function fact(which: string, texts: Record<string, string>): string {
  const written = form(which, texts);
  return written === "" ? factMessage(which, texts) : `${factMessage(which, texts)}; write: ${written}`;
}

export function factMessage(which: string, texts: Record<string, string>): string {
  return fill(words.facts[which]!, texts);
}

export function form(which: string, texts: Record<string, string>): string {
  return fill(words.forms[which] ?? "", texts);
}

function fill(text: string, texts: Record<string, string>): string {
  return text.replace(/\{(\w+)\}/g, (hole, name: string) => entry(texts, name) ?? hole);
}

/** The hint for a message of Lua that needs no look at the script. */
export function messageHint(message: string): string | null {
  for (const [pattern, hint] of words.messages) {
    const found = new RegExp(`^(?:${pattern})`).exec(message);
    if (found !== null) return hint.replace(/\\(\d)/g, (_, group: string) => found[Number(group)] ?? "");
  }
  return null;
}

/** A form with the script's own text in it, or with x, y and z where that is not known. */
export function fillForm(text: string, given: string[] = [], receiver = ""): string {
  const known = given.includes("…") ? [] : given;
  const texts = [...known, ...["x", "y", "z"].slice(known.length)];
  return text.replace(/\{([012*]|self|set|plain[01])\}/g, (hole, name: string, at: number) => {
    const [before, behind] = [text.slice(Math.max(0, at - 1), at), text.slice(at + hole.length)];
    const called = /^[:[]/.test(behind);
    if (name === "*") return known.length > 0 ? known.join(", ") : "…";
    if (name === "set") return separated(known.at(-1) ?? "");
    if (name === "self") return called && LITERAL.test(receiver) ? `(${receiver})` : receiver || "x";
    if (name.startsWith("plain")) return asPattern(texts[Number(name.at(-1))]!);
    const alone = (before === "(" || before === " ") && /^[),]/.test(behind);
    return alone ? texts[Number(name)]! : operand(texts[Number(name)]!, called);
  });
}

/** The text so that an operator or a method may stand beside it. */
function operand(text: string, called: boolean): string {
  return (LITERAL.test(text) && !called) || SIMPLE.test(text) ? text : `(${text})`;
}

/** The pattern that finds that text and nothing else. */
function asPattern(text: string): string {
  return QUOTED.test(text) ? text.replace(MAGIC, "%$&") : `(${operand(text, true)}:gsub("%p", "%%%0"))`;
}

/** The pattern of a part between separators. */
function separated(literal: string): string {
  const separator = literal.length === 3 && /["']/.test(literal[0]!) ? literal[1]! : ",";
  return `[^${"^]%-".includes(separator) ? "%" : ""}${separator}]+`;
}

/** The one library that has a member of that name; null when there is none or more than one. */
export function libraryOf(member: string): string | null {
  const found = Object.keys(words.libraries).filter((name) => name !== "parallel" && isMember(name, member));
  return found.length === 1 ? found[0]! : null;
}

/** What to write for a name of another language that is called with these arguments, or indexed; null if unknown. */
export function advice(name: string, called: boolean, given: string[]): string | null {
  const absent = entry(words.absent, name);
  if (absent !== undefined) return absent;
  const library = entry(words.bare, name);
  const extreme = name === "max" || name === "min";
  if (called && library !== undefined && (given.length > 0 || extreme)) {
    const shown = extreme && given.length === 1 ? [`table.unpack(${given[0]})`] : given;
    return fact("library_member", { library, name, arguments: shown.join(", ") || "…" });
  }
  const foreign = entry(words.functions, name);
  if (called && foreign !== undefined) return `Lua has no ${name}; ${fillForm(foreign, given)}`;
  const module = entry(words.modules, name);
  return !called && module !== undefined ? `there is no ${name} here; ${fillForm(module[""]!)}` : null;
}

/** The same for a method or a field: its name, what it is read from, the arguments. */
export function methodAdvice(name: string, receiver: string, given: string[]): string | null {
  const found = entry(words.methods, name);
  return found === undefined || (found.includes("{0}") && given.length === 0) ? null : fillForm(found, given, receiver);
}

/** The same for a member that a library does not have. */
export function memberAdvice(library: string, name: string, given: string[]): string | null {
  const forms = entry(words.members, library) ?? {};
  const found = entry(forms, name) || forms[""];
  if (found) return fillForm(found, given);
  const close = nearest(name, words.libraries[library]!, false, 2).map((member) => `${library}.${member}`);
  const elsewhere = libraryOf(name);
  return didYouMean(close.length > 0 ? close : elsewhere === null ? [] : [`${elsewhere}.${name}`]);
}

/** The hint for a tool that does not exist, among the paths of those that do. */
export function unknownTool(path: string, tools: readonly string[]): string {
  if (tools.length === 0) return "there are no tools here";
  const close = path === "" ? [] : nearestTools(path, tools);
  if (close.length > 0) return didYouMean(close.map(toolName))!;
  if (path !== "" && tools.length <= FEW) return `the tools are: ${[...tools].sort().map(toolName).join(", ")}`;
  return `no tool has that name; ${form("search", {})} finds tools`;
}

/** Tools that were probably meant: of that name elsewhere, spelled alike, or with the same words. */
export function nearestTools(path: string, tools: readonly string[]): string[] {
  const same = tools.filter((known) => known !== path && lastOf(known) === lastOf(path)).sort();
  if (same.length > 0) return same.slice(0, 3);
  const ends = new Map([...tools].sort().reverse().map((known) => [lastOf(known), known]));
  const alike = nearest(path, tools, false, 3);
  if (alike.length > 0) return alike;
  const last = nearest(lastOf(path), ends.keys(), false, 3).map((end) => ends.get(end)!);
  return last.length > 0 ? last : nearest(path, tools, true, 3);
}

export function lastOf(path: string): string {
  return path.slice(path.lastIndexOf(".") + 1);
}
