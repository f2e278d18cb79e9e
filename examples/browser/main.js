/** The page: one Sandbox, one Repl, one button. */

import { isolate, Sandbox, tool } from "./moonbox/index.js";
import { expenses, SCRIPT } from "./expenses.js";

const [script, button, status, answer] = ["script", "run", "status", "answer"].map((id) => document.getElementById(id));
script.value = SCRIPT;

await isolate(); // static files send no headers: a service worker adds those that shared memory needs

const box = new Sandbox({ tools: [tool(expenses)], limits: { timeout: 10 } });
const repl = await box.repl();

async function run() {
  button.disabled = true;
  status.textContent = "running…";
  const result = await repl.run(script.value);
  answer.textContent = result.for_model();
  status.textContent = `${result.calls.length} calls, ${Math.round(result.usage.wall * 1000)} ms`;
  button.disabled = false;
}

button.addEventListener("click", run);
await run();
