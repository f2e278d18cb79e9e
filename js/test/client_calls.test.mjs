/** Client-side tools: a script, or the model's own call, waits for the caller's answer. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { CodeMode, Sandbox, ToolDefinitionError, ToolError, tool, UsageError } from "../dist/index.js";

const pick = tool({
  name: "pick",
  description: "Let the user pick one.",
  parameters: { type: "object", properties: { of: { type: "array", items: { type: "string" } } }, required: ["of"] },
});
const double = tool({
  name: "double",
  parameters: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
  call: ({ n }) => 2 * n,
});
const code = (source_code) => ({ source_code });

async function within(work, settings = {}, options = {}, tools = [pick, double]) {
  const box = new Sandbox({ tools });
  const mode = new CodeMode(box, settings, options);
  try {
    await work(mode, box);
  } finally {
    await mode.close();
    await box.close();
  }
}

async function paused(reply) {
  const { text, paused, isError } = await reply;
  assert.ok(paused, text);
  assert.equal(isError, false);
  return paused;
}

const start = (mode, source, conversation = "") => mode.reply("lua_repl", code(source), { conversation, pause: true });

test("a script waits for the client", () =>
  within(async (mode) => {
    const waiting = await paused(start(mode, "n = 3 local x = tools.pick{of = {'a', 'b'}} return x .. n"));
    assert.equal(String(waiting), "paused: waiting for the client's answer to pick");
    assert.deepEqual(waiting.calls.map((call) => [call.tool, call.arguments]), [["pick", { of: ["a", "b"] }]]);
    assert.equal((await waiting.resume(["b"])).text, "b3");
    assert.equal(await mode.handle("lua_repl", code("return n")), "3", "the conversation keeps its state");
  }));

test("several pauses, and the other calls of a batch", () =>
  within(async (mode) => {
    const first = await paused(start(mode, `
      local r = parallel{
        function() return tools.pick{of = {'x'}} end,
        function() return tools.double{n = 4} end,
        function() return tools.pick{of = {'y'}} end,
      }
      return r[1], r[2], r[3], tools.pick{of = {'z'}}`));
    assert.deepEqual(first.calls.map((call) => call.arguments.of), [["x"], ["y"]]);
    const second = await paused(first.resume({ [first.calls[0].id]: "X", [first.calls[1].id]: "Y" }));
    const { run } = await second.resume(["Z"]);
    assert.deepEqual(run.values, ["X", 8, "Y", "Z"]);
    assert.deepEqual(run.calls.map((call) => [call.tool, call.status]), [["pick", "ok"], ["double", "ok"], ["pick", "ok"], ["pick", "ok"]]);
  }));

test("a failure of the client is an error in the script", () =>
  within(async (mode) => {
    const waiting = await paused(start(mode, "local ok, e = pcall(tools.pick, {of = {'a'}}) return ok, e.code, e.message"));
    const reply = await waiting.resume(new ToolError("the user left", { code: "gone" }));
    assert.equal(reply.text, '3 values:\n1: false\n2: "gone"\n3: "the user left"');
  }));

test("wrong arguments never reach the client", () =>
  within(async (mode) => {
    assert.match((await start(mode, "return tools.pick{of = 1}")).text, /of: expected string\[\]/);
    assert.equal((await mode.reply("pick", { of: 1 }, { pause: true })).paused, null);
  }));

test("a direct call waits too", () =>
  within(async (mode) => {
    const ask = () => paused(mode.reply("pick", { of: ["a"] }, { pause: true }));
    const waiting = await ask();
    assert.deepEqual(waiting.calls.map((call) => call.arguments), [{ of: ["a"] }]);
    const reply = await waiting.resume(["a"]);
    assert.deepEqual([reply.text, reply.run.calls.map((call) => [call.tool, call.arguments, call.result])], ["a", [["pick", { of: ["a"] }, "a"]]]);
    assert.equal((await (await ask()).resume(new ToolError("no"))).text, "tool error (pick, tool_error): no");
    await (await ask()).cancel();
  }, { keepVisible: ["pick"] }));

test("answers must fit", () =>
  within(async (mode) => {
    const waiting = await paused(start(mode, "return tools.pick{of = {'a'}}"));
    for (const wrong of [[], ["a", "b"], { 99: "a" }, "a", null]) {
      await assert.rejects(waiting.resume(wrong), { name: "UsageError", message: /give one answer for each of the calls/ });
    }
    assert.equal((await waiting.resume(["a"])).text, "a");
    await assert.rejects(waiting.resume(["a"]), UsageError);
  }));

test("meanwhile the conversation is busy and others are not", () =>
  within(async (mode) => {
    // Both at once: the second must not wait for what only the first one's answer can bring about.
    const [first, second] = await Promise.all([start(mode, "return tools.pick{of = {'a'}}", "one"), start(mode, "return 1", "one")]);
    assert.deepEqual([second.isError, second.text], [true, "error: an earlier script of this conversation waits for the client's answers; resume it first"]);
    assert.equal((await start(mode, "return 1", "two")).text, "1");
    await first.paused.cancel();
    assert.equal((await start(mode, "return 2", "one")).text, "2");
  }));

test("a signal that is aborted while the script waits ends it, and the conversation goes on", () =>
  within(async (mode) => {
    const control = new AbortController();
    const options = { conversation: "one", pause: true, signal: control.signal };
    const waiting = await paused(mode.reply("lua_repl", code("kept = 1 return tools.pick{of = {'a'}}"), options));
    control.abort();
    assert.match((await waiting.resume(["a"])).text, /the run was cancelled/);
    assert.equal((await start(mode, "return kept", "one")).text, "1");
  }));

test("a conversation that ended does not go on", () =>
  within(async (mode) => {
    const waiting = await paused(start(mode, "return tools.pick{of = {'a'}}", "one"));
    await mode.end("one");
    assert.equal((await start(mode, "return x", "one")).text, "null", "the new conversation of that name is another");
    assert.equal((await waiting.resume(["a"])).text, "error: the conversation was ended while the script waited; its state is lost");
  }));

test("the clock stands still while the client is asked", () =>
  within(async (mode, box) => {
    const repl = await box.repl({ limits: { timeout: 1 } });
    const asked = (call) => new Promise((resolve) => setTimeout(() => resolve(call.arguments.of[0]), 1500));
    assert.equal((await repl.run("return tools.pick{of = {'a'}}", { clientCalls: asked })).value, "a");
  }));

test("a function that answers them", () =>
  within(async (mode) => {
    assert.equal(await mode.handle("lua_repl", code("return tools.pick{of = {'a', 'b'}}")), "a");
    assert.equal((await start(mode, "return tools.pick{of = {'c'}}")).text, "c");
    assert.match(await mode.handle("lua_repl", code("return tools.pick{of = array{}}")), /nothing to pick from/);
    assert.throws(() => new CodeMode(mode.sandbox, {}, { clientCalls: "pick" }), /clientCalls must be a function/);
  }, {}, {
    clientCalls: async ({ arguments: { of } }) => {
      if (of.length === 0) throw new Error("nothing to pick from");
      return of[0];
    },
  }));

test("the model sees it directly unless a function answers it", () =>
  within(async (mode, box) => {
    const shown = (made) => made.definitions("anthropic").map((item) => item.name);
    assert.deepEqual(shown(mode), ["lua_repl", "pick"]);
    assert.match(mode.description, /pick/);
    assert.deepEqual(shown(new CodeMode(box, {}, { clientCalls: () => "a" })), ["lua_repl"]);
    const direct = new CodeMode(box, {}, { canPause: false });
    assert.deepEqual([shown(direct), direct.description.includes("pick")], [["lua_repl", "pick"], false]);
    assert.match(await direct.handle("lua_repl", code("return tools.pick{of = {'a'}}")), /call the tool 'pick' directly/);
    await direct.close();
  }));

test("where nothing can wait the call fails", () =>
  within(async (mode, box) => {
    const nobody = /this tool is answered by the client, and nothing asks the client here/;
    assert.match(await mode.handle("lua_repl", code("return tools.pick{of = {'a'}}")), nobody);
    assert.match(await mode.handle("pick", { of: ["a"] }), nobody);
    assert.equal((await box.run("return tools.pick{of = {'a'}}")).error.code, "client_unavailable");
    assert.throws(() => tool({ name: "pick", policy: "approve" }), ToolDefinitionError);
  }));

test("only the model calls a direct one", () =>
  within(async (mode) => {
    assert.match((await start(mode, "return tools.pick{of = {'a'}}")).text, /scripts cannot call 'pick'/);
    const waiting = await paused(mode.reply("pick", { of: ["a"] }, { pause: true }));
    assert.equal((await waiting.resume(["a"])).text, "a");
  }, {}, {}, [pick.with({ policy: "direct" })]));
