// A value as people read it: a tree, a table where it is rows, a plot where it is numbers, media as media.

import { bytes, count, h } from "./dom.js";
import { isNumber, stringify } from "./json.js";
import { plottable, plotView } from "./plot.js";
import { table } from "./table.js";

const FIRST = ["id", "key", "name", "title"];
const MOST_CHILDREN = 200;
const MOST_COLUMNS = 30;
const LONGEST = 600; // characters of a text that is not unfolded
const LINES = 12;
const LEAST_FOLDED = 40;
const MAGIC = { "iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", R0lGOD: "image/gif", UklGR: "image/webp" };
const PLAYED = /^(image|audio|video)\/[\w.+-]+$/;
const LONGEST_DATA = 8e6;
const BASE64 = /^[A-Za-z0-9+/=\s]*$/;

/** The value in the ways that fit it, as tabs where there are several. */
export function valueView(value, name = "value") {
  const views = [["tree", "Tree", () => h("div", { class: "scroll rows", tabindex: "0", role: "region", "aria-label": "Value" }, tree(value, name))]];
  const rows = asRows(value);
  if (rows) views.unshift(["table", "Table", () => table(rows, cell, (value) => tree(value, null))]);
  const numbers = plottable(value, rows);
  if (numbers) views.push(["plot", "Plot", () => plotView(numbers)]);
  const medium = asMedium(value);
  if (medium) views.unshift(["media", "Media", () => media(medium)]);
  const items = asGallery(value);
  if (items) views.unshift(["media", "Media", () => h("div", { class: "gallery" }, items.map(media))]);
  if (views.length === 1) return views[0][2]();
  const panel = h("div", { class: "view" });
  const show = (key) => {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.view === key));
    panel.replaceChildren(views.find(([id]) => id === key)[2]());
  };
  const buttons = views.map(([key, label]) =>
    h("button", { type: "button", class: "chip", "data-view": key, onClick: () => show(key) }, label),
  );
  show(views[0][0]);
  return h("div", { class: "value" }, h("div", { class: "chips", role: "group", "aria-label": "Shown as" }, buttons), panel);
}

/** The values of a run, and the media that it showed besides. */
export function runView(values, media = []) {
  const views = values.map((item, index) => valueView(item, values.length > 1 ? `value ${index + 1}` : "value"));
  const text = media.length ? stringify(values) : "";
  const shown = media.filter((handle) => !text.includes(handle.media));
  if (shown.length) views.push(h("section", { "aria-label": "Shown" }, h("h3", {}, "Shown"), gallery(shown)));
  return views;
}

export function tree(value, name = "value", open = true) {
  return h("div", { class: "tree" }, node(name, value, open));
}

/** The arguments of a call in the order of the tool's schema. */
export function inOrder({ arguments: given, order }) {
  const place = (name) => (order ?? []).indexOf(name) + 1 || Infinity;
  return Object.entries(given ?? {}).sort(([a], [b]) => (place(a) === place(b) ? 0 : place(a) - place(b)));
}

/** The arguments of a call as a tree, in the order of the tool's schema. */
export function argumentsTree(call, name = "arguments", open = true) {
  return h("div", { class: "tree" }, node(name, call.arguments, open, inOrder(call)));
}

/** A field: its name and its value, which unfolds. `fields` are those of the value in their own order. */
export function node(name, value, open = holdsMedium(value), fields = null) {
  const label = name === null ? null : h("span", { class: "key" }, String(name));
  const medium = asMedium(value);
  if (medium) return h("div", { class: "leaf" }, label, media(medium));
  if (isLeaf(value)) return h("div", { class: "leaf" }, label, leaf(value));
  const tag = tagged(value);
  if (tag !== undefined) return h("div", { class: "leaf" }, label, tag);
  const entries = Array.isArray(value) ? value.map((item, index) => [index + 1, item]) : fields ?? Object.entries(value).sort(([a], [b]) => byName(a, b));
  const size = Array.isArray(value) ? `[${count(entries.length)}]` : `{${count(entries.length)}}`;
  if (!entries.length) return h("div", { class: "leaf" }, label, h("span", { class: "dim" }, size));
  const inside = h("div", { class: "inside" });
  const details = h(
    "details",
    { open: open ? true : null },
    h("summary", {}, label, h("span", { class: "dim" }, size, " "), h("span", { class: "preview" }, preview(value))),
    inside,
  );
  const fill = () => {
    if (inside.childElementCount || !details.open) return;
    addChildren(inside, entries, 0);
  };
  details.addEventListener("toggle", fill);
  if (open) fill();
  return details;
}

function addChildren(inside, entries, from) {
  inside.append(...entries.slice(from, from + MOST_CHILDREN).map(([key, item]) => node(key, item)));
  const rest = entries.length - from - MOST_CHILDREN;
  if (rest <= 0) return;
  const more = h(
    "button",
    {
      type: "button",
      class: "chip",
      onClick: () => {
        more.remove();
        addChildren(inside, entries, from + MOST_CHILDREN);
      },
    },
    `${count(rest)} more`,
  );
  inside.append(more);
}

function leaf(value) {
  if (typeof value === "string") return folded(value);
  if (isNumber(value)) return h("span", { class: "v-number" }, String(value));
  return h("span", { class: "v-word" }, String(value));
}

/** A text; of a long one its beginning, with a button that shows the rest, and folds it again. */
function folded(value) {
  const lines = value.split("\n", LINES + 1);
  const start = (lines.length > LINES ? lines.slice(0, LINES).join("\n") : value).slice(0, LONGEST);
  if (value.length - start.length < LEAST_FOLDED) return h("span", { class: "v-string" }, value);
  const text = h("span", { class: "v-string" }, start);
  const more = h("button", { type: "button", class: "chip", "aria-expanded": "false" }, `${count(value.length - start.length)} more characters`);
  more.addEventListener("click", () => {
    const open = more.getAttribute("aria-expanded") === "false";
    text.textContent = open ? value : start;
    more.textContent = open ? "less" : `${count(value.length - start.length)} more characters`;
    more.setAttribute("aria-expanded", String(open));
  });
  return h("span", {}, text, " ", more);
}

/** Fields in a few words. */
export function brief(fields) {
  const text = fields.map(([name, value]) => `${name} ${stringify(value, { clip: 40 })}`).join(", ");
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}

/** How the API writes what JSON has no form for: bytes, NaN and infinity, tables with other keys. */
function tagged(value) {
  const keys = Object.keys(value);
  if (keys.length !== 1) return undefined;
  if (typeof value.$bytes === "string") return h("span", { class: "v-string" }, `<${bytes(base64Size(value.$bytes))} of binary data>`);
  if ("$float" in value) return h("span", { class: "v-number" }, String(value.$float));
  if (Array.isArray(value.$pairs)) return h("span", {}, value.$pairs.map(([key, item]) => node(key, item)));
  return undefined;
}

const isLeaf = (value) => value === null || typeof value !== "object" || isNumber(value);

function preview(value) {
  const text = stringify(value, { clip: 80 });
  return text.length > 90 ? text.slice(0, 90) + "…" : text;
}

/** Tables of scripts have no order: what names a row comes first, the rest by the alphabet. */
function byName(a, b) {
  const rank = (name) => FIRST.indexOf(name) + 1 || FIRST.length + 1;
  return rank(a) - rank(b) || (a < b ? -1 : a > b ? 1 : 0);
}

// Tables

function asRows(value) {
  if (!Array.isArray(value) || !value.length) return null;
  const sample = value.slice(0, 50);
  const flat = sample.every((row) => !isLeaf(row) && !Array.isArray(row) && Object.keys(row).length && !tagged(row));
  if (!flat) return null;
  const columns = [];
  for (const row of sample) {
    for (const key of Object.keys(row)) if (!columns.includes(key)) columns.push(key);
  }
  return columns.length <= MOST_COLUMNS ? { columns: columns.sort(byName), rows: value } : null;
}

/** A cell has one line; what has more is shown at the side. Small tables show media where they are. */
function cell(value, open, small) {
  if (value === undefined) return "";
  if (small && !isLeaf(value) && holdsMedium(value)) return node(null, value);
  if (isLeaf(value) && (typeof value !== "string" || (value.length < 40 && !value.includes("\n")))) return leaf(value);
  return h("button", { type: "button", class: isLeaf(value) ? "cell v-string" : "cell", onClick: open }, isLeaf(value) ? value.slice(0, 200) : preview(value));
}

// Media

const ADDRESS = /^moonbox:\/\/media\/([\w-]+)$/;

/** {type, source, name, size} of an image, sound or file; null for any other value. */
function asMedium(value) {
  if (typeof value === "string") {
    const match = value.length < LONGEST_DATA && /^data:([a-z]+\/[a-z0-9.+-]+);base64,([A-Za-z0-9+/=\s]+)$/.exec(value);
    return match ? inside(match[1], match[2]) : null;
  }
  if (!value || typeof value !== "object") return null;
  if (typeof value.$bytes === "string") {
    return inside(Object.entries(MAGIC).find(([start]) => value.$bytes.startsWith(start))?.[1], value.$bytes);
  }
  const type = value.mimeType ?? value.mime_type ?? value.media_type ?? (value.media ? value.type : undefined);
  if (typeof type !== "string") return null;
  if (typeof value.data === "string") return BASE64.test(value.data.slice(0, 1000)) ? inside(type, value.data) : null;
  const address = ADDRESS.exec(value.media ?? value.uri ?? "")?.[1];
  if (!address) return null;
  const text = (given) => (typeof given === "string" ? given.slice(0, 200) : "");
  return { type: text(type), source: `/media/${address}`, name: text(value.name), size: isNumber(value.size) ? value.size : null };
}

/** A medium that is part of the value itself: only what can be shown. */
function inside(type, data) {
  return PLAYED.test(type ?? "") ? { type, source: `data:${type};base64,${data.replace(/\s/g, "")}`, name: "", size: base64Size(data) } : null;
}

function asGallery(value) {
  if (!Array.isArray(value) || !value.length || value.length > MOST_CHILDREN) return null;
  const items = value.map(asMedium);
  return items.every(Boolean) ? items : null;
}

/** Whether an image is somewhere in a value: then its branch is open. */
function holdsMedium(value, depth = 3) {
  if (!value || typeof value !== "object" || depth < 0) return false;
  return Boolean(asMedium(value)) || Object.values(value).slice(0, 20).some((item) => holdsMedium(item, depth - 1));
}

/** What a run returned or showed of images, sounds and files. */
export function gallery(handles) {
  return h("div", { class: "gallery" }, handles.map(asMedium).filter(Boolean).map(media));
}

/** What can be drawn or played is; all else, and what fails, is a line with its name and a link that downloads it. */
function media({ type, source, name, size }) {
  const about = [name, type, size === null ? "" : bytes(size)].filter(Boolean).join(" · ");
  const link = source.startsWith("/") ? h("a", { href: source, download: name }, "Download") : null;
  const note = h("figcaption", { class: "dim" }, h("span", {}, about), " ", link);
  const kind = PLAYED.exec(type)?.[1];
  const failed = () => {
    shown?.remove();
    note.append(" (it is no longer kept, or cannot be shown)");
  };
  // Pictures that are markup (SVG) are drawn by <img>, which runs nothing and loads nothing.
  const shown =
    kind === "image"
      ? h("img", { class: "medium", src: source, alt: about, loading: "lazy", onError: failed })
      : kind && h(kind, { class: "medium", src: source, controls: true, preload: "metadata", "aria-label": about, onError: failed });
  return h("figure", { class: "medium-box" }, shown, note);
}

const base64Size = (text) => Math.floor((text.replace(/[\s=]/g, "").length * 3) / 4);
