"""The three drivers, blocking, awaited and stepped: what is true in one is true in all."""

from __future__ import annotations

import asyncio
import inspect
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Run, Sandbox, ToolError, tool
from moonbox.runs import blocking as blocking_driver
from moonbox.threads import LoopThread, Threads
from tests.runs import DRIVES, ISOLATIONS, error_of
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox import Repl

    Drive = Callable[[Repl, str], Run]

LIMITS = Limits(timeout=60)


@pytest.fixture(params=DRIVES, ids=lambda drive: drive.__name__)
def drive(request: Any) -> Drive:
    chosen: Drive = request.param
    return chosen


class Slow:
    """Tools that end only when the test lets them, long after their own timeout."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.cancelled = threading.Event()

    def tools(self) -> list[Any]:
        @tool(timeout=0.05)
        def slow() -> str:
            """Wait for the test."""
            assert self.release.wait(60)
            return "too late"

        @tool(timeout=0.05)
        async def aslow() -> str:
            """Wait for the test."""
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            return "too late"

        @tool
        def add(a: int, b: int = 1) -> int:
            """Add."""
            return a + b

        @tool
        def fail() -> None:
            """Fail."""
            raise ToolError("no", code="unlucky")

        return [slow, aslow, add, fail]


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("name", ["slow", "aslow"])
def test_a_tool_is_stopped_at_its_own_timeout(drive: Drive, isolation: Any, name: str) -> None:
    slow = Slow()
    with Sandbox(slow.tools(), isolation=isolation, limits=LIMITS) as box, box.repl() as repl:
        source = f"local ok, e = pcall(tools.{name}) return ok, e.code, e.retryable, e.message"
        run = drive(repl, source)
        assert not slow.release.is_set()  # the run did not wait for the tool
        slow.release.set()
        message = f"{name} did not answer within its timeout"
        assert run.values == (False, "timeout", True, message)
        assert [(call.status, call.result) for call in run.calls] == [("timeout", None)]
        if name == "aslow":
            assert slow.cancelled.wait(20)
        assert repl.run("return tools.add(1)").value == 2


def test_what_a_tool_returns_after_its_timeout_is_not_awaited(drive: Drive) -> None:
    release, made = threading.Event(), []

    @tool(timeout=0.05)
    def late() -> Any:
        """Return something to be awaited when nobody waits for it any more."""
        assert release.wait(60)
        made.append(asyncio.Event().wait())
        return made[0]

    with Sandbox([late], limits=LIMITS) as box, box.repl() as repl:
        run = drive(repl, "tools.late()")
        assert [call.status for call in run.calls] == ["timeout"]
        release.set()
        wait_until(lambda: made and inspect.getcoroutinestate(made[0]) == inspect.CORO_CLOSED)


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_an_async_tool_whose_timeout_passes_before_its_loop_runs_is_cancelled(
    isolation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, submit = Slow(), LoopThread.submit

    def late(*args: Any) -> Any:
        assert slow.release.wait(60)
        return submit(*args)

    monkeypatch.setattr(LoopThread, "submit", late)
    with Sandbox(slow.tools(), isolation=isolation, limits=LIMITS) as box, box.repl() as repl:
        repl.define("release", slow.release.set)
        assert repl.run("local ok, e = pcall(tools.aslow) release() return e.code").value == "timeout"
        assert slow.cancelled.wait(20)


def test_others_of_the_batch_have_their_answers(drive: Drive) -> None:
    slow = Slow()
    source = """
    local r = parallel.settle{ tools.slow, function() return tools.add(1) end, tools.aslow, tools.fail }
    return r[1].error.code, r[2].value, r[3].error.code, r[4].error.code
    """
    with Sandbox(slow.tools(), limits=LIMITS) as box, box.repl() as repl:
        run = drive(repl, source)
        slow.release.set()
    assert run.values == ("timeout", 2, "timeout", "unlucky")
    assert [call.status for call in run.calls] == ["timeout", "ok", "timeout", "error"]


def test_the_runs_timeout_ends_it_while_a_tool_waits(drive: Drive) -> None:
    release = threading.Event()

    @tool
    def wait() -> None:
        """Wait for the test."""
        release.wait(60)

    # Long enough for the script to reach its tool, also on a machine that is busy; then the tool waits for longer.
    with Sandbox([wait], limits=Limits(timeout=3)) as box, box.repl() as repl:
        run = drive(repl, "x = 1 print('a') tools.wait()")
        release.set()
        assert (error_of(run).kind, error_of(run).limit, run.output) == ("limit", "time", "a\n")
        assert [(call.tool, call.status) for call in run.calls] == [("wait", "in_flight")]
        assert drive(repl, "return x").value == 1


def test_the_record_is_the_same(drive: Drive) -> None:
    source = "print('a') for i = 1, 3 do pcall(tools.fail) end local t = os.clock() return tools.add{ a = 1 }, docs.x"
    with Sandbox(Slow().tools(), limits=LIMITS) as box, box.repl() as repl:
        repl.document("x", "text")
        run = drive(repl, source)
    assert (run.values, run.output, run.error, run.number) == ((2, "text"), "a\n", None, 1)
    assert [(call.tool, call.status, call.retry_of, call.batch) for call in run.calls] == [
        ("fail", "error", None, 1),
        ("fail", "error", 1, 2),
        ("fail", "error", 2, 3),
        ("add", "ok", None, 4),
    ]
    assert [seen.name for seen in run.observations] == ["os.clock"]
    assert all(call.bytes_in > 0 and call.bytes_out > 0 for call in run.calls)
    assert run.usage.bytes_in > len(source)
    assert run.usage.bytes_out > 0


def test_before_write_has_the_last_word(drive: Drive) -> None:
    from msgspec.structs import replace

    with Sandbox(limits=LIMITS) as box, box.repl(before_write=lambda run: replace(run, output="***")) as repl:
        assert drive(repl, "print('secret')").output == "***"


def test_calls_after_a_slow_tool_need_no_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    jobs: list[Any] = []
    submit = Threads.submit

    def count(threads: Threads, job: Any) -> None:
        jobs.append(job)
        submit(threads, job)

    def slow() -> None:
        assert released.wait(60)

    def release() -> None:
        """Runs only when the caller's thread has taken over from the one that is inside `slow`."""
        monkeypatch.setattr(blocking_driver, "SLOW", 1000.0)  # from now on nothing is
        released.set()

    def quick(number: int) -> int:
        return number

    monkeypatch.setattr(Threads, "submit", count)
    with Sandbox([slow, release, quick], limits=Limits(max_tool_calls=None, timeout=60)) as box, box.repl() as repl:
        run = repl.run(
            "parallel{tools.slow, tools.release} local t = 0 for i = 1, 50 do t = t + tools.quick(i) end return t"
        )
    assert run.unwrap() == 1275
    assert len(jobs) <= 3  # the first helper, `release`, the second helper


def test_async_tools_of_a_batch_wait_for_each_other() -> None:
    user: ContextVar[str] = ContextVar("user", default="nobody")

    class Meeting:
        """Nobody goes on before all are there."""

        def __init__(self) -> None:
            self.here, self.complete = 0, asyncio.Event()

        async def meet(self, number: int) -> str:
            """Wait for the others."""
            self.here += 1
            if self.here == 20:
                self.complete.set()
            await self.complete.wait()
            if number == 7:
                raise ToolError("seven is unlucky", code="unlucky")
            return f"{user.get()} {number}"

    source = """
        local fs = {}
        for i = 1, 20 do fs[i] = function() return tools.meet(i) end end
        local results, names = parallel.settle(fs), {}
        for i = 1, 20 do names[i] = results[i].ok and results[i].value or results[i].error.code end
        return names
    """
    with Sandbox([Meeting().meet], limits=LIMITS) as box, box.repl() as repl:
        token = user.set("ada")
        try:
            names = repl.run(source).unwrap()
        finally:
            user.reset(token)
    assert names == ["unlucky" if number == 7 else f"ada {number}" for number in range(1, 21)]
