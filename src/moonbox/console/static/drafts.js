// Drafts and the history of scripts. They stay in this browser; each tab remembers which draft it shows.

import { parse, stringify } from "./json.js";

const DRAFTS = "moonbox-drafts";
const HISTORY = "moonbox-history";
const MOST = 50;
const LONGEST = 200_000;

const tabKey = (language) => `moonbox-draft-${language}`;

function read(key) {
  try {
    const list = parse(localStorage.getItem(key) ?? "[]");
    return list.filter((item) => typeof item?.source === "string" && typeof item.language === "string");
  } catch {
    return [];
  }
}

/** Where the browser's store is full, the oldest go. */
function write(key, list) {
  for (let most = MOST; most > 0; most = Math.floor(most / 2)) {
    try {
      return localStorage.setItem(key, stringify(list.slice(0, most)));
    } catch {
      // fewer of them
    }
  }
}

const of = (key, language) => read(key).filter((item) => item.language === language);

export const drafts = (language) => of(DRAFTS, language);
export const history = (language) => of(HISTORY, language);

/** The draft that this tab shows. */
export function draft(language) {
  const id = sessionStorage.getItem(tabKey(language));
  return drafts(language).find((item) => item.id === id)?.source;
}

/** The latest draft of all tabs, which this tab goes on with. */
export function latest(language) {
  const [found] = drafts(language);
  if (found) choose(language, found.id);
  return found?.source;
}

/** Show this draft from now on; without an id a new one. */
export function choose(language, id = `${Date.now()}-${Math.random()}`) {
  sessionStorage.setItem(tabKey(language), id);
}

export function save(language, source) {
  if (sessionStorage.getItem(tabKey(language)) === null) choose(language);
  const own = sessionStorage.getItem(tabKey(language));
  const others = read(DRAFTS).filter((item) => item.id !== own);
  const kept = source.trim() && source.length < LONGEST ? [{ id: own, language, source, at: Date.now() }] : [];
  write(DRAFTS, [...kept, ...others]);
}

export function remove(id) {
  write(DRAFTS, read(DRAFTS).filter((item) => item.id !== id));
}

/** A script was run. */
export function remember(language, source) {
  if (!source.trim() || source.length >= LONGEST) return;
  const others = read(HISTORY).filter((item) => item.source !== source || item.language !== language);
  write(HISTORY, [{ language, source, at: Date.now() }, ...others]);
}
