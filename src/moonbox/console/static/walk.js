// Time travel in the page of a run: its calls on a slider; at each one the script's line and variables, what was printed
// so far, the call and its answer; and another answer, with which the run goes on.

import { get, path, post, query } from "./api.js";
import { $, $$, debounced, failed, h, seconds } from "./dom.js";
import { Inbox } from "./inbox.js";
import { parse, stringify } from "./json.js";
import { key } from "./keys.js";
import { argumentsTree, node, runView, tree } from "./value.js";

const WAIT = 120;

export class Walk {
  /** `moment` is the place for what there was at a call. */
  constructor(root, moment, timeline) {
    this.moment = moment;
    this.timeline = timeline;
    this.run = root.dataset.run;
    this.calls = timeline.calls;
    this.at = 0; // the number of a call; 0: as the run ended
    this.views = new Map();
    this.source = null; // of a fork that goes on
    const button = (label, title, job) => h("button", { type: "button", class: "chip", title, "aria-label": title, onClick: job }, label);
    this.slider = h("input", { type: "range", min: 1, max: this.calls.length + 1, value: this.calls.length + 1, "aria-label": "Call", onInput: () => this.look(Number(this.slider.value)) });
    this.said = h("output", {}, "as it ended");
    root.replaceChildren(button("←", "Earlier call", () => this.step(-1)), this.slider, button("→", "Later call", () => this.step(+1)), this.said);
    this.fetch = debounced(WAIT, () => this.show());
    key("p", "Look at the earlier call", () => this.step(-1));
    key("n", "Look at the later call", () => this.step(+1));
    const wanted = Number(new URLSearchParams(location.search).get("at"));
    if (wanted) this.look(wanted);
  }

  step(by) {
    this.look((this.at || this.calls.length + 1) + by);
  }

  /** Show the run as it was at this call; after the last one, as it ended. */
  look(at) {
    const place = Math.max(1, Math.min(this.calls.length + 1, at));
    this.at = place > this.calls.length ? 0 : place;
    const call = this.calls[this.at - 1];
    this.slider.value = place;
    this.said.textContent = call ? `call ${this.at} of ${this.calls.length}: ${call.tool}` : "as it ended";
    this.slider.setAttribute("aria-valuetext", this.said.textContent);
    history.replaceState(null, "", location.pathname + query({ at: this.at || "" }));
    this.timeline.lookAt(call ? call.index : 0);
    if (call) return this.fetch();
    this.point(0);
    this.moment.hidden = true;
  }

  async show() {
    const { at } = this;
    if (!at) return;
    if (!this.views.has(at)) {
      this.moment.setAttribute("aria-busy", "true");
      const answer = await get(path("runs", this.run, "moments", at)).catch((problem) => ({ problem: problem.message }));
      this.views.set(at, answer);
      this.moment.removeAttribute("aria-busy");
    }
    if (at !== this.at) return; // the slider is elsewhere by now
    const view = this.views.get(at);
    this.point(view.line ?? 0);
    this.moment.replaceChildren(h("h2", {}, `At call ${at}: `, h("code", {}, this.calls[at - 1].tool)), ...(view.problem ? [h("p", { class: "bad-text" }, view.problem)] : [facts(view), this.fork(view)]));
    this.moment.hidden = false;
  }

  /** Mark the line of the script, and bring it into sight. */
  point(line) {
    for (const marked of $$(".line.now")) marked.classList.remove("now");
    const found = line && $(`#L${line}`);
    if (!found) return;
    found.classList.add("now");
    const place = found.parentElement;
    place.scrollTop += found.getBoundingClientRect().top - place.getBoundingClientRect().top - place.clientHeight / 2;
  }

  // Another answer

  fork(view) {
    const { call, at } = view;
    const kind = h("select", { "aria-label": "Kind of answer", onChange: () => fill() }, h("option", { value: "value" }, "this value"), h("option", { value: "error" }, "this failure"), h("option", { value: "run" }, "call the tool again"));
    const text = h("textarea", { rows: 4, class: "code", spellcheck: "false", "aria-label": "Answer" });
    const said = h("div", { "aria-live": "polite" });
    const questions = h("div");
    const fill = () => {
      text.hidden = kind.value === "run";
      text.value = kind.value === "error" ? (call.error?.message ?? "it failed") : stringify(call.status === "ok" ? call.result : null, { indent: "  " });
    };
    const button = (label, title, main, job) => h("button", { type: "button", class: `button ${main}`, title, onClick: job }, label);
    const go = async (dry) => {
      const answer = { id: at, kind: kind.value };
      try {
        if (kind.value === "value") answer.value = parse(text.value);
        if (kind.value === "error") answer.message = text.value;
      } catch (wrong) {
        return said.replaceChildren(h("p", { class: "bad-text", role: "alert" }, `The answer is not valid JSON: ${wrong.message}`));
      }
      said.replaceChildren(h("p", { class: "dim" }, dry ? "Running on with recorded answers…" : "Running on; its calls are made…"));
      this.source = dry ? null : view.source;
      for (const each of buttons) each.disabled = true;
      const came = await post(path("runs", this.run, "forks"), { at, answers: [answer], dry }).catch((problem) => ({ problem: problem.message }));
      for (const each of buttons) each.disabled = false;
      this.source = null;
      said.replaceChildren(...this.cameTo(came, dry));
    };
    const buttons = [button("Go on, dry", "No tool is called: recorded answers serve, and the first call without one ends it", "", () => go(true)), button("Go on, live", "Later calls are made, after approval where it is needed; the fork is a run of its own", "main", () => go(false))];
    if (call.status === "error" && call.error) kind.value = "error";
    fill();
    this.inbox = new Inbox(questions);
    return h(
      "details",
      { class: "fork", open: this.forking, onToggle: ({ target }) => (this.forking = target.open) },
      h("summary", {}, "Change this answer and go on from here"),
      h("div", { class: "row" }, "Answer with ", kind),
      text,
      h("div", { class: "row" }, buttons, h("a", { class: "button", href: `/console/playground${query({ run: this.run })}` }, "Open in the playground")),
      questions,
      said,
    );
  }

  /** What a fork came to. */
  cameTo({ problem, run, output, stopped }, dry) {
    if (problem) return [h("p", { class: "bad-text", role: "alert" }, problem)];
    const printed = output ? h("pre", { class: "model-text", tabindex: "0", role: "region", "aria-label": "Printed by the fork" }, output) : null;
    if (stopped) {
      const { call, at } = stopped;
      return [h("p", {}, `It stops at call ${at}: nothing is recorded that answers `, h("code", {}, call.tool), " with these arguments."), argumentsTree(call), printed].filter(Boolean);
    }
    const state = h("span", { class: `state ${run.ok ? "good" : "bad"}` }, run.ok ? "ok" : failed(run.error));
    const links = dry ? " It was not kept." : h("span", {}, " ", h("a", { href: `/console/runs/${encodeURIComponent(run.id)}` }, "Open the new run"), " · ", h("a", { href: `/console/compare${query({ a: this.run, b: run.id })}` }, "Compare it with this one"));
    return [h("p", {}, state, `after ${seconds(run.usage.wall)}.`, links), run.error ? h("p", { class: "bad-text" }, run.error.message) : null, printed, ...runView(run.values, run.media)].filter(Boolean);
  }

  /** A question of the fork is answered here. */
  ask(question) {
    if (!this.source || question.source !== this.source) return false;
    this.inbox.add(question);
    return true;
  }

  settled({ id }) {
    this.inbox?.remove(id);
  }
}

function facts({ frames, globals, output, call, ends, language }) {
  const names = Object.keys(globals);
  const answer = ends ? h("p", { class: "dim" }, `${ends[0].toUpperCase()}${ends.slice(1)}.`) : call.status === "ok" ? tree(call.result, "answer", false) : h("p", { class: "bad-text" }, call.error ? `${call.error.code}: ${call.error.message}` : call.status);
  return h(
    "div",
    {},
    argumentsTree(call),
    answer,
    h("h3", {}, "Locals"),
    frames.map(frame),
    language === "python" ? h("p", { class: "dim" }, "Python does not tell the variables of functions; those of the script itself are globals.") : null,
    h("h3", {}, "Globals"),
    names.length ? h("div", { class: "tree" }, names.map((name) => node(name, globals[name], false))) : h("p", { class: "dim" }, "none"),
    output ? [h("h3", {}, "Printed so far"), h("pre", { class: "model-text", tabindex: "0", role: "region", "aria-label": "Printed so far" }, output)] : null,
  );
}

/** A function that has not returned, with its variables. */
function frame({ function: name, line, own, locals }) {
  const where = [name, line > 0 ? `line ${line}` : "", own ? "" : "of an earlier run"].filter(Boolean).join(" · ");
  const known = Object.entries(locals);
  return h("div", {}, h("p", { class: "dim frame" }, where), known.length ? h("div", { class: "tree" }, known.map(([each, value]) => node(each, value, false))) : null);
}
