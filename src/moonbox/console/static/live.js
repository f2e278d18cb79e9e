// Live events. One stream for each visible tab: a hidden tab lets go of its connection and catches up later.

import { parse } from "./json.js";

export class Live {
  constructor(handlers) {
    this.handlers = handlers;
    this.session = "";
    this.after = 0;
    this.source = null;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.close() : this.open()));
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
    this.source.onerror = () => this.state("offline");
    for (const [name, handler] of Object.entries(this.handlers)) {
      if (name === "opened") continue;
      this.source.addEventListener(name, (event) => {
        if (event.lastEventId) this.after = Math.max(this.after, Number(event.lastEventId));
        handler(parse(event.data));
      });
    }
  }

  close() {
    this.source?.close();
    this.source = null;
  }

  state(name) {
    document.documentElement.dataset.live = name;
  }
}
