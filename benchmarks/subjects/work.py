"""The work that every subject does, and the loop in which it is asked to: one line of JSON in, one out."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

FIB = 27
LOOP = 3_000_000
CALLS = 400
BATCH = 20
ROWS = 20_000
SLOW = 0.05
LUA_FIB = "function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end"
LUA_LOOP = "function loop(n) local t = 0 for i = 1, n do t = t + i % 7 end return t end"


def rows(count: int = ROWS) -> list[dict[str, Any]]:
    """Rows of five fields."""
    return [{"id": i, "name": f"user {i}", "amount": i * 1.5, "ok": i % 2 == 0, "city": "Berlin"} for i in range(count)]


def timed(work: Callable[[], object], times: int = 1) -> float:
    """Seconds for one of `times`."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) / times


def proportional_memory(pid: int) -> int:
    """Bytes of a process, shared pages divided among those that share them (Linux)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


def serve(measures: dict[str, Callable[..., float]]) -> None:
    """Answer `{"row": name, "args": [...]}` with `{"value": number}`, or null where the subject has no such thing."""
    print(json.dumps({"rows": sorted(measures)}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        measure = measures.get(asked["row"])
        try:
            answer: dict[str, Any] = {"value": None if measure is None else measure(*asked["args"])}
        except Exception as problem:  # noqa: BLE001 - told to the one who asked, and the others go on
            answer = {"value": None, "problem": f"{type(problem).__name__}: {problem}"[:300]}
        print(json.dumps(answer), flush=True)
