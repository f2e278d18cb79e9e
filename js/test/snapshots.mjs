/** Snapshots as every host must handle them: each check gets the package, and throws where something is wrong. */

function same(seen, wanted) {
  if (JSON.stringify(seen) !== JSON.stringify(wanted)) throw new Error(`${JSON.stringify(seen)}, not ${JSON.stringify(wanted)}`);
}

async function refused(promise, message) {
  const problem = await promise.then(() => null, (error) => error);
  if (problem?.name !== "UsageError" || !message.test(problem.message)) throw new Error(`${problem}, not a UsageError like ${message}`);
}

function tools(moonbox) {
  return [moonbox.tool({
    name: "add",
    parameters: { type: "object", properties: { a: { type: "integer" }, b: { type: "integer", default: 1 } }, required: ["a"] },
    call: async ({ a, b }) => a + b,
  })];
}

const FEATURES = { luaFeatures: ["coroutines", "metatables"] };

/** Snapshots are taken and restored with this; every Sandbox is closed at the end. */
async function within(moonbox, options, work) {
  const box = new moonbox.Sandbox({ tools: tools(moonbox), ...options });
  try {
    return await work(box);
  } finally {
    await box.close();
  }
}

async function saved(moonbox, options, ...scripts) {
  return within(moonbox, options, async (box) => {
    const repl = await box.repl();
    for (const script of scripts) (await repl.run(script)).unwrap();
    return repl.snapshot();
  });
}

/** A Repl with much in it. */
export const RICH = [
  "local n = 40 function more() n = n + 1 return n end words = {'a', 'b', {deep = {1, 2.5, 'ü', json.null}}} word = ('x'):rep(70000)",
  "co = coroutine.create(function(x) local y = coroutine.yield(x + 1) local z = coroutine.yield(tools.add{a = y}) return 'end ' .. z end)",
  "first = select(2, coroutine.resume(co, 10))",
  "point = setmetatable({x = 1}, {__add = function(a, b) return a.x + b.x end, __tostring = function(p) return 'point ' .. p.x end})",
];
export const LOOK = `
  return more(), more(), words, #word, first, select(2, coroutine.resume(co, 41)), select(2, coroutine.resume(co, 'z')),
    coroutine.status(co), point + point, tostring(point)`;
export const SEEN = [41, 42, ["a", "b", { deep: [1, 2.5, "ü", null] }], 70000, 11, 42, "end z", "dead", 2, "point 1"];

export function richSnapshot(moonbox) {
  return saved(moonbox, FEATURES, ...RICH);
}

export async function lookAt(moonbox, bytes) {
  return within(moonbox, FEATURES, async (box) => {
    const run = await (await box.restore(bytes)).run(LOOK);
    run.unwrap();
    return run.values;
  });
}

export const CHECKS = {
  async "globals, closures, suspended coroutines and metatables come back"(moonbox) {
    const bytes = await richSnapshot(moonbox);
    same(await lookAt(moonbox, bytes), SEEN);
  },

  async "a snapshot is taken between runs and changes nothing"(moonbox) {
    await within(moonbox, {}, async (box) => {
      const repl = await box.repl();
      await repl.run("n = 1");
      const [first, running, second] = await Promise.all([repl.snapshot(), repl.run("n = n + tools.add{a = 1} return n"), repl.snapshot()]);
      same([running.value, (await repl.run("return n")).value], [3, 3]);
      same((await (await box.restore(first)).run("return n")).value, 1);
      same((await (await box.restore(second)).run("return n")).value, 3);
    });
  },

  async "restored Repls are apart, and go on counting runs and finding kept values and earlier lines"(moonbox) {
    const bytes = await saved(moonbox, {}, "function fail() error('here') end", "local t = {} for i = 1, 500 do t[i] = i end return t");
    await within(moonbox, {}, async (box) => {
      const [one, two] = [await box.restore(bytes), await box.restore(bytes)];
      await one.run("x = 1");
      same((await two.run("return x")).value, null);
      const run = await one.run("return #_2, #_");
      same([run.values, run.number], [[500, 500], 4]);
      same((await one.run("fail()")).error.traceback.split("\n").slice(0, 2), ["in run 1, an earlier one:", "1 | function fail() error('here') end"]);
    });
  },

  async "tools, definitions and limits are those of the Sandbox that restores"(moonbox) {
    const bytes = await saved(moonbox, {}, "call = function() return tools.add{a = 1} end");
    const add = tools(moonbox)[0].with({ call: () => 100 });
    await within(moonbox, { tools: [add], limits: { maxToolCalls: 1, maxOperations: 100000 } }, async (box) => {
      box.define("greeting", "hello");
      const repl = await box.restore(bytes);
      same((await repl.run("return call(), greeting")).values, [100, "hello"]);
      same((await repl.run("return call() + call()")).error.limit, "calls");
      same((await repl.run("while true do end")).error.limit, "operations");
    });
    await within(moonbox, { limits: { timeout: 1 } }, async (box) => {
      const repl = await box.restore(bytes);
      const run = await repl.run("while true do end");
      same([run.error.limit, run.stateLost], ["time", false]);
      same((await repl.run("return call()")).value, 2);
    });
  },

  async "Rhai's variables, functions and closures come back"(moonbox) {
    const options = { language: "rhai" };
    const bytes = await saved(moonbox, options, "let n = 40; let f = |x| x + n; let list = [1, #{a: ()}]; fn twice(x) { x * 2 }");
    await within(moonbox, options, async (box) => {
      same((await (await box.restore(bytes)).run("[f.call(2), list, n]")).value, [42, [1, { a: null }], 40]);
    });
  },

  async "a changed byte anywhere is noticed"(moonbox) {
    const bytes = await saved(moonbox, {}, "x = 1");
    await within(moonbox, {}, async (box) => {
      for (const at of [20, 60, 120, 400, bytes.length >> 1, bytes.length - 1]) {
        const changed = bytes.slice();
        changed[at] ^= 1;
        await refused(box.restore(changed), /^the snapshot is damaged, or somebody has changed it$/);
      }
      await refused(box.restore(bytes.slice(0, -50)), /damaged/);
      await refused(box.restore(bytes.slice(0, 30)), /damaged/);
      await refused(box.restore(new Uint8Array(100)), /^these bytes are not a snapshot of a Repl$/);
      await refused(box.restore(new Uint8Array()), /not a snapshot/);
    });
  },

  async "a key signs snapshots: nothing else is restored"(moonbox) {
    const key = { snapshotKey: "a key of some length" };
    const [plain, signed] = [await saved(moonbox, {}, "x = 1"), await saved(moonbox, key, "x = 1")];
    await within(moonbox, key, async (box) => {
      same((await (await box.restore(signed)).run("return x")).value, 1);
      await refused(box.restore(plain), /^the snapshot is not signed, and this Sandbox has a snapshotKey$/);
      await refused(box.restore(await resealed(signed, (head) => head)), /not signed/);
    });
    await within(moonbox, { snapshotKey: "another key, as long" }, async (box) => refused(box.restore(signed), /signed with another snapshotKey$/));
    await within(moonbox, {}, async (box) => refused(box.restore(signed), /^the snapshot is signed: restore it in a Sandbox with the same/));
    await refused((async () => new moonbox.Sandbox({ snapshotKey: "short" }))(), /at least 16 bytes, not 5/);
  },

  async "another version, build, language, features or size is named"(moonbox) {
    const bytes = await saved(moonbox, {}, "x = 1");
    const changed = (change) => resealed(bytes, change);
    await within(moonbox, {}, async (box) => {
      await refused(box.restore(await changed((head) => ({ ...head, version: "0.0.9" }))), /^the snapshot was made by moonbox 0\.0\.9; this is \d/);
      await refused(box.restore(await changed((head) => ({ ...head, build: "x" }))), /^the snapshot was made by another build of moonbox \d/);
      await refused(box.restore(await changed((head) => ({ ...head, size: 2 ** 40 }))), /too many for maxMemory/);
      await refused(box.restore(await changed((head) => ({ ...head, size: head.size - 4 }))), /damaged/);
      await refused(box.restore(await changed((head) => ({ ...head, places: ["x"] }))), /damaged/);
      await refused(box.restore(await changed(() => null)), /damaged/);
      const old = new TextEncoder().encode("moonbox snapshot 1\n{}\n");
      await refused(box.restore(old), /^the snapshot was made by another version of moonbox, in another format$/);
    });
    await within(moonbox, { language: "rhai" }, async (box) => refused(box.restore(bytes), /with language 'lua'; this one has 'rhai'$/));
    await within(moonbox, FEATURES, async (box) => refused(box.restore(bytes), /with no features; this one has coroutines, metatables/));
  },

  async "a forged memory harms nothing but its own worker"(moonbox) {
    const bytes = await saved(moonbox, {}, "x = 1");
    for (const places of [[0, 0, 0, 0], [2 ** 31 - 8, 2 ** 31 - 8, 8, 8], [4, 8, 65536, 2 ** 31]]) {
      await within(moonbox, { limits: { timeout: 1 } }, async (box) => {
        const forged = await resealed(bytes, (head) => ({ ...head, places }));
        const ended = await box.restore(forged).then((repl) => repl.run("while true do end"), (problem) => problem);
        if (!/WorkerError/.test(ended.name) && !["crashed", "limit"].includes(ended.error?.kind)) throw new Error(String(ended.error ?? ended));
        same((await box.run("return 6 * 7")).value, 42);
      });
    }
  },
};

/** The snapshot with another head, and a digest that fits. */
async function resealed(bytes, change) {
  const lines = [];
  let at = 0;
  for (let line = 0; line < 3; line += 1) {
    const end = bytes.indexOf(10, at);
    lines.push(new TextDecoder().decode(bytes.subarray(at, end)));
    at = end + 1;
  }
  const head = new TextEncoder().encode(`${JSON.stringify(change(JSON.parse(lines[2])))}\n`);
  const content = new Uint8Array([...head, ...bytes.subarray(at)]);
  const digest = Array.from(new Uint8Array(await crypto.subtle.digest("SHA-256", content)), (byte) => byte.toString(16).padStart(2, "0"));
  return new Uint8Array([...new TextEncoder().encode(`${lines[0]}\nsha256 ${digest.join("")}\n`), ...content]);
}
