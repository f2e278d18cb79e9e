"""Runs that no process continues go on by themselves, unless a call of theirs is in doubt."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from moonbox import Sandbox, tool
from moonbox.durable.store import open_journal
from moonbox.errors import UsageError
from moonbox.runs import call_ledger
from moonbox.tools.hints import Hints
from tests.durable.crashing import in_child
from tests.postgres import postgres  # noqa: F401 - a fixture
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from moonbox.durable.index import KnownRun

SCRIPT = "local x = tools.ready() return x + tools.ready()"


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "journal.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres"))


def killed(place: str, script: str, labels: dict[str, str], *, hints: Hints, recover: bool = False) -> None:
    """A process that dies in the second call of its tool: in the run of this script, or of one that it continues."""

    def host() -> str:
        calls = 0

        @tool(hints=hints)
        def ready() -> int:
            """Ready?"""
            nonlocal calls
            calls += 1
            if calls == (1 if recover else 2):
                os.kill(os.getpid(), signal.SIGKILL)
            return 1

        with Sandbox([ready], journal=place, recover=recover) as box:
            if recover:
                wait_until(lambda: False, "the process was not killed")
            return str(box.run(script, labels=labels).value)

    status, said = in_child(host)
    assert os.WIFSIGNALED(status), said


def run_of(place: str, label: str) -> KnownRun:
    journal = open_journal(place)
    (known,) = [run for run in journal.runs() if run.labels == {"case": label}]
    journal.close()
    return known


def healthy(made: list[int], hints: Hints) -> Callable[[], int]:
    @tool(hints=hints)
    def ready() -> int:
        """Ready?"""
        made.append(1)
        return 1

    return ready


def test_a_run_without_a_call_in_doubt_goes_on_when_a_process_starts(place: str) -> None:
    label, hints, made = f"goes on {time.time()}", Hints(idempotent=True), list[int]()
    killed(place, SCRIPT, {"case": label}, hints=hints)
    assert run_of(place, label).state == "interrupted"
    with Sandbox([healthy(made, hints)], journal=place, recover=True):
        wait_until(lambda: run_of(place, label).state == "ok")
    assert made == [1]  # the first answer is in the journal


def test_one_in_doubt_waits_for_a_person(place: str) -> None:
    label, made = f"in doubt {time.time()}", list[int]()
    killed(place, SCRIPT, {"case": label}, hints=Hints())
    other = f"beside it {time.time()}"
    killed(place, "return 1 + tools.ready() + (pcall(tools.ready) and 0 or 1)", {"case": other}, hints=Hints())
    journal = open_journal(place)
    (known,) = [run for run in journal.runs() if run.labels == {"case": other}]
    journal.close()
    with Sandbox([healthy(made, Hints())], journal=place, recover=True) as box:
        assert box.resume(known.id, in_flight="fail").ok
        assert {found.run_id for found in box.interrupted()} >= {run_of(place, label).id}
        assert box.resume(run_of(place, label).id, in_flight="retry").value == 2
    assert made == [1]


def test_a_run_that_ends_its_process_three_times_is_parked(place: str) -> None:
    label, hints, made = f"deadly {time.time()}", Hints(read_only=True), list[int]()
    killed(place, SCRIPT, {"case": label}, hints=hints)
    for _ in range(2):
        killed(place, "", {}, hints=hints, recover=True)
    with Sandbox([healthy(made, hints)], journal=place, recover=True) as box:
        wait_until(lambda: run_of(place, label).state == "parked")
        assert run_of(place, label).reason == "it ended its process 3 times"
        assert made == []
        assert box.resume(run_of(place, label).id).value == 2  # a person may try again
    assert run_of(place, label).state == "ok"


def test_a_sleeping_run_is_woken_by_another_process(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_ledger, "HELD", 0.0)
    monkeypatch.setattr(call_ledger, "_LEAST_WAIT", 0.0)
    label, hints, made = f"sleeper {time.time()}", Hints(idempotent=True), list[int]()

    def host() -> str:
        with Sandbox([healthy([], hints)], journal=place) as box:
            handle = box.repl().submit(
                "local x = tools.ready() sleep(1) sleep(0.5) return x + tools.ready()", labels={"case": label}
            )
            wait_until(lambda: handle.status() == "sleeping")
            os.kill(os.getpid(), signal.SIGKILL)
        return ""

    in_child(host)
    assert run_of(place, label).state == "sleeping"
    with Sandbox([healthy(made, hints)], journal=place, recover=True):
        wait_until(lambda: run_of(place, label).state == "ok")
    assert made == [1]


def test_it_can_be_chosen_which_runs_go_on(place: str) -> None:
    label, hints, made, asked = f"chosen {time.time()}", Hints(idempotent=True), list[int](), list[str]()
    killed(place, SCRIPT, {"case": label}, hints=hints)

    def choose(run: KnownRun) -> dict[str, object] | None:
        asked.append(run.labels.get("case", ""))
        return None

    with Sandbox([healthy(made, hints)], journal=place, recover=choose):
        wait_until(lambda: label in asked)
    assert (run_of(place, label).state, made) == ("interrupted", [])


def test_it_needs_a_journal() -> None:
    with pytest.raises(UsageError, match="recover needs a journal, whose runs it continues"):
        Sandbox(recover=True)
    with pytest.raises(UsageError, match="recover must be a function"):
        Sandbox(recover=5, journal="never.db")  # type: ignore[arg-type]  # which is refused
