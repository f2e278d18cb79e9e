"""What surrounds a journal fails while Repls use it: their state is kept, no call is made twice, and all goes on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Sandbox, tool
from moonbox.durable.questions import Questions
from moonbox.errors import JournalError
from tests.faults.journals import (
    IMPATIENT,
    PATIENT,
    POSTGRES_FAULTS,
    SQLITE_FAULTS,
    Faults,
    PostgresFaults,
    SqliteFaults,
)
from tests.long import LONG
from tests.postgres import Server, server
from tests.runs import WAYS
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from moonbox import Repl, Run

LARGE = "-- " + os.urandom(40_000).hex() + "\n"
"""So long a script does not fit into what a database has in reserve on a full disk."""
SITUATIONS = ("idle", "between calls", "call in flight", "approval open", "wake-up", "submit")
OVER_AT_ONCE = ("terminated connections", "replaced file", "slow disk")
"""Faults that no run fails of, however short it waits: at least one more attempt is made."""


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[Server]:
    pytest.importorskip("psycopg")
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(server(max_connections=15))
        except LookupError as missing:
            pytest.skip(str(missing))
        yield made


@pytest.fixture
def faults(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Faults]:
    made = (
        SqliteFaults(tmp_path)
        if request.param == "sqlite"
        else PostgresFaults(request.getfixturevalue("postgres_server"))
    )
    yield made
    made.close()


class Shop:
    """Tools in which a fault begins, and how often each was invoked."""

    def __init__(self, faults: Faults, fault: str, *, brief: bool) -> None:
        self.made: list[str] = []
        self.faults, self.fault, self.brief = faults, fault, brief
        self.during: str = ""

    def fail(self) -> None:
        self.faults.begin(self.fault)
        if self.brief:
            self.faults.end_soon()

    def tools(self) -> list[Any]:
        @tool
        def first() -> dict[str, Any]:
            self.made.append("first")
            if self.during == "between calls":
                self.fail()
            if self.during == "call in flight":
                self.faults.begin(self.fault)
                self.faults.end()
            return {"n": 1, "text": os.urandom(40_000).hex()}

        @tool
        def second() -> int:
            self.made.append("second")
            return 2

        @tool(policy="approve")
        def allowed() -> int:
            self.made.append("allowed")
            return 3

        return [first, second, allowed]


CALLS = LARGE + "return kept + tools.first{}.n + tools.second{}"


def drive(repl: Repl, way: str, script: str, **options: Any) -> Run:
    return repl.run(script, **options) if way == "run" else asyncio.run(repl.arun(script, **options))


def cases(situations: tuple[str, ...], small: set[tuple[str, str, str]]) -> list[Any]:
    every = [("sqlite", fault) for fault in SQLITE_FAULTS] + [("postgresql", fault) for fault in POSTGRES_FAULTS]
    return [
        pytest.param(database, fault, situation, id=f"{database}-{fault}-{situation}")
        for database, fault in every
        for situation in situations
        if LONG or (database, fault, situation) in small
    ]


SMALL = {
    *(("sqlite", "lock", situation) for situation in SITUATIONS),
    *(("postgresql", "terminated connections", situation) for situation in SITUATIONS),
    ("sqlite", "full disk", "between calls"),
    ("sqlite", "deleted file", "idle"),
    ("sqlite", "replaced file", "wake-up"),
    ("postgresql", "restart", "idle"),
    ("postgresql", "restart", "approval open"),
}


@pytest.mark.parametrize(("faults", "fault", "situation"), cases(SITUATIONS, SMALL), indirect=["faults"])
def test_a_fault_that_passes_is_waited_for(faults: Faults, fault: str, situation: str) -> None:
    """State is kept, nothing is doubled, and the run's clock stands still."""
    shop, way = Shop(faults, fault, brief=True), WAYS[SITUATIONS.index(situation) % 2]
    with Sandbox(shop.tools(), journal=faults.journal) as box, box.repl() as repl:
        assert repl.run("kept = 10").ok
        if situation == "idle":
            faults.begin(fault)
            faults.end()
            assert drive(repl, way, CALLS).unwrap() == 13
        elif situation == "wake-up":
            assert repl.sleep()
            gone = fault == "deleted file"  # nothing is waited for: only a person can bring the file back
            faults.begin(fault)
            faults.end() if gone else faults.end_soon()
            assert drive(repl, way, CALLS).unwrap() == 13
        elif situation == "submit":
            faults.begin(fault)
            faults.end() if fault == "deleted file" else faults.end_soon()
            assert repl.submit(CALLS).wait(60).unwrap() == 13
        elif situation == "approval open":
            assert asked_during(faults, fault, repl).unwrap() == 13
        elif fault == "deleted file" and situation == "between calls":
            return  # in the test below
        else:
            shop.during = situation
            assert drive(repl, way, CALLS, timeout=5).unwrap() == 13
        shop.during = ""
        assert shop.made == (["allowed"] if situation == "approval open" else ["first", "second"])
        assert not repl.run("return 1").state_lost
        repl.sleep()
        assert repl.run("return kept").value == 10
        assert box.interrupted() == ()
        faults.journal.wait = PATIENT


def asked_during(faults: Faults, fault: str, repl: Repl) -> Run:
    """The answer to a question that was open during the fault."""
    handle, questions = repl.submit("return kept + tools.allowed{}"), Questions(faults.journal.backend)

    def mine() -> list[Any]:
        return [each for each in questions.pending() if each.shown["run"] == handle.run_id]

    (kept,) = wait_until(mine)
    faults.begin(fault)
    faults.end()
    assert handle.status() == "running"
    wait_until(lambda: not_failing(mine))
    questions.answer(kept.id, {"kind": "allow"})
    return handle.wait(60)


def not_failing(look: Any) -> Any:
    with contextlib.suppress(JournalError):
        return look()


@pytest.mark.parametrize(
    ("faults", "fault", "situation"),
    [case for case in cases(("between calls", "wake-up", "submit"), SMALL) if case.values[1] not in OVER_AT_ONCE],
    indirect=["faults"],
)
def test_a_fault_that_stays_ends_the_run_and_nothing_else(faults: Faults, fault: str, situation: str) -> None:
    """The error is clear, what is recorded is kept, the run can be resumed, and the next one begins with that state."""
    shop = Shop(faults, fault, brief=False)
    with Sandbox(shop.tools(), journal=faults.journal) as box, box.repl() as repl:
        assert repl.run("kept = 10").ok
        run_id = secrets.token_hex(8)
        faults.journal.wait = IMPATIENT
        if situation == "between calls":
            shop.during = situation
        else:
            assert repl.sleep()
            faults.begin(fault)
        with pytest.raises(JournalError, match=r"^the journal .*") as failed:
            if situation == "submit":
                repl.submit(CALLS, run_id=run_id).wait(60)
            else:
                repl.run(CALLS, run_id=run_id)
        shop.during = ""
        faults.end()
        faults.journal.wait = PATIENT
        if situation == "between calls":
            assert f"the run is interrupted: continue it with resume({run_id!r})" in str(failed.value)
            assert [found.run_id for found in box.interrupted()] == [run_id]
            assert box.resume(run_id, in_flight="retry").unwrap() == 13
            assert shop.made.count("second") == 1
        run = repl.run("return kept")
        assert (run.value, run.state_lost) == (10, False)
        assert box.interrupted() == ()
        assert next(known.state for known in box.journal.runs() if known.repl == repl.id) == "ok"


@pytest.mark.parametrize("faults", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize("lost_for_good", [False, True])
def test_a_write_whose_answer_was_lost_is_found(
    faults: Faults, lost_for_good: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write arrives, and then the connection breaks: once, or so often that the run fails."""
    shop, backend = Shop(faults, "", brief=True), faults.journal.backend
    change, writing = backend.change, backend.writing
    losing = [True]

    def lose(statement: str) -> None:
        if losing and statement.startswith("INSERT INTO events"):
            if not lost_for_good:
                losing.clear()
            raise JournalError("the journal failed: the connection is lost", passing=True)

    def lossy(statement: str, values: Any = ()) -> int:
        changed = change(statement, values)
        lose(statement)
        return changed

    @contextlib.contextmanager
    def lossy_writing() -> Iterator[Any]:
        statements: list[str] = []
        with writing() as db:
            plain = db.change
            noted = SimpleNamespace(rows=db.rows, change=lambda *given: statements.append(given[0]) or plain(*given))
            yield noted
        for statement in statements:
            lose(statement)

    with Sandbox(shop.tools(), journal=faults.journal) as box, box.repl() as repl:
        assert repl.run("kept = 10").ok
        monkeypatch.setattr(backend, "change", lossy)
        monkeypatch.setattr(backend, "writing", lossy_writing)
        if lost_for_good:
            faults.journal.wait = IMPATIENT
            with pytest.raises(JournalError, match=r"^the journal failed: the connection is lost"):
                repl.run(CALLS)
            losing.clear()
            faults.journal.wait = PATIENT
        else:
            assert repl.run(CALLS).unwrap() == 13
            assert shop.made == ["first", "second"]
        assert repl.run("kept = kept + 1 return kept").value == 11
        with box.journal.backend.reading() as db:
            rows = db.rows("SELECT seq FROM events WHERE repl = ? ORDER BY seq", (repl.id,))
        assert [seq for (seq,) in rows] == list(range(len(rows)))
        repl.close()
        with box.restore(repl.id) as again:
            assert again.run("return kept").value == 11


@pytest.mark.parametrize("faults", ["sqlite", "postgresql"], indirect=True)
def test_an_approver_that_fails_has_not_answered(faults: Faults) -> None:
    def approve(call: Any) -> Any:
        raise ConnectionError("the chat is away")

    shop = Shop(faults, "", brief=True)
    with Sandbox(shop.tools(), journal=faults.journal, approve=approve) as box, box.repl() as repl:
        assert repl.run("kept = 10").ok
        assert asked_during(faults, "slow disk", repl).unwrap() == 13
        assert shop.made == ["allowed"]


@pytest.mark.parametrize("faults", ["postgresql"], indirect=True)
def test_two_sandboxes_share_a_server_with_few_connections(faults: Faults, postgres_server: Server) -> None:
    """40 Repls of each, all at once, with 15 connections."""
    many = 40 if LONG else 15
    with contextlib.ExitStack() as stack:
        boxes = [stack.enter_context(Sandbox(journal=place)) for place in (faults.journal, postgres_server.url)]
        repls = [stack.enter_context(box.repl()) for box in boxes for _ in range(many)]
        with ThreadPoolExecutor(len(repls)) as threads:
            for number in range(3):
                found = threads.map(lambda repl: repl.run("n = (n or 0) + 1 return n").unwrap(), repls)
                assert list(found) == [number + 1] * len(repls)
