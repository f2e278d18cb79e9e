"""moonbox."""

from __future__ import annotations

import asyncio
import threading
import time

import work

from moonbox import Limits, Sandbox

kept: dict[tuple[int, str], list[dict[str, object]]] = {}


def add(a: int, b: int) -> int:
    return a + b


def get(count: int, shape: str = "flat") -> list[dict[str, object]]:
    if (count, shape) not in kept:
        kept[count, shape] = work.rows(count, shape)
    return kept[count, shape]


async def slow() -> int:
    await asyncio.sleep(work.SLOW)
    return 1


limits = Limits(max_tool_calls=None, timeout=60)
box = Sandbox([add, get, slow], limits=limits, min_workers=4, max_workers=400)
repl = box.repl().__enter__()


def value(source: str) -> object:
    return repl.run(source).unwrap()


def cold() -> float:
    def once() -> None:
        with Sandbox(min_workers=0) as fresh:
            fresh.run("1").unwrap()

    return work.timed(once)


def fresh(*, runs: bool = True) -> float:
    """From the warm pool: the spares are there before the clock starts."""
    with Sandbox(min_workers=30, max_workers=64) as warm:
        warm.run("1").unwrap()  # the others' pools have served before as well
        deadline = time.monotonic() + 10
        while warm.workers.spare < 30 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)
        for _ in range(50):  # the others' figures are those of a processor that is awake
            value("1")

        def each() -> None:
            for _ in range(20):
                with warm.repl() as one:
                    if runs:
                        one.run("1").unwrap()

        return work.timed(each, 20)


def compute(definition: str, call: str) -> float:
    """In a Sandbox of its own: how fast a global is found depends on the seed of Lua's hashes, which differs."""
    with Sandbox(limits=limits) as fresh, fresh.repl() as one:
        one.run(definition).unwrap()
        return work.timed(lambda: one.run(call).unwrap())


def rows_in(count: int = work.ROWS, shape: str = "flat") -> float:
    get(count, shape)
    call = f'tools.get{{count = {count}, shape = "{shape}"}}'
    return work.timed(lambda: value(f"local t = 0.0 for _, r in ipairs({call}) do t = t + r.amount end return t"))


def rows_out(count: int = work.ROWS, shape: str = "flat") -> float:
    value(f'keep = tools.get{{count = {count}, shape = "{shape}"}}')
    return work.timed(lambda: value("return keep"))


def result(size: int) -> float:
    with Sandbox(limits=Limits(max_string=1 << 30, max_memory=2 << 30)) as large, large.repl() as one:
        one.run("return 1").unwrap()
        return work.repeated(lambda: one.run(f"return ('x'):rep({size})").unwrap(), work.runs_of_result(size))


def one_off() -> float:
    """Sustained: more than there are spares for."""
    return work.timed(lambda: [box.run("1").unwrap() for _ in range(work.ONE_OFF)], work.ONE_OFF)


def memory_after() -> float:
    """Of a Repl that has worked on rows and let them go."""
    repls = [box.repl().__enter__() for _ in range(10)]
    try:
        for one in repls:
            one.run("local rows = tools.get{count = 5000, shape = 'nested'} return #rows").unwrap()
            one.run("return 1").unwrap()
        return sum(work.proportional_memory(one.worker_pid or 0) for one in repls) / len(repls)
    finally:
        for one in repls:
            one.close()


def memory() -> float:
    repls = [box.repl().__enter__() for _ in range(50)]
    try:
        time.sleep(0.5)
        return sum(work.proportional_memory(one.worker_pid or 0) for one in repls) / len(repls)
    finally:
        for one in repls:
            one.close()


START = "from moonbox import Sandbox\nwith Sandbox(min_workers=0) as box: box.run('1').unwrap()"
STEP = "local t = 0 for i = 1, 1000 do t = t + i end return tools.add{a = t, b = 1}"


def in_threads(repls: int) -> float:
    members = [box.repl().__enter__() for _ in range(repls)]
    per = max(20, 400 // repls)

    def work_on(one: object) -> None:
        for _ in range(per):
            one.run(STEP).unwrap()  # type: ignore[attr-defined]

    threads = [threading.Thread(target=work_on, args=(one,)) for one in members]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    for one in members:
        one.close()
    return repls * per / took


async def in_tasks(repls: int) -> float:
    members = [box.repl() for _ in range(repls)]
    per = max(20, 400 // repls)

    async def work_on(one: object) -> None:
        for _ in range(per):
            (await one.arun(STEP)).unwrap()  # type: ignore[attr-defined]

    for one in members:
        await one.arun("1")
    began = time.perf_counter()
    await asyncio.gather(*map(work_on, members))
    took = time.perf_counter() - began
    for one in members:
        one.close()
    return repls * per / took


def throughput(repls: int) -> float:
    """Runs a second, each of them a little arithmetic and one call; with threads or asyncio, whichever does more."""
    return max(in_threads(repls), asyncio.run(in_tasks(repls)))


batch = f"local fs = {{}} for i = 1, {work.BATCH} do fs[i] = function() return tools.add(i, 1) end end parallel(fs)"
sleepers = f"local fs = {{}} for i = 1, {work.BATCH} do fs[i] = function() return tools.slow() end end parallel(fs)"

work.serve(
    {
        "start": lambda: work.started(START),
        "cold": cold,
        "open": lambda: fresh(runs=False),
        "fresh": fresh,
        "empty": lambda: work.repeated(lambda: value("1"), work.EMPTY),
        "call": lambda n=work.CALLS: work.repeated(
            lambda: value(f"for i = 1, {n} do tools.add(i, 1) end"), work.runs_of_calls(n), n
        ),
        "batch": lambda: work.timed(lambda: value(f"for k = 1, 20 do {batch} end"), 20 * work.BATCH),
        "fib": lambda: compute(work.LUA_FIB, f"fib({work.FIB})"),
        "loop": lambda: compute(work.LUA_LOOP, f"loop({work.LOOP})"),
        "rows_in": rows_in,
        "rows_out": rows_out,
        "result": result,
        "one_off": one_off,
        "memory_after": memory_after,
        "parallel": lambda: work.timed(lambda: value(sleepers)),
        "memory": memory,
        "throughput": throughput,
    }
)
