"""Approvals: an inbox of calls that wait for a person; the first answer counts.

    Sandbox(approve=approvals.approve)      a script's call waits in the inbox
    approvals.pending()                     the questions, oldest first
    approvals.answer(id, decision)          the script goes on

Questions are plain values and the inbox is keyed by their ids, so that a journal can keep both later.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import json
import secrets
import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import asdict, dataclass, fields
from time import time
from typing import TYPE_CHECKING, Any, Literal

from moonbox.errors import Denied, UsageError
from moonbox.sandbox.decisions import Decision
from moonbox.sandbox.options import check_callbacks
from moonbox.values import to_jsonable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from moonbox.sandbox.decisions import ToolCall
    from moonbox.tools.tool import Tool

_REMEMBERED = 50
_MAX_PENDING = 1_000
_DIFF_LINES = 400


@dataclass(frozen=True, slots=True)
class Change:
    """A tool's definition differs from the one that was allowed last."""

    fields: tuple[str, ...]
    diff: tuple[tuple[str, str], ...]
    """Lines of both definitions, as JSON, with "-", "+" or " " in front."""


@dataclass(frozen=True, slots=True)
class Question:
    """A call that waits for a person."""

    id: str
    tool: str
    description: str
    arguments: Any
    run: str
    repl: str
    index: int
    """The call's number in its run."""
    source: str
    """The script; empty for a direct call."""
    language: str
    lines: tuple[int, ...]
    """The lines of the script that name the tool."""
    hints: tuple[str, ...]
    asked: float
    changed: Change | None
    labels: Mapping[str, str]
    """The labels of the run: for whom it is."""

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "arguments": to_jsonable(self.arguments), "labels": dict(self.labels)}


@dataclass(frozen=True, slots=True)
class Answered:
    """A question that is no longer open."""

    id: str
    tool: str
    decision: Literal["allow", "always", "edit", "deny", "expired", "withdrawn"]
    """`expired`: no answer came in time. `withdrawn`: the run ended, or another approver answered."""
    reason: str
    answered: float
    by: str = ""
    """Who answered, where that is known."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Approvals:
    """The inbox. Thread-safe: scripts of many threads and event loops may wait in it.

    timeout     seconds that a question stays open
    others      further approvers, each a callable like `Sandbox(approve=…)`; the first answer counts
    on_change   called with each Question that is asked and each Answered
    """

    def __init__(
        self,
        *,
        timeout: float | None = 600.0,
        others: Sequence[Callable[[ToolCall], Awaitable[Any]]] = (),
        on_change: Callable[[Question | Answered], None] | None = None,
    ) -> None:
        for name, function in (("on_change", on_change), *(("others", other) for other in others)):
            check_callbacks(**{name: function})
        self._timeout = timeout
        self._others = tuple(others)
        self._on_change = on_change or (lambda _: None)
        self._lock = threading.Lock()
        self._open: dict[str, tuple[Question, ToolCall, Future[Decision]]] = {}
        self._answered: deque[Answered] = deque(maxlen=_REMEMBERED)
        self._definitions: dict[str, dict[str, Any]] = {}

    async def approve(self, call: ToolCall) -> Decision:
        """For `Sandbox(approve=…)`: waits for the answer; raises Denied when no answer comes in time."""
        question, future = self._ask(call)
        outcome: Answered | None = None
        try:
            decision = await self._first_answer(call, future)
            outcome = Answered(question.id, question.tool, decision.kind, decision.reason, time(), decision.by)
        except TimeoutError:
            outcome = Answered(question.id, question.tool, "expired", "", time())
            message = f"nobody answered the approval of '{call.name}' within {self._timeout:g} seconds"
            raise Denied(message, code="approval_unavailable") from None
        finally:
            self._close(outcome or Answered(question.id, question.tool, "withdrawn", "", time()))
        if decision.kind != "deny" and call.tool is not None:
            with self._lock:
                self._definitions[call.tool.path] = _definition(call.tool)
        return decision

    def pending(self) -> tuple[Question, ...]:
        """The open questions, oldest first."""
        with self._lock:
            return tuple(question for question, _, _ in self._open.values())

    def answered(self) -> tuple[Answered, ...]:
        """The latest answers, latest first."""
        with self._lock:
            return tuple(reversed(self._answered))

    def answer(self, id: str, decision: Decision) -> None:
        """Answer a question; UsageError when it is not open, ArgumentError when edited arguments do not fit."""
        with self._lock:
            entry = self._open.get(id)
        if entry is None:
            raise UsageError("this approval is not open: it was answered, or its run has ended")
        _, call, future = entry
        if decision.kind == "edit" and call.tool is not None:
            call.tool.bind(dict(decision.arguments or {}))
        # False where another answer came first.
        if future.done() or not _set(future, decision):
            raise UsageError("this approval is not open: it was answered, or its run has ended")

    def _ask(self, call: ToolCall) -> tuple[Question, Future[Decision]]:
        future: Future[Decision] = Future()
        with self._lock:
            if len(self._open) >= _MAX_PENDING:
                raise Denied("too many calls wait for approval", code="approval_unavailable")
            question = self._question(call)
            self._open[question.id] = (question, call, future)
        self._on_change(question)
        return question, future

    def _question(self, call: ToolCall) -> Question:
        tool = call.tool
        return Question(
            id=secrets.token_urlsafe(12),
            tool=call.name,
            description=tool.description if tool is not None else "",
            arguments=call.arguments,
            run=call.run_id,
            repl=call.repl_id,
            index=call.index,
            source=call.source,
            language=call.language,
            lines=_lines(call.source, call.name),
            hints=tuple(hint_names(tool)) if tool is not None else (),
            asked=time(),
            changed=self._changed(tool) or (Change(call.changed, ()) if call.changed else None),
            labels=dict(call.labels),
        )

    def _changed(self, tool: Tool | None) -> Change | None:
        before = self._definitions.get(tool.path) if tool is not None else None
        if tool is None or before is None:
            return None
        now = _definition(tool)
        names = tuple(name for name in now if now[name] != before[name])
        return Change(names, tuple(_diff(before, now))) if names else None

    async def _first_answer(self, call: ToolCall, future: Future[Decision]) -> Decision:
        """The inbox and the other approvers are asked together. One that cannot ask a person is left out."""
        inbox: asyncio.Future[Any] = asyncio.wrap_future(future)
        waiting: set[asyncio.Future[Any]] = {inbox, *(asyncio.ensure_future(other(call)) for other in self._others)}
        try:
            async with asyncio.timeout(self._timeout):
                while True:
                    done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    for each in done:
                        problem = each.exception()
                        if problem is None:
                            return Decision.of(each.result())
                        if not isinstance(problem, Denied):
                            raise problem
        finally:
            for each in waiting:
                each.cancel()

    def _close(self, answered: Answered) -> None:
        with self._lock:
            self._open.pop(answered.id, None)
            self._answered.append(answered)
        self._on_change(answered)


def _set(future: Future[Decision], decision: Decision) -> bool:
    with contextlib.suppress(Exception):  # another thread was quicker: a Future takes one result
        future.set_result(decision)
        return True
    return False


def _definition(tool: Tool) -> dict[str, Any]:
    """What a person agrees to when they allow a tool."""
    return {
        "description": tool.description,
        "parameters": tool.parameters,
        "returns": tool.returns,
        "hints": hint_names(tool),
    }


def _diff(before: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[str, str]]:
    old, new = (json.dumps(each, indent=2, ensure_ascii=False).splitlines() for each in (before, now))
    for line in difflib.ndiff(old[:_DIFF_LINES], new[:_DIFF_LINES]):
        if not line.startswith("?"):
            yield line[0], line[2:]


def hint_names(tool: Tool) -> list[str]:
    """What a tool says about itself, in words."""
    return [item.name.replace("_", " ") for item in fields(tool.hints) if getattr(tool.hints, item.name)]


def _lines(source: str, name: str) -> tuple[int, ...]:
    """The lines that name the tool: where the call is, unless the script builds the name."""
    last = name.rpartition(".")[2]
    lines = [number for number, line in enumerate(source.splitlines(), 1) if last in line]
    return tuple(lines[:20])
