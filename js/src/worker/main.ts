/** The worker's side: serves one Repl until it is terminated. */

import { MAIL, OUTBOX_BYTES, WORD, type Command, type Report, type Start } from "../protocol.js";
import type { Machine, Pointer } from "./machine.js";
import { VM, type Wire } from "./vm.js";

const FLUSH_MILLISECONDS = 5;

interface Port {
  post(report: Report): void;
  listen(handler: (command: Command) => void): void;
}

class Worker_ implements Wire {
  private vm!: VM;
  private control!: Int32Array;
  private parts!: Uint8Array;
  private outbox!: Uint8Array;
  private flushed = 0;

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
      case "run": {
        this.flushed = 0;
        const done = this.vm.run(command.source, command.number, command.seed);
        this.flush();
        return this.port.post(done);
      }
      case "check":
        return this.port.post(this.vm.check(command.source));
      case "globals":
        return this.port.post({ kind: "globals", names: this.vm.globals() });
      case "save":
        return this.port.post({ kind: "saved", memory: this.vm.save() });
    }
  }

  private start(start: Start): void {
    this.control = new Int32Array(start.control);
    this.parts = new Uint8Array(start.parts);
    this.outbox = new Uint8Array(start.outbox);
    try {
      this.vm = new VM(start, this, this.vm ?? null);
    } catch (problem) {
      return this.port.post({ kind: "failed", message: String((problem as Error).message) });
    }
    this.port.post({ kind: "ready", memory: this.vm.machine.memory });
  }

  // The virtual machine's wire

  exchange(calls: Uint8Array, machine: Machine): { at: Pointer; size: number } | null {
    this.flush();
    this.port.post(calls.length > 0 ? { kind: "calls", calls } : { kind: "more" });
    let block: Pointer = 0;
    let size = 0;
    for (;;) {
      const mail = this.wait();
      if (mail === MAIL.halt) {
        if (block) machine.lua.free(block);
        return null;
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
    if (now - this.flushed > FLUSH_MILLISECONDS) {
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
