"""Step by step: runs that stop at each batch of calls."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Answer, Limits, Pause, Run, Sandbox, tool
from moonbox.errors import ClosedError, UsageError
from tests.runs import ISOLATIONS, asynchronous, error_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox import Repl

    from .conftest import Clock


@tool
def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


@tool
def fail() -> None:
    """Fail."""
    raise ValueError("no")


@pytest.fixture(params=ISOLATIONS)
def repl(request: Any) -> Iterator[Repl]:
    with Sandbox([add, fail], isolation=request.param, limits=Limits(timeout=20)) as box, box.repl() as repl:
        yield repl


def paused(result: Run | Pause) -> Pause:
    assert isinstance(result, Pause)
    return result


def finished(result: Run | Pause) -> Run:
    assert isinstance(result, Run)
    return result


def test_a_script_without_calls(repl: Repl) -> None:
    assert finished(repl.start("return 1")).value == 1


def test_one_call_after_another(repl: Repl) -> None:
    pause = paused(repl.start("local a = tools.add(1) return a + tools.add{ a = 2, b = 3 }"))
    assert [(call.tool, call.arguments) for call in pause.calls] == [("add", {"a": 1, "b": 1})]
    pause = paused(pause.resume([100]))
    assert [(call.tool, call.arguments, call.index) for call in pause.calls] == [("add", {"a": 2, "b": 3}, 2)]
    run = finished(pause.resume([200]))
    assert run.value == 300
    assert [(call.tool, call.result, call.status) for call in run.calls] == [("add", 100, "ok"), ("add", 200, "ok")]


def test_a_batch(repl: Repl) -> None:
    pause = paused(repl.start("return parallel.map({1, 2, 3}, function(i) return tools.add(i) end)"))
    assert [call.arguments["a"] for call in pause.calls] == [1, 2, 3]
    run = finished(pause.resume({call.id: call.arguments["a"] * 10 for call in pause.calls}))
    assert run.value == [10, 20, 30]


def test_kinds_of_answers(repl: Repl) -> None:
    source = "return parallel.settle{ function() return tools.add(1) end, function() return tools.add(2) end, "
    source += "function() return tools.add(3) end, function() return tools.fail() end }"
    pause = paused(repl.start(source))
    answers = [
        Answer.value({"x": [1, None]}),
        Answer.error("busy", code="busy", retryable=True),
        Answer.run(),
        Answer.run(),
    ]
    run = finished(pause.resume(answers))
    first, second, third, fourth = run.value
    assert first == {"ok": True, "value": {"x": [1, None]}}
    assert (second["ok"], second["error"]["code"], second["error"]["retryable"]) == (False, "busy", True)
    assert third == {"ok": True, "value": 4}
    assert fourth["ok"] is False
    assert [call.status for call in run.calls] == ["ok", "error", "ok", "error"]


def test_moonbox_answers_all(repl: Repl) -> None:
    pause = paused(
        repl.start("return parallel{ function() return tools.add(1) end, function() return tools.add(2) end }")
    )
    assert finished(pause.resume()).value == [2, 3]
    pause = paused(repl.start("return tools.add(5)"))
    assert finished(pause.resume(Answer.run())).value == 6


def test_wrong_calls_never_reach_the_caller(repl: Repl) -> None:
    pause = paused(repl.start("local ok, e = pcall(tools.add, 'x') return ok, e.code, tools.add(1)"))
    assert [call.arguments for call in pause.calls] == [{"a": 1, "b": 1}]
    assert finished(pause.resume([7])).values == (False, "invalid", 7)


def test_wrong_answers(repl: Repl) -> None:
    pause = paused(
        repl.start("return parallel{ function() return tools.add(1) end, function() return tools.add(2) end }")
    )
    with pytest.raises(UsageError, match=r"^2 calls to answer"):
        pause.resume([1])
    with pytest.raises(UsageError, match="with an answer for each of"):
        pause.resume({99: 1})
    assert finished(pause.resume([1, 2])).value == [1, 2]
    with pytest.raises(UsageError, match="resumed or cancelled before"):
        pause.resume([1, 2])
    with pytest.raises(UsageError, match="resumed or cancelled before"):
        pause.cancel()


def test_an_answer_that_cannot_cross(repl: Repl) -> None:
    pause = paused(repl.start("local ok, e = pcall(tools.add, 1) return ok, e.code"))
    assert finished(pause.resume([object()])).values == (False, "bad_result")


def test_cancel(repl: Repl) -> None:
    assert repl.run("x = 1").ok
    pause = paused(repl.start("x = 2 tools.add(1) x = 3"))
    run = pause.cancel()
    assert error_of(run).kind == "cancelled"
    assert [call.status for call in run.calls] == ["cancelled"]
    assert not run.state_lost
    assert repl.run("return x").value == 2


def test_the_clock_stands_still(repl: Repl, clock: Clock) -> None:
    pause = paused(repl.start("tools.add(1) return 1", limits=Limits(timeout=60)))
    clock.advance(1000)
    run = finished(pause.resume([1]))
    assert run.ok
    assert run.usage.wall < 500


@pytest.mark.parametrize(
    ("source", "limits", "kind", "limit"),
    [
        ("print('a') tools.add(1) print('b') while true do end", Limits(timeout=3.0), "limit", "time"),
        ("print('a') tools.add(1) print('b') tools.add(2) tools.add(3)", Limits(max_tool_calls=2), "limit", "calls"),
        ("print('a') tools.add(1) print('b') error('c')", Limits(), "runtime", None),
    ],
    ids=["time", "calls", "error"],
)
def test_how_runs_end_after_a_pause(repl: Repl, source: str, limits: Limits, kind: str, limit: str | None) -> None:
    result: Run | Pause = repl.start(source, limits=limits)
    while isinstance(result, Pause):
        result = result.resume([1])
    assert (error_of(result).kind, error_of(result).limit, result.output) == (kind, limit, "a\nb\n")
    assert repl.run("return 1").value == 1


def test_other_runs_are_refused_while_one_waits(repl: Repl) -> None:
    pause = paused(repl.start("return tools.add(1)"))
    for attempt in (lambda: repl.run("return 1"), lambda: repl.start("return 1"), repl.globals, repl.reset):
        with pytest.raises(UsageError, match="waits for answers to its calls: resume or cancel its Pause first"):
            attempt()
    assert finished(pause.resume([5])).value == 5
    assert repl.run("return 1").value == 1


def test_closed_while_paused(repl: Repl) -> None:
    pause = paused(repl.start("return tools.add(1)"))
    repl.close()
    run = finished(pause.resume([1]))
    assert error_of(run).kind == "cancelled"
    with pytest.raises(ClosedError):
        repl.run("return 1")


def test_pauses_hold_no_thread(repl: Repl) -> None:
    pause = paused(repl.start("return tools.add(1)"))
    assert [thread for thread in threading.enumerate() if thread.name == "moonbox-tool"] == []
    pause.cancel()


@asynchronous
async def test_awaited(repl: Repl) -> None:
    pause = paused(await repl.astart("return tools.add(1), tools.add(2)"))
    pause = paused(await pause.aresume([10]))
    assert finished(await pause.aresume()).values == (10, 3)


def test_many_repls_wait_at_once() -> None:
    with Sandbox([add]) as box:
        waiting = [(n, repl, paused(repl.start(f"return tools.add({n})"))) for n in range(20) for repl in [box.repl()]]
        for n, repl, pause in reversed(waiting):
            assert finished(pause.resume([n * 2])).value == n * 2
            repl.close()
