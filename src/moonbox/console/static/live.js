// Live events. One stream for each visible tab, and one for all hidden ones: browsers allow few connections.

import { get } from "./api.js";
import { parse } from "./json.js";

const RETRY = 2000;

export class Live {
  /** `handlers` are for events; `state` hears "live", "offline" and "signed-out", `opened` each new stream. */
  constructor(handlers) {
    this.handlers = handlers;
    this.session = "";
    this.after = 0;
    this.source = null;
    this.timer = 0;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.rest() : this.open()));
    document.addEventListener("signed-out", () => this.state("signed-out"));
    addEventListener("pagehide", () => this.close());
    addEventListener("pageshow", (event) => event.persisted && this.open());
    this.open();
  }

  /** Also follow a session of the playground, from after this event on. */
  follow(session, after) {
    this.session = session;
    this.after = after;
    this.open();
  }

  open() {
    this.close();
    const place = this.session ? `?session=${encodeURIComponent(this.session)}&after=${this.after}` : "";
    this.source = new EventSource(`/events${place}`);
    this.source.onopen = () => {
      this.state("live");
      this.handlers.opened?.(); // what happened while nobody listened must be asked for
    };
    this.source.onerror = () => {
      this.close();
      this.reach(RETRY);
    };
    for (const [name, handler] of Object.entries(this.handlers)) {
      if (name === "opened" || name === "state") continue;
      this.source.addEventListener(name, (event) => {
        if (event.lastEventId) this.after = Math.max(this.after, Number(event.lastEventId));
        handler(parse(event.data));
      });
    }
  }

  close() {
    clearTimeout(this.timer);
    this.release?.();
    this.release = null;
    this.source?.close();
    this.source = null;
  }

  /** Look for the server until it answers. */
  async reach(wait = 0) {
    clearTimeout(this.timer);
    const found = await get("/approvals").then(() => "live", ({ status }) => (status === 401 ? "signed-out" : "offline"));
    if (this.source) return;
    if (found === "live") this.timer = setTimeout(() => this.open(), wait);
    else this.state(found);
    if (found !== "live") this.timer = setTimeout(() => this.reach(), RETRY); // a person may sign in in another tab
  }

  /** The page is hidden: one of the hidden tabs goes on to listen, so that its title and notifications count. */
  rest() {
    if (!navigator.locks) return this.close();
    navigator.locks.request("moonbox-hidden-tab", { ifAvailable: true }, (lock) => {
      if (!document.hidden) return null;
      if (lock) return new Promise((done) => (this.release = done));
      return this.close();
    });
  }

  state(name) {
    document.documentElement.dataset.live = name;
    this.handlers.state?.(name);
  }
}
