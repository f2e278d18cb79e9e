"""The calls of a run: taken from its worker's frames, spent from its budget, entered in the record, and answered.

A run waits without computing for a time, with `sleep`, or for a person.
"""

from __future__ import annotations

import marshal
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from math import isfinite
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from msgspec import Raw, Struct, msgpack

from moonbox.audit.records import CallStatus, Observation
from moonbox.errors import ArgumentError, ToolError
from moonbox.runs.call_entry import CallEntry
from moonbox.runs.docs import DISCOVERY_BUDGET
from moonbox.runs.environment import SHOW, SLEEP, SLEEP_UNTIL
from moonbox.tools.results import error_value
from moonbox.values import Packed, pack
from moonbox.worker import protocol

if TYPE_CHECKING:
    from moonbox.audit.telemetry import RunSpan, Telemetry
    from moonbox.runs.events import RecordedReply
    from moonbox.runs.record import RunRecord
    from moonbox.runs.recording import RunRecorder

_REMEMBERED_FAILURES = 32
_TOO_MUCH_DISCOVERY = "this run has asked docs too often; keep the answers in variables, or go on in the next run"
_MOST_SHOWN = 1_000
_TOO_MUCH_SHOWN = f"this run has called show {_MOST_SHOWN} times; put the values into a table and show that"
_MOST_OBSERVATIONS = 10_000  # a script may read the clock without end
_SLEEPS = (f"fn.{SLEEP.name}", f"fn.{SLEEP_UNTIL.name}")
_encode = msgpack.Encoder().encode
HELD = 60.0
"""Seconds for which a run with a journal holds its worker while it waits: with `sleep` in all, for a person each time.
A longer wait gives the worker back."""
_LEAST_WAIT = 1.0  # seconds: a shorter wait holds the worker in any case
_LONGEST_WAIT = 366 * 86_400.0
_MOST_WAITS = 10_000
_TOO_OFTEN = f"this run has called sleep {_MOST_WAITS:,} times; go on in the next run"
_HOW = "write: sleep(seconds), from 0 to 31,622,400 (a year)"
_HOW_UNTIL = 'write: sleep_until(time), in seconds like os.time(), or as text: "2027-01-31T08:00:00Z"'


class CallLedger:
    """The open calls of one run, what is left of its budget, and the answers that its worker has yet to get."""

    holds_answers = False
    """Answers are collected and not sent yet."""
    is_answered = False
    """The worker has got answers since it asked last: it may be computing."""
    has_waits = False
    """It has called `sleep`."""
    last_id = 0
    """The worker's number of the latest call."""
    _batches = _shown = 0
    _discovery = DISCOVERY_BUDGET

    def __init__(
        self,
        record: RunRecord,
        on_call: Callable[[CallEntry], None] | None = None,
        telemetry: Telemetry | None = None,
        span: RunSpan | None = None,
    ) -> None:
        self.starting: deque[CallEntry] = deque()
        """Calls to carry out, in order; the driver takes them."""
        self.open: dict[int, CallEntry] = {}
        """Calls without an answer, by the worker's numbers."""
        self.replies: list[tuple[int, bool, Packed]] = []
        """Answers that the worker has not got yet, in order."""
        self._record = record
        self._on_call = on_call
        self._telemetry = telemetry
        self._span = span
        self._budget = record.calls.limits.max_tool_calls
        self._answered: list[CallEntry] = []
        self._failed: list[CallEntry] = []

    @cached_property
    def waits(self) -> Waits:
        """The calls of `sleep` without an answer."""
        self.has_waits = True
        return Waits(self._record)

    @cached_property
    def _questions(self) -> dict[int, tuple[int, str, list[Any]]]:
        """Those of a replay without an answer."""
        return {}

    def take(self, items: list[tuple[int, str, list[Any]]], size: int) -> bool:
        """Enter the calls of a frame of that size; False where the budget does not allow them."""
        self.last_id, self.is_answered = items[-1][0], False
        journal = self._record.journal
        replayed = journal is not None and journal.called(items)
        calls = []
        for item in items:
            cost = 1 if item[1].startswith("tools.") else self._cost(item[1])
            if cost is not None:
                calls.append(item)
                if self._budget is not None:
                    self._budget -= cost
            elif replayed:
                self._questions[item[0]] = item
            else:
                self._answer_question(*item)
        if not calls:
            return True
        if self._budget is not None and self._budget < 0:
            return False
        self._batches += 1
        for call_id, target, arguments in calls:
            entry = self.add(call_id, target, arguments, batch=self._batches, size=size // len(items))
            if not replayed:
                self.starting.append(entry)
                if self._on_call is not None:
                    self._on_call(entry)
        return True

    def add(self, call_id: int, target: str, arguments: list[Any], *, batch: int, size: int) -> CallEntry:
        """Enter a call in the record before anything else happens to it."""
        entries = self._record.entries
        entry = CallEntry(
            call_id,
            target,
            arguments,
            index=len(entries) + 1,
            batch=batch,
            bytes_in=size,
            failures_before=len(self._failed),
            run_id=self._record.id,
        )
        entries.append(entry)
        self.open[call_id] = entry
        tool = self._record.calls.toolbox.by_name.get(entry.tool) if target.startswith("tools.") else None
        entry.only_computes = tool is not None and not tool.thread
        journal = self._record.journal
        if self._telemetry is not None and self._span is not None and (journal is None or not journal.replaying):
            calls = self._record.calls
            known = entry.tool in calls.toolbox or entry.tool in calls.additions.functions
            entry.span = self._telemetry.start_call(self._span, entry.index, entry.tool, known=known)
        return entry

    def answer(self, entry: CallEntry, status: CallStatus, packed: Packed | None, error: ToolError | None) -> None:
        """Take the result of a call. It is ignored where the call has been answered or cancelled before."""
        if self.open.pop(entry.id, None) is None:
            return
        if entry.on_answer is not None:
            entry.close(status, packed, error)
            entry.on_answer(error)
            return
        if entry.failures_before:
            self._find_retry(entry)
        entry.close(status, packed, error)
        if self._record.intents is not None:
            self._record.intents.answered(entry)
        self._answered.append(entry)
        if error is not None:
            self._failed.append(entry)
            self.replies.append((entry.id, False, pack(error_value(error, entry.tool))))
        elif packed is not None:
            self.replies.append((entry.id, True, packed))

    def cancel(self, entry: CallEntry) -> None:
        """The script no longer waits for this call."""
        if self.open.pop(entry.id, None) is not None:
            entry.close("cancelled")
            entry.leave()

    def cancel_starting(self) -> None:
        """Calls that have not begun are not made."""
        while self.starting:
            self.cancel(self.starting.popleft())

    def leave_all(self) -> None:
        """The run is over. A tool that has begun goes on and its call stays in flight; others do not begin."""
        if self.has_waits:
            for call in tuple(self.waits.open):
                self.waits.end(call)
        for entry in reversed(self.open.values()):  # the latest first: none gets a turn that an earlier one leaves
            entry.leave()

    def answers(self) -> bytes:
        """The frame with all answers that are ready; empty while there are none."""
        journal = self._record.journal
        data = b"" if journal is None or not journal.replaying else self._replay(journal)
        return data if self.holds_answers or not self.replies else data + self._pack_answers()

    def _pack_answers(self) -> bytes:
        replies, journal = self.replies, self._record.journal
        if journal is not None:
            journal.answered(replies, self._answered)
        if self._record.native:
            ready: list[tuple[int, bool, Raw]] = []
            for call, ok, packed in replies:
                ready.append((call, ok, Raw(packed.data)))
            payload = _encode(ready)
        else:
            payload = marshal.dumps([(call, ok, packed.value) for call, ok, packed in replies])
        frame, self.is_answered = protocol.HEADER.pack(protocol.ANSWERS, len(payload)) + payload, True
        share = len(frame) // len(replies)
        replies.clear()
        for entry in self._answered:
            entry.bytes_out = share
            if entry.span is not None:
                entry.span.end(entry.to_call())
            if self._on_call is not None and (journal is None or not journal.replaying):
                self._on_call(entry)
        self._answered.clear()
        return frame

    def _replay(self, journal: RunRecorder) -> bytes:
        """The next answers of the record, in the same frames as before. At its end, the calls without one are made."""
        frames = []
        while replies := journal.next_answers():
            for reply in replies:
                self._repeat(reply)
            if self.replies:
                frames.append(self._pack_answers())
        if journal.go_on():
            for item in self._questions.values():
                self._answer_question(*item)
            for entry in list(self.open.values()):
                result = journal.decisions.get(entry.id)
                if result is None:
                    self.starting.append(entry)
                    if self._on_call is not None:
                        self._on_call(entry)
                else:
                    self.answer(entry, *result)
        return b"".join(frames)

    def _repeat(self, reply: RecordedReply) -> None:
        entry = self.open.get(reply.call)
        if entry is None:
            packed = Packed(reply.data)
            target, arguments = self._questions.pop(reply.call)[1:]
            if target.startswith("sys."):
                self._observe(target, packed.value)
            elif target == "fn.show" and reply.ok:
                self._record.show(arguments)
            elif target in _SLEEPS and reply.ok:
                self.waits.repeat(target[3:], arguments)
            self.replies.append((reply.call, reply.ok, packed))
            return
        entry.recall(reply)
        self.answer(entry, *reply.result)

    def end_spans(self, state: str = "") -> None:
        """End the telemetry of calls that have none ended yet; `state` says why they go on elsewhere."""
        for entry in self._record.entries:
            if entry.span is not None:
                if state:
                    entry.span.leave(state)
                else:
                    entry.span.end(entry.to_call())

    def _cost(self, target: str) -> int | None:
        """What a call, not of a tool, is spent from the budget; None where it is a question."""
        additions = self._record.calls.additions
        if additions.is_question(target):
            return None
        function = additions.functions.get(target[3:]) if target.startswith("fn.") else None
        return 1 if function is None else int(function.counted)

    def _answer_question(self, call_id: int, target: str, arguments: list[Any]) -> None:
        record = self._record
        space, _, name = target.partition(".")
        try:
            answer: Any = None
            if space == "sys":
                answer = int(time()) if name == "time" else round(record.clock.elapsed(), 6)
                self._observe(target, answer)
            elif space == "docs":
                self._discovery -= record.calls.docs.cost(name)
                if self._discovery < 0:
                    raise ToolError(_TOO_MUCH_DISCOVERY, code="limit_docs")
                answer = record.calls.docs.answer(name, arguments)
            elif name == SHOW.name:
                self._shown += 1
                if self._shown > _MOST_SHOWN:
                    raise ToolError(_TOO_MUCH_SHOWN, code="limit_show")
                record.show(arguments)
            elif name in (SLEEP.name, SLEEP_UNTIL.name):
                if not self.waits.begin(call_id, name, arguments):
                    return
            else:
                record.advance(arguments)
            self.replies.append((call_id, True, pack(answer)))
        except ToolError as error:
            self.replies.append((call_id, False, pack(error_value(error, None))))

    def wake(self, now: float) -> None:
        """Answer the calls of `sleep` whose time is over."""
        if self.has_waits:
            self.replies += [(call, True, pack(None)) for call in self.waits.due(now)]

    def _observe(self, target: str, value: Any) -> None:
        observations = self._record.observations
        if len(observations) < _MOST_OBSERVATIONS:
            observations.append(Observation(f"os.{target[4:]}", value))

    def _find_retry(self, entry: CallEntry) -> None:
        """Note the latest call with the same tool and arguments that had failed before this one came."""
        latest = self._failed[: entry.failures_before][-_REMEMBERED_FAILURES:]
        for earlier in reversed(latest):
            if earlier.tool == entry.tool and earlier.arguments == entry.arguments:
                entry.retry_of = earlier.index
                return


class Wait(Struct):
    """One call of `sleep` that has no answer yet."""

    began: float
    """On the monotonic clock."""
    due: float
    pauses: bool
    """The run's clock stands still for it."""
    gives_up: bool
    """It is long enough to give the worker back."""


class Waits:
    """The waits of one run."""

    def __init__(self, record: RunRecord) -> None:
        self.open: dict[int, Wait] = {}
        """By the worker's numbers of the calls."""
        self._record = record
        self._held = 0.0  # seconds of waits that held the worker
        self._count = 0

    def begin(self, call: int, name: str, arguments: Sequence[Any]) -> bool:
        """Enter a call of `sleep` or `sleep_until`. Whether its time is over; ToolError where it cannot wait."""
        journal, clock = self._record.journal, self._record.clock
        self._count += 1
        if self._count > _MOST_WAITS:
            raise ToolError(_TOO_OFTEN, code="limit_sleep")
        now = time()
        until = wake_time(name, arguments, now)
        if journal is not None:
            until = journal.slept(call, until)
        seconds, began = until - now, monotonic()
        if seconds <= 0:
            return True
        if journal is None:
            left = clock.left()
            if left is not None and seconds >= left:
                raise ToolError(
                    f"the script would wait {seconds:,.1f} seconds and has {left:,.1f} left: without a journal, "
                    "waiting counts towards the timeout of the run; wait less, or look again in a later run",
                    code="limit_sleep",
                )
            self.open[call] = Wait(began, began + seconds, pauses=False, gives_up=False)
            return False
        holds = self._held + seconds <= HELD
        if holds:
            self._held += seconds
            clock.pause()
        self.open[call] = Wait(began, began + seconds, pauses=holds, gives_up=not holds and seconds >= _LEAST_WAIT)
        return False

    def repeat(self, name: str, arguments: Sequence[Any]) -> None:
        """A recorded wait is over: it counts as before."""
        self._count += 1
        seconds = arguments[0] if name == "sleep" else 0.0
        if self._held + seconds <= HELD:
            self._held += seconds

    def due(self, now: float) -> list[int]:
        """The calls whose time is over; they wait no more."""
        over = [call for call, wait in self.open.items() if now >= wait.due]
        for call in over:
            self.end(call)
        return over

    def end(self, call: int) -> None:
        """The script no longer waits in this call."""
        wait = self.open.pop(call, None)
        if wait is not None and wait.pauses:
            self._record.clock.go_on()

    def nearest(self) -> float | None:
        """When the first is over, on the monotonic clock."""
        return min((wait.due for wait in self.open.values()), default=None)

    def leaves_at(self, entries: Iterable[CallEntry]) -> float | None:
        """When the run, which waits for these calls too, may give its worker back; None while it must hold it."""
        moments = [wait.began if wait.gives_up else wait.due for wait in self.open.values()]
        for entry in entries:
            if entry.asked is None:
                return None
            moments.append(entry.asked + HELD)
        return max(moments, default=None)


def wake_time(name: str, arguments: Sequence[Any], now: float) -> float:
    """When the call of that function is to be answered, in seconds of the epoch; ArgumentError for wrong arguments."""
    how = _HOW if name == "sleep" else _HOW_UNTIL
    given = arguments[0] if len(arguments) == 1 else None
    if name == "sleep_until" and isinstance(given, str):
        try:
            moment = datetime.fromisoformat(given)
        except ValueError:
            raise ArgumentError(how, code="invalid") from None
        given = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    if isinstance(given, bool) or not isinstance(given, int | float) or not isfinite(given):
        raise ArgumentError(how, code="invalid")
    seconds = float(given) if name == "sleep" else given - now
    if seconds > _LONGEST_WAIT or (seconds < 0 and name == "sleep"):
        raise ArgumentError(how, code="invalid")
    return now + max(0.0, seconds)
