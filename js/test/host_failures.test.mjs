/** What goes wrong in the host: tools that throw anything, callbacks that throw, workers that do not start, Repls that close. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ClosedError, Sandbox, tool, ToolError } from "../dist/index.js";

async function within(options, work) {
  const box = new Sandbox(options);
  try {
    return await work(box);
  } finally {
    await box.close();
  }
}

const throwing = (thrown) => tool({ name: "fail", call: () => { throw thrown; } });
const traps = new Proxy({}, { get() { throw new Error("a trap"); }, getPrototypeOf() { throw new Error("a trap"); } });

for (const [what, thrown, message] of [
  ["an object without a prototype", Object.create(null), "object"],
  ["an object that cannot be text", { toString() { throw new Error("no"); } }, "object"],
  ["an error whose message is an object", Object.assign(new Error("x"), { message: { a: 1 } }), "Error: [object Object]"],
  ["an error whose message throws", Object.defineProperty(new Error("x"), "message", { get() { throw new Error("no"); } }), "object"],
  ["an object with traps", traps, "object"],
  ["a symbol", Symbol("s"), "symbol: Symbol(s)"],
  ["nothing", undefined, "the tool threw undefined: throw an Error with a message"],
  ["an object with a message", { name: "", message: "no such table", code: "42P01" }, "object: no such table"],
]) {
  test(`a tool that throws ${what} fails its call alone`, () =>
    within({ tools: [throwing(thrown)] }, async (box) => {
      const run = await box.run("local ok, e = pcall(tools.fail, {}) return ok, e.code, e.message");
      assert.deepEqual(run.values, [false, "tool_error", message]);
    }));
}

test("an error that several tools throw names each of them", () => {
  const gone = Object.freeze(new ToolError("it is gone", { code: "gone", data: { a: 1 } }));
  const tools = ["one", "two"].map((name) => tool({ name, call: () => { throw gone; } }));
  return within({ tools }, async (box) => {
    const run = await box.run("local _, a = pcall(tools.one, {}) local _, b = pcall(tools.two, {}) return a.tool, b.tool, b.code, b.message, b.data.a");
    assert.deepEqual(run.values, ["one", "two", "gone", "it is gone", 1]);
  });
});

for (const [result, message] of [
  [new Error("x"), "result is of type Error, which cannot cross to a script; throw it, or return its message"],
  [[Object.assign(new TypeError("x"), { code: 1 })], "result[0] is of type Error, which cannot cross to a script; throw it, or return its message"],
  [new Response("x"), "result is of type Response, which cannot cross to a script; return JSON-like data"],
  [{ later: Promise.resolve(1) }, "result.later is of type Promise, which cannot cross to a script; return JSON-like data"],
  [/x/, "result is of type RegExp, which cannot cross to a script; return JSON-like data"],
]) {
  test(`a result whose content would be lost is refused: ${message.split(",")[0]}`, () =>
    within({ tools: [tool({ name: "odd", call: () => result })] }, async (box) => {
      assert.equal((await box.run("return tools.odd()")).error.message, `the result of odd cannot be used: ${message}`);
    }));
}

test("objects of classes and arrays of numbers cross", () => {
  class Point { x = 1; }
  class Empty {}
  const result = [new Point(), new Empty(), Object.create(null), new Float32Array([0.5, 2]), new BigInt64Array([2n ** 60n]), new Uint8ClampedArray([104, 105])];
  return within({ tools: [tool({ name: "odd", call: () => result })] }, async (box) => {
    assert.deepEqual((await box.run("return tools.odd()")).value, [{ x: 1 }, {}, {}, [0.5, 2], [2n ** 60n], "hi"]);
  });
});

let shared = [1];
for (let n = 0; n < 40; n += 1) shared = [shared, shared];

for (const [what, result, message] of [
  ["shares its parts", shared, "the value has more than 4,194,304 elements in all"],
  ["is sparse", new Array(2 ** 32 - 1), "the value has more than 4,194,304 elements in all"],
  ["is longer than a string can be", new Array(100).fill("x".repeat(9e6)), "it is too long"],
]) {
  // Half a gigabyte of text takes long on a busy machine.
  test(`a result that ${what} fails its call alone`, { timeout: 300_000 }, () =>
    within({ tools: [tool({ name: "large", call: () => result })], limits: { timeout: 280 } }, async (box) => {
      const run = await box.run("local ok, e = pcall(tools.large, {}) return e.code, e.message");
      assert.deepEqual(run.values, ["result_too_large", `the result of large cannot be used: ${message}`]);
    }));
}

test("what onProgress throws reaches the caller, and the Repl goes on", () =>
  within({}, async (box) => {
    const repl = await box.repl();
    await repl.run("x = 1");
    const broken = new Error("the display is broken");
    const run = repl.run("progress(1, 2) return 5", { onProgress: () => { throw broken; } });
    await assert.rejects(run, (problem) => problem === broken);
    const next = await repl.run("return x");
    assert.deepEqual([next.value, next.stateLost], [null, true]);
  }));

test("a Repl that is closed while its worker starts runs nothing", () => {
  const called = [];
  return within({ tools: [tool({ name: "note", call: () => called.push(1) })] }, async (box) => {
    const repl = box.lazyRepl();
    const run = repl.run("tools.note{} while true do end");
    await Promise.resolve(); // the turn of the run has come: it waits for its worker
    await Promise.resolve();
    await repl.close();
    await assert.rejects(run, ClosedError);
    assert.deepEqual(called, []);
  });
});

test("answers of a person do not save a script whose time is over", { timeout: 60_000 }, () => {
  const ask = tool({ name: "ask", policy: "approve", call: () => 1 });
  const quick = tool({ name: "quick", call: () => 1 });
  let asked = 0;
  const approve = () => new Promise((resolve) => setTimeout(resolve, 50 * (asked += 1), true)); // some of them while it is being stopped
  return within({ tools: [ask, quick], limits: { timeout: 0.3 }, approve }, async (box) => {
    const run = await box.run(`
      local works = {function() tools.quick{} return (("x"):rep(5000)):find((".-"):rep(12) .. "y") end}
      for i = 1, 40 do works[i + 1] = function() return tools.ask{} end end
      return parallel(works)
    `);
    assert.deepEqual([run.error.limit, run.stateLost], ["time", true]);
  });
});

test("a worker that cannot start costs a resting Repl nothing", () =>
  within({}, async (box) => {
    const first = await box.repl();
    await first.run("kept = 42");
    const others = [];
    for (let n = 0; n < 8; n += 1) others.push(await box.repl()); // the first has given its worker up
    const { compile } = WebAssembly;
    const larger = { limits: { maxMemory: 65 * 2 ** 20 } };
    WebAssembly.compile = async () => { throw new Error("no room for code"); };
    try {
      await assert.rejects(first.run("return kept", larger), /no room for code/);
    } finally {
      WebAssembly.compile = compile;
    }
    const run = await first.run("return kept", larger);
    assert.deepEqual([run.value, run.stateLost], [42, false]);
  }));

test("calls left behind that hold every slot make a further call busy", () =>
  within({ tools: [tool({ name: "stuck", timeout: 0.1, maxConcurrency: 1, call: () => new Promise(() => undefined) })] }, async (box) => {
    const run = await box.run("local a, e = pcall(tools.stuck, {}) local b, f = pcall(tools.stuck, {}) return e.code, f.code, f.message");
    assert.deepEqual(run.values, [
      "timeout", "busy", "stuck takes 1 call at once (maxConcurrency), and earlier ones that timed out are still running",
    ]);
  }));
