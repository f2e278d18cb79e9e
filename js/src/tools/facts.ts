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

/** What a field's description and schema say beyond its name and type, in a few words: facts first if it is cut. */
export function remark(name: string, description: string, schema: Record<string, unknown>): string {
  let text = oneLine(begin(description));
  const listed = allowedValues(description).length > 0 ? LISTED.exec(text) : null;
  if (listed !== null) text = text.slice(0, listed.index);
  let said: string[] = [];
  const facts = range(schema, text);
  for (const sentence of sentences(text)) {
    const found = CLAUSES.flatMap((pattern) => pattern.exec(sentence)?.[0] ?? []);
    facts.push(...found);
    said.push(...(telling(sentence) ? [sentence.replace(/[.。 ]+$/u, "")] : found));
  }
  const form = schema["format"];
  if (said.length === 0 && typeof form === "string" && factPatterns.formats.includes(form)) said = [form];
  let short = joined([...said, ...range(schema, text)]);
  if (lengthOf(short) > LONGEST_REMARK) short = joined([...facts, ...said]);
  if (lengthOf(short) > LONGEST_REMARK) {
    const cut = Array.from(short).slice(0, LONGEST_REMARK - 1).join("");
    short = `${cut.slice(0, Math.max(cut.lastIndexOf(" "), 0)).replace(/[ ;,]+$/, "")}…`;
  }
  return short.toLowerCase() === name.toLowerCase().replaceAll("_", " ") ? "" : short;
}

function joined(said: string[]): string {
  return [...new Set(said)].join("; ").replaceAll("(", "[").replaceAll(")", "]");
}

/** The bounds of a number that its description does not have; of 0 and 1 alone nothing is said. */
function range(schema: Record<string, unknown>, text: string): string[] {
  const [least, most] = ["minimum", "maximum"].map((keyword) => (Number.isSafeInteger(schema[keyword]) ? String(schema[keyword]) : null));
  if ([least, most].some((bound) => bound != null && text.includes(bound))) return [];
  if (most != null) return [least == null ? `at most ${most}` : `${least} to ${most}`];
  return least == null || least === "0" || least === "1" ? [] : [`at least ${least}`];
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
