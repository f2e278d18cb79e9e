/** Facts in descriptions of fields that types do not say: allowed values, units, formats, ranges, null. */

import { factPatterns } from "../languages.js";

const MOST_VALUES = 20;
const LONGEST_VALUES = 200;
const LONGEST_REMARK = 80;
const LONGEST_TEXT = 2000;
const LISTED = new RegExp(factPatterns.listed, "i");
const SLASHED = new RegExp(factPatterns.slashed);
const TELLING = new RegExp(factPatterns.telling, "i");
const CLAUSES = factPatterns.clauses.map((pattern) => new RegExp(pattern));
const QUOTED = new RegExp(factPatterns.quoted, "g");
const QUOTED_LIST = new RegExp(`^${factPatterns.quoted_list}`);
const PLAIN_LIST = new RegExp(`^${factPatterns.plain_list}`);
/** The end of a sentence. */
export const SENTENCE = /(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)(?<!\bcf)[.!?](?=\s)|[。！？]/u;

/** The values that a description lists as the only ones; none where it lists none, or too many to show. */
export function allowedValues(description: string): string[] {
  const text = oneLine(begin(description));
  const found = LISTED.exec(text);
  const values = found !== null ? items(text.slice(found.index + found[0].length)) : (SLASHED.exec(text)?.[1]!.split("/") ?? []);
  const unique = [...new Set(values)];
  const size = unique.reduce((sum, value) => sum + lengthOf(value), 0);
  return unique.length >= 2 && unique.length <= MOST_VALUES && size <= LONGEST_VALUES ? unique : [];
}

/** What a field's description says beyond its name and type, in a few words; `form` is its schema's `format`. */
export function remark(name: string, description: string, form: unknown): string {
  let text = oneLine(begin(description));
  const listed = allowedValues(description).length > 0 ? LISTED.exec(text) : null;
  if (listed !== null) text = text.slice(0, listed.index);
  let said: string[] = [];
  for (const sentence of sentences(text)) {
    if (telling(sentence)) said.push(sentence.replace(/[.。 ]+$/u, ""));
    else said.push(...CLAUSES.flatMap((pattern) => pattern.exec(sentence)?.[0] ?? []));
  }
  if (said.length === 0 && typeof form === "string" && factPatterns.formats.includes(form)) said = [form];
  let short = [...new Set(said)].join("; ").replaceAll("(", "[").replaceAll(")", "]");
  if (lengthOf(short) > LONGEST_REMARK) {
    const cut = Array.from(short).slice(0, LONGEST_REMARK - 1).join("");
    short = `${cut.slice(0, Math.max(cut.lastIndexOf(" "), 0)).replace(/[ ;,]+$/, "")}…`;
  }
  return short.toLowerCase() === name.toLowerCase().replaceAll("_", " ") ? "" : short;
}

/** Whether a sentence says what one must know: a condition, null, how a text begins. */
export function telling(sentence: string): boolean {
  return TELLING.test(sentence) && !sentence.startsWith("Default");
}

/** The sentences of one line of text. */
export function sentences(text: string): string[] {
  const ends = [...text.matchAll(new RegExp(SENTENCE, "gu"))].map((found) => found.index + found[0].length);
  return [...ends, text.length].map((end, at) => text.slice(at > 0 ? ends[at - 1] : 0, end).trim()).filter(Boolean);
}

/** The text with single spaces in place of line breaks, other white space and what cannot be printed. */
export function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, " ").split(/\s+/u).filter(Boolean).join(" ");
}

/** The length in characters, as the Python package counts. */
export function lengthOf(text: string): number {
  return /[\ud800-\udbff]/.test(text) ? Array.from(text).length : text.length;
}

/** As much of a text as is looked at. */
export function begin(text: string): string {
  return text.length <= LONGEST_TEXT ? text : Array.from(text).slice(0, LONGEST_TEXT).join("");
}

/** The items at the beginning of a text: a JSON list, quoted words, or words between commas. */
function items(text: string): string[] {
  const listed = /^\s*(\[[^[\]]*\])/.exec(text);
  if (listed !== null) {
    try {
      const values: unknown = JSON.parse(listed[1]!.replaceAll("'", '"'));
      return Array.isArray(values) && values.every((value) => typeof value === "string") ? values : [];
    } catch {
      return [];
    }
  }
  const quoted = QUOTED_LIST.exec(text);
  if (quoted !== null) return (quoted[0].match(QUOTED) ?? []).map((item) => item.slice(1, -1));
  const plain = PLAIN_LIST.exec(text);
  return plain !== null ? plain[1]!.split(/, (?:(?:or|and) )?/) : [];
}
