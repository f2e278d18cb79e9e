/** Parameters as schemas of zod, valibot and arktype, through Standard Schema; and what is refused as a schema. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { CodeMode, Sandbox, tool, ToolDefinitionError } from "../dist/index.js";

const apps = fileURLToPath(new URL("./apps/package.json", import.meta.url));
const need = createRequire(apps);
const skip = !existsSync(new URL("./apps/node_modules", import.meta.url)) && "the libraries are not installed: make js-package";

/** The same parameters in three libraries: a count that is even, and a day that arrives as a Date. */
const LIBRARIES = {
  zod() {
    const { z } = need("zod");
    return { parameters: z.object({ count: z.int().refine((n) => n % 2 === 0, "must be even"), day: z.iso.date().transform((text) => new Date(text)) }) };
  },
  valibot() {
    const v = need("valibot");
    const { toJsonSchema } = need("@valibot/to-json-schema");
    const even = v.pipe(v.number(), v.integer(), v.check((n) => n % 2 === 0, "must be even"));
    const schema = v.object({ count: even, day: v.pipe(v.string(), v.transform((text) => new Date(text))) });
    return { parameters: schema, jsonSchema: toJsonSchema(schema, { typeMode: "input", errorMode: "ignore" }) };
  },
  arktype() {
    const { type } = need("arktype");
    const parameters = type({ count: "number.integer", day: "string" }).pipe(({ count, day }, context) =>
      count % 2 === 0 ? { count, day: new Date(day) } : context.reject({ path: ["count"], message: "must be even" }),
    );
    return { parameters };
  },
};

for (const [name, make] of Object.entries(LIBRARIES)) {
  test(`parameters of ${name} are validated, transformed and in the catalog`, { skip }, async () => {
    const seen = [];
    const book = tool({ name: "book", ...make(), call: ({ count, day }) => seen.push([count, day instanceof Date]) });
    const box = new Sandbox({ tools: [book] });
    try {
      assert.equal((await box.run("return tools.book{count = 2, day = '2026-01-02'}")).unwrap(), 1);
      assert.deepEqual(seen, [[2, true]]);
      const wrong = async (source) => (await box.run(source)).error?.message ?? "accepted";
      assert.match(await wrong("return tools.book{count = 'x', day = '2026-01-02'}"), /- count: expected integer, got "x" \(string\)/);
      assert.match(await wrong("return tools.book{count = 3, day = '2026-01-02'}"), /invalid arguments for book:\n- .*must be even/);
      assert.match(await wrong("return tools.book{}"), /count/);
      assert.equal(seen.length, 1);
      assert.match(new CodeMode(box).catalog.text, /book\(count: integer, day: /);
    } finally {
      await box.close();
    }
  });
}

test("a person is not asked about arguments that the schema refuses", { skip }, async () => {
  let asked = 0;
  const pay = tool({ name: "pay", ...LIBRARIES.zod(), policy: "approve", call: () => "paid" });
  const box = new Sandbox({ tools: [pay], approve: () => (asked += 1) > 0 });
  try {
    assert.match((await box.run("return tools.pay{count = 3, day = '2026-01-02'}")).error.message, /must be even/);
    assert.equal(asked, 0);
    assert.equal((await box.run("return tools.pay{count = 4, day = '2026-01-02'}")).value, "paid");
  } finally {
    await box.close();
  }
});

test("a script waits for the client's answer to arguments that the schema accepts", { skip }, async () => {
  const box = new Sandbox({ tools: [tool({ name: "ask", ...LIBRARIES.zod() })] });
  const mode = new CodeMode(box);
  try {
    const waits = await mode.reply("lua_repl", { source_code: "return tools.ask{count = 2, day = '2026-01-02'}" }, { pause: true });
    assert.deepEqual(waits.paused.calls.map((call) => call.arguments), [{ count: 2, day: "2026-01-02" }]);
    assert.equal((await waits.paused.resume(["yes"])).text, "yes");
  } finally {
    await mode.close();
    await box.close();
  }
});

test("what is no schema, or cannot be described, is refused", { skip }, () => {
  const { z } = need("zod");
  const v = need("valibot");
  class Model {}
  for (const [given, message] of [
    [{ parameters: { city: "string" } }, /tool 'x': parameters is not a JSON Schema: it has no keyword of one, only city;/],
    [{ parameters: new Model() }, /parameters must be a JSON Schema \(a plain object\) or a Standard Schema, not an instance of Model/],
    [{ parameters: () => 1 }, /parameters must be a JSON Schema \(a plain object\) or a Standard Schema, not function/],
    [{ parameters: [] }, /a Standard Schema, not an array/],
    [{ parameters: v.object({}) }, /parameters: this schema of valibot has no Standard JSON Schema .*; give its JSON Schema as jsonSchema/],
    [{ parameters: z.object({ at: z.date() }) }, /parameters: zod cannot describe this schema as JSON Schema: .*Date.*; give its JSON Schema as jsonSchema/],
    [{ parameters: z.string() }, /parameters must be a JSON Schema of type object, not string/],
    [{ returns: v.object({}) }, /returns: .*; give a JSON Schema instead/],
    [{ parameters: { type: "object" }, jsonSchema: { type: "object" } }, /jsonSchema is for a Standard Schema/],
  ]) {
    assert.throws(() => tool({ name: "x", call: () => 1, ...given }), (problem) => problem instanceof ToolDefinitionError && message.test(problem.message), String(message));
  }
  const { toStandardJsonSchema } = need("@valibot/to-json-schema");
  const described = tool({ name: "x", parameters: toStandardJsonSchema(v.object({ id: v.string() })), call: () => 1 });
  assert.deepEqual(described.parameters.required, ["id"]);
  assert.deepEqual(tool({ name: "x", returns: z.object({ id: z.int() }), call: () => 1 }).returns.required, ["id"]);
});
