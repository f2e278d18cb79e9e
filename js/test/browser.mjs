/** The driver in Chromium: a page with the package, on a server that makes it cross-origin isolated. */

import { createInterface } from "node:readline";
import { ISOLATED, openPage } from "./chromium.mjs";

const { page, close } = await openPage("/test/driver.html", { headers: ISOLATED, find: (path) => `js${path}` });
await page.waitForFunction(() => globalThis.driverReady === true);
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${await page.evaluate((text) => globalThis.driverAnswer(text), line)}\n`);
}
await close();
