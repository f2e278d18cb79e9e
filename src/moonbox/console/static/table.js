// Tables of any number of rows: only the rows in sight are elements. Sorting, copying and exporting.

import { aside } from "./aside.js";
import { copy, h, plural } from "./dom.js";
import { isNumber, stringify } from "./json.js";

const WHOLE = 200; // as many rows are elements at once; of larger tables only those in sight are
const ROW = 28;
const OVER = 10;
const NARROWEST = 48;
const STEP = 40;
const CHARACTER = 9;
const LONGEST = 26;
const FORMULA = /^[=+\-@\t\r]/;

/** A table that scrolls inside its place, with rows of one line. `cell(value, open, small)` gives a cell; `open` shows
 *  the whole value at the side. */
export function table({ columns, rows }, cell, whole) {
  const virtual = rows.length > WHOLE;
  const numeric = columns.map((name) => rows.slice(0, WHOLE).every((row) => row?.[name] === undefined || isNumber(row[name])));
  const align = (index) => (numeric[index] ? "right" : null);
  let order = rows;
  let sorted = [null, 1];
  let drawn = "";
  const body = h("tbody", { onClick: clicked });
  const open = (name, value) => aside(name, whole(value), typeof value === "string" ? value : stringify(value, { indent: "  " }));
  const widths = h("colgroup", {}, columns.map(() => h("col")));
  const heads = columns.map((name, index) =>
    h(
      "th",
      { scope: "col", class: align(index) },
      h("button", { type: "button", class: "sort", title: "Sort; Shift and an arrow key change the width", onClick: () => sort(index), onKeydown: (event) => resized(event, index) }, name),
      h("span", { class: "grip", onPointerdown: (event) => drag(event, index), onDblclick: () => widen(index) }),
    ),
  );
  const grid = h("table", { class: "grid", "aria-rowcount": rows.length + 1 }, widths, h("thead", {}, h("tr", { "aria-rowindex": 1 }, heads)), body);
  const scroll = h("div", { class: virtual ? "scroll rows virtual" : "scroll rows", tabindex: "0", role: "region", "aria-label": "Rows", onScroll: () => draw() }, grid);

  /** What a cell has no room for is shown at the side. */
  function clicked({ target }) {
    const place = target.closest("td");
    const row = place && !target.closest("button, summary, a, audio, video") && order[place.parentElement.ariaRowIndex - 2];
    if (row && (place.scrollWidth > place.clientWidth || place.firstElementChild?.scrollWidth > place.clientWidth)) open(columns[place.cellIndex], row[columns[place.cellIndex]]);
  }

  // Widths: the browser finds them once, from the first rows; then they stay until a person changes one.

  const isFixed = () => grid.classList.contains("fixed");

  function fix() {
    if (isFixed() || !grid.offsetWidth) return;
    const found = heads.map((head, index) => Math.max(head.offsetWidth, longest(columns[index]) * CHARACTER + 22));
    found.forEach((width, index) => (widths.children[index].style.width = `${width}px`));
    grid.style.width = `${Math.max(grid.offsetWidth, found.reduce((sum, width) => sum + width))}px`;
    grid.classList.add("fixed");
  }

  /** Characters of the longest number or short text of a column, also of rows that are not in sight. */
  function longest(name) {
    const lengths = rows.map((row) => (isNumber(row?.[name]) || typeof row?.[name] === "string" ? String(row[name]).length : 0));
    return Math.min(LONGEST, lengths.reduce((a, b) => Math.max(a, b), 0));
  }

  function setWidth(index, width) {
    fix();
    const now = Math.max(NARROWEST, width);
    const total = grid.offsetWidth + now - heads[index].offsetWidth;
    widths.children[index].style.width = `${now}px`;
    grid.style.width = `${total}px`;
  }

  function drag(event, index) {
    const grip = event.currentTarget;
    const [from, before] = [event.clientX, heads[index].offsetWidth];
    event.preventDefault();
    grip.setPointerCapture(event.pointerId);
    grip.onpointermove = (moved) => setWidth(index, before + moved.clientX - from);
    grip.onlostpointercapture = () => (grip.onpointermove = null);
  }

  /** As wide as the widest cell that is in sight. */
  function widen(index) {
    const needed = [...body.rows].map((row) => row.cells[index]).filter(Boolean);
    setWidth(index, Math.max(heads[index].firstChild.scrollWidth + 24, ...needed.map((place) => Math.max(place.scrollWidth, (place.firstElementChild?.scrollWidth ?? 0) + 20))));
  }

  function resized(event, index) {
    const step = { ArrowRight: STEP, ArrowLeft: -STEP }[event.key];
    if (!step || !event.shiftKey) return;
    event.preventDefault();
    setWidth(index, heads[index].offsetWidth + step);
  }

  function sort(index) {
    const name = columns[index];
    sorted = [name, sorted[0] === name ? -sorted[1] : 1];
    order = [...rows].sort((a, b) => sorted[1] * compare(a?.[name], b?.[name]));
    heads.forEach((head, at) => head.setAttribute("aria-sort", at !== index ? "none" : sorted[1] > 0 ? "ascending" : "descending"));
    scroll.scrollTop = 0;
    draw(true);
  }

  function draw(anew = false) {
    const first = virtual ? Math.max(0, Math.floor(scroll.scrollTop / ROW) - OVER) : 0;
    const last = virtual ? Math.min(order.length, first + Math.ceil((scroll.clientHeight || 600) / ROW) + 2 * OVER) : order.length;
    if (!anew && drawn === `${first} ${last}`) return;
    drawn = `${first} ${last}`;
    const shown = order.slice(first, last).map((row, index) =>
      h("tr", { "aria-rowindex": first + index + 2 }, columns.map((name, at) => h("td", { class: align(at) }, cell(row?.[name], () => open(name, row[name]), !virtual)))),
    );
    body.replaceChildren(...gap(first), ...shown, ...gap(order.length - last));
  }

  function gap(number) {
    const row = h("tr", { class: "gap", "aria-hidden": "true" }, h("td", { colspan: columns.length }));
    row.style.height = `${number * ROW}px`;
    return number ? [row] : [];
  }

  draw();
  const seen = new ResizeObserver(() => {
    if (!grid.offsetWidth) return; // it is not shown yet
    seen.disconnect();
    fix();
    draw(true);
  });
  if (virtual) seen.observe(grid);
  const texts = () => order.map((row) => columns.map((name) => row?.[name]));
  const chip = (label, job) => h("button", { type: "button", class: "chip", onClick: job }, label);
  const tools = h(
    "div",
    { class: "chips table-tools" },
    h("span", { class: "dim" }, plural(rows.length, "row")),
    chip("Copy", () => copy(csv(columns, texts(), "\t"), `${plural(rows.length, "row")} in the clipboard.`)),
    chip("CSV", () => download("rows.csv", "text/csv", csv(columns, texts()))),
    chip("JSON", () => download("rows.json", "application/json", stringify(order, { indent: "  " }))),
  );
  return h("div", {}, scroll, tools);
}

/** Numbers by their value, also where they are larger than JavaScript's; what is missing comes last. */
export function compare(a, b) {
  const [x, y] = [rank(a), rank(b)];
  if (x !== y) return x - y;
  if (x === 0) return Number(a) - Number(b) || whole(a) - whole(b) || 0;
  const [left, right] = x === 1 ? [a, b] : [stringify(a ?? null), stringify(b ?? null)];
  return left < right ? -1 : left > right ? 1 : 0;
}

const rank = (value) => (isNumber(value) ? 0 : typeof value === "string" ? 1 : value === undefined || value === null ? 3 : 2);

function whole(value) {
  const text = String(value);
  return /^-?\d+$/.test(text) ? Number(BigInt(text) - BigInt(Math.trunc(Number(text)))) : 0;
}

/** Rows as CSV. A text that a spreadsheet would take for a formula gets an apostrophe in front. */
export function csv(columns, rows, comma = ",") {
  const field = (value) => {
    let text = typeof value === "string" ? value : value === undefined || value === null ? "" : stringify(value);
    if (typeof value === "string" && FORMULA.test(text)) text = `'${text}`;
    return text.includes(comma) || /["\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((row) => row.map(field).join(comma)).join("\r\n") + "\r\n";
}

export function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
