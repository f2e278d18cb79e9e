"""Approvals: what a person may decide, and the clock that stands still meanwhile."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Run, Sandbox, ToolCall, tool
from moonbox.audit.sinks import MemorySink, open_trail
from tests import runs
from tests.runs import WAYS, either, error_of

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Clock


@tool(policy="approve")
def pay(amount: int, to: str = "ann") -> str:
    """Pay somebody."""
    return f"{amount} to {to}"


@tool(policy="direct")
def private() -> int:
    """Not for scripts."""
    return 1


def play(way: str, source: str, approve: Any, **options: Any) -> Run:
    return runs.play(way, source, [pay, private], approve=approve, **options)


DECISIONS: list[tuple[Any, tuple[Any, ...], str, str]] = [
    (lambda call: True, (True, "5 to ann"), "allowed", "ok"),
    (lambda call: "allow", (True, "5 to ann"), "allowed", "ok"),
    (lambda call: call.allow(), (True, "5 to ann"), "allowed", "ok"),
    (lambda call: call.always(), (True, "5 to ann"), "always", "ok"),
    (lambda call: "always", (True, "5 to ann"), "always", "ok"),
    (lambda call: call.edit({"amount": 1, "to": "bob"}), (True, "1 to bob"), "edited", "ok"),
    (lambda call: False, (False, "a person declined this call"), "denied", "denied"),
    (lambda call: None, (False, "a person declined this call"), "denied", "denied"),
    (lambda call: "deny", (False, "a person declined this call"), "denied", "denied"),
    (lambda call: call.deny(), (False, "a person declined this call"), "denied", "denied"),
    (lambda call: call.deny("too much"), (False, "a person declined this call: too much"), "denied", "denied"),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(("decide", "expected", "approval", "status"), DECISIONS)
def test_decisions(
    way: str, asynchronous: bool, decide: Any, expected: tuple[Any, ...], approval: str, status: str
) -> None:
    seen: list[ToolCall] = []

    def ask(call: ToolCall) -> Any:
        seen.append(call)
        return decide(call)

    source = "local ok, r = pcall(tools.pay, 5) return ok, ok and r or r.message"
    run = play(way, source, either(asynchronous, ask), isolation="inline")
    assert run.values == expected
    assert [(call.approval, call.status) for call in run.calls] == [(approval, status)]
    (call,) = seen
    assert call.definition is not None
    assert (call.tool, call.arguments, call.index, call.definition.name) == (
        "pay",
        {"amount": 5, "to": "ann"},
        1,
        "pay",
    )


OTHER_LANGUAGES = {
    "rhai": "let r = []; try { r = [true, pay(5)]; } catch (e) { r = [false, e.message]; } r",
    "python": "try:\n    r = [True, pay(5)]\nexcept ToolError as e:\n    r = [False, e.message]\nr",
}


@pytest.mark.parametrize("language", OTHER_LANGUAGES)
@pytest.mark.parametrize("decision", range(0, len(DECISIONS), 2))
def test_decisions_in_other_languages(language: str, decision: int) -> None:
    decide, expected, approval, status = DECISIONS[decision]
    run = play("run", OTHER_LANGUAGES[language], decide, language=language, isolation="inline")
    assert (run.error, tuple(run.value)) == (None, expected)
    assert [(call.approval, call.status) for call in run.calls] == [(approval, status)]
    run = play("run", "pay(5)", lambda call: call.deny("no"), language=language)
    assert (error_of(run).kind, error_of(run).code) == ("denied", "approval_denied")
    assert "a person declined this call: no" in run.for_model()


@pytest.mark.parametrize("way", WAYS)
def test_a_denied_call_that_nobody_catches(way: str) -> None:
    run = play(way, "tools.pay(5)", lambda call: False)
    assert (error_of(run).kind, error_of(run).code) == ("denied", "approval_denied")


def test_nobody_to_ask() -> None:
    run = play("run", "local ok, e = pcall(tools.pay, 5) return ok, e.code", None)
    assert run.values == (False, "approval_unavailable")
    assert run.calls[0].status == "denied"


def test_always_holds_for_the_repl() -> None:
    asked: list[int] = []

    def ask(call: ToolCall) -> Any:
        asked.append(call.arguments["amount"])
        return call.always()

    with Sandbox([pay], approve=ask) as box:
        with box.repl() as repl:
            assert repl.run("tools.pay(1) tools.pay(2)").ok
            assert repl.run("tools.pay(3)").ok
            assert repl.run("tools.pay(4)", limits=Limits(timeout=5)).ok
        with box.repl() as other:
            assert other.run("tools.pay(5)").ok
    assert asked == [1, 5]


def test_edited_arguments_are_validated() -> None:
    run = play("run", "local ok, e = pcall(tools.pay, 5) return ok, e.code", lambda call: call.edit({"amount": "x"}))
    assert run.values == (False, "invalid")


def test_wrong_arguments_are_not_shown_to_anybody() -> None:
    asked: list[ToolCall] = []
    run = play("run", "local ok, e = pcall(tools.pay, 'x') return ok, e.code", asked.append)
    assert run.values == (False, "invalid")
    assert asked == []


def broken(call: ToolCall) -> bool:
    raise RuntimeError("no screen at /home/ann/secret")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("approve", "detail"),
    [
        (broken, "RuntimeError: no screen"),
        (lambda call: 17, "approve must return True, False, 'allow', 'deny', 'always'"),
        (lambda call: call.allow(by=5), "`by` of a Decision must be a string"),
    ],
)
def test_a_failure_of_the_approver_is_not_one_of_the_tool(way: str, approve: Any, detail: str) -> None:
    run = play(way, "local ok, e = pcall(tools.pay, 5) return ok, e.code, e.message", approve)
    assert run.values == (
        False,
        "approval_unavailable",
        "the tool 'pay' needs a person's approval, and the host could not ask for it; go on without it",
    )
    (call,) = run.calls
    assert (call.status, call.result, call.approval) == ("denied", None, None)
    assert detail in (error_of(call).detail or "")


BY: list[tuple[Any, tuple[Any, ...]]] = [
    (lambda call: call.allow(by="ann", reason="as agreed"), ("allowed", "ann", "as agreed", None, "ok")),
    (lambda call: call.always(by="ann", reason="trusted"), ("always", "ann", "trusted", None, "ok")),
    (
        lambda call: call.edit({"amount": 1}, by="bob", reason="too much"),
        ("edited", "bob", "too much", {"amount": 5, "to": "ann"}, "ok"),
    ),
    (lambda call: call.deny("no", by="bob"), ("denied", "bob", "no", None, "denied")),
    (lambda call: True, ("allowed", "", "", None, "ok")),
]


@pytest.mark.parametrize(("decide", "expected"), BY)
def test_the_record_says_who_decided_and_why(decide: Any, expected: tuple[Any, ...], tmp_path: Path) -> None:
    path = tmp_path / "trail.db"
    run = play("run", "pcall(tools.pay, 5)", decide, audit=path)
    (stored,) = open_trail(path).get(run.id).calls
    for call in (run.calls[0], stored):
        decided = (call.approval, call.approval_by, call.approval_reason, call.original_arguments, call.status)
        assert decided == expected


def test_always_remembers_who_said_it() -> None:
    with Sandbox([pay], approve=lambda call: call.always(by="ann")) as box:
        run = box.run("tools.pay(1) tools.pay(2)")
    assert [(call.approval, call.approval_by) for call in run.calls] == [("always", "ann"), ("always", "ann")]


def test_original_arguments_are_redacted() -> None:
    sink = MemorySink()
    play("run", "tools.pay(5, 'ann-the-payee')", lambda call: call.edit({"amount": 1}), audit=sink, redact=["to"])
    (run,) = sink.runs()
    assert run.calls[0].original_arguments == {"amount": 5, "to": "[redacted]"}
    assert "ann-the-payee" not in run.to_json()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_clock_stands_still_while_a_person_thinks(way: str, asynchronous: bool, clock: Clock) -> None:
    def ask(call: ToolCall) -> bool:
        clock.advance(1000)
        return True

    run = play(way, "return tools.pay(1)", either(asynchronous, ask), limits=Limits(timeout=60))
    assert run.value == "1 to ann"
    assert run.usage.wall < 500
    assert run.calls[0].queued >= 1000


@pytest.mark.parametrize("way", WAYS)
def test_the_clock_goes_on_afterwards(way: str, clock: Clock) -> None:
    async def ask(call: ToolCall) -> bool:
        clock.advance(1000)
        return True

    run = play(way, "tools.pay(1) while true do end", ask, limits=Limits(timeout=0.3))
    assert error_of(run).limit == "time"


@pytest.mark.parametrize("called", ["tools.inside()", "inside()"], ids=["tool", "function"])
def test_the_clock_of_a_run_within_a_call_stands_still_with_the_outer_one(called: str, clock: Clock) -> None:
    def ask(call: ToolCall) -> bool:
        clock.advance(1000)
        return True

    with Sandbox([pay], approve=ask, limits=Limits(timeout=60)) as inner:

        def inside() -> Any:
            """Run another script."""
            return inner.run("return tools.pay(1)").value

        with Sandbox([inside], limits=Limits(timeout=60)) as outer, outer.repl() as repl:
            repl.define("inside", inside)
            run = repl.run(f"return {called}")
    assert (run.value, run.usage.wall < 500) == ("1 to ann", True)


def test_several_people_are_asked_at_once() -> None:
    together = threading.Barrier(3, timeout=60)

    def ask(call: ToolCall) -> bool:
        together.wait()
        return True

    run = play("run", "return parallel.map({1, 2, 3}, function(i) return tools.pay(i) end)", ask)
    assert run.value == ["1 to ann", "2 to ann", "3 to ann"]


def test_direct_tools_are_not_there() -> None:
    run = play("run", "return tools.private, docs['tools.private']", None)
    assert run.values == (None, None)


def test_a_late_approval_starts_nothing() -> None:
    """The run was given up while the person was thinking: the call is not made any more."""
    asked, decide, paid = threading.Event(), threading.Event(), []

    @tool(policy="approve")
    def spend(amount: int) -> int:
        """Spend."""
        paid.append(amount)
        return amount

    def ask(call: ToolCall) -> bool:
        asked.set()
        decide.wait(60)
        return True

    box = Sandbox([spend], approve=ask)
    repl = box.repl()
    results: list[Run] = []
    thread = threading.Thread(target=lambda: results.append(repl.run("return tools.spend(5)")))
    thread.start()
    asked.wait(60)
    repl.close()
    thread.join(60)
    decide.set()
    box.close()
    while tools := [each for each in threading.enumerate() if each.name == "moonbox-tool"]:
        tools[0].join(60)
        assert not tools[0].is_alive()
    assert paid == []
    assert error_of(results[0]).kind == "cancelled"


@pytest.mark.parametrize("call", ["script", "direct"])
def test_an_approver_that_blocks_does_not_block_the_event_loop(call: str) -> None:
    asked, decided = threading.Event(), threading.Event()

    def approve(_: ToolCall) -> bool:
        asked.set()
        return decided.wait(20)

    async def main() -> Run:
        async with Sandbox([pay], approve=approve) as box:
            work = box.arun("return tools.pay{amount = 5}") if call == "script" else box.acall("pay", {"amount": 5})
            task = asyncio.create_task(work)
            await asyncio.to_thread(asked.wait, 20)
            decided.set()  # reached only if the loop goes on while the person thinks
            return await task

    assert asyncio.run(main()).value == "5 to ann"
