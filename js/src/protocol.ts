/**
 * The wire between host and worker.
 *
 * Commands and reports are messages. While a script waits for answers its worker is blocked, and no message reaches it:
 * answers come through shared memory, a part at a time. The same memory tells the worker to stop, and the host which
 * coroutines are running, so that it can interrupt them.
 *
 * A page that is not cross-origin isolated has no shared memory. There the wasm code of a script that waits returns to the
 * worker's loop of events and goes on when a message has brought the answer; a script that computes cannot be interrupted.
 */

/** Places in the shared control words. */
export const WORD = {
  /**
   * 0: nothing; 1: a part of an answer is there; 2: the last part of it is there; 3: the run must end instead; 4: the script
   * must leave the worker to another Repl, and goes on in any when its answer has come.
   */
  mail: 0,
  /** Bytes in the part. */
  size: 1,
  /** The number of the run that must stop, and why. */
  stopRun: 2,
  stopReason: 3,
  /** How many coroutines are running, the main thread included, and from `firstThread` their addresses. */
  threads: 4,
  /** The address of the C function that a hook calls. */
  hook: 5,
  /** The number of the run that is going on; 0 between runs. */
  running: 6,
  /** Printed bytes that lie in the outbox: a worker that has to be terminated cannot send them. */
  printed: 7,
  firstThread: 16,
} as const;

export const MOST_THREADS = 256;
export const CONTROL_WORDS = WORD.firstThread + MOST_THREADS;
export const PART_BYTES = 1 << 20;
export const OUTBOX_BYTES = 8192;
export const MAIL = { none: 0, part: 1, last: 2, halt: 3, leave: 4 } as const;
export const REASON = { time: 1, cancelled: 2, calls: 3, memory: 4 } as const;
export const REASON_NAMES: Record<number, string> = { 0: "", 1: "time", 2: "cancelled", 3: "calls", 4: "memory" };

/** Places in Lua's state and in its records of calls, in wasm32 builds of Lua 5.4. */
export const LAYOUT = {
  state: { call: 20, firstCall: 52, hook: 88, baseCount: 104, count: 108, mask: 112 },
  call: { previous: 8, trap: 20, status: 34 },
  isC: 2,
  maskCount: 8,
} as const;

export interface WorkerLimits {
  timeout: number | null;
  max_operations: number | null;
  max_tool_calls: number | null;
  max_memory: number;
  max_string: number;
  max_array: number;
  max_output: number;
  max_depth: number;
  max_source: number;
  allow_nan: boolean;
}

/** The names that scripts find: JSON text, read by Lua's side. */
export interface Environment {
  json: string;
}

/** What belongs to a wasm memory. */
export interface MemoryParts {
  places: number[];
  references: Record<string, number>;
  base: number;
  /** The run whose script waits in this memory for its tools. */
  run?: SuspendedRun;
}

/** What a worker knows of a run beside the memory. */
export interface SuspendedRun {
  number: number;
  limitsReference: number;
  /** Bytes. */
  printed: number;
  peak: number;
  /** Milliseconds of computing. */
  spent: number;
}

/** What belongs to the memory in lua.wasm, and how many bytes it has. */
export interface Prepared extends MemoryParts {
  size: number;
}

/** The custom section of lua.wasm in which that stands, as JSON. */
export const PREPARED = "moonbox";

/** A copy of a wasm memory, and what belongs to it. */
export interface SavedMemory extends MemoryParts {
  bytes: Uint8Array;
}

/** So many bytes of a worker's memory are in use; the host, which shares it, copies them. */
export interface MemoryReport extends MemoryParts {
  size: number;
  /** The memory itself, where it is not shared. */
  bytes: Uint8Array | null;
}

/** What worker and host share. */
export interface Shared {
  control: SharedArrayBuffer;
  parts: SharedArrayBuffer;
  outbox: SharedArrayBuffer;
}

export interface Start {
  /** null where the worker goes on with the instance that it has. */
  module: WebAssembly.Module | null;
  shared: Shared | null;
  /** Of the hashes of strings; nobody may guess it. */
  seed: number;
  runtime: string | null;
  limits: WorkerLimits;
  environment: Environment;
  /**
   * A saved memory to go on from, whose bytes are null where they have been put in place; `fresh` where no script has run in it.
   * Without it the worker begins from the memory in its module.
   */
  image?: MemoryParts & { bytes: Uint8Array | null; fresh: boolean };
}

export type Command =
  | { kind: "start"; start: Start }
  | { kind: "configure"; environment: Environment }
  | { kind: "limits"; limits: WorkerLimits }
  | { kind: "inputs"; json: string }
  | { kind: "run"; source: Uint8Array; number: number; seed: number }
  /** The run in the memory goes on: its mail is there. */
  | { kind: "goOn" }
  | { kind: "check"; source: Uint8Array }
  | { kind: "outline"; source: Uint8Array }
  | { kind: "globals" }
  | { kind: "save" }
  /** For a script that waits without shared memory: the answers, or why its run must end. */
  | { kind: "answer"; bytes: Uint8Array }
  | { kind: "stop"; run: number; reason: number };

export interface Done {
  kind: "done";
  outcome: string;
  limit: string;
  message: Uint8Array;
  values: Uint8Array;
  frames: Uint8Array;
  extra: Uint8Array;
  operations: number | null;
  memory: number;
  cpu: number;
  cut: number;
  /** What stays in the environment under a name: 1 for the value, 2 for the output, 3 for both. */
  kept: number;
}

export type Report =
  | { kind: "ready"; memory: WebAssembly.Memory | null }
  | { kind: "failed"; message: string }
  | { kind: "output"; text: Uint8Array }
  | { kind: "calls"; calls: Uint8Array }
  | { kind: "more" }
  | { kind: "cancel"; ids: Uint8Array }
  | { kind: "globals"; names: Uint8Array }
  | { kind: "outline"; text: Uint8Array }
  | { kind: "saved"; memory: MemoryReport }
  /** The answer to MAIL.leave: the memory with the run in it, or null where a function of C waits for the script. */
  | { kind: "left"; memory: MemoryReport | null }
  | Done;
