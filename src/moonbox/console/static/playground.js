// The playground: write a script, run it or step through it, and see what it does while it does it.

import { get, path, post, request } from "./api.js";
import { $, $$, copy, count, failed, h, pageData, plural, seconds, toast, when } from "./dom.js";
import { callAt, signatureParameters } from "./complete.js";
import * as kept from "./drafts.js";
import { Editor } from "./editor.js";
import { Inbox } from "./inbox.js";
import { number, parse } from "./json.js";
import { key } from "./keys.js";
import { banner, shell } from "./shell.js";
import { maximiser, split } from "./split.js";
import { Timeline } from "./timeline.js";
import { argumentsTree, gallery, runView } from "./value.js";

const page = pageData($("#playground"));
const language = () => $("#language").value;
const status = $("#status");
const problems = $("#problems");
const timeline = new Timeline($("#timeline"));
const questions = new Inbox($("#questions"));
const live = shell({ started, output, progress, call, pause, done, lost, approval: ask, answered: settled, caughtUp: compareQuestions, connected });
const tools = new Map(page.catalog.tools.map(({ call: name, signature }) => [name, signatureParameters(signature)]));
let names = [];
let session = null;
let shown = "";
let pointed = 0;
let state = "idle";
let isConnected = true;

const editor = new Editor($("#editor"), {
  names: (source, before) => completions(source, before),
  changed: () => {
    keep();
    check();
  },
});

/** What was shown and not changed is no draft. The text belongs to the editor's language: another one may have just been chosen. */
function keep() {
  if (editor.source !== shown) kept.save(editor.language, (shown = editor.source));
}
addEventListener("pagehide", keep);

// The session

const SESSION = "moonbox-session";
const LANGUAGE = "moonbox-language";
const RUN_NOW = "moonbox-run-now";

function limits() {
  const chosen = { preset: $("#preset").value };
  for (const input of $$("#limits input")) if (input.value !== "") chosen[input.name] = number(input.value) ?? Number(input.value);
  return chosen;
}

/** The session, the language and the draft of this tab, as they were left; what the address asks for comes before them.
 *  The server put all of it into the page: an answer that came later would replace what a person has written since. */
function open() {
  const own = sessionStorage.getItem(SESSION);
  if (page.source !== null) showText(page.source);
  else if (page.session_source !== null && page.session !== own) showText(page.session_source);
  else {
    const left = sessionStorage.getItem(LANGUAGE);
    if (page.session_source === null && left in page.samples) setLanguage(left); // else the page has the session's
    showDraft();
  }
  const wanted = page.source === null && (page.session || own);
  if (wanted) return attach(wanted);
  showGlobals();
  check();
  if (page.run && sessionStorage.getItem(RUN_NOW) === page.run) {
    sessionStorage.removeItem(RUN_NOW); // only the list of runs sets it: an address alone runs nothing
    run();
  }
}

function setLanguage(name) {
  $("#language").value = editor.language = name;
  names = catalogNames(page.catalog);
}

/** The text of a recorded run, or of a session of another tab: a new draft of this one. */
function showText(source) {
  kept.choose(language());
  editor.source = source;
}

function showDraft() {
  editor.source = kept.draft(language()) ?? page.scripts[language()] ?? kept.latest(language()) ?? page.samples[language()] ?? "";
  shown = editor.source;
}

async function begin() {
  if (session) return;
  const made = await post("/sessions", { language: language() });
  attach(made.id);
}

/** From now on scripts run in this session. */
function attach(id) {
  session = id;
  sessionStorage.setItem(SESSION, session);
  sessionStorage.setItem(LANGUAGE, language());
  history.replaceState(null, "", `/console/playground/${encodeURIComponent(session)}`);
  live.follow(session, 0); // the latest run is told again from its start
  showGlobals();
}

function compareQuestions({ pending }) {
  questions.show(pending.filter(ask));
  const mine = session;
  if (mine) get(path("sessions", mine)).catch(({ status }) => status === 404 && mine === session && sessionLost());
}

/** The session is left at once, and ended by the server when it gets to it. */
function forget() {
  if (!session) return;
  request("DELETE", path("sessions", session)).catch(() => null);
  leave();
}

function leave() {
  session = ran = null;
  sessionStorage.removeItem(SESSION);
  live.follow("", 0);
  history.replaceState(null, "", "/console/playground");
  questions.clear();
  setState("idle");
  showGlobals();
}

function sessionLost() {
  leave();
  say("the session has ended", "bad");
  banner(
    "lost",
    "The session has ended: the server was restarted, or nobody used it for an hour. Its globals are lost, and so is a script that ran.",
    ["Run again", () => run()],
    ["Close", () => banner("", "")],
  );
  check();
}

// Running

async function run(step = false) {
  if (state === "paused" && step) return resume();
  if (state !== "idle") return;
  setState("starting");
  say("starting…");
  banner("", "");
  kept.save(language(), editor.source);
  kept.remember(language(), editor.source);
  showScripts();
  problems.replaceChildren();
  checks++; // what is being checked is not of interest any more
  const source = (ran = editor.source);
  let mine = null;
  try {
    await begin();
    mine = session;
    await post(path("sessions", mine, "run"), { source_code: source, step, limits: limits() });
  } catch (problem) {
    if (mine !== session) return; // the session was left meanwhile
    setState("idle");
    ran = null;
    if (problem.status === 404) return sessionLost();
    say(problem.message, "bad");
  }
}

async function resume(answers) {
  try {
    setState("running");
    await post(path("sessions", session, "resume"), answers ? { answers } : {});
  } catch (problem) {
    say(problem.message, "bad");
  }
}

async function stop() {
  if (!session || state === "idle") return;
  say("stopping…");
  await post(path("sessions", session, "stop")).catch((problem) => say(problem.message, "bad"));
}

function setState(name) {
  state = name;
  $("#run").disabled = name !== "idle";
  $("#step").disabled = name !== "idle" && name !== "paused";
  $("#stop").disabled = name === "idle";
  $("#language").disabled = name !== "idle";
  $("#playground").dataset.state = name;
  if (name === "paused") return;
  $("#paused").replaceChildren();
  if (editor.here) editor.point(0);
}

/** Mark the line of the first call: the next one that names its tool, after the one that was marked last. */
function pointAt([{ tool }]) {
  const name = tool.slice(tool.lastIndexOf(".") + 1);
  const named = editor.source.split("\n").flatMap((line, index) => (line.includes(name) ? [index + 1] : []));
  pointed = named.find((line) => line > pointed) ?? named[0] ?? 0;
  editor.point(pointed);
}

function say(text, kind = "") {
  status.className = `status ${kind}`;
  status.textContent = text;
}

// What the server tells

function started(event) {
  setState("running");
  ran = event.source;
  pointed = 0;
  say("running…");
  $("#output").textContent = "";
  isAtEnd = true;
  $("#values").replaceChildren();
  $("#model").replaceChildren();
  $("#record").hidden = $("#share").hidden = true;
  problems.replaceChildren();
  editor.mark([]);
  timeline.show({ run: "", started: 0 });
  timeline.behind = event.started - Date.now() / 1000;
  if (!editor.source && !editor.touched) editor.source = event.source;
}

function output({ text }) {
  $("#output").append(text);
  toEnd();
}

// The output ends at its last line, unless a person has scrolled back in it.
let isAtEnd = true;
$("#output").addEventListener("scroll", ({ target: box }) => (isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 40));
const toEnd = () => isAtEnd && ($("#output").scrollTop = $("#output").scrollHeight);

function progress({ done, total, text }) {
  say(`running… ${count(done)}${total === null ? "" : ` of ${count(total)}`}${text ? `: ${text}` : ""}`);
}

function call(event) {
  timeline.update(event);
}

function pause({ calls }) {
  setState("paused");
  pointAt(calls);
  say(`paused before ${plural(calls.length, "call")}`);
  const rows = calls.map((item) => pausedCall(item));
  const goOn = () => {
    const answers = rows.map((row) => row.answer());
    if (!answers.includes(null)) resume(answers);
  };
  const go = h("button", { type: "button", class: "button good", onClick: goOn }, "Go on");
  $("#paused").replaceChildren(
    h("article", { class: "card" }, h("h2", {}, `The script waits for ${plural(calls.length, "call")}`), rows.map((row) => row.element), h("div", { class: "row" }, go)),
  );
  go.focus();
}

/** A call before it is answered: run it, or answer in its place. */
function pausedCall(call) {
  const { id, tool } = call;
  const choice = h(
    "select",
    { "aria-label": `Answer of ${tool}`, onChange: () => (own.hidden = choice.value === "run") },
    h("option", { value: "run" }, "run the tool"),
    h("option", { value: "value" }, "answer with this value"),
    h("option", { value: "error" }, "fail with this message"),
  );
  const own = h("textarea", { rows: 2, hidden: true, class: "code", "aria-label": `Value or message for ${tool}`, placeholder: "JSON value, or a message" });
  const problem = h("p", { class: "bad-text", role: "alert" });
  const answer = () => {
    if (choice.value === "run") return { id, kind: "run" };
    if (choice.value === "error") return { id, kind: "error", message: own.value || "it failed" };
    try {
      return { id, kind: "value", value: parse(own.value) };
    } catch (wrong) {
      if (!/^\s*["[{]/.test(own.value)) return { id, kind: "value", value: own.value }; // a text without its quotes
      problem.textContent = `This is not valid JSON: ${wrong.message}`;
      return null;
    }
  };
  return { answer, element: h("div", { class: "paused-call" }, h("code", {}, tool), argumentsTree(call, "arguments", false), choice, own, problem) };
}

function done({ run, report }) {
  setState("idle");
  const error = run.error;
  const waited = waitedFor(report.timeline.calls.filter((call) => call.approval));
  const facts = [seconds(run.usage.wall), waited ? `${seconds(waited)} waiting for you` : "", plural(run.calls, "call")].filter(Boolean);
  if (error) say(`${failed(error)} · ${facts.join(" · ")}`, "bad");
  else say(`ok · ${facts.join(" · ")}`, "good");
  if (run.output_cut) $("#output").append(`\n… ${count(run.output_cut)} more bytes were printed and are lost`);
  toEnd();
  showValues(run);
  if (editor.source === ran) showError(error, run.state_lost); // its lines are those of the text that ran
  showModel(report, run.media);
  timeline.show({ run: run.id, ...report.timeline });
  $("#record").hidden = false;
  $("#record").href = `/console/runs/${encodeURIComponent(run.id)}`;
  $("#share").hidden = false;
  showGlobals();
}

/** Seconds in which at least one of the calls waited for a person: together, not one after the other. */
function waitedFor(calls) {
  let [sum, until] = [0, 0];
  for (const [start, end] of calls.map(({ started, queued }) => [Number(started), started + queued]).sort(([a], [b]) => a - b)) {
    sum += Math.max(0, end - Math.max(start, until));
    until = Math.max(until, end);
  }
  return sum;
}

/** Without a connection nobody knows whether the run goes on. */
function connected(yes) {
  if (yes === isConnected) return;
  isConnected = yes;
  if (state === "idle") return;
  if (yes) say(state === "paused" ? "paused" : "running…");
  else say("no connection: whether the run goes on is not known", "bad");
}

function lost({ message }) {
  setState("idle");
  say(message, "bad");
}

function showValues(run) {
  $("#values").replaceChildren(...runView(run.values, run.media));
  if (run.error) $("#values").prepend(h("p", { class: "bad-text" }, run.error.line ? h("b", {}, `line ${run.error.line}: `) : null, messageOf(run.error)));
  if (run.large) $("#values").append(h("p", { class: "dim" }, "The value is too large for this page; its record has it."));
  else if (!run.values.length && !run.error) $("#values").append(h("p", { class: "dim" }, "no value returned"));
}

const isDenial = ({ kind, code }) => kind === "denied" && code === "approval_denied";

/** To the person who denied a call; the tab "Model sees" shows what a model is told. */
function messageOf(error) {
  if (!isDenial(error)) return error.message;
  const at = error.message.indexOf(": ");
  return `the call of ${error.tool} was denied${at < 0 ? "" : error.message.slice(at)}`;
}

function showError(error, stateLost) {
  if (!error) return editor.mark([]);
  const denied = isDenial(error);
  const message = messageOf(error);
  editor.mark([{ line: error.line, severity: "error", message }]);
  const parts = [
    error.hint && !denied ? h("p", { class: "hint" }, h("b", {}, "hint: "), error.hint) : null,
    error.line ? h("button", { type: "button", class: "chip", onClick: () => editor.goTo(error.line) }, `Go to line ${error.line}`) : null,
    fix(error),
    error.traceback ? h("details", {}, h("summary", {}, "Traceback"), h("pre", { tabindex: "0" }, error.traceback)) : null,
    stateLost ? h("p", { class: "dim" }, "The session's globals are lost; the next run starts afresh.") : null,
  ];
  problems.replaceChildren(h("div", { class: "problem", role: "alert" }, parts));
}

/** What a message offers, as a button: another name in its line, or another line. */
function fix({ line, message, hint }) {
  const text = `${message}\n${hint ?? ""}`;
  const old = lineOf(line);
  if (!line || old === undefined) return null;
  const wanted = /did you mean ['"`]?([\w.]+)['"`]?\?/.exec(text)?.[1];
  const wrong = /(?:unknown \w+|there is no \w+|field|global|variable|method|tool) ['"`]?([\w.]+)['"`]?/.exec(text)?.[1];
  if (wanted && wrong && wanted !== wrong) {
    const short = (name) => name.slice(name.lastIndexOf(".") + 1);
    return mendingButton(line, `Change it to ${wanted}`, () => old.replace(short(wrong), () => short(wanted)));
  }
  const other = /\bwrite: ([^\n…]+)$/.exec(hint ?? "")?.[1];
  return other && isWholeLine(other, old) ? mendingButton(line, "Use this line", () => /^\s*/.exec(old)[0] + other) : null;
}

const lineOf = (number) => editor.source.split("\n")[number - 1];

function mendingButton(line, label, mended) {
  const old = lineOf(line);
  const apply = () => {
    if (lineOf(line) !== old) return check(); // it was changed since
    editor.replaceLine(line, mended());
    editor.mark([]);
    problems.replaceChildren();
  };
  return h("button", { type: "button", class: "chip", onClick: apply }, label);
}

/** Hints also name parts of a line. A whole one has all of its words, but for one that Lua does not have. */
function isWholeLine(offered, old) {
  const words = (text) => text.toLowerCase().match(/\w+/g) ?? [];
  const kept = new Set(words(offered));
  const lost = words(old).filter((word) => !kept.has(word));
  return new Set(lost).size <= 1 && !lost.some((word) => word === "return" || word === "local");
}

function showModel({ model, economy }, media) {
  const spared = economy.spared > 0 ? `${count(economy.spared)} tokens spared against ${plural(economy.calls, "direct call")}` : "";
  $("#model").replaceChildren(
    h(
      "p",
      { class: "dim row" },
      [`about ${plural(model.tokens, "token")}`, spared].filter(Boolean).join(" · "),
      h("button", { type: "button", class: "chip", onClick: () => copy(model.text, "What the model sees is in the clipboard.") }, "Copy"),
    ),
    h("pre", { class: "model-text", tabindex: "0", role: "region", "aria-label": "What the model would be shown" }, model.text),
    ...(media.length ? [h("p", { class: "dim" }, `and ${plural(media.length, "medium", "media")}:`), gallery(media)] : []),
  );
}

async function showGlobals() {
  const place = $("#globals");
  if (!session) return place.replaceChildren(h("p", { class: "dim" }, "Run a script to begin a session; its globals stay for the next run."));
  if (state !== "idle") return;
  const mine = session;
  const { globals } = await get(path("sessions", mine, "globals")).catch(() => ({ globals: {} }));
  if (mine !== session) return;
  const rows = Object.entries(globals).map(([name, kind]) =>
    h("tr", {}, h("td", {}, h("button", { type: "button", class: "chip", title: `Insert ${name}`, onClick: () => editor.insert(name) }, name)), h("td", { class: "dim" }, kind)),
  );
  place.replaceChildren(rows.length ? h("table", {}, h("tbody", {}, rows)) : h("p", { class: "dim" }, "No globals yet."));
}

// Approvals of this session

function ask(question) {
  if (!session || question.session !== session) return false;
  questions.add(question);
  timeline.asking.add(question.index);
  if (isConnected) say("waiting for your approval");
  return true;
}

function settled({ id }) {
  questions.remove(id);
  if (isConnected && state === "running" && !$("#questions .question")) say("running…");
}

// The check, as one types

let checks = 0;
let ran = null; // the script whose run is shown: its error stays until the script is changed

async function check() {
  if (state !== "idle" || editor.source === ran) return;
  const mine = ++checks;
  ran = null;
  const source = editor.source;
  const answer = await post("/check", { source_code: source, language: language(), session }).catch(() => null);
  if (!answer || mine !== checks || state !== "idle" || editor.source !== source) return; // what was written since is checked next
  editor.mark(answer.findings);
  const rows = answer.findings.slice(0, 20).map((finding) =>
    h(
      "div",
      { class: `finding ${finding.severity}` },
      h("button", { type: "button", class: "chip", onClick: () => editor.goTo(finding.line ?? 1) }, `line ${finding.line ?? "?"}`),
      h("span", { class: "message" }, finding.message),
      finding.hint ? h("span", { class: "dim" }, finding.hint) : null,
      fix(finding),
    ),
  );
  problems.replaceChildren(...rows);
}

// Completion

/** A call with room for its arguments, and how far the caret goes back into it. */
function callText(name, signature) {
  const form = { rhai: "(#{})", python: "()" }[language()] ?? "{}";
  const has = signatureParameters(signature).length > 0;
  return { insert: name + form, back: has ? (form === "(#{})" ? 2 : 1) : 0 };
}

function catalogNames(catalog) {
  const own = catalog.words.map((name) => ({ name, detail: "" }));
  const tools = catalog.tools.flatMap(({ call: name, signature, fields }) => [
    { name, detail: signature, ...callText(name, signature) },
    ...fields.map((field) => ({ name: field, detail: `field of ${name}` })),
  ]);
  const seen = new Set();
  return [...tools, ...own].filter(({ name }) => !seen.has(name) && seen.add(name));
}

/** Inside the table of a call its parameters that are not given yet, those that it needs first; elsewhere all names. */
function completions(source, before) {
  const place = callAt(before.slice(-20_000), editor.language);
  const tool = place && place.key && tools.get(place.call);
  if (!tool) return { words: [...names, ...localNames(before, source.slice(before.length))], eager: false };
  const sign = { rhai: ": ", python: "=" }[editor.language] ?? " = ";
  const left = tool.filter(({ name }) => !place.given.has(name)).sort((a, b) => b.required - a.required);
  return { words: left.map(({ name, type, required }) => ({ name, detail: `${type} · ${required ? "required" : "optional"}`, insert: name + sign })), eager: (editor.language === "python" ? /[(,\s]$/ : /[{,\s]$/).test(before) };
}

/** The words of a script, without the one that is being written. */
function localNames(before, after) {
  const taken = new Set(names.map(({ name }) => name));
  const source = `${before.slice(-50_000).replace(/\w+$/, "")} ${after.slice(0, 50_000).replace(/^\w+/, "")}`;
  const found = new Set(source.match(/\b[A-Za-z_]\w{2,}\b/g) ?? []);
  return [...found].filter((name) => !taken.has(name)).map((name) => ({ name, detail: "in this script" }));
}

// The page's own controls

$("#run").addEventListener("click", () => run());
$("#step").addEventListener("click", () => run(true));
$("#stop").addEventListener("click", stop);
$("#reset").addEventListener("click", forget);
$("#language").addEventListener("change", () => {
  keep();
  forget();
  sessionStorage.setItem(LANGUAGE, language());
  setLanguage(language());
  showDraft();
  showScripts();
  check();
});
$("#drafts").addEventListener("toggle", showScripts);
$("#new-draft").addEventListener("click", () => use({ source: "" }));

/** Show a draft, or a script of the history as a new draft. */
function use({ id, source }) {
  keep();
  kept.choose(language(), id);
  editor.source = shown = source;
  editor.touched = true; // chosen by the person, also where it is empty
  check();
  showScripts();
  editor.text.focus();
}

/** The first comment of a script, or else its first line. */
function title({ source }) {
  const lines = source.split("\n").map((line) => line.trim()).filter(Boolean);
  const comments = lines.map((line) => /^(?:--+|\/\/+|#+(?!\{))\s*(?=\w)(.*)/.exec(line)?.[1]).filter(Boolean);
  return (comments[0] ?? lines[0] ?? "").slice(0, 80);
}

function showScripts() {
  if (!$("#drafts").open) return;
  const row = (item, ...more) => h("li", {}, h("button", { type: "button", class: "cell", onClick: () => use(item) }, title(item)), h("span", { class: "dim" }, when(item.at / 1000)), more);
  const nothing = (text) => [h("li", { class: "dim" }, text)];
  const drafts = kept.drafts(language()).map((item) => row(item, h("button", { type: "button", class: "chip", "aria-label": `Delete the draft ${title(item)}`, onClick: () => { kept.remove(item.id); showScripts(); } }, "Delete")));
  const history = kept.history(language()).map((item) => row(item));
  $("#draft-list").replaceChildren(...(drafts.length ? drafts : nothing("No drafts yet.")));
  $("#history-list").replaceChildren(...(history.length ? history : nothing("No script was run yet.")));
}

$("#share").addEventListener("click", async () => {
  const address = new URL($("#record").href, location.href).href;
  try {
    await navigator.clipboard.writeText(address);
    toast("The address of this run is in the clipboard.");
  } catch {
    toast(address);
  }
});

function showTab(name) {
  for (const tab of $$('[role="tab"]')) {
    const on = tab.dataset.tab === name;
    tab.setAttribute("aria-selected", String(on));
    tab.tabIndex = on ? 0 : -1;
    $(`#panel-${tab.dataset.tab}`).hidden = !on;
  }
  toEnd();
}
for (const tab of $$('[role="tab"]')) {
  tab.addEventListener("click", () => showTab(tab.dataset.tab));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const tabs = $$('[role="tab"]');
    const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
    showTab(next.dataset.tab);
    next.focus();
  });
}

key("Ctrl+Enter", "Run the script", () => run());
key("Ctrl+Shift+Enter", "Step: stop before each batch of calls", () => run(true));
key("Ctrl+.", "Stop the run", stop);
key("Ctrl+e", "Go to the editor", () => editor.text.focus());
for (const [digit, tab, name] of [["1", "result", "Result"], ["2", "model", "Model sees"], ["3", "globals", "Globals"]]) {
  key(digit, `Show the tab ${name}`, () => showTab(tab));
}

split($(".work"));
$("#tab-row").append(maximiser($("#result-pane")));

// A call that is not answered yet grows on the timeline.
setInterval(() => state === "running" && isConnected && timeline.tick(), 200);

setLanguage(language());
open();
