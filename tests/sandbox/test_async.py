"""Awaited runs: many at once on one event loop, beside threads, and from several loops."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Answer, Context, Limits, Pause, Run, Sandbox, ToolCall, tool
from moonbox.errors import PoolTimeout
from moonbox.worker import protocol
from tests.attacks.hijacked import done, hijacked_box
from tests.runs import ISOLATIONS, asynchronous, error_of
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.attacks.hijacked import Peer

_ENDED = json.dumps(done()).encode()


@tool
async def nap(seconds: float = 0.0, value: int = 0) -> int:
    """Sleep."""
    await asyncio.sleep(seconds)
    return value


@tool
def block(seconds: float = 0.0, value: int = 0) -> int:
    """Sleep in a thread."""
    time.sleep(seconds)
    return value


@pytest.mark.parametrize("isolation", ISOLATIONS)
@asynchronous
async def test_many_at_once(isolation: Any) -> None:
    async def one(box: Sandbox, n: int) -> None:
        async with box.repl(timeout=60) as repl:
            assert (await repl.arun(f"x = {n}")).ok
            run = await repl.arun("return x, tools.nap{ value = x }, tools.block{ value = x + 1 }")
            assert run.values == (n, n, n + 1)

    async with Sandbox([nap, block], isolation=isolation) as box:
        await asyncio.gather(*(one(box, n) for n in range(20)))


@asynchronous
async def test_the_loop_stays_free() -> None:
    """A script that computes and a tool that blocks do not hold up other tasks."""
    entered, release = threading.Event(), threading.Event()

    @tool
    def wait() -> bool:
        """Block a thread until the test goes on."""
        entered.set()
        return release.wait(20)

    async with Sandbox([wait], limits=Limits(timeout=60)) as box, box.repl() as repl:
        endless = asyncio.create_task(repl.arun("while true do end"))
        blocked = asyncio.create_task(box.arun("return tools.wait()"))
        while not entered.is_set():
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert not endless.done()
        assert not blocked.done()
        release.set()
        assert (await blocked).value is True
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless


@asynchronous
async def test_async_tools_run_on_the_callers_loop() -> None:
    loops = []

    @tool
    async def where() -> int:
        """Note the loop."""
        loops.append(asyncio.get_running_loop())
        return 1

    async with Sandbox([where]) as box:
        assert (await box.arun("return tools.where()")).value == 1
    assert loops == [asyncio.get_running_loop()]


@pytest.mark.parametrize("isolation", ISOLATIONS)
@asynchronous
async def test_blocking_and_awaited_runs_of_one_repl_are_serial(isolation: Any) -> None:
    async with Sandbox([nap, block], isolation=isolation) as box, box.repl() as repl:
        assert (await repl.arun("n = 0")).ok

        def blocking() -> list[Run]:
            return [repl.run("n = n + 1 tools.block(0.001) return n") for _ in range(10)]

        in_threads = [asyncio.to_thread(blocking) for _ in range(2)]
        awaited = [repl.arun("n = n + 1 tools.nap(0.001) return n") for _ in range(10)]
        runs, batches = await asyncio.gather(asyncio.gather(*awaited), asyncio.gather(*in_threads))
        whole = [run for batch in (runs, *batches) for run in batch]
        assert sorted(run.value for run in whole) == list(range(1, 31))
        assert sorted(run.number for run in whole) == list(range(2, 32))


def test_one_sandbox_and_several_loops() -> None:
    with Sandbox([nap]) as box, ThreadPoolExecutor(4) as pool:

        def loop(n: int) -> list[Any]:
            async def main() -> list[Any]:
                runs = await asyncio.gather(
                    *(box.arun(f"return tools.nap{{ value = {n * 10 + m} }}") for m in range(5))
                )
                return [run.value for run in runs]

            return asyncio.run(main())

        assert list(pool.map(loop, range(4))) == [[n * 10 + m for m in range(5)] for n in range(4)]


@asynchronous
async def test_time_and_state() -> None:
    async with Sandbox([nap]) as box, box.repl() as repl:
        assert (await repl.arun("x = 0")).ok
        for source in ("x = 1 while true do end", "x = 1 tools.nap(5)", "x = 1 while true do pcall(tools.nap) end"):
            run = await repl.arun(source, limits=Limits(timeout=0.5, max_tool_calls=None))
            assert (error_of(run).kind, error_of(run).limit, run.state_lost) == ("limit", "time", False)
            assert (await repl.arun("return x")).value == 1


@asynchronous
async def test_checkouts() -> None:
    async with Sandbox(min_workers=0, max_workers=1) as box:
        first = box.repl()
        assert (await first.arun("return 1")).ok
        with pytest.raises(PoolTimeout, match=r"all 1 workers are in use and none became free within 0\.1 s"):
            await box.repl(timeout=0.1).arun("return 1")
        waiting = asyncio.create_task(box.repl(timeout=20).arun("return 2"))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not waiting.done()
        first.close()
        assert (await waiting).value == 2


def test_context_variables_reach_tools() -> None:
    from contextvars import ContextVar

    user: ContextVar[str] = ContextVar("user", default="nobody")

    @tool
    def who() -> str:
        """Who is it?"""
        return user.get()

    @tool
    async def awho(context: Context) -> str:
        """Who is it?"""
        return user.get() + context.tool

    async def main() -> None:
        user.set("ann")
        async with Sandbox([who, awho]) as box:
            assert (await box.arun("return tools.who(), tools.awho()")).values == ("ann", "annawho")

            assert ((await box.acall("who")).value, (await box.acall("awho")).value) == ("ann", "annawho")

    asyncio.run(main())
    user.set("bob")
    both = "return tools.who(), tools.awho()"
    with Sandbox([who, awho]) as box, box.repl() as repl:
        assert box.run(both).values == repl.run(both).values == ("bob", "bobawho")
        assert (box.call("who").value, box.call("awho").value) == ("bob", "bobawho")
        pause = repl.start(both)
        user.set("eve")  # the context of each call is that of its answer
        while isinstance(pause, Pause):
            pause = pause.resume([Answer.run()])
        assert pause.values == ("eve", "eveawho")


def test_no_task_is_left_behind() -> None:
    async def main() -> None:
        before = asyncio.all_tasks()
        async with Sandbox([nap, block], limits=Limits(timeout=0.2)) as box, box.repl() as repl:
            await repl.arun("parallel{ function() tools.nap(5) end, function() tools.nap(5) end }")
            await repl.arun("return tools.nap()")
            await repl.arun("while true do end")
        assert asyncio.all_tasks() == before

    threads = threading.active_count()
    asyncio.run(main())
    wait_until(lambda: threading.active_count() <= threads)


def test_all_that_a_worker_said_before_it_ended_counts() -> None:
    """Many frames arrive together with the end of the socket."""

    def talks_and_ends(peer: Peer) -> None:
        peer.send(protocol.READY, b"")
        peer.wait_for(protocol.RUN)
        peer.raw(protocol.frame(protocol.OUTPUT, b"line\n") * 500 + protocol.frame(protocol.DONE, _ENDED))

    async def main() -> Run:
        async with hijacked_box(talks_and_ends) as box, box.repl() as repl:
            return await repl.arun("return 42")

    run = asyncio.run(main())
    assert (run.values, run.output) == ((42,), "line\n" * 500)


def test_a_worker_says_nothing_while_a_person_is_asked() -> None:
    asked: list[str] = []

    def hasty(peer: Peer) -> None:
        peer.send(protocol.READY, b"")
        peer.send(protocol.DONE, _ENDED)
        with suppress(ConnectionError):
            peer.receive()

    async def slow(call: ToolCall) -> bool:
        asked.append(call.source)
        await asyncio.sleep(30)
        return True

    async def main() -> Run:
        async with hijacked_box(hasty, approve=slow, approve_script=True) as box, box.repl() as repl:
            return await repl.arun("return 42")

    run = asyncio.run(main())
    assert "sent a frame before it was asked for anything" in str(run.error)
    assert asked in ([], ["return 42"])


def test_a_run_registers_its_socket_once_and_leaves_no_reader() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        readers: list[int] = []
        add = loop.add_reader
        loop.add_reader = lambda fd, *rest: (readers.append(fd), add(fd, *rest))[1]  # type: ignore[method-assign]  # counted
        async with Sandbox([nap]) as box, box.repl() as repl:
            await repl.arun("return 1")
            readers.clear()
            assert (await repl.arun("for n = 1, 20 do tools.nap{ value = n } end return 7")).values == (7,)
            assert len(readers) <= 1
            assert not any(loop.remove_reader(fd) for fd in readers)  # there is none any more

    asyncio.run(main())
