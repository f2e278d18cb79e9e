/** The driver in a page. */

import * as moonbox from "../dist/browser.js";
import { createDriver, written } from "./driver.mjs";

const answer = createDriver(moonbox);
globalThis.driverAnswer = async (line) => written(await answer(JSON.parse(line)));
globalThis.driverReady = true;
