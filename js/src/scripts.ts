/** What is said about scripts: the check before a run and the explanation of errors, by the modules of the Python package. */

import { Checker as PythonChecker } from "#python/check/checker.js";
import { ScriptTools } from "#python/check/tools.js";
import { refusal } from "#python/languages/explanations.js";
import { explain as explainLua } from "#python/languages/lua/explain/compose.js";
import { Listing, lua_program } from "#python/languages/lua/syntax/listing.js";
import { lua_vocabulary } from "#python/languages/lua/vocabulary.js";
import { explain as explainRhai, rhai_vocabulary } from "#python/languages/rhai/vocabulary.js";
import * as program from "#python/languages/program.js";
import { line_naming } from "#python/audit/answer.js";
import type { Call } from "./audit/records.js";
import { ArgumentError, ScriptError } from "./errors.js";
import { openedBy, type Language } from "./languages.js";
import { fromWire } from "./values.js";
import { PySet, T } from "./python/values.js";
import type { Limits } from "./limits.js";
import type { Toolbox } from "./tools/toolbox.js";

/** What an engine reports of a run that failed. */
export interface EngineError {
  /** "syntax", "runtime", "tool" or "stop". */
  kind: string;
  message: string;
  limit: string;
  /** (chunk, line, function), innermost first. */
  frames: [string, number, string][];
  data: unknown;
  extra: Record<string, unknown>;
}

/** The error for the model. `sources` maps the chunks of a Repl's runs to their text; the run that failed is the last. */
export function explain(
  given: EngineError, sources: Map<string, string>, limits: Limits, language: Language, tools: readonly string[],
): ScriptError {
  const narrow = new Narrow(given.message, ...sources.values());
  const error = language.runtime === null ? divided(given, sources) : given;
  const names = Array.isArray(error.extra["names"]) ? error.extra["names"].map(String) : [];
  const reported = {
    ...error,
    message: narrow.text(error.message),
    frames: T(...error.frames.map(([chunk, line, name]) => T(chunk, line, name))),
    names: T(...names),
  };
  const narrowed = new Map([...sources].map(([chunk, source]) => [chunk, narrow.text(source)]));
  const spent = limits.toDict();
  const explained: ScriptError = (language.runtime === null ? explainLua : explainRhai)(
    reported, narrowed, new PySet(tools), { ...spent, to_dict: () => spent },
  );
  return narrow.error(explained);
}

/** Lua's wasm build does not keep the line of an integer division; the only one in the script is it. */
function divided(error: EngineError, sources: Map<string, string>): EngineError {
  const [, chunk, number, what] = /^(script(?:#\d+)?):(\d+): (attempt to (?:divide by zero|perform 'n(?:\/\/|%%?)0'))$/.exec(error.message) ?? [];
  if (chunk === undefined || !sources.has(chunk)) return error;
  const sign = what!.includes("%") ? "%" : "//";
  const tokens: { kind: string; text: string; line: number }[] = new Listing(sources.get(chunk)).tokens;
  const lines = [...new Set(tokens.filter(({ kind, text }) => kind === "op" && text === sign).map(({ line }) => line))];
  if (lines.length !== 1 || lines[0] === Number(number)) return error;
  const frames = error.frames.map((frame, index): typeof frame => (index === 0 && frame[0] === chunk ? [chunk, lines[0]!, frame[2]] : frame));
  return { ...error, message: `${chunk}:${lines[0]}: ${what}`, frames };
}

/**
 * Text in which each character has one unit, as in Python, so that columns count characters: those with two stand for others
 * meanwhile, which the text does not have.
 */
class Narrow {
  private readonly instead = new Map<string, string>();
  private readonly meant = new Map<string, string>();

  constructor(...texts: string[]) {
    const all = texts.join("");
    let code = 0x2800;
    for (const [wide] of all.matchAll(/[\ud800-\udbff][\udc00-\udfff]/g)) {
      if (this.instead.has(wide)) continue;
      while (all.includes(String.fromCharCode(code))) code += 1;
      if (code > 0xd7ff) return;
      const stands = String.fromCharCode(code);
      code += 1;
      this.instead.set(wide, stands);
      this.meant.set(stands, wide);
    }
  }

  text(text: string): string {
    return this.instead.size === 0 ? text : text.replace(/[\ud800-\udbff][\udc00-\udfff]/g, (wide) => this.instead.get(wide) ?? wide);
  }

  error(error: ScriptError): ScriptError {
    if (this.meant.size === 0) return error;
    const back = (text: string): string => [...text].map((mark) => this.meant.get(mark) ?? mark).join("");
    const hint = error.hint === null ? null : back(error.hint);
    const frames = error.frames.map((frame) => ({ ...frame, function: back(frame.function), source: frame.source === null ? null : back(frame.source) }));
    return new ScriptError(error.kind, back(error.message), { ...error.toDict(), hint, traceback: back(error.traceback), frames });
  }
}

/** The part of a run's time from which on one call is what took it. */
const NEARLY_ALL = 0.8;

/** The error of a run out of time; its hint names the call that took nearly all of the time, if one did. */
export function nameSlowCall(error: ScriptError, source: string, calls: readonly Call[], spent: number): ScriptError {
  const slowest = calls.reduce<Call | null>((found, call) => (found !== null && found.duration >= call.duration ? found : call), null);
  if (error.limit !== "time" || slowest === null || slowest.duration < NEARLY_ALL * spent) return error;
  const line = line_naming(slowest.tool, source) ?? (slowest.status === "in_flight" ? error.line : null);
  const where = line === null ? "" : ` on line ${line}`;
  const seconds = `${Math.min(slowest.duration, spent).toFixed(1)} of ${spent.toFixed(1)} seconds`;
  return error.with({ hint: `the call of '${slowest.tool}'${where} took ${seconds}: ask it for less, or go on without it` });
}

/** Checks the scripts of one Repl before they run, and remembers which globals they set. */
export class Checker {
  private readonly checker;
  private readonly view;
  private tools: { toolbox: Toolbox; revision: number; view: unknown } | null = null;

  private outline: Uint8Array | null = null;

  constructor(language: Language) {
    this.view = languageView(language, (source) => outlined(this.outline, source));
    this.checker = new PythonChecker(this.view);
  }

  /** The error of a script that is not run; null where it is run: the globals that it sets exist from then on. */
  refusal(source: string, outline: Uint8Array | null, toolbox: Toolbox, added: Iterable<string>): ScriptError | null {
    const error = this.found(source, outline, toolbox, added);
    if (error === null) this.checker.remember(source);
    return error;
  }

  /** The same for a script that is not to be run. `outline` is its tree, where the language's parser is in the worker. */
  found(source: string, outline: Uint8Array | null, toolbox: Toolbox, added: Iterable<string>): ScriptError | null {
    const narrow = new Narrow(source);
    this.outline = outline;
    const error: ScriptError | null = refusal(
      this.checker.check(narrow.text(source), this.toolsOf(toolbox), new PySet(added)), narrow.text(source),
    );
    return error === null ? null : narrow.error(error);
  }

  /** The globals of earlier scripts are gone. */
  forget(): void {
    this.checker.forget();
  }

  /** A script runs unchecked: it may set any global. */
  skip(): void {
    this.checker.skip();
  }

  private toolsOf(toolbox: Toolbox): unknown {
    if (this.tools?.toolbox !== toolbox || this.tools.revision !== toolbox.revision) {
      this.tools = { toolbox, revision: toolbox.revision, view: new ScriptTools(toolbox.view, this.view) };
    }
    return this.tools.view;
  }
}

/** A language as the check reads it. */
function languageView(language: Language, guest: (source: string) => unknown): Record<string, unknown> {
  const { texts } = language;
  return {
    name: language.name,
    first_index: language.first_index,
    runtime: language.runtime,
    look: null,
    program: language.runtime === null ? lua_program : guest,
    vocabulary: language.runtime === null ? lua_vocabulary : rhai_vocabulary,
    texts: { separator: texts.separator, identifiers: (alias: string) => texts.identifiers(alias) },
    tool_name: (alias: string) => texts.tool.replace("{name}", texts.written(alias)),
  };
}

const NODES = new Map(
  Object.entries(program as Record<string, any>).filter(([, each]) => each?.prototype instanceof program.Node).map(([name, each]) => [name.toLowerCase(), each]),
);

/** The program of a script whose parser has written its tree as JSON; null where that is none. */
function outlined(json: Uint8Array | null, source: string): unknown {
  if (json === null || json.length === 0) return null;
  const read = fromWire(new TextDecoder().decode(json)) as Record<string, unknown>;
  const names = (name: string): unknown => new PySet(read[name] as string[]);
  return program.packed_program(
    new program.Outline(node(read["body"]), read["assigned"], names("fields"), names("defines"), read["filled"]), source,
  );
}

/** Arrays as nodes, where they have the name and the place of one, or are a block; all others as tuples. */
function node(given: unknown): unknown {
  if (!Array.isArray(given)) return given;
  const [name, first] = given;
  const made = typeof name === "string" ? NODES.get(name) : undefined;
  const isNode = made && (typeof first === "number" || (name === "block" && Array.isArray(first) && typeof first[0] !== "string"));
  return isNode ? new made(...given.slice(1).map(node)) : T(...given.map(node));
}
