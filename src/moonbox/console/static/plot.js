// Plots of numbers: bars where there are few, lines where there are many; of rows, with a choice of columns and labels.

import { h, plural, s } from "./dom.js";
import { isNumber } from "./json.js";

const WIDTH = 640;
const HEIGHT = 240;
const [LEFT, RIGHT, TOP, BOTTOM] = [60, 10, 12, 30];
const MOST_POINTS = 2000;
const MOST_BARS = 40;
const MOST_SERIES = 4; // as many colours can be told apart
const LABELS = 8;

const isPoint = (value) => isNumber(value) && Number.isFinite(Number(value));
const isLabel = (value) => typeof value === "string" || isNumber(value);

/** What of a value can be plotted: {names, series, labels}; null where it is no numbers. `rows` are its rows, if any. */
export function plottable(value, rows) {
  if (rows) {
    const sample = thinned(rows.rows);
    const names = rows.columns.filter((name) => sample.every((row) => isPoint(row?.[name])));
    const labels = rows.columns.filter((name) => sample.every((row) => isLabel(row?.[name])));
    return names.length && sample.length > 1 ? { names, labels, points: sample } : null;
  }
  const list = Array.isArray(value);
  if (!list && (!value || typeof value !== "object" || isNumber(value))) return null;
  const entries = list ? thinned(value).map((item, index) => [String(index * step(value) + 1), item]) : Object.entries(value);
  if (entries.length < 2 || (!list && entries.length > 60) || !entries.every(([, item]) => isPoint(item))) return null;
  return { names: [""], labels: [""], points: entries.map(([label, y]) => ({ "": y, label })), own: "label" };
}

const step = (list) => Math.ceil(list.length / MOST_POINTS);
const thinned = (list) => list.filter((_, index) => index % step(list) === 0);

/** The plot, with its choices where there are any. */
export function plotView(found) {
  if (found.own) return h("div", {}, draw(found, [""], found.own));
  const place = h("div");
  const texts = found.labels.filter((name) => found.points.some((row) => typeof row[name] === "string"));
  const isCount = (name) => /(^|_)(id|key|index|number)$/i.test(name) && found.names.length > 1;
  let chosen = [found.names.findLast((name) => !isCount(name)) ?? found.names.at(-1)];
  const label = h("select", { onChange: show }, h("option", { value: "" }, "(number of the row)"), found.labels.map((name) => h("option", { value: name, selected: name === texts[0] }, name)));
  const chips = found.names.map((name) => h("button", { type: "button", class: "chip", "data-column": name, onClick: () => choose(name) }, name));

  function choose(name) {
    if (!chosen.includes(name)) chosen = [...chosen, name].slice(-MOST_SERIES);
    else if (chosen.length > 1) chosen = chosen.filter((each) => each !== name);
    show();
  }

  function show() {
    for (const chip of chips) chip.setAttribute("aria-pressed", String(chosen.includes(chip.dataset.column)));
    place.replaceChildren(draw(found, chosen, label.selectedIndex > 0 ? label.value : null));
  }

  show();
  const choices = h(
    "div",
    { class: "chips plot-choices" },
    found.names.length > 1 ? h("span", { class: "chips", role: "group", "aria-label": "Columns" }, chips) : null,
    h("label", {}, "Labels ", label),
  );
  return h("div", {}, choices, place);
}

function draw({ points }, names, label) {
  const values = points.map((row) => names.map((name) => Number(row[name])));
  const all = values.flat();
  const low = all.reduce((least, value) => Math.min(least, value), 0);
  const high = all.reduce((most, value) => Math.max(most, value), 0) || (low === 0 ? 1 : 0);
  const span = high - low || 1;
  const y = (value) => TOP + ((high - value) / span) * (HEIGHT - TOP - BOTTOM);
  const slot = (WIDTH - LEFT - RIGHT) / points.length;
  const x = (index) => LEFT + slot * (index + 0.5);
  const text = (index) => (label === null ? String(index + 1) : String(points[index][label]));
  const told = (index, at) => s("title", {}, `${text(index)}${names[at] && `, ${names[at]}`}: ${points[index][names[at]]}`);
  const width = Math.max(1, (slot * 0.76) / names.length);
  const bar = (index, at) =>
    s(
      "rect",
      { class: `plot-bar series-${at}`, x: x(index) - slot * 0.38 + width * at, width, y: Math.min(y(values[index][at]), y(0)), height: Math.max(1, Math.abs(y(values[index][at]) - y(0))), rx: Math.min(2, width / 3) },
      told(index, at),
    );
  const line = (at) => s("polyline", { class: `plot-line series-${at}`, points: values.map((row, index) => `${x(index).toFixed(1)},${y(row[at]).toFixed(1)}`).join(" ") });
  const marks = points.length <= MOST_BARS ? values.map((_, index) => names.map((_, at) => bar(index, at))) : names.map((_, at) => line(at));
  const grid = [0, 1, 2, 3, 4].map((part) => low + (span * part) / 4).map((value) => [
    s("line", { class: "plot-grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
    s("text", { class: "plot-text", x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)),
  ]);
  const every = Math.ceil(points.length / LABELS);
  const longest = Math.max(3, Math.floor((slot * every) / 6.5));
  const under = points.map((_, index) => index).filter((index) => index % every === 0);
  const labels = under.map((index) => s("text", { class: "plot-text", x: x(index), y: HEIGHT - 10, "text-anchor": "middle" }, clipped(text(index), longest), s("title", {}, text(index))));
  const name = `Plot of ${plural(points.length, "number")}${names[0] && ` (${names.join(", ")})`}, from ${short(all.reduce((a, b) => Math.min(a, b)))} to ${short(all.reduce((a, b) => Math.max(a, b)))}`;
  const legend = names.length > 1 ? h("div", { class: "tl-legend" }, names.map((each, at) => h("span", {}, h("i", { class: `swatch series-${at}` }), each))) : null;
  return h("figure", { class: "plot-box" }, s("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": name }, grid, marks, labels), legend);
}

const clipped = (text, longest) => (text.length > longest ? `${text.slice(0, longest - 1)}…` : text);

const short = (value) => (Math.abs(value) >= 1e6 || (value && Math.abs(value) < 1e-3) ? value.toExponential(1) : String(Number(value.toPrecision(4))));
