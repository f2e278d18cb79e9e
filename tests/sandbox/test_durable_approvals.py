"""Questions to people in a journal: answered from any process, once, and closed when their time is over."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest

from moonbox import Sandbox, tool
from moonbox.durable import watch
from moonbox.durable.approvals import Approvals
from moonbox.durable.backends import SqliteBackend
from moonbox.durable.questions import Questions
from moonbox.durable.store import Journal, open_journal
from moonbox.errors import UsageError
from moonbox.runs.decisions import Decision
from tests.postgres import postgres  # noqa: F401 - a fixture
from tests.runs import at_once
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from moonbox.audit.records import Run
    from moonbox.durable.questions import KeptQuestion

SCRIPT = "return tools.transfer{to = 'ada', amount = 5}"
ALLOW: dict[str, Any] = {"kind": "allow", "by": "bob", "reason": "fine"}


@tool(policy="approve", hints={"destructive": True})
def transfer(to: str, amount: int) -> str:
    """Send money."""
    return f"sent {amount} to {to}"


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "journal.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres"))


class Other:
    """Another process's view of the journal."""

    def __init__(self, place: str) -> None:
        self.journal = open_journal(place)
        self.questions = Questions(self.journal.backend)

    def asked(self, run_id: str) -> KeptQuestion:
        found = wait_until(lambda: [each for each in self.questions.pending() if each.shown["run"] == run_id])
        return cast("KeptQuestion", found[0])


@pytest.fixture
def other(place: str) -> Iterator[Other]:
    opened = Other(place)
    yield opened
    opened.journal.close()


def no_answer(call: Any) -> Any:
    threading.Event().wait(60)


async def no_answer_awaited(call: Any) -> Any:
    await asyncio.sleep(60)


@pytest.mark.parametrize("approve", [None, no_answer, no_answer_awaited, Approvals().approve])
def test_the_answer_of_another_process_counts(place: str, other: Other, approve: Any) -> None:
    with Sandbox([transfer], journal=place, approve=approve) as box, box.repl() as repl:
        handle = repl.submit(SCRIPT, labels={"user": "ann"})
        kept = other.asked(handle.run_id)
        shown = kept.shown
        assert (shown["tool"], shown["arguments"], shown["hints"]) == (
            "transfer",
            {"to": "ada", "amount": 5},
            ["destructive"],
        )
        assert (shown["repl"], kept.source, shown["labels"]) == (repl.id, SCRIPT, {"user": "ann"})
        assert kept.expires - kept.asked == pytest.approx(86_400)
        other.questions.answer(kept.id, ALLOW)
        call = handle.wait(30).calls[0]
        assert (call.result, call.approval) == ("sent 5 to ada", "allowed")
        assert (call.approval_by, call.approval_reason) == ("bob", "fine")
        with pytest.raises(UsageError, match=r"this approval is not open: it was answered \(allow by bob\)"):
            other.questions.answer(kept.id, {"kind": "deny"})


@pytest.mark.parametrize(
    ("answer", "value", "approval"),
    [
        ({"kind": "deny", "reason": "too much"}, "a person declined this call: too much", "denied"),
        ({"kind": "edit", "changes": {"amount": 1}}, "sent 1 to ada", "edited"),
        ({"kind": "edit", "arguments": {"to": "eve", "amount": 2}}, "sent 2 to eve", "edited"),
    ],
)
def test_a_blocking_run_gets_what_was_decided(
    place: str, other: Other, answer: dict[str, Any], value: str, approval: str
) -> None:
    done: list[Run] = []
    run_id = f"run-{approval}-{value}"
    script = "local ok, what = pcall(tools.transfer, {to = 'ada', amount = 5}) return ok and what or what.message"
    with Sandbox([transfer], journal=place) as box:
        at_once(
            lambda: done.append(box.run(script, run_id=run_id)),
            lambda: other.questions.answer(other.asked(run_id).id, answer),
        )
    assert (done[0].value, done[0].calls[0].approval) == (value, approval)


def test_the_answer_of_the_host_is_kept_before_the_tool_runs(place: str, other: Other) -> None:
    asked: list[str] = []

    def ask(call: Any) -> Any:
        asked.extend(kept.id for kept in other.questions.pending() if kept.shown["run"] == call.run_id)
        return call.allow(by="ann")

    @tool(policy="approve")
    def decided_by() -> str:
        return str(other.questions.settle(asked[0], {"kind": "deny"})["by"])

    with Sandbox([decided_by], journal=place, approve=ask) as box:
        assert box.run("return tools.decided_by{}").value == "ann"


def test_of_two_answers_one_counts(place: str, other: Other) -> None:
    second = Other(place)
    outcomes: list[str] = []

    def answer(each: Other, kind: str, id: str) -> None:
        try:
            each.questions.answer(id, {"kind": kind})
            outcomes.append(kind)
        except UsageError:
            outcomes.append("refused")

    with Sandbox([transfer], journal=place) as box, box.repl() as repl:
        handle = repl.submit(SCRIPT)
        id = other.asked(handle.run_id).id
        at_once(partial(answer, other, "allow", id), partial(answer, second, "deny", id))
        run = handle.wait(30)
    second.journal.close()
    assert sorted(outcomes) in (["allow", "refused"], ["deny", "refused"])
    assert run.ok is ("allow" in outcomes)


class Clock(SqliteBackend):
    """A journal whose time can be set."""

    late = 0.0

    def now(self) -> float:
        return super().now() + self.late


def test_a_question_expires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Clock(tmp_path / "journal.db")
    questions = Questions(backend)
    with Sandbox([transfer], journal=Journal(backend), approval_seconds=3600) as box, box.repl() as repl:
        handle = repl.submit(SCRIPT)
        wait_until(lambda: bool(questions.pending()))
        (kept,) = questions.pending()
        backend.late = 3601
        monkeypatch.setattr(watch, "time", lambda: time.time() + backend.late)
        assert questions.pending() == ()
        with pytest.raises(UsageError, match="this approval is not open: it has expired"):
            questions.answer(kept.id, ALLOW)
        error = handle.wait(30).error
        assert error is not None
        assert (error.kind, error.code) == ("denied", "approval_unavailable")
        assert "nobody answered the approval of 'transfer' within 3600 seconds; it has expired" in error.message


def test_ids_are_not_guessed_and_ended_runs_not_answered(place: str, other: Other) -> None:
    with pytest.raises(UsageError, match=r"there is no approval 'ffff'; `moonbox approvals list` lists"):
        other.questions.answer("ffff", ALLOW)
    with Sandbox([transfer], journal=place) as box, box.repl() as repl:
        handle = repl.submit(SCRIPT)
        kept = other.asked(handle.run_id)
        handle.cancel()
        wait_until(lambda: not [each for each in other.questions.pending() if each.id == kept.id])
        with pytest.raises(UsageError, match="this approval is not open: its run has ended"):
            other.questions.answer(kept.id, ALLOW)


def test_an_answer_counts_for_what_was_asked_about(other: Other) -> None:
    shown = {"run": secrets.token_hex(8), "repl": "r"}
    first = other.questions.ask(shown, 1, "tool and arguments", 60)
    other.questions.settle(first.id, ALLOW)
    assert other.questions.ask(shown, 1, "tool and arguments", 60).decision == ALLOW
    again = other.questions.ask(shown, 1, "other arguments", 60)
    assert (again.id != first.id, again.decision) == (True, None)
    other.questions.settle(again.id, {"kind": "deny"})  # other tests look at the same database


def test_secrets_are_not_in_a_question(place: str, other: Other) -> None:
    with Sandbox([transfer], journal=place, secrets={"KEY": "s3cr3t-value"}) as box, box.repl() as repl:
        handle = repl.submit("return tools.transfer{to = inp, amount = 1}", inputs={"inp": "s3cr3t-value"})
        kept = other.asked(handle.run_id)
        assert kept.shown["arguments"]["to"] == "[secret KEY]"
        assert "s3cr3t" not in json.dumps(kept.shown)
        other.questions.answer(kept.id, {"kind": "edit", "changes": {"amount": 2}})
        assert handle.wait(30).calls[0].arguments["amount"] == 2


def test_the_inbox_shows_and_answers_the_questions_of_others(place: str, other: Other) -> None:
    inbox = Approvals()
    inbox.keep_in(other.questions)
    with Sandbox([transfer], journal=place) as box, box.repl() as repl:
        handle = repl.submit(SCRIPT)
        kept = other.asked(handle.run_id)
        (question,) = [each for each in inbox.pending() if each.id == kept.id]
        assert (question.tool, question.arguments, question.source) == ("transfer", {"to": "ada", "amount": 5}, SCRIPT)
        assert question.expires == kept.expires
        inbox.answer(kept.id, Decision("allow", by="console"))
        assert handle.wait(30).calls[0].approval_by == "console"
        with pytest.raises(UsageError, match="this approval is not open: it was answered"):
            inbox.answer(kept.id, Decision("deny"))


def test_an_inbox_and_the_journal_have_one_question(place: str, other: Other) -> None:
    inbox = Approvals()
    with Sandbox([transfer], journal=place, approve=inbox.approve) as box, box.repl() as repl:
        inbox.keep_in(Questions(box.journal.backend))
        handle = repl.submit(SCRIPT)
        kept = other.asked(handle.run_id)
        wait_until(lambda: len([each for each in inbox.pending() if each.id == kept.id]) == 1)
        other.questions.answer(kept.id, ALLOW)
        assert handle.wait(30).calls[0].approval_by == "bob"
        assert [each for each in inbox.pending() if each.id == kept.id] == []
