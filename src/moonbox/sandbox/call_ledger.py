"""The calls of a run: taken from its worker's frames, spent from its budget, entered in the record, and answered.

A call that is all that its frame holds, and all that the script waits for, goes in and out by a shorter way: see
`take_lone_call` and `answer_lone_call`.
"""

from __future__ import annotations

from collections import deque
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from moonbox.audit.records import Observation
from moonbox.errors import ToolError
from moonbox.sandbox.docs import DISCOVERY_BUDGET
from moonbox.sandbox.messages import LARGEST_COUNT, LONGEST_NAME, read_calls
from moonbox.sandbox.record import CallEntry, RunRecord
from moonbox.tools.results import error_value
from moonbox.worker import protocol
from moonbox.worker.encoding import message_pack, packed

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.audit.records import CallStatus
    from moonbox.audit.telemetry import RunSpan, Telemetry
    from moonbox.sandbox.intents import Intents
    from moonbox.sandbox.opening import Opening

__all__ = ["MEMORIES", "SLACK", "CallLedger"]

MEMORIES, SLACK = 4, 1 << 20
"""A worker may send so many times max_memory in one run, and a little more."""
_REMEMBERED_FAILURES = 32
_TOO_MUCH_DISCOVERY = "this run has asked docs too often; keep the answers in variables, or go on in the next run"
_MOST_OBSERVATIONS = 10_000  # a script may read the clock without end
_HEADER = protocol.HEADER.size


class CallLedger(RunRecord):
    """What is known of a run's calls while it happens, and what its worker has yet to be told of them."""

    __slots__ = (
        "_answered", "_batches", "_budget", "_decoder", "_discovery", "_failed", "_last_id", "_most_received",
        "_on_call", "_open", "_replies", "_span", "_telemetry", "_unsent", "holding_answers", "starting", "stopping",
    )  # fmt: skip

    def __init__(
        self,
        opening: Opening,
        language: str,
        on_output: Callable[[str], None] | None,
        on_call: Callable[[CallEntry], None] | None,
        telemetry: Telemetry | None,
        intents: Intents | None,
    ) -> None:
        RunRecord.__init__(self, opening, language, on_output)
        calls = opening.calls
        self.intents = intents
        self.starting: deque[CallEntry] = deque()
        """Calls to carry out, in order; the driver takes them."""
        self.stopping = 0
        """Why the run is being stopped; 0 while it is not."""
        self.holding_answers = False
        """Answers are collected and not sent yet."""
        self._on_call = on_call
        self._budget = calls.limits.max_tool_calls
        self._decoder = calls.bounds.first_decoder.for_another_run()
        self._most_received = calls.limits.max_memory * MEMORIES + SLACK
        self._unsent = b""
        self._replies: list[tuple[int, bool, Any]] = []
        self._answered: list[CallEntry] = []
        self._open: dict[int, CallEntry] = {}
        self._failed: list[CallEntry] = []
        self._batches = self._last_id = 0
        self._discovery = DISCOVERY_BUDGET
        self._telemetry = telemetry
        self._span: RunSpan | None = None
        if telemetry is not None:
            self._span = telemetry.start_run(opening.id, language, opening.repl_id)

    def stop(self, reason: int, now: float) -> None:
        """End the run: the script has a moment to stop by itself, and gets no more answers."""
        raise NotImplementedError

    # One call at a time

    def has_unwatched_calls(self) -> bool:
        """Whether nobody but the record is told of its calls, and their answers go out as they come."""
        return self._telemetry is None and self._on_call is None and self.intents is None and not self.holding_answers

    def take_lone_call(self, kind: int, payload: bytes) -> CallEntry | None:
        """The call of a tool, where a frame has that and nothing else is open; the caller carries it out at once.

        None where there is more to be done about the frame: then nothing was taken of it, and `frame` is to have it.
        """
        received, budget = self._received + len(payload) + _HEADER, self._budget
        if kind != protocol.CALLS or self.stopping or self._open or budget == 0 or received > self._most_received:
            return None
        call = self._decoder.lone_call(payload, self._last_id, LARGEST_COUNT, LONGEST_NAME)
        if call is None:
            return None
        self._received = received
        if budget is not None:
            self._budget = budget - 1
        _, call_id, target, arguments = call
        self._last_id = call_id
        self._batches = batch = self._batches + 1
        entries = self._entries
        entry = CallEntry.enter(call_id, target, arguments, len(entries) + 1, batch, len(payload), len(self._failed))
        entries.append(entry)
        self._open[call_id] = entry
        return entry

    def answer_lone_call(self, entry: CallEntry, status: CallStatus, result: Any, error: ToolError | None) -> bytes:
        """Take its result; the bytes to send now."""
        if error is not None or entry.failures_before or not self._native or self._unsent or self._replies:
            self.answer(entry, status, result, error)
            return self.outgoing()
        if self._open.pop(entry.id, None) is None:
            return b""
        entry.status, entry.result = status, result
        data = message_pack(((entry.id, True, result),))
        data = protocol.HEADER.pack(protocol.ANSWERS, len(data)) + data
        entry.bytes_out = size = len(data)
        self._sent += size
        return data

    # Calls and answers

    def take_calls(self, payload: bytes) -> None:
        """Enter the calls of a frame; those that are to be carried out are in `starting`."""
        items = read_calls(payload, self._decoder.decode, self._last_id)
        call_id, target, arguments = items[-1]
        self._last_id = call_id
        if len(items) == 1 and target[:6] == "tools.":  # as most are
            if self._budget is not None:
                self._budget -= 1
                if self._budget < 0:
                    self.stop(protocol.REASON_CALLS, monotonic())
                    return
            self._batches += 1
            self._start_call(call_id, target, arguments, len(payload))
            return
        calls = []
        for item in items:
            if item[1][:6] != "tools.":
                space, _, name = item[1].partition(".")
                if space in ("sys", "docs"):
                    self._answer_question(item[0], space, name, item[2])
                    continue
            calls.append(item)
        if not calls:
            return
        if self._budget is not None:
            self._budget -= (
                sum([self._counts(target) for _, target, _ in calls]) if self.calls.functions else len(calls)
            )
            if self._budget < 0:
                self.stop(protocol.REASON_CALLS, monotonic())
                return
        self._batches += 1
        share = len(payload) // len(items)
        for call_id, target, arguments in calls:
            self._start_call(call_id, target, arguments, share)

    def _start_call(self, call_id: int, target: str, arguments: list[Any], size: int) -> None:
        entry = self.add_call(call_id, target, arguments, batch=self._batches, size=size)
        if self.stopping:  # a call that comes now is not made
            self.cancel(entry)
            return
        self.starting.append(entry)
        if self._on_call is not None:
            self._on_call(entry)

    def _answer_question(self, call_id: int, space: str, name: str, arguments: list[Any]) -> None:
        """About the clock or the documentation: answered at once, not counted, no call in the record."""
        if space == "sys":
            value: Any = int(time()) if name == "time" else round(self.clock.elapsed(), 6)
            if len(self._observations) < _MOST_OBSERVATIONS:
                self._observations.append(Observation(f"os.{name}", value))
            self._replies.append((call_id, True, value))
            return
        try:
            self._discovery -= self.calls.docs.cost(name)
            if self._discovery < 0:
                raise ToolError(_TOO_MUCH_DISCOVERY, code="limit_docs")
            self._replies.append((call_id, True, self.calls.docs.answer(name, arguments)))
        except ToolError as error:
            self._replies.append((call_id, False, error_value(error, None)))

    def _counts(self, target: str) -> bool:
        """Whether a call is spent from the budget."""
        function = self.calls.functions.get(target[3:]) if target.startswith("fn.") else None
        return function is None or function.counted

    def _pack_answers(self) -> None:
        replies, answered, on_call = self._replies, self._answered, self._on_call
        if self._native:
            frame = protocol.frame(protocol.ANSWERS, message_pack(replies))
        else:
            frame = protocol.pack(protocol.ANSWERS, [(call, ok, packed(value)) for call, ok, value in replies])
        self._unsent += frame
        share = len(frame) // len(replies)
        replies.clear()
        for entry in answered:
            entry.bytes_out = share
            if entry.span is not None:
                entry.span.end(entry.to_call())
            if on_call is not None:
                on_call(entry)
        answered.clear()

    def _find_retry(self, entry: CallEntry) -> None:
        """Note the latest call with the same tool and arguments that had failed before this one came."""
        latest = self._failed[: entry.failures_before][-_REMEMBERED_FAILURES:]
        for earlier in reversed(latest):
            if earlier.tool == entry.tool and earlier.arguments == entry.arguments:
                entry.retry_of = earlier.index
                return

    def answer(self, entry: CallEntry, status: CallStatus, result: Any, error: ToolError | None) -> None:
        """Take the result of a call. One that nobody waits for any more is ignored."""
        if self._open.pop(entry.id, None) is None:
            return
        if entry.failures_before:
            self._find_retry(entry)
        entry.close(status, result, error)
        if self.intents is not None:
            self.intents.answered(entry)
        self._answered.append(entry)
        if error is None:
            self._replies.append((entry.id, True, result))
        else:
            self._failed.append(entry)
            self._replies.append((entry.id, False, error_value(error, entry.tool)))

    def cancel(self, entry: CallEntry) -> None:
        """The script no longer waits for this call."""
        if self._open.pop(entry.id, None) is not None:
            entry.close("cancelled")
            entry.leave()

    def outgoing(self) -> bytes:
        """The bytes to send now; answers that are ready go together in one frame."""
        if self._replies and not self.holding_answers and not self.stopping:
            self._pack_answers()
        data = self._unsent
        if data:
            self._unsent = b""
            self._sent += len(data)
        return data

    def add_call(self, call_id: int, target: str, arguments: list[Any], *, batch: int, size: int) -> CallEntry:
        """Enter a call in the record before anything else happens to it."""
        entries = self._entries
        index = len(entries) + 1
        entry = CallEntry.enter(call_id, target, arguments, index, batch, size, len(self._failed))
        entries.append(entry)
        self._open[call_id] = entry
        if self._telemetry is not None and self._span is not None:
            known = entry.tool in self.calls.toolbox or entry.tool in self.calls.functions
            entry.span = self._telemetry.start_call(self._span, index, entry.tool, known=known)
        return entry

    def leave_calls(self) -> None:
        """What has begun goes on without us and stays in flight; what has not does not begin."""
        for entry in self._open.values():
            entry.leave()
