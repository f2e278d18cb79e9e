"""The way of one run through the host's code: Python calls, modules, and switches between modules.

python benchmarks/run_path.py            # the figures
python benchmarks/run_path.py --trace    # every call in order
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import moonbox
from moonbox import Sandbox, tool

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from moonbox import Repl

ROOT = str(Path(moonbox.__file__).parent)


@tool
def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


_CALLS: list[tuple[str, str]] = []


def note(frame: FrameType, event: str, _: Any) -> None:
    """Take down a Python call inside moonbox, whichever thread makes it."""
    if event == "call" and frame.f_code.co_filename.startswith(ROOT):
        name = frame.f_code.co_filename.removeprefix(ROOT).strip("/").removesuffix(".py")
        _CALLS.append((name, frame.f_code.co_qualname))


def traced(work: Callable[[], object], times: int = 10) -> list[tuple[str, str]]:
    """(module, function) of every Python call inside moonbox, in all threads, while `work` runs: of the shortest time.

    Where the machine is busy, a thread that waits for another looks again now and then.
    """
    found = []
    for _ in range(times):
        _CALLS.clear()
        work()
        found.append(list(_CALLS))
    return min(found, key=len)


def further_call(repl: Repl, call: str) -> list[tuple[str, str]]:
    """What one more call of a script adds, whichever it is."""
    few, many = (traced(lambda n=n: repl.run(f"for i = 1, {n} do {call} end")) for n in (2, 12))  # type: ignore[misc]
    added = Counter(many) - Counter(few)
    return [name for name, count in added.items() for _ in range(round(count / 10))]


def report(title: str, calls: list[tuple[str, str]]) -> None:
    modules = [module for module, _ in calls]
    switches = sum(one != other for one, other in itertools.pairwise(modules))
    print(f"{title:32} {len(calls):4} calls   {len(set(modules)):3} modules   {switches:4} switches")
    if "--trace" in sys.argv:
        for module, function in calls:
            print(f"    {module:28} {function}")


def wait_for_spare(box: Sandbox) -> None:
    """The usual case: a worker is there when a Repl is opened."""
    deadline = time.monotonic() + 10
    while not box.workers.spare and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)  # until the pool's own thread is quiet


def main() -> None:
    threading.setprofile(note)  # before the threads begin
    sys.setprofile(note)
    with Sandbox([add]) as box, box.repl() as repl:
        for _ in range(3):
            box.run("return 1")
            repl.run("return 1")
            repl.run("return tools.add(1)")
        repl.run("for i = 1, 45 do tools.add(1) end")  # the shapes of its first results are learned
        repl.run("return 1")  # the latest run decides in which thread the next one begins
        wait_for_spare(box)
        report('repl.run("return 1")', traced(lambda: repl.run("return 1")))
        repl.run("return tools.add(1)")
        report('repl.run("return tools.add(1)")', traced(lambda: repl.run("return tools.add(1)")))
        report("each further call of a typed tool", further_call(repl, "tools.add{a = 1}"))
        repl.run("return 1")
        report('box.run("return 1")', traced(lambda: box.run("return 1"), 1))


if __name__ == "__main__":
    main()
