/** Search for tools by words, ranked: BM25 over names, parameters and descriptions, names weighing most. */

import { searchWords } from "../languages.js";
import { isObject } from "../values.js";
import { Document, NARRATION, partsOf, type Schema } from "./document.js";
import { byText } from "./naming.js";
import type { Tool } from "./tool.js";
import type { Toolbox } from "./toolbox.js";

const FIELDS = { name: [3.0, 0.4], description: [1.5, 0.5], parameters: [0.8, 0.6], details: [0.5, 0.6] } as const;
const SATURATION = 1.4;
const NAME_BONUS = 0.35;
const PREFIX = 0.5;
const SLIP = 0.6;
const LONGEST_QUERY = 2_000;
const MOST_WORDS = 50;
const MOST_FORMS = 8;
const MOST_SLIPS = 8;
const LONGEST_WORD = 40;

interface Index {
  tools: Tool[];
  names: Set<string>[];
  postings: Map<string, Map<number, number>>;
  vocabulary: string[];
}

/** Ranked search over a toolbox, kept in step with its changes. */
export class ToolSearch {
  private revision = -1;
  private index: Index = { tools: [], names: [], postings: new Map(), vocabulary: [] };

  constructor(private readonly toolbox: Toolbox) {}

  /** The best tools for these words, best first; the same words always give the same order. */
  search(query: string, limit = 10): Tool[] {
    if (this.toolbox.revision !== this.revision) {
      this.index = build([...this.toolbox]);
      this.revision = this.toolbox.revision;
    }
    const { tools, names, postings } = this.index;
    const scores = new Map<number, number>();
    const hits = new Map<number, Set<string>>();
    for (const [forms, times, weight] of terms(query, this.index)) {
      for (const known of forms) {
        const places = postings.get(known)!;
        const rarity = Math.log(1 + (tools.length - places.size + 0.5) / (places.size + 0.5));
        for (const [at, amount] of places) {
          const gain = ((weight * rarity * amount) / (SATURATION + amount)) * (1 + 0.3 * Math.log(times));
          scores.set(at, (scores.get(at) ?? 0) + gain);
          if (names[at]!.has(known)) hits.set(at, (hits.get(at) ?? new Set()).add(known));
        }
      }
    }
    for (const [at, named] of hits) scores.set(at, scores.get(at)! * (1 + (NAME_BONUS * named.size) / names[at]!.size));
    return [...scores]
      .sort(([x, a], [y, b]) => b - a || byText(tools[x]!.path, tools[y]!.path))
      .slice(0, limit)
      .map(([at]) => tools[at]!);
  }
}

function build(tools: Tool[]): Index {
  const texts = tools.map(textsOf);
  const postings = new Map<string, Map<number, number>>();
  let names: Set<string>[] = [];
  for (const [field, [weight, strictness]] of Object.entries(FIELDS)) {
    const counted = texts.map((text) => counts(words(text[field as keyof typeof FIELDS])));
    if (field === "name") names = counted.map((count) => new Set(count.keys()));
    const lengths = counted.map((count) => [...count.values()].reduce((sum, times) => sum + times, 0));
    const average = lengths.reduce((sum, length) => sum + length, 0) / (lengths.length || 1) || 1;
    counted.forEach((count, at) => {
      const scale = weight / (1 - strictness + (strictness * lengths[at]!) / average);
      for (const [word, times] of count) {
        const places = postings.get(word) ?? new Map<number, number>();
        postings.set(word, places.set(at, (places.get(at) ?? 0) + scale * times));
      }
    });
  }
  return { tools, names, postings, vocabulary: [...postings.keys()].sort(byText) };
}

/** The indexed words that each word of a query stands for, how often it occurs, and how much it counts. */
function* terms(query: string, index: Index): Iterable<[string[], number, number]> {
  let slipsLeft = MOST_SLIPS;
  for (const [word, times] of [...counts(words(query.slice(0, LONGEST_QUERY)))].slice(0, MOST_WORDS)) {
    if (index.postings.has(word)) yield [[word], times, 1];
    else if (word.length >= 4) {
      const forms = longerOrShorter(word, index);
      if (forms.length > 0) yield [forms, times, PREFIX];
      else if (slipsLeft > 0) {
        slipsLeft -= 1;
        const slips = index.vocabulary.filter((known) => known.length > 3 && closeTo(word, known));
        yield [slips.slice(0, 4), times, SLIP];
      }
    }
  }
}

function longerOrShorter(word: string, { postings, vocabulary }: Index): string[] {
  const known: string[] = [];
  for (let size = 4; size < word.length; size += 1) if (postings.has(word.slice(0, size))) known.push(word.slice(0, size));
  for (const other of vocabulary) {
    if (other < word) continue;
    if (!other.startsWith(word) || known.length >= 2 * MOST_FORMS) break;
    known.push(other);
  }
  return known.sort(byText).slice(0, MOST_FORMS);
}

function textsOf(tool: Tool): Record<keyof typeof FIELDS, string> {
  const { document } = tool;
  const named = Object.entries(document.properties(document.root)).filter(([name]) => name !== NARRATION);
  return {
    name: tool.path,
    description: `${tool.description} ${tool.tags.join(" ")}`,
    parameters: named.map(([name]) => name).join(" "),
    details: named.map(([, part]) => parameterText(part, document)).join(" "),
  };
}

function parameterText(schema: Schema, document: Document): string {
  const part = document.deref(schema);
  if (!isObject(part)) return "";
  const options = partsOf(part, "enum").filter((value) => typeof value === "string");
  const inner = isObject(part["items"]) ? part["items"] : part;
  return [String(part["description"] ?? ""), ...options.slice(0, 20), ...Object.keys(document.properties(inner))].join(" ");
}

function counts(items: string[]): Map<string, number> {
  const made = new Map<string, number>();
  for (const item of items) made.set(item, (made.get(item) ?? 0) + 1);
  return made;
}

const PIECE = /[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|(?:(?![\d_a-zA-Z])[\p{L}\p{N}])+/gu;
const WIDE = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/;

/** The stems of a text's words; names are split at case changes, digits and underscores. */
export function words(text: string): string[] {
  const folded = text.normalize("NFKC").normalize("NFD").replace(/\p{M}/gu, "");
  const stems: string[] = [];
  for (const piece of folded.match(PIECE) ?? []) {
    const word = piece.toLowerCase();
    if (WIDE.test(word)) {
      for (let at = 0; at < Math.max(1, word.length - 1); at += 1) stems.push(word.slice(at, at + 2));
    } else if (!searchWords.stop.includes(word)) stems.push(stem(word.slice(0, LONGEST_WORD)));
  }
  return stems;
}

function stem(given: string): string {
  let word = searchWords.same[given] ?? given;
  if (word.length > 3 && /^[\x00-\x7f]*$/.test(word) && !word.endsWith("ss")) {
    for (const [ending, instead] of searchWords.endings) {
      if (word.endsWith(ending) && word.length - ending.length >= 3) {
        word = word.slice(0, word.length - ending.length) + instead;
        break;
      }
    }
  }
  if (word.length > 3 && word.endsWith("e")) word = word.slice(0, -1);
  if (word.length > 3 && word.at(-1) === word.at(-2) && !"aeiouls".includes(word.at(-1)!)) word = word.slice(0, -1);
  if (word.length > 3 && word.endsWith("y")) word = `${word.slice(0, -1)}i`;
  return searchWords.same[word] ?? word;
}

/** Whether one slip (a letter missing, added, changed, or two swapped) makes one word of the other. */
function closeTo(word: string, other: string): boolean {
  if (Math.abs(word.length - other.length) > 1 || word === other) return word === other;
  let head = 0;
  while (head < Math.min(word.length, other.length) && word[head] === other[head]) head += 1;
  const [left, right] = [word.slice(head), other.slice(head)];
  if (left.length === right.length) {
    const swapped = left[0] === right[1] && left[1] === right[0] && left.slice(2) === right.slice(2);
    return left.slice(1) === right.slice(1) || swapped;
  }
  return left.length > right.length ? left.slice(1) === right : left === right.slice(1);
}
