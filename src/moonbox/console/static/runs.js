// The page Runs: rows that move with the keys, new runs as they come, a search that goes on by itself.

import { get, query } from "./api.js";
import { $, $$, count, debounced, h, plural, seconds, when } from "./dom.js";
import { key } from "./keys.js";
import { shell } from "./shell.js";

const body = $("#runs tbody");
const more = $("#more");
const filters = $("#filters");
const MOST_LIVE = 200;

const values = () => Object.fromEntries(new FormData(filters));

function row(run) {
  const failed = run.failed_calls ? ` (${count(run.failed_calls)} not ok)` : "";
  const address = `/console/runs/${encodeURIComponent(run.id)}`;
  return h(
    "tr",
    { "data-run": run.id },
    h("td", {}, h("input", { type: "checkbox", name: "compare", value: run.id, "aria-label": `Compare ${run.title || run.id}` })),
    h("td", {}, h("span", { class: `state ${run.ok ? "good" : "bad"}` }, run.ok ? "ok" : run.kind)),
    h("td", { class: "title" }, h("a", { href: address }, run.title || "(empty script)")),
    h("td", { class: "right", "data-noun": run.calls === 1 ? "call" : "calls" }, count(run.calls) + failed),
    h("td", { class: "right" }, seconds(run.wall)),
    h("td", {}, run.language),
    h("td", { class: "nowrap" }, when(run.started)),
  );
}

const known = (id) => $(`tr[data-run="${CSS.escape(id)}"]`, body);

function matches(run) {
  const { state, kind, tool, repl, language, label, q, before } = values();
  if (tool || label || q || before || new URLSearchParams(location.search).get("before")) return false; // only the server can tell
  if (state === "ok" && !run.ok) return false;
  if (state === "failed" && run.ok) return false;
  return (!kind || run.kind === kind) && (!repl || run.repl === repl) && (!language || run.language === language);
}

function arrived(run) {
  if (known(run.id) || !matches(run)) return;
  const line = row(run);
  line.classList.add("new");
  body.prepend(line);
  while (body.rows.length > MOST_LIVE) body.lastElementChild.remove();
  $("#nothing").hidden = true;
  $("#runs").hidden = false;
}

async function load(cursor) {
  more.disabled = true;
  const { state, ...rest } = values();
  const ok = state === "ok" ? "true" : state === "failed" ? "false" : "";
  const page = await get("/runs" + query({ ...rest, ok, before: cursor, limit: 50 }));
  body.append(...page.runs.filter((run) => !known(run.id)).map(row));
  offer(page);
  more.disabled = false;
  if (page.next && page.runs.length === 0) load(page.next); // nothing in this stretch of the trail: look further back
}

function offer(page) {
  more.hidden = !page.next;
  more.dataset.cursor = page.next ?? "";
  $("#searched").textContent = page.next && page.searched_back_to ? `Searched back to ${when(page.searched_back_to)}.` : "";
  $("#nothing").hidden = body.rows.length > 0 || Boolean(page.next);
  $("#runs").hidden = body.rows.length === 0;
}

more.addEventListener("click", () => load(more.dataset.cursor));
filters.addEventListener("change", () => filters.requestSubmit());
$("[data-search]").addEventListener("input", debounced(400, () => filters.requestSubmit()));

function chosen() {
  return $$('input[name="compare"]:checked', body).map((box) => box.value);
}

function compare() {
  const [a, b] = chosen();
  if (a && b) location.assign("/console/compare" + query({ a: b, b: a }));
}

body.addEventListener("change", () => {
  const boxes = chosen();
  $("#compare").disabled = boxes.length !== 2;
  $("#compare").textContent = boxes.length === 2 ? "Compare these two" : `Compare (choose ${plural(2 - boxes.length, "run")})`;
});
$("#compare").addEventListener("click", compare);

function move(step) {
  const links = $$("td.title a", body);
  const now = links.indexOf(document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, now + step))]?.focus();
}
key("j", "Next run", () => move(+1));
key("k", "Previous run", () => move(-1));
key("x", "Choose the run for a comparison", () => $('input[type="checkbox"]', document.activeElement?.closest?.("tr") ?? h("p"))?.click());
key("c", "Compare the two chosen runs", compare);

async function caughtUp() {
  const { runs } = await get("/runs?limit=50");
  runs.reverse().forEach(arrived);
}

shell({ run: arrived, caughtUp });
if (more.dataset.cursor && body.rows.length === 0) load(more.dataset.cursor);
