/**
 * The check before a run: what cannot work in a Lua script, found from its tree, the tools' schemas and the words of other languages.
 *
 * It finds a part of what the Python package's checker finds, in the same words: nothing about what tools return or variables hold.
 */

import { type ArgumentError, ScriptError } from "../errors.js";
import { advice, fact, factMessage, form, isLibrary, isMember, lastOf, memberAdvice, toolName, unknownTool, words, entry } from "../explain/vocabulary.js";
import { pointedLine } from "../explain/location.js";
import { Listing } from "../lua/listing.js";
import type { Parsed } from "../lua/parser.js";
import type { Expression, Statement } from "../lua/tree.js";
import { UNKNOWN } from "../tools/binding.js";
import type { Tool } from "../tools/tool.js";
import type { Toolbox } from "../tools/toolbox.js";

const LONGEST = 64_000;
const MOST_FINDINGS = 20;
const DEEPEST = 12;
const MOST_NAMES = 10_000;
const ARITHMETIC = ["+", "-", "*", "/", "//", "%", "^"];
const NUMERAL = /^\s*[-+]?(?:0[xX][0-9a-fA-F.]+|\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*$/;
const TYPES = ["nil", "boolean", "number", "string", "table", "function", "thread", "userdata"];
const QUOTABLE = ["name", "field", "item", "call", "method"];
const GLOBALS = ["_G", "_ENV", "_VERSION", "null"];

interface Finding {
  line: number;
  column: number;
  message: string;
  hint: string | null;
  code: string | null;
  tool: string | null;
}

type Operation = Extract<Expression, { type: "operation" }>;
type Tree = Map<string, Tree | Tool>;

/** Checks the scripts of one Repl, and remembers which globals they set. */
export class Checker {
  private names = new Set<string>();
  /** Whether scripts may have set globals in ways that are not followed. */
  private mayMiss = false;

  /** The error of a script that is not run; null where it is run: the globals that it sets exist from then on. */
  refusal(source: string, toolbox: Toolbox, added: Iterable<string>): ScriptError | null {
    const [error, defines] = this.look(source, toolbox, added);
    if (error !== null) return error;
    if (defines === null || this.names.size > MOST_NAMES) this.skip();
    else for (const name of defines) this.names.add(name);
    return null;
  }

  /** The same for a script that is not to be run. */
  found(source: string, toolbox: Toolbox, added: Iterable<string>): ScriptError | null {
    return this.look(source, toolbox, added)[0];
  }

  /** The error, and the globals that the script sets; null where these are not known. `added` are globals of the host. */
  private look(source: string, toolbox: Toolbox, added: Iterable<string>): [ScriptError | null, Set<string> | null] {
    if (source.length > LONGEST) return [null, null];
    const listing = new Listing(source);
    const parsed = listing.parsed?.failure === null ? listing.parsed : listing.parsedAsValue;
    if (parsed === null || parsed.failure !== null) return [null, null];
    const dynamic = /_G|_ENV|rawset|setmetatable/.test(source);
    const walk = new Walk(listing, parsed, toolbox, new Set([...this.names, ...added]), this.mayMiss || dynamic);
    const [first, ...others] = walk.findings();
    const defines = dynamic ? null : parsed.defines;
    if (first === undefined) return [null, defines];
    const more = others.map(({ line, message, hint }) => `\nalso on line ${line}: ${message}${hint === null ? "" : `; ${hint}`}`);
    const { line, column, hint, code, tool } = first;
    const traceback = pointedLine(listing.line(line) ?? "", line, column);
    return [new ScriptError("check", first.message + more.join(""), { line, column, hint, code, tool, traceback }), defines];
  }

  /** The globals of earlier scripts are gone. */
  forget(): void {
    this.names.clear();
    this.mayMiss = false;
  }

  /** A script runs unchecked: it may set any global. */
  skip(): void {
    this.mayMiss = true;
  }
}

/** One look at one script. */
class Walk {
  private readonly found = new Map<string, Finding>();
  private readonly scopes: Set<string>[] = [];
  private readonly tested = new Set<string>();
  private readonly caught: Set<string>;
  private readonly within: string[] = [];
  private readonly tree: Tree = new Map();
  /** Above 0 where an error is caught, or something only tried. */
  private lenient = 0;

  constructor(
    private readonly listing: Listing,
    private readonly parsed: Parsed,
    private readonly toolbox: Toolbox,
    private readonly names: ReadonlySet<string>,
    private readonly openNames: boolean,
  ) {
    this.caught = caughtFunctions(parsed.body!);
    for (const tool of toolbox) {
      if (tool.policy === "direct") continue;
      put(this.tree, tool.namespace === null ? [tool.name] : [tool.namespace, tool.name], tool);
      put(this.tree, toolbox.alias(tool).split("."), tool);
    }
  }

  findings(): Finding[] {
    this.block(this.parsed.body!);
    return [...this.found.values()].sort((a, b) => a.line - b.line || a.column - b.column).slice(0, MOST_FINDINGS);
  }

  private error(at: number, message: string, hint: string | null = null, code: string | null = null, tool: string | null = null): void {
    if (this.lenient > 0 || this.within.some((name) => this.caught.has(name))) return;
    const [line, column] = this.listing.place(at);
    const key = `${line}\0${message}`;
    if (!this.found.has(key)) this.found.set(key, { line, column, message, hint, code, tool });
  }

  private fact(at: number, which: string, texts: Record<string, string>): void {
    const written = form(which, texts);
    this.error(at, factMessage(which, texts), written === "" ? null : `write: ${written}`);
  }

  // Statements

  private block(body: Statement[], declared: string[] = []): void {
    this.scopes.push(new Set(declared));
    for (const statement of body) this.statement(statement);
    this.scopes.pop();
  }

  private statement(node: Statement): void {
    switch (node.type) {
      case "block":
        return this.block(node.body);
      case "declare": {
        const own = node.values.length === 1 && node.values[0]!.type === "function" ? node.names : [];
        this.within.push(...own);
        node.values.forEach((value) => this.used(value));
        this.within.length -= own.length;
        this.oneValue(node);
        return this.declare(node.names);
      }
      case "assign":
        node.values.forEach((value) => this.used(value));
        for (const target of node.targets) {
          if (target.type === "field" || target.type === "item") this.value(target.value);
          if (target.type === "item") this.value(target.key);
        }
        return;
      case "define":
        if (node.local && node.target.type === "name") this.declare([node.target.name]);
        this.within.push(node.target.type === "name" ? node.target.name : "");
        this.value(node.function);
        this.within.pop();
        return;
      case "evaluate":
        return this.value(node.value);
      case "return":
        return node.values.forEach((value) => this.used(value));
      case "branches":
        for (const [condition, body] of node.branches) {
          if (condition !== null) {
            this.test(condition);
            this.value(condition);
          }
          this.block(body);
        }
        return;
      case "loop":
        if (node.condition !== null) this.value(node.condition);
        return this.block(node.body);
      case "count":
        node.bounds.forEach((value) => this.value(value));
        return this.block(node.body, [node.name]);
      case "each":
        node.values.forEach((value) => this.value(value));
        this.overTool(node.values[0]!);
        return this.block(node.body, node.names);
    }
  }

  private declare(names: string[]): void {
    for (const name of names) this.scopes.at(-1)!.add(name);
  }

  // Values

  private value(node: Expression): void {
    switch (node.type) {
      case "name":
        return this.name(node.name, node.at, false);
      case "field":
        this.notCalled(node);
        return node.value.type === "name" ? this.name(node.value.name, node.value.at, true) : this.value(node.value);
      case "item":
        this.value(node.value);
        return this.value(node.key);
      case "length":
        return this.value(node.value);
      case "call":
        return this.call(node);
      case "method":
        return this.method(node);
      case "record":
        return node.entries.forEach(([, value]) => this.value(value));
      case "function":
        return this.block(node.body, node.parameters);
      case "operation":
        return this.operation(node);
      case "other":
        return node.parts.forEach((value) => this.value(value));
      case "constant":
    }
  }

  /** A word of another language that nothing sets. */
  private name(name: string, at: number, indexed: boolean): void {
    if (!this.isUnset(name)) return;
    const word = entry(words.constants, name);
    const told = indexed ? advice(name, false, []) : null;
    if (word !== undefined) this.error(at, `'${name}' is not defined`, fact("alternative_constant", { language: "Lua", word, name }));
    else if (told !== null) this.error(at, `there is no '${name}'`, told);
  }

  private operation(node: Operation): void {
    const { operator, left, right } = node;
    const asksNil = (operator === "==" || operator === "~=") && right.type === "constant" && right.value === null;
    if (operator === "and" || operator === "or") return this.junction(node);
    if (asksNil) this.test(left);
    this.lenient += Number(asksNil);
    this.value(left);
    this.lenient -= Number(asksNil);
    if (asksNil) return;
    this.value(right);
    for (const [side, other] of [[left, right], [right, left]] as const) {
      if (side.type === "constant") this.calculated(node, side.value);
      if (other.type === "constant" && (operator === "==" || operator === "~=") && this.compared(node, side, other)) return;
    }
  }

  /** `"a" + 1`. */
  private calculated({ operator, at }: Operation, value: unknown): void {
    if (!ARITHMETIC.includes(operator) || typeof value !== "string" || NUMERAL.test(value)) return;
    this.error(at, `'${operator}' cannot calculate with the string ${quoted(value)}`, operator === "+" ? "join strings with .." : null);
  }

  /** `not x == 5`, `type(x) == "array"`; whether it is one of them. */
  private compared({ operator, at }: Operation, side: Expression, constant: Extract<Expression, { type: "constant" }>): boolean {
    const { value } = constant;
    const text = typeof value === "number" ? this.listing.textOf(constant) : quoted(value);
    if (side.type === "other" && side.what === "not" && (typeof value === "string" || /^\d{1,15}$/.test(text))) {
      const inner = QUOTABLE.includes(side.parts[0]!.type) ? this.listing.textOf(side.parts[0]!) : "a";
      const hint = `write: ${inner} ${operator === "==" ? "~=" : "=="} ${text}`;
      this.error(at, `'not' applies to ${inner} alone: the comparison with ${text} is always false`, hint);
      return true;
    }
    const asksType = side.type === "call" && side.function.type === "name" && this.libraryOf(side.function) === "type";
    if (!asksType || typeof value !== "string" || TYPES.includes(value)) return false;
    const hint = 'lists and objects are "table"; the others are "nil", "boolean", "number", "string" and "function"';
    this.error(at, `type never returns ${text}`, hint);
    return true;
  }

  /** A value that is used: functions that return nothing have none. */
  private used(node: Expression): void {
    this.value(node);
    const name = node.type === "call" ? this.libraryOf(node.function) : null;
    const does = name === null ? undefined : entry(words.no_value, name);
    if (node.type !== "call" || does === undefined) return;
    const list = node.arguments.length > 0 ? this.listing.textOf(node.arguments[0]!) : "the list";
    this.error(node.at, `${name} returns nothing`, `it ${does} the list itself: call it alone, then use ${list}`);
  }

  /** `local a, b = parallel{…}` and `local ok, r = tools.x{…}`, which give one value. */
  private oneValue({ names, values: [call, ...others], at }: Extract<Statement, { type: "declare" }>): void {
    const [first, second] = names;
    if (call?.type !== "call" || others.length > 0 || first === undefined || second === undefined) return;
    const name = this.libraryOf(call.function);
    if (name !== null && ["parallel", "parallel.map", "parallel.settle"].includes(name)) {
      const parts = names.map((_, index) => `results[${index + 1}]`).join(", ");
      this.error(at, `${name} returns one list: '${second}' gets nothing`, `write: local results = ${name}…, then ${parts}`);
    } else if (["ok", "success", "status"].includes(first) && this.toolOf(call.function) !== null) {
      const hint = `write: local ${first}, ${second} = pcall(${this.listing.textOf(call.function)}, {…})`;
      this.error(at, `a tool returns one value, and raises an error if it fails: '${second}' gets nothing`, hint);
    }
  }

  /** `for _, x in ipairs(tools.search) do`. */
  private overTool(source: Expression): void {
    const given = source.type === "call" && /^i?pairs$/.test(this.libraryOf(source.function) ?? "") ? source.arguments[0] : undefined;
    const tool = given === undefined ? null : this.toolOf(given);
    if (tool !== null) this.fact(given!.at, "not_called", { tool: toolName(this.toolbox.alias(tool)) });
  }

  /** `tools.search.items`; whether it is that. */
  private notCalled({ value, name, key }: Extract<Expression, { type: "field" }>): boolean {
    const tool = this.toolOf(value);
    if (tool === null || (value.type === "field" && this.toolOf(value.value) !== null)) return false; // said of the first field behind it
    const texts = { tool: toolName(this.toolbox.alias(tool)) };
    this.error(key, `${factMessage("not_called", texts)}: it has no field '${name}'`, `write: ${form("not_called", texts)}.${name}`);
    return true;
  }

  /** `a or b`, `a and b`: what is only tried, beside another way to the same value, need not be there. */
  private junction(node: Operation): void {
    const parts: Expression[] = [node.left, node.right];
    for (let first = parts[0]!; first.type === "operation" && first.operator === node.operator; first = parts[0]!) {
      parts.splice(0, 1, first.left, first.right);
    }
    const bases = parts.map((part) => tried(part, node.operator));
    parts.forEach((part, index) => {
      const tries = bases[index] !== "" && bases.filter((base) => base === bases[index]).length > 1;
      if (index < parts.length - 1) this.test(part);
      this.lenient += Number(tries);
      this.value(part);
      this.lenient -= Number(tries);
    });
  }

  private call(node: Extract<Expression, { type: "call" }>): void {
    const { function: target, arguments: given } = node;
    const library = this.libraryOf(target);
    if (library !== null) return this.libraryCall(library, node);
    const tool = this.called(target, given);
    given.forEach((value) => this.used(value));
    if (tool !== null && node.exact) this.arguments(tool, node.at, given);
  }

  /** The tool that is called; null for anything else. */
  private called(target: Expression, given: Expression[]): Tool | null {
    if (target.type === "name") this.unknownFunction(target.name, target.at, given);
    else if (target.type !== "field") this.value(target);
    const path = target.type === "field" ? this.toolPath(target) : null;
    if (target.type !== "field" || path === null) {
      if (target.type === "field") this.unknownMember(target, given);
      return null;
    }
    if (this.notCalled(target)) return null;
    const found = this.find(path);
    if (found === undefined && this.tested.has(dotted(target))) return null;
    if (found === undefined) this.error(target.key, ...this.unknown(path.join(".")), "unknown_tool", path.join("."));
    else if (found instanceof Map) this.error(target.key, `'${path.join(".")}' is a namespace of tools, not a tool`);
    return found === undefined || found instanceof Map ? null : found;
  }

  private unknownFunction(name: string, at: number, given: Expression[]): void {
    if (!this.isUnset(name)) return;
    const fitting = [...this.toolbox].map((tool) => this.toolbox.alias(tool)).filter((alias) => lastOf(alias) === name);
    const told = advice(name, true, given.map((value) => this.listing.textOf(value)));
    const text = given.length === 1 && given[0]!.type === "constant" ? given[0]!.value : null;
    if (fitting.length === 1) this.fact(at, "tool_name", { name, tool: toolName(fitting[0]!) });
    else if (told !== null) this.error(at, `there is no function '${name}'`, told);
    else if (name === "f" && typeof text === "string" && text.includes("{")) this.fact(at, "f_string", {});
  }

  private unknownMember(target: Extract<Expression, { type: "field" }>, given: Expression[]): void {
    this.value(target);
    const { value, name, key } = target;
    if (value.type !== "name" || !isLibrary(value.name) || value.name === "parallel" || !this.isOwn(value.name)) return;
    this.error(key, `there is no function ${value.name}.${name}`, memberAdvice(value.name, name, given.map((each) => this.listing.textOf(each))));
  }

  /** Functions of the library, some of which call others or catch errors. */
  private libraryCall(name: string, node: Extract<Expression, { type: "call" }>): void {
    const { arguments: given } = node;
    const settles = name === "parallel.settle" || (name === "parallel.map" && given.length > 2);
    const catches = ["pcall", "xpcall", "type"].includes(name) || settles;
    this.lenient += Number(catches);
    given.forEach((value) => (name === "print" ? this.value(value) : this.used(value)));
    this.lenient -= Number(catches);
    const [first, second] = given;
    if (name === "tonumber" && given.length === 1 && !node.exact) this.numberOf(first!);
    if (name === "table.sort" && second?.type === "constant" && typeof second.value === "string") {
      const key = /^[\p{L}_][\p{L}\p{N}_]*$/u.test(second.value) ? `.${second.value}` : `["${second.value}"]`;
      const message = "table.sort takes a function that compares two elements, not the name of a field";
      this.error(second.at, message, `write: function(a, b) return a${key} < b${key} end`);
    }
    const entries = first?.type === "record" && name.startsWith("parallel") && name !== "parallel.map" ? first.entries : null;
    if ((name === "pcall" || name === "xpcall" || name === "pages") && first?.type === "call" && this.toolOf(first.function) !== null) {
      const texts = first.arguments.map((value) => this.listing.textOf(value)).join(", ") || "{}";
      this.fact(first.at, "called_too_early", { function: name === "pages" ? name : "pcall", tool: this.listing.textOf(first.function), arguments: texts });
    }
    for (const [, item] of entries ?? []) {
      if (item.type !== "call" || this.toolOf(item.function) === null) continue;
      const written = form("closure", { value: this.listing.textOf(item) });
      this.error(item.at, "parallel expects functions: here the tool is called before it", `write: ${written}`);
    }
    const paged = name === "pages" && first !== undefined ? this.toolOf(first) : null;
    if (paged !== null && node.exact) this.arguments(paged, node.at, given.slice(1, 2));
  }

  /** `tonumber(s:gsub(…))`. */
  private numberOf(given: Expression): void {
    const replaces = given.type === "method" ? given.name === "gsub" : given.type === "call" && this.libraryOf(given.function) === "string.gsub";
    if (!replaces) return;
    const message = "gsub returns two values, and tonumber takes the second as a base";
    this.error(given.at, message, `write: tonumber((${this.listing.textOf(given)}))`);
  }

  private method(node: Extract<Expression, { type: "method" }>): void {
    this.value(node.value);
    node.arguments.forEach((value) => this.value(value));
    const path = this.toolPath(node.value);
    const space = path === null ? undefined : path.length === 0 ? this.tree : this.find(path);
    if (!(space instanceof Map)) return;
    const member = space.get(node.name);
    const written = member === undefined || member instanceof Map ? [...path!, node.name].join(".") : this.toolbox.alias(member);
    this.fact(node.key, "colon_call", { tool: toolName(written) });
  }

  /** What the call itself would say of these arguments, whatever the run puts in place of what it alone knows. */
  private arguments(tool: Tool, at: number, given: Expression[]): void {
    const problem: ArgumentError | null = tool.binder.certainProblem(given.map((value) => literal(value)), tool.path, 1);
    if (problem !== null) this.error(at, problem.message, null, problem.code, tool.path);
  }

  /** The message and hint for a tool that scripts cannot call. */
  private unknown(path: string): [string, string | null] {
    if (this.toolbox.get(path)?.policy === "direct") return [`the tool '${path}' cannot be called from a script: it is called directly`, null];
    const callable = [...this.toolbox].filter((tool) => tool.policy !== "direct").map((tool) => this.toolbox.alias(tool));
    return [`unknown tool '${path}'`, unknownTool(path, callable)];
  }

  // What names mean

  private isDeclared(name: string): boolean {
    return this.scopes.some((scope) => scope.has(name)) || this.parsed.assigned.has(name);
  }

  /** Whether a name is what the language gives it. */
  private isOwn(name: string): boolean {
    return !this.isDeclared(name) && (words.base.includes(name) || isLibrary(name) || GLOBALS.includes(name));
  }

  /** Whether nothing gives a global of that name a value. */
  private isUnset(name: string): boolean {
    return !this.isDeclared(name) && !this.isOwn(name) && !this.tested.has(name) && !this.openNames && !this.names.has(name) && !/^_\d*$/.test(name);
  }

  /** The script asks whether a global or a tool exists: it may use it from here on. */
  private test(node: Expression): void {
    if (node.type === "name" || node.type === "field") this.tested.add(dotted(node));
  }

  /** The names behind `tools`; null for anything else. */
  private toolPath(node: Expression): string[] | null {
    const names: string[] = [];
    let inner = node;
    for (; inner.type === "field"; inner = inner.value) names.unshift(inner.name);
    return inner.type === "name" && inner.name === "tools" && this.isOwn("tools") ? names : null;
  }

  private toolOf(node: Expression): Tool | null {
    const path = this.toolPath(node);
    const found = path === null ? undefined : this.find(path);
    return found === undefined || found instanceof Map ? null : found;
  }

  /** The tool or namespace of that path; behind a tool, the tool. */
  private find(path: string[]): Tree | Tool | undefined {
    let at: Tree | Tool | undefined = this.tree;
    for (const name of path) if (at instanceof Map) at = at.get(name);
    return at;
  }

  /** `print`, `string.format`: the library function that a call names; null for anything else. */
  private libraryOf(node: Expression): string | null {
    if (node.type === "name") return node.name !== "tools" && this.isOwn(node.name) ? node.name : null;
    if (node.type !== "field" || node.value.type !== "name") return null;
    const library = node.value.name;
    return isLibrary(library) && isMember(library, node.name) && this.isOwn(library) ? `${library}.${node.name}` : null;
  }
}

/** The script's own functions that it calls where errors are caught, and those that they call. */
function caughtFunctions(body: Statement[]): Set<string> {
  const caught = new Set<string>();
  const mentions = new Map<string, Set<string>>();
  const own = (name: string): Set<string> => mentions.get(name) ?? mentions.set(name, new Set()).get(name)!;
  const look = (node: unknown, names: Set<string>): void => {
    if (Array.isArray(node)) return node.forEach((part) => look(part, names));
    if (typeof node !== "object" || node === null) return;
    const part = node as Expression | Statement;
    if (part.type === "name") names.add(part.name);
    else if (part.type === "call" && part.function.type === "name" && /^x?pcall$/.test(part.function.name)) look(part.arguments, caught);
    else if (part.type === "define" && part.target.type === "name") look(part.function, own(part.target.name));
    else if (part.type === "declare" && part.names.length === 1) look(part.values, own(part.names[0]!));
    else Object.values(part).forEach((inner) => look(inner, names));
  };
  look(body, new Set());
  for (const name of caught) for (const inner of mentions.get(name) ?? []) caught.add(inner); // a Set is read while it grows
  return caught;
}

/** A written value as data, UNKNOWN where only the run knows a part of it. */
function literal(node: Expression, depth = 0): unknown {
  if (node.type === "constant") return typeof node.value === "number" && !Number.isSafeInteger(Math.trunc(node.value)) ? UNKNOWN : node.value;
  if (node.type !== "record" || !node.exact || depth > DEEPEST) return UNKNOWN;
  const parts = node.entries.map(([name, item], index): [string | number, unknown] => [name ?? positionOf(node.entries, index), literal(item, depth + 1)]);
  if (depth > 0 && parts.some(([, value]) => value === UNKNOWN)) return UNKNOWN;
  if (node.isList) return depth === 0 && parts.some(([, value]) => value === UNKNOWN) ? UNKNOWN : parts.map(([, value]) => value);
  const kept = parts.filter(([name, value]) => value !== null || typeof name === "number");
  return kept.some(([name]) => typeof name === "number") ? new Map(kept) : Object.fromEntries(kept);
}

/** The position of an entry without a name, among those. */
function positionOf(entries: [string | null, Expression][], index: number): number {
  return entries.slice(0, index + 1).filter(([name]) => name === null).length;
}

/** A written value as Python's JSON has it, cut. */
function quoted(value: unknown): string {
  const text = [...(JSON.stringify(value) ?? "")];
  return text.length <= 60 ? text.join("") : `${text.slice(0, 59).join("")}…`;
}

/** The variable that a part of `a or b` reads, or that a part of either compares; "" for anything else. */
function tried(part: Expression, junction: string): string {
  if (part.type !== "operation" || part.operator !== (junction === "or" ? "==" : "~=")) return junction === "or" ? rootOf(part) : "";
  return rootOf(part.left.type === "call" ? (part.left.arguments[0] ?? part.left) : part.left);
}

function rootOf(node: Expression): string {
  let inner = node;
  while (inner.type === "field" || inner.type === "item" || inner.type === "method") inner = inner.value;
  return inner.type === "name" ? inner.name : "";
}

/** `tools.shop.search`; empty for what is not a chain of names. */
function dotted(node: Expression): string {
  if (node.type === "name") return node.name;
  const base = node.type === "field" ? dotted(node.value) : "";
  return node.type === "field" && base !== "" ? `${base}.${node.name}` : "";
}

function put(root: Tree, path: string[], tool: Tool): void {
  let at = root;
  for (const part of path.slice(0, -1)) {
    const inner = at.get(part);
    const next: Tree = inner instanceof Map ? inner : new Map();
    at.set(part, next);
    at = next;
  }
  if (!(at.get(path.at(-1)!) instanceof Map)) at.set(path.at(-1)!, tool);
}
