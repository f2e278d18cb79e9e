"""The work that every subject does, and the loop in which it is asked to: one line of JSON in, one out."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FIB = 27
LOOP = 3_000_000
CALLS = 400
BATCH = 20
ROWS = 20_000
SLOW = 0.05
ONE_OFF = 500
LUA_FIB = "function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end"
LUA_LOOP = "function loop(n) local t = 0 for i = 1, n do t = t + i % 7 end return t end"


def rows(count: int = ROWS, shape: str = "flat") -> list[dict[str, Any]]:
    """Rows of five fields: all alike, with a list inside, or with other fields in every row."""
    if shape == "nested":
        return [
            {"id": i, "name": f"user {i}", "amount": i * 1.5, "tags": ["a", "b"], "ok": i % 2 == 0}
            for i in range(count)
        ]
    if shape == "unlike":
        return [
            {"id": i, "amount": i * 1.5, f"field {i % 11}": None if i % 3 else "x", "at": {"x": i}, f"{i % 5}": [i]}
            for i in range(count)
        ]
    return [{"id": i, "name": f"user {i}", "amount": i * 1.5, "ok": i % 2 == 0, "city": "Berlin"} for i in range(count)]


class Timed(float):
    """Seconds by the clock for one of several, and `cpu`: those of all processes involved, by the kernel's count."""

    cpu: float | None = None


def timed(work: Callable[[], object], times: int = 1) -> Timed:
    """Seconds for one of `times`."""
    known = family() if Path("/proc/self/schedstat").exists() else []
    others = time_of(known)
    began, own = time.perf_counter(), time.process_time()
    work()
    own, took = time.process_time() - own, Timed((time.perf_counter() - began) / times)
    if known:
        # Those that were there already first: to look for others takes longer than most work, and they go on meanwhile.
        after = time_of(known)
        new = [pid for pid in family() if pid not in known]
        took.cpu = (own + after + time_of(new, ended=False) - others) / times
    return took


def started(program: str) -> Timed:
    """Seconds for a Python program in a process of its own, from the start of the interpreter to its end."""
    before = time_of_ended()
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    took = Timed(time.perf_counter() - began)
    took.cpu = time_of_ended() - before
    return took


def time_of_ended() -> float:
    """Processor time of the processes below this one that have ended, to the microsecond."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def time_of(pids: list[int], *, ended: bool = True) -> float:
    """Processor time of these processes other than this one, of their children that have ended, and (`ended`) of those
    of this process (Linux)."""
    total = time_of_ended() if ended else 0.0
    for pid in pids:
        with suppress(OSError):
            if pid == os.getpid():
                continue
            tasks = Path(f"/proc/{pid}/task").iterdir()
            total += sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")  # children that have ended
    return total


def family() -> list[int]:
    """This process and those below it."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                below.setdefault(int(parent), []).append(int(entry.name))
    members = [os.getpid()]
    for pid in members:
        members += below.get(pid, [])
    return members


@contextmanager
def pinned(processors: set[int]) -> Iterator[None]:
    """All of these processes on these processors only."""
    before = os.sched_getaffinity(0) if processors else set()
    _move(processors)
    try:
        yield
    finally:
        _move(before)


def _move(processors: set[int]) -> None:
    for pid in family() if processors else ():
        with suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                os.sched_setaffinity(int(task.name), processors)


def proportional_memory(pid: int) -> int:
    """Bytes of a process, shared pages divided among those that share them (Linux)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


def serve(measures: dict[str, Callable[..., float]]) -> None:
    """Answer `{"row": name, "args": [...], "pinned": bool}` with `{"value": number, "cpu": number or null}`.

    The value is null where the subject has no such thing.
    """
    print(json.dumps({"rows": sorted(measures)}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        measure = measures.get(asked["row"])
        everywhere = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
        chosen = {max(everywhere)} if asked.get("pinned") and everywhere else everywhere
        try:
            with pinned(chosen):
                value = None if measure is None else measure(*asked["args"])
            answer: dict[str, Any] = {"value": value, "cpu": getattr(value, "cpu", None)}
        except Exception as problem:  # noqa: BLE001 - told to the one who asked, and the others go on
            answer = {"value": None, "problem": f"{type(problem).__name__}: {problem}"[:300]}
        print(json.dumps(answer), flush=True)
