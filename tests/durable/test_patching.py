"""A run that failed goes on with a corrected script, which repeats the record first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Answer, Pause, Sandbox, tool
from moonbox.durable.index import JournalFilter
from moonbox.errors import Diverged, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from moonbox.audit.records import Run

WRONG = "local a = tools.pay{cents = 5} local b = tools.pay{cents = 6} error('missing')"
RIGHT = (
    "local a = tools.pay{cents = 5} local b = tools.pay{cents = 6} return a.paid + b.paid + tools.pay{cents = 7}.paid"
)


class Bank:
    def __init__(self) -> None:
        self.paid: list[int] = []

    def tools(self) -> list[Any]:
        @tool
        def pay(cents: int) -> dict[str, int]:
            """Pay."""
            self.paid.append(cents)
            return {"paid": cents}

        return [pay]


@pytest.fixture
def bank() -> Bank:
    return Bank()


@pytest.fixture
def box(bank: Bank, tmp_path: Path) -> Iterator[Sandbox]:
    with Sandbox(bank.tools(), journal=tmp_path / "state.db") as made:
        yield made


@pytest.fixture
def failed(box: Sandbox) -> Run:
    run = box.run(WRONG)
    assert run.error is not None
    return run


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_only_what_is_new_is_made(box: Sandbox, bank: Bank, failed: Run, mode: str) -> None:
    run = box.patch(failed.id, RIGHT) if mode == "sync" else asyncio.run(box.apatch(failed.id, RIGHT))
    assert (run.id, run.value, len(run.calls), bank.paid) == (failed.id, 18, 3, [5, 6, 7])
    (known,) = box.journal.runs()
    assert (known.state, known.source) == ("ok", RIGHT)
    assert box.journal.runs(JournalFilter(state="failed")) == () == box.journal.runs(JournalFilter(text="missing"))
    assert box.resume(run.id).value == 18  # its record again
    assert bank.paid == [5, 6, 7]


def test_a_script_that_does_something_else_is_refused(box: Sandbox, bank: Bank, failed: Run) -> None:
    other = "local a = tools.pay{cents = 5} return tools.pay{cents = 60}.paid"
    with pytest.raises(Diverged) as caught:
        box.patch(failed.id, other)
    assert str(caught.value) == (
        f"the corrected script does not repeat run {failed.id}: it differs at call 2: "
        'recorded: it called pay[{"cents":6}]; now: it called pay[{"cents":60}]; nothing was changed'
    )
    with pytest.raises(Diverged, match=r"it differs at call 2: recorded: .*; now: the run ended; nothing was changed"):
        box.patch(failed.id, "return tools.pay{cents = 5}.paid")
    (known,) = box.journal.runs()
    assert (known.state, known.source, bank.paid) == ("runtime", WRONG, [5, 6])
    assert box.patch(failed.id, RIGHT).value == 18


def test_one_call_is_answered_or_left_out(box: Sandbox, bank: Bank, failed: Run) -> None:
    run = box.patch(failed.id, RIGHT, answer={2: {"paid": 100}})
    assert (run.value, bank.paid) == (112, [5, 6, 7])
    again = box.run(WRONG)
    shorter = "local b = tools.pay{cents = 6} return b.paid + os.time() * 0"
    run = box.patch(again.id, shorter, skip=[1])
    assert (run.value, bank.paid, [call.arguments["cents"] for call in run.calls]) == (6, [5, 6, 7, 5, 6], [6])
    assert box.resume(again.id).value == 6
    third = box.run(WRONG)
    caught = "local _, e = pcall(tools.pay, {cents = 5}) local b = tools.pay{cents = 6} return {e.code, b.paid}"
    assert box.patch(third.id, caught, answer={1: Answer.error("gone", code="lost")}).value == ["lost", 6]
    with pytest.raises(UsageError, match="has 2 calls, and no call 3"):
        box.patch(box.run(WRONG).id, RIGHT, skip=[3])


def test_what_cannot_be_corrected(box: Sandbox, failed: Run) -> None:
    good = box.run("return 1")
    with pytest.raises(UsageError, match="has ended well; there is nothing to correct"):
        box.patch(good.id, "return 2")
    with pytest.raises(UsageError, match="the corrected script cannot run: line 1: "):
        box.patch(failed.id, "return tools.nothing()")
    with box.repl() as repl:
        first = repl.run("x = nil + 1")
        repl.run("y = 2").unwrap()
        with pytest.raises(UsageError, match="later runs of its Repl have used what it did"):
            box.patch(first.id, "x = 1")
        assert repl.run("return y").value == 2


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_an_open_repl_goes_on_with_the_correction(box: Sandbox, bank: Bank, mode: str) -> None:
    with box.repl() as repl:
        repl.run("x = 1").unwrap()
        run = repl.run(f"y = x {WRONG}")
        right = f"y = x + 1 {RIGHT}"
        assert (box.patch(run.id, right) if mode == "sync" else asyncio.run(box.apatch(run.id, right))).value == 18
        assert repl.run("return x, y").values == (1, 2)
        assert bank.paid == [5, 6, 7]


def test_an_open_repl_that_is_in_use_is_not_corrected(box: Sandbox) -> None:
    with box.repl() as repl:
        failed = repl.run("x = nil + 1")
        pause = repl.start("return tools.pay{cents = 1}")
        assert isinstance(pause, Pause)
        with pytest.raises(UsageError, match="in use by"):
            box.patch(failed.id, "x = 1")
        assert pause.cancel().error is not None


def test_a_closed_repl_goes_on_with_the_correction(box: Sandbox) -> None:
    repl = box.repl()
    repl.run("x = 1").unwrap()
    run = repl.run("y = x + nothing")
    repl.close()
    assert box.patch(run.id, "y = x + 1").ok
    with box.restore(repl.id) as again:
        assert again.run("return y").value == 2
