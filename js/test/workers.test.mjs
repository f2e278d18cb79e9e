/** Many Repls share few workers: a Repl that rests gives its worker up and keeps its state. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { Sandbox, tool } from "../dist/index.js";

const COUNT = 20;

test("more Repls than workers keep their state, one after another and at the same time", async () => {
  const echo = tool({ name: "echo", parameters: { type: "object", properties: { n: { type: "integer" } } }, call: async ({ n }) => n });
  const box = new Sandbox({ tools: [echo], luaFeatures: ["coroutines"] });
  try {
    const repls = [];
    for (let n = 0; n < COUNT; n += 1) {
      const repl = await box.repl();
      await repl.run(`local n = ${n} function more() n = n + 100 return n end steps = coroutine.wrap(function() for i = 1, 9 do coroutine.yield(i) end end) steps()`);
      repls.push(repl);
    }
    for (const turn of [1, 2]) {
      const runs = await Promise.all(repls.map((repl) => repl.run("return tools.echo{n = more()}, steps()")));
      assert.deepEqual(runs.map((run) => run.values ?? run.error), repls.map((_, n) => [n + 100 * turn, turn + 1]));
      assert.ok(runs.every((run) => !run.stateLost));
    }
    assert.deepEqual(await repls[0].globals(), { more: "function", steps: "function" });
  } finally {
    await box.close();
  }
});

test("a worker that served one Repl shows nothing of it to the next", async () => {
  const box = new Sandbox();
  try {
    for (const source of ["left = ('secret'):rep(1e5)", "left = {} for i = 1, 2e5 do left[i] = 'secret' .. i end", "while true do end"]) {
      await box.run(source, { timeout: 1 });
      const run = await box.run("left = left or 'nothing' return left, #_G == 0");
      assert.equal(run.value, "nothing");
    }
  } finally {
    await box.close();
  }
});

test("fifty Repls take less than 400 MB", () => {
  const source = `
    const { Sandbox } = await import(${JSON.stringify(new URL("../dist/index.js", import.meta.url).href)});
    const box = new Sandbox();
    const repls = [];
    for (let n = 0; n < 50; n += 1) {
      repls.push(await box.repl());
      await repls[n].run("x = " + n);
    }
    let sum = 0;
    for (const repl of repls) sum += (await repl.run("return x")).value;
    console.log(sum, process.memoryUsage().rss);
    await box.close();`;
  const [sum, bytes] = execFileSync(process.execPath, ["--input-type=module", "--eval", source], { encoding: "utf8" }).split(" ").map(Number);
  assert.equal(sum, 1225);
  assert.ok(bytes < 400e6, `${Math.round(bytes / 1e6)} MB`);
});
