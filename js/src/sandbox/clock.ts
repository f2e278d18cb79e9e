/** The clock of one run: it stands still while a person is asked and the script waits for the answer. */

export class RunClock {
  private began = performance.now();
  private stoodSince: number | null = null;
  private asking = 0;
  private waiting = false;

  constructor(
    private readonly timeout: number | null,
    private readonly changed: () => void,
  ) {}

  /** A person is asked; until the returned function is called. */
  ask(): () => void {
    this.asking += 1;
    this.update();
    return () => {
      this.asking -= 1;
      this.update();
    };
  }

  /** Whether the script waits for answers. One that computes beside the question spends its time. */
  waits(waiting: boolean): void {
    this.waiting = waiting;
    if (this.asking > 0) this.update();
  }

  /** Seconds. */
  elapsed(): number {
    return ((this.stoodSince ?? performance.now()) - this.began) / 1000;
  }

  /** When the time is over, on the monotonic clock in milliseconds; null while it stands still or has no end. */
  deadline(): number | null {
    return this.timeout === null || this.stoodSince !== null ? null : this.began + this.timeout * 1000;
  }

  private update(): void {
    const stands = this.asking > 0 && this.waiting;
    if (stands) this.stoodSince ??= performance.now();
    else if (this.stoodSince !== null) {
      this.began += performance.now() - this.stoodSince;
      this.stoodSince = null;
    }
    this.changed();
  }
}
