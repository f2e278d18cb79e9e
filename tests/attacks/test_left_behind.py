"""Attacks with tools that are left behind: calls that time out while their tools go on."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Pause, Run, Sandbox, Tool
from moonbox.runs.call_entry import MOST_LEFT

if TYPE_CHECKING:
    from collections.abc import Callable

LIMITS = Limits(timeout=20, max_tool_calls=1000)
THREE_TIMES = """
local seen = {}
for i = 1, 3 do
  local ok, problem = pcall(tools.slow, i)
  seen[i] = problem.code
end
return seen
"""


class SlowTool:
    """Does not return before the test lets it, and knows how many of it run at once."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.now = self.most = self.started = 0
        self._lock = threading.Lock()

    def _enter(self) -> None:
        with self._lock:
            self.now += 1
            self.started += 1
            self.most = max(self.most, self.now)

    def _leave(self) -> None:
        with self._lock:
            self.now -= 1

    def sync(self, n: int) -> int:
        """Take long."""
        self._enter()
        self.release.wait(60)
        self._leave()
        return n

    async def stubborn(self, n: int) -> int:
        """Take long, and do not let yourself be cancelled."""
        self._enter()
        while not self.release.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        self._leave()
        return n

    def tool(self, kind: str, **options: Any) -> Tool:
        function: Callable[..., Any] = self.sync if kind == "sync" else self.stubborn
        return Tool.from_function(function, name="slow", **options)


async def _arun(box: Sandbox, source: str) -> Run:
    async with box:
        return await box.arun(source)


def _step(box: Sandbox, source: str) -> Run:
    with box.repl() as repl:
        state = repl.start(source)
        while isinstance(state, Pause):
            state = state.resume()
        return state


WAYS: dict[str, Callable[[Sandbox, str], Run]] = {
    "run": lambda box, source: box.run(source),
    "arun": lambda box, source: asyncio.run(_arun(box, source)),
    "start": _step,
}


def test_a_slot_is_held_by_a_coroutine_that_refuses_to_end() -> None:
    """In the host's own loop: the call has timed out, its coroutine goes on."""
    slow = SlowTool()

    async def main() -> Run:
        async with Sandbox([slow.tool("async", max_concurrency=1, timeout=0.1)], limits=LIMITS) as box:
            run = await box.arun(THREE_TIMES)
            slow.release.set()
            return run

    run = asyncio.run(main())
    assert run.value == ["timeout", "busy", "busy"]
    assert (slow.most, slow.started) == (1, 1)


@pytest.mark.parametrize("way", ["arun", "acall"])
def test_a_coroutine_that_refuses_to_end_does_not_hold_up_its_run(way: str) -> None:
    slow = SlowTool()

    async def main() -> list[Run]:
        async with Sandbox([slow.tool("async", timeout=0.1)], limits=LIMITS) as box:
            runs = [
                await (box.arun("return tools.slow(1)") if way == "arun" else box.acall("slow", {"n": 1}))
                for _ in range(2)
            ]
            assert slow.now == 2, "both go on"
            slow.release.set()
            return runs

    for run in asyncio.run(main()):
        assert run.error is not None
        assert run.error.code == "timeout"


@pytest.mark.parametrize(("way", "kind"), [("run", "sync"), ("run", "async"), ("arun", "sync"), ("start", "sync")])
@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_a_slot_is_held_until_the_tool_ends(way: str, kind: str, isolation: Any) -> None:
    slow = SlowTool()
    box = Sandbox([slow.tool(kind, max_concurrency=1, timeout=0.1)], limits=LIMITS, isolation=isolation)
    try:
        run = WAYS[way](box, THREE_TIMES)
        assert run.value == ["timeout", "busy", "busy"]
        assert run.calls[1].error is not None
        assert run.calls[1].error.message == (
            "slow takes 1 call at once (max_concurrency), and earlier ones that timed out are still running"
        )
        assert (slow.most, slow.started) == (1, 1)
    finally:
        slow.release.set()
        box.close()


def test_the_slot_is_free_again_when_the_tool_has_ended() -> None:
    slow = SlowTool()
    with Sandbox([slow.tool("sync", max_concurrency=1, timeout=0.05)], limits=LIMITS) as box:
        assert box.run("return select(2, pcall(tools.slow, 1)).code").value == "timeout"
        slow.release.set()
        assert box.run("local ok, x repeat ok, x = pcall(tools.slow, 2) until ok return x").value == 2
        assert slow.most == 1


@pytest.mark.parametrize("way", ["run", "arun"])
def test_calls_left_behind_are_bounded(way: str) -> None:
    """Run after run leaves a batch of calls behind; at some point no more are made."""
    slow = SlowTool()
    batch = """
    local functions = {}
    for i = 1, 20 do functions[i] = function() return tools.slow(i) end end
    local codes = {}
    for i, outcome in ipairs(parallel.settle(functions)) do codes[i] = outcome.error.code end
    return codes
    """
    box = Sandbox([slow.tool("sync", timeout=0.05)], limits=LIMITS)

    async def arun() -> list[Run]:
        return [await box.arun(batch) for _ in range(10)]

    try:
        runs = [box.run(batch) for _ in range(10)] if way == "run" else asyncio.run(arun())
        codes = [code for run in runs for code in run.unwrap()]
        assert len(codes) == 200
        assert set(codes) == {"timeout", "busy"}
        assert MOST_LEFT <= slow.started < MOST_LEFT + 20
        refused = runs[-1].calls[0].error
        assert refused is not None
        assert refused.message == (
            f"{MOST_LEFT} earlier calls timed out or were given up, and their tools are still running; "
            "no other call is made until some of them have ended"
        )
        slow.release.set()
        after = box.run("local ok, x repeat ok, x = pcall(tools.slow, 1) until ok return x")
        assert after.value == 1
    finally:
        slow.release.set()
        box.close()
