// What can be completed at a place of a script: parameters inside a call of a tool, names elsewhere.

import { tokens } from "./highlight.js";

const OPEN = "{([";
const CLOSE = "})]";
const CALLED = /((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)\s*\(?\s*#?\s*$/;

/** The call whose table the end of this text is in, and where in it: {call, given, key}; null outside of all calls. */
export function callAt(text, language) {
  const parts = tokens(text, language);
  let depth = 0;
  let inside = "";
  for (let at = parts.length - 1; at >= 0; at--) {
    const [kind, piece] = parts[at];
    if (kind === "string" || kind === "comment") {
      if (depth === 0) inside = `"" ${inside}`;
      continue;
    }
    if (CLOSE.includes(piece)) depth++;
    else if (OPEN.includes(piece) && depth > 0) depth--;
    else if (OPEN.includes(piece)) {
      const call = piece === (language === "python" ? "(" : "{") ? CALLED.exec(parts.slice(Math.max(0, at - 40), at).map(([, each]) => each).join(""))?.[1] : null;
      return call ? { call, given: new Set([...inside.matchAll(/([A-Za-z_]\w*)\s*[=:]/g)].map(([, name]) => name)), key: /(^|,)\s*\w*$/.test(inside) } : null;
    } else if (depth === 0) inside = piece + inside;
  }
  return null;
}

/** The parameters of a signature such as `(customer: string, limit?: integer) -> object[]`. */
export function signatureParameters(signature) {
  const found = [];
  let depth = 0;
  let part = "";
  for (const mark of signature) {
    if (CLOSE.includes(mark)) depth--;
    if (depth === 0 && part) {
      found.push(part);
      break;
    }
    if (depth === 1 && mark === ",") {
      found.push(part);
      part = "";
    } else if (depth > 0) part += mark;
    if (OPEN.includes(mark)) depth++;
  }
  return found.map((text) => /^\s*([A-Za-z_]\w*)(\??):\s*(.*)$/s.exec(text)).filter(Boolean).map(([, name, optional, type]) => ({ name, type, required: !optional }));
}
