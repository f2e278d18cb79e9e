/** `sleep` and `sleep_until` of scripts: how long they wait. The time counts towards the timeout of the run. */

import { ToolError } from "../errors.js";

const LONGEST = 366 * 86_400;
const HOW = {
  sleep: "write: sleep(seconds), from 0 to 31,622,400 (a year)",
  sleep_until: 'write: sleep_until(time), in seconds like os.time(), or as text: "2027-01-31T08:00:00Z"',
};

/** The seconds that the call waits; throws a ToolError where it cannot. `left` are those of the run; null without a timeout. */
export function secondsToSleep(name: keyof typeof HOW, given: readonly unknown[], left: number | null): number {
  const now = Date.now() / 1000;
  const until = moment(given.length === 1 ? given[0] : null, name);
  const seconds = name === "sleep" ? until : until - now;
  if (!Number.isFinite(seconds) || seconds > LONGEST || (seconds < 0 && name === "sleep")) throw new ToolError(HOW[name], { code: "invalid" });
  if (left !== null && seconds >= left) {
    const message = `the script would wait ${seconds.toFixed(1)} seconds and has ${left.toFixed(1)} left: waiting counts towards the timeout of the run; wait less, or look again in a later run`;
    throw new ToolError(message, { code: "limit_sleep" });
  }
  return Math.max(0, seconds);
}

/** A number, or the seconds of the epoch of a time as text, without a zone in UTC; NaN for anything else. */
function moment(given: unknown, name: string): number {
  if (typeof given === "number" || typeof given === "bigint") return Number(given);
  if (name !== "sleep_until" || typeof given !== "string" || !/^\d{4}-\d\d-\d\d/.test(given)) return Number.NaN;
  const hasZone = /(?:Z|[-+]\d\d:?\d\d)$/.test(given.slice(10)) || given.length === 10;
  return Date.parse(hasZone ? given : `${given}Z`) / 1000;
}
