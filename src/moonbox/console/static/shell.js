// What every page has: navigation by keys, the theme, the help, messages about the server, and what waits for approval.

import { get } from "./api.js";
import { closeAside } from "./aside.js";
import { $, $$, h, plural, toast, when } from "./dom.js";
import { key, listen, showHelp } from "./keys.js";
import { Live } from "./live.js";
import { restore } from "./split.js";

const TITLE = document.title;
let open = Number($("#approvals-badge").dataset.count);

/** Set the page up; `handlers` are for live events. Returns the stream. */
export function shell(handlers = {}) {
  for (const link of $$("nav [data-go]")) key(`g ${link.dataset.go}`, `Go to ${$("span", link).textContent}`, () => link.click());
  key("?", "Show these shortcuts", showHelp);
  key("/", "Search", () => {
    $("[data-search]")?.focus();
    return Boolean($("[data-search]"));
  });
  key("Escape", "Close, or leave a field", () => {
    if ($("dialog[open]") || closeAside() || restore()) return false;
    document.activeElement?.blur?.();
    return false;
  });
  listen();
  for (const button of $$("[data-help]")) button.addEventListener("click", showHelp);
  $("#help-close").addEventListener("click", () => $("#help").close());
  for (const button of $$("[data-theme-button]")) button.addEventListener("click", nextTheme);
  for (const time of $$("time")) time.textContent = when(Date.parse(time.dateTime) / 1000);
  offerNotifications();
  setBadge(open);
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
  const live = new Live({
    ...handlers,
    approval: (question) => {
      changes++;
      if (!counted.has(question.id)) {
        setBadge(open + 1);
        if (live.leads) notify(question);
      }
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
    state: (name) => {
      showState(name, () => live.reach());
      handlers.connected?.(name === "live");
    },
  });
  return live;
}

// What waits for approval

function setBadge(number) {
  open = number;
  for (const mark of $$("[data-waiting]")) {
    mark.hidden = open === 0;
    mark.textContent = String(open);
    mark.setAttribute("aria-label", `${plural(open, "approval")} waiting`);
  }
  document.title = open ? `(${open}) ${TITLE}` : TITLE;
}

function offerNotifications() {
  const button = $("#notify");
  if (!button || !("Notification" in window) || Notification.permission !== "default") return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    button.hidden = (await Notification.requestPermission()) !== "default";
  });
}

/** One notification for all that waits, where the person looks at something else. */
function notify(question) {
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  if (!document.hidden && document.hasFocus()) return;
  const text = `${plural(open, "call")} ${open === 1 ? "waits" : "wait"} for approval`;
  const shown = new Notification(text, { body: question.tool.slice(0, 200), tag: "moonbox-approvals", renotify: true });
  shown.onclick = () => {
    window.focus();
    location.assign("/console/approvals");
  };
}

// The server

/** A message across the page: [label, job] are its buttons. */
export function banner(kind, text, ...buttons) {
  const place = $("#banner");
  if (text && place.dataset.kind === kind && $("span", place)?.textContent === text) return;
  place.hidden = !text;
  place.dataset.kind = kind;
  place.replaceChildren(h("span", {}, text), ...buttons.map(([label, job]) => h("button", { type: "button", class: "button", onClick: job }, label)));
}

function showState(name, reconnect) {
  if (name === "offline") banner(name, "The server does not answer. Is moonbox still running? This page keeps trying.", ["Try now", reconnect]);
  else if (name === "signed-out") banner(name, "Your sign-in has ended.", ["Sign in again", () => location.reload()]);
  else if (["offline", "signed-out"].includes($("#banner").dataset.kind)) banner("", "");
}

function nextTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("moonbox-theme", root.dataset.theme);
}
