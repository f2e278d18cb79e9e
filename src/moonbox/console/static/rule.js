// A rule for later calls of a tool, as a form of its arguments: any value, this one, at most this one, one of these.

import { h } from "./dom.js";
import { isNumber, number, stringify } from "./json.js";

const LONGEST = 200;

/** {element, read}: `read` gives the rule by argument, such as {cents: {maximum: 10000}}, or raises an Error with the
 *  reason why it is none. */
export function ruleForm(fields) {
  const rows = fields.filter(([, value]) => isPlain(value)).map(([name, value]) => row(name, value));
  const read = () => Object.fromEntries(rows.map(({ name, read }) => [name, read()]).filter(([, rule]) => rule));
  return { first: rows[0]?.first, element: h("div", { class: "rule" }, rows.map(({ element }) => element)), read };
}

const isPlain = (value) => isNumber(value) || typeof value === "boolean" || (typeof value === "string" && value.length <= LONGEST && !value.includes("\n"));

function row(name, value) {
  const kinds = [["", "any"], ["const", "equal to"], ...(isNumber(value) ? [["maximum", "at most"]] : []), ...(typeof value === "boolean" ? [] : [["enum", "one of"]])];
  const kind = h("select", { "aria-label": `Rule for ${name}` }, kinds.map(([key, label]) => h("option", { value: key }, label)));
  const input = h("input", { type: "text", value: String(value), "aria-label": `Values for ${name}`, autocomplete: "off", hidden: true });
  kind.addEventListener("change", () => {
    input.hidden = !kind.value;
    input.placeholder = kind.value === "enum" ? "with commas" : "";
  });
  const one = (text) => {
    const given = isNumber(value) ? number(text.trim()) : typeof value === "boolean" ? { true: true, false: false }[text.trim()] ?? null : text.trim();
    if (given === null || given === "") throw new Error(`${name}: ${stringify(text.trim())} is not a ${isNumber(value) ? "number" : typeof value}`);
    return given;
  };
  const read = () => {
    if (!kind.value) return null;
    return { [kind.value]: kind.value === "enum" ? input.value.split(",").map(one) : one(input.value) };
  };
  return { name, read, first: kind, element: h("div", { class: "rule-row" }, h("code", {}, name), kind, input) };
}

/** A rule in words. */
export function ruleText(rules) {
  const words = { const: "=", maximum: "≤", minimum: "≥", enum: "one of" };
  return Object.entries(rules ?? {})
    .flatMap(([name, rule]) => Object.entries(rule).map(([kind, value]) => `${name} ${words[kind] ?? kind} ${Array.isArray(value) ? value.map((item) => stringify(item)).join(", ") : stringify(value)}`))
    .join(" and ");
}
