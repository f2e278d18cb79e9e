// The comparison of two runs: their calls side by side, each with its place in time; arguments, answers and values as trees.

import { get, path } from "./api.js";
import { Axis, spans, together } from "./axis.js";
import { differenceView } from "./difference.js";
import { $, $$, h, pageData, s } from "./dom.js";
import { key } from "./keys.js";
import { shell } from "./shell.js";
import { inOrder } from "./value.js";

const HEIGHT = 10;
const compared = $("#compared");
const pairs = $("#pairs");
const percent = (share) => `${(share * 100).toFixed(3)}%`;

/** Draw when each call of one run was made, into the cells of its side. */
function drawSide(side) {
  const { started, wall, calls: made } = pageData(pairs, side === "a" ? "timelineA" : "timelineB");
  const calls = together(made, started);
  const times = calls.map((call) => spans(call, 0, false));
  const axis = new Axis(times, calls.reduce((first, call) => Math.min(first, call.started), started || calls[0]?.started || 0), wall, 0);
  const place = new Map(calls.map((call, index) => [call.index, index]));
  for (const row of $$("tbody tr", pairs)) {
    const at = place.get(Number(row.dataset[side]));
    if (at === undefined) continue;
    const { wait, work, asked } = times[at];
    const bar = ([from, to], name) => (to > from ? s("rect", { class: `tl-bar ${name}`, x: percent(axis.at(from)), width: percent(Math.max(0.004, axis.at(to) - axis.at(from))), y: 0, height: HEIGHT, rx: 2 }) : null);
    const picture = s("svg", { width: "100%", height: HEIGHT, "aria-hidden": "true" }, bar(wait, asked ? "ask" : "wait"), bar(work, calls[at].status === "ok" ? "ok" : "bad"));
    $(`[data-side="${side}"]`, row).prepend(picture);
  }
}

/** Below a line, its calls as a whole: what differs in their arguments and answers. */
async function unfold(row) {
  const button = $("button", row);
  const open = button.getAttribute("aria-expanded") === "false";
  button.setAttribute("aria-expanded", String(open));
  if (!open) return row.nextElementSibling.remove();
  const place = h("td", { colspan: 3 }, h("p", { class: "dim" }, "…"));
  row.after(h("tr", { class: "whole" }, place));
  const call = (side) => (row.dataset[side] ? get(path("runs", compared.dataset[side], "calls", row.dataset[side])) : null);
  const [a, b] = await Promise.all([call("a"), call("b")]).catch((problem) => [{ error: problem }, null]);
  const answer = (given) => (given === null ? undefined : given.error ? { code: given.error.code, message: given.error.message } : given.result);
  const given = (of) => of?.arguments && Object.fromEntries(inOrder(of));
  place.replaceChildren(differenceView("arguments", given(a), given(b)), differenceView("answer", answer(a), answer(b)));
}

if (pairs) {
  drawSide("a");
  drawSide("b");
  for (const row of $$("tbody tr", pairs)) $("button", row).addEventListener("click", () => unfold(row));
  key("n", "Go to the first difference", () => $("#first button")?.focus() ?? Boolean($("#first")));
}

Promise.all([get(path("runs", compared.dataset.a)), get(path("runs", compared.dataset.b))])
  .then(([a, b]) => {
    const only = (values) => (values.length > 1 ? values : values[0]);
    const views = [a.values.length || b.values.length ? differenceView("value", only(a.values), only(b.values)) : h("p", { class: "dim" }, "Neither run returned a value.")];
    if (a.output || b.output) views.push(differenceView("printed", a.output, b.output));
    compared.replaceChildren(...views);
  })
  .catch((problem) => compared.replaceChildren(h("p", { class: "bad-text" }, problem.message)));

shell();
