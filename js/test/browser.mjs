/** The driver in Chromium: a page with the package, on a server that makes it cross-origin isolated. */

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("..", import.meta.url));
const TYPES = { ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm", ".html": "text/html" };
// Strict: the package must do without eval and new Function.
const POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'";

const server = createServer(async (request, response) => {
  const path = normalize(new URL(request.url, "http://host").pathname);
  const headers = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Content-Security-Policy": POLICY,
  };
  try {
    const body = await readFile(join(root, path));
    response.writeHead(200, { ...headers, "Content-Type": TYPES[extname(path)] ?? "text/plain" }).end(body);
  } catch {
    response.writeHead(404, headers).end("not found");
  }
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});
const page = await browser.newPage();
page.on("pageerror", (problem) => process.stderr.write(`page: ${problem.message}\n`));
await page.goto(`http://127.0.0.1:${server.address().port}/test/driver.html`);
await page.waitForFunction(() => globalThis.driverReady === true);

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${await page.evaluate((text) => globalThis.driverAnswer(text), line)}\n`);
}
await browser.close();
server.close();
