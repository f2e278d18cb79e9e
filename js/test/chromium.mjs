/** A page in Chromium, and the server that it is loaded from. */

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, normalize, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const CHROMIUM = process.env.CHROMIUM || "/usr/bin/chromium";
const TYPES = { ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm", ".html": "text/html", ".css": "text/css" };

/** Why there is no Chromium here; false when there is. */
export const missing = !existsSync(CHROMIUM) && "Chromium is not installed";
export const root = fileURLToPath(new URL("../..", import.meta.url));

/** Headers that isolate a page, with a strict policy: the package must do without eval and new Function. */
export const ISOLATED = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Content-Security-Policy": "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src blob:",
};

/** Opens the page at `path`; `find` maps the path of a request to a file of the repository. */
export async function openPage(path, { headers = {}, find, context = {} }) {
  const server = createServer(async (request, response) => {
    const asked = normalize(new URL(request.url, "http://host").pathname);
    try {
      const body = await readFile(resolve(root, find(asked)));
      response.writeHead(200, { ...headers, "Content-Type": TYPES[extname(find(asked))] ?? "text/plain" }).end(body);
    } catch {
      response.writeHead(404, headers).end("not found");
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  const page = await browser.newPage(context);
  page.on("pageerror", (problem) => process.stderr.write(`page: ${problem.message}\n`));
  await page.goto(new URL(path, `http://localhost:${server.address().port}`).href);
  const close = async () => {
    await browser.close();
    server.close();
  };
  return { page, close };
}
