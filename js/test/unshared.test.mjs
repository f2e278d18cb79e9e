/** Without shared memory, as in a page that is not cross-origin isolated. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { missing, openPage } from "./chromium.mjs";

const { SharedArrayBuffer } = globalThis;
let moonbox, box, shared; // `shared` is a Repl with shared memory

before(async () => {
  moonbox = await import("../dist/index.js");
  const double = moonbox.tool({ name: "double", parameters: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] }, call: async ({ n }) => 2 * n });
  const fail = moonbox.tool({ name: "fail", parameters: { type: "object", properties: {} }, call: () => { throw new moonbox.ToolError("no", { code: "not_found" }); } });
  const text = moonbox.tool({ name: "text", parameters: { type: "object", properties: {} }, call: () => "é".repeat(3_000_000) });
  const never = moonbox.tool({ name: "never", parameters: { type: "object", properties: {} }, call: () => new Promise(() => undefined) });
  box = new moonbox.Sandbox({ tools: [double, fail, text, never], luaFeatures: ["coroutines", "metatables"] });
  shared = await box.repl();
  delete globalThis.SharedArrayBuffer;
});

after(async () => {
  await box.close();
  globalThis.SharedArrayBuffer = SharedArrayBuffer;
});

for (const [what, source, values] of [
  ["one after another", "local n = 1 for i = 1, 20 do n = tools.double{n = n} end return n", [2 ** 20]],
  ["that fail", "local ok, problem = pcall(tools.fail, {}) return ok, problem.code, tools.double{n = 2}", [false, "not_found", 4]],
  ["in parallel", "return parallel.map({1, 2, 3}, function(n) return tools.double{n = tools.double{n = n}} end)", [[4, 8, 12]]],
  ["in a comparison", "local t = {3, 1, 2} table.sort(t, function(a, b) return tools.double{n = a} < tools.double{n = b} end) return t", [[1, 2, 3]]],
  ["in a replacement", "return (('1 2'):gsub('%d', function(d) return tools.double{n = tonumber(d)} end))", ["2 4"]],
  ["in a coroutine", "local next = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(tools.double{n = i}) end end) return next(), next(), coroutine.isyieldable()", [2, 4, false]],
  ["in a metamethod", "return tostring(setmetatable({}, {__tostring = function() return 'n' .. tools.double{n = 4} end}))", ["n8"]],
  ["behind many others", "local function deep(n) if n == 0 then return tools.double{n = 1} end local ok, v = pcall(deep, n - 1) return v end return deep(60)", [2]],
  ["with long results", "return #tools.text{}", [6_000_000]],
]) {
  test(`a script makes calls ${what}`, async () => {
    const run = await box.run(source);
    assert.deepEqual(run.error ?? run.values, values);
  });
}

test("operations are counted as with shared memory", async () => {
  const source = "local n = 0 for i = 1, 50 do n = n + tools.double{n = i} end return n";
  const limits = { maxOperations: 5000 };
  const here = await box.run(source, { limits });
  assert.equal(here.value, 2550);
  const there = await shared.run(source, { limits });
  assert.equal(here.usage.operations, there.usage.operations);
  assert.equal((await box.run("while true do end", { limits })).error.limit, "operations");
});

test("a script that waits is stopped, and its state is kept", async () => {
  const repl = await box.repl();
  await repl.run("x = 1");
  const late = await repl.run("x = 2 tools.never{}", { timeout: 0.3 });
  assert.deepEqual([late.error.limit, late.error.line, late.stateLost], ["time", 1, false]);
  const control = new AbortController();
  setTimeout(() => control.abort(), 200);
  assert.equal((await repl.run("tools.never{}", { signal: control.signal })).error.kind, "cancelled");
  assert.equal((await repl.run("for i = 1, 9 do tools.double{n = i} end", { limits: { maxToolCalls: 3 } })).error.limit, "calls");
  assert.equal((await repl.run("return x")).value, 2);
});

test("a script that computes is ended with its Worker, and what it printed is kept", async () => {
  const repl = await box.repl();
  const run = await repl.run("x = 1 print('a') print('b') while true do end", { timeout: 0.3 });
  assert.deepEqual([run.error.limit, run.output, run.stateLost], ["time", "a\nb\n", true]);
  assert.equal((await repl.run("return x == nil")).value, true);
});

test("states move between workers, and a snapshot from shared memory is restored", async () => {
  const repls = await Promise.all(Array.from({ length: 12 }, () => box.repl()));
  await Promise.all(repls.map((repl, n) => repl.run(`x = ${n} tools.double{n = 1}`)));
  for (const [n, repl] of repls.entries()) assert.equal((await repl.run("return x")).value, n);
  await shared.run("local n = 40 function more() n = n + tools.double{n = 1} return n end");
  const bytes = await shared.snapshot();
  const again = await box.restore(bytes);
  assert.deepEqual((await again.run("return more(), more()")).values, [42, 44]);
});

test("Rhai makes calls", async () => {
  const rhai = new moonbox.Sandbox({ tools: [...box.toolbox], language: "rhai" });
  assert.deepEqual((await rhai.run("[1, 2].map(|n| double(#{n: n}))")).value, [2, 4]);
  await rhai.close();
});

test("a page that is not isolated runs scripts", { skip: missing }, async () => {
  const { page, close } = await openPage("/", { find: (path) => (path === "/" ? "examples/browser/index.html" : `js${path}`) });
  try {
    const told = await page.evaluate(async () => {
      const { Sandbox, tool } = await import("/dist/browser.js");
      const box = new Sandbox({ tools: [tool({ name: "two", parameters: { type: "object", properties: {} }, call: async () => 2 })] });
      const ran = await box.run("return tools.two{} * 21");
      const late = await box.run("while true do end", { timeout: 0.3 });
      return [globalThis.crossOriginIsolated, ran.value, late.error.limit, late.stateLost];
    });
    assert.deepEqual(told, [false, 42, "time", true]);
  } finally {
    await close();
  }
});
