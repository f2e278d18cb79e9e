// Tokens of Lua, Rhai and Python, for colouring. It never fails: what it does not know is plain text.

import { h } from "./dom.js";

const LUA_WORDS = new Set(
  "and break do else elseif end false for function goto if in local nil not or repeat return then true until while".split(" "),
);
const RHAI_WORDS = new Set(
  ("let const if else while loop for in break continue return fn true false switch do until throw try catch private " +
    "this is import export as global").split(" "),
);
const PYTHON_WORDS = new Set(
  ("False None True and as assert async await break class continue def del elif else except finally for from global if " +
    "import in is lambda nonlocal not or pass raise return try while with yield match case").split(" "),
);
const WORDS = { lua: LUA_WORDS, rhai: RHAI_WORDS, python: PYTHON_WORDS };
const COMMENTS = { lua: luaComment, rhai: rhaiComment, python: (source, at) => (source[at] === "#" ? lineEnd(source, at) : 0) };
const BUILT_IN = new Set(
  ("tools parallel print json docs string table math utf8 os array null show progress pairs ipairs pcall error type " +
    "tostring tonumber select assert next").split(" "),
);
const SPACE = /[ \t\r]+/y;
const NUMBER = /0[xX][\da-fA-F]+(?:\.[\da-fA-F]*)?|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const NAME = /[A-Za-z_]\w*/y;

export const isKeyword = (word, language) => WORDS[language].has(word);

/** The source as a list of [kind, text]; the texts joined are the source. */
export function tokens(source, language = "lua") {
  const words = WORDS[language] ?? LUA_WORDS;
  const found = [];
  let at = 0;
  while (at < source.length) {
    const end = next(source, at, language, words);
    found.push([end.kind, source.slice(at, end.at)]);
    at = end.at;
  }
  return found;
}

function next(source, at, language, words) {
  const mark = source[at];
  const pair = source.slice(at, at + 2);
  if (mark === "\n") return { kind: "", at: at + 1 };
  const comment = (COMMENTS[language] ?? luaComment)(source, at, pair);
  if (comment) return { kind: "comment", at: comment };
  const triple = language === "python" && /^("""|''')/.exec(source.slice(at, at + 3))?.[0];
  if (triple) return { kind: "string", at: tripled(source, at, triple) };
  if (mark === '"' || mark === "'" || mark === "`") return { kind: "string", at: quoted(source, at, mark) };
  if (language === "lua" && mark === "[") {
    const long = longBracket(source, at);
    if (long) return { kind: "string", at: long };
  }
  for (const [kind, pattern] of [["", SPACE], ["number", NUMBER], ["name", NAME]]) {
    pattern.lastIndex = at;
    const match = pattern.exec(source);
    if (!match) continue;
    const end = at + match[0].length;
    if (kind !== "name") return { kind, at: end };
    if (words.has(match[0])) return { kind: "word", at: end };
    if (BUILT_IN.has(match[0]) && source[at - 1] !== ".") return { kind: "builtin", at: end };
    return { kind: /^\s*[({]/.test(source.slice(end, end + 4)) ? "call" : "", at: end };
  }
  return { kind: /[A-Za-z0-9_]/.test(mark) ? "" : "mark", at: at + 1 };
}

function luaComment(source, at, pair) {
  if (pair !== "--") return 0;
  return (source[at + 2] === "[" && longBracket(source, at + 2)) || lineEnd(source, at);
}

function rhaiComment(source, at, pair) {
  if (pair === "//") return lineEnd(source, at);
  if (pair !== "/*") return 0;
  const end = source.indexOf("*/", at + 2);
  return end < 0 ? source.length : end + 2;
}

function lineEnd(source, at) {
  const end = source.indexOf("\n", at);
  return end < 0 ? source.length : end;
}

function quoted(source, at, mark) {
  for (let end = at + 1; end < source.length; end++) {
    if (source[end] === "\\") end++;
    else if (source[end] === mark) return end + 1;
    else if (source[end] === "\n" && mark !== "`") return end;
  }
  return source.length;
}

function tripled(source, at, mark) {
  const end = source.indexOf(mark, at + 3);
  return end < 0 ? source.length : end + 3;
}

function longBracket(source, at) {
  const open = /^\[(=*)\[/.exec(source.slice(at, at + 64));
  if (!open) return 0;
  const close = source.indexOf(`]${open[1]}]`, at + open[0].length);
  return close < 0 ? source.length : close + open[1].length + 2;
}

/** The tokens of each line, as [kind, text]. */
export function tokenLines(source, language) {
  const lines = [[]];
  for (const [kind, text] of tokens(source, language)) {
    text.split("\n").forEach((part, index) => {
      if (index) lines.push([]);
      if (part) lines.at(-1).push([kind, part]);
    });
  }
  return lines;
}

/** A line as an element. */
export const colouredLine = (line) => h("span", {}, line.map(([kind, text]) => h("span", { class: kind ? `t-${kind}` : null }, text)));

/** Coloured lines, one element each. */
export const colouredLines = (source, language) => tokenLines(source, language).map(colouredLine);
