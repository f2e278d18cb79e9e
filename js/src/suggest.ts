/** Suggestions: which known name was probably meant by an unknown one, and the message that says so. */

import { UsageError } from "./errors.js";

const MOST_COMPARED = 5_000;
const LONGEST = 128;
const LONGEST_SHOWN = 64;
const MOST_LISTED = 20;
const MOST_EDITS = 3;
const WORDS = /[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+/g;

/** The options close enough to `name`, best first; with `parts` also those that share its words. */
export function nearest(name: string, options: Iterable<string>, parts = false, count = 1): string[] {
  if (!name || name.length > LONGEST) return [];
  const ours = new Name(name);
  const others = [...new Set([...options].slice(0, MOST_COMPARED))]
    .filter((option) => option.length <= LONGEST)
    .map((option) => new Name(option));
  const ranked: [number, Name][] = [];
  for (const other of others) {
    const rank = spelling(ours, other, parts);
    if (rank !== null) ranked.push([rank, other]);
  }
  const best = Math.min(...ranked.map(([rank]) => rank), Infinity);
  let close = ranked.filter(([rank]) => rank <= best + 1);
  if (close.length === 0 && parts) close = others.filter((other) => shares(ours, other)).map((other) => [0, other]);
  const distance = (other: Name): number => Math.abs(other.text.length - name.length);
  close.sort(([a, x], [b, y]) => a - b || distance(x) - distance(y) || (x.text < y.text ? -1 : x.text > y.text ? 1 : 0));
  return close.slice(0, count).map(([, other]) => other.text);
}

/** `did you mean a, b or c?`; null without names. */
export function didYouMean(names: string[]): string | null {
  if (names.length === 0) return null;
  return `did you mean ${names.slice(0, -1).join(", ")}${names.length > 1 ? " or " : ""}${names.at(-1)}?`;
}

/** `; did you mean 'x'?`, for the end of a message; empty where no option is close. */
export function suggestion(name: string, options: Iterable<string>): string {
  const close = nearest(name, options, true);
  return close.length > 0 ? `; did you mean '${close[0]}'?` : "";
}

/** `unknown source 'x'; did you mean 'y'?`, or `unknown source 'x'; known sources: a, b` where none is close. */
export function unknown(what: string, name: string, options: Iterable<string>, count = 1): string {
  const known = [...new Set(options)];
  const shown = name.length <= LONGEST_SHOWN ? name : `${name.slice(0, LONGEST_SHOWN)}…`;
  const close = didYouMean(nearest(name, known, true, count).map((option) => `'${option}'`));
  if (close) return `unknown ${what} '${shown}'; ${close}`;
  if (known.length === 0) return `unknown ${what} '${shown}'; there are no ${plural(what)}`;
  const more = known.length > MOST_LISTED ? ` and ${known.length - MOST_LISTED} more` : "";
  return `unknown ${what} '${shown}'; known ${plural(what)}: ${known.slice(0, MOST_LISTED).join(", ")}${more}`;
}

/** Refuses options that nothing reads: they are typing errors. */
export function checkOptions(given: object, known: readonly string[], what = "option"): void {
  if (typeof given !== "object" || given === null) throw new UsageError(`${plural(what)} must be an object, not ${String(given)}`);
  for (const name of Object.keys(given)) if (!known.includes(name)) throw new UsageError(unknown(what, name, known));
}

class Name {
  readonly folded: string;
  readonly letters: Set<string>;
  readonly words: string[];

  constructor(readonly text: string) {
    this.folded = text.replace(/[ _\-./:]/g, "").toLowerCase();
    this.letters = new Set(this.folded);
    this.words = (text.match(WORDS) ?? []).map((word) => singular(word.toLowerCase())).sort();
  }
}

function spelling(ours: Name, theirs: Name, parts: boolean): number | null {
  if (ours.folded === theirs.folded) return ours.folded ? 0 : null;
  const [shorter, longer] = [ours.folded.length, theirs.folded.length].sort((a, b) => a - b) as [number, number];
  const different =
    [...ours.letters].filter((letter) => !theirs.letters.has(letter)).length +
    [...theirs.letters].filter((letter) => !ours.letters.has(letter)).length;
  if (longer - shorter > MOST_EDITS || different > 2 * MOST_EDITS) return null;
  if (ours.words.length > 0 && ours.words.join("\0") === theirs.words.join("\0")) return 1;
  let allowed = shorter < 3 ? 0 : shorter < 6 ? 1 : shorter < 14 ? 2 : MOST_EDITS;
  if (parts && ours.folded.length === 2 && longer === 3) allowed = 1; // `ad` for `add`
  if (allowed < 2 && ours.folded[0] !== theirs.folded[0]) allowed = 0; // in short names it makes another word
  const edits = distance(ours.folded, theirs.folded, allowed);
  return edits <= allowed ? 1 + edits : null;
}

function shares(ours: Name, theirs: Name): boolean {
  const [fewer, more] = ours.folded.length <= theirs.folded.length ? [ours, theirs] : [theirs, ours];
  if (fewer.folded.length < 4) return false;
  if (more.folded.includes(fewer.folded)) return true;
  if (![...fewer.letters].every((letter) => more.letters.has(letter))) return false;
  return fewer.words.length > 0 && fewer.words.every((word) => more.words.includes(word));
}

function singular(word: string): string {
  return word.length > 3 && word.endsWith("s") && !word.endsWith("ss") ? word.slice(0, -1) : word;
}

/** Insertions, deletions, changes and swaps of neighbours; anything past `most` is `most` + 1. */
function distance(a: string, b: string, most: number): number {
  const far = most + 1;
  if (Math.abs(a.length - b.length) > most) return far;
  let older = new Map<number, number>();
  let previous = new Map<number, number>();
  for (let j = 0; j <= Math.min(most, b.length); j += 1) previous.set(j, j);
  for (let i = 1; i <= a.length; i += 1) {
    const row = new Map<number, number>(i <= most ? [[0, i]] : []);
    for (let j = Math.max(1, i - most); j <= Math.min(b.length, i + most); j += 1) {
      let cost = Math.min(
        (previous.get(j) ?? far) + 1,
        (row.get(j - 1) ?? far) + 1,
        (previous.get(j - 1) ?? far) + (a[i - 1] === b[j - 1] ? 0 : 1),
        far,
      );
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, (older.get(j - 2) ?? far) + 1);
      }
      row.set(j, cost);
    }
    if (Math.min(...row.values(), far) > most) return far;
    [older, previous] = [previous, row];
  }
  return previous.get(b.length) ?? far;
}

function plural(what: string): string {
  if (what.endsWith("y") && !"aeiou".includes(what.at(-2) ?? "")) return `${what.slice(0, -1)}ies`;
  return what + (/(?:s|x|ch|sh)$/.test(what) ? "es" : "s");
}
