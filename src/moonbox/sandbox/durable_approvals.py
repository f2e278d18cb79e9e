"""Approvals of a Sandbox with a journal: questions are kept there, and answered from any process."""

from __future__ import annotations

import asyncio
import inspect
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from msgspec import json
from msgspec.structs import replace

from moonbox.errors import Denied
from moonbox.journal.questions import EXPIRED, WITHDRAWN, Questions
from moonbox.sandbox.approvals import Question, first_answer
from moonbox.sandbox.decisions import Decision
from moonbox.sandbox.threads import in_thread
from moonbox.tools.tool import fingerprint
from moonbox.values import from_jsonable

if TYPE_CHECKING:
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
        asked: set[asyncio.Future[Any]] = {asyncio.ensure_future(_look(questions, kept))}
        if setup.approve is not None:
            asked.add(asyncio.ensure_future(_approver(setup.approve, replace(call, question=kept.id))))
        try:
            answer = (await first_answer(asked)).to_dict()
        except Exception:
            await asyncio.to_thread(questions.settle, kept.id, {"kind": WITHDRAWN})
            raise
        decision = await asyncio.to_thread(questions.settle, kept.id, answer)
    if decision["kind"] in (EXPIRED, WITHDRAWN):
        seconds = kept.expires - kept.asked
        message = f"nobody answered the approval of '{call.tool}' within {seconds:g} seconds; it has expired"
        raise Denied(message, code="approval_unavailable")
    arguments = from_jsonable(decision.get("arguments"))
    if "changes" in decision:
        arguments = {**call.arguments, **decision["changes"]}
    return Decision(decision["kind"], decision.get("reason", ""), arguments, decision.get("by", ""))


def _keep(questions: Questions, call: ToolCall, setup: Setup) -> KeptQuestion:
    definition = {} if call.definition is None else fingerprint(call.definition)
    shown = Question.of(call).to_dict()
    mark = sha256(json.encode([call.tool, definition, shown["arguments"]], order="deterministic")).hexdigest()
    if setup.secrets is not None:
        shown["arguments"] = setup.secrets(shown["arguments"])
    del shown["source"]  # it is in the journal, once for the run
    return questions.ask(shown, call.id, mark, setup.approval_seconds)


async def _look(questions: Questions, kept: KeptQuestion) -> Decision:
    """Wait until the journal has an answer, or the question expires."""
    seconds = _FIRST_LOOK
    while await asyncio.to_thread(questions.decision, kept) is None:
        await asyncio.sleep(seconds)
        seconds = min(2 * seconds, _LONGEST_LOOK)
    return Decision("deny")  # `settle` finds what the journal has


async def _approver(approve: Any, call: ToolCall) -> Any:
    """What `approve` says. A blocking function has a thread of its own, because the journal may answer first."""
    if inspect.iscoroutinefunction(approve) or inspect.iscoroutinefunction(type(approve).__call__):
        return await approve(call)
    answer = await in_thread(lambda: approve(call))
    return await answer if inspect.isawaitable(answer) else answer
