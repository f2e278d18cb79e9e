/** What is used of a worker, on every platform. */

import { WorkerError } from "../errors.js";
import type { Command, Report } from "../protocol.js";

export interface Channel {
  post(command: Command): void;
  terminate(): void;
  /** Whether the worker keeps the process alive. */
  hold(held: boolean): void;
}

/** Gets what a worker reports, and why it ended. */
export interface Listener {
  report(report: Report): void;
  end(problem: string): void;
}

const REFUSED = "its script could not be loaded; a page with a Content-Security-Policy must allow worker-src blob:, or serve moonbox/worker and name it as workerUrl";
const NO_WORKERS = "this platform has no Workers, in which scripts run; from a Cloudflare Worker, call a server in Node, Deno or Bun";
let inlined: string | null = null;

/** A Worker of the web platform. Without an address its script is the text, as a Blob. */
export function webChannel(script: string, address: string | null, listener: Listener): Channel {
  if (typeof Worker !== "function") throw new WorkerError(NO_WORKERS);
  const url = address ?? (inlined ??= URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  const worker = new Worker(url, { type: "module", name: "moonbox" });
  worker.onmessage = (event: MessageEvent<Report>) => listener.report(event.data);
  worker.onerror = (event) => {
    event.preventDefault?.();
    listener.end(event.message || (address === null ? REFUSED : `the script at ${address} failed`));
  };
  return {
    post: (command) => worker.postMessage(command),
    terminate: () => {
      worker.terminate();
    },
    hold: () => undefined,
  };
}
