// Keyboard shortcuts: one table, which the help shows too.

import { $, h } from "./dom.js";

const table = [];
let prefix = "";
let forget = 0;

/** Add a shortcut such as "g r", "j" or "Ctrl+Enter". Those without Ctrl rest while one types. */
export function key(combination, text, job) {
  table.push({ combination, text, job });
}

export function listen() {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const typing = event.target.closest?.('input:not([type="range"], [type="checkbox"]), textarea, select, [contenteditable]');
    const pressed = name(event);
    if (typing && !event.ctrlKey && !event.metaKey && pressed !== "Escape") return;
    if ($("dialog[open]") && pressed !== "Escape") return;
    const sequence = prefix ? `${prefix} ${pressed}` : pressed;
    const shortcut = table.find(({ combination }) => combination === sequence);
    prefix = "";
    clearTimeout(forget);
    if (shortcut) {
      if (shortcut.job(event) !== false) event.preventDefault();
    } else if (table.some(({ combination }) => combination.startsWith(`${sequence} `))) {
      prefix = sequence;
      forget = setTimeout(() => (prefix = ""), 1500);
    }
  });
}

function name(event) {
  const held = event.ctrlKey || event.metaKey ? "Ctrl+" : "";
  const shift = event.shiftKey && (held || event.key.length > 1) ? "Shift+" : "";
  return held + shift + (held && event.key.length === 1 ? event.key.toLowerCase() : event.key);
}

export function showHelp() {
  const dialog = $("#help");
  const rows = table.map(({ combination, text }) =>
    h("div", { class: "shortcut" }, h("dt", {}, combination.split(" ").map((part) => h("kbd", {}, part))), h("dd", {}, text)),
  );
  $("dl", dialog).replaceChildren(...rows);
  dialog.showModal();
}
