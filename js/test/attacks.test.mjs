/** Attacks by a script on the host that validates its calls and reads its values. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { CodeMode, Sandbox, tool, ToolDefinitionError, ToolError } from "../dist/index.js";

async function within(options, work) {
  const box = new Sandbox(options);
  try {
    await work(await box.repl(), box);
  } finally {
    await box.close();
  }
}

/** A tool with these parameters that keeps what it is called with. */
function recorder(properties, more = {}) {
  const taken = [];
  const call = (given) => (taken.push(given), "called");
  return { taken, take: tool({ name: "take", parameters: { type: "object", properties, ...more }, call }) };
}

/** The problem lines that a call of the tool gets; null where it is carried out. */
async function refusal(parameters, given) {
  const take = tool({ name: "take", parameters, call: () => null });
  const box = new Sandbox({ tools: [take] });
  try {
    const run = await box.call("take", given);
    if (run.ok) return null;
    assert.equal(run.error.code, "invalid");
    return run.error.message.split("\n").filter((line) => line.startsWith("- ")).map((line) => line.slice(2));
  } finally {
    await box.close();
  }
}

const object = (properties, more = {}) => ({ type: "object", properties, ...more });

// Numbers on the wire

test("numbers that are not finite cross as they are, only where they are allowed", async () => {
  const { taken, take } = recorder({ v: {} });
  await within({ tools: [take.with({ call: ({ v }) => (taken.push(v), v) })], allowNan: true }, async (repl) => {
    const run = await repl.run("return 0/0, 1/0, {a = -1/0}, tools.take{v = 1/0}, tools.take{v = {-1/0}}[1] == -1/0, 'NaN'");
    assert.deepEqual(run.values, [NaN, Infinity, { a: -Infinity }, Infinity, true, "NaN"]);
    assert.deepEqual(taken, [Infinity, [-Infinity]]);
    const failed = await repl.run("error({v = 1/0})");
    assert.deepEqual(failed.error.data, { v: Infinity });
  });
  await within({}, async (repl) => assert.match((await repl.run("return 1/0")).error.message, /not a JSON number/));
});

test("a long string beside a large integer is read", () =>
  within({}, async (repl) => {
    const run = await repl.run(String.raw`return ('x'):rep(9e6), 1 << 60, '\\"9007199254740993', {n = -(1 << 62)}, 1.5e300`);
    assert.equal(run.error, null);
    assert.equal(run.values[0].length, 9_000_000);
    assert.deepEqual(run.values.slice(1), [2n ** 60n, '\\"9007199254740993', { n: -(2n ** 62n) }, 1.5e300]);
  }));

test("a string that looks like a mark of the audit trail stays a string", () =>
  within({}, async (repl) => {
    const run = await repl.run("return '\\1\\2big:0', '\\1\\2big:7', 1 << 60");
    assert.deepEqual(JSON.parse(run.toJson()).values.slice(0, 2), ["\u0001\u0002big:0", "\u0001\u0002big:7"]);
    assert.ok(run.toJson().includes("1152921504606846976"));
  }));

// What is validated

test("an integer beyond 53 bits turns no validation off", async () => {
  const { taken, take } = recorder({ limit: { type: "integer" }, path: { type: "string", pattern: "^docs/" } });
  await within({ tools: [take] }, async (repl) => {
    const run = await repl.run("return tools.take{limit = 1 << 60, path = '/etc/shadow'}");
    assert.equal(run.error?.code, "invalid");
    assert.deepEqual(taken, []);
    (await repl.run("return tools.take{limit = 1 << 60, path = 'docs/a'}")).unwrap();
    assert.deepEqual(taken, [{ limit: 2n ** 60n, path: "docs/a" }]);
  });
});

for (const [schema, refused, accepted] of [
  [{ maximum: 10 }, 2n ** 60n, 10],
  [{ exclusiveMinimum: 2 ** 60 }, 2n ** 60n, 2n ** 60n + 1n],
  [{ multipleOf: 1024 }, 2n ** 60n + 1n, 2n ** 60n],
  [{ enum: [1, 2 ** 60] }, 2n ** 60n + 1n, 2n ** 60n],
  [{ type: "string" }, 2n ** 60n, "text"],
  [{ uniqueItems: true }, [2n ** 60n, 1, 2n ** 60n], [2n ** 60n, 2n ** 60n + 1n]],
]) {
  test(`large integers are held to ${JSON.stringify(schema)}`, async () => {
    assert.notEqual(await refusal(object({ v: schema }), { v: refused }), null);
    assert.equal(await refusal(object({ v: schema }), { v: accepted }), null);
  });
}

for (const [what, parameters] of [
  ["a reference that leads nowhere", object({ v: { $ref: "#/$defs/gone" } })],
  ["a reference to elsewhere", object({ v: { $ref: "https://example.com/schema.json" } })],
  ["a pattern that is none", object({ v: { type: "string", pattern: "(" } })],
  ["a pattern among property names", object({ v: { patternProperties: { "[": true } } })],
  ["a pattern that refers back", object({ v: { type: "string", pattern: "^(a+)\\1$" } })],
  ["a keyword of the wrong type", object({ v: { required: "toString" } })],
  ["a list of alternatives that is none", object({ v: { anyOf: { type: "string" } } })],
]) {
  test(`${what} is refused when the tool is made`, () => {
    assert.throws(() => tool({ name: "take", parameters, call: () => null }), ToolDefinitionError);
  });
}

test("what objects inherit meets no rule", async () => {
  for (const name of ["toString", "constructor", "__proto__", "hasOwnProperty"]) {
    const required = { type: "object", required: [name] };
    assert.notEqual(await refusal(object({ v: required }), { v: { x: 1 } }), null, name);
    assert.notEqual(await refusal(object({}, { required: [name], additionalProperties: true }), { x: 1 }), null, name);
    assert.equal(await refusal(object({ v: required }), { v: JSON.parse(`{"${name}": 1}`) }), null, name);
  }
  const dependent = { type: "object", dependentRequired: { toString: ["x"] }, dependentSchemas: { valueOf: false } };
  assert.equal(await refusal(object({ v: dependent }), { v: { y: 1 } }), null);
  assert.notEqual(await refusal(object({ v: { properties: { constructor: { type: "string" } } } }), { v: { constructor: 1 } }), null);
});

test("a parameter may have any name", async () => {
  for (const name of ["__proto__", "constructor", "toString"]) {
    const properties = JSON.parse(`{"${name}": {"type": "integer", "default": 5}}`);
    const { taken, take } = recorder(properties);
    await within({ tools: [take] }, async (repl) => {
      (await repl.run("tools.take{} tools.take(7)")).unwrap();
      (await repl.run(`tools.take{["${name}"] = 8}`)).unwrap();
    });
    assert.deepEqual(taken.map((given) => Object.entries(given)), [[[name, 5]], [[name, 7]], [[name, 8]]]);
  }
});

test("a medium in a parameter of any name stays an argument", async () => {
  const { taken, take } = recorder(JSON.parse('{"__proto__": {"type": "string"}}'));
  const { media } = await import("../dist/index.js");
  const make = tool({ name: "make", call: () => media({ data: new Uint8Array([1, 2, 3]), type: "image/png" }) });
  await within({ tools: [take, make] }, async (repl) => (await repl.run("tools.take{['__proto__'] = tools.make{}}")).unwrap());
  assert.deepEqual(Object.keys(taken[0]), ["__proto__"]);
  assert.match(Object.values(taken[0])[0], /^data:image\/png/);
});

test("a large integer in an object that alternatives list is judged", async () => {
  const listing = (n) => ({ type: "object", properties: { k: { const: { n } }, m: { type: "array" } } });
  const choices = { anyOf: [listing(1), listing(2)] };
  assert.match((await refusal(object({ v: choices }), { v: { k: { n: 2n ** 60n } } })).join(), /v\.k: expected/);
  assert.equal(await refusal(object({ v: choices }), { v: { k: { n: 2 } } }), null);
});

// What validation may cost

const MOST_SECONDS = 20; // of processor time; without a bound the cases below take from half a minute to years

/** Has another process validate; it must end by itself, before the system ends it. The value is an expression. */
function validatedElsewhere(schema, value) {
  const source = `
    import { tool } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url).href)};
    const { binder } = tool({ name: "take", parameters: { properties: { v: ${JSON.stringify(schema)} } }, call: () => null });
    try { binder.bind({ v: ${value} }, "take"); console.log("valid"); } catch (problem) { console.log(problem.message); }`;
  const limited = `ulimit -t ${MOST_SECONDS}; exec "$0" --input-type=module`;
  const ended = spawnSync("sh", ["-c", limited, process.execPath], { input: source, encoding: "utf8", timeout: 300_000 });
  assert.equal(ended.signal, null, "it did not end in time");
  assert.equal(ended.status, 0, ended.stderr);
  return ended.stdout;
}

const TOO_MUCH = /too large to be validated/;
for (const [what, schema, value, answer] of [
  ["items without duplicates", { uniqueItems: true }, "Array.from({ length: 200_000 }, (_, n) => n)", /^valid/],
  ["objects without duplicates", { uniqueItems: true }, "Array.from({ length: 60_000 }, (_, n) => ({ a: { b: [n] } }))", /^valid/],
  ["nested repetitions", { pattern: "^(a+)+$" }, "'a'.repeat(5_000) + '!'", /expected text that matches/],
  ["alternatives that overlap", { pattern: "^(a|a|aa)*$" }, "'a'.repeat(5_000) + '!'", /expected text that matches/],
  ["many optional parts", { pattern: "^(.*a){20}$" }, "'a'.repeat(5_000) + '!'", /expected text that matches/],
  ["a pattern that may begin anywhere", { pattern: "\\s+$" }, "' '.repeat(400_000) + 'x'", /expected text that matches/],
  ["a look ahead at every place", { pattern: "(?=a*b)c" }, "'a'.repeat(600_000)", TOO_MUCH],
  ["patterns of names", { patternProperties: { "^(x+)+$": true }, additionalProperties: false }, "{ ['x'.repeat(60) + '!']: 1 }", /invalid arguments/],
  ["property names", { propertyNames: { pattern: "^(x+)+$" } }, "{ ['x'.repeat(60) + '!']: 1 }", /invalid arguments/],
  [
    "many alternatives for many items", { items: { anyOf: [...Array.from({ length: 2_000 }, () => ({ pattern: "^(a*)*b$" })), true] } },
    "Array.from({ length: 20_000 }, () => 'a'.repeat(20))", TOO_MUCH,
  ],
  [
    "many kinds of objects for many items",
    { items: { anyOf: [...Array.from({ length: 2_000 }, () => ({ properties: { a: { type: "object" } }, required: ["a"] })), true] } },
    "Array.from({ length: 20_000 }, () => ({ a: 1 }))", TOO_MUCH,
  ],
  [
    "an explanation below a long key", { additionalProperties: { type: "array", items: { minimum: 0 } } },
    "{ ['x'.repeat(9_000_000)]: [...Array(4_000).fill(1), -1] }", /at least 0, got -1/,
  ],
  [
    "many choices for many items", { items: { enum: [...Array.from({ length: 20_000 }, (_, n) => ["x", n]), ["x"]] } },
    "Array.from({ length: 50_000 }, () => ['x'])", /^valid/,
  ],
]) {
  test(`the cost of validation is bounded: ${what}`, () => {
    assert.match(validatedElsewhere(schema, value), answer);
  });
}

test("large values and long texts are validated", async () => {
  const row = object({ id: { type: "integer", minimum: 1 }, name: { type: "string", pattern: "^row \\d+$", maxLength: 20 } }, { required: ["id"] });
  const rows = Array.from({ length: 50_000 }, (_, n) => ({ id: n + 1, name: `row ${n}` }));
  assert.equal(await refusal(object({ v: { type: "array", items: row, uniqueItems: true } }), { v: rows }), null);
  assert.equal(await refusal(object({ v: { type: "string", pattern: "^[\\s\\S]*x$" } }), { v: "x".repeat(300_000) }), null);
  rows[99].name = "rows";
  assert.deepEqual(await refusal(object({ v: { type: "array", items: row } }), { v: rows }), ["v[99].name: expected text that matches ^row \\d+$, got \"rows\" (string)"]);
});

// Long texts of a model

test("a long string in a model's arguments is read", async () => {
  const box = new Sandbox({});
  const mode = new CodeMode(box);
  const source = `return #[[${"x".repeat(900_000)}]]`;
  const text = `{"source_code": "${source} --\n"}`; // a line break inside the string, as small models write it
  assert.equal(await mode.handle("lua_repl", text), "900000");
  await mode.close();
  await box.close();
});

test("an error in a script with a long string keeps the state", () =>
  within({}, async (repl) => {
    await repl.run("kept = 1");
    const run = await repl.run(`local s = "${"x\\n".repeat(300_000)}"\nlocal t = 1 // 0`);
    assert.deepEqual([run.error.kind, run.stateLost], ["runtime", false]);
    const many = await repl.run(`local s = [[${"--[[".repeat(100_000)}]]\nlocal t = 1 // 0`);
    assert.deepEqual([many.error.kind, many.stateLost], ["runtime", false]);
    assert.equal((await repl.run("return kept")).value, 1);
  }));

// Errors

test("errors have their message in JSON", () =>
  within({ tools: [tool({ name: "fail", call: () => { throw new ToolError("no luck", { code: "gone", data: { n: 1 } }); } })] }, async (repl) => {
    const { error } = await repl.run("return tools.fail{}");
    assert.deepEqual(JSON.parse(JSON.stringify(error)), JSON.parse(JSON.stringify(error.toDict())));
    assert.equal(JSON.parse(JSON.stringify(error)).message, "no luck");
    const own = JSON.parse(JSON.stringify(new ToolError("no luck", { code: "gone" })));
    assert.deepEqual([own.message, own.code], ["no luck", "gone"]);
    const large = (await repl.run("error({n = 1 << 60})")).error;
    assert.deepEqual(JSON.parse(JSON.stringify(large)).data, { n: JSON.rawJSON ? 2 ** 60 : String(2n ** 60n) });
  }));
