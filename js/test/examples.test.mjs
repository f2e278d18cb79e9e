/** The examples: the agent loop in Node, and the page of static files in a browser. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { travelOfTheFirstQuarter } from "../../examples/browser/expenses.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html" };

test("the agent loop corrects its script and tells the sum", () => {
  const { OPENAI_API_KEY: _, ...env } = process.env;
  const output = execFileSync(process.execPath, [join(root, "examples/node/agent.mjs")], { encoding: "utf8", env });
  assert.match(output, /lua_repl → runtime error on line \d+: attempt to call a nil value \(field 'get_expense'\)/);
  assert.ok(output.includes(`The team spent ${travelOfTheFirstQuarter()} on travel.`), output);
});

test("the page runs the expenses story from plain static files", { skip: !existsSync(CHROMIUM) && "Chromium is not installed" }, async () => {
  const { chromium } = await import("playwright-core");
  // A server that sends no special header: the service worker must do.
  const server = createServer(async (request, response) => {
    const path = normalize(new URL(request.url, "http://host").pathname);
    const file = path.startsWith("/moonbox/") ? join(root, "js/dist", path.slice(9)) : join(root, "examples/browser", path === "/" ? "index.html" : path);
    try {
      const body = await readFile(file);
      response.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "text/plain" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  try {
    const page = await browser.newPage();
    await page.goto(`http://localhost:${server.address().port}/`);
    await page.waitForFunction(() => /calls/.test(document.getElementById("status")?.textContent ?? ""), null, { timeout: 60_000 });
    assert.equal(await page.textContent("#answer"), String(travelOfTheFirstQuarter()));
    await page.fill("#script", "answer = 6 * 7 return answer");
    await page.click("#run");
    await page.waitForFunction(() => document.getElementById("answer").textContent === "42");
  } finally {
    await browser.close();
    server.close();
  }
});
