"""smolagents' local executor: an interpreter in the host process."""

from __future__ import annotations

import time

import work
from smolagents.local_python_executor import LocalPythonExecutor

kept: dict[tuple[int, str], list[dict[str, object]]] = {}


def add(a: int, b: int) -> int:
    return a + b


def get(count: int, shape: str = "flat") -> list[dict[str, object]]:
    if (count, shape) not in kept:
        kept[count, shape] = work.rows(count, shape)
    return kept[count, shape]


def slow() -> int:
    time.sleep(work.SLOW)
    return 1


def made() -> LocalPythonExecutor:
    executor = LocalPythonExecutor(additional_authorized_imports=[], timeout_seconds=300)
    executor.send_tools({"add": add, "get": get, "slow": slow})
    return executor


executor = made()
FIB = "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
LOOP = "t = 0\nfor i in range(1, {n} + 1):\n    t = t + i % 7\nt"
FEWER_FIB, FEWER_LOOP = 15, 30_000  # the whole would take minutes: measured smaller and scaled up


def fib_calls(n: int) -> int:
    a, b = 1, 1
    for _ in range(n):
        a, b = b, a + b + 1
    return a


def rows_out(count: int = work.ROWS, shape: str = "flat") -> float:
    executor(f"keep = get({count}, '{shape}')")
    return work.timed(lambda: executor("keep"))


START = """
from smolagents.local_python_executor import LocalPythonExecutor
executor = LocalPythonExecutor(additional_authorized_imports=[])
executor.send_tools({})
executor("1")
"""

work.serve(
    {
        "start": lambda: work.started(START),
        "cold": lambda: work.timed(lambda: made()("1")),
        "fresh": lambda: work.timed(lambda: [made()("1") for _ in range(20)], 20),
        "empty": lambda: work.repeated(lambda: executor("1"), 200),
        "call": lambda n=work.CALLS: work.repeated(
            lambda: executor(f"for i in range({n}):\n    add(i, 1)"), work.runs_of_calls(n), n
        ),
        "fib": lambda: (
            work.timed(lambda: executor(FIB + f"fib({FEWER_FIB})")) * fib_calls(work.FIB) / fib_calls(FEWER_FIB)
        ),
        "loop": lambda: work.timed(lambda: executor(LOOP.format(n=FEWER_LOOP))) * work.LOOP / FEWER_LOOP,
        "rows_in": lambda n=work.ROWS, shape="flat": work.timed(
            lambda: executor(f"t = 0.0\nfor r in get({n}, '{shape}'):\n    t = t + r['amount']\nt")
        ),
        "result": lambda n: work.repeated(lambda: executor(f"'x' * {n}"), min(50, work.runs_of_result(n))),
        "one_off": lambda: work.timed(lambda: [made()("1") for _ in range(work.ONE_OFF)], work.ONE_OFF),
        "rows_out": rows_out,
        "parallel": lambda: work.timed(lambda: executor(f"for i in range({work.BATCH}):\n    slow()")),
    }
)
