"""What is made and dropped leaves nothing behind: after a thousand of each, no more objects are alive than before."""

from __future__ import annotations

import gc
import types
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import CodeMode, Sandbox, Tool, Toolbox

if TYPE_CHECKING:
    from collections.abc import Callable

TIMES = 1000
SPARE = 20
"""So many objects of a class may be left by what is kept for the next: workers, threads, the latest script."""


def double(n: int) -> int:
    """Twice n."""
    return 2 * n


TOOL = Tool.from_function(double)


def alive() -> Counter[str]:
    for _ in range(2):  # what an object of C holds is garbage only when that object is gone
        gc.collect()
    found: Counter[str] = Counter()
    for thing in gc.get_objects():
        kind = thing if isinstance(thing, types.FunctionType) else type(thing)
        if str(kind.__module__).startswith("moonbox"):
            found[f"{kind.__module__}.{kind.__qualname__}"] += 1
    return found


def repl(box: Sandbox, _: Toolbox) -> None:
    with box.repl(toolbox=Toolbox([TOOL])) as made:
        made.check("return tools.double{n = 1}")
        made.docs.search("twice", 1)


def sandbox(_: Sandbox, tools: Toolbox) -> None:
    with Sandbox(Toolbox.of([tools]), min_workers=0) as box:
        box.docs.search("twice", 1)


def toolbox(box: Sandbox, _: Toolbox) -> None:
    own = Toolbox([TOOL])
    box.call("double", {"n": 1}, toolbox=own)
    box.repl(toolbox=own).check("return 1")


def follower(_: Sandbox, tools: Toolbox) -> None:
    Toolbox().follow(tools)


def code_mode(box: Sandbox, _: Toolbox) -> None:
    with CodeMode(box, catalog_tokens=100) as mode:
        mode.definitions()


def session(_: Sandbox, __: Toolbox) -> None:
    with MODE[0].session("one") as made:
        made.check("return 1")
    MODE[0].end("one")


def handle(_: Sandbox, __: Toolbox) -> None:
    REPL[0].submit("return 1").wait(60)


MODE: list[CodeMode] = []
REPL: list[Any] = []


@pytest.mark.parametrize("make", [repl, sandbox, toolbox, follower, code_mode, session, handle])
def test_what_is_dropped_is_gone(make: Callable[[Sandbox, Toolbox], None]) -> None:
    tools = Toolbox([TOOL])
    with Sandbox(tools) as box, CodeMode(box) as mode, box.repl() as made:
        MODE[:], REPL[:] = [mode], [made]
        for _ in range(SPARE):
            make(box, tools)
        before = alive()
        for _ in range(TIMES):
            make(box, tools)
        left = {name: count - before[name] for name, count in alive().items() if count - before[name] > SPARE}
        assert left == {}
