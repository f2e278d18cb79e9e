/** An MCP client as a source of tools, and code mode in the AI SDK and LangChain.js, each with the real package. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { aiTools, CodeMode, langchainTools, mcpTools, Sandbox, tool } from "../dist/index.js";

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
