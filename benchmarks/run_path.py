"""The way of one run through the host's code: Python calls, modules, and switches between modules.

python benchmarks/run_path.py            # the figures
python benchmarks/run_path.py --trace    # every call in order
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import moonbox
from moonbox import Sandbox, tool

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

ROOT = str(Path(moonbox.__file__).parent)


@tool
def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


def traced(work: Callable[[], object]) -> list[tuple[str, str]]:
    """(module, function) of every Python call inside moonbox, in all threads, while `work` runs."""
    calls: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            name = frame.f_code.co_filename.removeprefix(ROOT).strip("/").removesuffix(".py")
            calls.append((name, frame.f_code.co_qualname))

    threading.setprofile_all_threads(note) if hasattr(threading, "setprofile_all_threads") else None
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile_all_threads(None) if hasattr(threading, "setprofile_all_threads") else None
    return calls


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
    with Sandbox([add]) as box, box.repl() as repl:
        for _ in range(3):
            box.run("return 1")
            repl.run("return 1")
            repl.run("return tools.add(1)")
        wait_for_spare(box)
        report('repl.run("return 1")', traced(lambda: repl.run("return 1")))
        report('repl.run("return tools.add(1)")', traced(lambda: repl.run("return tools.add(1)")))
        report('box.run("return 1")', traced(lambda: box.run("return 1")))


if __name__ == "__main__":
    main()
