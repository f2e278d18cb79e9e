/** What is given for one run: limits, context and labels; and who decided about its calls. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { aiTools, CodeMode, langchainTools, Limits, media, run, Sandbox, tool, UsageError } from "../dist/index.js";

const who = tool({ name: "who", parameters: { type: "object", properties: {} }, call: (_, { extra, labels }) => ({ extra, labels }) });
const pay = tool({
  name: "pay",
  policy: "approve",
  parameters: { type: "object", properties: { amount: { type: "integer" } }, required: ["amount"] },
  call: ({ amount }) => `paid ${amount}`,
});

async function within(options, work) {
  const box = new Sandbox({ tools: [who, pay], ...options });
  try {
    await work(box);
  } finally {
    await box.close();
  }
}

test("limits of one run change what is given", () =>
  within({ limits: { timeout: 20, maxToolCalls: 3 } }, async (box) => {
    const expected = { ...new Limits({ timeout: 21, maxToolCalls: 3 }).toDict() };
    for (const options of [{ limits: { timeout: 21 } }, { limits: new Limits({ timeout: 21 }) }, { timeout: 21 }]) {
      const run = await box.run("for i = 1, 5 do tools.who{} end", options);
      assert.deepEqual([run.error.limit, run.limits.toDict()], ["calls", expected]);
    }
    const repl = await box.repl({ limits: { maxDepth: 9 } });
    assert.deepEqual((await repl.run("return 1", { timeout: 21 })).limits.toDict(), { ...expected, max_depth: 9 });
    assert.deepEqual(Limits.quick().over(new Limits({ maxDepth: 9 })).toDict(), Limits.quick({ maxDepth: 9 }).toDict());
    assert.deepEqual(new Limits({ timeout: 1 }).replace({ maxDepth: 9 }).over(box.limits).toDict(),
      new Limits({ timeout: 1, maxToolCalls: 3, maxDepth: 9 }).toDict());
  }));

test("a run may have more memory than the runs before it", () =>
  within({ limits: { maxMemory: 16 * 2 ** 20 } }, async (box) => {
    const repl = await box.repl();
    await repl.run("kept = 42");
    const source = "local t = {} for i = 1, 12 do t[i] = ('x'):rep(9000000) .. i end return #t, kept";
    const run = await repl.run(source, { limits: { maxMemory: 256 * 2 ** 20 } });
    assert.deepEqual([run.values, run.stateLost], [[12, 42], false]);
    assert.equal((await repl.run(source)).error.limit, "memory");
  }));

test("a run whose signal is aborted before it begins does nothing", () =>
  within({}, async (box) => {
    const repl = await box.repl();
    const control = new AbortController();
    const runs = [repl.run("while true do end", { timeout: 0.3 }), repl.run("x = 1 return 2", { signal: control.signal })];
    control.abort(); // while the second waits for its turn
    runs.push(repl.run("x = 1 return 3", { signal: AbortSignal.abort() }));
    assert.deepEqual((await Promise.all(runs)).map((run) => run.error.kind), ["limit", "cancelled", "cancelled"]);
    assert.equal((await repl.run("return x")).value, null);
  }));

/** A tool that ends with its signal alone, and a promise for its call. */
function stuck() {
  let called;
  const call = new Promise((resolve) => { called = resolve; });
  const wait = tool({ name: "wait", call: (_, { signal }) => new Promise(() => called(signal)) });
  return [wait, call];
}

test("a direct call ends with its signal, and with its Sandbox", async () => {
  for (const end of [(control) => control.abort(), (_, box) => box.close()]) {
    const lines = [];
    const [wait, call] = stuck();
    await within({ tools: [wait], audit: (line) => lines.push(JSON.parse(line)) }, async (box) => {
      const control = new AbortController();
      const direct = box.call("wait", {}, { signal: control.signal });
      const signal = await call;
      await end(control, box);
      const { error, calls: [{ status }] } = await direct;
      assert.deepEqual([error.kind, error.message, status, signal.aborted], ["cancelled", "the call was cancelled", "cancelled", true]);
      assert.deepEqual(lines.map((line) => line.error.kind), ["cancelled"]);
    });
  }
});

test("a direct call whose signal is aborted before it begins asks nobody", () => {
  const approve = () => assert.fail("nobody is to be asked");
  return within({ approve }, async (box) => {
    assert.equal((await box.call("pay", { amount: 1 }, { signal: AbortSignal.abort() })).error.kind, "cancelled");
  });
});

test("code mode ends a script and a direct call with their signal", async () => {
  const uses = [
    (mode, name, given, signal) => mode.handle(name, given, { signal }),
    (mode, name, given, abortSignal) => aiTools(mode)[name].execute(given, { abortSignal }),
    (mode, name, given, signal) => langchainTools(mode, (make, fields) => [fields.name, make]).find(([each]) => each === name)[1](given, { signal }),
  ];
  for (const [name, given] of [["lua_repl", { source_code: "return tools.wait()" }], ["wait", {}]]) {
    for (const use of uses) {
      const [wait, call] = stuck();
      await within({ tools: [wait] }, async (box) => {
        const mode = new CodeMode(box, { keepVisible: ["wait"] });
        const control = new AbortController();
        const text = use(mode, name, given, control.signal);
        await call;
        control.abort();
        assert.match(await text, /the (run|call) was cancelled/);
        await mode.close();
      });
    }
  }
});

test("tools know for whom they are called, and the record has the labels only", () =>
  within({ context: { db: 1, user: "host" } }, async (box) => {
    const given = { context: { user: "ann-secret" }, labels: { user: "ann" } };
    const expected = { extra: { db: 1, user: "ann-secret" }, labels: { user: "ann" } };
    const repl = await box.repl({ labels: { team: "a" }, context: { user: "team" } });
    const run = await repl.run("return tools.who{}", given);
    assert.deepEqual(run.value, { extra: expected.extra, labels: { team: "a", user: "ann" } });
    assert.deepEqual(JSON.parse((await repl.run("return 1", given)).toJson()).labels, { team: "a", user: "ann" });
    assert.ok(!(await repl.run("return 1", given)).toJson().includes("ann-secret"));
    const mode = new CodeMode(box, { keepVisible: ["who"] });
    const code = await mode.reply("lua_repl", { source_code: "return tools.who{}" }, given);
    const direct = await mode.reply("who", {}, given);
    assert.deepEqual([code.run.value, code.run.labels, direct.run.value, direct.run.labels],
      [expected, given.labels, expected, given.labels]);
    assert.equal(await mode.handle("lua_repl", { source_code: "return tools.who{}.extra.user" }, given), "ann-secret");
    await mode.close();
  }));

test("the name of a conversation is a label of its runs", () =>
  within({}, async (box) => {
    const mode = new CodeMode(box, { keepVisible: ["who"] });
    const labels = async (name, given, options) => (await mode.reply(name, given, options)).run.labels;
    const script = { source_code: "return 1" };
    assert.deepEqual(await labels("lua_repl", script, { conversation: "42", labels: { user: "ann" } }), { conversation: "42", user: "ann" });
    assert.deepEqual(await labels("who", {}, { conversation: "42" }), { conversation: "42" });
    assert.deepEqual(await labels("lua_repl", script, { conversation: "42", labels: { conversation: "x" } }), { conversation: "x" });
    assert.deepEqual(await labels("lua_repl", script, { conversation: "\u00e9\n".repeat(300) }), { conversation: "e7cae9d96ff22b0a" });
    assert.deepEqual(await labels("lua_repl", script, {}), {});
    await mode.close();
  }));

test("calls of a conversation come in their order, and none is ended for another that begins", () =>
  within({}, async (box) => {
    const mode = new CodeMode(box, {}, { maxConversations: 3 });
    const all = (calls) => Promise.all(calls.map(([conversation, source_code]) => mode.handle("lua_repl", { source_code }, { conversation })));
    const names = Array.from({ length: 8 }, (_, n) => `c${n}`);
    assert.deepEqual(await all(names.map((name, n) => [name, `return ${n}`])), names.map((_, n) => String(n)));
    const steps = Array.from({ length: 5 }, () => ["new", "n = (n or 0) + 1 return n"]); // the first one ends others
    assert.deepEqual(await all(steps), ["1", "2", "3", "4", "5"]);
    assert.ok(mode.conversations.length <= 3);
    await mode.close();
  }));

test("a script says how far it is", () =>
  within({}, async (box) => {
    for (const [language, source] of [
      ["lua", "progress(1) progress(2, 4, ' two\\nrows ') return select(2, pcall(progress, 'half')).message"],
      ["rhai", 'progress(1); progress(2, 4, " two\\nrows "); let m = (); try { progress("half") } catch (e) { m = e.message } m'],
    ]) {
      const seen = [];
      const other = new Sandbox({ language });
      const repl = await other.repl();
      const run = await repl.run(source, { onProgress: (progress) => seen.push(progress) });
      assert.match(run.value, /write: progress\(done, total, text\)/);
      assert.deepEqual(seen, [{ done: 1, total: null, text: "" }, { done: 2, total: 4, text: "two rows" }]);
      assert.equal((await repl.run("progress(1)")).calls.length, 0);
      await other.close();
    }
    await assert.rejects(async () => box.run("return 1", { onProgress: 1 }), UsageError);
    box.define("progress", () => "the host's");
    assert.equal((await box.run("return progress()")).value, "the host's");
  }));

test("wrong options are refused", () =>
  within({}, async (box) => {
    for (const [options, message] of [
      [{ context: 5 }, /context must be an object/],
      [{ labels: [1] }, /labels must be an object of strings/],
      [{ labels: { user: 5 } }, /the label 'user' must be a string, not 5/],
      [{ labels: { "a b": "" } }, /the name of a label must be 1 to 64 letters/],
      [{ labels: { user: "x".repeat(257) } }, /the label 'user' has 257 characters/],
      [{ labels: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, ""])) }, /there are 17 labels; at most 16/],
      [{ timeout: "soon" }, /Limits.timeout must be a number of seconds/],
      [{ timout: 5 }, /unknown option 'timout'; did you mean 'timeout'\?/],
      [{ limits: 5 }, /limits must be an object, not 5/],
      [{ signal: 5 }, /signal must be an AbortSignal, not 5/],
      [{ clientCalls: {} }, /clientCalls must be a function/],
    ]) {
      await assert.rejects(async () => box.run("return 1", options), (error) => error instanceof UsageError && message.test(error.message));
    }
    for (const [options, message] of [
      [{ approve: 5 }, /approve must be a function, not 5/],
      [{ language: "python" }, /unknown language 'python'; known languages: lua, rhai/],
      [{ limits: 5 }, /limits must be an object, not 5/],
      [{ check: "no" }, /check must be true or false, not no/],
      [{ luaFeatures: "coroutines" }, /luaFeatures must be a list: write \["coroutines"\]/],
    ]) {
      assert.throws(() => new Sandbox(options), message);
    }
    const mode = new CodeMode(box);
    const refused = [
      () => box.repl({ limit: {} }),
      () => box.call("who", {}, { lables: {} }),
      () => box.restore("bytes"),
      () => box.define("x", 1, { docs: "" }),
      () => mode.handle("lua_repl", { source_code: "return 1" }, { conversaton: "a" }),
      () => new CodeMode(box, {}, { max_conversation: 1 }),
      () => aiTools(mode, { conversations: "a" }),
      () => media({ data: new Uint8Array(1), mime: "image/png" }),
      ...[{ maxChars: 5 }, { maxChars: NaN }, { catalogTokens: 0 }, { descriptionChars: 3 }, { name: "a b" }, { keepVisible: "who" }, { fullSchemas: "no" }]
        .map((settings) => () => new CodeMode(box, settings)),
    ];
    for (const job of refused) await assert.rejects(async () => job(), UsageError, String(job));
  }));

test("a run whose options are refused leaves its Repl as it was", () =>
  within({}, async (box) => {
    const repl = await box.repl();
    await assert.rejects(async () => repl.run("return 1", { signal: 5 }), UsageError);
    assert.equal((await repl.run("return 2")).value, 2);
  }));

test("the record says who decided, and why", async () => {
  for (const [decide, expected] of [
    [() => ({ kind: "allow", by: "ann", reason: "as agreed" }), ["allowed", "ann", "as agreed", null, "ok"]],
    [() => ({ kind: "edit", arguments: { amount: 1 }, by: "bob" }), ["edited", "bob", "", { amount: 5 }, "ok"]],
    [() => ({ kind: "deny", by: "bob", reason: "no" }), ["denied", "bob", "no", null, "denied"]],
    [() => true, ["allowed", "", "", null, "ok"]],
  ]) {
    await within({ approve: decide }, async (box) => {
      const [call] = (await box.run("pcall(tools.pay, 5)")).calls;
      assert.deepEqual([call.approval, call.approvalBy, call.approvalReason, call.originalArguments, call.status], expected);
    });
  }
  await within({ approve: () => ({ kind: "always", by: "ann" }) }, async (box) => {
    const run = await box.run("tools.pay(1) tools.pay(2)");
    assert.deepEqual(run.calls.map((call) => [call.approval, call.approvalBy]), [["always", "ann"], ["always", "ann"]]);
  });
});

test("a failure of the approver is not one of the tool", async () => {
  const fail = () => {
    throw new Error("no screen");
  };
  for (const approve of [fail, () => 17, () => ({ kind: "allow", by: 5 })]) {
    await within({ approve }, async (box) => {
      const run = await box.run("local ok, e = pcall(tools.pay, 5) return ok, e.code, e.message");
      assert.deepEqual(run.values, [
        false, "approval_unavailable", "the tool 'pay' needs a person's approval, and the host could not ask for it; go on without it",
      ]);
      assert.equal(run.calls[0].status, "denied");
    });
  }
});

test("show is not a call", () =>
  within({ limits: { maxToolCalls: 1 } }, async (box) => {
    const run = await box.run("for i = 1, 5 do show(i) end tools.who{} return 1");
    assert.deepEqual([run.value, run.output, run.usage.calls, run.calls.map((call) => call.tool)], [1, "1\n2\n3\n4\n5\n", 1, ["who"]]);
    const flood = await box.run("for i = 1, 2000 do show(i) end");
    assert.equal(flood.error.code, "limit_show");
  }));

test("run makes a Sandbox for one script, with the options of both", async () => {
  const seen = [];
  const done = await run("progress(1, 2) return tools.who{}.extra.user, n", {
    tools: [who], context: { user: "ann" }, inputs: { n: 5 }, onProgress: (step) => seen.push(step.done), limits: { maxToolCalls: 1 },
  });
  assert.deepEqual([done.values, done.limits.maxToolCalls, seen], [["ann", 5], 1, [1]]);
  assert.equal((await run("6 * 7")).value, 42);
  await assert.rejects(run("1", { lua_features: [] }), new UsageError("unknown option 'lua_features'; did you mean 'luaFeatures'?"));
});

test("JSON.stringify writes a Run, and large integers in values", async () => {
  const done = await run("return {id = 9007199254740993, list = {1, 9007199254740993}}");
  assert.equal(done.value.id, 9007199254740993n);
  const digits = JSON.rawJSON ? "9007199254740993" : '"9007199254740993"'; // Node 20 has no way to write it as a number
  assert.equal(JSON.stringify(done.value), `{"id":${digits},"list":[1,${digits}]}`);
  assert.deepEqual(Object.keys(done.value), ["id", "list"]);
  assert.equal(done.toJson().includes('"values":[{"id":9007199254740993,"list":[1,9007199254740993]}]'), true);
  assert.equal(JSON.parse(JSON.stringify(done)).state, "ok");
  assert.deepEqual((await run("return rows", { inputs: { rows: done.value } })).value, done.value); // as it came
});

test("a tool that returns a circle, or throws null, says so", async () => {
  const circle = { rows: [] };
  circle.rows.push(circle);
  const same = { n: 1 };
  const tools = [
    tool({ name: "circle", call: () => circle }), tool({ name: "shared", call: () => [same, same] }),
    tool({ name: "nothing", call: () => { throw null; } }), tool({ name: "none", parameters: null, call: () => 1 }),
  ];
  const source = "local _, a = pcall(tools.circle, {}) local _, b = pcall(tools.nothing, {}) return a.message, b.message, #tools.shared{}, tools.none{}";
  assert.deepEqual((await run(source, { tools })).values, [
    "the result of circle cannot be used: result.rows[0] contains itself",
    "the tool threw null: throw an Error with a message", 2, 1,
  ]);
});

test("a script sleeps, and no timer is left of a run that ends before", async () => {
  const box = new Sandbox({ limits: { timeout: 20 } });
  try {
    const run = await box.run("local before = os.time() sleep(1.1) sleep_until(0) sleep_until('2020-01-01T00:00:00Z') return os.time() - before >= 1");
    assert.equal(run.unwrap(), true);
    assert.match((await box.run("sleep(25)")).error.message, /would wait 25\.0 seconds and has \d+\.\d left: waiting counts/);
    for (const wrong of ["sleep(-1)", "sleep('1')", "sleep_until('tomorrow')"]) assert.match((await box.run(wrong)).error.message, /write: sleep/);
    const stop = new AbortController();
    const stopped = box.run("progress(1) sleep(15)", { signal: stop.signal, onProgress: () => stop.abort() });
    assert.equal((await stopped).error.kind, "cancelled");
    assert.equal(process.getActiveResourcesInfo().filter((name) => name === "Timeout").length, 0);
  } finally {
    await box.close();
  }
});
