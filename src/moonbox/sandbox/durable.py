"""Durable runs: what a Repl writes to its journal, and how its runs are run again from what was written.

RunJournal      listens to one Execution: takes down what happens, and answers from the record while it replays
ReplJournal     writes a Repl's events under its lease
RecordedRun     one run of the journal
"""

from __future__ import annotations

import threading
from hashlib import blake2b, sha256
from time import time
from typing import TYPE_CHECKING, Any

from msgspec import Struct, json, msgpack

from moonbox._version import __version__
from moonbox.errors import Diverged, InDoubt, ToolError, UsageError
from moonbox.journal.records import Answers, Approved, Begin, Calls, End, Environment, Failure, Record, Reply, Reset
from moonbox.sandbox.decisions import Answer
from moonbox.tools.tool import fingerprint
from moonbox.values import Packed, pack

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moonbox.audit.records import CallStatus, Run
    from moonbox.journal.store import Held, Journal
    from moonbox.sandbox.call_entry import CallEntry, CallResult
    from moonbox.sandbox.environment import Additions
    from moonbox.sandbox.record import RunRecord
    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox

    Item = tuple[int, str, list[Any]]
    """A call as its worker asks for it: its number, its target, its arguments."""

_SHORT = 300
_QUESTIONS = ("sys.", "docs.", "fn.show", "fn.progress")  # answered at once; a repetition does no harm
_encode = msgpack.Encoder().encode


class PendingCall(Struct, frozen=True, kw_only=True):
    """A call without an answer in the journal: its tool may have been invoked."""

    run_id: str
    call: int
    """The worker's number for it, which no other call of the run has."""
    tool: str
    arguments: Any
    repeatable: bool
    """Its tool says that it is `read_only` or `idempotent`, or it waited for a person's approval."""
    key: str
    """The call's idempotency key, which its tool finds in its Context."""


class InterruptedRun(Struct, frozen=True, kw_only=True):
    """A run that a crash cut off."""

    run_id: str
    repl_id: str
    source: str
    began: float
    pending: tuple[PendingCall, ...]
    """Calls without an answer."""


class RecordedRun:
    """One run of the journal: how it began, what it asked, what it was answered, and how it ended."""

    def __init__(self, begin: Begin) -> None:
        self.begin = begin
        self.calls: list[Calls] = []
        self.answers: list[Answers] = []
        self.approved: set[int] = set()
        self.end: End | None = None

    def add(self, record: Record) -> None:
        if isinstance(record, Calls):
            self.calls.append(record)
        elif isinstance(record, Answers):
            self.answers.append(record)
        elif isinstance(record, Approved):
            self.approved.add(record.call)
        elif isinstance(record, End):
            self.end = record

    def pending(self, toolbox: Toolbox) -> tuple[PendingCall, ...]:
        """Calls that were asked for and have no answer."""
        answered = {reply.call for group in self.answers for reply in group.replies}
        asked = [item for group in self.calls for item in group.calls if not item[1].startswith(_QUESTIONS)]
        return tuple(self._pending(item, toolbox) for item in asked if item[0] not in answered)

    def _pending(self, item: Item, toolbox: Toolbox) -> PendingCall:
        number, target, arguments = item
        space, _, name = target.partition(".")
        tool = toolbox.get(name) if space == "tools" else None
        waited = tool is not None and tool.policy == "approve" and number not in self.approved
        return PendingCall(
            run_id=self.begin.run,
            call=number,
            tool=name,
            arguments=arguments[0] if len(arguments) == 1 and isinstance(arguments[0], dict) else arguments,
            repeatable=waited or _may_repeat(tool),
            key=call_key(self.begin.run, number),
        )


def read_runs(events: Iterable[list[Record]]) -> list[RecordedRun]:
    """The runs since the Repl was last reset."""
    runs: list[RecordedRun] = []
    for records in events:
        for record in records:
            if isinstance(record, Reset):
                runs.clear()
            elif isinstance(record, Begin):
                runs.append(RecordedRun(record))
            elif runs:
                runs[-1].add(record)
    return runs


def latest_environment(events: Iterable[list[Record]]) -> Environment | None:
    """What the latest run found."""
    found = [record for records in events for record in records if isinstance(record, Environment)]
    return found[-1] if found else None


class ReplJournal:
    """The events of one Repl, under a lease. Threads that ask people write beside the one that drives the run."""

    def __init__(self, journal: Journal, held: Held, seq: int = 0, environment: Environment | None = None) -> None:
        self.journal = journal
        self.held = held
        self.seq = seq
        """The number of the next event."""
        self._environment = environment
        self._mark: object = None
        self._lock = threading.Lock()

    def write(self, run: str, records: list[Record]) -> None:
        """Write them as one event, before anything that follows from them happens."""
        with self._lock:
            self.journal.append(self.held, self.seq, run, records)
            self.seq += 1

    def changed_environment(
        self, toolbox: Toolbox, additions: Additions, language: str, features: Iterable[str]
    ) -> list[Record]:
        """The environment, if it is not the one that was written last."""
        mark = toolbox, toolbox.revision, additions.revision
        if mark == self._mark:
            return []
        self._mark = mark
        found = Environment(
            language=language,
            version=__version__,
            tools={tool.path: _digest(tool) for tool in toolbox},
            functions=sorted(additions.functions),
            features=sorted(features),
        )
        if found == self._environment:
            return []
        before, self._environment = self._environment, found
        return [found] if before is None or before != found else []

    def difference(self, toolbox: Toolbox) -> str:
        """In words: how the tools differ from those that the latest recorded run found; empty where they do not."""
        before = self._environment
        if before is None:
            return ""
        now = {tool.path: _digest(tool) for tool in toolbox}
        parts = [
            f"{what}: {', '.join(names[:10])}"
            for what, names in (
                ("tools that are gone", sorted(before.tools.keys() - now.keys())),
                (
                    "tools that changed",
                    [name for name, digest in before.tools.items() if now.get(name, digest) != digest],
                ),
                ("new tools", sorted(now.keys() - before.tools.keys())),
            )
            if names
        ]
        if before.version != __version__:
            parts.append(f"it was recorded by moonbox {before.version}, this is {__version__}")
        return "; ".join(parts)

    def reset(self) -> None:
        """What the scripts had defined is gone."""
        self.write("", [Reset()])

    def release(self) -> None:
        self.journal.release(self.held)


class RunJournal:
    """The journal of one run. The driver writes what it takes down before it sends anything or starts a call.

    While `replaying`, calls are compared with the record and answered from it. When the record has no more answers,
    `decisions` say what the calls without one get, by their numbers, and the run goes on as any other.
    """

    def __init__(
        self,
        repl: ReplJournal,
        record: RunRecord,
        recorded: RecordedRun | None = None,
        decisions: Mapping[int, CallResult | None] | None = None,
    ) -> None:
        self._repl = repl
        self._record = record
        self._recorded = recorded
        self._decisions = decisions or {}
        self._asked: set[int] = set()
        self._groups = 0  # of recorded calls that the worker has asked for again
        self._fed = 0  # groups of recorded answers that the worker has got
        self._unwritten: list[Record] = []
        self._digest = blake2b(digest_size=16)
        self.replaying = recorded is not None

    # Taking down

    def begin(self, records: list[Record]) -> None:
        self._unwritten += records

    def called(self, items: list[Item]) -> bool:
        """The worker asks for these calls. Whether their answers come from the record; raises Diverged."""
        self._asked.update([item[0] for item in items])
        if not self.replaying:
            self._unwritten.append(Calls(calls=items))
            return False
        assert self._recorded is not None
        if self._groups >= len(self._recorded.calls):
            if self._recorded.end is not None or self._fed < len(self._recorded.answers):
                raise self._diverged("the run ended", _in_words(items))
            self.replaying = False
            self._unwritten.append(Calls(calls=items))
            return False
        before = self._recorded.calls[self._groups].calls
        if [list(call) for call in before] != items and _encode(before) != _encode(items):
            raise self._diverged(_in_words(before), _in_words(items))
        self._groups += 1
        return True

    def answered(self, replies: list[tuple[int, bool, Packed]], entries: list[CallEntry]) -> None:
        """These answers are about to be sent."""
        if self.replaying:
            return
        known = {entry.id: entry for entry in entries}
        self._unwritten.append(Answers(replies=[_reply(*reply, known.get(reply[0])) for reply in replies]))

    def printed(self, data: bytes) -> None:
        self._digest.update(data)

    def ended(self, payload: bytes) -> None:
        """How the worker says that the run ended, apart from what it spent."""
        self._digest.update(b"\0" + payload)

    def approved(self, entry: CallEntry) -> None:
        """A person has allowed the call. Written at once: its tool is invoked next."""
        self._repl.write(self._record.id, [Approved(call=entry.id, approval=entry.approval or "")])

    def take(self) -> list[Record]:
        """What has happened since the last time, to be written with `put`."""
        records, self._unwritten = self._unwritten, []
        return records

    def put(self, records: list[Record]) -> None:
        """Write them, from any thread."""
        if records:
            self._repl.write(self._record.id, records)

    def finish(self, run: Run, *, lost: bool) -> bool:
        """The run is over: write its end, or compare it with the recorded one. Whether it was a repetition."""
        error = run.error
        end = End(
            run=run.id,
            outcome="ok" if error is None else error.kind,
            limit="" if error is None else (error.limit or ""),
            digest=self._digest.digest(),
            at=time(),
        )
        if self.replaying:
            self._compare(end)
            return True
        self._unwritten.append(end)
        self.put(self.take())
        if lost:
            self._repl.reset()
        return False

    # Replaying

    def next_answers(self) -> list[Reply]:
        """The answers that the worker got next, if it has asked for them; empty where it has not."""
        assert self._recorded is not None
        if self._fed >= len(self._recorded.answers):
            return []
        replies = self._recorded.answers[self._fed].replies
        if not all(reply.call in self._asked for reply in replies):
            return []
        self._fed += 1
        return replies

    def go_on(self) -> bool:
        """Whether the record has nothing more for this run, which a crash cut off: from here on it is a new one."""
        recorded = self._recorded
        if recorded is None or recorded.end is not None or self._fed < len(recorded.answers):
            return False
        if self._groups < len(recorded.calls):
            return False
        self.replaying = False
        return True

    def decision(self, entry: CallEntry) -> CallResult | None:
        """What a call without an answer gets; None: it is performed."""
        return self._decisions.get(entry.id)

    def _compare(self, end: End) -> None:
        recorded = self._recorded
        assert recorded is not None
        before = recorded.end
        if before is None:  # it ended before it came to where the crash had been
            raise self._diverged("it made further calls", "the run ended")
        if self._fed < len(recorded.answers) or self._groups < len(recorded.calls):
            raise self._diverged(
                _in_words(recorded.calls[min(self._groups, len(recorded.calls) - 1)].calls), "the run ended"
            )
        if (before.outcome, before.limit) != (end.outcome, end.limit):
            raise self._diverged(_outcome(before), _outcome(end))
        if before.digest != end.digest:
            raise self._diverged("another value or output", "the value and output of the replay differ from it")

    def _diverged(self, before: str, now: str) -> Diverged:
        why = self._repl.difference(self._record.calls.toolbox)
        return Diverged(
            f"run {self._record.number} of the Repl {self._record.repl_id} does not repeat what was recorded: "
            f"recorded: {before}; now: {now}" + (f" ({why})" if why else "")
        )


def decide(pending: tuple[PendingCall, ...], in_flight: Any) -> dict[int, CallResult | None]:
    """What calls without an answer get, by their numbers; None: the call is made again.

    Calls that are repeatable are made again. `in_flight` decides about the others: "retry", "fail", or a function that
    gives "retry", "fail" or an Answer for each. Raises InDoubt where nobody decides.
    """
    if in_flight not in (None, "retry", "fail") and not callable(in_flight):
        raise UsageError(f'in_flight must be "retry", "fail" or a function of a pending call, not {in_flight!r}')
    doubtful = tuple(call for call in pending if not call.repeatable)
    if doubtful and in_flight is None:
        listed = ", ".join(f"call {call.call} ({call.tool})" for call in doubtful[:10])
        raise InDoubt(
            f"{listed}: it may have been made before the crash, and its tool is neither read_only nor idempotent; "
            'pass in_flight="retry", "fail", or a function that decides for each call',
            doubtful,
        )
    return {call.call: _decided(call, in_flight(call) if callable(in_flight) else in_flight) for call in doubtful}


def _decided(call: PendingCall, wanted: Any) -> CallResult | None:
    if wanted == "retry" or (isinstance(wanted, Answer) and wanted.kind == "run"):
        return None
    if wanted == "fail":
        message = f"the host was restarted while {call.tool} was running; whether it took effect is not known"
        return "error", None, ToolError(message, code="in_doubt", tool=call.tool)
    if not isinstance(wanted, Answer):
        raise UsageError(f'in_flight must give "retry", "fail" or an Answer for a call, not {wanted!r}')
    if wanted.kind == "error":
        error = ToolError(wanted.message, code=wanted.code, retryable=wanted.retryable, data=wanted.data)
        return "error", None, error
    return "ok", pack(wanted.result), None


def call_key(run_id: str, call: int) -> str:
    """The same for every try of one call, and of no other."""
    return f"{run_id}-{call}"


def result_of(reply: Reply) -> tuple[CallStatus, Packed | None, ToolError | None]:
    """The result of a call as it was recorded."""
    failed = reply.error
    if failed is None:
        return reply.status, Packed(reply.data), None  # type: ignore[return-value]  # written from a CallStatus
    error = ToolError(
        failed.message, code=failed.code, retryable=failed.retryable, data=failed.data, detail=failed.detail
    )
    return reply.status, None, error  # type: ignore[return-value]


def _reply(call: int, ok: bool, packed: Packed, entry: CallEntry | None) -> Reply:
    if entry is None:
        return Reply(call=call, ok=ok, data=packed.data)
    error = entry.error
    began, ended = entry.began, entry.ended
    return Reply(
        call=call,
        ok=ok,
        data=packed.data,
        status=entry.status,
        error=None if error is None else Failure(error.code, error.message, error.retryable, error.data, error.detail),
        tool=entry.tool,
        arguments=entry.arguments,
        approval=entry.approval,
        started=entry.started,
        duration=0.0 if began is None or ended is None else max(0.0, ended - began),
    )


def _may_repeat(tool: Tool | None) -> bool:
    return tool is not None and bool(tool.hints.read_only or tool.hints.idempotent)


def _digest(tool: Tool) -> str:
    return sha256(json.encode(fingerprint(tool))).hexdigest()[:16]


def _outcome(end: End) -> str:
    return "it ended well" if end.outcome == "ok" else f"it failed ({end.outcome}{end.limit and f', {end.limit}'})"


def _in_words(items: list[Item]) -> str:
    text = ", ".join(
        f"{target.partition('.')[2]}{json.encode(arguments, enc_hook=str).decode()}" for _, target, arguments in items
    )
    return f"it called {text[:_SHORT]}{'…' if len(text) > _SHORT else ''}"
