// Two values as one tree: what is the same is folded, what differs shows both.

import { count, h, plural } from "./dom.js";
import { isNumber, stringify } from "./json.js";
import { node } from "./value.js";

const MOST = 200;

const isLeaf = (value) => value === null || typeof value !== "object" || isNumber(value);
const same = (a, b) => stringify(a ?? null) === stringify(b ?? null) && (a === undefined) === (b === undefined);

/** A tree of `a` and `b`. */
export function differenceView(name, a, b) {
  return h("div", { class: "tree" }, difference(name, a, b));
}

function difference(name, a, b) {
  if (same(a, b)) return node(name, a, false);
  if (a === undefined) return onlyIn("ins", "only in B", name, b);
  if (b === undefined) return onlyIn("del", "only in A", name, a);
  if (isLeaf(a) || isLeaf(b) || Array.isArray(a) !== Array.isArray(b)) return h("div", { class: "leaf" }, label(name), h("span", {}, h("del", {}, text(a)), " → ", h("ins", {}, text(b))));
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  const changed = names.filter((each) => !same(a[each], b[each]));
  const shown = changed.slice(0, MOST).map((each) => difference(Array.isArray(a) ? Number(each) + 1 : each, a[each], b[each]));
  const rest = changed.length - shown.length;
  return h(
    "details",
    { open: true },
    h("summary", {}, label(name), h("span", { class: "dim" }, `${plural(changed.length, "difference")} in ${count(names.length)}`)),
    h("div", { class: "inside" }, shown, rest ? h("p", { class: "dim" }, `${count(rest)} more differ`) : null),
  );
}

const label = (name) => (name === null ? null : h("span", { class: "key" }, String(name)));

function onlyIn(tag, said, name, value) {
  return h("div", { class: "leaf" }, label(name), h("span", {}, h(tag, {}, text(value)), h("span", { class: "dim" }, ` ${said}`)));
}

/** A value in a line; long ones are cut. */
function text(value) {
  const whole = typeof value === "string" ? value : stringify(value, { clip: 200 });
  return whole.length > 400 ? `${whole.slice(0, 400)}… (${count(whole.length)} characters)` : whole;
}
