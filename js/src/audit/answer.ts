/** The answer to the model: what a run returned and printed, or what went wrong and what to change, as the Python package words it. */

import * as python from "#python/audit/answer.js";
import { UsageError } from "../errors.js";
import { jsonForm } from "../json.js";
import type { Call, Run } from "./records.js";

/** The text for the model, at most `maxChars` long; an error and its hint come first and are never cut away. */
export function renderRun(run: Run, maxChars = 20_000): string {
  if (maxChars < python.MIN_CHARS) throw new UsageError(`maxChars must be at least ${python.MIN_CHARS}, not ${maxChars}`);
  return python.render(new RunView(run), maxChars);
}

/**
 * The same as JSON: `result`, `output`, and `error` where the script failed; `text` is what `renderRun` made of it. Several
 * returned values are a list. What is too long is replaced by the text, cut, under `note`. `failures` has a sentence about
 * each result that was nothing but a failure.
 */
export function jsonReply(run: Run, text: string, maxChars: number): string {
  return python.json_reply(new RunView(run), text, maxChars);
}

/** A run as the modules that are translated from the Python package read it. */
class RunView {
  readonly running = false;
  readonly calls: CallView[];

  constructor(run: Run) {
    Object.assign(this, jsonForm(run));
    this.calls = run.calls.map((call) => new CallView(call));
  }
}

class CallView {
  /** The result; its data are those of a text, of which Python looks at the value. */
  readonly packed;

  constructor(call: Call) {
    Object.assign(this, call);
    this.packed = { value: call.result, data: TEXT };
  }
}

const TEXT = Uint8Array.of(0xd9);
