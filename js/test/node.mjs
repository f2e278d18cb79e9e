/** The driver in Node: requests as lines of JSON on standard input, answers on standard output. */

import { createInterface } from "node:readline";
import * as moonbox from "../dist/index.js";
import { createDriver, written } from "./driver.mjs";

const answer = createDriver(moonbox);
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${written(await answer(JSON.parse(line)))}\n`);
}
