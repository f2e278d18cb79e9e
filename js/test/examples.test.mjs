/** The examples: the agent loop in Node, and the page of static files in a browser. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { travelOfTheFirstQuarter } from "../../examples/browser/expenses.js";
import { missing, openPage, root } from "./chromium.mjs";

test("the agent loop runs where it is copied to, corrects its script and tells the sum", () => {
  const { OPENAI_API_KEY: _, ...env } = process.env;
  const folder = mkdtempSync(join(tmpdir(), "moonbox-"));
  let output;
  try {
    copyFileSync(join(root, "examples/node/agent.mjs"), join(folder, "agent.mjs"));
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(join(root, "js"), join(folder, "node_modules/moonbox"));
    output = execFileSync(process.execPath, ["agent.mjs"], { cwd: folder, encoding: "utf8", env });
  } finally {
    rmSync(folder, { recursive: true });
  }
  assert.match(output, /lua_repl → check failed on line \d+: unknown tool 'get_expense'\nhint: did you mean tools\.get_expenses\?/);
  assert.ok(output.includes("They spent 460500 cents."), output);
});

test("the page runs the expenses story from plain static files", { skip: missing }, async () => {
  // A server that sends no special header: the service worker must do.
  const find = (path) => (path.startsWith("/moonbox/") ? `js/dist/${path.slice(9)}` : `examples/browser${path === "/" ? "/index.html" : path}`);
  const { page, close } = await openPage("/", { find });
  try {
    await page.waitForFunction(() => /calls/.test(document.getElementById("status")?.textContent ?? ""), null, { timeout: 60_000 });
    assert.equal(await page.textContent("#answer"), String(travelOfTheFirstQuarter()));
    await page.fill("#script", "answer = 6 * 7 return answer");
    await page.click("#run");
    await page.waitForFunction(() => document.getElementById("answer").textContent === "42");
    await page.click("[data-sample=loop]");
    await page.click("#run");
    await page.click("#stop");
    await page.waitForFunction(() => /cancelled on line 4.*state kept/s.test(document.getElementById("answer").textContent));
    await page.setViewportSize({ width: 360, height: 700 });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is wider than a phone");
  } finally {
    await close();
  }
});
