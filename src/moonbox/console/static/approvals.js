// The page Approvals: an inbox.

import { $, h, when } from "./dom.js";
import { edits, questionCard, questionKeys, removeQuestion } from "./question.js";
import { shell } from "./shell.js";

const inbox = $("#inbox");
const past = $("#answered");
const SAID = { allow: "allowed", always: "always allowed", edit: "allowed with edits", deny: "denied", expired: "not answered", withdrawn: "withdrawn" };

function add(question) {
  if ($(`[data-question="${CSS.escape(question.id)}"]`, inbox)) return true;
  inbox.append(questionCard(question));
  empty();
  return true;
}

function remove(id) {
  removeQuestion(inbox, id);
  empty();
}

function empty() {
  $("#nothing").hidden = inbox.childElementCount > 0;
}

function line(answer) {
  const { tool, decision, reason, by, answered, run } = answer;
  return h(
    "li",
    {},
    h("code", {}, tool),
    ` ${SAID[decision] ?? decision}`,
    by ? ` by ${by}` : "",
    reason ? `: ${reason}` : "",
    ...edits(answer).map(([name, before, after]) => h("span", {}, " · ", h("code", {}, name), " ", h("del", {}, before), " → ", h("ins", {}, after))),
    h("span", { class: "dim" }, ` · ${when(answered)}`),
    run ? [" · ", h("a", { href: `/console/runs/${encodeURIComponent(run)}` }, `run ${run.slice(0, 8)}`)] : null,
  );
}

function show({ pending, answered }) {
  for (const card of [...inbox.children]) if (!pending.some(({ id }) => id === card.dataset.question)) removeQuestion(inbox, card.dataset.question);
  pending.forEach(add);
  past.replaceChildren(...answered.map(line));
  $("#past").hidden = answered.length === 0;
  empty();
}

questionKeys(inbox);

shell({
  approval: add,
  answered: ({ id }) => remove(id),
  caughtUp: show,
});
