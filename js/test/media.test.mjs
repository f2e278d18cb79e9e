/** Media: scripts get handles, tools and models get the bytes. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { CodeMode, Media, media, Sandbox, tool, UsageError } from "../dist/index.js";

const bytes = (text) => Uint8Array.from(text, (char) => char.charCodeAt(0));
const PNG = media({ data: bytes("\x89PNG\r\n\x1a\n" + "\0".repeat(100)), name: "chart.png" });
const WAV = media({ data: bytes("RIFF\0\0\0\0WAVEfmt ") });
const fields = (properties) => ({ type: "object", properties });
const seen = [];
const tools = [
  tool({ name: "chart", call: () => PNG }),
  tool({ name: "sounds", call: () => ({ title: "two", list: [WAV, { deep: WAV }] }) }),
  tool({
    name: "look",
    parameters: { ...fields({ image: { ...Media.schema, description: "What to look at." }, note: { type: "string", default: "" } }), required: ["image"] },
    call: ({ image, note }) => `${image.name} ${image.size} ${note}`.trim(),
  }),
  tool({ name: "count", parameters: fields({ data: { type: "string", format: "binary" } }), call: ({ data }) => data.length }),
  tool({
    name: "send",
    parameters: fields({
      image: { type: "string", description: "The image as base64." },
      url: { type: "string" },
      coded: { type: "string", contentEncoding: "base64" },
    }),
    call: (given) => void seen.push(given),
  }),
];

async function within(options, work) {
  const box = new Sandbox({ tools, ...options });
  try {
    await work(await box.repl(), box);
  } finally {
    await box.close();
  }
}

test("a script sees a handle, and records have no bytes", () =>
  within({}, async (repl) => {
    const run = await repl.run("return tools.chart{}");
    const { media: address, ...rest } = run.value;
    assert.match(address, /^moonbox:\/\/media\/[\w-]{22}$/);
    assert.deepEqual(rest, { type: "image/png", size: 108, name: "chart.png", hash: "a1f76d954944aa5b" });
    assert.deepEqual(run.media, [PNG]);
    for (const text of [run.forModel(), run.toJson(), JSON.stringify(PNG)]) assert.ok(!text.includes(PNG.base64));
  }));

test("media within data are found once", () =>
  within({}, async (repl) => {
    const run = await repl.run("return tools.sounds{}");
    assert.deepEqual([run.value.title, run.value.list[0].type, run.media.length], ["two", "audio/wav", 1]);
    assert.deepEqual((await repl.run("return tools.sounds{}.title")).media, []);
  }));

test("other tools take them as their schemas say", () =>
  within({}, async (repl) => {
    seen.length = 0;
    const run = await repl.run(`
      local c = tools.chart{}
      tools.send{image = c, url = c, coded = c}
      return tools.look{image = c, note = 'x'}, tools.count{data = c}, tools.look(c)`);
    assert.deepEqual([run.error, run.values], [null, ["chart.png 108 x", 108, "chart.png 108"]]);
    assert.deepEqual(seen, [{ image: PNG.base64, url: PNG.dataUri, coded: PNG.base64 }]);
    assert.ok(!JSON.stringify(run.calls).includes(PNG.base64), "records keep the handle");
  }));

test("show gives it to the model beside the result", () =>
  within({}, async (repl) => {
    const run = await repl.run("print('first') show(tools.chart{}) show({rows = 2}, 'x') print('done') return 1");
    assert.deepEqual([run.value, run.media], [1, [PNG]]);
    assert.equal(run.output, 'first\n[chart.png: image/png, 108 bytes]\n{"rows":2}\n"x"\ndone\n');
    const failed = await repl.run("show(tools.chart{}) error('no')");
    assert.deepEqual([failed.ok, failed.media], [false, [PNG]]);
    assert.match((await repl.run("return docs['show']")).value, /^show\(x\): gives the model x besides the result/);
  }));

test("in Rhai", () =>
  within({ language: "rhai" }, async (repl) => {
    const run = await repl.run("let c = chart(#{}); show(c); look(#{image: c})");
    assert.deepEqual([run.value, run.media], ["chart.png 108", [PNG]]);
  }));

test("as inputs, in later runs, and from direct calls", () =>
  within({}, async (repl, box) => {
    assert.equal((await repl.run("kept = x return tools.look{image = x}", { inputs: { x: PNG } })).value, "chart.png 108");
    assert.deepEqual((await repl.run("return kept")).media, [PNG]);
    assert.deepEqual((await box.call("chart")).media, [PNG]);
  }));

test("code mode hands them on", () =>
  within({}, async (_, box) => {
    const mode = new CodeMode(box);
    const reply = await mode.reply("lua_repl", { source_code: "show(tools.chart{}) return 1" });
    assert.deepEqual([reply.isError, reply.media], [false, [PNG]]);
    assert.deepEqual((await mode.reply("nothing", {})).media, []);
    await mode.close();
  }));

test("a handle of another Repl is worth nothing", () =>
  within({}, async (mine, box) => {
    const address = (await mine.run("return tools.chart{}")).value.media;
    const theirs = await box.repl();
    const handle = `{media = '${address}', type = 'image/png', size = 1, name = 'x'}`;
    const run = await theirs.run(`return tools.look{image = ${handle}}`);
    assert.match(run.error.message, /- image: this medium is unknown here: .* got \{.*"media":/);
    assert.deepEqual((await theirs.run(`show(${handle}) return ${handle}`)).media, []);
    seen.length = 0;
    await theirs.run(`tools.send{url = '${address}'}`);
    assert.deepEqual(seen, [{ url: address }], "the text stays a text");
  }));

test("handles cannot be guessed or forged", () =>
  within({}, async (repl) => {
    assert.equal(new Set(Array.from({ length: 1000 }, () => media({ data: bytes("x") }).address)).size, 1000);
    await repl.run("c = tools.chart{}");
    for (const forged of ["{media = 'moonbox://media/'}", "{media = 1}", "{media = {}}", "{media = c}", "{}"]) {
      const shown = (await repl.run(`show(${forged}) return ${forged}`)).media;
      assert.ok(shown.every((medium) => medium === PNG));
      assert.equal((await repl.run(`return tools.look{image = ${forged}}`)).ok, false, forged);
    }
    const lied = await repl.run("c.type = 'text/html' c.name = '../../x' return c");
    assert.deepEqual([lied.media[0].type, lied.media[0].name], ["image/png", "chart.png"]);
  }));

test("a flood of shown values is bounded", () =>
  within({}, async (repl) => {
    const run = await repl.run("for i = 1, 100000 do show(('x'):rep(10000)) end");
    assert.equal(run.error.code, "limit_show");
    assert.ok(run.output.length <= repl.limits.maxOutput);
  }));

test("what is kept has a budget", () =>
  within({ tools: [tool({ name: "big", parameters: fields({ megabytes: { type: "integer" } }), call: ({ megabytes }) => media({ data: new Uint8Array(megabytes << 20) }) })] }, async (repl) => {
    const run = await repl.run("return tools.big{megabytes = 17}");
    assert.equal(run.error.code, "result_too_large");
    assert.match(run.error.message, /one medium may have 16,777,216/);
    const all = await repl.run("local list = {} for i = 1, 6 do list[i] = tools.big{megabytes = 15} end return list");
    assert.equal(all.media.length, 4, "the oldest are dropped");
  }));

test("types and names", () => {
  for (const [data, type, name, wanted] of [
    ["x", "", "a.csv", ["file", "text/csv", "a.csv"]],
    ["\xff\xd8\xff", "", "", ["image", "image/jpeg", "image.jpg"]],
    ["RIFF\0\0\0\0WAVEfmt ", "", "", ["audio", "audio/wav", "audio.wav"]],
    ["??", "", "", ["file", "application/octet-stream", "file.bin"]],
    ["x", "IMAGE/PNG", "../../etc/passwd", ["image", "image/png", "passwd"]],
    ["x", "image/png", "..\\..\\a\nb\x1b[2J.png", ["image", "image/png", "a_b__2J.png"]],
    ["x", "image/png", "...", ["image", "image/png", "image.png"]],
  ]) {
    const made = media({ data: bytes(data), type, name });
    assert.deepEqual([made.kind, made.type, made.name], wanted);
  }
  assert.deepEqual([...Media.fromBase64(PNG.base64).data], [...PNG.data]);
  assert.throws(() => media({ data: "text" }), /Media takes a Uint8Array or an ArrayBuffer, not string/);
  assert.throws(() => media({ data: bytes(""), type: "image" }), UsageError);
  for (const text of ["a b c", "abc", "ab=c", null]) assert.throws(() => Media.fromBase64(text), /not base64/);
});
