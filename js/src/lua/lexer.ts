/** A tolerant reader of Lua's words: what Lua would refuse becomes a token too, so that hints can name it. */

import { luaHints } from "../languages.js";

/** One word of a script. `kind` is name, keyword, number, string, op, foreign, bad or eof. */
export interface Token {
  kind: string;
  text: string;
  line: number;
  column: number;
  start: number;
  end: number;
  lastLine: number;
  /** What Lua's own reader says of a bad token. */
  problem: string;
}

const NEWLINE = /\r\n|\n\r|\n|\r/g;
const WORD = new RegExp(
  [
    String.raw`[ \t\v\f]*(?:(?<name>[A-Za-z_][A-Za-z0-9_]*)`,
    String.raw`(?<op>[+*%^&|(){}\];,#]|::?|==?|~=?|<[=<]?|>[=>]?|\/\/?|-(?!-)|\[(?![=\[])|\.(?!\.|[0-9])|\.\.\.?)`,
    String.raw`(?<newline>\r\n|\n\r|\n|\r)`,
    String.raw`(?<long>(?:--)?\[(?<level>=*)\[)`,
    String.raw`(?<delimiter>\[=+)`,
    String.raw`(?<comment>--[^\n\r]*)`,
    String.raw`(?<number>0[xX](?:[pP][+-]?|[0-9a-fA-F.])*[A-Za-z_]?|\.?[0-9](?:[eE][+-]?|[0-9a-fA-F.])*[A-Za-z_]?)`,
    String.raw`(?<string>"(?:[^"\\\n\r]|\\(?:z\s*|\r\n|\n\r|[\s\S]))*"?|'(?:[^'\\\n\r]|\\(?:z\s*|\r\n|\n\r|[\s\S]))*'?)`,
    String.raw`(?<end>$)`,
    String.raw`(?<foreign>[\ud800-\udbff][\udc00-\udfff]|[\s\S]))`,
  ].join("|"),
  "y",
);
const GROUPS = ["name", "op", "newline", "long", "delimiter", "comment", "number", "string", "end", "foreign"] as const;
const NUMBER = new RegExp(
  String.raw`^(?:0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?` +
    String.raw`|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)$`,
);
const ESCAPE = /\\(?:([abfnrtv\\'"\n\r])|(z\s*)|(x[0-9a-fA-F]{2})|([0-9]{1,3})|(u\{[0-9a-fA-F]{1,8}\})|[\s\S])/g;
const PLAIN: Record<string, string> = { n: "\n", t: "\t", r: "\r", a: "\x07", b: "\b", f: "\f", v: "\v" };

/** The first words of a script in one pass, an eof token last. Linear in the length of the source. */
export function tokenize(source: string, firstLine = 1, most = 1_000_000): Token[] {
  const reserved = new Set(luaHints.reserved);
  const tokens: Token[] = [];
  let [at, lineStart, line] = [0, 0, firstLine];
  while (at < source.length && tokens.length < most) {
    WORD.lastIndex = at;
    const match = WORD.exec(source)!; // the last alternative takes any character
    const groups = match.groups!;
    const group = GROUPS.find((each) => groups[each] !== undefined)!;
    at = WORD.lastIndex;
    if (group === "end" || group === "comment") continue;
    const start = at - groups[group]!.length;
    if (group === "newline") {
      [line, lineStart] = [line + 1, at];
      continue;
    }
    const token: Token = { kind: group, text: groups[group]!, line, column: start - lineStart + 1, start, end: at, lastLine: line, problem: "" };
    if (group === "name" && reserved.has(token.text)) token.kind = "keyword";
    else if (group === "number" && !NUMBER.test(token.text)) [token.kind, token.problem] = ["bad", "malformed number"];
    else if (group === "delimiter") [token.kind, token.problem] = ["bad", "invalid long string delimiter"];
    else if (group === "long") readLong(source, groups["level"]!, token);
    else if (group === "string") readString(token);
    if (token.kind !== "comment") tokens.push(token);
    at = token.end;
    if (token.lastLine !== line) {
      line = token.lastLine;
      lineStart = Math.max(source.lastIndexOf("\n", at - 1), source.lastIndexOf("\r", at - 1)) + 1;
    }
  }
  tokens.push({ kind: "eof", text: "<eof>", line, column: at - lineStart + 1, start: at, end: at, lastLine: line, problem: "" });
  return tokens;
}

/** A long string, or a long comment (as kind "comment"). */
function readLong(source: string, level: string, token: Token): void {
  const comment = token.text.startsWith("--");
  const close = source.indexOf(`]${level}]`, token.end);
  token.end = close < 0 ? source.length : close + level.length + 2;
  token.text = source.slice(token.start, token.end);
  token.lastLine += newlines(token.text);
  token.kind = close < 0 ? "bad" : comment ? "comment" : "string";
  if (close < 0) token.problem = `unfinished long ${comment ? "comment" : "string"}`;
}

function readString(token: Token): void {
  const { text } = token;
  if (text.includes("\\")) token.lastLine += newlines(text);
  const inside = text.slice(0, -1);
  const slashes = /\\*$/.exec(inside)![0].length;
  const unknown = [...text.matchAll(ESCAPE)].some((escape) => escape.slice(1).every((part) => part === undefined));
  if (unknown) token.problem = "invalid escape sequence";
  else if (inside === "" || text.at(-1) !== text[0] || slashes % 2 === 1) token.problem = "unfinished string";
  if (token.problem !== "") token.kind = "bad";
}

function newlines(text: string): number {
  return text.match(NEWLINE)?.length ?? 0;
}

/** What a string literal stands for. */
export function stringValue(text: string): string {
  if (text[0] === "[") {
    const level = text.indexOf("[", 1) + 1;
    return text.slice(level, -level).replace(/^\n/, "");
  }
  return text.slice(1, -1).replace(ESCAPE, (whole, plain?: string, skip?: string, hex?: string, code?: string, unicode?: string) => {
    if (plain !== undefined) return PLAIN[plain] ?? plain;
    if (skip !== undefined) return "";
    if (hex !== undefined) return String.fromCharCode(parseInt(hex.slice(1), 16));
    if (code !== undefined) return String.fromCharCode(Math.min(Number(code), 255));
    const point = unicode === undefined ? -1 : parseInt(unicode.slice(2, -1), 16);
    if (point < 0) return whole.slice(1);
    return point <= 0x10ffff && !(point >= 0xd800 && point < 0xe000) ? String.fromCodePoint(point) : "\ufffd";
  });
}
