/** One subject's figures as JSON: node bench.mjs moonbox|monty|quickjs. Times are the best of several rounds, in ms. */

const ROWS = Array.from({ length: 20_000 }, (_, id) => ({ id, name: `row ${id}`, amount: id * 1.5, ok: id % 2 === 0, tag: "x" }));

const subjects = {
  async moonbox() {
    const { Sandbox, tool } = await import("../../js/dist/index.js");
    const tools = [
      tool({ name: "one", parameters: { type: "object" }, call: () => 1 }),
      tool({ name: "rows", parameters: { type: "object" }, call: () => ROWS }),
    ];
    const limits = { maxToolCalls: null };
    const box = new Sandbox({ tools, limits });
    const repl = await box.repl();
    const run = async (source) => (await repl.run(source)).unwrap();
    return {
      start: async () => (await box.repl()).close(),
      run: () => run("return 1 + 1"),
      call: () => run("for i = 1, 100 do tools.one{} end return 1"),
      fib: () => run("local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end return fib(27)"),
      rows_in: () => run("return #tools.rows{}"),
      rows_out: async () => {
        await run("if not made then made = {} for i = 1, 20000 do made[i] = {id = i, name = 'row ' .. i, amount = i * 1.5, ok = true, tag = 'x'} end end");
        return (await run("return made")).length;
      },
      idle: async () => box.repl(),
      close: () => box.close(),
    };
  },
  async monty() {
    const { Monty, runMontyAsync } = await import("@pydantic/monty");
    const fib = "def fib(n):\n    if n < 2:\n        return n\n    return fib(n - 1) + fib(n - 2)\nfib(27)";
    const made = "[{'id': i, 'name': 'row ' + str(i), 'amount': i * 1.5, 'ok': True, 'tag': 'x'} for i in range(20000)]";
    return {
      start: async () => new Monty("1"),
      run: async () => new Monty("1 + 1").run(),
      call: () => runMontyAsync(new Monty("for i in range(100):\n    one()\n1"), { externalFunctions: { one: async () => 1 } }),
      fib: async () => new Monty(fib).run(),
      rows_in: () => runMontyAsync(new Monty("len(rows())"), { externalFunctions: { rows: async () => ROWS } }),
      rows_out: async () => new Monty(made).run().length,
      idle: async () => new Monty("1"),
      close: async () => undefined,
    };
  },
  async quickjs() {
    const { getQuickJS } = await import("quickjs-emscripten");
    const QuickJS = await getQuickJS();
    const open = () => {
      const vm = QuickJS.newContext();
      // Tools answer with JSON text, as is usual there: a value at a time would cost far more.
      for (const [name, value] of [["one", 1], ["rows", ROWS]]) {
        const made = vm.newFunction(name, () => vm.newString(JSON.stringify(value)));
        vm.setProp(vm.global, name, made);
        made.dispose();
      }
      return vm;
    };
    const vm = open();
    const run = async (source) => {
      const value = vm.unwrapResult(vm.evalCode(source));
      const dumped = vm.dump(value);
      value.dispose();
      return dumped;
    };
    return {
      start: async () => open().dispose(),
      run: () => run("1 + 1"),
      call: () => run("for (let i = 0; i < 100; i++) JSON.parse(one()); 1"),
      fib: () => run("function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) } fib(27)"),
      rows_in: () => run("JSON.parse(rows()).length"),
      rows_out: async () => {
        const text = await run("globalThis.made ??= Array.from({length: 20000}, (_, i) => ({id: i, name: 'row ' + i, amount: i * 1.5, ok: true, tag: 'x'})); JSON.stringify(made)");
        return JSON.parse(text).length;
      },
      idle: async () => open(),
      close: async () => undefined,
    };
  },
};

async function best(work, rounds) {
  let least = Infinity;
  for (let round = 0; round < rounds; round += 1) {
    const began = performance.now();
    await work();
    least = Math.min(least, performance.now() - began);
  }
  return least;
}

const rounds = Number(process.argv[3] ?? 10);
const began = performance.now();
const subject = await subjects[process.argv[2]]();
await subject.run();
const cold = performance.now() - began;
const figures = { cold };
figures.start = await best(subject.start, rounds);
figures.run = await best(subject.run, 10 * rounds);
figures.call = (await best(subject.call, rounds)) / 100;
figures.fib = await best(subject.fib, rounds);
figures.rows_in = await best(subject.rows_in, rounds);
figures.rows_out = await best(subject.rows_out, rounds);
globalThis.gc?.();
const before = process.memoryUsage().rss;
const kept = [];
for (let count = 0; count < 10; count += 1) kept.push(await subject.idle());
figures.memory = Math.max(0, process.memoryUsage().rss - before) / kept.length;
process.stdout.write(`${JSON.stringify(figures)}\n`);
await subject.close();
process.exit(0);
