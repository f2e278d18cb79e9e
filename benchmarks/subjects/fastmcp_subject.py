"""FastMCP's code mode with its own sandbox provider: a fresh one for each execution, as it ships."""

from __future__ import annotations

import asyncio
import time

import work
from fastmcp.experimental.transforms.code_mode import MontySandboxProvider

provider = MontySandboxProvider(limits=None)
by_size: dict[int, list[dict[str, object]]] = {}


async def add(a: int, b: int) -> int:
    return a + b


async def get(count: int) -> list[dict[str, object]]:
    return by_size.setdefault(count, work.rows(count))


async def slow() -> int:
    await asyncio.sleep(work.SLOW)
    return 1


def run(source: str, times: int = 1) -> float:
    async def once() -> float:
        began = time.perf_counter()
        await provider.run(source, external_functions={"add": add, "get": get, "slow": slow})
        return (time.perf_counter() - began) / times

    return asyncio.run(once())


FIB = "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
LOOP = "def loop(n):\n    t = 0\n    for i in range(1, n + 1):\n        t = t + i % 7\n    return t\n"

work.serve(
    {
        "cold": lambda: run("return 1"),
        "fresh": lambda: run("return 1"),
        "empty": lambda: run("return 1"),
        "call": lambda n=work.CALLS: run(f"for i in range({n}):\n    await add(i, 1)\nreturn 1", n),
        "batch": lambda: run(
            "import asyncio\nfor k in range(20):\n"
            f"    await asyncio.gather(*[add(i, 1) for i in range({work.BATCH})])\nreturn 1",
            20 * work.BATCH,
        ),
        "fib": lambda: run(FIB + f"return fib({work.FIB})"),
        "loop": lambda: run(LOOP + f"return loop({work.LOOP})"),
        "rows_in": lambda n=work.ROWS: run(f"t = 0.0\nfor r in await get({n}):\n    t = t + r['amount']\nreturn t"),
        "rows_out": lambda n=work.ROWS: run(f"return await get({n})"),
        "parallel": lambda: run(
            f"import asyncio\nawait asyncio.gather(*[slow() for _ in range({work.BATCH})])\nreturn 1"
        ),
    }
)
