// Live events. One tab of the browser listens to the server and tells the others: browsers allow few connections.

import { request } from "./api.js";
import { parse } from "./json.js";

const RETRY = 2000;
const PATIENCE = 10_000; // a server that is hanging takes the connection and does not answer
const GATHER = 50;
const MOST_SESSIONS = 64;
const NAMES = ["run", "approval", "answered", "resync", "started", "output", "progress", "call", "pause", "done", "lost"];

export class Live {
  /** `handlers` are for events; `state` hears "live", "offline" and "signed-out", `opened` each new stream. */
  constructor(handlers) {
    this.handlers = handlers;
    this.tab = `${Date.now()}-${Math.random()}`;
    this.session = "";
    this.after = 0;
    this.source = null;
    this.timer = 0;
    this.leads = !navigator.locks; // this tab listens; without locks each one for itself, while it can be seen
    this.wanted = new Map(); // the sessions that the tabs follow, for the tab that listens
    this.channel = new BroadcastChannel("moonbox-live");
    this.channel.onmessage = ({ data }) => this.heard(data);
    document.addEventListener("signed-out", () => this.reaching || this.reach());
    addEventListener("pagehide", () => this.leave());
    addEventListener("pageshow", (event) => event.persisted && this.join());
    if (this.leads) document.addEventListener("visibilitychange", () => (document.hidden ? this.close() : this.open()));
    this.join();
  }

  /** Also follow a session of the playground, from after this event on. */
  follow(session, after) {
    Object.assign(this, { session, after });
    this.want();
  }

  // Which tab listens

  join() {
    if (!navigator.locks) return this.open();
    this.gone = new AbortController();
    const { signal } = this.gone;
    const lead = () =>
      new Promise((release) => {
        if (signal.aborted) return release();
        signal.addEventListener("abort", release);
        this.leads = true;
        this.channel.postMessage({ ask: true }); // the tab before this one took with it what the others want
        this.want();
      });
    navigator.locks.request("moonbox-live", { signal }, lead).catch(() => null);
    if (!this.leads) this.want();
  }

  leave() {
    this.close();
    if (!this.gone) return;
    this.channel.postMessage({ left: this.tab });
    this.leads = false;
    this.gone.abort();
  }

  want() {
    const message = { want: this.tab, session: this.session, after: this.after };
    if (this.leads) this.follows(message);
    else this.channel.postMessage(message);
  }

  /** A tab follows a session: the stream begins anew where there is none, or where something of a session was missed. */
  follows({ want: tab, session, after }) {
    this.wanted.delete(tab);
    this.wanted.set(tab, { session, after });
    if (this.source?.readyState !== EventSource.OPEN || session) {
      clearTimeout(this.gathering);
      this.gathering = setTimeout(() => this.leads && this.open(), GATHER);
    } else if (tab !== this.tab) this.channel.postMessage({ to: tab, state: "live", opened: true });
  }

  heard(message) {
    if (message.left) this.wanted.delete(message.left);
    else if (message.ask) this.want();
    else if (message.want && this.leads) this.follows(message);
    else if (message.reach && this.leads) this.reach();
    else if (!this.leads && (!message.to || message.to === this.tab)) this.take(message);
  }

  /** To this tab and the others. */
  tell(message) {
    if (this.gone) this.channel.postMessage(message);
    this.take(message);
  }

  take({ state, opened, name, id, data }) {
    if (state) {
      document.documentElement.dataset.live = state;
      this.handlers.state?.(state);
    }
    if (opened) this.handlers.opened?.(); // what happened while nobody listened must be asked for
    if (!name) return;
    if (id) {
      const [session, number] = id;
      if (session !== this.session || number <= this.after) return;
      this.after = number;
    }
    this.handlers[name]?.(parse(data));
  }

  // The stream of the tab that listens

  open() {
    this.close();
    if (!navigator.locks && document.hidden) return;
    const sessions = new Map();
    for (const { session, after } of [...this.wanted.values()].filter((each) => each.session).slice(-MOST_SESSIONS)) {
      sessions.set(session, Math.min(after, sessions.get(session) ?? Infinity));
    }
    const place = sessions.size ? `?${new URLSearchParams({ session: [...sessions.keys()], after: [...sessions.values()] })}` : "";
    this.source = new EventSource(`/events${place}`);
    this.source.onopen = () => this.tell({ state: "live", opened: true });
    this.source.onerror = () => {
      this.close();
      this.reach(RETRY);
    };
    for (const name of NAMES) this.source.addEventListener(name, (event) => this.passOn(name, event));
  }

  passOn(name, { lastEventId, data }) {
    const at = lastEventId.lastIndexOf(":");
    const id = at < 0 ? null : [lastEventId.slice(0, at), Number(lastEventId.slice(at + 1))];
    // The browser repeats the latest number with events that have none.
    const own = id && !["run", "approval", "answered", "resync"].includes(name) ? id : null;
    for (const each of own ? this.wanted.values() : []) if (each.session === own[0]) each.after = Math.max(each.after, own[1]);
    this.tell({ name, id: own, data });
  }

  close() {
    clearTimeout(this.timer);
    clearTimeout(this.gathering);
    this.source?.close();
    this.source = null;
  }

  /** Look for the server until it answers. */
  async reach(wait = 0) {
    if (!this.leads) return this.channel.postMessage({ reach: true });
    this.close();
    this.reaching = true;
    const found = await request("GET", "/approvals", undefined, AbortSignal.timeout(PATIENCE)).then(() => "live", ({ status }) => (status === 401 ? "signed-out" : "offline"));
    this.reaching = false;
    if (this.source || !this.leads) return;
    if (found !== "live") this.tell({ state: found });
    this.timer = setTimeout(() => (found === "live" ? this.open() : this.reach()), found === "live" ? wait : RETRY);
  }
}
