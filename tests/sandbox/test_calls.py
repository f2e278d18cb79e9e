"""Calls of tools from scripts: their records, budgets, timeouts, concurrency and middleware."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Context, Limits, Middleware, Repl, Run, Sandbox, Tool, ToolCall, ToolError, tool
from moonbox.audit.sinks import MemorySink
from moonbox.errors import AuditError, ClosedError
from tests.runs import DRIVES, ISOLATIONS, WAYS, either, error_of, play
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path


@tool
def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


@tool
def fail() -> None:
    """Fail."""
    raise ToolError("no luck", code="unlucky", retryable=True, data={"n": 1}, detail="secret detail")


@tool
def crash() -> None:
    """Fail unexpectedly."""
    raise ValueError("something odd")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_calls_are_recorded(way: str, isolation: str) -> None:
    run = play(
        way, "pcall(tools.fail) return tools.add{ a = 1, b = 2 }, tools.add(5)", [add, fail], isolation=isolation
    )
    assert run.values == (3, 6)
    assert [(call.index, call.tool, call.arguments, call.status, call.result, call.batch) for call in run.calls] == [
        (1, "fail", {}, "error", None, 1),
        (2, "add", {"a": 1, "b": 2}, "ok", 3, 2),
        (3, "add", {"a": 5, "b": 1}, "ok", 6, 3),
    ]
    failed = run.calls[0].error
    assert failed is not None
    assert (failed.code, failed.message, failed.retryable, failed.data) == ("unlucky", "no luck", True, {"n": 1})
    assert failed.detail == "secret detail"
    assert run.usage.calls == 3
    for call in run.calls:
        assert call.duration >= 0
        assert call.queued >= 0
        assert call.bytes_in > 0
        assert call.bytes_out > 0
        assert run.started - 1 < call.started < run.started + 20


def test_the_script_never_sees_the_detail() -> None:
    run = play("run", "local _, e = pcall(tools.fail) return e, e.detail, tostring(e)", [fail])
    assert run.values == (
        {"code": "unlucky", "message": "no luck", "retryable": True, "tool": "fail", "data": {"n": 1}},
        None,
        "fail: no luck",
    )


def test_an_unexpected_exception_is_an_error_of_the_tool() -> None:
    run = play("run", "local ok, e = pcall(tools.crash) return ok, e.message, e.code", [crash])
    ok, message, _ = run.values
    assert not ok
    assert "something odd" in message
    assert "Traceback" in (error_of(run.calls[0]).detail or "")


@pytest.mark.parametrize("way", WAYS)
def test_an_uncaught_error_of_a_tool(way: str) -> None:
    run = play(way, "tools.fail()", [fail])
    assert (error_of(run).kind, error_of(run).code, error_of(run).tool, error_of(run).retryable) == (
        "tool",
        "unlucky",
        "fail",
        True,
    )
    assert "no luck" in error_of(run).message


@pytest.mark.parametrize("way", WAYS)
def test_the_budget_is_spent_before_a_batch_begins(way: str) -> None:
    called: list[int] = []

    @tool
    def note(n: int) -> int:
        """Note."""
        called.append(n)
        return n

    source = "tools.note(0) parallel.map({1, 2, 3}, function(i) return tools.note(i) end)"
    run = play(way, source, [note], limits=Limits(timeout=20, max_tool_calls=3))
    assert (error_of(run).kind, error_of(run).limit) == ("limit", "calls")
    assert called == [0]
    assert [call.arguments for call in run.calls] == [{"n": 0}]


def test_functions_that_do_not_count() -> None:
    with Sandbox([add], limits=Limits(max_tool_calls=1)) as box:
        box.define("free", lambda: 1, counted=False)
        box.define("dear", lambda: 2)
        with box.repl() as repl:
            assert repl.run("free() free() free() return tools.add(1)").value == 2
            run = repl.run("dear() return dear()")
            assert error_of(run).limit == "calls"


def test_what_waits_for_its_turn_does_not_start_when_the_run_is_over() -> None:
    release, started = threading.Event(), []

    @tool(max_concurrency=1)
    def one(n: int) -> int:
        """One at a time."""
        started.append(n)
        release.wait(20)
        return n

    with Sandbox([one]) as box, box.repl() as repl:
        source = "parallel.map({1, 2, 3}, function(i) return tools.one(i) end)"
        run = repl.run(source, limits=Limits(timeout=1.5))  # long enough for the first to begin on a busy machine
        assert error_of(run).limit == "time"
        assert len(started) == 1
        release.set()
        after = repl.run("return tools.one(4)")
        assert after.value == 4
        assert started[1:] == [4]


# Concurrency


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_max_concurrency(way: str, kind: str) -> None:
    lock = threading.Lock()
    now, most = 0, 0

    def enter(by: int) -> None:
        nonlocal now, most
        with lock:
            now += by
            most = max(most, now)

    def sync(n: int) -> int:
        enter(1)
        time.sleep(0.01)
        enter(-1)
        return n

    async def asynchronous(n: int) -> int:
        enter(1)
        await asyncio.sleep(0.01)
        enter(-1)
        return n

    work = Tool.from_function(sync if kind == "sync" else asynchronous, name="work", max_concurrency=2)
    source = "return parallel.map({1, 2, 3, 4, 5, 6, 7, 8}, function(i) return tools.work(i) end)"
    run = play(way, source, [work])
    assert run.value == [1, 2, 3, 4, 5, 6, 7, 8]
    assert most == 2
    assert any(call.queued > 0.005 for call in run.calls)


@pytest.mark.parametrize("way", WAYS)
def test_calls_of_a_batch_run_together(way: str) -> None:
    barrier = threading.Barrier(4, timeout=60)

    @tool
    def meet(n: int) -> int:
        """Wait for the others."""
        barrier.wait()
        return n

    run = play(way, "return parallel.map({1, 2, 3, 4}, function(i) return tools.meet(i) end)", [meet])
    assert run.value == [1, 2, 3, 4]
    assert {call.batch for call in run.calls} == {1}


# Middleware


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_middleware_before(way: str, asynchronous: bool) -> None:
    seen: list[tuple[str, Any, int]] = []

    def look(call: ToolCall) -> Any:
        seen.append((call.tool, dict(call.arguments), call.index))
        match call.arguments["a"]:
            case 1:
                return None
            case 2:
                return call.with_arguments({"a": 20, "b": 2})
            case 3:
                return call.answer("instead")
            case _:
                return call.refuse("not four")

    layer = Middleware(before=either(asynchronous, look))
    source = """
    local ok, e = pcall(tools.add, 4)
    return tools.add(1), tools.add(2), tools.add(3), ok, e.code, e.message
    """
    run = play(way, source, [add], middleware=[layer])
    assert run.values == (2, 22, "instead", False, "denied", "not four")
    assert seen == [
        ("add", {"a": 4, "b": 1}, 1),
        ("add", {"a": 1, "b": 1}, 2),
        ("add", {"a": 2, "b": 1}, 3),
        ("add", {"a": 3, "b": 1}, 4),
    ]
    assert [call.status for call in run.calls] == ["denied", "ok", "ok", "ok"]
    assert run.calls[2].arguments == {"a": 20, "b": 2}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_middleware_after(way: str, asynchronous: bool) -> None:
    def look(call: ToolCall) -> Any:
        return call.with_result({"was": call.result}) if call.result > 2 else None

    layer = Middleware(after=either(asynchronous, look))
    run = play(way, "return tools.add(1), tools.add(5)", [add], middleware=[layer])
    assert run.values == (2, {"was": 6})


def test_layers_of_middleware_wrap_each_other() -> None:
    order: list[str] = []

    def layer(name: str) -> Middleware:
        return Middleware(
            before=lambda call: order.append(f"before {name}"), after=lambda call: order.append(f"after {name}")
        )

    play("run", "tools.add(1)", [add], middleware=[layer("outer"), layer("inner")])
    assert order == ["before outer", "before inner", "after inner", "after outer"]


def broken(call: ToolCall) -> None:
    raise RuntimeError("the guard is asleep")


@pytest.mark.parametrize(
    ("layer", "code", "message"),
    [
        (Middleware(before=lambda call: call.with_arguments({"a": "x"})), "invalid", "a"),
        (Middleware(before=lambda call: 5), "tool_error", "must return None"),
        (Middleware(after=lambda call: 5), "tool_error", "must return None"),
        (Middleware(before=broken), "tool_error", "the guard is asleep"),
    ],
    ids=["wrong arguments", "wrong before", "wrong after", "it raises"],
)
def test_middleware_that_is_wrong(layer: Middleware, code: str, message: str) -> None:
    run = play("run", "tools.add(1)", [add], middleware=[layer])
    assert (error_of(run).code, run.calls[0].status) == (code, "error")
    assert message in error_of(run).message


# What tools are given, and what they give


def test_context() -> None:
    seen: list[Context] = []

    @tool
    def look(n: int, context: Context) -> int:
        """Look."""
        seen.append(context)
        return n

    with Sandbox([look], context={"user": "ann"}) as box, box.repl() as repl:
        run = repl.run("tools.look(1) tools.look(2)")
    assert [(item.tool, item.index, item.extra["user"]) for item in seen] == [("look", 1, "ann"), ("look", 2, "ann")]
    assert {item.run_id for item in seen} == {run.id}
    assert {item.repl_id for item in seen} == {run.repl}


DEEP: Any = 1
for _ in range(70):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (object(), "bad_result"),
        (2**70, "bad_result"),
        ({1.5: 1}, "bad_result"),
        (float("nan"), "bad_result"),
        ("x" * 2000, "result_too_large"),
        (list(range(200)), "result_too_large"),
        (DEEP, "result_too_large"),
    ],
    ids=["object", "huge", "keys", "nan", "string", "array", "depth"],
)
def test_results_that_cannot_cross(result: Any, code: str) -> None:
    odd = Tool.from_schema(name="odd", call=lambda _: result)
    source = "local ok, e = pcall(tools.odd, {}) return ok, e.code"
    run = play("run", source, [odd], limits=Limits(max_string=1000, max_array=100))
    assert run.values == (False, code)


def test_on_call_sees_the_beginning_and_the_end() -> None:
    seen: list[tuple[str, str]] = []
    with Sandbox([add, fail], on_call=lambda entry: seen.append((entry.tool, entry.status))) as box:
        box.run("tools.add(1) pcall(tools.fail)")
    assert seen == [("add", "in_flight"), ("add", "ok"), ("fail", "in_flight"), ("fail", "error")]


def test_an_on_call_that_fails_does_not_spoil_the_repl() -> None:
    def broken(entry: Any) -> None:
        raise RuntimeError("display gone")

    with Sandbox([add], on_call=broken) as box, box.repl() as repl:
        assert repl.run("x = 1").ok
        with pytest.raises(RuntimeError, match="display gone"):
            repl.run("return tools.add(1)")
        after = repl.run("return x, 'mine'")
        assert after.values == (None if after.state_lost else 1, "mine")


def test_a_sink_that_fails_does_not_spoil_the_repl() -> None:
    class Broken:
        calls = 0

        def write(self, run: Run) -> None:
            self.calls += 1
            if self.calls == 2:
                raise OSError("disk full")

        def close(self) -> None:
            pass

    with Sandbox([add], audit=Broken()) as box, box.repl() as repl:
        assert repl.run("x = 1").ok
        with pytest.raises(AuditError, match="disk full"):
            repl.run("return x")
        assert repl.run("return x").value == 1


def test_a_tool_may_use_another_repl() -> None:
    with Sandbox() as box:
        inner: Repl = box.repl()

        def nested(n: int) -> int:
            value: int = inner.run(f"return {n} * 2").value
            return value

        with box.repl() as outer:
            outer.define("nested", nested)
            assert outer.run("return nested(21)").value == 42
        inner.close()


def test_a_tool_may_not_use_its_own_repl() -> None:
    """It would wait for itself: the run's own timeout ends it."""
    with Sandbox() as box, box.repl() as repl:
        repl.define("again", lambda: repl.run("return 1").value)
        run = repl.run("return again()", limits=Limits(timeout=0.5))
        assert error_of(run).limit == "time"
        assert repl.run("return 2").value == 2


class Unusual(BaseException):
    """Not an Exception."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("problem", [SystemExit, asyncio.CancelledError, Unusual])
def test_a_tool_that_wants_to_end_the_program(way: str, slow: bool, problem: type[BaseException]) -> None:
    @tool
    def leave() -> None:
        """Give up on everything."""
        time.sleep(0.02 if slow else 0)
        raise problem

    run = play(way, "local ok, e = pcall(tools.leave) return ok, e.tool, e.code", [leave])
    assert run.values[:2] == (False, "leave")
    assert (run.values[2] == "cancelled") is (problem is asyncio.CancelledError)
    assert run.calls[0].status == "error"


@pytest.mark.parametrize("way", WAYS)
def test_an_async_tool_that_is_cancelled_from_within(way: str) -> None:
    @tool
    async def odd() -> None:
        """Cancel what it waits for."""
        inner = asyncio.ensure_future(asyncio.sleep(10))
        inner.cancel()
        await inner

    run = play(way, "local ok, e = pcall(tools.odd) return ok, tools.add(1)", [odd, add])
    assert run.values == (False, 2)
    assert run.calls[0].status in ("error", "cancelled")


def test_a_tool_can_ask_whether_its_run_has_ended() -> None:
    noticed = threading.Event()

    @tool
    def long(context: Context) -> None:
        """Work until the run has ended."""
        wait_until(context.cancelled)
        noticed.set()

    run = play("run", "tools.long()", [long], limits=Limits(timeout=0.3))
    assert run.error is not None and run.error.limit == "time"
    assert noticed.wait(60)


def test_one_error_that_two_tools_raise() -> None:
    """Each call has a copy of its own: with its tool's name and its traceback, and without secrets."""
    missing = ToolError("no such thing: sk-123456", code="not_found", data={"key": "sk-123456"})

    @tool
    def first() -> None:
        """Fail."""
        raise missing

    @tool
    def second() -> None:
        """Fail too."""
        raise missing

    script = "local _, a = pcall(tools.first) local _, b = pcall(tools.second) return a.tool, b.tool, b.data.key"
    with Sandbox([first, second], secrets={"key": "sk-123456"}) as box:
        run = box.run(script)
    assert run.values == ("first", "second", "[secret key]")
    assert ["in first" in str(call.error and call.error.detail) for call in run.calls] == [True, False]
    assert (missing.message, missing.data, missing.tool) == ("no such thing: sk-123456", {"key": "sk-123456"}, None)


@pytest.mark.parametrize("drive", DRIVES)
@pytest.mark.parametrize("journal", [False, True])
def test_a_run_whose_callback_fails_is_in_the_trail(drive: Any, journal: bool, tmp_path: Path) -> None:
    """Its tool has been called. The caller gets the exception, and the Repl is usable."""

    def fail(text: str) -> None:
        raise OSError("the reader is gone")

    @tool
    def pay() -> str:
        """Have an effect."""
        return "paid"

    trail = MemorySink()
    with Sandbox([pay], audit=trail, journal=tmp_path / "state.db" if journal else None) as box, box.repl() as repl:
        with pytest.raises(OSError, match="the reader is gone"):
            drive(repl, "print(tools.pay())", on_output=fail)
        (run,) = trail.runs()
        assert (error_of(run).kind, [(call.tool, call.status) for call in run.calls]) == ("cancelled", [("pay", "ok")])
        assert repl.run("return 1").state_lost
        assert not journal or [known.state for known in box.journal.runs()] == ["ok", "cancelled"]


def test_a_direct_call_whose_callback_fails_is_in_the_trail() -> None:
    def fail(entry: Any) -> None:
        if entry.status != "in_flight":
            raise OSError("the reader is gone")

    @tool
    def pay() -> str:
        """Have an effect."""
        return "paid"

    trail = MemorySink()
    with Sandbox([pay], audit=trail) as box, pytest.raises(OSError, match="the reader is gone"):
        box.call("pay", on_call=fail)
    assert [run.value for run in trail.runs()] == ["paid"]


def test_a_closed_sandbox_calls_no_tool() -> None:
    made: list[int] = []

    @tool
    def note() -> None:
        """Have an effect."""
        made.append(1)

    box = Sandbox([note])
    with box.repl() as repl:
        box.close()
    for use in (
        lambda: box.call("note"),
        lambda: asyncio.run(box.acall("note")),
        lambda: repl.submit("return tools.note{}"),
    ):
        with pytest.raises(ClosedError, match=r"is closed$"):
            use()
    assert not made


@pytest.mark.parametrize(("before", "after"), [(1, 8), (8, 2)])
def test_max_concurrency_of_a_tool_that_is_replaced(before: int, after: int) -> None:
    inside, most, together = [0], [0], threading.Barrier(after)
    counting = threading.Lock()

    def work() -> None:
        """As many at once as may be."""
        with counting:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        together.wait(20)
        with counting:
            inside[0] -= 1

    box = Sandbox([Tool.from_function(lambda: None, name="work", max_concurrency=before)])
    with box:
        assert box.run("tools.work{}").ok
        box.toolbox.add(Tool.from_function(work, max_concurrency=after), replace=True)
        run = box.run("parallel.map({1, 2, 3, 4, 5, 6, 7, 8}, function() return tools.work{} end)")
        assert run.error is None
        assert most[0] == after


def test_on_call_hears_of_calls_without_a_script() -> None:
    heard: list[tuple[str, str]] = []
    add = Tool.from_function(lambda: 1, name="one")
    with Sandbox([add], on_call=lambda entry: heard.append((entry.tool, entry.status))) as box:
        box.call("one")
        asyncio.run(box.acall("one"))
        assert heard == [("one", "in_flight"), ("one", "ok")] * 2
        box.call("one", on_call=lambda entry: None)
        assert len(heard) == 4, "that of the call is called instead"
