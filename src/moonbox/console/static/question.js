// One approval: what would be called, by which script at which line, and what a person may say.

import { path, post } from "./api.js";
import { $$, h, toast, when } from "./dom.js";
import { colouredLines } from "./highlight.js";
import { parse, stringify } from "./json.js";
import { ruleForm } from "./rule.js";
import { inOrder, node } from "./value.js";

const AROUND = 2;

/** A card for a question: whether a call may be made, or whether a script may run. */
export function questionCard(question) {
  const { id, tool, run, source, kind } = question;
  const isScript = kind === "script";
  const destructive = question.hints.includes("destructive") || (isScript && question.tools.some(({ effect }) => effect === "destroys"));
  const hints = question.hints.filter((hint) => hint !== "destructive"); // the badge says it
  const fields = inOrder(question);
  const problem = h("p", { class: "bad-text", role: "alert" });
  const panels = { deny: denial(), edit: isScript ? scriptEditor() : editor(), always: rule() };
  const about = [`asked ${when(question.asked)}`, run && `run ${run.slice(0, 8)}`, ...Object.entries(question.labels).map((label) => label.join("=")), hints.join(", ")];
  const card = h(
    "article",
    { class: `card question${destructive ? " destructive" : ""}`, "data-question": id, "data-tool": tool, tabindex: "-1", "aria-labelledby": `what-${id}` },
    h("h2", { id: `what-${id}` }, isScript ? "A script waits for your approval" : [h("code", {}, tool), " waits for your approval"], destructive ? h("span", { class: "state bad" }, "destructive") : null),
    isScript ? h("p", {}, "Nothing of it has run.") : question.description ? h("p", {}, question.description) : null,
    changes(question),
    h(
      "div", // in which the buttons stay in view: they never stand above what they are about
      {},
      isScript ? [named(question), found(question)] : fields.length ? h("div", { class: "tree arguments" }, fields.map(([name, value]) => node(name, value, false))) : h("p", { class: "dim" }, "Without arguments."),
      script(question),
      h("p", { class: "dim" }, about.filter(Boolean).join(" · ")),
      h(
        "div",
        { class: "actions" },
        h(
          "div",
          { class: "row" },
          button("Allow", "good", () => send({ decision: "allow" }), "a"),
          button("Deny…", "", () => toggle("deny"), "d"),
          button("Edit…", "", () => toggle("edit"), "e"),
          source ? button("Always…", "", () => toggle("always"), "w") : null, // a direct call has no session
        ),
        Object.values(panels).map(({ element }) => element),
        problem,
      ),
    ),
  );

  function button(label, kind, job, letter) {
    return h("button", { type: "button", class: `button ${kind}`, "data-key": letter ?? null, onClick: job }, label, letter ? h("kbd", { "aria-hidden": "true" }, letter) : null);
  }

  function denial() {
    const reason = h("input", { type: "text", id: `reason-${id}`, maxlength: 500, autocomplete: "off" });
    const deny = () => send({ decision: "deny", reason: reason.value });
    reason.addEventListener("keydown", (event) => event.key === "Enter" && deny());
    return { first: reason, element: h("div", { class: "row", hidden: true }, h("label", { for: reason.id }, "Reason for the script"), reason, button("Deny", "bad", deny)) };
  }

  function editor() {
    const edited = h("textarea", { id: `edit-${id}`, rows: 6, spellcheck: "false", class: "code" });
    edited.value = stringify(Object.fromEntries(fields), { indent: "  " });
    return { first: edited, element: h("div", { hidden: true }, h("label", { for: edited.id }, "Arguments, as JSON"), edited, button("Allow with these", "good", sendEdited)) };

    function sendEdited() {
      try {
        send({ decision: "edit", arguments: parse(edited.value) });
      } catch (wrong) {
        problem.textContent = `The arguments are not valid JSON: ${wrong.message}`;
      }
    }
  }

  function scriptEditor() {
    const edited = h("textarea", { id: `edit-${id}`, rows: 14, spellcheck: "false", class: "code" });
    edited.value = source;
    return { first: edited, element: h("div", { hidden: true }, h("label", { for: edited.id }, "The script"), edited, button("Allow this script", "good", () => send({ decision: "edit", arguments: { script: edited.value } }))) };
  }

  /** This call and later ones: all of them, or those whose arguments the rule fits. Of a script, the same text. */
  function rule() {
    const form = ruleForm(isScript ? [] : fields);
    const scope = h("select", { "aria-label": "How long" }, h("option", { value: "repl" }, "in this session"), h("option", { value: "run" }, "in this run"));
    const allow = button("Always allow", "good", sendRule);
    const what = isScript ? "the same script again, until it or a tool that it names changes" : ["this call, and later calls of ", h("code", {}, tool)];
    return { first: form.first ?? allow, element: h("div", { hidden: true }, h("p", {}, "Allow ", what, " ", scope, form.first ? " whose arguments are:" : "."), form.element, allow) };

    function sendRule() {
      try {
        const when = form.read();
        send({ decision: "always", scope: scope.value, ...(Object.keys(when).length ? { when } : {}) });
      } catch (wrong) {
        problem.textContent = wrong.message;
      }
    }
  }

  function toggle(name) {
    for (const [key, { element }] of Object.entries(panels)) element.hidden = key !== name || !element.hidden;
    if (!panels[name].element.hidden) panels[name].first.focus();
    problem.textContent = "";
    enable(true);
  }

  /** While the arguments are edited, nothing allows the call with those from before. */
  function enable(on) {
    for (const each of $$("button", card)) each.disabled = !on || (!panels.edit.element.hidden && "aw".includes(each.dataset.key ?? " "));
  }

  async function send(body) {
    enable(false);
    try {
      await post(path("approvals", id), body);
    } catch (failure) {
      problem.textContent = failure.message;
      enable(true);
      if (failure.status === 404) toast("Somebody else answered it.", "note");
    }
  }

  return card;
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

/** The tools that a script names, and what each does. */
function named({ tools }) {
  if (!tools.length) return h("p", { class: "dim" }, "It names no tool.");
  const kinds = { reads: "", changes: "warn", destroys: "bad" };
  return h("ul", { class: "named" }, tools.map(({ tool, description, effect }) => h("li", {}, h("code", {}, tool), " ", h("span", { class: `state ${kinds[effect] ?? ""}` }, effect), " ", h("span", { class: "dim" }, description.split("\n", 1)[0]))));
}

function found({ findings }) {
  return findings.map(({ severity, line, message }) => h("p", { class: severity === "error" ? "bad-text" : "hint" }, `line ${line}: ${message}`));
}

/** The lines around those that name the tool; of a script that asks for itself, all. */
function script({ source, lines, language, kind }) {
  if (!source) return h("p", { class: "dim" }, "Called directly, not from a script.");
  const coloured = colouredLines(source.replace(/\n$/, ""), language);
  const whole = kind === "script";
  const first = whole ? 1 : Math.max(1, (lines[0] ?? 1) - AROUND);
  const last = whole ? coloured.length : Math.min(coloured.length, (lines.at(-1) ?? 3) + AROUND, first + 14);
  const shown = coloured.slice(first - 1, last).map((line, index) => {
    const number = first + index;
    return h("span", { class: lines.includes(number) && !whole ? "line here" : "line" }, h("span", { class: "number" }, String(number)), line);
  });
  const where = whole ? "The script" : lines.length === 0 ? "By the script" : `By the script, line${lines.length === 1 ? "" : "s"} ${lines.join(", ")}`;
  return h("figure", { class: "snippet" }, h("figcaption", { class: "dim" }, where), h("pre", { tabindex: "0" }, shown));
}
