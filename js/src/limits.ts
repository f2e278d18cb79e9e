/** Limits: one frozen value that says what a run may spend. */

import { UsageError } from "./errors.js";
import { presets } from "./languages.js";
import { jsonForm } from "./json.js";
import { checkOptions, unknown } from "./suggest.js";

const MIB = 1024 * 1024;

export interface LimitFields {
  /** Seconds for the whole run, its tool calls included, waiting for a person excluded; null: none. */
  timeout: number | null;
  /** VM instructions (Lua) or evaluated nodes (Rhai); null: not counted (Lua), not limited (Rhai). */
  maxOperations: number | null;
  maxToolCalls: number | null;
  /** Bytes that the script's environment may hold. */
  maxMemory: number;
  /** Bytes of one string made by a library function or crossing the boundary. */
  maxString: number;
  /** Elements of one array or map in a value that crosses the boundary. */
  maxArray: number;
  /** Bytes printed. */
  maxOutput: number;
  /** Levels of nesting in a value that crosses the boundary. */
  maxDepth: number;
  /** Bytes of one script. */
  maxSource: number;
}

export type LimitOptions = Partial<LimitFields>;

export interface SpendOptions {
  /** Only the fields that are given change. */
  limits?: Limits | LimitOptions;
  /** Seconds; the same as `limits: { timeout }`. */
  timeout?: number;
}

const OPTIONAL = new Set(["timeout", "maxOperations", "maxToolCalls"]);
const LEAST: Record<string, number> = { timeout: 0, maxToolCalls: 0, maxMemory: MIB, maxOutput: 0, maxString: 64 };
const MOST: Record<string, number> = { timeout: 1_000_000_000, maxDepth: 180 };
const LARGEST = 2 ** 48;

/** What one run may spend. Limits of a Repl or of one run change only the fields that they were made with. */
export class Limits implements LimitFields {
  readonly timeout!: number | null;
  readonly maxOperations!: number | null;
  readonly maxToolCalls!: number | null;
  readonly maxMemory!: number;
  readonly maxString!: number;
  readonly maxArray!: number;
  readonly maxOutput!: number;
  readonly maxDepth!: number;
  readonly maxSource!: number;

  readonly #given: LimitOptions;

  constructor(options: LimitOptions = {}) {
    const names = Object.keys(presets.default);
    checkOptions(options, names, "limit");
    this.#given = withoutUndefined(options);
    Object.assign(this, presets.default, this.#given);
    for (const name of names) check(name, (this as unknown as Record<string, unknown>)[name]);
    Object.freeze(this);
  }

  static of(limits: Limits | LimitOptions | undefined): Limits {
    return limits instanceof Limits ? limits : new Limits(limits);
  }

  /** For short look-ups: 5 seconds, 10 calls, 10 000 operations. */
  static quick(changes: LimitOptions = {}): Limits {
    return Limits.preset("quick", changes);
  }

  /** For usual work: 30 seconds, 50 calls, 100 000 operations. */
  static standard(changes: LimitOptions = {}): Limits {
    return Limits.preset("standard", changes);
  }

  /** For long work: 120 seconds, 100 calls, 500 000 operations. */
  static extended(changes: LimitOptions = {}): Limits {
    return Limits.preset("extended", changes);
  }

  /** For scripts of unknown origin: 5 seconds, 5 calls, 16 MiB. */
  static untrusted(changes: LimitOptions = {}): Limits {
    return Limits.preset("untrusted", changes);
  }

  /** The preset of that name, or the defaults for "default". */
  static preset(name: string, changes: LimitOptions = {}): Limits {
    const preset = presets[name];
    if (preset === undefined) throw new UsageError(unknown("limits preset", name, Object.keys(presets)));
    if (name === "default") return new Limits(changes);
    return new Limits({ ...preset, ...changes });
  }

  /** These limits with changes. */
  replace(changes: LimitOptions): Limits {
    return new Limits({ ...this.#given, ...changes });
  }

  /** The fields that were given here, and those of `base` for the rest. */
  over(base: Limits): Limits {
    return Object.keys(this.#given).length > 0 ? new Limits({ ...base.#given, ...this.#given }) : base;
  }

  /** What a run is given, over these. */
  with({ limits, timeout }: SpendOptions): Limits {
    const given = limits === undefined || limits === null ? this : Limits.of(limits).over(this);
    return timeout === undefined || timeout === null ? given : given.replace({ timeout });
  }

  /** The limits with their names in the JSON form. */
  toDict(): Record<string, number | null> {
    return jsonForm(this) as Record<string, number | null>;
  }
}

function check(name: string, value: unknown): void {
  if (value === null) {
    if (OPTIONAL.has(name)) return;
    throw new UsageError(`Limits.${name} must be a number, not null`);
  }
  const whole = name !== "timeout";
  if (typeof value !== "number" || Number.isNaN(value) || (whole && !Number.isInteger(value))) {
    const wanted = whole ? "a whole number" : "a number of seconds";
    throw new UsageError(`Limits.${name} must be ${wanted}, not ${JSON.stringify(value) ?? String(value)}`);
  }
  const least = LEAST[name] ?? 1;
  if (value < least || (name === "timeout" && value <= 0)) {
    const range = name === "timeout" ? "more than 0" : `at least ${least}`;
    throw new UsageError(`Limits.${name} must be ${range}, not ${value}`);
  }
  const most = MOST[name] ?? LARGEST;
  if (value > most) throw new UsageError(`Limits.${name} must be at most ${most}, not ${value}`);
}

function withoutUndefined(options: LimitOptions): LimitOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
