// What every page has: navigation by keys, the theme, the help, and the number of open approvals.

import { get } from "./api.js";
import { $, $$, plural, toast, when } from "./dom.js";
import { key, listen, showHelp } from "./keys.js";
import { Live } from "./live.js";

const PLACES = [
  ["p", "playground", "Playground"],
  ["r", "runs", "Runs"],
  ["a", "approvals", "Approvals"],
  ["t", "tools", "Tools"],
  ["k", "knowledge", "Knowledge"],
  ["d", "doctor", "Doctor"],
];

/** Set the page up; `handlers` are for live events. Returns the stream. */
export function shell(handlers = {}) {
  for (const [letter, page, name] of PLACES) key(`g ${letter}`, `Go to ${name}`, () => location.assign(`/console/${page}`));
  key("?", "Show these shortcuts", showHelp);
  key("/", "Search", () => $("[data-search]")?.focus() ?? false);
  key("Escape", "Close, or leave a field", () => {
    if ($("dialog[open]")) return false;
    document.activeElement?.blur?.();
    return false;
  });
  listen();
  $("#help-open").addEventListener("click", showHelp);
  $("#help-close").addEventListener("click", () => $("#help").close());
  $("#theme").addEventListener("click", nextTheme);
  for (const cell of $$("time[data-at]")) cell.textContent = when(cell.dataset.at);
  let changes = 0;
  let counted = new Set(); // a question may be in the inbox before its event comes
  const catchUp = async () => {
    const before = changes;
    const inbox = await get("/approvals").catch(() => null);
    if (!inbox) return;
    if (before !== changes) return catchUp(); // something came while the answer was on its way, and may not be in it
    counted = new Set(inbox.pending.map(({ id }) => id));
    setBadge(counted.size);
    handlers.caughtUp?.(inbox);
  };
  return new Live({
    ...handlers,
    approval: (question) => {
      changes++;
      if (!counted.has(question.id)) setBadge(open + 1);
      counted.add(question.id);
      if (!handlers.approval?.(question)) toast(`${question.tool} waits for approval`);
    },
    answered: (answer) => {
      changes++;
      handlers.answered?.(answer);
      catchUp();
    },
    opened: catchUp,
    resync: catchUp,
  });
}

let open = Number($("#approvals-badge").dataset.count);

function setBadge(number) {
  open = number;
  const mark = $("#approvals-badge");
  mark.hidden = open === 0;
  mark.textContent = String(open);
  mark.setAttribute("aria-label", `${plural(open, "approval")} waiting`);
}

function nextTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("moonbox-theme", root.dataset.theme);
}
