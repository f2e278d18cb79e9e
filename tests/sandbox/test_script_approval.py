"""Scripts that a person must allow before they run, and decisions with a rule."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import CodeMode, Decision, Pause, Run, Sandbox, ToolCall, tool
from moonbox.durable.approvals import Approvals
from moonbox.errors import UsageError
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAID: list[int] = []


@tool(hints={"destructive": True})
def pay(cents: int, to: str = "ann") -> int:
    """Pay."""
    PAID.append(cents)
    return cents


@tool(hints={"read_only": True})
def find(id: int) -> int:
    return id


@pytest.fixture(autouse=True)
def nothing_paid() -> None:
    PAID.clear()


def by_run(box: Sandbox, source: str) -> Run:
    return box.run(source)


def by_arun(box: Sandbox, source: str) -> Run:
    return asyncio.run(box.arun(source))


def by_start(box: Sandbox, source: str) -> Run:
    with box.repl() as repl:
        step = repl.start(source)
        while isinstance(step, Pause):
            assert [call.tool for call in step.calls] == ["pay"]  # the question is no call
            step = step.resume()
        return step


def by_submit(box: Sandbox, source: str) -> Run:
    with box.repl() as repl:
        return repl.submit(source).wait()


def by_code_mode(box: Sandbox, source: str) -> Run:
    with box.repl() as repl:
        return repl.run(source, labels={"conversation": "x"})


WAYS = [by_run, by_arun, by_start, by_submit, by_code_mode]


@pytest.mark.parametrize("journal", [False, True], ids=["", "journal"])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_asks_first(way: Callable[[Sandbox, str], Run], journal: bool, tmp_path: Path) -> None:
    asked: list[ToolCall] = []

    def approve(call: ToolCall) -> Decision:
        asked.append(call)
        assert PAID == []
        return call.allow(by="ann", reason="fine")

    place = tmp_path / "state.db" if journal else None
    with Sandbox([pay, find], approve_script=approve, journal=place) as box:
        run = way(box, "return tools.pay{cents = 5}")
    assert (run.value, PAID) == (5, [5])
    assert (run.approval, run.approval_by, run.approval_reason, run.original_source) == ("allowed", "ann", "fine", "")
    (call,) = asked
    assert (call.kind, call.source, [each.path for each in call.named]) == ("script", run.source, ["pay"])
    assert [each.tool for each in run.calls] == ["pay"]
    assert Run.from_json(run.to_json()) == run


@pytest.mark.parametrize("journal", [False, True], ids=["", "journal"])
@pytest.mark.parametrize("way", WAYS)
def test_declined(way: Callable[[Sandbox, str], Run], journal: bool, tmp_path: Path) -> None:
    place = tmp_path / "state.db" if journal else None
    with Sandbox([pay], approve_script=lambda call: call.deny("too much", by="bob"), journal=place) as box:
        run = way(box, "tools.pay{cents = 5}")
        assert run.error is not None
        assert (run.error.kind, run.error.code) == ("denied", "approval_denied")
        assert run.error.message == "a person declined this script: too much"
        assert (run.approval, run.approval_by, run.state_lost) == ("denied", "bob", False)
    assert PAID == []


@pytest.mark.parametrize("way", WAYS)
def test_edited(way: Callable[[Sandbox, str], Run]) -> None:
    source = "return tools.pay{cents = 500}"
    with Sandbox([pay], approve_script=lambda call: call.edit({"script": source.replace("500", "5")})) as box:
        run = way(box, source)
    assert (run.value, run.source, run.original_source) == (5, "return tools.pay{cents = 5}", source)
    assert run.approval == "edited"


def test_an_edited_script_is_checked_too() -> None:
    with Sandbox([pay], approve_script=lambda call: call.edit({"script": "return tools.pya{}"})) as box:
        run = box.run("return 1")
        assert run.error is not None
        assert run.error.kind == "check"
    with Sandbox([pay], approve_script=lambda call: call.edit({"code": "return 1"})) as box:
        run = box.run("return 1")
        assert run.error is not None
        assert run.error.code == "approval_unavailable"


def test_what_the_check_refuses_is_not_asked_about() -> None:
    def approve(call: ToolCall) -> Decision:
        raise AssertionError

    with Sandbox([pay], approve_script=approve) as box:
        run = box.run("return tools.pya{}")
    assert run.error is not None
    assert (run.error.kind, run.approval) == ("check", None)


def test_always_holds_until_the_script_or_its_tools_change() -> None:
    asked: list[str] = []

    def approve(call: ToolCall) -> Decision:
        asked.append(call.source)
        return call.always()

    with Sandbox([pay], approve_script=approve) as box, box.repl() as repl:
        for source in ("return 1", "return 1", "return 2", "tools.pay{cents = 1}", "tools.pay{cents = 1}"):
            assert repl.run(source).approval == "always"
        assert asked == ["return 1", "return 2", "tools.pay{cents = 1}"]
        box.toolbox.add(pay.with_(description="Pay more."), replace=True)
        repl.run("return 1")
        repl.run("tools.pay{cents = 1}")
    assert asked[3:] == ["tools.pay{cents = 1}"]


def test_the_approver_of_calls() -> None:
    with Sandbox([pay], approve_script=True, approve=lambda call: call.kind == "script") as box:
        assert box.run("return 1").approval == "allowed"
    with Sandbox([pay], approve_script=True) as box:
        run = box.run("return 1")
    assert run.error is not None
    assert run.error.message == ("the script needs a person's approval, and nobody can be asked here; go on without it")


@pytest.mark.parametrize("way", [by_run, by_arun])
def test_time_stands_still_while_a_person_thinks(way: Callable[[Sandbox, str], Run]) -> None:
    answer = threading.Event()
    with Sandbox(approve_script=lambda _: answer.wait(60)) as box:
        threading.Timer(0.3, answer.set).start()
        assert way(box, "return 1").usage.wall < 0.3


@pytest.mark.parametrize("way", ["run", "arun", "start"])
def test_a_repl_that_is_closed_while_a_person_thinks(way: str) -> None:
    inbox = Approvals()
    with Sandbox(approve_script=inbox.approve) as box:
        repl = box.repl()
        ended: list[Any] = []

        def work() -> None:
            ended.append(asyncio.run(repl.arun("return 1")) if way == "arun" else getattr(repl, way)("return 1"))

        thread = threading.Thread(target=work)
        thread.start()
        (question,) = wait_until(inbox.pending)
        assert (question.kind, json.dumps(question.to_dict()) != "") == ("script", True)
        repl.close()
        thread.join(60)
    assert ended[0].error.kind == "cancelled"
    assert inbox.answered()[0].decision == "withdrawn"


def test_cancelled_while_a_person_thinks() -> None:
    async def work() -> None:
        inbox = Approvals()
        async with Sandbox(approve_script=inbox.approve) as box:
            repl = box.repl()
            assert (await _cancelled(repl, inbox)) == ()
            run = asyncio.create_task(repl.arun("return x"))  # the state is there
            while not (questions := inbox.pending()):
                await asyncio.sleep(0.01)
            inbox.answer(questions[0].id, Decision("allow"))
            assert (await run).value == 7

    async def _cancelled(repl: Any, inbox: Approvals) -> tuple[Any, ...]:
        first = asyncio.create_task(repl.arun("x = 7"))
        while not (questions := inbox.pending()):
            await asyncio.sleep(0.01)
        inbox.answer(questions[0].id, Decision("allow"))
        await first
        second = asyncio.create_task(repl.arun("x = 8"))
        while not inbox.pending():
            await asyncio.sleep(0.01)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert second.cancelled()
        return inbox.pending()

    asyncio.run(work())


def test_a_recorded_decision_is_not_asked_for_again(tmp_path: Path) -> None:
    asked: list[str] = []

    def approve(call: ToolCall) -> Decision:
        asked.append(call.source)
        return call.edit({"script": "x = tools.find{id = 3}"}) if "x" in call.source else call.always()

    place = tmp_path / "state.db"
    with Sandbox([find], approve_script=approve, journal=place) as box:
        repl = box.repl()
        repl.run("x = 1")
        repl.run("return 5")
        name = repl.id
    with Sandbox([find], approve_script=approve, journal=place) as box:
        repl = box.restore(name)
        assert repl.globals() == {"x": "number"}
        assert asked == ["x = 1", "return 5"]
        assert repl.run("return 5").approval == "always"  # still
        assert asked == ["x = 1", "return 5"]


# Decisions with a rule


def paying(box: Sandbox, *cents: int) -> list[str]:
    with box.repl() as repl:
        return [repl.run(f"tools.pay{{cents = {each}}}").calls[0].status for each in cents]


def test_a_rule_covers_later_calls(tmp_path: Path) -> None:
    asked: list[int] = []

    def approve(call: ToolCall) -> Decision:
        asked.append(call.arguments["cents"])
        return Decision.always(when={"cents": {"maximum": 100}, "to": {"const": "ann"}}, by="bob")

    box_tools = [pay.with_(policy="approve")]
    place = tmp_path / "state.db"
    with Sandbox(box_tools, approve=approve, journal=place) as box:
        repl = box.repl()
        for cents, to in ((50, "ann"), (100, "ann"), (101, "ann"), (1, "eve")):
            call = repl.run(f"tools.pay{{cents = {cents}, to = '{to}'}}").calls[0]
            rule = {"cents": {"maximum": 100}, "to": {"const": "ann"}}
            assert (call.approval, call.approval_by, call.approval_rule) == ("always", "bob", rule)
            assert Run.from_dict(json.loads(repl.run("return 1").to_json())).calls == ()
        assert asked == [50, 101, 1]
        name = repl.id
    with Sandbox(box_tools, approve=approve, journal=place) as box:
        box.restore(name).run("tools.pay{cents = 99}")
        assert asked == [50, 101, 1]


def test_a_rule_for_the_run() -> None:
    asked: list[int] = []

    def approve(call: ToolCall) -> Decision:
        asked.append(call.arguments["cents"])
        return call.always(scope="run", when={"cents": {"enum": [1, 2]}})

    with Sandbox([pay.with_(policy="approve")], approve=approve) as box, box.repl() as repl:
        run = repl.run("for _, n in ipairs{1, 2, 3, 1} do tools.pay{cents = n} end")
        assert asked == [1, 3]
        assert json.loads(run.to_json())["calls"][0]["approval_rule"] == {"cents": {"enum": [1, 2]}}
        repl.run("tools.pay{cents = 1}")
    assert asked == [1, 3, 1]


@pytest.mark.parametrize(
    ("when", "fits", "others"),
    [
        ({"a": {"const": 1}}, [1], [True, "1", 2, None]),
        ({"a": {"enum": ["x", [1]]}}, ["x", [1]], ["y", [True], []]),
        ({"a": {"maximum": 5, "minimum": 2}}, [2, 5, 3.5], [1, 6, "3", True, float("nan")]),
    ],
)
def test_what_a_rule_covers(when: dict[str, Any], fits: list[Any], others: list[Any]) -> None:
    decision = Decision.always(when=when)
    assert all(decision.covers({"a": value, "b": 1}) for value in fits)
    assert not any(decision.covers({"a": value}) for value in others)
    assert not decision.covers({"b": 1})
    assert Decision.from_dict(json.loads(json.dumps(decision.to_dict()))) == decision


@pytest.mark.parametrize("when", [[], {"a": 1}, {"a": {}}, {"a": {"type": "string"}}, {"a": {"maximum": "5"}}])
def test_invalid_rules(when: Any) -> None:
    with pytest.raises(UsageError, match="`when`"):
        Decision.always(when=when)


def test_code_mode_asks() -> None:
    with Sandbox([pay], approve_script=lambda call: call.deny("no")) as box:
        mode = CodeMode(box)
        answer = mode.handle("lua_repl", {"source_code": "return 1"})
    assert "a person declined this script: no" in answer
