// The timeline of a run: a row for each call, its wait and its work as bars, batches and retries told apart.

import { get, path } from "./api.js";
import { count, h, plural, s, seconds } from "./dom.js";
import { tree } from "./value.js";

const ROW = 24;
const MOST_ROWS = 400;
const WIDEST = 64;
const WORDS = { ok: "ok", error: "failed", denied: "denied", timeout: "timed out", cancelled: "cancelled", in_flight: "running", in_doubt: "in doubt, may have taken effect" };

export class Timeline {
  /** `run` is the id under which a call's arguments and result are found; empty while the run goes on. */
  constructor(root) {
    this.root = root;
    this.zoom = 1;
    this.calls = [];
    this.run = "";
    this.running = false;
    this.cache = new Map();
    this.first = 0;
    this.asking = new Set(); // calls that wait for a person now
    this.behind = 0; // how far the server's clock is ahead of ours
    this.names = h("div", { class: "tl-names", "aria-hidden": "true" });
    this.lane = h("div", { class: "tl-lane", tabindex: "0", role: "group", "aria-label": "Calls in time" });
    this.scroll = h("div", { class: "tl-scroll", onWheel: (event) => this.wheel(event) }, this.lane);
    this.note = h("p", { class: "tl-note dim" });
    this.pages = h("div", { class: "tl-pages" });
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
    this.body = h("div", { class: "tl-body" }, this.names, this.scroll);
    root.replaceChildren(h("div", { class: "tl-head" }, this.note, this.key, this.tools), this.body, this.pages, this.card);
    this.lane.addEventListener("keydown", (event) => this.pressed(event));
    this.draw();
  }

  legend() {
    const item = (name, text) => h("span", {}, h("i", { class: `swatch ${name}` }), text);
    return h("div", { class: "tl-legend" }, item("wait", "waiting"), item("ask", "asking a person"), item("ok", "working"), item("bad", "not ok"));
  }

  /** {started, wall, running, calls: [{index, tool, status, started, queued, duration, batch, retry_of, approval}]} */
  show({ run = "", started = 0, wall = 0, running = false, calls = [] }) {
    if (run !== this.run || !run) {
      this.asking.clear();
      this.cache.clear();
      this.first = 0;
      this.card.hidden = true;
    }
    Object.assign(this, { run, started, wall, running, calls });
    this.draw();
  }

  /** A call began or ended. */
  update(call) {
    const at = this.calls.findLastIndex(({ index }) => index === call.index);
    if (at < 0) this.calls.push(call);
    else this.calls[at] = call;
    // Every row is drawn anew: the more there are, the longer it takes, and the longer the next drawing waits.
    this.drawing ||= setTimeout(() => this.draw(), Math.min(this.calls.length, MOST_ROWS));
  }

  /** Time goes on while calls are not answered. */
  tick() {
    if (this.calls.some(({ status }) => status === "in_flight")) this.draw();
  }

  draw() {
    clearTimeout(this.drawing);
    this.drawing = 0;
    const { calls, first } = this;
    const shown = calls.slice(first, first + MOST_ROWS);
    const start = shown.length ? Math.min(this.started || Infinity, ...shown.map((call) => call.started)) : this.started;
    const waiting = !this.run && shown.some(({ status }) => status === "in_flight");
    const now = waiting ? Date.now() / 1000 + this.behind : 0;
    const end = Math.max(start + this.wall, now, ...shown.map((call) => call.started + call.queued + call.duration));
    const span = Math.max(end - start, 1e-6);
    this.root.hidden = false;
    this.note.textContent = calls.length ? this.summary(calls, span) : this.run ? "The script called no tool." : "No calls yet. Each call of a tool becomes a bar here.";
    this.tools.hidden = this.key.hidden = this.body.hidden = !calls.length;
    this.names.replaceChildren(h("div", { class: "tl-name" }), ...shown.map((call) => this.name(call)));
    const height = ROW * (shown.length + 1);
    const bands = this.bands(shown);
    const rows = shown.map((call, index) => this.row(call, (index + 1) * ROW, start, span));
    const picture = s("svg", { width: "100%", height, role: "presentation" }, bands, this.scale(span, height), rows);
    this.lane.replaceChildren(picture);
    this.lane.style.width = `${this.zoom * 100}%`;
    this.drawPages();
  }

  summary(calls, span) {
    const wrong = calls.filter((call) => call.status !== "ok" && call.status !== "in_flight").length;
    const batches = new Set(calls.map((call) => call.batch)).size;
    const retries = calls.filter((call) => call.retry_of).length;
    const parts = [plural(calls.length, "call"), `in ${plural(batches, "batch").replace("batchs", "batches")}`, seconds(span)];
    if (wrong) parts.push(`${count(wrong)} not ok`);
    if (retries) parts.push(`${count(retries)} retried`);
    return parts.join(" · ");
  }

  words({ status }) {
    return WORDS[status === "in_flight" && this.run && !this.running ? "in_doubt" : status] ?? status;
  }

  name(call) {
    return h("div", { class: "tl-name", title: call.tool }, h("span", { class: "dim" }, `${call.index} `), call.retry_of ? "↻ " : "", call.tool);
  }

  /** Calls that went to the host together stand on one band. */
  bands(calls) {
    const bands = [];
    calls.forEach((call, index) => {
      const last = bands.at(-1);
      if (last && last.batch === call.batch) last.rows++;
      else bands.push({ batch: call.batch, at: index, rows: 1 });
    });
    return bands.map(({ at, rows, batch }, index) =>
      s("rect", { class: index % 2 ? "tl-band odd" : "tl-band", x: 0, width: "100%", y: (at + 1) * ROW, height: rows * ROW }, s("title", {}, `batch ${batch}`)),
    );
  }

  scale(span, height) {
    const step = roundStep(span / Math.min(WIDEST, 5 * this.zoom));
    return Array.from({ length: Math.floor(span / step + 1e-9) + 1 }, (_, index) => {
      const share = (index * step) / span;
      const at = `${(share * 99.6).toFixed(3)}%`;
      const anchor = index === 0 ? "start" : share > 0.97 ? "end" : "middle";
      return [
        s("line", { class: "tl-tick", x1: at, x2: at, y1: ROW - 4, y2: height }),
        s("text", { class: "tl-time", x: at, y: ROW - 8, "text-anchor": anchor }, index ? seconds(index * step) : "0"),
      ];
    });
  }

  row(call, y, start, span) {
    const percent = (value) => `${Math.max(0, Math.min(99.6, (value / span) * 99.6)).toFixed(3)}%`; // room for the last bar
    const wait = call.queued;
    const offset = call.started - start;
    const asks = call.status === "in_flight" && this.asking.has(call.index);
    const kind = asks ? "ask" : call.status === "ok" ? "ok" : call.status === "in_flight" ? "going" : "bad";
    const work = call.status === "in_flight" ? Math.max(call.duration, span - offset - wait) : call.duration;
    const asked = call.approval ? "ask" : "wait";
    const text = `${call.index}. ${call.tool}: ${this.words(call)}, ${seconds(wait)} waiting, ${seconds(call.duration)} working${call.approval ? `, approval: ${call.approval}` : ""}${call.retry_of ? `, retry of call ${call.retry_of}` : ""}`;
    const open = () => this.open(call);
    const row = s(
      "g",
      { class: "tl-row", tabindex: "-1", role: "button", "aria-label": text, "data-index": call.index, onMouseenter: open, onFocus: open, onClick: open },
      s("rect", { class: "tl-hit", x: 0, y, width: "100%", height: ROW }),
      wait > 0 ? s("rect", { class: `tl-bar ${asked}`, x: percent(offset), width: percent(wait), y: y + 8, height: ROW - 16 }) : null,
      s("rect", { class: `tl-bar ${kind}`, x: percent(offset + wait), width: percent(work), y: y + 5, height: ROW - 10, rx: 2 }),
      s("rect", { class: `tl-least ${kind}`, x: percent(offset + wait), width: 3, y: y + 5, height: ROW - 10, rx: 1 }),
    );
    return row;
  }

  pressed(event) {
    const rows = [...this.lane.querySelectorAll(".tl-row")];
    const now = rows.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (step !== undefined && rows.length) {
      rows[Math.max(0, Math.min(rows.length - 1, (now < 0 && step === 1 ? -1 : now) + step))].focus();
      event.preventDefault();
    } else if (event.key === "+" || event.key === "-") {
      this.setZoom(event.key === "+" ? this.zoom * 2 : this.zoom / 2);
      event.preventDefault();
    }
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.setZoom(event.deltaY < 0 ? this.zoom * 2 : this.zoom / 2, event.offsetX);
  }

  setZoom(zoom) {
    const middle = (this.scroll.scrollLeft + this.scroll.clientWidth / 2) / (this.scroll.scrollWidth || 1);
    this.zoom = Math.max(1, Math.min(WIDEST, zoom));
    this.draw();
    this.scroll.scrollLeft = middle * this.scroll.scrollWidth - this.scroll.clientWidth / 2;
  }

  drawPages() {
    const { calls, first } = this;
    if (calls.length <= MOST_ROWS) return this.pages.replaceChildren();
    const go = (to, label) => h("button", { type: "button", class: "chip", disabled: to < 0 || to >= calls.length, onClick: () => { this.first = to; this.draw(); } }, label);
    const until = Math.min(first + MOST_ROWS, calls.length);
    this.pages.replaceChildren(go(first - MOST_ROWS, "earlier calls"), h("span", { class: "dim" }, `calls ${count(first + 1)} to ${count(until)} of ${count(calls.length)}`), go(first + MOST_ROWS, "later calls"));
  }

  open(call) {
    this.wanted = call.index;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fillCard(call), 60);
  }

  async fillCard(call) {
    for (const row of this.lane.querySelectorAll(".tl-row.on")) row.classList.remove("on");
    this.lane.querySelector(`.tl-row[data-index="${Number(call.index)}"]`)?.classList.add("on");
    let whole = call;
    if (this.run && !this.cache.has(call.index)) {
      try {
        this.cache.set(call.index, await get(path("runs", this.run, "calls", call.index)));
      } catch (problem) {
        whole = { ...call, note: problem.message };
      }
    }
    if (this.wanted !== call.index) return; // the pointer went on to another call meanwhile
    whole = this.cache.get(call.index) ?? whole;
    const facts = [
      this.words(call),
      `${seconds(call.queued)} waiting`,
      `${seconds(call.duration)} working`,
      call.approval && `approval: ${call.approval}${call.approval_by ? ` by ${call.approval_by}` : ""}${call.approval_reason ? ` (${call.approval_reason})` : ""}`,
      call.retry_of && `retry of call ${call.retry_of}`,
      `batch ${call.batch}`,
    ].filter(Boolean);
    const error = whole.error ? h("p", { class: "bad-text" }, `${whole.error.code}: ${whole.error.message}`) : null;
    const parts = [
      h("h3", {}, `${call.index}. ${call.tool}`),
      h("p", { class: "dim" }, facts.join(" · ")),
      "arguments" in whole && tree(whole.arguments, "arguments"),
      whole.original_arguments != null && tree(whole.original_arguments, "before the edit"),
      error,
      whole.status === "ok" && "result" in whole && tree(whole.result, "result", false),
      whole.note,
    ];
    this.card.replaceChildren(...parts.filter(Boolean));
    this.card.hidden = false;
  }
}

/** The next larger of 1, 2 and 5 times a power of ten: numbers that people read at a glance. */
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= least * 0.999);
}
