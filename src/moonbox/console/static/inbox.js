// Open questions at one place of a page: those of one run together, answered by buttons and by keys.

import { path, post } from "./api.js";
import { $, $$, h, plural, toast } from "./dom.js";
import { key } from "./keys.js";
import { questionCard } from "./question.js";

const SETTLE = 400; // milliseconds in which a second click is not meant for what has moved below the pointer

export class Inbox {
  constructor(root) {
    this.root = root;
    this.place = 0;
    this.keys();
  }

  get cards() {
    return $$(".question", this.root);
  }

  card(id) {
    return $(`[data-question="${CSS.escape(id)}"]`, this.root);
  }

  add(question) {
    if (this.card(question.id)) return;
    let group = question.run && $(`.asked[data-run="${CSS.escape(question.run)}"]`, this.root);
    if (!group) {
      group = h("section", { class: "asked", "data-run": question.run }, h("div", { class: "asked-head", hidden: true }));
      this.root.append(group);
    }
    group.append(questionCard(question));
    this.head(group);
  }

  /** A question is no longer open. No other one is selected in its place: a second key must not answer it. */
  remove(id) {
    const card = this.card(id);
    if (!card) return;
    const group = card.parentElement;
    if (card.contains(document.activeElement)) $("#main").focus({ preventScroll: true });
    if (card.matches(":hover")) this.rest();
    card.remove();
    if ($(".question", group)) this.head(group);
    else group.remove();
  }

  /** Show these and no others. */
  show(pending) {
    for (const card of this.cards) if (!pending.some(({ id }) => id === card.dataset.question)) this.remove(card.dataset.question);
    for (const question of pending) this.add(question);
  }

  clear() {
    this.root.replaceChildren();
  }

  rest() {
    this.root.inert = true;
    setTimeout(() => (this.root.inert = false), SETTLE);
  }

  /** What is above the questions of a run where there are several. Its buttons answer those that it counts, and none that come later. */
  head(group) {
    const head = $(".asked-head", group);
    const cards = $$(".question", group);
    head.hidden = cards.length < 2;
    group.classList.toggle("several", !head.hidden);
    if (head.hidden) return;
    const ids = cards.map((card) => card.dataset.question);
    const tools = new Map();
    for (const card of cards) tools.set(card.dataset.tool, (tools.get(card.dataset.tool) ?? 0) + 1);
    const danger = cards.filter((card) => card.matches(".destructive")).length;
    const all = (label, kind, decision) => h("button", { type: "button", class: `button ${kind}`, onClick: () => this.answerAll(group, ids, decision) }, `${label} ${cards.length}`);
    if (head.matches(":hover")) this.rest();
    head.replaceChildren(
      h("h2", {}, `${plural(cards.length, "question")} of one run`, danger ? h("span", { class: "state bad" }, `${danger} destructive`) : null),
      h("p", { class: "dim" }, [...tools].map(([name, number]) => `${name} × ${number}`).join(", ")),
      h("div", { class: "row" }, all("Allow all", "good", "allow"), all("Deny all", "", "deny")),
    );
  }

  async answerAll(group, ids, decision) {
    for (const button of $$(".asked-head button", group)) button.disabled = true;
    const answers = await Promise.allSettled(ids.map((id) => post(path("approvals", id), { decision })));
    const wrong = answers.filter(({ status, reason }) => status === "rejected" && reason.status !== 404);
    if (wrong.length) toast(wrong[0].reason.message, "bad");
    if (group.isConnected && $(".question", group)) this.head(group);
  }

  /** Letters answer the question that is selected, and none otherwise; j and k select. */
  keys() {
    const selected = () => this.cards.findIndex((card) => card.contains(document.activeElement));
    this.root.addEventListener("focusin", () => (this.place = selected()));
    const move = (step) => {
      const { cards } = this;
      const now = selected();
      const to = now < 0 ? Math.max(0, this.place) - (step < 0 ? 1 : 0) : now + step;
      cards[Math.max(0, Math.min(cards.length - 1, to))]?.focus();
      return cards.length > 0;
    };
    key("j", "Select the next question", () => move(+1));
    key("k", "Select the previous question", () => move(-1));
    for (const [letter, text] of [["a", "Allow the selected question"], ["d", "Deny it"], ["e", "Edit its arguments"], ["w", "Always allow it in its session"]]) {
      key(letter, text, (event) => {
        const card = this.cards[selected()];
        if (card && !event.repeat) $(`[data-key="${letter}"]`, card)?.click();
        return Boolean(card);
      });
    }
  }
}
