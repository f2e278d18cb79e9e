// JSON in which each number keeps its own text: 9007199254740993, 1.0 and -0.0 stay what they are.
// Every page reads and writes JSON with this module only.

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORDS = { true: true, false: false, null: null };

/** A number that JavaScript would write in another way. It computes as a number and reads as its text. */
export class Exact extends Number {
  constructor(text) {
    super(text);
    this.text = text;
  }

  toString() {
    return this.text;
  }
}

export const isNumber = (value) => typeof value === "number" || value instanceof Exact;

/** The number of this text; null where it is not a number in JSON. */
export function number(text) {
  NUMBER.lastIndex = 0;
  if (NUMBER.exec(text)?.[0] !== text) return null;
  return String(Number(text)) === text ? Number(text) : new Exact(text);
}

/** The value of a JSON text; raises a SyntaxError that names the place. */
export function parse(text) {
  let at = 0;
  const value = read();
  space();
  if (at < text.length) fail();
  return value;

  function fail() {
    const line = text.slice(0, at).split("\n").length;
    const found = at < text.length ? `unexpected ${JSON.stringify(text[at])}` : "unexpected end";
    throw new SyntaxError(`${found} in line ${line}, column ${at - text.lastIndexOf("\n", at - 1)}`);
  }

  function space() {
    while (" \n\r\t".includes(text[at] ?? "x")) at++;
  }

  function read() {
    space();
    const mark = text[at];
    if (mark === '"') return string();
    if (mark === "{") return Object.fromEntries(items("}", () => [key(), read()])); // own fields, whatever they are called
    if (mark === "[") return items("]", read);
    for (const word in WORDS) {
      if (text.startsWith(word, at)) {
        at += word.length;
        return WORDS[word];
      }
    }
    NUMBER.lastIndex = at;
    const digits = NUMBER.exec(text)?.[0];
    if (digits === undefined) fail();
    at += digits.length;
    return number(digits);
  }

  function key() {
    space();
    if (text[at] !== '"') fail();
    const name = string();
    space();
    if (text[at] !== ":") fail();
    at++;
    return name;
  }

  function items(end, item) {
    const found = [];
    at++;
    space();
    if (text[at] === end) {
      at++;
      return found;
    }
    for (;;) {
      found.push(item());
      space();
      const mark = text[at];
      if (mark !== "," && mark !== end) fail();
      at++;
      if (mark === end) return found;
    }
  }

  function string() {
    let end = at;
    do {
      end = text.indexOf('"', end + 1);
      if (end < 0) {
        at = text.length;
        fail();
      }
    } while (escaped(end));
    try {
      const found = JSON.parse(text.slice(at, end + 1));
      at = end + 1;
      return found;
    } catch {
      return fail();
    }
  }

  function escaped(place) {
    let before = place;
    while (text[before - 1] === "\\") before--;
    return (place - before) % 2 === 1;
  }
}

/** The JSON text of a value; `clip` bounds each string. */
export function stringify(value, { indent = "", clip = Infinity } = {}) {
  return write(value, "\n");

  function write(item, line) {
    if (item instanceof Exact) return item.text;
    if (typeof item === "string") return JSON.stringify(item.length > clip ? `${item.slice(0, clip)}…` : item);
    if (item === null || typeof item !== "object") return JSON.stringify(item) ?? "null";
    const inside = line + indent;
    if (Array.isArray(item)) return wrap("[", item.map((each) => write(each, inside)), "]", line);
    const fields = Object.entries(item).filter(([, each]) => each !== undefined);
    return wrap("{", fields.map(([name, each]) => `${JSON.stringify(name)}:${indent && " "}${write(each, inside)}`), "}", line);
  }

  function wrap(open, parts, close, line) {
    if (!parts.length) return open + close;
    return indent ? open + line + indent + parts.join(`,${line}${indent}`) + line + close : open + parts.join(",") + close;
  }
}
