"""pydantic-monty."""

from __future__ import annotations

import asyncio
import subprocess
import threading
import time
from pathlib import Path

import work
from pydantic_monty import AsyncMonty, Monty

pool = Monty(max_processes=64).__enter__()  # by default as many as processors, and a checkout waits for a free one
session = pool.checkout().__enter__()
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


FIB = "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)"
LOOP = "def loop(n):\n    t = 0\n    for i in range(1, n + 1):\n        t = t + i % 7\n    return t"


def in_session(source: str, times: int = 1, runs: int = 1, **functions: object) -> float:
    """In a session of its own: a session may suspend only so often."""
    with pool.checkout() as one:
        one.feed_run("1")
        return work.repeated(lambda: one.feed_run(source, external_lookup=functions), runs, times)


def cold() -> float:
    def once() -> None:
        with Monty() as fresh, fresh.checkout() as one:
            one.feed_run("1")

    return work.timed(once)


def fresh(*, runs: bool = True) -> float:
    def each() -> None:
        for _ in range(20):
            with pool.checkout() as one:
                if runs:
                    one.feed_run("1")

    return work.timed(each, 20)


def compute(definition: str, call: str) -> float:
    session.feed_run(definition)
    return work.timed(lambda: session.feed_run(call))


def rows_in(count: int = work.ROWS, shape: str = "flat") -> float:
    get(count, shape)
    return in_session(f"t = 0.0\nfor r in get({count}, '{shape}'):\n    t = t + r['amount']\nt", get=get)


def rows_out(count: int = work.ROWS, shape: str = "flat") -> float:
    session.feed_run(f"keep = get({count}, '{shape}')", external_lookup={"get": get})
    return work.timed(lambda: session.feed_run("keep"))


def one_off() -> float:
    def each() -> None:
        for _ in range(work.ONE_OFF):
            with pool.checkout() as one:
                one.feed_run("1")

    return work.timed(each, work.ONE_OFF)


def memory_after() -> float:
    """Of a session that has worked on rows and let them go."""
    with Monty(max_processes=10) as many:
        before = set(work.family())
        sessions = [many.checkout().__enter__() for _ in range(10)]
        for one in sessions:
            one.feed_run("rows = get(5000, 'nested')\nlen(rows)", external_lookup={"get": get})
            one.feed_run("rows = None")
        own = [pid for pid in work.family() if pid not in before]
        size = sum(work.proportional_memory(pid) for pid in own) / len(sessions)
        for one in sessions:
            one.__exit__(None, None, None)
    return size


def in_parallel() -> float:
    source = f"import asyncio\nawait asyncio.gather(*[slow() for _ in range({work.BATCH})])"

    async def once() -> float:
        async with AsyncMonty() as many, many.checkout() as one:
            await one.feed_run("1")
            began = time.perf_counter()
            await one.feed_run(source, external_lookup={"slow": slow})
            return time.perf_counter() - began

    return asyncio.run(once())


def batched() -> float:
    source = (
        f"import asyncio\nfor k in range(20):\n    await asyncio.gather(*[quick(i, 1) for i in range({work.BATCH})])"
    )

    async def quick(a: int, b: int) -> int:
        return a + b

    async def once() -> float:
        async with AsyncMonty() as many, many.checkout() as one:
            await one.feed_run("1")
            began = time.perf_counter()
            await one.feed_run(source, external_lookup={"quick": quick})
            return (time.perf_counter() - began) / (20 * work.BATCH)

    return asyncio.run(once())


def memory() -> float:
    import os

    with Monty(max_processes=50) as many:
        sessions = [many.checkout().__enter__() for _ in range(50)]
        for one in sessions:
            one.feed_run("1")
        found = subprocess.run(["pgrep", "-P", str(os.getpid())], capture_output=True, text=True, check=False)
        sizes = sorted(
            work.proportional_memory(int(pid))
            for pid in found.stdout.split()
            if Path(f"/proc/{pid}/smaps_rollup").exists()
        )
        for one in sessions:
            one.__exit__(None, None, None)
    return sum(sizes[-50:]) / 50


START = "from pydantic_monty import Monty\nwith Monty() as pool, pool.checkout() as one: one.feed_run('1')"
STEP = "t = 0\nfor i in range(1, 1001):\n    t = t + i\nadd(t, 1)"


def in_threads(repls: int) -> float:
    with Monty(max_processes=repls) as many:
        sessions = [many.checkout().__enter__() for _ in range(repls)]
        per = max(20, 400 // repls)

        def work_on(one: object) -> None:
            for _ in range(per):
                one.feed_run(STEP, external_lookup={"add": add})  # type: ignore[attr-defined]

        threads = [threading.Thread(target=work_on, args=(one,)) for one in sessions]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - began
        for one in sessions:
            one.__exit__(None, None, None)
    return repls * per / took


async def in_tasks(repls: int) -> float:
    async with AsyncMonty(max_processes=repls) as many:
        sessions = [await many.checkout().__aenter__() for _ in range(repls)]
        per = max(20, 400 // repls)

        async def work_on(one: object) -> None:
            for _ in range(per):
                await one.feed_run(STEP, external_lookup={"add": add})  # type: ignore[attr-defined]

        for one in sessions:
            await one.feed_run("1")
        began = time.perf_counter()
        await asyncio.gather(*map(work_on, sessions))
        took = time.perf_counter() - began
        for one in sessions:
            await one.__aexit__(None, None, None)
    return repls * per / took


def throughput(repls: int) -> float:
    """With threads or asyncio, whichever does more."""
    return max(in_threads(repls), asyncio.run(in_tasks(repls)))


work.serve(
    {
        "start": lambda: work.started(START),
        "cold": cold,
        "open": lambda: fresh(runs=False),
        "fresh": fresh,
        "empty": lambda: work.repeated(lambda: session.feed_run("1"), work.EMPTY),
        "call": lambda n=work.CALLS: in_session(
            f"for i in range({n}):\n    add(i, 1)", n, work.runs_of_calls(n), add=add
        ),
        "batch": batched,
        "fib": lambda: compute(FIB, f"fib({work.FIB})"),
        "loop": lambda: compute(LOOP, f"loop({work.LOOP})"),
        "rows_in": rows_in,
        "result": lambda n: in_session(f"'x' * {n}", runs=work.runs_of_result(n)),
        "one_off": one_off,
        "memory_after": memory_after,
        "rows_out": rows_out,
        "parallel": in_parallel,
        "memory": memory,
        "throughput": throughput,
    }
)
