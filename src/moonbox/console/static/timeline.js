// The timeline of a run: a row for each call, its wait and its work as bars, batches and retries told apart.

import { get, path } from "./api.js";
import { Axis, spans, together } from "./axis.js";
import { count, h, plural, s, seconds } from "./dom.js";
import { argumentsTree, tree } from "./value.js";

const ROW = 24;
const OVER = 8; // rows above and below those in sight
const WIDEST = 64;
const CLOSE = 0.09; // a tick so near to a break has no words
const LONGEST_NAME = 30;
const WORDS = { ok: "ok", error: "failed", denied: "denied", timeout: "timed out", cancelled: "cancelled", in_flight: "running", in_doubt: "in doubt, may have taken effect" };

export class Timeline {
  /** `chosen` is called with a call that a person has chosen. */
  constructor(root, chosen = () => {}) {
    this.root = root;
    this.chosen = chosen;
    this.zoom = 1;
    this.calls = [];
    this.run = ""; // under which a call's arguments and result are found; empty while the run goes on
    this.running = false;
    this.on = 0; // the call whose card is shown
    this.now = 0; // the call at which the run is looked at
    this.cache = new Map();
    this.asking = new Set(); // calls that wait for a person now
    this.behind = 0; // how far the server's clock is ahead of ours
    this.scaleLine = h("div", { class: "tl-scale", "aria-hidden": "true" });
    this.names = h("div", { class: "tl-names", "aria-hidden": "true" });
    this.lane = h("div", { class: "tl-lane", tabindex: "0", role: "group", "aria-label": "Calls in time" });
    this.body = h("div", { class: "tl-body", onScroll: () => this.scrolled(), onWheel: (event) => this.wheel(event) }, h("div", { class: "tl-corner" }), this.scaleLine, this.names, this.lane);
    this.note = h("p", { class: "tl-note dim" });
    this.card = h("aside", { class: "tl-card", "aria-live": "polite", hidden: true });
    const tool = (label, title, job) => h("button", { type: "button", class: "chip", title, "aria-label": title, onClick: job }, label);
    this.tools = h(
      "div",
      { class: "tl-tools" },
      tool("−", "Zoom out", () => this.setZoom(this.zoom / 2)),
      tool("fit", "fit: show the whole run", () => this.setZoom(1)),
      tool("+", "Zoom in", () => this.setZoom(this.zoom * 2)),
    );
    this.key = this.legend();
    root.replaceChildren(h("div", { class: "tl-head" }, this.note, this.key, this.tools), this.body, this.card);
    this.lane.addEventListener("keydown", (event) => this.pressed(event));
    this.draw();
  }

  legend() {
    const item = (name, text) => h("span", {}, h("i", { class: `swatch ${name}` }), text);
    return h("div", { class: "tl-legend" }, item("wait", "waiting"), item("ask", "asking a person"), item("ok", "working"), item("bad", "not ok"));
  }

  /** {started, wall, running, calls: [{index, tool, status, started, queued, duration, batch, retry_of, approval, tries}]} */
  show({ run = "", started = 0, wall = 0, running = false, calls = [] }) {
    if (run !== this.run || !run) {
      this.asking.clear();
      this.cache.clear();
      this.on = this.now = this.body.scrollTop = 0;
      this.card.hidden = true;
    }
    Object.assign(this, { run, started, wall, running, calls: together(calls, started) });
    this.draw();
  }

  /** A call began or ended. */
  update(call) {
    const at = this.calls.findLastIndex(({ index }) => index === call.index);
    if (at < 0) this.calls.push(call);
    else this.calls[at] = call;
    this.drawing ||= requestAnimationFrame(() => this.draw());
  }

  /** Time goes on while calls are not answered. */
  tick() {
    if (this.calls.some(({ status }) => status === "in_flight")) this.draw();
  }

  /** The axis is that of all calls; of the rows only those in sight are elements. */
  draw() {
    cancelAnimationFrame(this.drawing);
    this.drawing = 0;
    const { calls } = this;
    const start = calls.reduce((first, call) => Math.min(first, call.started), this.started || calls[0]?.started || 0);
    const waiting = !this.run && calls.some(({ status }) => status === "in_flight");
    const now = waiting ? Date.now() / 1000 + this.behind : 0;
    this.spans = calls.map((call) => spans(call, now, this.asking.has(call.index)));
    this.axis = new Axis(this.spans, start, this.wall, now);
    this.note.textContent = calls.length ? this.summary(calls) : this.run ? "The script called no tool." : "No calls yet. Each call of a tool becomes a bar here.";
    this.tools.hidden = this.key.hidden = this.body.hidden = !calls.length;
    const names = calls.reduce((longest, call) => Math.max(longest, call.tool.length + String(call.index).length + 1), 0);
    this.body.style.setProperty("--names", `${Math.min(LONGEST_NAME, names) + 2}ch`);
    this.body.style.setProperty("--zoom", this.zoom);
    this.names.style.height = this.lane.style.height = `${ROW * calls.length}px`;
    this.scaleLine.replaceChildren(s("svg", { width: "100%", height: ROW }, this.scale()));
    this.drawn = "";
    this.scrolled();
  }

  scrolled() {
    const { calls, body } = this;
    const first = Math.max(0, Math.floor(body.scrollTop / ROW) - OVER);
    const last = Math.min(calls.length, first + Math.ceil((body.clientHeight || 400) / ROW) + 2 * OVER);
    if (this.drawn === `${first} ${last}`) return;
    this.drawn = `${first} ${last}`;
    const focused = this.lane.contains(document.activeElement) && Number(document.activeElement.dataset.index);
    const shown = calls.slice(first, last);
    const top = `${first * ROW}px`;
    const names = h("div", { class: "tl-part" }, shown.map((call) => this.name(call)));
    const rows = shown.map((call, index) => this.row(call, this.spans[first + index], index * ROW));
    const picture = s("svg", { class: "tl-part", width: "100%", height: ROW * shown.length, role: "presentation" }, this.bands(first, last), this.grid(ROW * shown.length), rows);
    names.style.top = picture.style.top = top;
    this.names.replaceChildren(names);
    this.lane.replaceChildren(picture);
    if (focused) this.rowOf(focused)?.focus({ preventScroll: true });
  }

  rowOf(index) {
    return this.lane.querySelector(`.tl-row[data-index="${Number(index)}"]`);
  }

  summary(calls) {
    const wrong = calls.filter((call) => call.status !== "ok" && call.status !== "in_flight").length;
    const batches = new Set(calls.map((call) => call.batch)).size;
    const retries = calls.filter((call) => call.retry_of).length;
    const waited = this.axis.breaks.reduce((sum, [from, to]) => sum + to - from, 0);
    const parts = [plural(calls.length, "call"), `in ${plural(batches, "batch", "batches")}`, seconds(this.axis.span)];
    if (waited) parts.push(`${seconds(waited)} asking`);
    if (wrong) parts.push(`${count(wrong)} not ok`);
    if (retries) parts.push(`${count(retries)} retried`);
    return parts.join(" · ");
  }

  words({ status }) {
    return WORDS[status === "in_flight" && this.run && !this.running ? "in_doubt" : status] ?? status;
  }

  name(call) {
    return h("div", { class: this.state("tl-name", call), title: call.tool }, h("span", { class: "dim" }, `${call.index} `), call.retry_of ? "↻ " : "", call.tool);
  }

  /** Calls that went to the host together stand on one band. */
  bands(first, last) {
    const found = [];
    let number = 0;
    for (let index = 0; index < last; index++) {
      if (index && this.calls[index].batch !== this.calls[index - 1].batch) number++;
      if (index < first) continue;
      const band = found.at(-1);
      if (band?.number === number) band.rows++;
      else found.push({ number, batch: this.calls[index].batch, at: index - first, rows: 1 });
    }
    return found.map(({ at, rows, batch, number }) =>
      s("rect", { class: number % 2 ? "tl-band odd" : "tl-band", x: 0, width: "100%", y: at * ROW, height: rows * ROW }, s("title", {}, `batch ${batch}`)),
    );
  }

  scale() {
    const middles = this.axis.breaks.map(([from, to]) => (this.axis.at(from) + this.axis.at(to)) / 2);
    const text = (at, kind, words, ...more) => s("text", { class: `tl-time${kind}`, x: percent(at), y: ROW - 8, "text-anchor": at < 0.03 ? "start" : at > 0.93 ? "end" : "middle" }, words, ...more);
    const ticks = this.axis.ticks(5 * this.zoom).map(({ at, text: words }) => [
      s("line", { class: "tl-tick", x1: percent(at), x2: percent(at), y1: ROW - 4, y2: ROW }),
      middles.some((middle) => Math.abs(middle - at) * this.zoom < CLOSE) ? null : text(at, "", words),
    ]);
    const waits = this.axis.breaks.map(([from, to], index) => text(middles[index], " asked", "⋯", s("title", {}, `${seconds(to - from)} in which only a person was asked`)));
    return [ticks, waits];
  }

  grid(height) {
    const lines = this.axis.ticks(5 * this.zoom).map(({ at }) => s("line", { class: "tl-tick", x1: percent(at), x2: percent(at), y1: 0, y2: height }));
    const waits = this.axis.breaks.map(([from, to]) => {
      const [left, right] = [this.axis.at(from), this.axis.at(to)];
      return s("g", { class: "tl-break" }, s("rect", { x: percent(left), width: percent(right - left), y: 0, height }), s("line", { x1: percent(left), x2: percent(left), y1: 0, y2: height }), s("line", { x1: percent(right), x2: percent(right), y1: 0, y2: height }));
    });
    return [lines, waits];
  }

  state(name, { index }) {
    return name + (index === this.on ? " on" : "") + (this.now && index > this.now ? " later" : "");
  }

  row(call, { wait, work, asked }, y) {
    const kind = call.status === "in_flight" ? (this.asking.has(call.index) ? "ask" : "going") : call.status === "ok" ? "ok" : "bad";
    const text = `${call.index}. ${call.tool}: ${this.words(call)}, ${seconds(wait[1] - wait[0])} waiting, ${seconds(work[1] - work[0])} working${call.approval ? `, approval: ${call.approval}` : ""}${call.retry_of ? `, retry of call ${call.retry_of}` : ""}${call.tries?.length > 1 ? `, ${call.tries.length} tries` : ""}`;
    const open = () => this.open(call);
    const place = ([from, to]) => ({ x: percent(this.axis.at(from)), width: percent(this.axis.at(to) - this.axis.at(from)) });
    const least = kind === "ask" ? null : s("rect", { class: `tl-least ${kind}`, x: percent(this.axis.at(work[0])), width: 3, y: y + 5, height: ROW - 10, rx: 1 });
    return s(
      "g",
      { class: this.state("tl-row", call), tabindex: "-1", role: "button", "aria-label": text, "data-index": call.index, onMouseenter: open, onFocus: open, onClick: () => this.choose(call) },
      s("rect", { class: "tl-hit", x: 0, y, width: "100%", height: ROW }),
      wait[1] > wait[0] ? s("rect", { class: `tl-bar ${asked ? "ask" : "wait"}`, ...place(wait), y: y + 8, height: ROW - 16 }) : null,
      ...this.work(call, work).map((part, at, { length }) => s("rect", { class: `tl-bar ${at + 1 < length ? "bad" : kind}`, ...place(part), y: y + 5, height: ROW - 10, rx: 2 })),
      least,
    );
  }

  /** The stretches of time inside the tool: those of its tries where there were several. */
  work({ tries = [] }, [from, to]) {
    if (tries.length > 1) return tries.map(({ started, duration }) => [started, started + duration]);
    return to > from ? [[from, to]] : [];
  }

  choose(call) {
    this.open(call);
    this.chosen(call);
  }

  /** Show the run as it was at this call: what came later is pale. */
  lookAt(index) {
    this.now = index;
    const at = this.calls.findIndex((call) => call.index === index);
    const top = at * ROW;
    if (at >= 0 && (top < this.body.scrollTop || top + 3 * ROW > this.body.scrollTop + this.body.clientHeight)) this.body.scrollTop = Math.max(0, top - 4 * ROW);
    this.card.hidden = true; // the page has a place of its own for the call
    this.on = index;
    this.drawn = "";
    this.scrolled();
  }

  pressed(event) {
    const now = this.calls.findIndex(({ index }) => index === Number(document.activeElement.dataset.index));
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (step !== undefined && this.calls.length) {
      this.focusOn(Math.max(0, Math.min(this.calls.length - 1, now + step)));
      event.preventDefault();
    } else if (event.key === "Enter" && now >= 0) this.choose(this.calls[now]);
    else if (event.key === "+" || event.key === "-") {
      this.setZoom(event.key === "+" ? this.zoom * 2 : this.zoom / 2);
      event.preventDefault();
    }
  }

  focusOn(at) {
    const { body } = this;
    body.scrollTop = Math.max((at + 2) * ROW - body.clientHeight, Math.min(at * ROW, body.scrollTop));
    this.scrolled();
    this.rowOf(this.calls[at].index)?.focus({ preventScroll: true });
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.setZoom(event.deltaY < 0 ? this.zoom * 2 : this.zoom / 2);
  }

  setZoom(zoom) {
    const { body } = this;
    const middle = (body.scrollLeft + body.clientWidth / 2) / (body.scrollWidth || 1);
    this.zoom = Math.max(1, Math.min(WIDEST, zoom));
    this.draw();
    body.scrollLeft = middle * body.scrollWidth - body.clientWidth / 2;
  }

  open(call) {
    this.wanted = call.index;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fillCard(call), 60);
  }

  async fillCard(call) {
    if (this.now) return;
    for (const row of this.lane.querySelectorAll(".tl-row.on")) row.classList.remove("on");
    this.on = call.index;
    this.rowOf(call.index)?.classList.add("on");
    let whole = call;
    if (this.run && !this.cache.has(call.index)) {
      try {
        this.cache.set(call.index, await get(path("runs", this.run, "calls", call.index)));
      } catch (problem) {
        whole = { ...call, note: problem.message };
      }
    }
    if (this.now || this.wanted !== call.index) return; // the pointer went on to another call meanwhile
    whole = this.cache.get(call.index) ?? whole;
    const facts = [
      this.words(call),
      `${seconds(call.queued)} waiting`,
      `${seconds(call.duration)} working`,
      call.approval && `approval: ${call.approval}${call.approval_by ? ` by ${call.approval_by}` : ""}${call.approval_reason ? ` (${call.approval_reason})` : ""}`,
      call.retry_of && `retry of call ${call.retry_of}`,
      call.tries?.length > 1 && `${call.tries.length} tries`,
      `batch ${call.batch}`,
    ].filter(Boolean);
    const error = whole.error ? h("p", { class: "bad-text" }, `${whole.error.code}: ${whole.error.message}`) : null;
    const parts = [
      h("h3", {}, `${call.index}. ${call.tool}`),
      h("p", { class: "dim" }, facts.join(" · ")),
      "arguments" in whole && argumentsTree(whole),
      whole.original_arguments != null && argumentsTree({ ...whole, arguments: whole.original_arguments }, "before the edit"),
      error,
      whole.tries?.length > 1 && h("ol", { class: "dim" }, ...whole.tries.map(({ code, message }) => h("li", {}, code ? `${code}: ${message}` : "ok"))),
      whole.status === "ok" && "result" in whole && tree(whole.result, "result", false),
      whole.note,
    ];
    this.card.replaceChildren(...parts.filter(Boolean));
    this.card.hidden = false;
  }
}

const percent = (share) => `${(Math.max(0, share) * 100).toFixed(3)}%`;
