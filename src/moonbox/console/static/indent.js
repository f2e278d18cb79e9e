// Where lines of a script begin: deeper inside a block, and back where the block ends.

import { tokens } from "./highlight.js";

const OPEN = {
  lua: new Set(["function", "do", "if", "repeat", "{", "(", "["]),
  other: new Set(["{", "(", "["]),
};
const CLOSE = {
  lua: new Set(["end", "until", "}", ")", "]"]),
  other: new Set(["}", ")", "]"]),
};
const DEEPER = {
  lua: /(\bthen|\bdo|\belse|\brepeat|[{(]|(?<!\[)\[|\bfunction\b[^)]*\))\s*$/,
  rhai: /[{([]\s*$/,
  python: /([{([]|:\s*(#.*)?)$/,
};
const BACK = { lua: /^\s*(end|until|else|elseif|[})\]])$/, rhai: /^\s*[})\]]$/, python: /^\s*[})\]]$/ };
const MOST = 50_000;

export const unit = (language) => (language === "python" ? "    " : "  ");

const lead = (line) => /^[ \t]*/.exec(line)[0];

/** How the line after this one begins. */
export function next(line, language) {
  return lead(line) + (DEEPER[language].test(line) ? unit(language) : "");
}

/** Where the last line of this text begins if it ends its block: where the block's first line does. Otherwise null. */
export function outdented(text, language) {
  const line = text.slice(text.lastIndexOf("\n") + 1);
  if (!BACK[language].test(line) || text.length > MOST) return null;
  const parts = tokens(text, language);
  const last = parts.at(-1)[0];
  if (last === "string" || last === "comment") return null;
  const first = opening(parts, language);
  return first !== null && first.length < lead(line).length ? first : null;
}

/** How the line begins on which the block of the last token was opened. */
function opening(parts, language) {
  const [open, close] = [OPEN[language] ?? OPEN.other, CLOSE[language] ?? CLOSE.other];
  let inner = close.has(parts.at(-1)[1]) ? 0 : -1; // else and elseif stand inside of their block
  let at = parts.length - 1;
  for (let depth = 0; at >= 0; at--) {
    const [kind, piece] = parts[at];
    if (kind === "string" || kind === "comment") continue;
    if (close.has(piece)) depth++;
    else if (open.has(piece) && --depth === inner) break;
  }
  if (at < 0) return null;
  const before = parts.slice(0, at).map(([, piece]) => piece).join("");
  return lead(before.slice(before.lastIndexOf("\n") + 1) + "x");
}
