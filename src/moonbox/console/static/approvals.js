// The page Approvals: an inbox.

import { $, $$, h, when } from "./dom.js";
import { key } from "./keys.js";
import { questionCard, questionKeys } from "./question.js";
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
  const card = $(`[data-question="${CSS.escape(id)}"]`, inbox);
  const next = card?.nextElementSibling ?? card?.previousElementSibling;
  const focused = card?.contains(document.activeElement);
  card?.remove();
  if (focused) next?.focus();
  empty();
}

function empty() {
  $("#nothing").hidden = inbox.childElementCount > 0;
}

function line({ tool, decision, reason, by, answered }) {
  return h("li", {}, h("code", {}, tool), ` ${SAID[decision] ?? decision}`, by ? ` by ${by}` : "", reason ? `: ${reason}` : "", h("span", { class: "dim" }, ` · ${when(answered)}`));
}

function show({ pending, answered }) {
  for (const card of [...inbox.children]) if (!pending.some(({ id }) => id === card.dataset.question)) card.remove();
  pending.forEach(add);
  past.replaceChildren(...answered.map(line));
  $("#past").hidden = answered.length === 0;
  empty();
}

function move(step) {
  const cards = $$(".question", inbox);
  const now = cards.findIndex((card) => card.contains(document.activeElement));
  cards[Math.max(0, Math.min(cards.length - 1, now + step))]?.focus();
}

questionKeys(inbox);
key("j", "Next", () => move(+1));
key("k", "Previous", () => move(-1));

shell({
  approval: add,
  answered: ({ id }) => remove(id),
  caughtUp: show,
});
