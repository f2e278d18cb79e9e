// One approval: what would be called, by which script at which line, and what a person may say.

import { path, post } from "./api.js";
import { $, $$, h, toast, when } from "./dom.js";
import { parse, stringify } from "./json.js";
import { key } from "./keys.js";
import { colouredLines } from "./highlight.js";
import { tree } from "./value.js";

const AROUND = 2;
const SETTLE = 400;

/** A card for a question; `done` is called when it was answered from here. */
export function questionCard(question, done = () => {}) {
  const reason = h("input", { type: "text", id: `reason-${question.id}`, maxlength: 500, autocomplete: "off" });
  const edited = h("textarea", { id: `edit-${question.id}`, rows: 6, spellcheck: "false", class: "code" });
  edited.value = stringify(question.arguments, { indent: "  " });
  const problem = h("p", { class: "bad-text", role: "alert" });
  const panels = {
    deny: h("div", { class: "row", hidden: true }, h("label", { for: reason.id }, "Reason for the script"), reason, button("Deny", "bad", () => send({ decision: "deny", reason: reason.value }))),
    edit: h("div", { hidden: true }, h("label", { for: edited.id }, "Arguments, as JSON"), edited, button("Allow with these", "good", sendEdited)),
  };
  const destructive = question.hints.includes("destructive");
  const hints = question.hints.filter((hint) => hint !== "destructive"); // the badge says it
  const card = h(
    "article",
    { class: `card question${destructive ? " destructive" : ""}`, "data-question": question.id, tabindex: "-1", "aria-labelledby": `what-${question.id}` },
    h("h2", { id: `what-${question.id}` }, h("code", {}, question.tool), " waits for your approval", destructive ? h("span", { class: "state bad" }, "destructive") : null),
    h("p", {}, question.description || ""),
    changes(question),
    tree(question.arguments, "arguments"),
    script(question),
    h("p", { class: "dim" }, `asked ${when(question.asked)}`, question.run ? ` · run ${question.run.slice(0, 8)}` : "", ...Object.entries(question.labels).map(([name, text]) => ` · ${name}=${text}`), hints.length ? ` · ${hints.join(", ")}` : ""),
    h(
      "div",
      { class: "row" },
      button("Allow", "good", () => send({ decision: "allow" }), "a"),
      button("Deny…", "", () => toggle("deny"), "d"),
      button("Edit…", "", () => toggle("edit"), "e"),
      question.source ? button("Always in this session", "", () => send({ decision: "always" }), "w") : null, // a direct call has no session
    ),
    panels.deny,
    panels.edit,
    problem,
  );

  function button(label, kind, job, letter) {
    return h("button", { type: "button", class: `button ${kind}`, "data-key": letter ?? null, onClick: job }, label, letter ? h("kbd", { "aria-hidden": "true" }, letter) : null);
  }

  function toggle(name) {
    for (const [key, panel] of Object.entries(panels)) panel.hidden = key !== name || !panel.hidden;
    (name === "deny" ? reason : edited).focus();
    enable(true);
  }

  /** While the arguments are edited, nothing allows the call with those from before. */
  function enable(on) {
    for (const each of $$("button", card)) each.disabled = !on || (!panels.edit.hidden && "aw".includes(each.dataset.key ?? " "));
  }

  function sendEdited() {
    let given;
    try {
      given = parse(edited.value);
    } catch (wrong) {
      problem.textContent = `The arguments are not valid JSON: ${wrong.message}`;
      return;
    }
    send({ decision: "edit", arguments: given });
  }

  async function send(body) {
    enable(false);
    try {
      await post(path("approvals", question.id), body);
      done(question.id, body.decision);
    } catch (failure) {
      problem.textContent = failure.message;
      enable(true);
      if (failure.status === 404) toast("Somebody else answered it.", "note");
    }
  }

  reason.addEventListener("keydown", (event) => {
    if (event.key === "Enter") send({ decision: "deny", reason: reason.value });
  });
  return card;
}

/** The question of this id below `root` is no longer open. No other one is selected in its place: a second key must not answer it. */
export function removeQuestion(root, id) {
  const card = $(`[data-question="${CSS.escape(id)}"]`, root);
  if (!card) return;
  if (card.contains(document.activeElement)) $("#main").focus({ preventScroll: true });
  if (card.matches(":hover")) {
    root.inert = true; // what moves below the pointer is not meant by the second half of a double click
    setTimeout(() => (root.inert = false), SETTLE);
  }
  card.remove();
}

/** Letters answer the question that is selected, and none otherwise; j and k select. */
export function questionKeys(root) {
  let place = 0;
  const cards = () => $$(".question", root);
  const selected = () => cards().findIndex((card) => card.contains(document.activeElement));
  root.addEventListener("focusin", () => (place = selected()));
  const move = (step) => {
    const now = selected();
    const to = now < 0 ? place - (step < 0 ? 1 : 0) : now + step;
    cards()[Math.max(0, Math.min(cards().length - 1, to))]?.focus();
    return cards().length > 0;
  };
  key("j", "Select the next question", () => move(+1));
  key("k", "Select the previous question", () => move(-1));
  for (const [letter, text] of [["a", "Allow the selected question"], ["d", "Deny it"], ["e", "Edit its arguments"], ["w", "Always allow it in its session"]]) {
    key(letter, text, (event) => {
      const card = cards()[selected()];
      if (card && !event.repeat) $(`[data-key="${letter}"]`, card)?.click();
      return Boolean(card);
    });
  }
}

/** The calls of answered questions whose arguments were changed: [name, before, after]. */
export function edits({ arguments: before, edited }) {
  if (!edited) return [];
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(edited)])];
  const text = (value) => (value === undefined ? "nothing" : stringify(value, { clip: 80 }).slice(0, 120));
  return names.map((name) => [name, text(before?.[name]), text(edited[name])]).filter(([, old, now]) => old !== now);
}

function changes({ changed }) {
  if (!changed) return null;
  return h(
    "details",
    { class: "warning" },
    h("summary", {}, `This tool's definition changed since it was last allowed (${changed.fields.join(", ")}).`),
    h("pre", { class: "diff", tabindex: "0" }, changed.diff.map(([mark, line]) => h({ "+": "ins", "-": "del" }[mark] ?? "span", {}, `${mark} ${line}`))),
  );
}

function script({ source, lines, language }) {
  if (!source) return h("p", { class: "dim" }, "Called directly, not from a script.");
  const coloured = colouredLines(source.replace(/\n$/, ""), language);
  const first = Math.max(1, (lines[0] ?? 1) - AROUND);
  const last = Math.min(coloured.length, (lines.at(-1) ?? 3) + AROUND, first + 14);
  const shown = coloured.slice(first - 1, last).map((line, index) => {
    const number = first + index;
    return h("span", { class: lines.includes(number) ? "line here" : "line" }, h("span", { class: "number" }, String(number)), line);
  });
  const where = lines.length === 0 ? "script" : lines.length === 1 ? `line ${lines[0]}` : `lines ${lines.join(", ")}`;
  return h("figure", { class: "snippet" }, h("figcaption", { class: "dim" }, `By the script, ${where}`), h("pre", { tabindex: "0" }, shown));
}
