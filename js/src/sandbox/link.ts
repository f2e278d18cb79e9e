/** The link to one worker: starts it, sends commands, interrupts its script, and ends it. */

import { UsageError, WorkerError } from "../errors.js";
import {
  CONTROL_WORDS, LAYOUT, MAIL, MOST_THREADS, OUTBOX_BYTES, PART_BYTES, WORD, type Command, type Report, type Start,
} from "../protocol.js";

const MOST_CALLS_WALKED = 400;

/** What is used of a worker, in Node and on the web. */
interface Channel {
  post(command: Command): void;
  terminate(): void;
  /** Whether the worker keeps the process alive. */
  hold(held: boolean): void;
}

export class Link {
  readonly control = new Int32Array(new SharedArrayBuffer(CONTROL_WORDS * 4));
  private readonly parts = new Uint8Array(new SharedArrayBuffer(PART_BYTES));
  private readonly outbox = new Uint8Array(new SharedArrayBuffer(OUTBOX_BYTES));
  private channel: Channel | null = null;
  private memory: WebAssembly.Memory | null = null;
  private unsent: Uint8Array | null = null;
  ended = false;
  /** Gets everything that the worker reports, and null when it is gone. */
  onReport: (report: Report | null, problem: string) => void = () => undefined;

  /** Starts a worker and waits until it is ready. */
  async start(start: Omit<Start, "control" | "parts" | "outbox">): Promise<void> {
    const ready = new Promise<void>((resolve, reject) => {
      this.onReport = (report, problem) => {
        if (report?.kind === "ready") {
          this.memory = report.memory;
          resolve();
        } else reject(new WorkerError(report?.kind === "failed" ? report.message : `the worker did not start: ${problem}`));
      };
    });
    this.channel = await openChannel(
      (report) => this.onReport(report, ""),
      (problem) => {
        if (!this.ended) {
          this.ended = true;
          this.onReport(null, problem);
        }
      },
    );
    if (this.ended) throw new WorkerError("the worker was ended while it started");
    const shared = (array: Int32Array | Uint8Array): SharedArrayBuffer => array.buffer as SharedArrayBuffer;
    const memories = { control: shared(this.control), parts: shared(this.parts), outbox: shared(this.outbox) };
    this.post({ kind: "start", start: { ...start, ...memories } });
    try {
      await ready;
    } catch (problem) {
      this.terminate();
      throw problem;
    }
    this.hold(false);
  }

  post(command: Command): void {
    this.channel?.post(command);
  }

  hold(held: boolean): void {
    this.channel?.hold(held);
  }

  terminate(): void {
    this.ended = true;
    this.channel?.terminate();
    this.channel = null;
  }

  /** Terminates a worker that is in the middle of a script which does not stop. */
  abandon(): void {
    this.terminate();
    // Deno and Bun wait for a loop in wasm to end by itself. Without its memory, which is shared, every loop soon does.
    if (this.memory !== null && isDenoOrBun()) new Uint8Array(this.memory.buffer).fill(0);
  }

  // Answers

  /** A new run begins. */
  reset(): void {
    this.unsent = null;
    Atomics.store(this.control, WORD.stopRun, 0);
    Atomics.store(this.control, WORD.stopReason, 0);
    Atomics.store(this.control, WORD.mail, MAIL.none);
    Atomics.store(this.control, WORD.printed, 0);
  }

  /** Whether a part of an answer still has to go. */
  get sending(): boolean {
    return this.unsent !== null;
  }

  /** Sends as much of the answer as there is room for; the worker, which waits, asks for more. */
  send(answer: Uint8Array | null): void {
    const data = answer ?? this.unsent;
    if (data === null) return;
    const part = data.subarray(0, PART_BYTES);
    this.unsent = data.length > PART_BYTES ? data.subarray(PART_BYTES) : null;
    this.parts.set(part);
    Atomics.store(this.control, WORD.size, part.length);
    Atomics.store(this.control, WORD.mail, this.unsent === null ? MAIL.last : MAIL.part);
    Atomics.notify(this.control, WORD.mail);
  }

  /** What was printed and not sent. */
  unsentOutput(): Uint8Array {
    return this.outbox.slice(0, Math.min(Atomics.load(this.control, WORD.printed), OUTBOX_BYTES));
  }

  // Stopping

  /** The run of that number must stop: wakes it where it waits, and interrupts it where it runs. */
  stop(run: number, reason: number): void {
    Atomics.store(this.control, WORD.stopReason, reason);
    Atomics.store(this.control, WORD.stopRun, run);
    Atomics.store(this.control, WORD.mail, MAIL.halt);
    Atomics.notify(this.control, WORD.mail);
    this.interrupt();
  }

  /**
   * Puts the hook on every coroutine that runs now, as `lua_sethook` does, from outside. The worker changes these
   * records meanwhile, so that one look may miss; the caller repeats it until the script has stopped.
   */
  interrupt(): void {
    if (this.memory === null || Atomics.load(this.control, WORD.running) === 0) return;
    const words = new Int32Array(this.memory.buffer);
    const shorts = new Uint16Array(this.memory.buffer);
    const threads = Math.min(Atomics.load(this.control, WORD.threads), MOST_THREADS);
    for (let at = 0; at < threads; at += 1) {
      const state = Atomics.load(this.control, WORD.firstThread + at);
      if (state <= 0 || state > words.length * 4 - 128) continue; // a forged snapshot may say anything
      const set = (offset: number, value: number): void => void Atomics.store(words, (state + offset) >> 2, value);
      set(LAYOUT.state.hook, Atomics.load(this.control, WORD.hook));
      set(LAYOUT.state.baseCount, 1);
      set(LAYOUT.state.count, 1);
      set(LAYOUT.state.mask, LAYOUT.maskCount);
      let call = Atomics.load(words, (state + LAYOUT.state.call) >> 2);
      for (let steps = 0; call > 0 && call < words.length * 4 - 64 && steps < MOST_CALLS_WALKED; steps += 1) {
        const isC = (shorts[(call + LAYOUT.call.status) >> 1]! & LAYOUT.isC) !== 0;
        if (!isC) Atomics.store(words, (call + LAYOUT.call.trap) >> 2, 1);
        call = Atomics.load(words, (call + LAYOUT.call.previous) >> 2);
      }
    }
  }
}

/** Throws UsageError where there is no memory that threads can share. */
export function checkSharedMemory(): void {
  if (typeof SharedArrayBuffer === "function" && (globalThis as { crossOriginIsolated?: boolean }).crossOriginIsolated !== false) return;
  throw new UsageError(
    "moonbox needs a cross-origin isolated page: serve it with the headers Cross-Origin-Opener-Policy: same-origin and " +
      "Cross-Origin-Embedder-Policy: require-corp, or call isolate() first",
  );
}

async function openChannel(onReport: (report: Report) => void, onEnd: (problem: string) => void): Promise<Channel> {
  if (isNode()) {
    const { Worker: NodeWorker } = await import("node:worker_threads");
    const worker = new NodeWorker(new URL("./worker.js", import.meta.url), { env: {}, execArgv: [], stdin: false });
    worker.on("message", onReport);
    worker.on("error", (problem) => onEnd(String(problem.message)));
    worker.on("messageerror", (problem) => onEnd(String(problem.message)));
    worker.on("exit", (code) => onEnd(`it ended with code ${code}`));
    return {
      post: (command) => worker.postMessage(command),
      terminate: () => void worker.terminate(),
      hold: (held) => (held ? worker.ref() : worker.unref()),
    };
  }
  const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "moonbox" });
  worker.onmessage = (event: MessageEvent<Report>) => onReport(event.data);
  worker.onerror = (event) => {
    event.preventDefault();
    onEnd(event.message || "its script failed");
  };
  return {
    post: (command) => worker.postMessage(command),
    terminate: () => {
      worker.terminate();
    },
    hold: () => undefined,
  };
}

export function isNode(): boolean {
  const scope = globalThis as { process?: { versions?: { node?: string } } };
  return scope.process?.versions?.node !== undefined && !isDenoOrBun();
}

function isDenoOrBun(): boolean {
  const scope = globalThis as { Deno?: unknown; Bun?: unknown };
  return scope.Deno !== undefined || scope.Bun !== undefined;
}
