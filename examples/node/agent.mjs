/**
 * An agent loop in Node: a model, one code tool, and the team's expenses.
 *
 *   npm install ../moonbox/js/moonbox-0.3.0.tgz    what `npm pack` makes in js/ of a clone
 *   node agent.mjs
 *
 * Without OPENAI_API_KEY a stand-in for the model answers on loopback, in the wire format of chat completions.
 */

import { createServer } from "node:http";
import { CodeMode, results, Sandbox, tool } from "moonbox";

const QUESTION = "What did the employees 1 to 20 spend together, in cents?";

const getExpenses = tool({
  name: "get_expenses",
  description: "Expense items of one employee (1 to 20).",
  parameters: { type: "object", properties: { employee_id: { type: "integer" } }, required: ["employee_id"] },
  call: ({ employee_id }) => [
    { item: "train", cents: 1250 * employee_id },
    { item: "hotel", cents: 9900 },
  ],
});

/** What the stand-in writes. */
const SCRIPT = `local total = 0
for id = 1, 20 do
  for _, item in ipairs(tools.get_expenses{employee_id = id}) do total = total + item.cents end
end
return total`;

/** Asks the model until it answers without calling a tool. */
async function converse(mode, ask, question) {
  const messages = [
    { role: "system", content: mode.systemPrompt },
    { role: "user", content: question },
  ];
  for (let turn = 0; turn < 10; turn += 1) {
    const message = await ask({ messages, tools: mode.definitions("openai") });
    messages.push(message);
    if (!message.tool_calls?.length) return message.content;
    const answered = [];
    for (const { id, function: { name, arguments: given } } of message.tool_calls) {
      const reply = await mode.reply(name, given);
      console.log(`${name} → ${reply.text}`);
      answered.push({ id, name, reply });
    }
    messages.push(...results("openai", answered)); // images that a script shows are in them too
  }
  throw new Error("the model did not come to an end");
}

/** A model on loopback that writes the script, with a slip at first, and then tells the result. */
async function standIn() {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    const { messages, tools } = JSON.parse(body);
    const results = messages.filter((message) => message.role === "tool");
    const last = results.at(-1)?.content ?? "";
    const source = results.length === 0 ? SCRIPT.replace("get_expenses", "get_expense") : SCRIPT;
    const done = results.length > 0 && !/error|failed/.test(last);
    const message = done
      ? { role: "assistant", content: `They spent ${last} cents.` }
      : {
          role: "assistant",
          content: null,
          tool_calls: [
            {
              id: `call_${results.length}`,
              type: "function",
              function: { name: tools[0].function.name, arguments: JSON.stringify({ source_code: source }) },
            },
          ],
        };
    response.writeHead(200, { "Content-Type": "application/json" });
    response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: done ? "stop" : "tool_calls" }] }));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/v1`, close: () => server.close() };
}

const key = process.env.OPENAI_API_KEY;
const model = key ? { url: process.env.OPENAI_BASE_URL ?? "https://api.openai.com/v1", close: () => undefined } : await standIn();

async function ask(body) {
  const response = await fetch(`${model.url}/chat/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) },
    body: JSON.stringify({ model: process.env.OPENAI_MODEL ?? "gpt-5-mini", ...body }),
  });
  if (!response.ok) throw new Error(`the model answered with HTTP ${response.status}`);
  return (await response.json()).choices[0].message;
}

const box = new Sandbox({ tools: [getExpenses], limits: { timeout: 10 } });
const mode = new CodeMode(box);
console.log(await converse(mode, ask, QUESTION));
await mode.close();
await box.close();
model.close();
