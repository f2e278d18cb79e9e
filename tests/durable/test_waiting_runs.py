"""Runs that wait without holding anything: for a time, with `sleep`, and for a person."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from moonbox import Limits, Sandbox, tool
from moonbox.audit.telemetry import Telemetry
from moonbox.durable.index import JournalFilter
from moonbox.durable.questions import Questions
from moonbox.durable.store import open_journal
from moonbox.errors import ClosedError, Diverged, UsageError
from moonbox.runs import call_ledger
from tests.durable.crashing import new_database
from tests.postgres import postgres, used_since  # noqa: F401 - a fixture
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

SCRIPTS = {
    "lua": "local x = tools.one() sleep({}) return x + tools.one()",
    "rhai": "let x = one(); sleep({}); x + one()",
    "python": "x = one()\nsleep({})\nx + one()",
}


@tool
def one() -> int:
    """One."""
    return 1


@tool(policy="approve")
def pay(cents: int) -> int:
    """Pay."""
    return cents


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait of a tenth of a second gives the worker back: a run that goes on has read its answer by then."""
    monkeypatch.setattr(call_ledger, "HELD", 0.1)
    monkeypatch.setattr(call_ledger, "_LEAST_WAIT", 0.0)


@pytest.mark.parametrize("mode", ["sync", "async", "background"])
@pytest.mark.parametrize("language", list(SCRIPTS))
def test_a_long_wait_holds_no_worker(language: str, mode: str, impatient: None, tmp_path: Path) -> None:
    script = SCRIPTS[language].format(0.2)
    with Sandbox([one], journal=tmp_path / "state.db", language=language, min_workers=0) as box:
        if mode == "background":
            handle = box.repl().submit(script)
            wait_until(lambda: handle.status() == "sleeping" and box.workers.in_use == 0)
            (known,) = box.journal.runs()
            assert known.state in ("sleeping", "running") and box.journal.repls()[0].held_by == ""
            run = handle.wait(60)
        else:
            run = box.run(script) if mode == "sync" else asyncio.run(box.arun(script))
        assert (run.value, len(run.calls), run.error) == (2, 2, None)
        assert [known.state for known in box.journal.runs()] == ["ok"]
        assert box.resume(run.id).value == 2  # its record again: nothing waits


def test_variables_and_output_survive_a_wait(impatient: None, tmp_path: Path) -> None:
    heard: list[str] = []
    with Sandbox([one], journal=tmp_path / "state.db") as box, box.repl() as repl:
        repl.run("total = 5").unwrap()
        run = repl.run("print('a') total = total + 1 sleep(0.05) print('b') return total", on_output=heard.append)
        assert (run.value, run.output, "".join(heard)) == (6, "a\nb\n", "a\nb\n")
        assert repl.run("return total").value == 6


def test_the_run_of_a_process_that_died_sleeps_on(impatient: None, tmp_path: Path) -> None:
    """Until the time that was recorded, not for as long once more."""
    path = tmp_path / "state.db"
    with Sandbox([one], journal=path) as box:
        handle = box.repl().submit("local x = tools.one() sleep(100000) return x")
        wait_until(lambda: handle.status() == "sleeping")
    with pytest.raises(ClosedError, match="goes on in a process that has the journal with recover=True"):
        handle.wait(60)
    journal = open_journal(path)
    (known,) = journal.runs()
    assert known.state == "sleeping" and known.wakes is not None and known.wakes > time.time() + 90_000
    assert journal.runs(JournalFilter(state="interrupted")) == ()
    with journal.backend.writing() as db:  # the night is over
        db.change("UPDATE journal_runs SET wakes = ? WHERE id = ?", (time.time(), known.id))
    events = journal.read(known.repl)
    journal.close()
    assert sum(type(record).__name__ == "Slept" for records in events for record in records) == 1


def test_what_waits_can_be_cancelled(impatient: None, tmp_path: Path) -> None:
    async def cancel(box: Sandbox) -> None:
        repl = box.repl()
        await repl.arun("x = 1")
        task = asyncio.create_task(repl.arun("x = 2 sleep(100000)"))
        while box.journal.runs()[0].state != "sleeping":
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await repl.arun("return x")).value == 1  # how far the cancelled run came is not known

    with Sandbox(journal=tmp_path / "state.db") as box:
        asyncio.run(cancel(box))
        assert [known.state for known in box.journal.runs()] == ["ok", "cancelled", "ok"]


@pytest.mark.parametrize("before", ["nothing", "a correction that was refused", "another process that looked"])
def test_a_cancelled_wait_is_over_also_where_the_sandbox_is_closed_at_once(
    before: str, impatient: None, tmp_path: Path
) -> None:
    path = tmp_path / "state.db"
    with Sandbox(journal=path) as box:
        handle = box.repl().submit("x = 1 sleep(100000)")
        wait_until(lambda: [known.state for known in box.journal.runs()] == ["sleeping"])
        if before.startswith("a correction"):
            with pytest.raises(Diverged):
                box.patch(handle.run_id, "x = 2")
        elif before.startswith("another"):
            other = open_journal(path)
            other.release(other.take(other.known(handle.run_id).repl))
            other.close()
        handle.cancel()
    journal = open_journal(path)
    assert [known.state for known in journal.runs()] == ["cancelled"]
    journal.close()


@pytest.mark.parametrize("place", ["sqlite", "postgresql"])
@pytest.mark.parametrize("kind", ["allow", "deny"])
def test_a_run_that_waits_for_a_person_holds_nothing(
    place: str, kind: str, impatient: None, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    journal = str(tmp_path / "state.db") if place == "sqlite" else request.getfixturevalue("postgres")
    with Sandbox([one, pay], journal=journal) as box:
        script = "return {tools.one(), pcall(tools.pay, {cents = 5})}"
        handle = box.repl(limits=Limits(timeout=None)).submit(script, labels={"case": kind})
        other = open_journal(journal)  # another process answers
        questions = Questions(other.backend)

        def asked() -> list[str]:
            """Its question. A run that waits so little may sleep before its question is written, and begins again."""
            states = [handle.status(), *(each.state for each in box.journal.runs() if each.id == handle.run_id)]
            asleep = states == ["sleeping", "waiting"] and box.workers.in_use == 0
            return [each.id for each in questions.pending() if asleep and each.shown["run"] == handle.run_id]

        (question,) = wait_until(asked)
        questions.answer(question, {"kind": kind, "by": "ann"})
        other.close()
        run = handle.wait(60)
        assert run.value[:2] == [1, kind == "allow"]
        assert [(call.tool, call.approval_by) for call in run.calls] == [("one", ""), ("pay", "ann")]


def test_an_approver_of_the_program_is_not_left(impatient: None, tmp_path: Path) -> None:
    """Its answer comes to this process alone."""

    async def approve(call: Any) -> Any:
        await asyncio.sleep(0.1)
        return call.allow(by="bob")

    with Sandbox([pay], journal=tmp_path / "state.db", approve=approve) as box:
        run = box.run("return tools.pay{cents = 5}")
    assert (run.value, run.calls[0].approval_by) == (5, "bob")


def test_a_wait_beside_other_calls_holds_the_worker(impatient: None, tmp_path: Path) -> None:
    with Sandbox([one], journal=tmp_path / "state.db") as box:
        script = "return parallel{function() sleep(0.1) return 1 end, function() return tools.one() + tools.one() end}"
        assert box.run(script).value == [1, 2]


def test_waiting_does_not_count_with_a_journal(tmp_path: Path) -> None:
    with Sandbox(journal=tmp_path / "state.db") as box:
        run = box.run("for _ = 1, 4 do sleep(0.5) end return 1", timeout=1.5)
        assert run.value == 1 and run.usage.wall < 1.5


def test_without_a_journal_waiting_counts() -> None:
    with Sandbox() as box:
        error = box.run("sleep(31)").error
        assert error is not None
        assert error.message == (
            "the script would wait 31.0 seconds and has 30.0 left: without a journal, waiting counts towards the "
            "timeout of the run; wait less, or look again in a later run"
        )
        assert box.run("local ok, e = pcall(sleep, 100) return e.code").value == "limit_sleep"
        assert "sleep" not in box.docs.names()


def test_it_is_documented_with_a_journal(tmp_path: Path) -> None:
    with Sandbox(journal=tmp_path / "state.db") as box:
        assert {"sleep", "sleep_until"} < set(box.docs.names())


def test_a_repl_whose_run_sleeps_is_not_restored(impatient: None, tmp_path: Path) -> None:
    with Sandbox(journal=tmp_path / "state.db") as box, Sandbox(journal=tmp_path / "state.db") as other:
        repl = box.repl()
        handle = repl.submit("sleep(100000)")
        wait_until(lambda: handle.status() == "sleeping")
        with pytest.raises(UsageError, match="has not ended; continue it with resume"):
            other.restore(repl.id)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_run_sleeps_soon_after_a_person_has_answered(mode: str, impatient: None, tmp_path: Path) -> None:
    """The answer wakes it once, and a replay that comes to a wait ends it in time."""
    with Sandbox([pay], journal=tmp_path / "state.db", approve=lambda call: call.allow(by="bob")) as box:
        script = "local paid = tools.pay{cents = 5} sleep(1.2) return paid"
        limits = Limits(timeout=10_000)  # a run that waits for it outlasts the test's own timeout
        run = box.run(script, limits=limits) if mode == "sync" else asyncio.run(box.arun(script, limits=limits))
        assert run.value == 5
        assert box.journal.watch.runs == set()


def test_an_answer_that_comes_while_a_run_falls_asleep_wakes_it(
    impatient: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Sandbox([pay], journal=tmp_path / "state.db") as box:
        fall_asleep, answered = box.journal.fall_asleep, list[str]()

        def answered_then(*given: Any) -> float:
            until = fall_asleep(*given)
            for question in Questions(box.journal.backend).pending():  # none if it falls asleep again
                Questions(box.journal.backend).answer(question.id, {"kind": "allow", "by": "ann"})
                wait_until(lambda: box.journal.watch._early)  # the answer is told before anything waits for it
                answered.append(question.id)
            return until

        monkeypatch.setattr(box.journal, "fall_asleep", answered_then)
        assert box.repl().submit("return tools.pay{cents = 5}").wait(60).value == 5
        assert len(answered) == 1


def test_a_wake_up_of_many_takes_few_threads(impatient: None, tmp_path: Path) -> None:
    """Runs whose Repls stay open, too: they share the workers."""
    with Sandbox([one], journal=tmp_path / "state.db", max_workers=8) as box:
        at, before = time.time() + 4, threading.active_count()
        handles = [box.repl().submit(f"sleep_until({at}) return tools.one()") for _ in range(120)]
        most = 0
        for handle in handles:
            wait_until(handle._future.done)
            most = max(most, threading.active_count() - before)
        assert [handle.wait(1).value for handle in handles] == [1] * 120
        assert most < 60


def test_waiting_runs_keep_their_records_alone(impatient: None, tmp_path: Path) -> None:
    names = {"Execution", "CallLedger", "Link", "KeptQuestion", "AwaitedDriver"}
    others = {id(each): each for each in gc.get_objects() if type(each).__name__ in names}  # of other tests
    with Sandbox([pay], journal=tmp_path / "state.db") as box:
        scripts = ["sleep(100000)", "return tools.pay{cents = 5}"] * 3
        handles = [box.repl().submit(script) for script in scripts]
        wait_until(lambda: all(handle.status() == "sleeping" for handle in handles))

        def left() -> set[str]:
            gc.collect()
            return names & {type(each).__name__ for each in gc.get_objects() if id(each) not in others}

        wait_until(lambda: not left() - ({"Link"} if box.workers.live else set()))


def test_each_part_of_a_run_that_sleeps_has_a_span(impatient: None, tmp_path: Path) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = Telemetry.create(tracer_provider=provider)
    with Sandbox([one], journal=tmp_path / "state.db", telemetry=telemetry) as box:
        assert box.run("local n = tools.one() sleep(0.3) return n + tools.one()").value == 2
    states = [(span.name, (span.attributes or {}).get("moonbox.state")) for span in exporter.get_finished_spans()]
    call, run = "execute_tool one", "moonbox.run"
    assert states == [(call, None), (run, "sleeping"), (call, None), (run, None)]
    assert all(span.status.is_ok for span in exporter.get_finished_spans())


def test_nothing_is_asked_of_postgresql_while_runs_wait(impatient: None, postgres: str) -> None:  # noqa: F811
    journal = new_database(postgres)
    with Sandbox([pay], journal=journal) as box:
        handles = [box.repl().submit(script) for script in ("sleep(100000)", "return tools.pay{cents = 5}") * 5]
        wait_until(lambda: all(handle.status() == "sleeping" for handle in handles))
        time.sleep(2)
        for _ in range(6):  # leases are renewed every five seconds: none is held
            time.sleep(1)
            assert used_since(journal, 1.0) == []
