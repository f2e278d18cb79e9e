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
EMPTY = 500
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


class Stopwatch:
    """Begins when it is made."""

    def __init__(self) -> None:
        self._known = family() if Path("/proc/self/schedstat").exists() else []
        self._others = time_of(self._known) + time_of_ended()
        self._began, self._own = time.perf_counter(), time.process_time()

    def since(self, times: int = 1) -> Timed:
        """Seconds for one of `times`."""
        own, took = time.process_time() - self._own, Timed((time.perf_counter() - self._began) / times)
        if self._known:
            # Those that were there already first: to look for others takes longer than some work, and they go on then.
            others = time_of(self._known) + time_of_ended()
            others += time_of([pid for pid in family() if pid not in self._known])
            took.cpu = (own + others - self._others) / times
        return took


def timed(work: Callable[[], object], times: int = 1) -> Timed:
    """Seconds for one of `times`."""
    watch = Stopwatch()
    work()
    return watch.since(times)


def repeated(work: Callable[[], object], runs: int, each: int = 1) -> Timed:
    """Seconds for one of `each` things that a run does, in a tight loop of so many runs."""

    def loop() -> None:
        for _ in range(runs):
            work()

    return timed(loop, runs * each)


def runs_of_result(size: int) -> int:
    """Small results are measured in as many runs as an empty run is, large ones in one."""
    return max(1, min(EMPTY, 1_000_000 // size))


def runs_of_calls(calls: int) -> int:
    """So many runs that all of them make as many calls as the longest script."""
    return max(1, CALLS // calls)


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


def time_of(pids: list[int]) -> float:
    """Processor time of these processes but for this one, and of their children that have ended (Linux)."""
    total = 0.0
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
