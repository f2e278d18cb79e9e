/**
 * A host under test, driven by JSON: one request in, one answer out. Used by tests/conformance, in Node over lines of
 * standard input and in a browser through a page.
 */

export function createDriver(moonbox) {
  const { CodeMode, media, Sandbox, Toolbox, ToolError, tool } = moonbox;
  const boxes = new Map();
  const repls = new Map();
  const definitions = new Map();
  let last = 0;

  const functions = {
    add: ({ a, b }) => a + b,
    fail: ({ message, code, retryable }) => {
      throw new ToolError(message, { code, retryable, data: { seen: [1, 2] } });
    },
    rows: ({ count }) => Array.from({ length: count }, (_, n) => ({ id: n + 1, name: `row ${n + 1}`, even: n % 2 === 1 })),
    text: ({ size }) => "x".repeat(size),
    echo: (given) => given.value ?? null,
    nothing: () => null,
    create_issue: ({ title }) => ({ title, number: 7 }),
    list: () => [],
    decoded: ({ text }) => JSON.parse(text),
    sent: () => null,
    later: ({ value }) => [value],
    medium: ({ data, type, name }) => media({ data: Uint8Array.from(atob(data), (char) => char.charCodeAt(0)), type, name }),
  };

  /** Options as JavaScript spells them: requests have the names of the JSON form. */
  function options(given) {
    return Object.fromEntries(Object.entries(given ?? {}).map(([name, value]) => [name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()), value]));
  }

  function toolOf(given) {
    return tool({ ...options(given), hints: options(given.hints), call: functions[given.name] ?? (() => null) });
  }

  function boxOf({ language = "lua", features = [], tools = language, check = false }) {
    const key = JSON.stringify([language, features, tools, check]);
    if (!boxes.has(key)) boxes.set(key, new Sandbox({ tools: (definitions.get(tools) ?? []).map(toolOf), language, luaFeatures: features, check }));
    return boxes.get(key);
  }

  function replOf({ repl }) {
    const found = repls.get(repl);
    if (found === undefined) throw new Error(`there is no repl ${repl}`);
    return found;
  }

  const operations = {
    async tools({ name, tools }) {
      definitions.set(name, tools);
      return { ok: true };
    },
    async open(request) {
      last += 1;
      repls.set(last, await boxOf(request).repl({ limits: options(request.limits) }));
      return { repl: last };
    },
    async run(request) {
      const run = await replOf(request).run(request.source, { limits: options(request.limits) });
      return { run: run.toDict(), for_model: run.forModel(request.max_chars ?? 20_000) };
    },
    async globals(request) {
      return { globals: await replOf(request).globals() };
    },
    async close(request) {
      await replOf(request).close();
      repls.delete(request.repl);
      return { ok: true };
    },
    async codemode({ tools, settings = {}, language = "lua", limits, failures = "return", added = {}, labels }) {
      const box = new Sandbox({ tools: new Toolbox(tools.map(toolOf)), language, failures, limits: options(limits) });
      const mode = new CodeMode(box, options(settings));
      mode.description; // what is added later is described too
      for (const [name, doc] of Object.entries(added)) box.define(name, () => null, { doc });
      const formats = ["openai", "openai-responses", "anthropic", "gemini", "mcp"];
      return {
        catalog: mode.catalog,
        choice: Object.fromEntries(Object.entries(mode.choice).map(([name, value]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value])),
        description: mode.description,
        system_prompt: mode.systemPrompt,
        definitions: Object.fromEntries(formats.map((form) => [form, mode.definitions(form, { labels })])),
      };
    },
    async replies({ tools, settings = {}, calls, formats, failures = "return" }) {
      const box = new Sandbox({ tools: tools.map(toolOf), failures, check: false });
      const mode = new CodeMode(box, options(settings));
      try {
        const answered = [];
        for (const { id, name, arguments: given } of calls) answered.push({ id, name, reply: await mode.reply(name, given) });
        const texts = answered.map(({ reply }) => reply.text);
        return { texts, results: Object.fromEntries(formats.map((form) => [form, moonbox.results(form, answered)])) };
      } finally {
        await mode.close();
        await box.close();
      }
    },
    async check({ tools, sources, language }) {
      const box = new Sandbox({ tools: tools.map(toolOf), language });
      const errors = [];
      for (const source of sources) {
        const repl = box.lazyRepl();
        errors.push((await repl.check(source))?.toDict() ?? null);
        await repl.close();
      }
      await box.close();
      return { errors };
    },
    async levels({ tools, levels }) {
      return { texts: tools.map((given) => levels.map((level) => moonbox.render(toolOf(given), level))) };
    },
    async bind({ tool: given, arguments: args, first_index }) {
      const made = toolOf(given);
      try {
        return { bound: made.binder.bind(args, made.path, first_index) };
      } catch (problem) {
        return { problem: problem.message };
      }
    },
    async end() {
      for (const box of boxes.values()) await box.close();
      return { ok: true };
    },
  };

  return async function answer(request) {
    try {
      return { id: request.id, ...(await operations[request.op](request)) };
    } catch (problem) {
      return { id: request.id, failed: `${problem.name}: ${problem.message}` };
    }
  };
}

/** JSON text of an answer; integers beyond 53 bits, and floats that look like them, are written as they are. */
export function written(answer) {
  const big = [];
  const special = (item) => typeof item === "bigint" || (Number.isInteger(item) && !Number.isSafeInteger(item));
  const shown = (item) => (typeof item === "bigint" ? String(item) : item.toExponential());
  const text = JSON.stringify(answer, (_, item) => (special(item) ? `\u0001${big.push(shown(item)) - 1}` : item));
  return text.replace(/"\\u0001(\d+)"/g, (_, at) => big[Number(at)]);
}
