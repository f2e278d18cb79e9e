// Two panes side by side: the line between them is dragged, or moved by the arrow keys; one of them fills the window.

import { h } from "./dom.js";

const KEPT = "moonbox-split";
const [LEAST, MOST, STEP] = [20, 80, 4];
const BEGIN = 53.5;

/** Put a line between the two panes of `root`. The browser keeps where a person has put it. */
export function split(root) {
  const line = h("div", { class: "split", role: "separator", tabindex: "0", "aria-orientation": "vertical", "aria-label": "Width of the script", "aria-valuemin": LEAST, "aria-valuemax": MOST, title: "Drag to change the width; a double click takes it back" });
  let share = Number(localStorage.getItem(KEPT)) || BEGIN;

  function set(wanted) {
    share = Math.max(LEAST, Math.min(MOST, wanted));
    root.style.setProperty("--split", `${share}%`);
    line.setAttribute("aria-valuenow", Math.round(share));
    localStorage.setItem(KEPT, share);
  }

  line.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    line.focus();
    line.setPointerCapture(event.pointerId);
    const { left, width } = root.getBoundingClientRect();
    line.onpointermove = ({ clientX }) => set(((clientX - left) / width) * 100);
    line.onlostpointercapture = () => (line.onpointermove = null);
  });
  line.addEventListener("dblclick", () => set(BEGIN));
  line.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
    if (!step) return;
    event.preventDefault();
    set(share + step);
  });
  root.firstElementChild.after(line);
  set(share);
}

let large = null;

/** A button that lets a pane fill the window, and gives the window back. */
export function maximiser(pane) {
  const button = h("button", { type: "button", class: "chip", "aria-pressed": "false", onClick: () => (large ? restore() : maximise()) }, "Maximise");

  function maximise() {
    large = { pane, button, scroll: scrollY };
    pane.classList.add("maximised");
    document.body.classList.add("covered");
    button.setAttribute("aria-pressed", "true");
    button.textContent = "Restore";
  }

  return button;
}

/** Give the window back. Returns whether a pane had it. */
export function restore() {
  if (!large) return false;
  const { pane, button, scroll } = large;
  large = null;
  pane.classList.remove("maximised");
  document.body.classList.remove("covered");
  button.setAttribute("aria-pressed", "false");
  button.textContent = "Maximise";
  scrollTo(0, scroll);
  return true;
}
