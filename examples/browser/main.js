/** The page: one Sandbox, one Repl; run a script, stop it, and see what it did. */

import { isolate, Sandbox, tool } from "./moonbox/browser.js";
import { expenses, SAMPLES } from "./expenses.js";

const MOST_LISTED = 40;
const part = (id) => document.getElementById(id);

part("script").value = SAMPLES.travel;

await isolate(); // static files send no headers: a service worker adds those that shared memory needs

const box = new Sandbox({ tools: [tool(expenses)], limits: { timeout: 5 } });
const repl = await box.repl();
let stopping = new AbortController();

async function run() {
  stopping = new AbortController();
  part("run").disabled = true;
  part("stop").disabled = false;
  part("status").textContent = "running…";
  const result = await repl.run(part("script").value, { signal: stopping.signal });
  part("run").disabled = false;
  part("stop").disabled = true;
  show(result);
}

function show(result) {
  const text = result.forModel();
  const bytes = result.calls.reduce((sum, call) => sum + JSON.stringify(call.result ?? null).length, 0);
  const time = `${Math.round(result.usage.wall * 1000).toLocaleString("en")} ms`;
  part("answer").textContent = text;
  part("answer").classList.toggle("wrong", !result.ok);
  part("calls").textContent = result.calls.length;
  part("returned").textContent = size(bytes);
  part("reads").textContent = size(text.length);
  part("time").textContent = time;
  part("status").textContent = `${result.calls.length} calls, ${time}`;
  part("timeline").replaceChildren(...timeline(result.calls));
}

function timeline(calls) {
  if (calls.length === 0) return [document.createTextNode("no calls")];
  const began = Math.min(...calls.map((call) => call.started));
  const ended = Math.max(...calls.map((call) => call.started + call.queued + call.duration));
  const share = (seconds) => `${(100 * seconds) / Math.max(ended - began, 0.001)}%`;
  return calls.slice(0, MOST_LISTED).map((call) => {
    const [row, name, track, bar] = ["li", "code", "span", "i"].map((tag) => document.createElement(tag));
    name.textContent = Object.entries(call.arguments).map(([key, value]) => `${key} ${value}`).join(", ");
    row.title = `${call.tool}: ${Math.round(call.duration * 1000)} ms`;
    bar.style.left = share(call.started - began);
    bar.style.width = share(call.duration);
    track.append(bar);
    row.append(name, track);
    return row;
  });
}

function size(bytes) {
  return bytes < 1000 ? `${bytes} B` : `${(bytes / 1000).toLocaleString("en", { maximumFractionDigits: 1 })} kB`;
}

part("run").addEventListener("click", run);
part("stop").addEventListener("click", () => stopping.abort());
part("script").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !part("run").disabled) run();
});
for (const button of document.querySelectorAll("[data-sample]")) {
  button.addEventListener("click", () => {
    part("script").value = SAMPLES[button.dataset.sample];
  });
}
await run();
