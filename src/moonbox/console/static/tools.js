// The pages Tools and one tool: a form made from the schema, and the call's result.

import { post } from "./api.js";
import { $, $$, h, pageData } from "./dom.js";
import { Inbox } from "./inbox.js";
import { isNumber, number, parse, stringify } from "./json.js";
import { key } from "./keys.js";
import { parameters, typeText } from "./schema.js";
import { shell } from "./shell.js";
import { tree, valueView } from "./value.js";

const KEPT = "moonbox-arguments";

for (const place of $$("[data-schema]")) place.replaceChildren(tree(pageData(place, "schema"), place.dataset.name));

const form = $("#call");
if (form) {
  const listed = parameters(pageData(form, "parameters"));
  const fields = listed.map(field);
  $("#parameters").replaceChildren(...(listed.length ? [parameterTable(listed)] : [h("p", { class: "dim" }, "This tool has no parameters.")]));
  const returns = $("#returns");
  if (returns) {
    const schema = pageData($('[data-name="result"]'), "schema");
    returns.textContent = typeText(schema, schema);
  }
  remember(fields);
  $("#fields").replaceChildren(...(fields.length ? fields.map((item) => item.element) : [h("p", { class: "dim" }, "This tool has no parameters.")]));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    call(fields);
  });
}

/** What was typed stays in this tab when the page is left. */
function remember(fields) {
  const kept = parse(sessionStorage.getItem(KEPT) ?? "{}")[form.dataset.tool] ?? {};
  for (const { name, element } of fields) {
    const input = $("input, select, textarea", element);
    if (typeof kept[name] === "string") input.value = kept[name];
  }
  addEventListener("pagehide", () => {
    const values = fields.map(({ name, element }) => [name, $("input, select, textarea", element).value]);
    const all = parse(sessionStorage.getItem(KEPT) ?? "{}");
    try {
      sessionStorage.setItem(KEPT, stringify({ ...all, [form.dataset.tool]: Object.fromEntries(values) }));
    } catch {
      // it is too large to be kept
    }
  });
}

function parameterTable(listed) {
  const head = ["Name", "Type", "", "Description"].map((name) => h("th", { scope: "col" }, name || h("span", { class: "quiet" }, "Required or default")));
  const rows = listed.map(({ name, part, type, required, bounds }) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("code", {}, name)),
      h("td", {}, h("code", {}, type), bounds ? h("div", { class: "dim" }, bounds) : null),
      h("td", { class: "dim" }, required ? "required" : part.default === undefined || part.default === null ? "optional" : `default ${stringify(part.default, { clip: 80 })}`),
      h("td", {}, typeof part.description === "string" ? part.description : ""),
    ),
  );
  return h("div", { class: "scroll rows", tabindex: "0", role: "region", "aria-label": "Table: Parameters" }, h("table", { class: "parameters" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)));
}

/** An input for one parameter. Whatever is not plain text, a number or a choice is JSON. */
function field({ name, part, type: text, required, bounds }) {
  const id = `field-${name}`;
  const type = part.type;
  let input;
  let read;
  if (Array.isArray(part.enum)) {
    input = h("select", { id }, required ? null : h("option", { value: "" }, "(left out)"), part.enum.map((item, index) => h("option", { value: index }, String(item))));
    read = () => (input.value === "" ? undefined : part.enum[Number(input.value)]);
  } else if (type === "boolean") {
    input = h("select", { id }, required ? null : h("option", { value: "" }, "(left out)"), h("option", { value: "true" }, "true"), h("option", { value: "false" }, "false"));
    read = () => (input.value === "" ? undefined : input.value === "true");
  } else if (type === "integer" || type === "number") {
    input = h("input", { id, type: "number", step: type === "integer" ? "1" : "any", min: limit(part.minimum), max: limit(part.maximum), required });
    read = () => (input.value === "" ? undefined : (number(input.value) ?? Number(input.value)));
  } else if (type === "string") {
    input = h("textarea", { id, rows: 1, spellcheck: "false" });
    read = () => (input.value === "" && !required ? undefined : input.value);
  } else {
    input = h("textarea", { id, rows: 3, class: "code", spellcheck: "false", placeholder: "JSON" });
    read = () => (input.value.trim() === "" ? undefined : parse(input.value));
  }
  if (part.default !== undefined && part.default !== null) input.setAttribute("placeholder", stringify(part.default, { clip: 200 }));
  const note = [typeof part.description === "string" ? part.description : "", text, bounds, required ? "required" : null].filter(Boolean).join(" · ");
  return { name, read, element: h("div", { class: "field" }, h("label", { for: id }, name), input, note ? h("p", { class: "dim" }, note) : null) };
}

function limit(value) {
  return isNumber(value) ? String(value) : null;
}

async function call(fields) {
  const result = $("#result");
  const given = {};
  for (const { name, read } of fields) {
    try {
      const value = read();
      if (value !== undefined) given[name] = value;
    } catch (wrong) {
      result.replaceChildren(h("p", { class: "bad-text", role: "alert" }, `${name} is not valid JSON: ${wrong.message}`));
      return;
    }
  }
  $("#send").disabled = true;
  result.replaceChildren(h("p", { class: "dim" }, "Calling…"));
  try {
    const answer = await post(`/tools/${form.dataset.tool.split("/").map(encodeURIComponent).join("/")}?background=true`, given);
    result.replaceChildren(valueView(answer.result, "result"), link(answer.run));
  } catch (problem) {
    result.replaceChildren(h("p", { class: "bad-text", role: "alert" }, `${problem.code}: ${problem.message}`), problem.run ? link(problem.run) : "");
  } finally {
    $("#send").disabled = false;
  }
}

const link = (run) => h("p", {}, h("a", { href: `/console/runs/${encodeURIComponent(run)}` }, "Open the record of this call"));

function move(step) {
  const links = $$(".tool-list a.tool-name");
  const now = links.indexOf(document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, now + step))]?.focus();
}
if ($(".tool-list")) {
  key("j", "Next tool", () => move(+1));
  key("k", "Previous tool", () => move(-1));
}

// A direct call that waits for a person is answered here, also after the page was left and opened again.

const asked = $("#asked");
const inbox = asked && new Inbox(asked);
const waiting = new Map(); // the runs of questions that were shown here

function ask(question) {
  if (!asked || question.source || question.tool !== form.dataset.tool) return false;
  waiting.set(question.id, question.run);
  inbox.add(question);
  return true;
}

function settled({ id }) {
  if (!asked || !waiting.has(id)) return;
  inbox.remove(id);
  if (!$("#send").disabled) $("#result").replaceChildren(h("p", {}, "The call was answered."), link(waiting.get(id))); // it was made before this page
  waiting.delete(id);
}

shell({
  approval: ask,
  answered: settled,
  caughtUp: ({ pending }) => {
    for (const id of [...waiting.keys()]) if (!pending.some((question) => question.id === id)) settled({ id });
    pending.forEach(ask);
  },
});
