"""The calls of a run are taken back in reverse order, each by a recorded call of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Sandbox, ToolError, tool
from moonbox.durable.index import JournalFilter
from moonbox.durable.leases import InUse
from moonbox.durable.store import open_journal
from moonbox.durable.undoing import Undoing
from moonbox.errors import ToolDefinitionError, UsageError
from moonbox.runs.events import Begin
from tests.durable.crashing import new_database
from tests.postgres import postgres  # noqa: F401 - a fixture
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCRIPT = """
    local ids = {}
    for cents = 5, 7 do ids[#ids + 1] = tools.pay{cents = cents}.id end
    pcall(tools.pay, {cents = -1})
    tools.look()
    tools.mail{to = "ada"}
    return ids
"""


class Bank:
    def __init__(self) -> None:
        self.accounts: dict[str, int] = {}
        self.made: list[str] = []
        self.broken = ""

    def tools(self) -> list[Any]:
        def refund(id: str) -> None:
            if id == self.broken:
                raise ToolError("the bank is closed", code="unavailable")
            self.made.append(f"refund {id} {self.accounts.pop(id)}")

        @tool(undo=refund)
        def pay(cents: int) -> dict[str, str]:
            """Pay."""
            if cents < 0:
                raise ToolError("no", code="invalid")
            self.accounts[f"p{cents}"] = cents
            return {"id": f"p{cents}"}

        @tool(hints={"read_only": True})
        def look() -> int:
            """Look."""
            return len(self.accounts)

        @tool
        def mail(to: str) -> str:
            """Send a mail, which nothing takes back."""
            return to

        return [pay, look, mail]


@pytest.fixture
def bank() -> Bank:
    return Bank()


@pytest.fixture
def box(bank: Bank, tmp_path: Path) -> Iterator[Sandbox]:
    with Sandbox(bank.tools(), journal=tmp_path / "state.db", language="lua") as made:
        yield made


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_calls_are_taken_back_in_reverse_order(box: Sandbox, bank: Bank, mode: str) -> None:
    run = box.run(SCRIPT).unwrap() and box.journal.runs()[0]
    plan = [(step.call, step.tool, step.undo, step.given, step.why_not) for step in box.undo_plan(run.id)]
    assert plan == [
        (6, "mail", "", {}, "its tool has no undo"),
        (3, "pay", "undo_pay", {"id": "p7"}, ""),
        (2, "pay", "undo_pay", {"id": "p6"}, ""),
        (1, "pay", "undo_pay", {"id": "p5"}, ""),
    ]
    done = box.undo(run.id) if mode == "sync" else asyncio.run(box.aundo(run.id))
    assert (done.run.ok, len(done.undone), done.left) == (True, 3, ())
    assert [step.tool for step in done.impossible] == ["mail"]
    assert (bank.made, bank.accounts) == (["refund p7 7", "refund p6 6", "refund p5 5"], {})
    assert [call.arguments for call in done.run.calls] == [{"id": "p7"}, {"id": "p6"}, {"id": "p5"}]
    assert box.journal.known(run.id).undone == "partly"
    (undoing,) = box.journal.runs(JournalFilter(labels={"undoes": run.id}))
    assert undoing.id == f"{run.id}-undo"
    with pytest.raises(UsageError, match=f"was undone by run '{run.id}-undo'"):
        box.undo(run.id)
    assert box.run("return 1").value == 1  # the journal and the trail are still open


def test_it_stops_at_the_first_failure_and_goes_on_there(box: Sandbox, bank: Bank) -> None:
    box.run(SCRIPT).unwrap()
    run = box.journal.runs()[0]
    bank.broken = "p6"
    done = box.undo(run.id)
    assert done.run.error is not None and "the bank is closed" in done.run.error.message
    assert [step.call for step in done.undone] == [3] and [step.call for step in done.left] == [2, 1]
    assert bank.made == ["refund p7 7"]
    bank.broken = ""
    done = box.undo(run.id)
    assert (len(done.undone), done.left, done.run.error) == (3, (), None)
    assert bank.made == ["refund p7 7", "refund p6 6", "refund p5 5"]


@pytest.mark.parametrize("place", ["sqlite", "postgresql"])
def test_a_run_that_many_take_back_at_once_is_taken_back_once(
    place: str, bank: Bank, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    journal = tmp_path / "state.db" if place == "sqlite" else new_database(request.getfixturevalue("postgres"))
    with Sandbox(bank.tools(), journal=journal) as box, Sandbox(bank.tools(), journal=journal) as other:
        run = box.run("for cents = 1, 20 do tools.pay{cents = cents} end")
        together = threading.Barrier(4)

        def undo(box: Sandbox) -> bool:
            together.wait()
            try:
                return box.undo(run.id).run.ok
            except UsageError as refused:
                assert isinstance(refused, InUse) or f"{run.id}-undo" in str(refused)  # begun, or only just beginning
                return False

        with ThreadPoolExecutor(4) as threads:
            assert sorted(threads.map(undo, (box, box, other, other))) == [False, False, False, True]
        assert bank.made == [f"refund p{cents} {cents}" for cents in range(20, 0, -1)]
        assert box.journal.known(run.id).undone == "yes"


def test_what_is_taken_back_is_not_corrected(box: Sandbox, bank: Bank) -> None:
    run = box.run("tools.pay{cents = 1} tools.pay{cents = 2} error('missing')")
    bank.broken = "p1"
    assert len(box.undo(run.id).left) == 1
    with pytest.raises(UsageError, match=f"cannot be patched: run '{run.id}-undo' takes its calls back"):
        box.patch(run.id, "tools.pay{cents = 1} tools.pay{cents = 2}")
    bank.broken = ""
    assert (box.undo(run.id).left, bank.accounts) == ((), {})


def test_an_undoing_that_was_cut_off_goes_on_with_undo_alone(bank: Bank, tmp_path: Path) -> None:
    """Not by itself: its tools are those that take calls back, under names of their own."""
    place = tmp_path / "state.db"
    with Sandbox(bank.tools(), journal=place) as box:
        box.run("tools.pay{cents = 1} tools.pay{cents = 2}", run_id="paid").unwrap()
        _, arguments, options = Undoing(box.journal, "paid", box.toolbox).way(None, box.limits)
    journal = open_journal(place)
    for run, source, inputs, labels in (
        ("paid-undo", arguments[0], [*options["inputs"].items()], options["labels"]),
        ("other", "return tools.look()", [], {}),
    ):
        begin = Begin(
            run=run, number=1, source=source, inputs=inputs, limits={}, seed=1, started=time.time(), labels=labels
        )
        held = journal.create(run, "lua", labels)
        journal.append(held, 0, run, [begin])
        journal.release(held)
    journal.close()
    with Sandbox(bank.tools(), journal=place, recover=True) as box:
        wait_until(lambda: box.journal.known("other").state == "ok")
        assert box.journal.known("paid-undo").state == "interrupted"
        assert (box.undo("paid").left, bank.accounts) == ((), {})


def test_each_run_has_an_id_of_its_own(box: Sandbox, bank: Bank) -> None:
    with box.repl() as repl:
        repl.run("x = 1", run_id="one").unwrap()
        with pytest.raises(UsageError, match=r"has a run 'one' already; each run has an id of its own$"):
            repl.run("tools.pay{cents = 1}", run_id="one")
        assert repl.run("return x").value == 1
    assert (bank.accounts, [known.source for known in box.journal.runs()]) == ({}, ["return x", "x = 1"])


def test_calls_of_which_nobody_knows_are_in_the_plan(tmp_path: Path) -> None:
    """Also those whose fate a person left open when the run was continued after a crash."""

    @tool(undo="look")
    def pay(code: str) -> None:
        """Pay."""
        raise ToolError("no answer", code=code)

    @tool(undo="look", timeout=0.01)
    async def slow() -> None:
        """Takes too long."""
        await asyncio.sleep(60)

    @tool
    def look() -> None:
        """Take back."""

    script = "for _, code in ipairs{'timeout', 'in_doubt', 'conflict'} do pcall(tools.pay, {code = code}) end "
    script += "pcall(tools.slow)"
    with Sandbox([pay, slow, look], journal=tmp_path / "state.db") as box:
        assert box.run(script, run_id="open").ok
        plan = [(step.call, step.why_not) for step in box.undo_plan("open")]
    assert plan == [(at, "it is not known whether it took effect") for at in (4, 2, 1)]


def test_the_arguments_are_those_that_a_person_has_written(tmp_path: Path) -> None:
    @tool(policy="approve")
    def mail(to: str) -> str:
        """Send a mail, which nothing takes back."""
        return to

    with Sandbox([mail], journal=tmp_path / "state.db", approve=lambda call: call.edit({"to": "ben"})) as box:
        run = box.run("return tools.mail{to = 'ada'}")
        (step,) = box.undo_plan(box.journal.runs()[0].id)
        assert (run.value, step.arguments) == ("ben", {"to": "ben"})


def test_what_a_correction_leaves_out_or_answers_otherwise_was_made_and_is_taken_back(box: Sandbox, bank: Bank) -> None:
    run = box.run("for cents = 5, 8 do tools.pay{cents = cents} end error('missing')")
    shorter = "for cents = 6, 8, 2 do tools.pay{cents = cents} end "
    assert not box.patch(run.id, "tools.pay{cents = 5} " + shorter + "error('again')", skip=[3]).ok
    corrected = box.patch(run.id, shorter + "return tools.pay{cents = 9}", skip=[1], answer={3: {"id": "elsewhere"}})
    assert (len(corrected.calls), corrected.calls[1].result) == (3, {"id": "elsewhere"})
    plan = [(step.call, step.given["id"]) for step in box.undo_plan(run.id)]
    assert plan == [(3, "p9"), (2, "p8"), (0, "p7"), (1, "p6"), (0, "p5")]
    assert box.undo(run.id).left == ()
    assert (bank.accounts, box.journal.known(run.id).undone) == ({}, "yes")


def test_a_tool_is_named_as_the_undo_of_another(tmp_path: Path) -> None:
    opened: list[int] = []

    @tool(undo="close_ticket")
    def open_ticket(title: str) -> dict[str, int]:
        """Open."""
        opened.append(len(title))
        return {"number": len(title)}

    @tool(policy="approve")
    def close_ticket(number: int, title: str, reason: str = "undone") -> str:
        """Close."""
        opened.remove(number)
        return reason + title

    @tool(undo="nothing")
    def other() -> int:
        """Other."""
        return 1

    asked: list[Any] = []

    def approve(call: Any) -> Any:
        asked.append(call.arguments)
        return call.allow()

    with Sandbox([open_ticket, close_ticket, other], journal=tmp_path / "s.db", approve=approve, language="lua") as box:
        run = box.run("tools.open_ticket{title = 'tea'} tools.other()")
        assert [step.why_not for step in box.undo_plan(run.id)] == ["there is no tool 'nothing'", ""]
        assert box.undo(run.id).run.ok
        assert (opened, asked) == ([], [{"number": 3, "title": "tea", "reason": "undone"}])


def test_what_an_undo_needs_must_be_known(tmp_path: Path) -> None:
    def take_back(ticket: int) -> None:
        raise AssertionError(ticket)

    @tool(undo=take_back)
    def act() -> int:
        """Act."""
        return 1

    with Sandbox([act], journal=tmp_path / "s.db") as box:
        run = box.run("tools.act()")
        (step,) = box.undo_plan(run.id)
        assert step.why_not == "neither its arguments nor its result have 'ticket', which its undo needs"
    with pytest.raises(ToolDefinitionError, match="undo must be a function or the name of a tool, not 5"):
        tool(undo=5)(take_back)  # type: ignore[call-overload]  # which is refused


def test_a_run_that_has_not_ended_is_not_undone(tmp_path: Path) -> None:
    seen: list[str] = []

    @tool
    def act() -> int:
        """Act."""
        with pytest.raises(UsageError, match="has not ended"):
            made.undo(made.journal.runs()[0].id)
        seen.append("refused")
        return 1

    with Sandbox([act], journal=tmp_path / "s.db") as made:
        made.run("tools.act()").unwrap()
    assert seen == ["refused"]
