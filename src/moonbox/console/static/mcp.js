// The page of the MCP servers: their state and last messages, a new start, a login.

import { get, path, post } from "./api.js";
import { $, h, plural, seconds, toast } from "./dom.js";
import { stringify } from "./json.js";
import { shell } from "./shell.js";

const place = $("#servers");
const KINDS = { ready: "good", failed: "bad", retrying: "warn", starting: "warn" };
const EVERY = 2000;
const addresses = new Map(); // of logins that have begun
let drawn = "";

function card(server) {
  const { name, state, where, reason, tools, cached, problems, protocol, said, login, restarts } = server;
  const facts = [
    ["runs", where],
    ["server", [server.server, protocol && `protocol ${protocol}`].filter(Boolean).join(", ")],
    ["offers", h("a", { href: `/console/tools?q=${encodeURIComponent(name)}` }, plural(tools, "tool") + (cached ? ", as of an earlier start" : ""))],
    ["start", server.seconds === null ? "" : seconds(server.seconds) + (restarts ? `, ${plural(restarts, "restart")} since` : "")],
    ["next attempt", server.retry_in === null ? "" : `in ${seconds(server.retry_in)}`],
    ["login", login ? (login.expired ? "expired" : login.renews ? "renewed by itself" : "valid") : ""],
  ].filter(([, text]) => text !== "");
  const address = addresses.get(name);
  return h(
    "section",
    { class: "panel server", "aria-label": name, "data-server": name },
    h("h2", {}, name, " ", h("span", { class: `state ${KINDS[state] ?? ""}` }, state)),
    reason ? h("p", { class: state === "ready" ? "dim" : "bad-text" }, reason) : null,
    h("dl", { class: "facts" }, facts.flatMap(([label, text]) => [h("dt", {}, label), h("dd", {}, text)])),
    problems.length ? h("details", { open: true }, h("summary", {}, plural(problems.length, "problem")), h("ul", {}, problems.slice(0, 50).map((text) => h("li", {}, text)))) : null,
    said ? h("details", { open: state !== "ready" }, h("summary", {}, "Last messages"), h("pre", { tabindex: "0", role: "region", "aria-label": `Last messages of ${name}` }, said)) : null,
    state === "ready" || state === "off" || state === "closed"
      ? null
      : h(
          "div",
          { class: "row" },
          h("button", { type: "button", class: "button", onClick: () => act(name, "retry") }, "Retry now"),
          /^https?:/.test(where) ? h("button", { type: "button", class: "button", onClick: () => act(name, "login") }, "Log in") : null,
          address ? h("p", {}, h("a", { href: address, target: "_blank", rel: "noreferrer noopener" }, "Open the login page"), h("span", { class: "dim" }, " on the machine on which moonbox runs")) : null,
        ),
  );
}

async function act(name, what) {
  try {
    const { address } = await post(path("servers", name, what));
    if (/^https?:/.test(address ?? "")) addresses.set(name, address);
    else if (what === "login") toast(`${name} does not ask for a login.`);
  } catch (problem) {
    toast(problem.message, "bad");
  }
  show();
}

async function show() {
  const answer = await get("/servers").catch(() => null);
  if (!answer) return;
  for (const { name, state } of answer.servers) if (state === "ready") addresses.delete(name);
  const text = stringify([answer.servers.map((server) => ({ ...server, retry_in: server.retry_in && Math.ceil(server.retry_in) })), [...addresses]]);
  if (text === drawn) return;
  drawn = text;
  const focused = document.activeElement?.closest?.(".server")?.dataset.server;
  const label = document.activeElement?.textContent;
  place.replaceChildren(...answer.servers.map(card));
  if (focused) [...place.querySelectorAll(`[data-server="${CSS.escape(focused)}"] button`)].find((button) => button.textContent === label)?.focus();
  const ready = answer.servers.filter(({ state }) => state === "ready").length;
  $("#summary").textContent = `${ready} of ${plural(answer.servers.length, "server")} ready`;
}

shell();
if (place) {
  show();
  setInterval(() => !document.hidden && show(), EVERY);
}
