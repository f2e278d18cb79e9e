// The axis of a timeline: in proportion, but where a script only waits for a person it has a break of fixed width.

import { seconds } from "./dom.js";

const BREAK = 0.05; // a break's share of the axis
const MOST_BREAKS = 0.5; // the share of all breaks together
const LEAST = 0.12; // a wait of at most this share of the other time is no break
const ROOM = 0.996; // for the last bar

/** When each call waits for a person, and when it waits for anything else or works: [from, to] each. */
export function spans(call, now, asks) {
  const { started, queued, duration, status, approval } = call;
  const going = status === "in_flight";
  const asked = going ? asks : Boolean(approval);
  const worked = started + queued;
  const end = going ? Math.max(now, worked + duration) : worked + duration;
  if (going && asks) return { wait: [started, end], work: [end, end], asked };
  return { wait: [started, worked], work: [worked, end], asked };
}

/** The calls of a run. Those whose answers a fork took from its record come right before it: they were made long ago. */
export function together(calls, started) {
  const ended = (call) => call.started + call.queued + call.duration;
  const isRecorded = (call) => call.status !== "in_flight" && ended(call) < started;
  const last = calls.reduce((latest, call) => (isRecorded(call) ? Math.max(latest, ended(call)) : latest), 0);
  return last ? calls.map((call) => (isRecorded(call) ? { ...call, started: call.started + started - last } : call)) : calls;
}

/** The axis of a run that began at `start`; `calls` are what `spans` gave. `wall` are the seconds that the run took
 *  besides the time in which it asked a person: its clock stands still then. */
export class Axis {
  constructor(calls, start, wall, now) {
    const asked = union(calls.filter(({ asked }) => asked).map(({ wait }) => wait));
    const last = calls.reduce((latest, { work }) => Math.max(latest, work[1]), now);
    this.start = start;
    this.end = Math.max(last, start + wall + length(asked), start + 1e-6);
    this.breaks = breaks(calls, asked, this.end - start);
    this.width = Math.min(BREAK, MOST_BREAKS / (this.breaks.length || 1));
    /** Seconds that the axis has in proportion. */
    this.span = Math.max(this.end - start - length(this.breaks), 1e-6);
    this.scale = (ROOM - this.breaks.length * this.width) / this.span;
  }

  /** Where a moment is, from 0 to 1. */
  at(moment) {
    let place = 0;
    let from = this.start;
    for (const [begin, stop] of this.breaks) {
      if (moment <= begin) break;
      place += (begin - from) * this.scale + (this.width * (Math.min(moment, stop) - begin)) / (stop - begin);
      from = stop;
      if (moment <= stop) return place;
    }
    return Math.max(0, Math.min(ROOM, place + (moment - from) * this.scale));
  }

  /** About so many ticks: {at, text}. They count the seconds that are not in a break. */
  ticks(most) {
    const step = roundStep(this.span / most);
    const found = [];
    let passed = 0; // seconds before this stretch, without breaks
    let from = this.start;
    let number = 0;
    for (const [begin, stop] of [...this.breaks, [this.end, this.end]]) {
      for (; number * step <= passed + begin - from + step * 1e-6; number++) {
        found.push({ at: this.at(from + number * step - passed), text: number ? seconds(number * step) : "0" });
      }
      passed += begin - from;
      from = stop;
    }
    return found;
  }
}

const length = (parts) => parts.reduce((sum, [from, to]) => sum + to - from, 0);

/** What these stretches of time cover together. */
function union(parts) {
  const found = [];
  for (const [from, to] of parts.filter(([from, to]) => to > from).sort(([a], [b]) => a - b)) {
    if (found.length && from <= found.at(-1)[1]) found.at(-1)[1] = Math.max(found.at(-1)[1], to);
    else found.push([from, to]);
  }
  return found;
}

/** Where a person is asked and nothing else happens, and that takes long beside all the rest. */
function breaks(calls, asked, whole) {
  const busy = union(calls.flatMap(({ wait, work, asked }) => (asked ? [work] : [wait, work])));
  const found = [];
  let next = 0;
  for (const [begin, stop] of asked) {
    let from = begin;
    while (next < busy.length && busy[next][0] < stop) {
      const [busyFrom, busyTo] = busy[next];
      if (busyFrom > from) found.push([from, busyFrom]);
      from = Math.max(from, busyTo);
      if (busyTo > stop) break;
      next++;
    }
    if (from < stop) found.push([from, stop]);
  }
  const rest = whole - length(found);
  return found.filter(([from, to]) => to - from > LEAST * Math.max(rest, 1e-3));
}

/** The next larger of 1, 2 and 5 times a power of ten: numbers that people read at a glance. */
export function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= least * 0.999);
}
