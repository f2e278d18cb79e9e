// The page Approvals: an inbox.

import { $, h, when } from "./dom.js";
import { Inbox } from "./inbox.js";
import { edits } from "./question.js";
import { ruleText } from "./rule.js";
import { shell } from "./shell.js";
import { brief, inOrder, node } from "./value.js";

const place = $("#inbox");
const inbox = new Inbox(place);
const past = $("#answered");
const SAID = { allow: "allowed", always: "always allowed", edit: "allowed with edits", deny: "denied", expired: "not answered", withdrawn: "withdrawn" };

function add(question) {
  inbox.add(question);
  empty();
  return true;
}

function remove(id) {
  inbox.remove(id);
  empty();
}

function empty() {
  $("#nothing").hidden = place.childElementCount > 0;
}

/** What was decided, about which arguments: in a line, and as a whole below it. */
function line(answer) {
  const { tool, decision, reason, by, answered, run, kind, when: rule } = answer;
  const fields = inOrder({ ...answer, arguments: answer.edited ?? answer.arguments });
  const changed = edits(answer);
  const told = [
    kind === "script" ? "a script" : h("code", {}, tool),
    ` ${SAID[decision] ?? decision}`,
    rule ? ` where ${ruleText(rule)}` : "",
    by ? ` by ${by}` : "",
    reason ? `: ${reason}` : "",
    ...changed.map(([name, before, after]) => h("span", {}, " · ", h("code", {}, name), " ", h("del", {}, before), " → ", h("ins", {}, after))),
    fields.length && !changed.length ? h("span", { class: "dim" }, ` · ${brief(fields)}`) : null,
    h("span", { class: "dim" }, ` · ${when(answered)}`),
  ];
  const whole = fields.length ? h("details", {}, h("summary", {}, told), h("div", { class: "tree" }, fields.map(([name, value]) => node(name, value, false)))) : h("p", {}, told);
  return h("li", {}, whole, run ? h("a", { href: `/console/runs/${encodeURIComponent(run)}` }, `run ${run.slice(0, 8)}`) : null);
}

function show({ pending, answered }) {
  inbox.show(pending);
  past.replaceChildren(...answered.map(line));
  $("#past").hidden = answered.length === 0;
  empty();
}

shell({
  approval: add,
  answered: ({ id }) => remove(id),
  caughtUp: show,
});
