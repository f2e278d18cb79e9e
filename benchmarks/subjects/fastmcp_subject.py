"""FastMCP's code mode with its own sandbox provider: a fresh one for each execution, as it ships."""

from __future__ import annotations

import asyncio

import work
from fastmcp.experimental.transforms.code_mode import MontySandboxProvider

provider = MontySandboxProvider(limits=None)
kept: dict[tuple[int, str], list[dict[str, object]]] = {}


async def add(a: int, b: int) -> int:
    return a + b


async def get(count: int, shape: str = "flat") -> list[dict[str, object]]:
    if (count, shape) not in kept:
        kept[count, shape] = work.rows(count, shape)
    return kept[count, shape]


async def slow() -> int:
    await asyncio.sleep(work.SLOW)
    return 1


def run(source: str, times: int = 1, runs: int = 1) -> float:
    async def loop() -> float:
        before = work.Stopwatch()
        for _ in range(runs):
            await provider.run(source, external_functions={"add": add, "get": get, "slow": slow})
        return before.since(times * runs)

    return asyncio.run(loop())


FIB = "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
LOOP = "def loop(n):\n    t = 0\n    for i in range(1, n + 1):\n        t = t + i % 7\n    return t\n"

START = """
import asyncio
from fastmcp.experimental.transforms.code_mode import MontySandboxProvider
asyncio.run(MontySandboxProvider(limits=None).run("return 1"))
"""

work.serve(
    {
        "start": lambda: work.started(START),
        "cold": lambda: run("return 1"),
        "fresh": lambda: run("return 1"),
        "empty": lambda: run("return 1", runs=50),
        "call": lambda n=work.CALLS: run(
            f"for i in range({n}):\n    await add(i, 1)\nreturn 1", n, work.runs_of_calls(n)
        ),
        "batch": lambda: run(
            "import asyncio\nfor k in range(20):\n"
            f"    await asyncio.gather(*[add(i, 1) for i in range({work.BATCH})])\nreturn 1",
            20 * work.BATCH,
        ),
        "fib": lambda: run(FIB + f"return fib({work.FIB})"),
        "loop": lambda: run(LOOP + f"return loop({work.LOOP})"),
        "rows_in": lambda n=work.ROWS, shape="flat": run(
            f"t = 0.0\nfor r in await get({n}, '{shape}'):\n    t = t + r['amount']\nreturn t"
        ),
        "rows_out": lambda n=work.ROWS, shape="flat": run(f"return await get({n}, '{shape}')"),
        "result": lambda n: run(f"return 'x' * {n}", runs=min(50, work.runs_of_result(n))),
        "one_off": lambda: run("return 1", runs=50),
        "parallel": lambda: run(
            f"import asyncio\nawait asyncio.gather(*[slow() for _ in range({work.BATCH})])\nreturn 1"
        ),
    }
)
