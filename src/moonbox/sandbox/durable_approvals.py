"""Approvals of a Sandbox with a journal: questions are kept there, and answered from any process."""

from __future__ import annotations

import asyncio
import inspect
from concurrent.futures import Future
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from msgspec import json
from msgspec.structs import replace

from moonbox.errors import Denied
from moonbox.journal.questions import EXPIRED, WITHDRAWN, Questions
from moonbox.sandbox.approvals import Question, first_answer
from moonbox.sandbox.decisions import Decision
from moonbox.tools.tool import fingerprint
from moonbox.values import from_jsonable, to_jsonable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from moonbox.journal.questions import KeptQuestion
    from moonbox.sandbox.decisions import ToolCall
    from moonbox.sandbox.setup import Setup

_FIRST_LOOK, _LONGEST_LOOK = 0.1, 1.0  # seconds between two looks into the journal


async def ask(call: ToolCall, setup: Setup) -> Decision:
    """A person's decision: the kept one, or the first answer of `approve` and of the journal.

    The question is in the journal before anybody is asked, the answer before it has an effect. Raises Denied for a
    question that has expired.
    """
    assert setup.journal is not None
    questions = Questions(setup.journal.backend)
    kept = await asyncio.to_thread(_keep, questions, call, setup)
    decision = kept.decision
    if decision is None:
        asked = {asyncio.ensure_future(_look(questions, kept))}
        if setup.approve is not None:
            asked.add(asyncio.ensure_future(_approver(setup, replace(call, question=kept.id))))
        try:
            answer = (await first_answer(asked)).to_dict()
        except Exception:
            await asyncio.to_thread(questions.settle, kept.id, {"kind": WITHDRAWN})
            raise
        decision = await asyncio.to_thread(questions.settle, kept.id, answer)
    return _decision(decision, call, kept)


def _keep(questions: Questions, call: ToolCall, setup: Setup) -> KeptQuestion:
    definition = {} if call.definition is None else fingerprint(call.definition)
    arguments = to_jsonable(dict(call.arguments))
    shown = Question.of(call).to_dict()
    shown["arguments"] = arguments if setup.secrets is None else setup.secrets(arguments)
    return questions.ask(
        repl=call.repl_id,
        run=call.run_id,
        call=call.id,
        mark=sha256(json.encode([call.tool, definition, arguments], order="deterministic")).hexdigest(),
        shown={name: value for name, value in shown.items() if name not in ("id", "asked", "expires", "source")},
        seconds=setup.approval_seconds,
    )


async def _look(questions: Questions, kept: KeptQuestion) -> Decision:
    """Wait until the journal has an answer, or the question expires."""
    seconds = _FIRST_LOOK
    while True:
        found = await asyncio.to_thread(questions.decision, kept)
        if found is not None:
            return Decision("deny")  # `settle` finds what the journal has
        await asyncio.sleep(seconds)
        seconds = min(2 * seconds, _LONGEST_LOOK)


async def _approver(setup: Setup, call: ToolCall) -> Any:
    """What `approve` says. A blocking function has a thread of its own, because the journal may answer first."""
    approve = setup.approve
    assert approve is not None
    if inspect.iscoroutinefunction(approve) or inspect.iscoroutinefunction(type(approve).__call__):
        return await approve(call)
    future: Future[Any] = Future()
    setup.threads.submit(lambda: _fill(future, lambda: approve(call)))
    answer = await asyncio.wrap_future(future)
    return await answer if inspect.isawaitable(answer) else answer


def _fill(future: Future[Any], work: Callable[[], Any | Awaitable[Any]]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(work())
        except BaseException as problem:  # noqa: BLE001 - raised where it is awaited
            future.set_exception(problem)


def _decision(found: dict[str, Any], call: ToolCall, kept: KeptQuestion) -> Decision:
    """As `approve` would have returned it."""
    kind = found["kind"]
    if kind in (EXPIRED, WITHDRAWN):
        seconds = kept.expires - kept.asked
        message = f"nobody answered the approval of '{call.tool}' within {seconds:g} seconds; it has expired"
        raise Denied(message, code="approval_unavailable")
    arguments = from_jsonable(found.get("arguments"))
    if "changes" in found:
        arguments = {**call.arguments, **found["changes"]}
    return Decision(kind, found.get("reason", ""), arguments, found.get("by", ""))
