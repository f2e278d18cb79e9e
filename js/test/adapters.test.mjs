/** An MCP client as a source of tools, and code mode in the AI SDK and LangChain.js, each with the real package. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { aiTools, CodeMode, codeTool, langchainTools, mcpTools, Sandbox, tool, Toolbox } from "../dist/index.js";

const need = createRequire(fileURLToPath(new URL("./apps/package.json", import.meta.url)));
const load = (name) => import(pathToFileURL(need.resolve(name)).href);
const skip = !existsSync(new URL("./apps/node_modules", import.meta.url)) && "the libraries are not installed: make js-package";
const double = tool({
  name: "double",
  parameters: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
  call: ({ n }) => 2 * n,
});
const SCRIPT = { source_code: "return tools.double{n = 21}" };

async function within(tools, work) {
  const box = new Sandbox({ tools });
  const mode = new CodeMode(box);
  try {
    await work(mode, box);
  } finally {
    await mode.close();
    await box.close();
  }
}

test("a script calls the tools of an MCP server", { skip }, async () => {
  const { McpServer } = await load("@modelcontextprotocol/sdk/server/mcp.js");
  const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
  const { InMemoryTransport } = await load("@modelcontextprotocol/sdk/inMemory.js");
  const { z } = await load("zod");
  const server = new McpServer({ name: "shop", version: "1" });
  const price = { description: "The price of an item.", inputSchema: { item: z.string() }, outputSchema: { cents: z.int() }, annotations: { readOnlyHint: true } };
  server.registerTool("price", price, ({ item }) => ({ content: [], structuredContent: { cents: 100 * item.length } }));
  server.registerTool("note", { inputSchema: { text: z.string() } }, ({ text }) => ({ content: [{ type: "text", text: `noted ${text}` }] }));
  const uri = "shop://notes/a.txt";
  const content = { text: [{ type: "resource", resource: { uri, mimeType: "text/plain", text: "a note" } }], link: [{ type: "resource_link", uri, name: "a" }] };
  const blob = { type: "resource", resource: { uri: "shop://a.pdf", mimeType: "application/pdf", blob: btoa("%PDF-1") } };
  server.registerTool("resource", { inputSchema: { kind: z.string() } }, ({ kind }) => ({ content: content[kind] ?? [{ type: "text", text: "see" }, blob] }));
  server.registerTool("fail", {}, () => ({ content: [{ type: "text", text: "sold out" }], isError: true }));
  const client = new Client({ name: "test", version: "1" });
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(theirs), client.connect(ours)]);
  try {
    const tools = await mcpTools(client, { namespace: "shop" });
    assert.equal(tools.find(({ name }) => name === "price").hints.readOnly, true);
    await within(tools, async (mode, box) => {
      const run = await box.run("local ok, e = pcall(tools.shop.fail, {}) return tools.shop.price{item = 'pen'}.cents, tools.shop.note{text = 'x'}, e.message");
      assert.deepEqual(run.unwrap() && run.values, [300, "noted x", "sold out"]);
      const resources = await box.run("local r = tools.shop.resource local both = r{kind = 'both'} return r{kind = 'text'}, r{kind = 'link'}, both[1], both[2].name");
      assert.deepEqual(resources.unwrap() && resources.values, [
        { type: "resource", uri, mimeType: "text/plain", text: "a note" }, { type: "resource_link", uri, name: "a" }, "see", "a.pdf",
      ]);
      assert.match((await box.run("return tools.shop.price{}")).error.message, /missing/);
      assert.match(mode.catalog.text, /shop\.price\(item: string\)/);
    });
  } finally {
    await client.close();
    await server.close();
  }
});

test("a server whose list has no end is left at a bound", async () => {
  let page = 0;
  const endless = (nextCursor) => ({ listTools: async () => ({ tools: [{ name: `t${(page += 1)}`, inputSchema: {} }], nextCursor: nextCursor() }) });
  assert.equal((await mcpTools(endless(() => `page ${page}`))).length, 100);
  assert.equal((await mcpTools(endless(() => "again"))).length, 2);
});

test("the AI SDK calls the code tool", { skip }, () =>
  within([double], async (mode) => {
    const { generateText, isStepCount, stepCountIs } = await load("ai");
    const test = await load("ai/test");
    const Model = Object.entries(test).filter(([name]) => /^MockLanguageModelV\d+$/.test(name)).sort().at(-1)[1];
    const prompts = [];
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    const model = new Model({
      doGenerate: async (options) => {
        prompts.push(options);
        const called = prompts.length > 1;
        return {
          content: called ? [{ type: "text", text: "done" }] : [{ type: "tool-call", toolCallId: "1", toolName: "lua_repl", input: JSON.stringify(SCRIPT) }],
          finishReason: { unified: called ? "stop" : "tool-calls", raw: "" }, usage, warnings: [],
        };
      },
    });
    const result = await generateText({ model, tools: aiTools(mode), prompt: "double 21", stopWhen: (isStepCount ?? stepCountIs)(3) });
    assert.equal(result.text, "done");
    assert.equal(prompts[0].tools[0].inputSchema.properties.source_code.type, "string");
    assert.match(JSON.stringify(prompts[1].prompt), /"value":"42"/);
  }));

test("LangChain.js calls the code tool", { skip }, () =>
  within([double], async (mode) => {
    const { tool: make } = await load("@langchain/core/tools");
    const [code] = langchainTools(mode, make);
    assert.equal(code.name, "lua_repl");
    const answer = await code.invoke({ type: "tool_call", id: "1", name: "lua_repl", args: SCRIPT });
    assert.deepEqual([answer.content, answer.tool_call_id], ["42", "1"]);
  }));

for (const name of ["ai5", "ai6", "ai"]) {
  test(`tools of ${name} are a source, and codeTool streams in its streamText`, { skip }, async () => {
    const { jsonSchema, stepCountIs, isStepCount, streamText, tool: make } = await load(name);
    const { z } = await load("zod");
    const seen = [];
    const weather = make({
      description: "The weather in a city.", inputSchema: z.object({ city: z.string() }), outputSchema: z.object({ celsius: z.int() }),
      execute: async ({ city }, { toolCallId, abortSignal }) => {
        seen.push([city, typeof toolCallId, abortSignal instanceof AbortSignal]);
        return { celsius: city.length };
      },
    });
    const count = make({
      description: "Counts.", inputSchema: jsonSchema({ type: "object", properties: { to: { type: "integer" } }, required: ["to"] }),
      async *execute({ to }) { for (let at = 1; at <= to; at += 1) yield at; },
    });
    const pay = make({ description: "Pays.", inputSchema: z.object({}), needsApproval: true, execute: async () => "paid" });
    const code = codeTool({ tools: { weather, bank: { pay, count } } });
    try {
      assert.match(code.description, /weather\(city: string\) -> \{celsius: integer\}/);
      const { toolbox } = code.mode.sandbox;
      assert.deepEqual(toolbox.paths(), ["weather", "bank.pay", "bank.count"]);
      assert.equal(toolbox.get("bank.pay").policy, "approve");
      const prompts = [];
      const old = name === "ai5";
      const usage = old ? { inputTokens: 1, outputTokens: 1, totalTokens: 2 } : { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
      const finish = (reason) => ({ type: "finish", finishReason: old ? reason : { unified: reason, raw: "" }, usage });
      const source_code = 'return tools.weather{city = "Rome"}.celsius + tools.bank.count{to = 3}';
      const answers = [
        [{ type: "tool-call", toolCallId: "1", toolName: "code", input: JSON.stringify({ source_code }) }, finish("tool-calls")],
        [{ type: "text-start", id: "1" }, { type: "text-delta", id: "1", delta: "It is " }, { type: "text-delta", id: "1", delta: "7." }, { type: "text-end", id: "1" }, finish("stop")],
      ];
      const Model = Object.entries(await load(`${name}/test`)).filter(([each]) => /^MockLanguageModelV\d+$/.test(each)).sort().at(-1)[1];
      const model = new Model({
        doStream: async (options) => {
          prompts.push(options);
          const parts = [{ type: "stream-start", warnings: [] }, ...answers[prompts.length - 1]];
          return { stream: new ReadableStream({ start(controller) { parts.forEach((part) => controller.enqueue(part)); controller.close(); } }) };
        },
      });
      const result = streamText({ model, tools: { code }, prompt: "What is it?", stopWhen: (isStepCount ?? stepCountIs)(3) });
      const parts = [];
      for await (const part of result.textStream) parts.push(part);
      assert.deepEqual(parts, ["It is ", "7."]);
      assert.equal(prompts[0].tools[0].inputSchema.properties.source_code.type, "string");
      assert.match(JSON.stringify(prompts[1].prompt), /"value":"7"/);
      assert.deepEqual(seen, [["Rome", "string", true]]);
      assert.match(await code.execute({ source_code: "return tools.weather{city = 7}" }), /city: expected string, got 7/);
    } finally {
      await code.close();
    }
  });
}

test("tools of LangChain.js and function definitions of OpenAI are sources as they are", { skip }, async () => {
  const { tool: make } = await load("@langchain/core/tools");
  const { z } = await load("zod");
  const add = make(({ a, b }) => String(a + b), { name: "add", description: "Adds.", schema: z.object({ a: z.int(), b: z.int() }) });
  const parameters = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
  const ask = { type: "function", function: { name: "ask", description: "Asks.", parameters } };
  const greet = { type: "function", function: { name: "greet", parameters, function: ({ name }) => `hello ${name}` } };
  const flat = { type: "function", name: "flat", description: "Of the Responses API.", parameters, strict: true };
  const box = new Sandbox({ tools: [add, ask, greet, { more: [flat] }] });
  try {
    assert.deepEqual(box.toolbox.paths(), ["add", "ask", "greet", "more.flat"]);
    const clientCalls = ({ tool, arguments: { name } }) => `${tool} ${name}`;
    const run = await box.run("return tools.add{a = 1, b = 2}, tools.greet{name = 'x'}, tools.ask{name = 'y'}, tools.more.flat{name = 'z'}", { clientCalls });
    assert.deepEqual(run.unwrap() && run.values, ["3", "hello x", "ask y", "more.flat z"]);
  } finally {
    await box.close();
  }
});

test("clients list their tools for a Toolbox", async () => {
  const client = { listTools: async () => ({ tools: [{ name: "price", inputSchema: { type: "object" } }] }), callTool: async () => ({ content: [{ type: "text", text: "9" }] }) };
  const ofAi = { tools: async () => ({ note: { description: "", inputSchema: { jsonSchema: { type: "object", properties: {} }, validate: undefined }, execute: async () => "noted" } }) };
  assert.throws(() => new Sandbox({ tools: { shop: client } }), /a client lists its tools when it is asked: give `await Toolbox\.from\(…\)`/);
  const box = new Sandbox({ tools: await Toolbox.from({ shop: client, books: [ofAi], double }) });
  try {
    assert.deepEqual(box.toolbox.paths(), ["shop.price", "books.note", "double.double"]);
    assert.deepEqual((await box.run("return tools.shop.price{}, tools.books.note{}")).values, ["9", "noted"]);
  } finally {
    await box.close();
  }
});
