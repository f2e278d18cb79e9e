"""The inbox of approvals without any page: answers from threads, other approvers, time, and changed definitions."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from moonbox import Run, Sandbox, Tool, Toolbox, tool
from moonbox.durable.approvals import Answered, Approvals, Question
from moonbox.errors import ArgumentError, Denied, UsageError
from moonbox.runs.decisions import Decision
from tests.runs import at_once, error_of
from tests.waiting import await_until, wait_until

SOURCE = "local n = 2\nreturn tools.wipe{n = n}"


@tool(policy="approve", hints={"destructive": True})
def wipe(n: int) -> str:
    """Wipe something."""
    return f"wiped {n}"


def answered(approvals: Approvals, decision: Decision, source: str = SOURCE, tools: Any = (wipe,)) -> Any:
    """Run the script, answer its first question so, and give the run and the question."""
    with Sandbox(tools, approve=approvals.approve, min_workers=0) as box:
        runs: list[Run] = []
        questions: list[Question] = []

        def answer() -> None:
            questions.append(wait_until(approvals.pending)[0])
            approvals.answer(questions[0].id, decision)

        at_once(answer, lambda: runs.append(box.run(source)))
        return runs[0], questions[0]


def test_a_question_says_what_by_whom_and_where() -> None:
    run, question = answered(Approvals(), Decision("allow"))
    assert run.value == "wiped 2"
    assert (question.tool, question.arguments, question.run) == ("wipe", {"n": 2}, run.id)
    assert (question.source, question.language, question.lines) == (SOURCE, "lua", (2,))
    assert (question.hints, question.description) == (("destructive",), "Wipe something.")


@pytest.mark.parametrize(
    ("decision", "value", "approval"),
    [
        (Decision("edit", arguments={"n": 9}), "wiped 9", "edited"),
        (Decision("always"), "wiped 2", "always"),
        (Decision("deny", "not today"), None, "denied"),
    ],
)
def test_each_answer_reaches_the_script(decision: Decision, value: Any, approval: str) -> None:
    approvals = Approvals()
    run, _ = answered(approvals, decision)
    assert run.value == value
    assert run.calls[0].approval == approval
    assert [each.decision for each in approvals.answered()] == [decision.kind]
    if decision.reason:
        assert "not today" in error_of(run).message


def test_awaited_runs_and_direct_calls_ask_too() -> None:
    approvals = Approvals()

    async def main() -> tuple[Any, Any]:
        async with Sandbox([wipe], approve=approvals.approve, min_workers=0) as box:
            call = asyncio.create_task(box.acall("wipe", {"n": 1}))
            await await_until(approvals.pending)
            question = approvals.pending()[0]
            approvals.answer(question.id, Decision("allow"))
            return await call, question

    run, question = asyncio.run(main())
    assert run.value == "wiped 1"
    assert (question.source, question.lines) == ("", ())


def test_wrong_answers_leave_the_question_open() -> None:
    approvals = Approvals()
    with Sandbox([wipe], approve=approvals.approve, min_workers=0) as box:
        thread = threading.Thread(target=lambda: box.run(SOURCE))
        thread.start()
        id = wait_until(approvals.pending)[0].id
        with pytest.raises(ArgumentError, match="n"):
            approvals.answer(id, Decision("edit", arguments={"n": "many"}))
        with pytest.raises(UsageError, match="not open"):
            approvals.answer("unknown", Decision("allow"))
        assert len(approvals.pending()) == 1
        approvals.answer(id, Decision("allow"))
        thread.join()
        with pytest.raises(UsageError, match="not open"):
            approvals.answer(id, Decision("deny"))


def test_nobody_answers_in_time() -> None:
    approvals = Approvals(timeout=0.05)
    with Sandbox([wipe], approve=approvals.approve, min_workers=0) as box:
        run = box.run(SOURCE)
    assert "nobody answered the approval of 'wipe' within 0.05 seconds" in error_of(run).message
    assert [each.decision for each in approvals.answered()] == ["expired"]


def test_the_first_of_several_approvers_counts() -> None:
    async def unavailable(call: Any) -> Any:
        raise Denied("nobody can be asked here", code="approval_unavailable")

    async def agrees(call: Any) -> Any:
        return call.always()

    changes: list[Any] = []
    approvals = Approvals(others=(unavailable, agrees), on_change=changes.append)
    with Sandbox([wipe], approve=approvals.approve, min_workers=0) as box:
        run = box.run("return tools.wipe{n = 1} .. tools.wipe{n = 2}")
    assert run.value == "wiped 1wiped 2"
    assert [type(change) for change in changes] == [Question, Answered]
    assert not approvals.pending()


def test_the_inbox_answers_where_others_cannot() -> None:
    async def unavailable(call: Any) -> Any:
        raise Denied("nobody can be asked here", code="approval_unavailable")

    run, _ = answered(Approvals(others=(unavailable,)), Decision("allow"))
    assert run.value == "wiped 2"


def test_a_question_is_withdrawn_with_its_run() -> None:
    approvals = Approvals()
    with Sandbox([wipe], approve=approvals.approve, min_workers=0) as box:
        repl = box.repl()
        thread = threading.Thread(target=lambda: repl.run(SOURCE))
        thread.start()
        wait_until(approvals.pending)
        repl.close()
        thread.join()
        wait_until(lambda: not approvals.pending())
    assert [each.decision for each in approvals.answered()] == ["withdrawn"]


def test_a_changed_definition_is_shown_after_the_first_allowed_call() -> None:
    approvals = Approvals()
    _, first = answered(approvals, Decision("allow"))
    assert first.changed is None
    _, same = answered(approvals, Decision("deny"))
    assert same.changed is None
    other = Tool.from_schema(
        name="wipe", description="Wipe everything.", parameters=wipe.parameters, call=str, policy="approve"
    )
    _, question = answered(approvals, Decision("deny"), tools=Toolbox([other]))
    assert question.changed is not None
    assert set(question.changed.fields) == {"description", "returns", "hints"}
    assert ("-", '  "description": "Wipe something.",') in question.changed.diff
    assert ("+", '  "description": "Wipe everything.",') in question.changed.diff
    _, again = answered(approvals, Decision("deny"), tools=Toolbox([other]))
    assert again.changed is not None  # a call that was denied is no reason to trust the new definition
