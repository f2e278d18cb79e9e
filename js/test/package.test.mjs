/** The package as its users call it, in Node. */

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { AuditError, CodeMode, Limits, Sandbox, ToolError, tool, UsageError } from "../dist/index.js";

const add = tool({
  name: "add",
  description: "Add two numbers.",
  parameters: { type: "object", properties: { a: { type: "integer" }, b: { type: "integer", default: 1 } }, required: ["a"] },
  call: async ({ a, b }) => a + b,
});

async function within(options, work) {
  const box = new Sandbox(options);
  try {
    await work(await box.repl(), box);
  } finally {
    await box.close();
  }
}

test("a script calls tools, and its run is recorded", () =>
  within({ tools: [add] }, async (repl) => {
    const run = await repl.run("local sum = 0 for i = 1, 3 do sum = sum + tools.add{a = i} end print('done') return sum");
    assert.equal(run.value, 9);
    assert.equal(run.output, "done\n");
    assert.deepEqual(run.calls.map((call) => [call.tool, call.arguments, call.result]), [
      ["add", { a: 1, b: 1 }, 2], ["add", { a: 2, b: 1 }, 3], ["add", { a: 3, b: 1 }, 4],
    ]);
    assert.equal(JSON.parse(run.toJson()).usage.calls, 3);
  }));

test("globals persist from run to run, and reset forgets them", () =>
  within({}, async (repl) => {
    await repl.run("x = 7");
    assert.equal((await repl.run("return x")).value, 7);
    assert.deepEqual(await repl.globals(), { x: "number" });
    await repl.reset();
    assert.equal((await repl.run("return x")).value, null);
  }));

test("a time limit ends a loop and keeps the state", () =>
  within({ limits: { timeout: 1 } }, async (repl) => {
    const run = await repl.run("kept = 1 pcall(function() while true do end end) return 1");
    assert.deepEqual([run.error.kind, run.error.limit, run.stateLost], ["limit", "time", false]);
    assert.equal((await repl.run("return kept")).value, 1);
  }));

test("a script that hangs in a C function is ended with its worker", () =>
  within({ limits: { timeout: 1 } }, async (repl) => {
    const run = await repl.run("kept = 1 print('before') return (('a'):rep(60)):find(('a-'):rep(12) .. 'b')");
    assert.deepEqual([run.error.kind, run.error.limit, run.stateLost, run.output], ["limit", "time", true, "before\n"]);
    const next = await repl.run("return kept");
    assert.deepEqual([next.ok, next.value, next.stateLost], [true, null, false]);
  }));

for (const [limits, source, limit] of [
  [{ maxOperations: 1000 }, "while true do end", "operations"],
  [{ maxMemory: 2 ** 21 }, "local t = {} for i = 1, 1e9 do t[i] = {i} end", "memory"],
  [{ maxToolCalls: 2 }, "for i = 1, 3 do tools.add{a = i} end", "calls"],
  [{ maxOutput: 10 }, "for i = 1, 10 do print('x') end", "output"],
  [{ maxString: 100 }, "return ('x'):rep(101)", "string"],
  [{ maxArray: 3 }, "return {1, 2, 3, 4}", "array"],
  [{ maxDepth: 2 }, "return {{{1}}}", "depth"],
  [{ maxSource: 20 }, "return 'longer than allowed'", "source"],
]) {
  test(`the limit ${limit} ends a run`, () =>
    within({ tools: [add], limits }, async (repl) => {
      const run = await repl.run(source);
      assert.equal(run.error?.limit, limit);
      assert.equal((await repl.run("return 1")).value, 1);
    }));
}

test("limits are checked, and presets are there", () => {
  assert.throws(() => new Limits({ timeout: -1 }), UsageError);
  assert.throws(() => new Limits({ max_memry: 1 }), /did you mean 'maxMemory'\?/);
  assert.equal(Limits.untrusted().maxMemory, 16 * 2 ** 20);
  assert.equal(Limits.preset("quick", { timeout: 1 }).timeout, 1);
});

test("parallel calls run at the same time", () => {
  let running = 0;
  let most = 0;
  const slow = tool({
    name: "slow",
    call: async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setTimeout(resolve, 20));
      running -= 1;
      return most;
    },
  });
  return within({ tools: [slow] }, async (repl) => {
    const run = await repl.run("return parallel.map({1, 2, 3, 4}, function() return tools.slow{} end)");
    assert.equal(run.value.length, 4);
    assert.equal(most, 4);
  });
});

test("a tool's error reaches the script, and what it hides does not", () => {
  const tools = [
    tool({ name: "known", call: () => { throw new ToolError("no luck", { code: "gone", retryable: true }); } }),
    tool({ name: "strange", call: () => { throw new Error("cannot read /home/me/secret.txt with token=abcdef123456"); } }),
  ];
  return within({ tools }, async (repl) => {
    const run = await repl.run("local ok, e = pcall(tools.known, {}) return e.code, e.message, e.retryable, e.tool");
    assert.deepEqual(run.values, ["gone", "no luck", true, "known"]);
    const strange = await repl.run("return tools.strange{}");
    assert.equal(strange.error.message, "Error: cannot read …/secret.txt with token=***");
  });
});

test("approvals: denied, allowed, edited, once for all", async () => {
  const guarded = add.with({ name: "guarded", policy: "approve" });
  const decisions = [false, true, { kind: "edit", arguments: { a: 10 } }, "always"];
  await within({ tools: [guarded], approve: () => decisions.shift() }, async (repl) => {
    const source = "return tools.guarded{a = 1}";
    assert.deepEqual([(await repl.run(source)).error.kind, (await repl.run(source)).value], ["denied", 2]);
    assert.deepEqual([(await repl.run(source)).value, (await repl.run(source)).value, (await repl.run(source)).value], [11, 2, 2]);
    assert.equal(decisions.length, 0);
  });
  await within({ tools: [guarded] }, async (repl) => {
    assert.equal((await repl.run("return tools.guarded{a = 1}")).error.code, "approval_unavailable");
  });
});

test("the clock stands still while a person is asked, but not for a script that computes meanwhile", async () => {
  const guarded = add.with({ name: "guarded", policy: "approve" });
  let answer;
  const approve = () =>
    new Promise((resolve) => {
      if (answer === undefined) setTimeout(() => resolve(true), 1500);
      answer = resolve;
    });
  await within({ tools: [add, guarded], approve, limits: { timeout: 1 } }, async (repl) => {
    assert.equal((await repl.run("return tools.guarded{a = 1}")).value, 2);
    const run = await repl.run("return parallel{function() return tools.guarded{a = 1} end, function() tools.add{a = 1} while true do end end}");
    assert.deepEqual([run.error?.kind, run.error?.limit], ["limit", "time"]);
    answer(false);
  });
});

test("a direct call has a time limit, which does not count while a person is asked", async () => {
  const stuck = tool({ name: "stuck", call: () => new Promise(() => undefined) });
  const guarded = add.with({ name: "guarded", policy: "approve" });
  const approve = () => new Promise((resolve) => setTimeout(() => resolve(true), 1500));
  await within({ tools: [stuck, stuck.with({ name: "short", timeout: 0.05 }), guarded], approve, limits: { timeout: 1 } }, async (_, box) => {
    for (const name of ["stuck", "short"]) {
      const run = await box.call(name);
      assert.deepEqual([run.error.code, run.error.message, run.calls[0].status], ["timeout", `${name} did not answer in time`, "timeout"]);
    }
    const asked = await box.call("guarded", { a: 1 });
    assert.deepEqual([asked.value, asked.source, asked.language, asked.calls[0].approval], [2, "guarded", "direct", "allowed"]);
    assert.equal((await box.call("nothing")).error.code, "unknown_tool");
  });
});

test("calls that were left behind are bounded", () => {
  const ends = [];
  const stuck = tool({ name: "stuck", timeout: 0.01, call: () => new Promise((resolve) => ends.push(resolve)) });
  return within({ tools: [stuck, add], limits: { maxToolCalls: null } }, async (repl) => {
    await repl.run("for i = 1, 64 do pcall(tools.stuck, {}) end");
    const busy = await repl.run("local ok, e = pcall(tools.add, {a = 1}) return e.code, e.retryable");
    assert.deepEqual(busy.values, ["busy", true]);
    ends.forEach((end) => end(null));
    assert.equal((await repl.run("return tools.add{a = 1}")).value, 2);
  });
});

test("a run by itself has no Repl to speak of", async () => {
  const box = new Sandbox();
  const run = await box.run("local t = {} for i = 1, 1000 do t[i] = i end return t");
  assert.deepEqual([run.repl, run.kept, run.number], ["", "", 1]);
  assert.doesNotMatch((await box.run("error('x')")).forModel(), /state kept/);
  await box.close();
});

test("the hint names the call that took the time", async () => {
  const wait = tool({ name: "wait", call: () => new Promise(() => undefined) });
  await within({ tools: [wait], limits: { timeout: 5 } }, async (repl) => {
    const { error } = await repl.run("local x = 1\nreturn tools.wait{}");
    assert.match(error.hint, /^the call of 'wait' on line 2 took \d\.\d of \d\.\d seconds: ask it for less, or go on without it$/);
  });
});

test("a tool's own timeout, and an aborted run", () => {
  const control = new AbortController();
  const tools = [
    tool({ name: "stuck", timeout: 0.05, call: (_, { signal }) => new Promise((resolve) => signal.addEventListener("abort", resolve)) }),
    tool({ name: "abort", call: () => void setTimeout(() => control.abort(), 0) }),
  ];
  return within({ tools }, async (repl) => {
    const run = await repl.run("local ok, e = pcall(tools.stuck, {}) return e.code");
    assert.equal(run.value, "timeout");
    const aborted = await repl.run("x = 1 tools.abort{} while true do end", { signal: control.signal });
    assert.equal(aborted.error.kind, "cancelled");
    assert.equal((await repl.run("return x")).value, 1);
  });
});

test("inputs are globals of one run", () =>
  within({ tools: [add] }, async (repl) => {
    const inputs = { rows: [{ id: 1, note: null }, { id: 2, note: "x" }], most: 2n ** 60n };
    const run = await repl.run("return #rows, rows[1].note, rows[2].note, most, rows", { inputs });
    assert.deepEqual(run.values, [2, null, "x", 2n ** 60n, inputs.rows]);
    assert.equal((await repl.run("return rows")).value, null);
    assert.equal((await repl.run("return rows", { inputs, limits: { maxSource: 10 } })).error.limit, "source");
    assert.equal((await repl.run("return rows")).value, null);
    assert.throws(() => repl.run("return 1", { inputs: { print: 1 } }), /the input 'print' would hide what scripts find/);
    assert.throws(() => repl.run("return 1", { inputs: { "a b": 1 } }), /'a b' is not a name that a script can write/);
  }));

test("a tool that changed is asked about again after 'always'", async () => {
  const asked = [];
  const guarded = add.with({ policy: "approve" });
  const approve = (call) => {
    asked.push([call.tool, call.source, call.language, call.changed]);
    return "always";
  };
  await within({ tools: [guarded], approve }, async (repl, box) => {
    for (let time = 0; time < 2; time += 1) assert.equal((await repl.run("return tools.add{a = 1}")).calls[0].approval, "always");
    box.toolbox.add(guarded.with({ description: "Add, and more." }), true);
    assert.equal((await repl.run("return tools.add{a = 1}")).value, 2);
  });
  assert.deepEqual(asked, [["add", "return tools.add{a = 1}", "lua", []], ["add", "return tools.add{a = 1}", "lua", ["description"]]]);
});

test("docs are searched, listed and named, up to a budget", () =>
  within({ tools: [add] }, async (repl) => {
    const run = await repl.run("local names = {} for name in pairs(docs) do names[name] = true end return names['tools.add'], names['print'], names['string.rep'], docs['string.rep'] ~= nil, docs.search('')[1].name");
    assert.deepEqual(run.values, [true, true, true, true, "add"]);
    const often = await repl.run("for i = 1, 2000 do local _ = docs['print'] end");
    assert.deepEqual([often.error.kind, often.error.code], ["tool", "limit_docs"]);
  }));

test("long runs that end together each have a line of the audit trail", async () => {
  const folder = await mkdtemp(join(tmpdir(), "moonbox-"));
  const file = join(folder, "audit.jsonl");
  const box = new Sandbox({ audit: file });
  await Promise.all([1, 2, 3, 4].map((n) => box.run(`return ('${n}'):rep(3000000)`)));
  await box.close();
  const lines = (await readFile(file, "utf8")).trim().split("\n").map((line) => JSON.parse(line).values[0].length);
  assert.deepEqual(lines, [3e6, 3e6, 3e6, 3e6]);
  await rm(folder, { recursive: true });
});

test("an audit trail that cannot be written is told, with the run", async () => {
  const broken = new Error("the disk is full");
  const box = new Sandbox({ audit: { write: () => { throw broken; } } });
  await assert.rejects(box.run("return 42"), (problem) => {
    assert.ok(problem instanceof AuditError);
    assert.deepEqual([problem.message, problem.run.value, problem.cause], ["the audit trail cannot be written: the disk is full", 42, broken]);
    return true;
  });
  await box.close();
});

test("the audit trail has a line of JSON for each run", async () => {
  const folder = await mkdtemp(join(tmpdir(), "moonbox-"));
  const file = join(folder, "audit.jsonl");
  await within({ audit: file }, async (repl) => {
    await repl.run("return 1");
    await repl.run("error('x')");
  });
  const lines = (await readFile(file, "utf8")).trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines.map((run) => run.ok), [true, false]);
  await rm(folder, { recursive: true });
});

test("values cross without loss", () => {
  const echo = tool({ name: "echo", parameters: { type: "object" }, call: ({ value }) => value });
  return within({ tools: [echo] }, async (repl) => {
    const run = await repl.run("return tools.echo{value = math.maxinteger}, tools.echo{value = '\\255\\0x'}, tools.echo{value = {[10] = 'x', y = 1}}");
    assert.deepEqual(run.values, [2n ** 63n - 1n, Uint8Array.of(255, 0, 120), new Map([[10, "x"], ["y", 1]])]);
    repl.define("when", new Date(0));
    repl.define("double", (x) => x * 2);
    assert.deepEqual((await repl.run("return when, double(21)")).values, ["1970-01-01T00:00:00.000Z", 42]);
  });
});

test("names of JavaScript's own are names like any other, and change no object", () => {
  const taken = [];
  const take = tool({
    name: "take",
    description: "Takes anything.",
    parameters: { type: "object", properties: { a: {}, b: { type: "integer" } } },
    call: (given) => (taken.push(given), JSON.parse('{"__proto__": {"polluted": 1}, "constructor": 2}')),
  });
  return within({ tools: [take] }, async (repl) => {
    const value = async (source) => (await repl.run(source)).unwrap();
    for (const [source, names] of [
      ["return {__proto__ = {polluted = 1}}", ["__proto__"]],
      ["return {constructor = {prototype = {polluted = 1}}, hasOwnProperty = 1}", ["constructor", "hasOwnProperty"]],
      ["return tools.take{a = {__proto__ = {polluted = 1}, toString = 2}}", ["__proto__", "constructor"]],
    ]) {
      assert.deepEqual(Object.keys(await value(source)).sort(), names);
    }
    const rows = await value("local r = {} for i = 1, 40 do r[i] = {__proto__ = {polluted = i}, x = i} end return r");
    assert.deepEqual(Object.keys(rows[39]).sort(), ["__proto__", "x"]);
    assert.deepEqual(Object.keys(taken[0].a).sort(), ["__proto__", "toString"]);
    for (const given of ["__proto__ = {b = 7}", "constructor = {b = 7}"]) {
      assert.equal((await repl.run(`return tools.take{${given}}`)).error.code, "invalid");
    }
    assert.equal(taken.length, 1);
    assert.equal(await value("return tools['__proto__'] == nil and tools.constructor == nil and docs['__proto__'] == nil"), true);
    assert.equal({}.polluted, undefined);
  });
});

test("a large answer comes in parts", () => {
  const big = tool({ name: "big", call: () => "x".repeat(3_500_000) });
  return within({ tools: [big] }, async (repl) => assert.equal((await repl.run("return #tools.big{}")).value, 3_500_000));
});

test("code mode answers a model's calls", async () => {
  const box = new Sandbox({ tools: [add, add.with({ name: "wipe", hints: { destructive: true } })] });
  const mode = new CodeMode(box);
  assert.deepEqual(mode.definitions("anthropic").map((item) => item.name), ["lua_repl", "wipe"]);
  assert.equal(await mode.handle("lua_repl", '{"source_code": "x = tools.add{a = 1} return x"}'), "2");
  assert.equal(await mode.handle("lua_repl", { code: "return x" }), "2");
  assert.equal(await mode.handle("wipe", { a: 2 }), "3");
  assert.match(await mode.handle("add", {}), /is called from a script: use lua_repl and write tools\.add\{\.\.\.\}/);
  const reply = await mode.reply("lua_repl", { source_code: "return tools.wipe{a = 1}" });
  assert.match(reply.text, /hint: scripts cannot call 'wipe'/);
  await mode.close();
  await box.close();
});

test("Rhai scripts", () =>
  within({ tools: [add], language: "rhai" }, async (repl) => {
    assert.deepEqual((await repl.run("let r = []; for i in 1..4 { r.push(add(#{a: i})); } r")).value, [2, 3, 4]);
    const run = await repl.run("let x = ;");
    assert.deepEqual([run.error.kind, run.error.line], ["syntax", 1]);
    assert.equal((await repl.check("1 +")).kind, "syntax");
    assert.equal(await repl.check("1 + 1"), null);
  }));

test("failures have the codes of the Python package", () => {
  const failures = [
    [{ status: 404 }, "not_found", false], [{ response: { status: 429 } }, "rate_limited", true],
    [{ statusCode: 409 }, "conflict", false], [{ status: 403 }, "denied", false], [{ status: 422 }, "invalid", false],
    [{ status: 503 }, "unavailable", true], [{ status: 500 }, "tool_error", true], [{ status: 302 }, "tool_error", false],
    [{ code: "ECONNREFUSED" }, "unavailable", true], [{ code: "ETIMEDOUT" }, "timeout", true],
    [{ code: "ENOENT" }, "not_found", false], [{ code: "EEXIST" }, "conflict", false], [{ code: "EACCES" }, "denied", false],
    [{ code: "constructor" }, "tool_error", false],
  ];
  const fail = tool({
    name: "fail",
    parameters: { type: "object", properties: { at: { type: "integer" } } },
    call: ({ at }) => { throw Object.assign(new Error("no"), failures[at][0]); },
  });
  return within({ tools: [fail] }, async (repl) => {
    for (const [at, [fields, code, retryable]] of failures.entries()) {
      const run = await repl.run(`local _, e = pcall(tools.fail, {at = ${at}}) return e.code, e.retryable`);
      assert.deepEqual(run.values, [code, retryable], JSON.stringify(fields));
    }
  });
});

test("a platform without Workers is told so", async () => {
  assert.equal(globalThis.Worker, undefined); // the browsers' entry finds none in Node
  const browser = await import("../dist/browser.js");
  await assert.rejects(browser.run("return 1"), { name: "WorkerError", message: /has no Workers.*Cloudflare/ });
});
