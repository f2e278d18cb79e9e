// A panel at the side of the page, which shows one value as a whole.

import { copy, h } from "./dom.js";

let panel = null;
let opener = null;

/** Show this at the side, instead of what was shown there; `text` is what is copied. */
export function aside(title, view, text) {
  const button = (label, job) => h("button", { type: "button", class: "chip", onClick: job }, label);
  if (!panel) opener = document.activeElement;
  panel?.remove();
  panel = h(
    "aside",
    { class: "beside", tabindex: "-1", "aria-label": `The whole value of ${title}` },
    h("div", { class: "head" }, h("h2", {}, title), h("span", { class: "spring" }), button("Copy", () => copy(text, "The value is in the clipboard.")), button("Close", closeAside)),
    view,
  );
  document.body.append(panel);
  panel.focus();
}

/** Returns whether there was one. */
export function closeAside() {
  if (!panel) return false;
  const back = panel.contains(document.activeElement);
  panel.remove();
  panel = null;
  if (back) opener?.focus({ preventScroll: true });
  return true;
}
