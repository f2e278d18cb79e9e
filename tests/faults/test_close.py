"""A Sandbox or Repl that is closed while others still work with it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from moonbox import Limits, Run, Sandbox, tool
from moonbox.errors import ClosedError, MoonboxError
from tests.long import times
from tests.waiting import wait_until

from .processes import nothing_leaks

gone = threading.Event()


@tool
def block() -> None:
    """Until the test is over."""
    gone.wait(20)


@tool
async def ablock() -> None:
    """Until it is cancelled."""
    await asyncio.Event().wait()


SCRIPTS = [
    "while true do end",
    "tools.block()",
    "tools.ablock()",
    "parallel{ tools.block, tools.ablock }",
    "while true do os.clock() end",
]


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_closed_while_runs_are_under_way(isolation: Any) -> None:
    gone.clear()
    with nothing_leaks():
        box = Sandbox([block, ablock], isolation=isolation, limits=Limits(timeout=30))
        entered: list[bool] = []
        box.define("enter", lambda: entered.append(True))
        results: list[Run | BaseException] = []

        def one(script: str) -> None:
            try:
                results.append(box.repl().run("enter() " + script))
            except MoonboxError as problem:
                results.append(problem)

        threads = [threading.Thread(target=one, args=(script,)) for script in SCRIPTS]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(entered) == len(SCRIPTS), "not all are running")
        box.close()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        gone.set()
        assert len(results) == len(SCRIPTS)
        for result in results:
            if isinstance(result, Run):
                assert result.error is not None
                assert result.error.kind == "cancelled"
            else:
                assert isinstance(result, ClosedError)
        with pytest.raises(ClosedError, match="the Sandbox is closed"):
            box.repl()


def test_an_async_tool_that_is_called_while_the_sandbox_closes_starts_no_loop() -> None:
    """Closing ends the loop of async tools; a call that comes a moment later must not start another."""
    closed = threading.Event()

    @tool
    def late() -> Any:
        """Return something to await once the Sandbox is closed."""
        entered.set()
        closed.wait(20)
        return asyncio.sleep(0)

    entered = threading.Event()
    with nothing_leaks():
        box = Sandbox([late], limits=Limits(timeout=30))
        runs: list[Run] = []
        thread = threading.Thread(target=lambda: runs.append(box.run("return tools.late()")))
        thread.start()
        assert entered.wait(20)
        box.close()
        closed.set()
        thread.join(20)
        assert runs[0].error is not None
        assert runs[0].error.kind == "cancelled"


def test_closed_while_a_checkout_waits() -> None:
    with nothing_leaks():
        box = Sandbox(min_workers=0, max_workers=1)
        first = box.repl()
        assert first.run("return 1").ok
        results: list[object] = []

        waiting: list[bool] = []

        def wait() -> None:
            second = box.repl(timeout=30)
            waiting.append(True)
            try:
                results.append(second.run("return 2"))
            except ClosedError as problem:
                results.append(str(problem))

        thread = threading.Thread(target=wait)
        thread.start()
        wait_until(lambda: bool(waiting), "nobody waits")
        box.close()
        thread.join(60)
        assert results == ["the Sandbox is closed"]


def test_a_repl_closed_by_another_thread() -> None:
    with nothing_leaks(), Sandbox([block]) as box:
        for script in ("while true do end", "tools.block()"):
            gone.clear()
            repl = box.repl()
            assert repl.run("x = 1").ok
            entered = threading.Event()
            repl.define("enter", entered.set)
            closer = threading.Thread(target=lambda: (entered.wait(20), repl.close()))  # noqa: B023 - joined below
            closer.start()
            run = repl.run("enter() " + script)
            closer.join()
            gone.set()
            assert run.error is not None
            assert run.error.kind == "cancelled"
            with pytest.raises(ClosedError, match="the Repl is closed"):
                repl.run("return 1")


def test_a_repl_closed_by_another_task() -> None:
    async def main() -> None:
        async with Sandbox([ablock]) as box:
            for script in ("while true do end", "tools.ablock()"):
                repl = box.repl()
                assert (await repl.arun("x = 1")).ok
                entered = asyncio.Event()

                async def enter() -> None:
                    entered.set()  # noqa: B023 - awaited below

                repl.define("enter", enter)
                task = asyncio.create_task(repl.arun("enter() " + script))
                await entered.wait()
                repl.close()
                run = await asyncio.wait_for(task, 10)
                assert run.error is not None
                assert run.error.kind == "cancelled"

    with nothing_leaks():
        asyncio.run(main())


def test_opened_and_closed_at_once() -> None:
    with nothing_leaks():
        for number in range(times(48)):
            box = Sandbox(min_workers=number % 3)
            if number % 2:
                box.warm()
            if number % 4 == 0:
                threading.Thread(target=box.warm).start()
            box.close()
            box.close()


def test_many_threads_open_and_close() -> None:
    with nothing_leaks(), Sandbox(min_workers=2, max_workers=6) as box:
        problems: list[BaseException] = []

        def many(thread: int) -> None:
            try:
                for number in range(times(20)):
                    with box.repl(timeout=30) as repl:
                        assert repl.run(f"return {thread * 100 + number}").value == thread * 100 + number
            except BaseException as problem:  # noqa: BLE001 - told to the test's thread
                problems.append(problem)

        threads = [threading.Thread(target=many, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(50)
        assert problems == []
        wait_until(lambda: box.workers.in_use == 0, "workers that nobody needs live on")


def test_no_thread_outlives_the_sandbox() -> None:
    before = set(threading.enumerate())
    for isolation in ("process", "inline"):
        with Sandbox([block, ablock], isolation=isolation, limits=Limits(timeout=5)) as box, box.repl() as repl:
            gone.set()
            assert repl.run("tools.block() parallel{ tools.block, tools.block } return 1").value == 1
        wait_until(lambda: not [t for t in threading.enumerate() if t not in before], "threads are left")


def test_an_async_tool_that_cannot_be_cancelled_does_not_hold_up_close() -> None:
    refused: list[bool] = []
    over = threading.Event()

    @tool
    async def stubborn() -> None:
        """Refuse every cancellation until the test is over."""
        while not over.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                refused.append(True)

    box = Sandbox([stubborn], limits=Limits(timeout=0.5))
    run = box.run("tools.stubborn()")
    assert run.error is not None
    box.close()
    assert refused
    over.set()
