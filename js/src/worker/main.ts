/** The worker's side: serves one Repl until it is terminated. */

import { CONTROL_WORDS, MAIL, OUTBOX_BYTES, WORD, type Command, type Done, type Report, type Start } from "../protocol.js";
import type { Machine, Pointer } from "./machine.js";
import { VM, type Wire } from "./vm.js";

const FLUSH_MILLISECONDS = 5;

interface Port {
  post(report: Report): void;
  listen(handler: (command: Command) => void): void;
}

class Worker_ implements Wire {
  private vm!: VM;
  control!: Int32Array;
  private parts!: Uint8Array;
  private outbox!: Uint8Array;
  private flushed = 0;
  private isShared = true;
  /** What a message has brought for the script that waits without shared memory; null where its run must end. */
  private arrived: Uint8Array | null = null;
  private wake: (() => void) | null = null;

  constructor(private readonly port: Port) {
    port.listen((command) => this.answer(command));
  }

  private answer(command: Command): void {
    switch (command.kind) {
      case "start":
        return this.start(command.start);
      case "configure":
        return this.vm.configure(command.environment);
      case "limits":
        return this.vm.setLimits(command.limits);
      case "inputs":
        return this.vm.setInputs(command.json);
      case "run":
        this.flushed = 0;
        return void this.run(this.vm.run(command.source, command.number, command.seed));
      case "goOn":
        return void this.run(this.vm.goOn());
      case "check":
        return this.port.post(this.vm.check(command.source));
      case "outline":
        return this.port.post({ kind: "outline", text: this.vm.outline(command.source) });
      case "globals":
        return this.port.post({ kind: "globals", names: this.vm.globals() });
      case "save":
        return this.port.post({ kind: "saved", memory: this.vm.save() });
      case "answer":
        this.arrived = command.bytes;
        return this.wake?.();
      case "stop":
        this.control[WORD.stopReason] = command.reason;
        this.control[WORD.stopRun] = command.run;
        this.arrived = null;
        return this.wake?.();
    }
  }

  private start(start: Start): void {
    const { shared } = start;
    this.isShared = shared !== null;
    this.control = new Int32Array(shared?.control ?? new ArrayBuffer(4 * CONTROL_WORDS));
    this.parts = new Uint8Array(shared?.parts ?? new ArrayBuffer(0));
    this.outbox = new Uint8Array(shared?.outbox ?? new ArrayBuffer(OUTBOX_BYTES));
    try {
      this.vm = new VM(start, this, this.vm ?? null);
    } catch (problem) {
      return this.port.post({ kind: "failed", message: String((problem as Error).message) });
    }
    this.port.post({ kind: "ready", memory: this.isShared ? this.vm.machine.memory : null });
  }

  private async run(running: Promise<Done | null>): Promise<void> {
    try {
      const done = await running;
      this.flush();
      this.port.post(done ?? { kind: "left", memory: this.vm.left() });
    } catch (problem) {
      setTimeout(() => {
        throw problem; // ends the worker
      });
    }
  }

  // The virtual machine's wire

  send(calls: Uint8Array): void {
    this.flush();
    this.port.post(calls.length > 0 ? { kind: "calls", calls } : { kind: "more" });
  }

  get arrival(): (() => Promise<void>) | null {
    if (this.isShared) return null;
    return () => new Promise<void>((wake) => {
      this.wake = () => {
        this.wake = null;
        wake();
      };
    });
  }

  receive(machine: Machine, canLeave: boolean): { at: Pointer; size: number } | "leave" | null {
    if (this.isShared) return this.received(machine, canLeave);
    const { arrived } = this;
    if (arrived === null) return null;
    const block = machine.malloc(arrived.length + 1);
    machine.bytes.set(arrived, block);
    return { at: block, size: arrived.length };
  }

  /** The answers, a part at a time. */
  private received(machine: Machine, canLeave: boolean): { at: Pointer; size: number } | "leave" | null {
    let block: Pointer = 0;
    let size = 0;
    for (;;) {
      const mail = this.wait();
      if (mail === MAIL.halt) {
        if (block) machine.lua.free(block);
        return null;
      }
      if (mail === MAIL.leave) {
        Atomics.compareExchange(this.control, WORD.mail, MAIL.leave, MAIL.none);
        if (canLeave) return "leave";
        this.port.post({ kind: "left", memory: null });
        continue;
      }
      const part = Atomics.load(this.control, WORD.size);
      const grown = machine.lua.realloc(block, size + part + 1);
      if (grown === 0) throw new RangeError("not enough memory");
      block = grown;
      machine.bytes.set(this.parts.subarray(0, part), block + size);
      size += part;
      Atomics.store(this.control, WORD.mail, MAIL.none);
      if (mail === MAIL.last) return { at: block, size };
      this.port.post({ kind: "more" });
    }
  }

  private wait(): number {
    for (;;) {
      const mail = Atomics.load(this.control, WORD.mail);
      if (mail !== MAIL.none) return mail;
      Atomics.wait(this.control, WORD.mail, MAIL.none);
    }
  }

  cancel(ids: Uint8Array): void {
    this.port.post({ kind: "cancel", ids });
  }

  emit(text: Uint8Array): void {
    for (let at = 0; at < text.length; ) {
      const held = this.control[WORD.printed]!;
      const part = text.subarray(at, at + OUTBOX_BYTES - held);
      this.outbox.set(part, held);
      Atomics.store(this.control, WORD.printed, held + part.length);
      at += part.length;
      if (held + part.length === OUTBOX_BYTES) this.flush();
    }
    const now = performance.now();
    if (!this.isShared || now - this.flushed > FLUSH_MILLISECONDS) {
      this.flush();
      this.flushed = now;
    }
  }

  private flush(): void {
    const held = this.control[WORD.printed]!;
    if (held === 0) return;
    this.port.post({ kind: "output", text: this.outbox.slice(0, held) });
    Atomics.store(this.control, WORD.printed, 0);
  }
}

/** The port to the host: Node's, which whoever starts the worker has put there, or the web's. */
function openPort(): Port {
  const scope = globalThis as unknown as {
    parentPort?: { postMessage(data: unknown): void; on(name: "message", handler: (command: Command) => void): void };
    postMessage(data: unknown): void;
    onmessage: unknown;
  };
  const { parentPort } = scope;
  if (parentPort !== undefined) {
    return {
      post: (report) => parentPort.postMessage(report),
      listen: (handler) => void parentPort.on("message", handler),
    };
  }
  return {
    post: (report) => scope.postMessage(report),
    listen: (handler) => {
      scope.onmessage = (event: MessageEvent<Command>) => handler(event.data);
    },
  };
}

new Worker_(openPort());
