/** What validating one call's arguments may cost: it runs on the host's thread, where nothing can end it. */

const MOST_STEPS = 10_000_000; // about a second at worst
export const CHARACTERS_A_STEP = 8;

/** Counts steps, each about as long as one look at a character. */
export class Effort {
  constructor(private left = MOST_STEPS) {}

  /** Throws TooMuchEffort where none are left. */
  spend(steps: number): void {
    this.left -= steps;
    if (this.left < 0) throw new TooMuchEffort("it takes too many steps");
  }
}

/** A value takes too much work to validate. */
export class TooMuchEffort extends Error {}
