/** What Node, Deno and Bun do in their own way. */

import { webChannel, type Channel, type Listener } from "./channel.js";

// A script that is given as text is a CommonJS module: it finds the port with require.
const FIND_PORT = 'globalThis.parentPort = require("node:worker_threads").parentPort;\n';

// Of JavaScript in the worker; a script has wasm memory. Without a bound V8 keeps 2 MB more in every worker.
const HEAP = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 512 };

/** Starts a worker with that script, or with the one at the address. */
export function openChannel(script: string, address: string | null, listener: Listener): Channel {
  const scope = globalThis as { Deno?: unknown; Bun?: unknown };
  if (scope.Deno !== undefined || scope.Bun !== undefined) return webChannel(script, address, listener);
  const { Worker } = process.getBuiltinModule("node:worker_threads");
  const worker = new Worker(FIND_PORT + script, { eval: true, env: {}, execArgv: [], stdin: false, resourceLimits: HEAP });
  worker.on("message", (report) => listener.report(report));
  worker.on("error", (problem) => listener.end(String(problem.message)));
  worker.on("messageerror", (problem) => listener.end(String(problem.message)));
  worker.on("exit", (code) => listener.end(`it ended with code ${code}`));
  return {
    post: (command) => worker.postMessage(command),
    terminate: () => void worker.terminate(),
    hold: (held) => (held ? worker.ref() : worker.unref()),
  };
}

/** A file of this package; null where a bundler has made one file of all, or a program must ask before it reads files. */
export function ownFile(name: string): Uint8Array<ArrayBuffer> | null {
  if ((globalThis as { Deno?: unknown }).Deno !== undefined) return null;
  try {
    const here = import.meta.url; // apart, so that no bundler takes the file for one of the app's
    return process.getBuiltinModule("node:fs").readFileSync(new URL(name, here)) as Uint8Array<ArrayBuffer>;
  } catch {
    return null;
  }
}

/** Adds text to a file that only its owner can read, in one piece: `appendFile` would mix long texts that come together. */
export async function appendText(path: string, text: string): Promise<void> {
  const { open } = await import("node:fs/promises");
  const bytes = new TextEncoder().encode(text);
  const file = await open(path, "a", 0o600);
  try {
    for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten;
  } finally {
    await file.close();
  }
}
