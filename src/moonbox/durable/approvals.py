"""Approvals: an inbox of calls that wait for a person; the first answer counts.

    Sandbox(approve=approvals.approve)      a script's call waits in the inbox
    approvals.pending()                     the questions, oldest first
    approvals.answer(id, decision)          the script goes on

A Sandbox with a journal keeps its questions there, so that any process answers them (`ask_people`). With
`keep_in`, the inbox also has those of other processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import json
import secrets
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, fields
from functools import partial
from hashlib import sha256
from time import time
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from moonbox.durable.questions import EXPIRED, WITHDRAWN, KeptQuestion, Questions, comes_through_journal
from moonbox.errors import Denied, JournalError, UsageError
from moonbox.runs.decisions import Decision, ToolCall, definition_of, effect
from moonbox.runs.options import check_callbacks
from moonbox.threads import asked, in_thread, own_thread, soon
from moonbox.values import to_jsonable

if TYPE_CHECKING:
    from moonbox.durable.store import Journal
    from moonbox.durable.watch import Watch
    from moonbox.secrets import SecretRedactor
    from moonbox.tools.tool import Tool

_REMEMBERED = 50
_MAX_PENDING = 1_000
_DIFF_LINES = 400


@dataclass(frozen=True, slots=True)
class DefinitionChange:
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
    changed: DefinitionChange | None
    labels: Mapping[str, str]
    """The labels of the run: for whom it is."""
    kind: Literal["call", "script"] = "call"
    """script: whether the script may run; it is `arguments["script"]` too, where an answer may change it."""
    tools: tuple[Mapping[str, str], ...] = ()
    """The tools that a script names: `tool`, `description`, and its `effect`: reads, changes or destroys."""
    findings: tuple[Mapping[str, Any], ...] = ()
    """What the check of a script found."""
    expires: float | None = None
    """When it counts as denied; None where its approver decides that."""

    @classmethod
    def of(cls, call: ToolCall, changed: DefinitionChange | None = None) -> Question:
        tool = call.definition
        return cls(
            id=call.question or secrets.token_urlsafe(12),
            tool=call.tool,
            description=tool.description if tool is not None else "",
            arguments=call.arguments,
            run=call.run_id,
            repl=call.repl_id,
            index=call.index,
            source=call.source,
            language=call.language,
            lines=_lines(call.source, call.tool),
            hints=tuple(hint_names(tool)) if tool is not None else (),
            asked=time(),
            changed=changed or (DefinitionChange(call.changed, ()) if call.changed else None),
            labels=dict(call.labels),
            kind=call.kind,
            tools=tuple(
                {"tool": each.path, "description": each.description, "effect": effect(each)} for each in call.named
            ),
            findings=tuple(found.to_dict() for found in call.findings),
        )

    @classmethod
    def of_kept(cls, kept: KeptQuestion) -> Question:
        """One that a journal keeps."""
        changed = kept.shown["changed"] and DefinitionChange(**kept.shown["changed"])
        known = {**kept.shown, "id": kept.id, "asked": kept.asked, "expires": kept.expires, "changed": changed}
        return cls(source=kept.source, **known)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "arguments": to_jsonable(self.arguments), "labels": dict(self.labels)}


@dataclass(frozen=True, slots=True)
class Answered:
    """A question that is no longer open."""

    question: Question
    decision: Literal["allow", "always", "edit", "deny", "expired", "withdrawn"]
    """`expired`: no answer came in time. `withdrawn`: the run ended, or another approver answered."""
    reason: str
    answered: float
    by: str = ""
    """Who answered, where that is known."""
    edited: Any = None
    """The arguments that were allowed in place of those of the question."""
    when: Any = None
    """Which later calls "always" covers."""

    def to_dict(self) -> dict[str, Any]:
        about = {name: getattr(self.question, name) for name in ("id", "tool", "run", "kind", "arguments")}
        told = {name: getattr(self, name) for name in ("decision", "reason", "answered", "by", "edited", "when")}
        return {name: to_jsonable(value) for name, value in (about | told).items()}


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
        self._kept: Questions | None = None

    def keep_in(self, questions: Questions) -> None:
        """Show the questions of this journal too, and write answers to it."""
        self._kept = questions

    @property
    def answers_in_journal(self) -> bool:
        """Whether its questions are in a journal, with the answers to them, and no other approver need be asked."""
        return self._kept is not None and all(map(comes_through_journal, self._others))

    async def approve(self, call: ToolCall) -> Decision:
        """For `Sandbox(approve=…)`: waits for the answer; raises Denied when no answer comes in time."""
        question, future = self._ask(call)
        outcome: Answered | None = None
        try:
            others = (asyncio.ensure_future(other(call)) for other in self._others)
            async with asyncio.timeout(self._timeout):
                decision = await first_answer({asyncio.wrap_future(future), *others})
            edited = decision.arguments if decision.kind == "edit" else None
            outcome = Answered(question, decision.kind, decision.reason, time(), decision.by, edited, decision.when)
        except TimeoutError:
            outcome = Answered(question, "expired", "", time())
            message = f"nobody answered the approval of '{call.tool}' within {self._timeout:g} seconds"
            raise Denied(message, code="approval_unavailable") from None
        finally:
            outcome = outcome or Answered(question, "withdrawn", "", time())
            with self._lock:
                self._open.pop(question.id, None)
                self._answered.append(outcome)
            self._on_change(outcome)
        if decision.kind != "deny" and call.definition is not None:
            with self._lock:
                self._definitions[call.tool] = _definition(call.definition)
        return decision

    def pending(self) -> tuple[Question, ...]:
        """The open questions, oldest first."""
        with self._lock:
            own = {question.id: question for question, _, _ in self._open.values()}
        kept = () if self._kept is None else self._kept.pending()
        others = [Question.of_kept(each) for each in kept if each.id not in own]
        return tuple(sorted([*own.values(), *others], key=lambda question: question.asked))

    def answered(self) -> tuple[Answered, ...]:
        """The latest answers, latest first."""
        with self._lock:
            return tuple(reversed(self._answered))

    def answer(self, id: str, decision: Decision) -> None:
        """Answer a question; UsageError when it is not open, ArgumentError when edited arguments do not fit."""
        with self._lock:
            entry = self._open.get(id)
        if entry is not None and decision.kind == "edit" and entry[1].definition is not None:
            entry[1].definition.bind(dict(decision.arguments or {}))
        if self._kept is not None and (entry is None or entry[1].question):
            self._kept.answer(id, decision.to_dict())
            if entry is not None:
                _set(entry[2], decision)  # its host need not look into the journal
        # False where another answer came first.
        elif entry is None or entry[2].done() or not _set(entry[2], decision):
            raise UsageError("this approval is not open: it was answered, or its run has ended")

    def _ask(self, call: ToolCall) -> tuple[Question, Future[Decision]]:
        future: Future[Decision] = Future()
        with self._lock:
            if len(self._open) >= _MAX_PENDING:
                raise Denied("too many calls wait for approval", code="approval_unavailable")
            question = Question.of(call, self._changed(call.definition))
            self._open[question.id] = (question, call, future)
        self._on_change(question)
        return question, future

    def _changed(self, tool: Tool | None) -> DefinitionChange | None:
        before = self._definitions.get(tool.path) if tool is not None else None
        if tool is None or before is None:
            return None
        now = _definition(tool)
        names = tuple(name for name in now if now[name] != before[name])
        return DefinitionChange(names, tuple(_diff(before, now))) if names else None


async def first_answer(asked: set[asyncio.Future[Any]]) -> Decision:
    """The first answer of several approvers. One that raises `approval_unavailable` cannot ask: it is left out."""
    waiting = asked
    try:
        while True:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                problem = each.exception()
                if problem is None:
                    return Decision.of(each.result())
                if not isinstance(problem, Denied) or problem.code != "approval_unavailable":
                    raise problem
    finally:
        for each in waiting:
            each.cancel()


async def ask_people(
    journal: Journal,
    call: ToolCall,
    approve: Callable[[ToolCall], Any] | None,
    seconds: float,
    secrets: SecretRedactor | None,
) -> Decision:
    """What people say of a call of a run that has a journal: the kept decision, or the first answer.

    The journal has the question before a person is asked, and the answer before it has an effect. `approve` is asked
    beside it. Raises Denied for a question that has expired: it stays open for so many seconds.
    """
    questions = Questions(journal.backend)

    async def patiently(work: Callable[[], Any]) -> Any:
        return await in_thread(journal.patiently, work, start=own_thread)

    kept = await patiently(lambda: _keep(questions, call, seconds, secrets))
    decision = kept.decision
    if decision is None:
        look = _look(journal.watch, questions, kept, call.run_id)
        answers: set[asyncio.Future[Any]] = {asyncio.ensure_future(look)}
        if approve is not None:
            named = msgspec.structs.replace(call, question=kept.id)
            answers.add(asyncio.ensure_future(_approver(approve, named)))
        try:
            answer = (await first_answer(answers)).to_dict()
        except Denied:
            await patiently(lambda: questions.settle(kept.id, {"kind": WITHDRAWN}))
            raise
        decision = await patiently(lambda: questions.settle(kept.id, answer))
    if decision["kind"] in (EXPIRED, WITHDRAWN):
        open_for = kept.expires - kept.asked
        message = f"nobody answered the approval of '{call.tool}' within {open_for:g} seconds; it has expired"
        raise Denied(message, code="approval_unavailable")
    if "changes" in decision:
        decision = {**decision, "arguments": to_jsonable({**call.arguments, **decision["changes"]})}
    return Decision.from_dict(decision)


def _keep(questions: Questions, call: ToolCall, seconds: float, secrets: SecretRedactor | None) -> KeptQuestion:
    """Write the question, unless it is there; without secrets."""
    definition = {} if call.definition is None else definition_of(call)
    shown = Question.of(call).to_dict()
    identity = [call.tool, definition, shown["arguments"]]
    mark = sha256(msgspec.json.encode(identity, order="deterministic")).hexdigest()
    if secrets is not None:
        shown["arguments"] = secrets(shown["arguments"])
    del shown["source"]  # it is in the journal, once for the run
    return questions.ask(shown, call.id, mark, seconds)


async def _look(watch: Watch, questions: Questions, kept: KeptQuestion, run: str) -> Decision:
    """Wait until the journal has an answer, or the question expires."""
    loop = asyncio.get_running_loop()
    while True:
        told = asyncio.Event()
        number = watch.add(run, kept.expires, partial(soon, loop, told.set))
        try:
            with contextlib.suppress(JournalError):  # a database that is away does not answer for a person
                if await in_thread(questions.decision, kept, start=own_thread) is not None:
                    return Decision("deny")  # `settle` finds what the journal has
            await told.wait()
        finally:
            watch.remove(number)


async def _approver(approve: Any, call: ToolCall) -> Any:
    """What `approve` says. One that fails has not answered: the question stays open."""
    try:
        return Decision.of(await asked(approve, call))
    except Denied:
        raise
    except Exception as problem:
        raise Denied(f"the approver failed: {problem}", code="approval_unavailable") from problem


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
