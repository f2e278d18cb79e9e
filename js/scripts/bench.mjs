/** `make js-bench`: how long a program takes to its first result, beside quickjs-emscripten, and what fifty Repls take at once. */

import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const ours = pathToFileURL(join(root, "dist/index.js")).href;
const theirs = pathToFileURL(createRequire(join(root, "test/apps/package.json")).resolve("quickjs-emscripten")).href;
const ROUNDS = 15;
const REPLS = 50;
const LONGEST_START = 200; // ms, on a machine on which quickjs-emscripten takes 94 to 149
const QUICKJS_THERE = (94 + 149) / 2;
const MOST_MEMORY = 400; // MB

const PROGRAMS = {
  "node alone": "",
  moonbox: `import { run } from "${ours}"; if ((await run("return 6 * 7")).value !== 42) throw new Error("wrong"); process.exit(0);`,
  "quickjs-emscripten": `import { getQuickJS } from "${theirs}"; if ((await getQuickJS()).evalCode("6 * 7") !== 42) throw new Error("wrong"); process.exit(0);`,
};
const FIFTY = `
import { Sandbox, tool } from "${ours}";
let waiting = [];
const wait = tool({ name: "wait", parameters: { type: "object", properties: {} }, call: () => new Promise((go) => { waiting.push(go); if (waiting.length === ${REPLS}) waiting.forEach((each) => each(1)); }) });
const box = new Sandbox({ tools: [wait], limits: { timeout: 300 } });
const repls = await Promise.all(Array.from({ length: ${REPLS} }, () => box.repl()));
const runs = await Promise.all(repls.map((repl) => repl.run("local rows = {} for i = 1, 1000 do rows[i] = {id = i} end tools.wait{} return #rows")));
if (runs.some((run) => run.value !== 1000)) throw new Error("wrong: " + runs.find((run) => run.value !== 1000).forModel());
console.log(Math.round(process.resourceUsage().maxRSS / 1024));
process.exit(0);`;

const EMPTY = `
import { Worker } from "node:worker_threads";
let started = 0;
for (let n = 0; n < ${REPLS}; n += 1) {
  const worker = new Worker("const { parentPort } = require('node:worker_threads'); parentPort.on('message', () => 0); parentPort.postMessage(1)", { eval: true, env: {}, execArgv: [], resourceLimits: { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 512 } });
  worker.on("message", () => {
    started += 1;
    if (started < ${REPLS}) return;
    console.log(Math.round(process.resourceUsage().maxRSS / 1024));
    process.exit(0);
  });
}`;

const node = (program) => execFileSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
const times = Object.fromEntries(Object.keys(PROGRAMS).map((name) => [name, []]));
for (let round = 0; round < ROUNDS; round += 1) {
  for (const [name, program] of Object.entries(PROGRAMS)) {
    const began = performance.now();
    node(program);
    times[name].push(performance.now() - began);
  }
}
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
console.log(`a program from its start to its first result and its end, ${ROUNDS} alternating rounds: median (least), ms`);
for (const [name, values] of Object.entries(times)) console.log(`  ${name.padEnd(20)} ${median(values).toFixed(0).padStart(5)} (${Math.min(...values).toFixed(0)})`);
const ratio = median(times.moonbox) / median(times["quickjs-emscripten"]);
const allowed = LONGEST_START / QUICKJS_THERE;
console.log(`  moonbox takes ${ratio.toFixed(2)} times as long as quickjs-emscripten; the goal is at most ${allowed.toFixed(2)}`);
const memory = Number(node(FIFTY));
console.log(`${REPLS} Repls that run at once: ${memory} MB at most; the goal is ${MOST_MEMORY} MB; ${REPLS} empty Workers of this Node take ${Number(node(EMPTY))} MB`);
if (ratio > allowed || memory > MOST_MEMORY) process.exitCode = 1;
