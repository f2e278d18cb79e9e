/** The audit trail: every run as one line of JSON, as in the Python package. */

import { AuditError, UsageError } from "../errors.js";
import { appendText } from "../platform/server.js";
import type { Run } from "./records.js";

/** Where runs are written before anybody sees their result. */
export interface Sink {
  write(run: Run): void | Promise<void>;
  close?(): void | Promise<void>;
}

/** A file name (Node, Deno, Bun), a function that gets each line, or a sink of your own. */
export type AuditOption = string | ((line: string) => void | Promise<void>) | Sink;

/** The sink of a Sandbox; what it throws becomes an AuditError, which has the run. */
export function openSink(audit: AuditOption | null | undefined): Sink | null {
  if (audit == null) return null;
  const sink = chosenSink(audit);
  return {
    write: async (run) => {
      try {
        await sink.write(run);
      } catch (problem) {
        const reason = problem instanceof Error ? problem.message : String(problem);
        throw new AuditError(`the audit trail cannot be written: ${reason}`, run, { cause: problem });
      }
    },
    close: () => sink.close?.(),
  };
}

function chosenSink(audit: AuditOption): Sink {
  if (typeof audit === "string") return new JsonLinesFile(audit);
  if (typeof audit === "function") return { write: (run) => audit(`${run.toJson()}\n`) };
  if (typeof audit.write === "function") return audit;
  throw new UsageError("audit must be a file name, a function that gets lines, or an object with write(run)");
}

class JsonLinesFile implements Sink {
  constructor(private readonly path: string) {}

  async write(run: Run): Promise<void> {
    await appendText(this.path, `${run.toJson()}\n`);
  }
}
