"""The journal of one Repl and of each of its runs: takes down what happens, and answers from the record in a replay."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b, sha256
from time import monotonic, time
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from msgspec import json, msgpack

from moonbox._version import __version__
from moonbox.durable.index import tools_of
from moonbox.durable.recorded import RecordedRun, read_runs, refuse_interrupted
from moonbox.errors import Diverged, JournalError
from moonbox.runs.events import (
    Answers,
    Approved,
    Begin,
    CallsAsked,
    End,
    Environment,
    Medium,
    Record,
    RecordedReply,
    Reset,
    Slept,
)
from moonbox.tools.tool import Tool, fingerprint

if TYPE_CHECKING:
    from moonbox.audit.records import Run
    from moonbox.durable.leases import Held
    from moonbox.durable.recorded import Decisions, Item
    from moonbox.durable.store import Journal
    from moonbox.durable.views import MemoryEvents
    from moonbox.limits import Limits
    from moonbox.runs.call_entry import CallEntry
    from moonbox.runs.decisions import Allowance
    from moonbox.runs.environment import Additions
    from moonbox.runs.record import RunClock, RunRecord, ScriptApproval
    from moonbox.tools.toolbox import Toolbox
    from moonbox.values import Packed

LONGEST_DELAY = 0.005
"""Seconds that records wait for those that follow, to be written with them."""
LARGEST_MEDIUM = 4 * 1024 * 1024
"""Bytes of an image or a file whose contents are kept."""
_SHORT = 300
_encode = msgpack.Encoder().encode
_NO_TOOLS: tuple[str, frozenset[str]] = ("", frozenset())
_ENVIRONMENTS: WeakKeyDictionary[Toolbox, tuple[Any, Environment]] = WeakKeyDictionary()
"""The latest of each toolbox, and what it was made from: Repls that find the same share it."""


class ReplJournal:
    """The events of one Repl, under a lease. Threads that ask people write beside the one that drives the run."""

    __slots__ = (
        "_lock", "_mark", "_tools", "environment", "failed", "held", "hurries", "journal", "media", "released",
        "resumed", "seq",
    )  # fmt: skip

    def __init__(self, journal: Journal | MemoryEvents, held: Held) -> None:
        self.journal = journal
        self.held = held
        self.seq = 0
        """The number of the next event."""
        self.environment: Environment | None = None
        """What the latest recorded run found."""
        self.media = 0
        """How many media of the Repl were looked at."""
        self.released = False
        """Another process may use the Repl."""
        self.failed = ""
        """The run of which something could not be written, and so not its end."""
        self.resumed = ""
        """The run that was begun again, until it comes further than before."""
        self.hurries = False
        """Nothing waits for a database that is away: the run is being stopped, or the Repl closed."""
        self._mark: object = None
        self._tools = _NO_TOOLS  # of a run: those that the index has
        self._lock = threading.Lock()

    def write(self, run: str, records: list[Record], clock: RunClock | None = None) -> None:
        """Write them as one event, before anything that follows from them happens. Waits for a database that is away.

        After a JournalError it is not known whether they were written: `recorded_runs` finds out.
        """
        with self._lock:
            try:
                self.journal.patiently(lambda: self._append(run, records), self, clock)
            except KeyboardInterrupt:  # whether it was written is not known
                self._append(run, records)
                self.seq += 1
                raise
            self.seq += 1

    def begin_again(self, run: str) -> None:
        """A run that was cut off, or slept, goes on."""
        self.journal.patiently(lambda: self.journal.awake(run), self)
        self.resumed = run

    def comes_further(self) -> None:
        run, self.resumed = self.resumed, ""
        self.journal.patiently(lambda: self.journal.comes_further(run), self)

    def fall_asleep(self, run: str, until: float, questions: int) -> float:
        """Release the Repl while its run waits; when the run goes on."""
        moment = self.journal.patiently(lambda: self.journal.fall_asleep(self.held, run, until, questions), self)
        self.released = True
        self._tools = _NO_TOOLS  # of many that sleep, each would keep them
        return moment

    def _append(self, run: str, records: list[Record]) -> None:
        known = self._tools[1] if self._tools[0] == run else frozenset()
        new = tools_of(records) - known
        self.journal.append(self.held, self.seq, run, records, new)
        self._tools = run, known | new if new else known

    def changed_environment(
        self, toolbox: Toolbox, additions: Additions, language: str, features: Iterable[str]
    ) -> list[Record]:
        """The environment, if it is not the one that was written last."""
        mark = toolbox, toolbox.revision, additions.revision
        if mark == self._mark:
            return []
        self._mark = mark
        functions = sorted({*additions.functions, *additions.values})
        key = (toolbox.revision, language, functions, sorted(features))
        known = _ENVIRONMENTS.get(toolbox)
        if known is None or known[0] != key:
            tools = {tool.path: _digest(tool) for tool in toolbox}
            found = Environment(
                language=language, version=__version__, tools=tools, functions=functions, features=key[-1]
            )
            known = _ENVIRONMENTS[toolbox] = key, found
        found = known[1]
        if found == self.environment:
            return []
        self.environment = found
        return [found]

    def difference(self, toolbox: Toolbox, additions: Additions) -> str:
        """In words: how tools and definitions differ from those that the latest recorded run found; or empty."""
        before = self.environment
        if before is None:
            return ""
        now = {tool.path: _digest(tool) for tool in toolbox}
        differ = sorted({path for path, _ in before.tools.items() ^ now.items()})
        parts = [f"tools that are gone, new or changed: {', '.join(differ[:10])}"] if differ else []
        added = sorted({*additions.functions, *additions.values} ^ {*before.functions})
        parts += [f"definitions that are gone or new: {', '.join(added[:10])}"] if added else []
        if before.version != __version__:
            parts.append(f"it was recorded by moonbox {before.version}, this is {__version__}")
        return "; ".join(parts)

    def reset(self) -> None:
        """What the scripts had defined is gone."""
        runs = self.recorded_runs() if self.released else []
        if runs and runs[-1].end is None:
            self.abandon(runs[-1].begin.run)
        self.write("", [Reset()])

    def abandon(self, run: str) -> End:
        """The run is not continued."""
        end = End(run=run, outcome="interrupted", at=time())
        self.write(run, [end])
        return end

    def wake(self) -> list[RecordedRun]:
        """The runs since the last reset. The one that was not written to its end is given up: its caller knows."""
        self.hurries = False
        runs = self.recorded_runs()
        if runs and runs[-1].end is None and runs[-1].begin.run == self.failed:
            runs[-1].end = self.abandon(self.failed)
        self.failed = ""
        refuse_interrupted(runs)
        return runs

    def release(self) -> None:
        if not self.released:
            self.journal.release(self.held)
            self.released = True

    def recorded_runs(self) -> list[RecordedRun]:
        """The runs since the Repl was last reset. One that was released is taken again: another may have used it."""
        if self.released:
            self.held = self.journal.patiently(lambda: self.journal.take(self.held.repl), self)
            self.released = False
        events = self.journal.patiently(lambda: self.journal.read(self.held.repl), self)
        self.seq, self.environment, self._mark = len(events), None, None
        for record in (record for records in events for record in records):
            if isinstance(record, Environment):
                self.environment = record
        return read_runs(events)


class RunJournal:
    """The journal of one run. The driver writes what it takes down before it starts a call, and when it is due.

    While `replaying`, calls are compared with the record and answered from it. When the record has no more answers,
    `decisions` say what the calls without one get, by their numbers, and the run goes on as any other.
    """

    __slots__ = (
        "_asked", "_begun", "_digest", "_due", "_failure", "_fed", "_groups", "_record", "_recorded", "_repl",
        "_unwritten", "decisions", "may_leave_people", "replaying",
    )  # fmt: skip

    def __init__(
        self,
        repl: ReplJournal,
        record: RunRecord,
        recorded: RecordedRun | None = None,
        decisions: Decisions | None = None,
        *,
        may_leave_people: bool = False,
    ) -> None:
        self.may_leave_people = may_leave_people
        self._repl = repl
        self._record = record
        self._recorded = recorded
        self.decisions = decisions or {}
        """What calls without an answer get; None: the call is performed."""
        self._asked: set[int] = set()
        self._groups = 0  # of recorded calls that the worker has asked for again
        self._fed = 0  # groups of recorded answers that the worker has got
        self._unwritten: list[Record] = []
        self._due = 0.0  # on the monotonic clock: when they are written at the latest
        self._failure: Exception | None = None
        self._begun = recorded is not None  # something of it is on file
        self._digest: blake2b | None = None  # of output and value; a run that sleeps has none, mostly
        self.replaying = recorded is not None
        repl.hurries = False

    # Taking down

    def begin(self, changed: list[Record], inputs: list[tuple[str, Any]]) -> None:
        """The run begins, in an environment that has changed."""
        record = self._record
        begin = Begin(
            run=record.id,
            number=record.number,
            source=record.source,
            inputs=inputs,
            limits=_fields(record.calls.limits),
            seed=record.seed,
            started=record.started,
            labels=record.labels,
        )
        for each in (*changed, begin):
            self._add(each)
        self._add_media()

    def called(self, items: list[Item]) -> bool:
        """The worker asks for these calls. Whether their answers come from the record; raises Diverged."""
        self._check()
        self._asked.update([item[0] for item in items])
        if not self.replaying:
            self._add(CallsAsked(calls=items))
            return False
        assert self._recorded is not None
        if self._groups >= len(self._recorded.calls):
            if self._recorded.end is not None or self._fed < len(self._recorded.answers):
                raise self._diverged("the run ended", _in_words(items))
            self.replaying = False
            self._add(CallsAsked(calls=items))
            return False
        before = self._recorded.calls[self._groups].calls
        if _encode(before) != _encode(items):
            raise self._diverged(_in_words(before), _in_words(items))
        self._groups += 1
        return True

    def answered(self, replies: list[tuple[int, bool, Packed]], entries: list[CallEntry]) -> None:
        """These answers are about to be sent."""
        self._check()
        if self.replaying:
            return
        self._add_media()
        known = {entry.id: entry for entry in entries}
        self._add(Answers(replies=[_reply(*reply, known.get(reply[0])) for reply in replies]))

    def slept(self, call: int, until: float) -> float:
        """A call of `sleep` is to be answered then; or when the record says."""
        if self._recorded is not None and self._recorded.is_cut:
            return 0.0  # it is looked at: nothing waits
        known = None if self._recorded is None else self._recorded.slept.get(call)
        if known is not None:
            return known
        self._add(Slept(call=call, until=until))
        return until

    def _add_media(self) -> None:
        """The contents of media that have come in since the last time."""
        repl = self._repl
        repl.media, new = self._record.calls.media.since(repl.media)
        for each in new:
            if each.size <= LARGEST_MEDIUM:
                self._add(Medium(address=each.address, kind=each.type, name=each.name, data=each.data))

    def _add(self, record: Record) -> None:
        if not self._unwritten:
            self._due = monotonic() + LONGEST_DELAY
        if self._recorded is not None and self._recorded.unwritten is not None:
            self._unwritten.append(self._recorded.unwritten)
            self._recorded.unwritten = None
        self._unwritten.append(record)

    def sooner(self, deadline: float | None) -> float | None:
        """The deadline, or when the records must be written, if that is sooner."""
        if not self._unwritten:
            return deadline
        return self._due if deadline is None else min(deadline, self._due)

    def is_due(self, *, starting: bool) -> bool:
        """Whether the records must be written now: calls are to be started, or they have waited long enough."""
        return bool(self._unwritten) and (starting or monotonic() >= self._due)

    def printed(self, data: bytes) -> None:
        self._digest = self._digest or blake2b(digest_size=16)
        self._digest.update(data)

    def ended(self, payload: bytes) -> None:
        """How the worker says that the run ended, apart from what it spent."""
        self.printed(b"\0" + payload)

    def approved(self, entry: CallEntry) -> None:
        """A person has allowed the call. Written at once: its tool is invoked next."""
        self.put([Approved(call=entry.id, approval=entry.approval or "", allowance=entry.allowance)])

    def decided(self, said: ScriptApproval, allowance: Allowance | None) -> None:
        """A person has decided about the script. Written before anything that it does."""
        self._add(Approved(call=0, approval=said.approval, allowance=allowance, script=said))

    def take(self) -> list[Record]:
        """What has happened since the last time, to be written with `put`."""
        records, self._unwritten = self._unwritten, []
        return records

    def put(self, records: list[Record]) -> None:
        """Write them, from any thread. After a failure nothing more is written: the record would have a gap."""
        self._check()
        try:
            if records:
                self._repl.write(self._record.id, records, self._record.clock)
                if self._begun and self._repl.resumed == self._record.id:
                    self._repl.comes_further()
                self._begun = True
        except JournalError as problem:
            if self._begun:
                problem.args = (f"{problem}; the run is interrupted: continue it with resume({self._record.id!r})",)
            self.fail(problem)
            raise

    def fail(self, problem: Exception) -> None:
        """The run cannot go on: its script gets nothing more, and it can be resumed."""
        self._failure, self._repl.failed = problem, self._record.id

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def stop_waiting(self) -> None:
        """The run is being stopped."""
        self._repl.hurries = True

    def finish(self, run: Run, *, lost: bool) -> bool:
        """The run is over: write its end, or compare it with the recorded one. Whether it was a repetition."""
        error = run.error
        end = End(
            run=run.id,
            outcome="ok" if error is None else error.kind,
            limit="" if error is None else (error.limit or ""),
            digest=(self._digest or blake2b(digest_size=16)).digest(),
            at=time(),
        )
        stopped_again = self._recorded is not None and self._recorded.end is None and not end.is_repeatable
        if self.replaying and not stopped_again:  # from outside, before it came to where it had been
            self._compare(end)
            return True
        suspended = run.id in self._repl.journal.suspended
        if not suspended:
            self._add(end)
        self.put(self.take())
        if lost and not suspended:
            self._repl.reset()
        return False

    # Replaying

    def next_answers(self) -> list[RecordedReply]:
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
            raise self._diverged("one value and output", "another")

    def _diverged(self, before: str, now: str) -> Diverged:
        recorded = self._recorded
        if recorded is not None and recorded.unwritten is not None:
            at = 1 + sum(len(group.calls) for group in recorded.calls[: self._groups])
            return Diverged(
                f"the corrected script does not repeat run {self._record.id}: it differs at call {at}: "
                f"recorded: {before}; now: {now}; nothing was changed"
            )
        why = self._repl.difference(self._record.calls.toolbox, self._record.calls.additions)
        return Diverged(
            f"run {self._record.number} of the Repl {self._record.repl_id} does not repeat what was recorded: "
            f"recorded: {before}; now: {now}" + (f" ({why})" if why else "")
        )


@lru_cache(maxsize=8)
def _fields(limits: Limits) -> dict[str, Any]:
    return limits.to_dict()


def _reply(call: int, ok: bool, packed: Packed, entry: CallEntry | None) -> RecordedReply:
    if entry is None:
        return RecordedReply(call=call, ok=ok, data=packed.data)
    began, ended = entry.began, entry.ended
    return RecordedReply(
        call=call,
        ok=ok,
        data=packed.data,
        status=entry.status,
        error=entry.error,
        tool=entry.tool,
        arguments=entry.arguments,
        approval=entry.approval,
        started=entry.started,
        duration=0.0 if began is None or ended is None else max(0.0, ended - began),
    )


def _digest(tool: Tool) -> str:
    return sha256(json.encode(fingerprint(tool))).hexdigest()[:16]


def _outcome(end: End) -> str:
    return "it ended well" if end.outcome == "ok" else f"it failed ({end.outcome}{end.limit and f', {end.limit}'})"


def _in_words(items: list[Item]) -> str:
    text = ", ".join(
        f"{target.partition('.')[2]}{json.encode(arguments, enc_hook=str).decode()}" for _, target, arguments in items
    )
    return f"it called {text[:_SHORT]}{'…' if len(text) > _SHORT else ''}"
