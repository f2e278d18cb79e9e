"""Views: a recorded run as it was at one of its calls, and forks that go on from there with other answers.

To look, the run is run again in a worker of its own, from its record alone: no tool is invoked, and the journal is read
and not written. A fork that is not dry is a new run, in a new Repl of the journal.
"""

from __future__ import annotations

import secrets
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from msgspec import msgpack
from msgspec.structs import asdict, replace

from moonbox.durable.journaling import ReplJournal
from moonbox.durable.leases import Held
from moonbox.durable.recorded import result_of
from moonbox.durable.recovery import Found, LiveRepl, Recoveries, find_recorded
from moonbox.errors import Diverged, ToolError, UsageError
from moonbox.runs.decisions import Answer
from moonbox.runs.events import Answers, Begin, CallsAsked, End, Record, RecordedReply
from moonbox.runs.held_worker import SeenFrame, inspect
from moonbox.runs.runner import not_a_script
from moonbox.threads import unbroken
from moonbox.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from moonbox.audit.records import Call, Run
    from moonbox.durable.recorded import Decisions
    from moonbox.runs.call_entry import CallEntry, CallResult
    from moonbox.runs.execution import Execution
    from moonbox.runs.record import RunClock
    from moonbox.worker.link import Link

    Known = Mapping[bytes, list[RecordedReply]]
    """Recorded answers, for calls with the same target and arguments."""

T = TypeVar("T")
R = TypeVar("R", bound=LiveRepl)


@dataclass(frozen=True, kw_only=True)
class RunView:
    """A recorded run while it waits for the answer to one of its calls."""

    run_id: str
    repl_id: str
    source: str
    language: str
    at: int
    """The number of the call: 1 for the first of the run."""
    total: int
    """How many calls the record has."""
    frames: tuple[SeenFrame, ...]
    """The functions that have been called and have not returned, innermost first, each with its locals."""
    globals: Mapping[str, Any]
    """What scripts have defined. Values are shortened, and what is no data is text in angle brackets."""
    output: str
    """What the run has printed so far."""
    calls: tuple[Call, ...]
    """The calls so far, with their answers; among them those that were asked for together with this one."""
    ends: str = ""
    """Why the record goes no further than this call; empty where it does."""
    _walks: Walks[Any] = field(repr=False, compare=False)
    _moment: Moment = field(repr=False, compare=False)

    @property
    def call(self) -> Call:
        """The call that the script waits for, with the recorded answer; `in_flight` where the record has none."""
        return self.calls[self.at - 1]

    @property
    def line(self) -> int | None:
        """The line of the script that waits; None where it is not known."""
        return next((frame.line for frame in self.frames if frame.own and frame.line > 0), None)

    @property
    def locals(self) -> Mapping[str, Any]:
        """The locals of the innermost function."""
        return self.frames[0].locals if self.frames else {}

    def fork(self, answers: Mapping[int, Any] | None = None, *, dry: bool = False) -> Run | RunView:
        """Go on from here with other answers, by the numbers of calls; recorded answers serve for those left out.

        An answer is `Answer.value(x)`, `Answer.error(message, code=…)` or `Answer.run()`, which invokes the tool;
        anything else stands for `Answer.value` of itself. Later calls are live: they are validated, approved, made and
        recorded, in a new Repl of the journal, which the Run names. With `dry`, nothing is invoked or written: later
        calls get the recorded answers of calls with the same arguments, and the first call without one gives a view.
        """
        decisions = self._moment.decisions(answers or {})
        walks = self._walks
        if dry:
            return walks.go_on_dry(self._moment, decisions)
        return walks.recoveries.run(walks.going_on(self._moment, decisions))

    async def afork(self, answers: Mapping[int, Any] | None = None, *, dry: bool = False) -> Run | RunView:
        """The same, awaited."""
        if dry:
            view: Run | RunView = await unbroken(lambda: self.fork(answers, dry=True))
            return view
        going_on = self._walks.going_on(self._moment, self._moment.decisions(answers or {}))
        return await self._walks.recoveries.arun(going_on)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data."""
        names = ("run_id", "repl_id", "source", "language", "at", "total", "line", "output", "ends")
        return {
            **{name: getattr(self, name) for name in names},
            "frames": [asdict(frame) for frame in self.frames],
            "globals": dict(self.globals),
            "call": self.call.to_dict(),
            "calls": [call.to_dict() for call in self.calls],
        }


class Waiting(NamedTuple):
    """A call without an answer."""

    number: int
    """The worker's number for it."""
    reply: RecordedReply | None
    """Its recorded answer."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A recorded run up to the moment at which it asks for a call."""

    run_id: str
    repl_id: str
    before: list[list[Record]]
    """The events of the Repl before the run."""
    records: list[Record]
    """Those of the run; the last asks for the call."""
    waiting: Mapping[int, Waiting]
    """The calls without an answer then, by their numbers in the run."""
    later: Known
    """The answers of later calls that have not been given again."""
    at: int
    total: int

    def decisions(self, answers: Mapping[int, Any]) -> dict[int, CallResult | None]:
        """What the waiting calls get, by the worker's numbers; None: they are live."""
        if not isinstance(answers, dict) or not answers.keys() <= self.waiting.keys():
            numbers = ", ".join(map(str, self.waiting))
            raise UsageError(
                f"answers must be a mapping from the numbers of calls that the script waits for here ({numbers}), "
                f"not {answers!r}; to change the answer of another call, look at the run there"
            )
        given = {at: answer if isinstance(answer, Answer) else Answer.value(answer) for at, answer in answers.items()}
        return {
            call.number: result_of(given[at]) if at in given else None if call.reply is None else call.reply.result
            for at, call in self.waiting.items()
        }


class MemoryEvents:
    """The events of one Repl in memory: what is run again to be looked at is written nowhere else."""

    suspended: AbstractSet[str] = frozenset()

    def __init__(self, events: list[list[Record]]) -> None:
        self.events = events

    def patiently(self, work: Callable[[], T], repl: Any = None, clock: RunClock | None = None) -> T:
        return work()

    def append(self, held: Held, seq: int, run: str, records: list[Record], tools: Collection[str] = ()) -> None:
        self.events.append(records)

    def awake(self, run: str) -> None:
        pass

    comes_further = awake

    def fall_asleep(self, held: Held, run: str, until: float, questions: int) -> float:
        return until

    def read(self, repl: str) -> list[list[Record]]:
        return self.events

    def take(self, repl: str) -> Held:
        return Held(repl=repl, fence=0)

    def release(self, held: Held) -> None:
        pass


class Walks(Generic[R]):
    """Walks through the recorded runs of a journal. `look` makes a Repl whose runs are kept nowhere, `make` another."""

    def __init__(self, recoveries: Recoveries[R], look: Callable[[str], R], make: Callable[[str], R]) -> None:
        self.recoveries = recoveries
        self._look = look
        self._make = make

    def view(self, run_id: str, until: int) -> RunView:
        """The run at its call number `until`."""
        if type(until) is not int or until < 1:
            raise UsageError(f"until must be the number of a call, 1 or more, not {until!r}")
        moment = self._moment(run_id, until)
        with self._walking(moment, {}) as (forward, link, execution, _):
            try:
                if (run := forward()) is not None:
                    raise Diverged(
                        f"run {run_id} ended before its call {until}: {run.error or 'its script has no more calls'}"
                    )
            except Diverged as problem:
                made = len(execution.record.entries)
                raise Diverged(f"{problem}; it can be followed up to call {made} of {moment.total}") from None
            return self._view(moment, link, execution)

    def go_on_dry(self, moment: Moment, decisions: Decisions) -> Run | RunView:
        """Run on with these answers, and recorded ones as far as there are any."""
        later = {key: [*replies] for key, replies in moment.later.items()}
        with self._walking(moment, decisions) as (forward, link, execution, events):
            while (run := forward()) is None:
                replies = _known(execution, later)
                if None in replies.values():
                    return self._view(_stopped(moment, later, execution, replies, events), link, execution)
                _give(execution, replies)
            return run

    def with_script(self, run_id: str, source: str) -> tuple[Run, tuple[str, ...]]:
        """Run another script in place of the recorded one: the Run, and in words how it differs from the record.

        Calls that the record does not answer fail.
        """
        if not isinstance(source, str):
            raise not_a_script(source)
        repl_id, before, recorded = find_recorded(self.recoveries.journal, run_id)
        later, new = _answers([*recorded.calls, *recorded.answers]), Counter[str]()
        begin: Record = replace(recorded.begin, source=source)
        moment = Moment(
            run_id=run_id, repl_id=repl_id, before=before, records=[begin], waiting={}, later={}, at=0, total=0
        )
        with self._walking(moment, {}) as (forward, _, execution, _):
            while (run := forward()) is None:
                replies = _known(execution, later)
                new.update(entry.tool for entry, reply in replies.items() if reply is None)
                _give(execution, replies)
        return run, tuple(_differences(run, recorded.end, new, later))

    @contextmanager
    def going_on(self, moment: Moment, decisions: Decisions) -> Iterator[Found[R]]:
        """The run, cut off at that moment in a new Repl of the journal; it goes on with these answers and then live."""
        journal, run_id, place = self.recoveries.journal, secrets.token_hex(8), len(moment.before)
        held = journal.copy(moment.repl_id, place)
        try:
            records = [replace(each, run=run_id) if isinstance(each, Begin) else each for each in moment.records]
            journal.append(held, place, run_id, records)
            with self.recoveries.going_on(held, run_id, decisions, self._make) as found:
                yield found
        except Diverged:  # so that nothing has happened
            journal.release(held)
            journal.delete([held.repl])
            raise

    @contextmanager
    def _walking(
        self, moment: Moment, decisions: Decisions
    ) -> Iterator[tuple[Callable[[], Run | None], Link, Execution, list[list[Record]]]]:
        """The run, begun again in a Repl that has what the runs before it have defined; no tool is called.

        The function goes on until it waits for calls that the record does not answer; it gives the Run where it ends
        before. The events are those of the Repl.
        """
        events = MemoryEvents([*moment.before, moment.records])
        journal = ReplJournal(events, events.take(moment.repl_id))
        *earlier, recorded = journal.recorded_runs()
        recorded.is_cut = True
        self.recoveries.check_language(moment.repl_id, journal.environment)
        repl = self._look(secrets.token_hex(6))
        try:
            repl.history.restore(journal, earlier)
            with repl.history.again(recorded, decisions) as (runner, link, execution):
                driver = runner.driver(link, execution)

                def forward() -> Run | None:
                    driver.advance()
                    return runner.finish(execution) if execution.over else None

                yield forward, link, execution, events.events
        finally:
            repl.close()

    def _view(self, moment: Moment, link: Link, execution: Execution) -> RunView:
        """What there is now."""
        record, entries = execution.record, execution.record.entries
        seen = inspect(link, execution, moment.waiting[moment.at].number)
        results = {}
        for at, call in moment.waiting.items():
            if call.reply is not None:
                entries[at - 1].recall(call.reply)
                results[at] = call.reply.result
        head = record.head()
        return RunView(
            run_id=moment.run_id,
            repl_id=moment.repl_id,
            source=head.source,
            language=head.language,
            at=moment.at,
            total=moment.total,
            frames=tuple(seen.frames),
            globals=seen.globals,
            output=record.output,
            calls=tuple(entry.to_call(results.get(entry.index)) for entry in entries),
            ends="" if moment.at in results else "the record has no answer to this call",
            _walks=self,
            _moment=moment,
        )

    def _moment(self, run_id: str, until: int) -> Moment:
        """When the run asks for its call number `until`."""
        repl_id, before, recorded = find_recorded(self.recoveries.journal, run_id)
        records = recorded.records
        additions = self.recoveries.settings.additions
        asked: list[tuple[int, int]] = []  # of each call: its place among the records, and the worker's number
        for place, record in enumerate(records):
            if isinstance(record, CallsAsked):
                asked += [(place, item[0]) for item in record.calls if not additions.is_question(item[1])]
        if until > len(asked):
            why = "" if recorded.end is not None else "; it was cut off, and its record ends there"
            raise UsageError(f"run {run_id!r} made {counted(len(asked), 'call')}{why}")
        cut = asked[until - 1][0] + 1
        answered = {reply.call for record in records[:cut] if isinstance(record, Answers) for reply in record.replies}
        replies = {
            reply.call: reply for record in records[cut:] if isinstance(record, Answers) for reply in record.replies
        }
        return Moment(
            run_id=run_id,
            repl_id=repl_id,
            before=before,
            records=records[:cut],
            waiting={
                at: Waiting(number, replies.get(number))
                for at, (place, number) in enumerate(asked, 1)
                if place < cut and number not in answered
            },
            later=_answers(records[cut:]),
            at=until,
            total=len(asked),
        )


def _stopped(
    moment: Moment,
    later: Known,
    execution: Execution,
    replies: Mapping[CallEntry, RecordedReply | None],
    events: list[list[Record]],
) -> Moment:
    """A fork that makes a call to which there is no recorded answer."""
    assert execution.record.journal is not None
    more = [record for event in events[len(moment.before) + 1 :] for record in event]
    return replace_fields(
        moment,
        records=[*moment.records, *more, *execution.record.journal.take()],
        waiting={entry.index: Waiting(entry.id, reply) for entry, reply in replies.items()},
        later=later,
        at=next(entry.index for entry, reply in replies.items() if reply is None),
        total=len(execution.record.entries),
    )


def _known(execution: Execution, later: Known) -> dict[CallEntry, RecordedReply | None]:
    """The recorded answers of the calls that the script waits for, which are taken from the later ones."""
    found = ((entry, later.get(_key(entry.target, entry.given))) for entry in execution.starting)
    return {entry: left.pop(0) if left else None for entry, left in found}


def _give(execution: Execution, replies: Mapping[CallEntry, RecordedReply | None]) -> None:
    """Answer the calls that the script waits for; those without an answer fail."""
    execution.starting.clear()
    for entry, reply in replies.items():
        if reply is not None:
            entry.recall(reply)
            execution.answer(entry, *reply.result)
        else:
            message = f"the record has no answer to this call of {entry.tool}"
            execution.answer(entry, "error", None, ToolError(message, code="not_recorded", tool=entry.tool))


def _differences(run: Run, end: End | None, new: Counter[str], left: Known) -> Iterator[str]:
    """How a run differs from the record: calls that the record does not have, and those that only the record has."""
    gone = Counter(reply.tool for replies in left.values() for reply in replies)
    said = [(f"it called {tool}, which is not in the record", count) for tool, count in new.items()]
    said += [(f"it did not call {tool} as recorded", count) for tool, count in gone.items()]
    yield from (line if count == 1 else f"{line} ({count} times)" for line, count in said)
    now = "ok" if run.error is None else run.error.kind
    if end is not None and end.outcome != now:
        yield f"recorded: {end.outcome}; now: {now}"


def _answers(records: Iterable[Record]) -> Known:
    """The recorded answers to calls that these records ask for."""
    asked: dict[int, bytes] = {}
    known: dict[bytes, list[RecordedReply]] = {}
    for record in records:
        if isinstance(record, CallsAsked):
            asked |= {number: _key(target, arguments) for number, target, arguments in record.calls}
        elif isinstance(record, Answers):
            for reply in record.replies:
                if reply.status and reply.call in asked:
                    known.setdefault(asked[reply.call], []).append(reply)
    return known


def _key(target: str, arguments: list[Any]) -> bytes:
    return msgpack.encode([target, arguments], order="deterministic")
