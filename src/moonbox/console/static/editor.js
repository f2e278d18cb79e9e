// The editor: a textarea with coloured text behind it, completion from the catalog, and marks at their lines.

import { $, debounced, h } from "./dom.js";
import { colouredLines } from "./highlight.js";

const WORD = /[A-Za-z_][\w.]*$/;
const MOST_CHOICES = 12;
const CHOOSING = new Set(["Tab", "Enter", "ArrowDown", "ArrowUp", "Escape"]);
const LARGEST_COLOURED = 60_000;

export class Editor {
  /** `names` gives the words to complete: [{name, detail, insert}]. */
  constructor(root, { names, changed }) {
    this.text = $("textarea", root);
    this.behind = $(".behind", root);
    this.gutter = $(".gutter", root);
    this.list = $(".choices", root);
    this.names = names;
    this.language = "lua";
    this.marks = [];
    this.choices = [];
    this.chosen = 0;
    this.edited = false; // since it was drawn
    this.typed = false; // since completions were offered
    this.tell = debounced(350, changed);
    // Text of many lines comes as many events: what is shown follows once for all of them, with the next frame.
    this.text.addEventListener("input", () => {
      if (!this.edited) requestAnimationFrame(() => this.follow());
      this.edited = this.typed = true;
    });
    this.text.addEventListener("scroll", () => this.scrolled());
    this.text.addEventListener("keydown", (event) => this.pressed(event));
    this.text.addEventListener("blur", () => setTimeout(() => this.hide(), 150));
    this.text.addEventListener("click", () => this.hide());
    this.draw();
  }

  get source() {
    return this.text.value;
  }

  set source(value) {
    this.text.value = value;
    this.draw();
  }

  /** Show findings and errors: [{line, severity, message, hint}]. */
  mark(marks) {
    this.marks = marks;
    this.draw();
  }

  /** Draw what was edited, offer to complete it, and tell of it. */
  follow() {
    if (!this.edited) return;
    this.edited = false;
    this.draw();
    if (this.typed) this.complete();
    this.tell();
  }

  draw() {
    const source = this.text.value;
    const large = source.length > LARGEST_COLOURED;
    const lines = large ? source.split("\n").map((line) => h("span", {}, line)) : colouredLines(source, this.language);
    const worst = new Map();
    for (const mark of this.marks) {
      if (mark.line && worst.get(mark.line)?.severity !== "error") worst.set(mark.line, mark);
    }
    const numbers = lines.map((_, index) => {
      const mark = worst.get(index + 1);
      const name = mark ? `${mark.severity === "error" ? "Error" : "Note"}: ${mark.message}` : null;
      return h("span", { class: mark ? `number ${mark.severity}` : "number", title: name }, String(index + 1));
    });
    for (const [line, mark] of worst) lines[line - 1]?.classList.add(`marked-${mark.severity}`);
    this.behind.replaceChildren(...lines.flatMap((line) => [line, "\n"]));
    this.gutter.replaceChildren(...numbers);
    this.scrolled();
  }

  scrolled() {
    this.behind.scrollTop = this.gutter.scrollTop = this.text.scrollTop;
    this.behind.scrollLeft = this.text.scrollLeft;
  }

  goTo(line) {
    const lines = this.text.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    this.text.focus();
    this.text.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
  }

  /** In the browser's own way, so that it can be undone. */
  replaceLine(line, text) {
    this.goTo(line);
    this.insert(text);
    this.hide();
  }

  insert(text) {
    this.text.focus();
    // The browser's own editing command keeps its undo history.
    if (!document.execCommand("insertText", false, text)) this.text.setRangeText(text);
    this.follow();
  }

  pressed(event) {
    // Keys can be faster than frames: what is chosen must fit the text as it is now.
    if (this.typed && CHOOSING.has(event.key)) this.complete();
    if (!this.list.hidden && this.choices.length) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) {
        this.chosen = (this.chosen + step + this.choices.length) % this.choices.length;
        this.drawChoices();
        return event.preventDefault();
      }
      if ((event.key === "Enter" && !event.ctrlKey && !event.metaKey) || event.key === "Tab") {
        this.take(this.choices[this.chosen]);
        return event.preventDefault();
      }
      if (event.key === "Escape") {
        this.hide();
        return event.preventDefault();
      }
    }
    if (event.key === " " && event.ctrlKey) {
      this.complete(true);
      event.preventDefault();
    } else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      const before = this.text.value.slice(0, this.text.selectionStart);
      const line = before.slice(before.lastIndexOf("\n") + 1);
      const deeper = /(\bthen|\bdo|\belse|\brepeat|\{|\(|\bfunction\b[^)]*\))\s*$/.test(line) ? "  " : "";
      this.insert("\n" + /^\s*/.exec(line)[0] + deeper);
      event.preventDefault();
    }
  }

  /** The word before the caret, as far as it is written. */
  get word() {
    const { selectionStart: at, selectionEnd: end, value } = this.text;
    return at === end ? (WORD.exec(value.slice(Math.max(0, at - 200), at))?.[0] ?? "") : "";
  }

  complete(always = false) {
    this.typed = false;
    const word = this.word;
    if (!always && word.length < 2) return this.hide();
    const low = word.toLowerCase();
    const known = this.names(this.text.value).filter(({ name }) => name !== word);
    const starts = known.filter(({ name }) => name.toLowerCase().startsWith(low));
    const inside = known.filter(({ name }) => !starts.some((item) => item.name === name) && last(name).startsWith(low));
    this.choices = [...starts, ...inside].slice(0, MOST_CHOICES);
    this.chosen = 0;
    if (this.choices.length) this.drawChoices();
    else this.hide();
  }

  drawChoices() {
    const rows = this.choices.map((choice, index) =>
      h(
        "li",
        {
          id: `choice-${index}`,
          role: "option",
          "aria-selected": index === this.chosen ? "true" : "false",
          onMousedown: (event) => {
            event.preventDefault();
            this.take(choice);
          },
        },
        h("b", {}, choice.name),
        h("span", {}, choice.detail),
      ),
    );
    this.list.replaceChildren(...rows);
    this.list.hidden = false;
    this.place();
    this.text.setAttribute("aria-activedescendant", `choice-${this.chosen}`);
    // Not scrollIntoView, which would also move the text sideways where a row is wider than the editor.
    const { offsetTop: top, offsetHeight: height } = rows[this.chosen];
    this.list.scrollTop = Math.max(top + height - this.list.clientHeight, Math.min(top, this.list.scrollTop));
  }

  /** Below the caret: the layer behind has the same metrics, so that a measured character is enough. */
  place() {
    const before = this.text.value.slice(0, this.text.selectionStart);
    const line = before.split("\n").length;
    const column = before.length - before.lastIndexOf("\n") - 1 - this.word.length;
    const style = getComputedStyle(this.text);
    const height = parseFloat(style.lineHeight);
    const width = charWidth(style);
    this.list.style.top = `${line * height - this.text.scrollTop + parseFloat(style.paddingTop)}px`;
    const left = column * width - this.text.scrollLeft + parseFloat(style.paddingLeft);
    const start = Math.max(0, Math.min(left, this.text.clientWidth - 240));
    this.list.style.left = `${start}px`;
    this.list.style.maxWidth = `${this.text.clientWidth - start - 4}px`;
  }

  take(choice) {
    const at = this.text.selectionStart;
    this.text.setSelectionRange(at - this.word.length, at);
    this.insert(choice.insert ?? choice.name);
    this.hide();
  }

  hide() {
    this.list.hidden = true;
    this.text.removeAttribute("aria-activedescendant");
  }
}

const last = (name) => name.slice(name.lastIndexOf(".") + 1).toLowerCase();

function charWidth(style) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = `${style.fontSize} ${style.fontFamily}`;
  return context.measureText("0").width;
}
