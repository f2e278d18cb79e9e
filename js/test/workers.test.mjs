/** Many Repls share few workers: a Repl that rests gives its worker up and keeps its state. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { setMaxListeners } from "node:events";
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

/** A Sandbox whose tool "wait" answers with its argument when `go` is called; `all` resolves when so many calls wait. */
function waitingRoom(options = {}) {
  const calls = [];
  let reached;
  const wait = tool({
    name: "wait",
    parameters: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
    call: ({ n }) => new Promise((answer) => {
      calls.push(() => answer(n));
      reached?.();
    }),
  });
  const box = new Sandbox({ tools: [wait], luaFeatures: ["coroutines"], limits: { timeout: 120 }, ...options });
  const all = (count) => new Promise((resolve) => {
    reached = () => calls.length >= count && resolve();
    reached();
  });
  return { box, all, go: () => calls.splice(0).forEach((call) => call()) };
}

for (const [what, script, values] of [
  ["of one call", "x = x + 1 return tools.wait{n = x}", (n) => [n + 1]],
  ["within pcall", "local ok, v = pcall(function() return tools.wait{n = x} end) return ok, v, x", (n) => [true, n, n]],
  ["in parallel", "return parallel.map({x, x + 1, x + 2}, function(n) return tools.wait{n = n} end)", (n) => [[n, n + 1, n + 2]]],
  ["in a comparison, which stay where they are", "local t = {x, x + 1} table.sort(t, function(a, b) return tools.wait{n = a} > b end) return t[1]", (n) => [n + 1]],
  ["in a coroutine", "local co = coroutine.wrap(function() coroutine.yield(tools.wait{n = x}) end) return co(), (coroutine.isyieldable())", (n) => [n, false]],
]) {
  test(`more scripts than workers wait for calls ${what}`, async () => {
    const { box, all, go } = waitingRoom();
    try {
      const repls = await Promise.all(Array.from({ length: COUNT }, () => box.repl()));
      await Promise.all(repls.map((repl, n) => repl.run(`x = ${n} print(x)`)));
      let over = false;
      const runs = Promise.all(repls.map((repl) => repl.run(script))).finally(() => (over = true));
      await all(COUNT);
      while (!over) {
        go();
        await new Promise((later) => setTimeout(later, 20));
      }
      assert.deepEqual((await runs).map((run) => run.error?.message ?? run.values), repls.map((_, n) => values(n)));
      assert.ok((await runs).every((run) => !run.stateLost && run.usage.cpu < run.usage.wall));
    } finally {
      await box.close();
    }
  });
}

test("scripts that wait without a worker are stopped, and keep their state", async () => {
  const { box, all } = waitingRoom();
  try {
    const repls = await Promise.all(Array.from({ length: COUNT }, () => box.repl()));
    const control = new AbortController();
    setMaxListeners(COUNT, control.signal);
    const runs = repls.map((repl, n) => repl.run(`x = ${n} print(x) tools.wait{n = 1}`, n === 0 ? { signal: control.signal, timeout: 1 } : { signal: control.signal }));
    await all(COUNT - 1); // the first may be over
    assert.equal((await runs[0]).error.limit, "time");
    control.abort();
    const ended = await Promise.all(runs);
    assert.deepEqual(ended.slice(1).map((run) => [run.error.kind, run.error.line, run.output, run.stateLost]), ended.slice(1).map((_, n) => ["cancelled", 1, `${n + 1}\n`, false]));
    assert.deepEqual(await Promise.all(repls.map(async (repl) => (await repl.run("return x")).value)), repls.map((_, n) => n));
  } finally {
    await box.close();
  }
});

test("a run that changes workers counts as one that stays", async () => {
  const { box, all, go } = waitingRoom();
  try {
    const alone = await box.repl();
    const source = "local n = 0 for i = 1, 300 do n = n + i end n = n + tools.wait{n = 1} for i = 1, 300 do n = n + i end return n";
    const limits = { maxOperations: 5000 };
    const first = alone.run(source, { limits });
    await all(1);
    go();
    const { usage, value } = await first;
    const repls = await Promise.all(Array.from({ length: COUNT }, () => box.repl()));
    const runs = repls.map((repl) => repl.run(source, { limits }));
    await all(COUNT);
    go();
    for (const run of await Promise.all(runs)) assert.deepEqual([run.value, run.usage.operations], [value, usage.operations]);
    const endless = repls.map((repl) => repl.run("tools.wait{n = 1} while true do end", { limits }));
    await all(COUNT);
    go();
    for (const run of await Promise.all(endless)) assert.deepEqual([run.error.limit, run.stateLost], ["operations", false]);
  } finally {
    await box.close();
  }
});

test("a Repl gets a worker though all others compute", async () => {
  const box = new Sandbox({ limits: { timeout: 120 } });
  const control = new AbortController();
  try {
    const busy = Array.from({ length: 9 }, () => box.run("while true do end", { signal: control.signal }));
    assert.equal((await box.run("return 1")).value, 1);
    control.abort();
    assert.ok((await Promise.all(busy)).every((run) => run.error.kind === "cancelled"));
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
