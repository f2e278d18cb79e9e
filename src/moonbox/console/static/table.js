// Tables of any number of rows: only the rows in sight are elements. Sorting, copying and exporting.

import { count, h, plural, toast } from "./dom.js";
import { isNumber, stringify } from "./json.js";

const WHOLE = 200; // as many rows are shown as they are; rows of larger tables have one height
const ROW = 28;
const OVER = 10;
const FORMULA = /^[=+\-@\t\r]/;

/** A table that scrolls inside its place. `cell(value, open)` gives a cell; `open` shows a large value below the table. */
export function table({ columns, rows }, cell) {
  const virtual = rows.length > WHOLE;
  const numeric = columns.map((name) => rows.slice(0, WHOLE).every((row) => row?.[name] === undefined || isNumber(row[name])));
  const align = (index) => (numeric[index] ? "right" : null);
  let order = rows;
  let sorted = [null, 1];
  let drawn = "";
  const body = h("tbody");
  const detail = h("div", { class: "row-detail", "aria-live": "polite" });
  const open = virtual ? (name, view) => detail.replaceChildren(h("h4", {}, name), view) : null;
  const heads = columns.map((name, index) =>
    h("th", { scope: "col", class: align(index) }, h("button", { type: "button", class: "sort", onClick: () => sort(index) }, name)),
  );
  const scroll = h(
    "div",
    { class: virtual ? "scroll rows virtual" : "scroll rows", tabindex: "0", role: "region", "aria-label": "Rows", onScroll: () => draw() },
    h("table", { "aria-rowcount": rows.length + 1 }, h("thead", {}, h("tr", { "aria-rowindex": 1 }, heads)), body),
  );

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
      h("tr", { "aria-rowindex": first + index + 2 }, columns.map((name, at) => h("td", { class: align(at) }, cell(row?.[name], open && ((view) => open(name, view)))))),
    );
    body.replaceChildren(...gap(first), ...shown, ...gap(order.length - last));
  }

  function gap(number) {
    const row = h("tr", { class: "gap", "aria-hidden": "true" }, h("td", { colspan: columns.length }));
    row.style.height = `${number * ROW}px`;
    return number ? [row] : [];
  }

  draw();
  // The widths of the first rows stay, whichever rows are in sight.
  if (virtual) requestAnimationFrame(() => heads.forEach((head) => (head.style.minWidth = `${head.offsetWidth}px`)));
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
  return h("div", {}, scroll, tools, detail);
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

export async function copy(text, said) {
  try {
    await navigator.clipboard.writeText(text);
    toast(said);
  } catch {
    toast(`The browser does not allow copying (${count(text.length)} characters).`, "bad");
  }
}
