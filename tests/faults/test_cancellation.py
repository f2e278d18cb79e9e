"""Cancelled tasks: at any moment, more than once, and while they wait for a worker or for their turn."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Pause, Run, Sandbox, tool
from moonbox.audit.sinks import MemorySink
from tests.long import times
from tests.runs import asynchronous, error_of
from tests.waiting import await_until

from .processes import nothing_leaks

if TYPE_CHECKING:
    from pathlib import Path


@tool
async def nap(seconds: float = 0.001) -> float:
    """Sleep."""
    await asyncio.sleep(seconds)
    return seconds


@tool
def block(seconds: float = 0.001) -> float:
    """Sleep in a thread."""
    import time

    time.sleep(seconds)
    return seconds


async def cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


SCRIPTS = [
    "for i = 1, 100000000 do local x = i end return n",
    "for i = 1, 20 do tools.nap() end return n",
    "for i = 1, 20 do tools.block() end return n",
    "parallel.map({1, 2, 3, 4, 5, 6}, function() return tools.nap(0.002) end) return n",
    "parallel.map({1, 2, 3, 4, 5, 6}, function() return tools.block(0.002) end) return n",
    "print(('x'):rep(1000)) while true do end",
    "return n",
    "while true do pcall(tools.nap) end",
]


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_cancelled_at_random_moments(isolation: Any) -> None:
    async def worker(box: Sandbox, seed: int) -> int:
        chance = random.Random(seed)
        cancelled = 0
        async with box.repl() as repl:
            for n in range(times(25)):
                assert (await repl.arun(f"n = {n}")).ok
                task = asyncio.create_task(repl.arun(chance.choice(SCRIPTS)))
                await asyncio.sleep(chance.random() * 0.02)
                task.cancel()
                try:
                    run = await task
                    assert run.error is None or run.error.kind in ("limit", "cancelled")
                except asyncio.CancelledError:
                    cancelled += 1
                after = await repl.arun("return n, 'after'")
                assert after.values == ((None if after.state_lost else n), "after")
                assert after.output == ""
        return cancelled

    async def main() -> None:
        async with Sandbox([nap, block], isolation=isolation, limits=Limits(timeout=10, max_tool_calls=None)) as box:
            assert sum(await asyncio.gather(*(worker(box, seed) for seed in range(4)))) > times(20)

    with nothing_leaks():
        asyncio.run(asyncio.wait_for(main(), 120))


@pytest.mark.parametrize("script", ["while true do end", "return ('a'):rep(50):find(('a-'):rep(20) .. 'b')"])
@asynchronous
async def test_cancelled_again_and_again(script: str) -> None:
    """As by a cancel scope of anyio. The script has the same time to stop as after one cancellation."""
    async with Sandbox(limits=Limits(timeout=60)) as box, box.repl() as repl:
        assert (await repl.arun("n = 1")).ok
        begun = asyncio.Event()
        task = asyncio.create_task(repl.arun(f"print('begun') {script}", on_output=lambda _: begun.set()))
        await begun.wait()
        while not task.done():
            task.cancel("by a scope")
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError, match="by a scope"):
            await task
        after = await repl.arun("return n")
        assert after.value == (None if after.state_lost else 1)
        assert not (after.state_lost and script.startswith("while"))  # which stops as soon as it is told to


@asynchronous
async def test_a_timeout_ends_with_its_block(tmp_path: Path) -> None:
    async with Sandbox(journal=tmp_path / "state.db", limits=Limits(timeout=60)) as box, box.repl() as repl:
        assert (await repl.arun("n = 1 local sum = 0 for i = 1, 100000000 do sum = sum + i end")).ok
        for use in (repl.aglobals, lambda: repl.arun("return n"), lambda: repl.arun("a syntax error")):
            assert repl.sleep()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):  # restoring it takes longer
                    await use()
            await asyncio.sleep(0)
            assert await repl.aglobals() == {"n": "number"}


@asynchronous
async def test_a_run_that_is_cancelled_after_its_end_is_recorded(tmp_path: Path) -> None:
    stopping, keep = asyncio.Event(), MemorySink()

    @tool
    async def stubborn() -> None:
        """Swallow cancellations for a while."""
        for _ in range(2):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            stopping.set()

    async with Sandbox([stubborn], journal=tmp_path / "state.db", audit=keep) as box, box.repl() as repl:
        assert (await repl.arun("n = 1")).ok
        task = asyncio.create_task(repl.arun("n = 2 tools.stubborn()", timeout=0.3))
        await stopping.wait()
        await cancel(task)
        assert error_of([*keep.runs()][-1]).limit == "time"
        assert [known.state for known in box.journal.runs()] == ["limit", "ok"]
        assert (await repl.arun("return n")).value == 2


@pytest.mark.parametrize("resuming", [False, True])
@asynchronous
async def test_a_step_that_is_cancelled_leaves_no_pause(resuming: bool) -> None:
    computing = "print('begun') for i = 1, 30000000 do local x = i end tools.nap()"
    async with Sandbox([nap]) as box, box.repl() as repl:
        begun = threading.Event()
        assert (await repl.arun("n = 1")).ok
        if resuming:
            pause = await repl.astart(f"tools.nap() {computing}", on_output=lambda _: begun.set())
            assert isinstance(pause, Pause)
            task = asyncio.create_task(pause.aresume([1]))
        else:
            task = asyncio.create_task(repl.astart(computing, on_output=lambda _: begun.set()))
        await await_until(begun.is_set)
        await cancel(task)
        await await_until(lambda: not repl.busy)
        assert (await repl.arun("return n")).value == 1


@pytest.mark.parametrize("way", ["arestore", "aresume"])
@asynchronous
async def test_a_recovery_that_is_cancelled_lets_go_of_its_repl(tmp_path: Path, way: str) -> None:
    async with Sandbox(journal=tmp_path / "state.db", limits=Limits(timeout=60)) as box:
        with box.repl() as repl:
            repl.run("n = 1 local sum = 0 for i = 1, 100000000 do sum = sum + i end").unwrap()
            repl.run("return n", run_id="latest").unwrap()
        await await_until(lambda: not box.workers.in_use)
        recover: Any = box.arestore(repl.id) if way == "arestore" else box.aresume("latest")
        task = asyncio.create_task(recover)
        await await_until(lambda: box.workers.in_use)
        await cancel(task)
        await await_until(lambda: not box.workers.in_use)
        with await box.arestore(repl.id) as restored:
            assert (await restored.arun("return n")).value == 1


@asynchronous
async def test_cancelled_while_a_large_script_is_sent() -> None:
    async with Sandbox(limits=Limits(timeout=10, max_source=20_000_000)) as box, box.repl() as repl:
        for n in range(10):
            task = asyncio.create_task(repl.arun("n = 1 -- " + "x" * 10_000_000))
            for _ in range(n):
                await asyncio.sleep(0)
            await cancel(task)
            assert (await repl.arun(f"return {n}")).value == n


@asynchronous
async def test_cancelled_while_a_large_answer_is_sent() -> None:
    asked = asyncio.Event()

    @tool
    async def much() -> str:
        """Much."""
        asked.set()
        return "x" * 9_000_000

    async with Sandbox([much], limits=Limits(timeout=60)) as box, box.repl() as repl:
        for n in range(8):
            assert (await repl.arun("n = 1")).ok
            asked.clear()
            task = asyncio.create_task(repl.arun("tools.much() while true do end"))
            await asked.wait()
            for _ in range(n):
                await asyncio.sleep(0)
            await cancel(task)
            after = await repl.arun(f"return {n}")
            assert after.value == n


@asynchronous
async def test_cancelled_while_waiting_for_a_worker() -> None:
    async with Sandbox(min_workers=0, max_workers=1) as box:
        first = box.repl()
        assert (await first.arun("return 1")).value == 1
        for turns in range(1, 20):  # the moment at which it waits cannot be seen from here
            task = asyncio.create_task(box.repl(timeout=60).arun("return 2"))
            for _ in range(turns):
                await asyncio.sleep(0)
            await cancel(task)
        first.close()
        third = box.repl(timeout=60)
        assert (await third.arun("return 3")).value == 3


@asynchronous
async def test_cancelled_while_waiting_for_its_turn() -> None:
    entered, go_on = asyncio.Event(), asyncio.Event()

    @tool
    async def hold() -> None:
        """Until the others have been cancelled."""
        entered.set()
        await go_on.wait()

    async with Sandbox([hold]) as box, box.repl() as repl:
        slow = asyncio.create_task(repl.arun("tools.hold() return 'slow'"))
        await entered.wait()
        waiting = [asyncio.create_task(repl.arun(f"return {n}")) for n in range(5)]
        await asyncio.sleep(0)  # each of them waits for its turn now
        for task in waiting[::2]:
            task.cancel()
        go_on.set()
        results: list[Run | BaseException] = await asyncio.gather(slow, *waiting, return_exceptions=True)
        values = [run.value if isinstance(run, Run) else None for run in results]
        assert values == ["slow", None, 1, None, 3, None]


def test_a_tool_that_refuses_to_be_cancelled() -> None:
    """It goes on by itself; the run does not wait for it longer than it must."""
    ended = []

    @tool
    async def stubborn() -> None:
        """Swallow one cancellation."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append(True)

    async def main() -> None:
        async with Sandbox([stubborn]) as box, box.repl() as repl:
            run = await repl.arun("return tools.stubborn()", limits=Limits(timeout=1.0))
            assert error_of(run).limit == "time"
            assert (await repl.arun("return 1")).value == 1

    asyncio.run(asyncio.wait_for(main(), 120))
    assert ended
