/** The languages of scripts: their Lua files and words, taken from the Python package when this one was built. */

import { SHORT, Texts as PythonTexts } from "#python/languages/language.js";
import { UsageError } from "./errors.js";
import type { LimitFields } from "./limits.js";
import { camelCase } from "./json.js";
import { ownFile } from "./platform/server.js";
import { unknown } from "./suggest.js";

export type LanguageName = "lua" | "rhai";
export type LuaFeature = "coroutines" | "metatables";

type Text = "name" | "parameter" | "parameter_description" | "description" | "with_tools" | "helpers" | "paging" | "groups"
  | "failures_return" | "failures_raise" | "failures_except" | "added_title" | "lean" | "lean_namespaces" | "lean_results"
  | "not_in_scripts" | "also_in_scripts" | "system_prompt" | "system_prompt_without_tools" | "limits" | "call" | "tool"
  | "separator" | "kept";

/** What is said to a model; those that are used by name. */
export interface Texts extends Record<Text, string> {
  /** The alias without words that cannot name a tool. */
  identifiers(alias: string): string;
  /** A tool's name as scripts write it behind `tools`, or alone where there is no such table. */
  written(alias: string): string;
}

export interface Language {
  name: string;
  texts: Texts;
  docs: Record<string, string>;
  /** The same for each function of its libraries. */
  library_docs: Record<string, string>;
  first_index: number;
  features: string[];
  parameter_aliases: string[];
  /** Whether its scripts are compiled by a program in Lua, which `runtimeOf` gives. */
  runtime: true | null;
}

interface Bundle {
  version: string;
  /** Tells builds of one version apart. */
  build: string;
  /** The length of lua.wasm. */
  wasm: number;
  /** The worker's script. */
  worker: string;
  languages: Record<string, Language>;
  limits: Record<string, Record<string, number | null>>;
  discovery: number;
  /** Data files of the Python package. */
  tables: Record<string, Record<string, unknown>>;
  /** The globals that each feature of Lua opens. */
  opened: Record<string, string[]>;
  functions: { show: string; progress: string };
}

// @ts-ignore -- written by scripts/build.mjs beside the compiled file
import data from "#languages";

const bundle = data as Bundle;

export const version = bundle.version;
export const build = bundle.build;
export const workerScript = bundle.worker;
/** The limits that each preset gives, and the defaults as "default". */
export const presets = Object.fromEntries(
  Object.entries(bundle.limits).map(([name, limits]) => [name, Object.fromEntries(Object.entries(limits).map(([field, value]) => [camelCase(field), value]))]),
) as { default: LimitFields } & Record<string, Partial<LimitFields>>;
/** What one run may spend on questions to `docs`. */
export const discoveryBudget = bundle.discovery;
/** The documentation of `show` and `progress`. */
export const functionDocs = bundle.functions;
export const tables = bundle.tables;
export const openedBy = bundle.opened;
export const LANGUAGES: Record<string, Language> = Object.fromEntries(
  Object.entries(bundle.languages).map(([name, each]) => {
    const given = each.texts as unknown as Record<string, unknown>;
    const texts = new PythonTexts(...PythonTexts.fields.map((field: string) => (field === "types" ? SHORT : given[field])));
    return [name, { ...each, texts }];
  }),
);

/** Lua's wasm module, whose memory has the prelude; without shared memory another, which can be suspended. Loaded when a worker is wanted. */
export async function wasm(isShared: boolean): Promise<Uint8Array<ArrayBuffer>> {
  const file = isShared ? ownFile("lua.wasm") : null; // loading the same as text takes longer
  if (file?.length === bundle.wasm) return file;
  // @ts-ignore -- written by scripts/build.mjs beside the compiled file
  const loaded = isShared ? import("#lua") : import("#lua-suspendable");
  return fromBase64(((await loaded) as { default: string }).default);
}

/** The program in Lua that compiles scripts of the language; it is loaded when it is wanted first. */
export async function runtimeOf(language: Language): Promise<string | null> {
  if (language.runtime === null) return null;
  // @ts-ignore -- written by scripts/build.mjs beside the compiled file
  return ((await import("#rhai")) as { default: string }).default;
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const { Buffer } = globalThis as { Buffer?: { from(text: string, form: "base64"): Uint8Array<ArrayBuffer> } };
  if (Buffer !== undefined) return Buffer.from(text, "base64") as unknown as Uint8Array<ArrayBuffer>;
  const units = atob(text);
  const bytes = new Uint8Array(units.length);
  for (let at = 0; at < units.length; at += 1) bytes[at] = units.charCodeAt(at);
  return bytes;
}

/** The language of that name. */
export function language(name = "lua"): Language {
  const known = LANGUAGES[name];
  if (known !== undefined) return known;
  throw new UsageError(unknown("language", name, Object.keys(LANGUAGES)));
}

/** A text with `{name}` filled in and doubled braces made single, as Python's `str.format` does. */
export function filled(text: string, fields: Record<string, string | number>): string {
  return text.replace(/\{\{|\}\}|\{(\w+)\}/g, (whole, name: string | undefined) =>
    name === undefined ? whole[0]! : String(fields[name] ?? whole),
  );
}
