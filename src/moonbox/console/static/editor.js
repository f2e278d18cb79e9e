// The editor: a textarea with coloured text behind it, completion from the catalog, and marks at their lines.

import { $, debounced, h } from "./dom.js";
import { colouredLine, isKeyword, tokenLines } from "./highlight.js";
import { next, outdented, unit } from "./indent.js";

const WORD = /[A-Za-z_][\w.]*$/;
const MOST_CHOICES = 12;
const CHOOSING = new Set(["Tab", "Enter", "ArrowDown", "ArrowUp", "Escape"]);
const LARGEST_COLOURED = 60_000;

export class Editor {
  /** `names(source, before)` gives the words to complete: [{name, detail, insert, back}], and whether an empty word is enough. */
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
    this.moved = false; // a person went through the choices with the arrow keys
    this.returned = null; // what stood before the line that was moved back last
    this.here = 0; // the line that is about to run
    this.leaving = false; // Escape was pressed: Tab leaves the editor
    this.edited = false; // since it was drawn
    this.typed = false; // since completions were offered
    this.touched = false; // by a person, since the page set the text
    this.tell = debounced(350, changed);
    // Text of many lines comes as many events: what is shown follows once for all of them, with the next frame.
    this.text.addEventListener("input", ({ inputType }) => {
      if (!this.edited) requestAnimationFrame(() => this.follow());
      this.edited = this.typed = this.touched = true;
      if (inputType === "insertText") this.outdent();
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
    this.touched = false;
    this.draw();
  }

  /** Show findings and errors: [{line, severity, message, hint}]. */
  mark(marks) {
    this.marks = marks;
    this.draw();
  }

  /** Mark the line that is about to run; 0 for none. */
  point(line) {
    this.here = line;
    this.draw();
    if (!line) return;
    const height = parseFloat(getComputedStyle(this.text).lineHeight);
    const top = (line - 1) * height;
    if (top < this.text.scrollTop || top + 2 * height > this.text.scrollTop + this.text.clientHeight) this.text.scrollTop = Math.max(0, top - 3 * height);
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
    const plain = source.length > LARGEST_COLOURED && source.split("\n").map((line) => [["", line]]);
    const worst = new Map();
    for (const mark of this.marks) {
      if (mark.line && worst.get(mark.line)?.severity !== "error") worst.set(mark.line, mark);
    }
    const lines = (plain || tokenLines(source, this.language)).map((tokens, index) => {
      const mark = worst.get(index + 1);
      const next = index + 1 === this.here ? " next" : "";
      return { tokens, mark: mark ? `marked-${mark.severity}${next}` : next, number: index + 1, title: mark ? `${mark.severity === "error" ? "Error" : "Note"}: ${mark.message}` : null, kind: (mark?.severity ?? "") + next };
    });
    renew(this.behind, lines.map(({ tokens, mark }) => JSON.stringify([mark, tokens])), (at) => {
      const line = colouredLine(lines[at].tokens);
      line.className = lines[at].mark;
      return h("span", {}, line, "\n");
    });
    renew(this.gutter, lines.map(({ number, kind, title }) => JSON.stringify([number, kind, title])), (at) => h("span", { class: `number ${lines[at].kind}`, title: lines[at].title }, String(at + 1)));
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
        this.moved = true;
        this.drawChoices();
        return event.preventDefault();
      }
      // Whoever types a whole line ends it with Enter: it takes a choice only where a person went to one.
      const enters = event.key === "Enter" && !event.ctrlKey && !event.metaKey && this.moved;
      if (enters || event.key === "Tab") {
        this.take(this.choices[this.chosen]);
        return event.preventDefault();
      }
      if (event.key === "Escape") {
        this.hide();
        return event.preventDefault();
      }
    }
    const leaving = this.leaving;
    this.leaving = event.key === "Escape" || (leaving && event.key === "Shift");
    if (event.key === "Tab" && !leaving) {
      this.indent(event.shiftKey);
      event.preventDefault();
    } else if (event.key === "/" && (event.ctrlKey || event.metaKey)) {
      this.comment();
      event.preventDefault();
    } else if (event.key === " " && event.ctrlKey) {
      this.complete(true);
      event.preventDefault();
    } else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      const before = this.text.value.slice(0, this.text.selectionStart);
      const line = before.slice(before.lastIndexOf("\n") + 1);
      this.insert("\n" + next(line, this.language));
      this.hide();
      event.preventDefault();
    }
  }

  indent(less) {
    const { selectionStart: start, selectionEnd: end, value } = this.text;
    const step = unit(this.language);
    const shorter = new RegExp(`^( {1,${step.length}}|\\t)`);
    if (less || value.slice(start, end).includes("\n")) return this.changeLines((line) => (less ? line.replace(shorter, "") : line && step + line));
    this.insert(step);
    this.hide();
  }

  /** The word or bracket that ends a block goes back to where the block began; what it becomes the start of does not. */
  outdent() {
    const { selectionStart: at, selectionEnd: end, value } = this.text;
    if (at !== end) return;
    const start = value.lastIndexOf("\n", at - 1) + 1;
    const line = value.slice(start, at);
    const known = this.returned;
    this.returned = null;
    if (known?.start === start && /\w$/.test(known.text) && /^\w/.test(line.slice(known.text.length)) && line.startsWith(known.text)) {
      return this.lead(start, line, known.lead); // `end` has become `ending`
    }
    const back = /\w/.test(value[at] ?? "") ? null : outdented(value.slice(0, at), this.language);
    if (back === null) return;
    this.lead(start, line, back);
    this.returned = { start, text: back + line.trimStart(), lead: /^\s*/.exec(line)[0] };
  }

  /** Let a line that ends at the caret begin with this. */
  lead(start, line, lead) {
    this.text.setSelectionRange(start, start + line.length);
    document.execCommand("insertText", false, lead + line.trimStart());
  }

  /** Comment the selected lines, or take the comments away where each has one. */
  comment() {
    const mark = { rhai: "//", python: "#" }[this.language] ?? "--";
    const commented = new RegExp(`^(\\s*)${mark} ?`);
    const { lines } = this.selectedLines();
    const all = lines.filter((line) => line.trim()).every((line) => commented.test(line));
    this.changeLines((line) => (all ? line.replace(commented, "$1") : line.trim() ? line.replace(/^(\s*)/, `$1${mark} `) : line));
  }

  selectedLines() {
    const { selectionStart, selectionEnd, value } = this.text;
    const start = value.lastIndexOf("\n", selectionStart - 1) + 1;
    const last = selectionEnd > selectionStart && value[selectionEnd - 1] === "\n" ? selectionEnd - 1 : selectionEnd;
    const found = value.indexOf("\n", last);
    const end = found < 0 ? value.length : found;
    return { start, end, lines: value.slice(start, end).split("\n") };
  }

  changeLines(change) {
    const { start, end, lines } = this.selectedLines();
    const several = this.text.selectionStart !== this.text.selectionEnd;
    const caret = this.text.selectionStart;
    const changed = lines.map(change).join("\n");
    if (changed === lines.join("\n")) return;
    this.text.setSelectionRange(start, end);
    this.insert(changed);
    if (several) this.text.setSelectionRange(start, start + changed.length);
    else this.text.setSelectionRange(Math.max(start, caret + changed.length - (end - start)), Math.max(start, caret + changed.length - (end - start)));
    this.hide();
  }

  /** The word before the caret, as far as it is written. */
  get word() {
    const { selectionStart: at, selectionEnd: end, value } = this.text;
    return at === end ? (WORD.exec(value.slice(Math.max(0, at - 200), at))?.[0] ?? "") : "";
  }

  complete(always = false) {
    this.typed = this.moved = false;
    const word = this.word;
    const { words, eager } = this.names(this.text.value, this.text.value.slice(0, this.text.selectionStart));
    if (!always && word.length < (eager ? 0 : 2)) return this.hide();
    // What is a whole word by itself is meant as it is.
    if (!always && word && (isKeyword(word, this.language) || words.some(({ name }) => name === word))) return this.hide();
    const low = word.toLowerCase();
    const known = words.filter(({ name }) => name !== word);
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
    const text = choice.insert ?? choice.name;
    const follows = /^\s*[{(]/.test(this.text.value.slice(at));
    this.insert(choice.back && !follows ? text : choice.name + (choice.back ? "" : text.slice(choice.name.length)));
    this.hide();
    if (!choice.back || follows) return;
    const place = this.text.selectionStart - choice.back;
    this.text.setSelectionRange(place, place);
    this.complete();
  }

  hide() {
    this.list.hidden = true;
    this.text.removeAttribute("aria-activedescendant");
  }
}

/** Make the lines anew whose keys are not those of before; what begins and ends the text mostly stays. */
function renew(root, keys, line) {
  const old = root.keys ?? [];
  const most = Math.min(old.length, keys.length);
  let [start, end] = [0, 0];
  while (start < most && keys[start] === old[start]) start++;
  while (end < most - start && keys.at(-1 - end) === old.at(-1 - end)) end++;
  for (let left = old.length - end - start; left > 0; left--) root.children[start].remove();
  const after = root.children[start] ?? null;
  for (let at = start; at < keys.length - end; at++) root.insertBefore(line(at), after);
  root.keys = keys;
}

const last = (name) => name.slice(name.lastIndexOf(".") + 1).toLowerCase();

function charWidth(style) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = `${style.fontSize} ${style.fontFamily}`;
  return context.measureText("0").width;
}
