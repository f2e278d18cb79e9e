"""A Sandbox or Repl that is closed while others still work with it."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from moonbox import Limits, Pause, Run, Sandbox, tool
from moonbox.audit.sinks import MemorySink
from moonbox.audit.sqlite import SqliteSink
from moonbox.errors import ClosedError, MoonboxError
from tests.long import times
from tests.runs import DRIVES, at_once, awaited, blocking, error_of
from tests.waiting import wait_until

from .processes import nothing_leaks

gone = threading.Event()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_closed_repls_leave_no_zombies() -> None:
    with Sandbox() as box:
        repls = [box.repl() for _ in range(5)]
        workers = [repl.worker_pid for repl in repls if repl.run("return 1").ok]
        for repl in repls:
            repl.close()
        wait_until(lambda: not [pid for pid in workers if Path(f"/proc/{pid}").exists()])


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

        def close() -> None:
            wait_until(lambda: len(entered) == len(SCRIPTS), "not all are running")
            box.close()

        at_once(close, *(partial(one, script) for script in SCRIPTS))
        gone.set()
        assert len(results) == len(SCRIPTS)
        for result in results:
            if isinstance(result, Run):
                assert error_of(result).kind == "cancelled"
            else:
                assert isinstance(result, ClosedError)
        with pytest.raises(ClosedError, match="the Sandbox is closed"):
            box.repl()


@pytest.mark.parametrize("closes", ["sandbox", "repl, then sandbox"])
@pytest.mark.parametrize("drive", DRIVES)
def test_a_run_that_is_cut_off_is_in_the_trail(drive: Any, closes: str, tmp_path: Path) -> None:
    entered = threading.Event()
    results: list[Run] = []
    with nothing_leaks():
        box = Sandbox([ablock], audit=tmp_path / "trail.db", limits=Limits(timeout=300))
        repl = box.repl()
        repl.define("enter", entered.set)

        def close() -> None:
            assert entered.wait(60)
            if closes != "sandbox":
                repl.close()
            box.close()

        at_once(close, lambda: results.append(drive(repl, "enter() tools.ablock()")))
    with closing(SqliteSink(tmp_path / "trail.db")) as sink:
        recorded = sink.get(results[0].id)
    assert error_of(recorded) == error_of(results[0])
    assert error_of(recorded).kind == "cancelled"


def test_a_run_that_is_paused_ends_and_is_in_the_trail(tmp_path: Path) -> None:
    box = Sandbox([block], audit=tmp_path / "trail.db")
    pause = box.repl().start("tools.block()")
    assert isinstance(pause, Pause)
    box.close()
    run = pause.resume([1])
    assert isinstance(run, Run)
    with closing(SqliteSink(tmp_path / "trail.db")) as sink:
        assert error_of(sink.get(run.id)) == error_of(run)
    assert (error_of(run).kind, run.calls[0].status) == ("cancelled", "cancelled")


def test_a_run_of_the_loop_that_closes_the_sandbox_is_in_the_trail(tmp_path: Path) -> None:
    async def main() -> Run:
        entered = asyncio.Event()

        @tool
        async def hold() -> None:
            """Until it is cancelled."""
            entered.set()
            await asyncio.Event().wait()

        async with Sandbox([hold], audit=tmp_path / "trail.db") as box:
            run = asyncio.create_task(box.arun("tools.hold()"))
            await entered.wait()
        return await run

    run = asyncio.run(main())
    with closing(SqliteSink(tmp_path / "trail.db")) as sink:
        assert error_of(sink.get(run.id)).kind == "cancelled"


@pytest.mark.parametrize("is_async", [False, True])
def test_closed_while_direct_calls_are_under_way(is_async: bool) -> None:
    gone.clear()
    sink = MemorySink()
    with nothing_leaks():
        box = Sandbox([block, ablock], limits=Limits(timeout=300), audit=sink)
        entered: list[str] = []
        results: list[Run] = []

        def one(name: str) -> None:
            notes: Any = {"on_call": lambda entry: entered.append(entry.status)}
            results.append(asyncio.run(box.acall(name, **notes)) if is_async else box.call(name, **notes))

        def close() -> None:
            wait_until(lambda: len(entered) == 2, "not all are running")
            box.close()

        at_once(close, partial(one, "block"), partial(one, "ablock"))
        gone.set()
    for run in [*results, *map(sink.get, (run.id for run in results))]:
        assert (error_of(run).kind, run.calls[0].status) == ("cancelled", "cancelled")
    assert entered == ["in_flight"] * 2 + ["cancelled"] * 2


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
        assert error_of(runs[0]).kind == "cancelled"


def test_closed_while_a_checkout_waits() -> None:
    with nothing_leaks():
        box = Sandbox(min_workers=0, max_workers=1)
        first = box.repl()
        assert first.run("return 1").ok
        waiting = threading.Event()

        def wait() -> None:
            second = box.repl(timeout=30)
            waiting.set()
            with pytest.raises(ClosedError, match="the Sandbox is closed"):
                second.run("return 2")

        at_once(wait, lambda: waiting.wait(60) and box.close())


@pytest.mark.parametrize("drive", [blocking, awaited])
@pytest.mark.parametrize("script", ["while true do end", "tools.block()", "tools.ablock()"])
def test_a_repl_closed_by_another_thread(drive: Any, script: str) -> None:
    gone.clear()
    entered, runs = threading.Event(), []
    with nothing_leaks(), Sandbox([block, ablock]) as box:
        repl = box.repl()
        repl.define("enter", entered.set)
        assert repl.run("x = 1").ok
        at_once(
            lambda: runs.append(drive(repl, "enter() " + script)),
            lambda: entered.wait(20) and repl.close(),
        )
        gone.set()
        assert error_of(runs[0]).kind == "cancelled"
        with pytest.raises(ClosedError, match="the Repl is closed"):
            repl.run("return 1")


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

        def many(thread: int) -> None:
            for number in range(times(20)):
                with box.repl(timeout=30) as repl:
                    assert repl.run(f"return {thread * 100 + number}").value == thread * 100 + number

        at_once(*(partial(many, number) for number in range(8)))
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
