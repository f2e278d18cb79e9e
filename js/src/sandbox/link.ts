/** The link to one worker: starts it, sends commands, interrupts its script, and ends it. */

import { WorkerError } from "../errors.js";
import { workerScript } from "../languages.js";
import type { Channel } from "../platform/channel.js";
import { openChannel } from "../platform/server.js";
import {
  CONTROL_WORDS, LAYOUT, MAIL, MOST_THREADS, OUTBOX_BYTES, PART_BYTES, WORD, type Command, type MemoryReport, type Report,
  type SavedMemory, type Shared, type Start,
} from "../protocol.js";

const MOST_CALLS_WALKED = 400;
const PAGE = 65536;
const MOST_KEPT = 8 * 2 ** 20; // bytes of a memory that serves another Repl; a larger one is given back

export class Link {
  private readonly shared: Shared | null = sharesMemory()
    ? { control: new SharedArrayBuffer(CONTROL_WORDS * 4), parts: new SharedArrayBuffer(PART_BYTES), outbox: new SharedArrayBuffer(OUTBOX_BYTES) }
    : null;
  private readonly control = new Int32Array(this.shared?.control ?? new ArrayBuffer(CONTROL_WORDS * 4));
  private channel: Channel | null;
  private memory: WebAssembly.Memory | null = null;
  private module: WebAssembly.Module | null = null;
  private unsent: Uint8Array | null = null;
  private problem = "it was ended";
  ended = false;
  /** Whether its thread has answered. */
  started = false;
  /** Gets everything that the worker reports, and null when it is gone. */
  onReport: (report: Report | null, problem: string) => void = () => undefined;

  /** Starts the worker's thread, which needs a while. Its script is the package's own, or the one at the address. */
  constructor(address: string | null) {
    this.channel = openChannel(workerScript, address, {
      report: (report) => this.onReport(report, ""),
      end: (problem) => {
        if (this.ended) return;
        this.ended = true;
        this.problem = problem;
        this.onReport(null, problem);
      },
    });
  }

  /** Starts the worker, or what it serves, afresh; resolves when it is ready. */
  async start(start: Omit<Start, "shared">): Promise<void> {
    const again = start.image !== undefined && start.module === this.module && this.memory !== null && this.memory.buffer.byteLength <= MOST_KEPT;
    this.module = start.module;
    this.reset();
    const ready = new Promise<void>((resolve, reject) => {
      this.onReport = (report, problem) => {
        this.started = true;
        if (report?.kind === "ready") {
          this.memory = report.memory;
          resolve();
        } else reject(new WorkerError(report?.kind === "failed" ? report.message : `the worker did not start: ${problem}`));
      };
    });
    if (this.ended) throw new WorkerError(`the worker did not start: ${this.problem}`);
    this.hold(true);
    const given = { ...start, shared: this.shared };
    this.post({ kind: "start", start: again ? { ...given, module: null, image: this.inPlace(start.image!) } : given });
    try {
      await ready;
    } catch (problem) {
      this.terminate();
      throw problem;
    }
    this.hold(false);
  }

  /** Puts a saved memory into the worker's, which the host shares: nothing of it is left behind in the worker's heap. */
  private inPlace(image: NonNullable<Start["image"]>): NonNullable<Start["image"]> {
    const bytes = image.bytes!;
    const missing = Math.ceil((bytes.length - this.memory!.buffer.byteLength) / PAGE);
    if (missing > 0) this.memory!.grow(missing);
    const whole = new Uint8Array(this.memory!.buffer);
    whole.set(bytes);
    whole.fill(0, bytes.length);
    return { ...image, bytes: null };
  }

  get isShared(): boolean {
    return this.shared !== null;
  }

  /** Whether it has served a Repl. */
  get begun(): boolean {
    return this.memory !== null;
  }

  /** What the worker, which must be at rest, has said of its memory, with the memory. */
  saved({ size, bytes, ...parts }: MemoryReport): SavedMemory {
    return { ...parts, bytes: bytes ?? new Uint8Array(this.memory!.buffer, 0, size).slice() };
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
    if (this.shared === null) return this.post({ kind: "answer", bytes: data });
    const part = data.subarray(0, PART_BYTES);
    this.unsent = data.length > PART_BYTES ? data.subarray(PART_BYTES) : null;
    new Uint8Array(this.shared.parts).set(part);
    Atomics.store(this.control, WORD.size, part.length);
    Atomics.store(this.control, WORD.mail, this.unsent === null ? MAIL.last : MAIL.part);
    Atomics.notify(this.control, WORD.mail);
  }

  /** What was printed and not sent. */
  unsentOutput(): Uint8Array {
    const held = Math.min(Atomics.load(this.control, WORD.printed), OUTBOX_BYTES);
    return this.shared === null ? new Uint8Array() : new Uint8Array(this.shared.outbox, 0, held).slice();
  }

  /** The script that waits for an answer must leave this worker; the worker reports whether it does. */
  leave(): void {
    Atomics.store(this.control, WORD.mail, MAIL.leave);
    Atomics.notify(this.control, WORD.mail);
  }

  // Stopping

  /** The run of that number must stop: wakes it where it waits, and interrupts it where it runs. */
  stop(run: number, reason: number): void {
    if (this.shared === null) return this.post({ kind: "stop", run, reason });
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

/** Whether threads can share memory: pages must be cross-origin isolated for that. */
function sharesMemory(): boolean {
  return typeof SharedArrayBuffer === "function" && (globalThis as { crossOriginIsolated?: boolean }).crossOriginIsolated !== false;
}

function isDenoOrBun(): boolean {
  const scope = globalThis as { Deno?: unknown; Bun?: unknown };
  return scope.Deno !== undefined || scope.Bun !== undefined;
}
