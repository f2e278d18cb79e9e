// The page Runs: filtered in place, sorted and grouped, with new runs as they come.

import { get, query } from "./api.js";
import { $, $$, count, debounced, failed, h, plural, seconds, toast, when } from "./dom.js";
import { stringify } from "./json.js";
import { key } from "./keys.js";
import { shell } from "./shell.js";
import { compare as byValue, csv, download } from "./table.js";

const place = $("#runs");
const body = $("tbody", place);
const more = $("#more");
const filters = $("#filters");
const group = $("#group");
const MOST_LIVE = 200;
const MOST_EXPORTED = 10_000;
/** The tokens that a script has spared; a direct call spares none. */
const spared = (run) => (run.language === "direct" ? 0 : Math.max(0, run.spared ?? 0));
const COLUMNS = ["id", "started", "state", "kind", "language", "repl", "calls", "failed_calls", "open_calls", "wall", "spared", "title", "labels"];

const runs = new Map(); // by their ids, as the server told of them
const rows = new Map();
let waiting = new Set(); // runs that wait for a person
let before = place.dataset.before; // where a page begins that is deep in the trail
let sort = ["started", -1];
let loads = 0;
let most = MOST_LIVE; // rows that stay when new ones come: also those that were asked for

const values = () => Object.fromEntries(new FormData(filters));
const isFiltered = () => Object.values(values()).some(Boolean) || Boolean(before);

// Rows

function row(run) {
  const doubt = run.state === "running" ? "running" : "in doubt";
  const parts = [[run.failed_calls, "failed"], [run.open_calls, doubt]].filter(([number]) => number).map(([number, what]) => `${count(number)} ${what}`);
  const wrong = parts.length ? ` (${parts.join(", ")})` : null;
  const address = `/console/runs/${encodeURIComponent(run.id)}`;
  const again = () => sessionStorage.setItem("moonbox-run-now", run.id);
  return h(
    "tr",
    { "data-run": run.id, "data-state": run.state },
    h("td", {}, h("input", { type: "checkbox", name: "compare", value: run.id, "aria-label": `Compare ${run.title || run.id}` })),
    h("td", {}, run.waits ? h("a", { class: "state warn", href: "/console/approvals" }, "waits for you") : h("span", { class: `state ${{ ok: "good", running: "warn" }[run.state] ?? "bad"}` }, run.kind ? failed(run) : run.state)),
    h("td", { class: "title" }, h("a", { href: address }, run.title || "(empty script)")),
    h("td", { class: "right" }, h("span", { "data-noun": run.calls === 1 ? "call" : "calls" }, count(run.calls)), wrong),
    h("td", { class: "right" }, run.state === "running" ? "" : seconds(run.wall)),
    h("td", { class: "right", "data-noun": "spared" }, spared(run) > 0 ? count(spared(run)) : ""),
    h("td", {}, run.language),
    h("td", { class: "nowrap" }, when(run.started)),
    h("td", {}, run.language === "direct" ? null : h("a", { class: "chip", href: `/console/playground${query({ run: run.id })}`, onClick: again, "aria-label": "Run again" }, h("span", { class: "wide-only" }, "Run again"), h("span", { class: "phone-only" }, "↻"))),
  );
}

/** Keep a run, and make its row anew where something of it is new. */
function keep(run, isNew = false) {
  const known = runs.get(run.id);
  const whole = { ...known, ...run, waits: waiting.has(run.id) && run.state === "running" };
  if (known && stringify(known) === stringify(whole)) return;
  const line = row(whole);
  const old = rows.get(run.id);
  if (old) $("input", line).checked = $("input", old).checked;
  const focused = old?.contains(document.activeElement);
  if (isNew || old?.classList.contains("new")) line.classList.add("new");
  old?.replaceWith(line);
  if (focused) $("td.title a", line).focus();
  runs.set(run.id, whole);
  rows.set(run.id, line);
}

function draw() {
  const [by, direction] = sort;
  const sorted = [...runs.values()].sort((a, b) => direction * byValue(a[by], b[by]) || (a.id < b.id ? 1 : -1));
  for (const head of $$("[data-sort]", place)) head.setAttribute("aria-sort", head.dataset.sort !== by ? "none" : direction > 0 ? "ascending" : "descending");
  const groups = new Map();
  for (const run of sorted) {
    const name = group.value === "repl" ? run.repl : (run.labels?.[group.value] ?? "");
    groups.set(name, [...(groups.get(name) ?? []), run]);
  }
  const lines = group.value ? [...groups].flatMap(([name, members]) => [heading(name, members), ...members.map(({ id }) => rows.get(id))]) : sorted.map(({ id }) => rows.get(id));
  const focused = document.activeElement;
  if (lines.length !== body.rows.length || lines.some((line, index) => line !== body.rows[index])) body.replaceChildren(...lines);
  if (focused !== document.activeElement && body.contains(focused)) focused.focus();
  place.hidden = runs.size === 0;
  $("#nothing").hidden = runs.size > 0 || !more.hidden;
  for (const text of $$("#nothing [data-when]")) text.hidden = (text.dataset.when === "filtered") !== isFiltered();
  $("#clear").hidden = !isFiltered();
}

function heading(name, members) {
  const label = group.value === "repl" ? "session" : group.value;
  const wrong = members.filter(({ state }) => state === "failed").length;
  const tokens = members.reduce((sum, run) => sum + spared(run), 0);
  const facts = [plural(members.length, "run"), wrong && `${count(wrong)} failed`, tokens && `${count(tokens)} tokens spared`].filter(Boolean).join(" · ");
  const where = group.value === "repl" ? { repl: name } : { label: `${group.value}=${name}` };
  const title = name ? h("a", { href: "/console/runs" + query(where) }, `${label} ${name.slice(0, 60)}`) : `without a ${label}`;
  return h("tr", { class: "group" }, h("th", { colspan: 9, scope: "rowgroup" }, title, h("span", { class: "dim" }, ` · ${facts}`)));
}

/** Labels that runs have can be grouped by. */
function offerGroups() {
  const known = new Set([...group.options].map(({ value }) => value));
  for (const run of runs.values()) {
    for (const name of Object.keys(run.labels ?? {})) {
      if (!known.has(name) && known.size < 30) group.append(h("option", {}, name));
      known.add(name);
    }
  }
}

// Loading

const fetchRuns = (cursor, limit = 50, details = true) => get("/runs" + query({ ...values(), before: cursor, limit, details }));

/** The runs of these filters instead of those that are shown. What is being typed stays as it is. */
async function filter() {
  before = "";
  const mine = ++loads;
  runs.clear();
  rows.clear();
  most = MOST_LIVE;
  await load("", mine);
}

/** The runs before this one; where a stretch of the trail has few matches, the ones before it too. */
async function load(cursor, mine) {
  place.setAttribute("aria-busy", "true");
  more.disabled = true;
  try {
    const page = await fetchRuns(cursor, 50, false); // what takes longer comes after it
    if (mine !== loads) return; // other filters were chosen meanwhile
    page.runs.forEach((run) => keep(run));
    most = Math.max(most, runs.size);
    offer(page);
    if (page.next && runs.size === 0) return await load(page.next, mine);
    complete();
  } catch (problem) {
    if (mine === loads) $("#searched").textContent = problem.message;
  } finally {
    if (mine === loads) place.removeAttribute("aria-busy");
    more.disabled = false;
  }
}

function offer({ next, searched_back_to: until }) {
  more.hidden = !next;
  more.dataset.cursor = next ?? "";
  $("#searched").textContent = next && until ? `Searched back to ${when(until)}.` : "";
  offerGroups();
  draw();
}

/** The address has what is chosen, and nothing else. */
function address() {
  const [by, direction] = sort;
  const order = by === "started" && direction < 0 ? "" : `${direction < 0 ? "-" : ""}${by}`;
  return location.pathname + query({ ...values(), sort: order, group: group.value });
}

/** Sort and group as the address says. */
function look() {
  const given = new URLSearchParams(location.search);
  const [, minus, by] = /^(-?)(.*)/.exec(given.get("sort") ?? "-started");
  if ($(`[data-sort="${CSS.escape(by)}"]`, place)) sort = [by, minus ? -1 : 1];
  const wanted = given.get("group") ?? "";
  if (![...group.options].some(({ value }) => value === wanted)) group.append(h("option", {}, wanted));
  group.value = wanted;
}

function matches(run) {
  const { state, kind, tool, repl, language, label, q, since, until } = values();
  if (tool || label || q || since || until || before) return false; // only the server can tell
  return (!state || run.state === state) && (!kind || run.kind === kind) && (!repl || run.repl === repl) && (!language || run.language === language);
}

function arrived(run) {
  if (runs.get(run.id)?.state === run.state) return;
  if (!matches(run)) {
    if (!runs.delete(run.id)) return;
    rows.get(run.id).remove();
    rows.delete(run.id);
    return draw();
  }
  keep(run, true);
  const sorted = [...runs.values()].sort((a, b) => b.started - a.started);
  for (const { id } of sorted.splice(most)) {
    runs.delete(id);
    rows.delete(id);
    more.dataset.cursor = sorted.findLast(({ state }) => state !== "running")?.id ?? ""; // from there they are loaded again
    more.hidden = false;
  }
  draw();
  complete();
}

/** What live events do not have: labels, tokens and the total. */
const complete = debounced(100, async () => {
  const mine = loads;
  const page = await fetchRuns(before, Math.min(500, Math.max(50, runs.size))).catch(() => null);
  if (!page || mine !== loads) return;
  for (const run of page.runs) if (runs.has(run.id)) keep(run);
  $("#total").textContent = page.total === null ? "" : plural(page.total, "run");
  offerGroups();
  draw();
});

function wait(ids) {
  waiting = new Set(ids);
  for (const run of [...runs.values()]) keep(run);
  draw();
}

async function caughtUp({ pending }) {
  wait(pending.map(({ run }) => run));
  await first; // else the whole list would count as new
  const { runs: latest } = await get("/runs?limit=50");
  latest.reverse().forEach(arrived);
}

async function exported(kind) {
  const found = [];
  toast("Collecting the runs…");
  for (let cursor = before; found.length < MOST_EXPORTED; ) {
    const page = await fetchRuns(cursor, 500);
    found.push(...page.runs);
    if (!page.next) break;
    cursor = page.next;
  }
  const cells = found.map((run) => COLUMNS.map((name) => (name === "labels" ? Object.entries(run.labels ?? {}).map((pair) => pair.join("=")).join(" ") : name === "started" ? new Date(run.started * 1000).toISOString() : run[name])));
  if (kind === "csv") download("runs.csv", "text/csv", csv(COLUMNS, cells));
  else download("runs.json", "application/json", stringify(found, { indent: "  " }));
}

// The page's own controls

more.addEventListener("click", () => load(more.dataset.cursor, loads));
filters.addEventListener("submit", (event) => event.preventDefault());
filters.addEventListener("change", (event) => {
  history.pushState(null, "", address());
  if (event.target === group) return draw();
  filter();
});
$("[data-search]").addEventListener(
  "input",
  debounced(250, () => {
    if (address() === location.pathname + location.search) return;
    history.replaceState(null, "", address());
    filter();
  }),
);
addEventListener("popstate", () => {
  const given = new URLSearchParams(location.search);
  for (const field of filters.elements) if (field.name) field.value = given.get(field.name) ?? "";
  look();
  filter();
});
for (const head of $$("[data-sort]", place)) {
  $("button", head).addEventListener("click", () => {
    const by = head.dataset.sort;
    sort = [by, sort[0] === by ? -sort[1] : -1];
    history.replaceState(null, "", address());
    draw();
  });
}
for (const button of $$("[data-export]")) {
  button.addEventListener("click", () => exported(button.dataset.export).catch((problem) => toast(problem.message, "bad")));
}

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
  $("#compare").textContent = boxes.length === 2 ? "Compare these two" : "Compare (choose 2 runs)";
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

look();
const first = load(before, loads);
shell({ run: (run) => first.then(() => arrived(run)), caughtUp, approval: ({ run }) => wait([...waiting, run]) });
