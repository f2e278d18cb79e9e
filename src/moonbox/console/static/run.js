// The page of one run, and the comparison of two.

import { get, path } from "./api.js";
import { $, $$, h, pageData } from "./dom.js";
import { colouredLines } from "./highlight.js";
import { key } from "./keys.js";
import { shell } from "./shell.js";
import { Timeline } from "./timeline.js";
import { runView } from "./value.js";
import { Walk } from "./walk.js";

for (const block of $$("[data-source]")) {
  const wrong = Number(block.dataset.line);
  const lines = colouredLines(block.textContent.replace(/\n$/, ""), block.dataset.language).map((line, index) =>
    h("span", { class: index + 1 === wrong ? "line here bad" : "line", id: block.dataset.anchor ? `L${index + 1}` : null }, h("span", { class: "number" }, String(index + 1)), line),
  );
  block.replaceChildren(...lines);
}

let walk = null; // where the run is recorded
for (const place of $$("[data-timeline]")) {
  const timeline = new Timeline(place, (call) => walk?.look(call.index));
  timeline.show(pageData(place, "timeline"));
  if ($("#walk")) walk = new Walk($("#walk"), $("#moment"), timeline);
}

const WITHOUT_VALUE = { ok: "The script returned no value.", running: "The script is still running." };
const value = $("#values");
if (value?.dataset.run) {
  get(path("runs", value.dataset.run))
    .then((run) => {
      const views = runView(run.values, pageData(value, "media"));
      value.replaceChildren(...(views.length ? views : [h("p", { class: "dim" }, WITHOUT_VALUE[run.state] ?? "The script failed before it returned a value.")]));
    })
    .catch((problem) => value.replaceChildren(h("p", { class: "bad-text" }, problem.message)));
}

for (const [letter, relation, text] of [["[", "prev", "Earlier run of the same session"], ["]", "next", "Later run of the same session"]]) {
  key(letter, text, () => $(`a[rel="${relation}"]`)?.click() ?? false);
}
key("o", "Open the script in the playground", () => $("#open-in-playground")?.click() ?? false);

const head = $("[data-shown]");
const hasEnded = (run) => head?.dataset.state === "running" && run.id === head.dataset.shown && run.state !== "running";
shell({
  run: (run) => hasEnded(run) && location.reload(),
  approval: (question) => walk?.ask(question),
  answered: (answer) => walk?.settled(answer),
});
