/** The workers of one Sandbox, for as many Repls as there are. */

import { Link } from "./link.js";

/** With this many workers a further Repl gets the one of the Repl that has rested longest. */
const MOST_WORKERS = 8;
const MOST_FREE = 2;
const PATIENCE = 250; // milliseconds that a Repl waits for a worker of the others, all of which compute, before there is one more

/** A Repl as its workers see it. */
export interface Resting {
  /** Takes the state out of the worker and gives the worker up; null where it has none, or has work again. */
  park(): Promise<Link | null>;
}

export class Workers {
  private readonly live = new Set<Link>();
  private readonly free: Link[] = [];
  /** The Repls that have a worker and do not compute, the one that has rested longest first, and from when on their workers can be had. */
  private readonly resting = new Map<Resting, number>();
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly address: string | null) {}

  /** A worker of nobody, whose thread may still be starting. */
  async take(): Promise<Link> {
    const patient = performance.now() + PATIENCE;
    for (;;) {
      for (const link of this.live) if (link.ended) this.live.delete(link);
      for (let link = this.free.pop(); link !== undefined; link = this.free.pop()) if (!link.ended) return link;
      const now = performance.now();
      if (this.live.size < MOST_WORKERS || (now >= patient && [...this.live].every((link) => link.started))) return this.make();
      const longest = [...this.resting].find(([, from]) => from <= now)?.[0];
      if (longest === undefined) {
        await this.change(Math.min(now < patient ? patient - now : PATIENCE, ...[...this.resting.values()].map((from) => from - now)));
        continue;
      }
      this.resting.delete(longest);
      const link = await longest.park().catch(() => null); // its own next run tells of it
      if (link !== null && !link.ended) return link;
    }
  }

  /** Takes a worker back. */
  give(link: Link): void {
    if (!link.ended && this.free.length < MOST_FREE) this.free.push(link);
    else this.end(link);
    this.changed();
  }

  /** The Repl does not compute; its worker can be had after so many milliseconds. */
  rest(repl: Resting, after = 0): void {
    this.resting.set(repl, performance.now() + after);
    this.changed();
  }

  work(repl: Resting): void {
    this.resting.delete(repl);
  }

  /** Ends the workers that nobody uses. */
  close(): void {
    for (const link of this.free.splice(0)) this.end(link);
  }

  private make(): Link {
    const made = new Link(this.address);
    this.live.add(made);
    return made;
  }

  private end(link: Link): void {
    link.terminate();
    this.live.delete(link);
  }

  /** Resolves when a worker may have become free, at the latest after so many milliseconds. */
  private change(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.max(1, milliseconds));
      this.waiting.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  private changed(): void {
    for (const wake of this.waiting.splice(0)) wake();
  }
}
