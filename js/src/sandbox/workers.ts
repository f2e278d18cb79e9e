/** The workers of one Sandbox, for as many Repls as there are. */

import { Link } from "./link.js";

/** Above this many workers a further Repl gets the one of the Repl that has rested longest. */
const MOST_WORKERS = 8;
const MOST_FREE = 2;

/** A Repl as its workers see it. */
export interface Resting {
  /** Takes the state out of the worker and gives the worker up; null when there is none. */
  park(): Promise<Link | null>;
}

export class Workers {
  private readonly live = new Set<Link>();
  private readonly free: Link[] = [];
  /** The Repls that have a worker and no work, the one that has rested longest first. */
  private readonly resting = new Set<Resting>();

  constructor(private readonly address: string | null) {}

  /** A worker of nobody, whose thread may still be starting. */
  async take(): Promise<Link> {
    for (const link of this.live) if (link.ended) this.live.delete(link);
    for (let link = this.free.pop(); link !== undefined; link = this.free.pop()) if (!link.ended) return link;
    while (this.live.size >= MOST_WORKERS) {
      const [longest] = this.resting;
      if (longest === undefined) break;
      this.resting.delete(longest);
      const link = await longest.park().catch(() => null); // its own next run tells of it
      if (link !== null && !link.ended) return link;
    }
    const made = new Link(this.address);
    this.live.add(made);
    return made;
  }

  /** Takes a worker back. */
  give(link: Link): void {
    if (!link.ended && this.free.length < MOST_FREE) this.free.push(link);
    else this.end(link);
  }

  rest(repl: Resting): void {
    this.resting.add(repl);
  }

  work(repl: Resting): void {
    this.resting.delete(repl);
  }

  /** Ends the workers that nobody uses. */
  close(): void {
    for (const link of this.free.splice(0)) this.end(link);
  }

  private end(link: Link): void {
    link.terminate();
    this.live.delete(link);
  }
}
