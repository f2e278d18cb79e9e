// Elements made without markup strings: text stays text, whatever a script, a tool or a model wrote.

import { parse } from "./json.js";

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. Functions named on… are listeners; null, undefined and false are left out. */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** An SVG element. */
export function s(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2).toLowerCase(), value);
    else if (name.startsWith("on")) throw new Error(`${name} must be a function`);
    else element.setAttribute(name === "className" ? "class" : name, value === true ? "" : String(value));
  }
  element.append(...children.flat(4).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

/** Data that the server put into an attribute of an element. */
export const pageData = (element, name = "json") => parse(element.dataset[name]);

export function seconds(value) {
  if (value < 0.0009995) return `${Math.round(value * 1e6)} µs`;
  if (value < 0.9995) return `${Number((value * 1e3).toPrecision(3))} ms`;
  return value < 600 ? `${value.toFixed(1)} s` : `${(value / 60).toFixed(1)} min`;
}

export function bytes(count) {
  for (const unit of ["B", "kB", "MB"]) {
    if (count < 999.5) return `${Number(count.toPrecision(3))} ${unit}`;
    count /= 1000;
  }
  return `${Number(count.toPrecision(3))} GB`;
}

export const count = (number) => Number(number).toLocaleString("en");

export function plural(number, noun, many = `${noun}s`) {
  return `${count(number)} ${number === 1 ? noun : many}`;
}

/** What an error is called: a kind alone, such as "tool", does not say that the run failed. */
export const failed = ({ kind, limit }) => (kind === "cancelled" ? kind : `failed: ${kind}${limit ? ` (${limit})` : ""}`);

export function when(timestamp) {
  const date = new Date(timestamp * 1000);
  const sameDay = date.toDateString() === new Date().toDateString();
  return date.toLocaleString("en-GB", sameDay ? { timeStyle: "medium" } : { dateStyle: "medium", timeStyle: "short" });
}

/** Calls `job` once things have been quiet for a while. */
export function debounced(milliseconds, job) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => job(...args), milliseconds);
  };
}

/** A short message in the corner, also read aloud by screen readers. */
export function toast(text, kind = "note") {
  const line = h("div", { class: `toast ${kind}` }, text);
  $("#toasts").append(line);
  setTimeout(() => line.remove(), kind === "bad" ? 9000 : 4000);
}

/** Put a text into the clipboard; `said` is what the person is told. */
export async function copy(text, said) {
  try {
    await navigator.clipboard.writeText(text);
    toast(said);
  } catch {
    toast(`The browser does not allow copying (${count(text.length)} characters).`, "bad");
  }
}
