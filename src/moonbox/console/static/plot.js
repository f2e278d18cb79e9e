// Plots of numbers: bars where there are few, lines where there are many; of rows, with a choice of columns and labels.

import { roundStep } from "./axis.js";
import { h, plural, s } from "./dom.js";
import { isNumber } from "./json.js";

const [LEFT, RIGHT, TOP, BOTTOM] = [60, 10, 12, 30];
const MOST_POINTS = 2000;
const MOST_BARS = 40;
const MOST_SERIES = 4; // as many colours can be told apart
const LABEL = 75; // pixels for one
const LINES = 4;

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

function draw(found, names, label) {
  const all = found.points.flatMap((row) => names.map((name) => Number(row[name])));
  const [least, most] = all.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  const name = `Plot of ${plural(found.points.length, "number")}${names[0] && ` (${names.join(", ")})`}, from ${short(least)} to ${short(most)}`;
  const legend = names.length > 1 ? h("div", { class: "tl-legend" }, names.map((each, at) => h("span", {}, h("i", { class: `swatch series-${at}` }), each))) : null;
  const picture = s("svg", { class: "plot", role: "img", "aria-label": name });
  const paint = ([{ contentRect: room }]) => room.width && picture.replaceChildren(...parts(found, names, label, [Math.min(0, least), Math.max(0, most)], room));
  new ResizeObserver(paint).observe(picture);
  return h("figure", { class: "plot-box" }, picture, legend);
}

/** What is drawn into so much room: lines at round numbers, a bar or a line for each series, labels below. */
function parts({ points }, names, label, [least, most], { width, height }) {
  const step = roundStep((most - least || 1) / LINES);
  const [low, high] = [Math.floor(least / step), Math.max(Math.ceil(most / step), 1 + Math.floor(least / step))];
  const y = (value) => TOP + ((high - value / step) / (high - low)) * (height - TOP - BOTTOM);
  const slot = (width - LEFT - RIGHT) / points.length;
  const x = (index) => LEFT + slot * (index + 0.5);
  const text = (index) => (label === null ? String(index + 1) : String(points[index][label]));
  const lines = Array.from({ length: high - low + 1 }, (_, at) => (low + at) * step).flatMap((value) => [
    s("line", { class: "plot-grid", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }),
    s("text", { class: "plot-text", x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)),
  ]);
  const thick = Math.max(1, (slot * 0.76) / names.length);
  const bar = (row, index, at) => {
    const [value, told] = [Number(row[names[at]]), `${text(index)}${names[at] && `, ${names[at]}`}: ${row[names[at]]}`];
    return s("rect", { class: `plot-bar series-${at}`, x: x(index) - slot * 0.38 + thick * at, width: thick, y: Math.min(y(value), y(0)), height: Math.max(1, Math.abs(y(value) - y(0))), rx: Math.min(2, thick / 3) }, s("title", {}, told));
  };
  const line = (name, at) => s("polyline", { class: `plot-line series-${at}`, points: points.map((row, index) => `${x(index).toFixed(1)},${y(Number(row[name])).toFixed(1)}`).join(" ") });
  const marks = points.length <= MOST_BARS ? points.flatMap((row, index) => names.map((_, at) => bar(row, index, at))) : names.map(line);
  const every = Math.ceil((points.length * LABEL) / (width - LEFT - RIGHT));
  const longest = Math.max(3, Math.floor((slot * every) / 6.5));
  const under = points.map((_, index) => index).filter((index) => index % every === 0);
  const labels = under.map((index) => s("text", { class: "plot-text", x: x(index), y: height - 10, "text-anchor": "middle" }, clipped(text(index), longest), s("title", {}, text(index))));
  return [...lines, ...marks, ...labels];
}

const clipped = (text, longest) => (text.length > longest ? `${text.slice(0, longest - 1)}…` : text);

const short = (value) => (Math.abs(value) >= 1e6 || (value && Math.abs(value) < 1e-3) ? value.toExponential(1) : String(Number(value.toPrecision(4))));
