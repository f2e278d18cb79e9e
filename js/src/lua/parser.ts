/**
 * A parser of Lua 5.4 that makes a tree of a script, or says where it stops being Lua and in the middle of what.
 *
 * It follows the reference parser step by step, as the one of the Python package does, so that its verdict names the same word.
 */

import { stringValue, type Token } from "./lexer.js";
import type { Expression, Record_, Statement } from "./tree.js";

const DEEPEST = 60; // levels of nesting, as in the Python package
const PRECEDENCE: Record<string, number> = {
  or: 1, and: 2, "<": 3, ">": 3, "<=": 3, ">=": 3, "~=": 3, "==": 3, "|": 4, "~": 5, "&": 6, "<<": 7, ">>": 7,
  "..": 8, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10, "^": 12,
};
const RIGHT = new Set(["..", "^"]);
const UNARY = new Set(["not", "-", "~", "#"]);
const SUFFIXES = new Set([".", "[", ":", "(", "string", "{"]);
const SPELLED = new Set(["keyword", "op", "eof"]);
const CONSTANTS = new Set(["number", "string", "nil", "true", "false", "..."]);
const WORDS: Record<string, boolean | null> = { nil: null, true: true, false: false };
const BLOCK_END = new Set(["else", "elseif", "end", "until"]);

/** Where the script stops being Lua. */
export interface Failure {
  index: number;
  /** What Lua says, without the "near" part. */
  text: string;
  /** Where the innermost statement began. */
  statement: number;
  /** Blocks that are not closed yet: the keyword of each and where it stands. */
  blocks: [string, number][];
  /** Open brackets of the innermost statement, outermost first. */
  brackets: number[];
  /** Whether the last statement before was a return, so that the block had to end. */
  afterReturn: boolean;
}

/** What the parser saw, up to the failure if there is one. Numbers are indexes of words, in the tree too. */
export interface Parsed {
  body: Statement[] | null;
  failure: Failure | null;
  /** Each block's keyword and the `end` or `until` that closed it. */
  pairs: [number, number][];
  /** Names declared by `local` or as loop variables. */
  locals: number[];
  parameters: number[];
  /** The (last) names of functions defined by `function name` and `local function name`. */
  functions: number[];
  /** `return`s of the main chunk itself. */
  returns: number[];
  /** Globals that exist once it has run. */
  defines: Set<string>;
  /** How often the script assigns to each name, declarations aside. */
  assigned: Map<string, number>;
}

/** Parses a script, or with `asValue` what follows a `return`. Null when it is nested too deeply to say. */
export function parse(tokens: readonly Token[], asValue = false): Parsed | null {
  const parser = new Parser(tokens);
  let body: Statement[] | null = null;
  let failure: Failure | null = null;
  try {
    body = parser.outline(asValue);
  } catch (problem) {
    if (problem instanceof TooDeep) return null;
    if (!(problem instanceof NotLua)) throw problem;
    failure = parser.failure(problem.text);
  }
  const { pairs, locals, parameters, functions, returns, defines, assigned } = parser;
  return { body, failure, pairs, locals, parameters, functions, returns, defines, assigned };
}

/** Where the expression that begins at `index` ends, or with `many` the list of expressions; null when there is none. */
export function expressionEnd(tokens: readonly Token[], index: number, many = false): number | null {
  const parser = new Parser(tokens, index);
  try {
    parser.look();
    if (many) parser.expressions();
    else parser.expression();
  } catch (problem) {
    if (problem instanceof NotLua || problem instanceof TooDeep) return null;
    throw problem;
  }
  return parser.at;
}

/** The grammar does not allow the current word; `text` is what Lua says, without the "near" part. */
class NotLua {
  constructor(readonly text: string) {}
}

/** The script is nested deeper than we follow. */
class TooDeep {}

class Parser {
  pairs: [number, number][] = [];
  locals: number[] = [];
  parameters: number[] = [];
  functions: number[] = [];
  returns: number[] = [];
  defines = new Set<string>();
  assigned = new Map<string, number>();
  private text = "";
  private brackets: number[] = [];
  /** What the latest expression ends with: "call" or "..." (any number of values), "place" (what can be assigned to) or "value". */
  private endsWith = "";
  private depth = 0;
  private statementAt: number;
  private afterReturn = false;
  private blocks: [string, number][] = [];
  private functionDepth = 0;
  private scriptLocals = new Set<string>();

  constructor(private readonly tokens: readonly Token[], public at = 0) {
    this.statementAt = at;
  }

  failure(text: string): Failure {
    const { at: index, statementAt: statement, afterReturn } = this;
    return { index, text, statement, blocks: [...this.blocks], brackets: [...this.brackets], afterReturn };
  }

  outline(asValue: boolean): Statement[] {
    this.look();
    const body: Statement[] = asValue ? [{ type: "return", at: 0, values: this.returnValues() }] : this.block();
    if (this.text !== "<eof>") throw new NotLua("<eof> expected");
    return body;
  }

  /** See the current word: `text` is its text, or its kind where there are many of that kind. */
  look(): void {
    this.at -= 1;
    this.next();
  }

  expressions(): Expression[] {
    const values = [this.expression()];
    while (this.accept(",")) values.push(this.expression());
    return values;
  }

  expression(): Expression {
    this.enter();
    let value = this.operand();
    if (Object.hasOwn(PRECEDENCE, this.text)) value = this.operation(value);
    this.depth -= 1;
    return value;
  }

  // Moving over the tokens

  private word(index: number): string {
    return this.tokens[index]!.text;
  }

  private next(): void {
    const token = this.tokens[(this.at += 1)]!;
    this.text = SPELLED.has(token.kind) ? token.text : token.kind;
    if (token.kind === "bad") throw new NotLua(token.problem);
  }

  private is(text: string): boolean {
    return this.text === text;
  }

  private accept(text: string): boolean {
    if (this.text !== text) return false;
    this.next();
    return true;
  }

  private expect(text: string): void {
    if (this.text !== text) throw new NotLua(`'${text}' expected`);
    this.next();
  }

  private name(): number {
    if (this.text !== "name") throw new NotLua("<name> expected");
    this.next();
    return this.at - 1;
  }

  /** The end of what `opener` began. */
  private close(text: string, opener: number): void {
    if (this.text !== text) {
      const began = this.tokens[opener]!;
      const far = began.line !== this.tokens[this.at]!.lastLine ? ` (to close '${began.text}' at line ${began.line})` : "";
      throw new NotLua(`'${text}' expected${far}`);
    }
    this.next();
  }

  private enter(): void {
    this.depth += 1;
    if (this.depth > DEEPEST) throw new TooDeep();
  }

  // Expressions

  /** Operands joined by operators, grouped by precedence. */
  private operation(first: Expression): Expression {
    const values = [first];
    const waiting: [number, number][] = [];
    const join = (): void => {
      const [, at] = waiting.pop()!;
      const [right, left] = [values.pop()!, values.pop()!];
      values.push({ type: "operation", at, operator: this.word(at), left, right, stop: 0 });
    };
    while (Object.hasOwn(PRECEDENCE, this.text)) {
      const [rank, operator, at] = [PRECEDENCE[this.text]!, this.text, this.at];
      this.next();
      while (waiting.length > 0 && (waiting.at(-1)![0] > rank || (waiting.at(-1)![0] === rank && !RIGHT.has(operator)))) join();
      waiting.push([rank, at]);
      values.push(this.operand());
    }
    while (waiting.length > 0) join();
    this.endsWith = "value";
    return values[0]!;
  }

  private operand(): Expression {
    const unary: number[] = [];
    while (UNARY.has(this.text)) {
      unary.push(this.at);
      this.next();
    }
    let value = this.simple();
    for (const at of unary.reverse()) {
      const operator = this.word(at);
      if (operator === "#") value = { type: "length", at, value, stop: 0 };
      else if (operator === "-" && value.type === "constant" && typeof value.value === "number") value = { type: "constant", at, value: -value.value, stop: 0 };
      else value = { type: "other", at, parts: [value], what: operator, stop: 0 };
      this.endsWith = "value";
    }
    return value;
  }

  private simple(): Expression {
    if (CONSTANTS.has(this.text)) return this.constant();
    if (this.is("{")) return this.table();
    if (this.text !== "function") return this.suffixed();
    const [opener, statement, after] = [this.at, this.statementAt, this.afterReturn];
    this.next();
    const value = this.function(opener);
    [this.statementAt, this.afterReturn] = [statement, after];
    this.endsWith = "value";
    return value;
  }

  private constant(): Expression {
    const [at, kind] = [this.at, this.text];
    this.next();
    this.endsWith = kind === "..." ? kind : "value";
    if (kind === "...") return { type: "other", at, parts: [], what: kind, stop: at + 1 };
    const text = this.word(at);
    const value = kind === "string" ? stringValue(text) : kind === "number" ? Number(text) : WORDS[kind]!;
    return { type: "constant", at, value, stop: at + 1 };
  }

  /** A name or a value in parentheses, with all the fields, indexes and calls behind it. */
  private suffixed(): Expression {
    const at = this.at;
    let value: Expression;
    let endsWith: string;
    if (this.is("name")) {
      this.next();
      [value, endsWith] = [{ type: "name", at, name: this.word(at), stop: at + 1 }, "place"];
    } else if (this.is("(")) {
      this.open();
      [value, endsWith] = [this.expression(), "value"];
      this.shut(")", at);
    } else throw new NotLua("unexpected symbol");
    while (SUFFIXES.has(this.text)) {
      endsWith = "place";
      if (this.accept(".")) {
        const key = this.name();
        value = { type: "field", at, value, name: this.word(key), key, stop: this.at };
      } else if (this.is("[")) {
        const key = this.key();
        value = key.type === "constant" && typeof key.value === "string"
          ? { type: "field", at, value, name: key.value, key: key.at, stop: this.at }
          : { type: "item", at, value, key, stop: this.at };
      } else if (this.accept(":")) {
        const key = this.name();
        const given = this.arguments();
        value = { type: "method", at, value, name: this.word(key), arguments: given, key, stop: this.at };
        endsWith = "call";
      } else {
        this.endsWith = "value";
        const given = this.arguments();
        value = { type: "call", at, function: value, arguments: given, exact: !["call", "..."].includes(this.endsWith), stop: this.at };
        endsWith = "call";
      }
    }
    this.endsWith = endsWith;
    return value;
  }

  private arguments(): Expression[] {
    if (this.is("string")) return [this.constant()];
    if (this.is("{")) return [this.table()];
    if (this.text !== "(") throw new NotLua("function arguments expected");
    const opener = this.open();
    const given = this.is(")") ? [] : this.expressions();
    this.shut(")", opener);
    return given;
  }

  private table(): Record_ {
    this.enter();
    const at = this.open();
    const entries: [string | null, Expression][] = [];
    let exact = true;
    while (this.text !== "}") {
      const first = this.at;
      let name: string | null = null;
      let key: Expression | null = null;
      if (this.is("name") && this.word(first + 1) === "=") {
        name = this.word(first);
        this.next();
        this.next();
      } else if (this.is("[")) {
        key = this.key();
        this.expect("=");
        if (key.type === "constant" && typeof key.value === "string") [name, key] = [key.value, null];
      }
      let value = this.expression();
      if (key !== null) {
        exact = false;
        name = "";
        value = { type: "other", at: first, parts: [key, value], what: "", stop: 0 };
      }
      entries.push([name, value]);
      if (!this.accept(",") && !this.accept(";")) break;
    }
    if (entries.length > 0 && entries.at(-1)![0] === null && ["call", "..."].includes(this.endsWith)) exact = false;
    this.shut("}", at);
    this.depth -= 1;
    this.endsWith = "value";
    return { type: "record", at, entries, exact, isList: entries.length > 0 && entries.every(([name]) => name === null), stop: this.at };
  }

  /** `[expression]`. */
  private key(): Expression {
    this.open();
    const key = this.expression();
    this.expect("]");
    this.brackets.pop();
    return key;
  }

  private open(): number {
    const opener = this.at;
    this.brackets.push(opener);
    this.next();
    return opener;
  }

  private shut(text: string, opener: number): void {
    this.close(text, opener);
    this.brackets.pop();
  }

  // Statements

  private block(): Statement[] {
    this.enter();
    const statements: Statement[] = [];
    this.afterReturn = false;
    while (this.text !== "<eof>" && !BLOCK_END.has(this.text)) {
      this.statementAt = this.at;
      if (this.is("return")) {
        if (this.functionDepth === 0) this.returns.push(this.at);
        this.next();
        statements.push({ type: "return", at: this.statementAt, values: this.returnValues() });
        this.afterReturn = true;
        break;
      }
      if (this.is(";")) this.next();
      else {
        const statement = this.statement();
        if (statement !== null) statements.push(statement);
      }
      this.afterReturn = false;
    }
    this.depth -= 1;
    return statements;
  }

  private returnValues(): Expression[] {
    const ends = BLOCK_END.has(this.text) || this.text === "<eof>" || this.is(";");
    const values = ends ? [] : this.expressions();
    this.accept(";");
    return values;
  }

  /** One statement; null for a jump or a label. */
  private statement(): Statement | null {
    const at = this.at;
    switch (this.text) {
      case "if":
        return this.branches();
      case "while": {
        this.next();
        const condition = this.expression();
        return { type: "loop", at, condition, body: this.do(at) };
      }
      case "do":
        return { type: "block", at, body: this.blockUntil("end") };
      case "for":
        return this.for();
      case "repeat": {
        const body = this.blockUntil("until"); // the condition sees the block's locals
        return { type: "loop", at, condition: null, body: [...body, { type: "evaluate", at, value: this.expression() }] };
      }
      case "function":
        return this.functionStatement();
      case "local":
        this.next();
        return this.local(at);
      case "break":
        this.next();
        return null;
      case "::":
        this.next();
        this.name();
        this.expect("::");
        return null;
      case "goto":
        this.next();
        this.name();
        return null;
    }
    return this.expressionStatement();
  }

  /** The block behind the current word, up to the `end` of the statement that began at `opener`. */
  private blockUntil(end: string, opener = this.at): Statement[] {
    this.blocks.push([this.word(opener), opener]);
    this.next();
    const block = this.block();
    this.finishBlock(end, opener);
    return block;
  }

  private finishBlock(end: string, opener: number): void {
    const closing = this.at;
    this.close(end, opener);
    this.pairs.push([opener, closing]);
    this.afterReturn = false;
    this.blocks.pop();
  }

  private branches(): Statement {
    const opener = this.at;
    const branches: [Expression | null, Statement[]][] = [];
    this.blocks.push(["if", opener]);
    do {
      [this.statementAt, this.afterReturn] = [this.at, false];
      this.next();
      const condition = this.expression();
      this.expect("then");
      branches.push([condition, this.block()]);
    } while (this.is("elseif"));
    if (this.accept("else")) branches.push([null, this.block()]);
    this.finishBlock("end", opener);
    return { type: "branches", at: opener, branches };
  }

  private do(opener: number): Statement[] {
    if (this.text !== "do") throw new NotLua("'do' expected");
    return this.blockUntil("end", opener);
  }

  private for(): Statement {
    const at = this.at;
    this.next();
    const names = [this.name()];
    this.locals.push(names[0]!);
    if (this.accept("=")) {
      const bounds = [this.expression()];
      this.expect(",");
      bounds.push(this.expression());
      if (this.accept(",")) bounds.push(this.expression());
      return { type: "count", at, name: this.word(names[0]!), bounds, body: this.do(at) };
    }
    if (this.text !== "," && this.text !== "in") throw new NotLua("'=' or 'in' expected");
    while (this.accept(",")) {
      names.push(this.name());
      this.locals.push(names.at(-1)!);
    }
    this.expect("in");
    const values = this.expressions();
    return { type: "each", at, names: names.map((name) => this.word(name)), values, body: this.do(at) };
  }

  private functionStatement(): Statement {
    const at = this.at;
    this.next();
    const first = this.name();
    let name = first;
    let target: Expression = { type: "name", at: name, name: this.word(name), stop: name + 1 };
    while (this.accept(".")) {
      name = this.name();
      target = { type: "field", at: first, value: target, name: this.word(name), key: name, stop: this.at };
    }
    const isMethod = this.accept(":");
    if (isMethod) {
      name = this.name();
      target = { type: "field", at, value: target, name: this.word(name), key: name, stop: 0 };
    }
    this.functions.push(name);
    this.assignTo(target);
    return { type: "define", at, target, function: this.function(at, isMethod ? ["self"] : []), local: false };
  }

  private function(opener: number, parameters: string[] = []): Expression {
    this.expect("(");
    while (this.text !== ")") {
      if (this.accept("...")) break;
      if (this.text !== "name") throw new NotLua("<name> or '...' expected");
      this.parameters.push(this.name());
      parameters.push(this.word(this.parameters.at(-1)!));
      if (!this.accept(",")) break;
      if (this.is(")")) throw new NotLua("<name> or '...' expected");
    }
    this.expect(")");
    const outer = this.brackets;
    this.brackets = [];
    this.blocks.push(["function", opener]);
    this.functionDepth += 1;
    this.statementAt = this.at;
    const body = this.block();
    this.functionDepth -= 1;
    this.finishBlock("end", opener);
    this.brackets = outer;
    return { type: "function", at: opener, parameters, body, stop: 0 };
  }

  private local(at: number): Statement {
    if (this.is("function")) {
      const opener = this.at;
      this.next();
      const name = this.name();
      this.locals.push(name);
      this.functions.push(name);
      const target: Expression = { type: "name", at: name, name: this.word(name), stop: 0 };
      const made = this.function(opener);
      this.declare([target.name]);
      return { type: "define", at, target, function: made, local: true };
    }
    const names: string[] = [];
    do {
      this.locals.push(this.name());
      names.push(this.word(this.locals.at(-1)!));
      if (this.accept("<")) {
        this.name();
        this.expect(">");
      }
    } while (this.accept(","));
    const values = this.accept("=") ? this.expressions() : [];
    this.declare(names);
    return { type: "declare", at, names, values };
  }

  /** From here on these are locals: to the end of the script, if they are not of an inner block. */
  private declare(names: string[]): void {
    if (this.depth === 1) for (const name of names) this.scriptLocals.add(name);
  }

  private expressionStatement(): Statement {
    const at = this.at;
    const targets = [this.suffixed()];
    if (this.text !== "=" && this.text !== ",") {
      if (this.endsWith !== "call") throw new NotLua("syntax error");
      return { type: "evaluate", at, value: targets[0]! };
    }
    for (;;) {
      if (this.endsWith !== "place") throw new NotLua("syntax error");
      if (!this.accept(",")) break;
      targets.push(this.suffixed());
    }
    this.expect("=");
    targets.forEach((target) => this.assignTo(target));
    return { type: "assign", at, targets, values: this.expressions() };
  }

  private assignTo(target: Expression): void {
    if (target.type !== "name") return;
    this.assigned.set(target.name, (this.assigned.get(target.name) ?? 0) + 1);
    if (!this.scriptLocals.has(target.name)) this.defines.add(target.name);
  }
}
