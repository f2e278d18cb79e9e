"""Execution: one run as a state machine without I/O. Events go in, what to do next comes out.

    in    frame      a frame from the worker
          answer     the result of a call
          tick       the time
          stop       the run must end, for a reason
          lose       the worker is gone
    out   outgoing   bytes to send to the worker
          interrupting   the reason to interrupt the worker for
          starting   calls to carry out
          deadline   when `tick` is due
          over       whether the run has ended; then `finish` makes its record

It is not thread-safe: one thread at a time drives a run. A WorkerError means that the worker broke the rules and must
go; its driver then kills it and calls `lose`.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections import deque
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from moonbox.audit.records import Observation
from moonbox.errors import ScriptError, ToolError, WorkerError
from moonbox.languages.registry import EngineError
from moonbox.sandbox.docs import DISCOVERY_BUDGET
from moonbox.sandbox.messages import read_calls, read_cancelled, read_done, read_value
from moonbox.sandbox.record import CallEntry, RunRecord
from moonbox.tools.results import error_value
from moonbox.worker import protocol
from moonbox.worker.encoding import Decoder, message_pack, packed
from moonbox.worker.link import Gone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from moonbox.audit.records import CallStatus, Run
    from moonbox.audit.telemetry import RunSpan, Telemetry
    from moonbox.sandbox.intents import Intents
    from moonbox.sandbox.opening import Opening

__all__ = ["GRACE", "Execution"]

GRACE = 1.0
"""Seconds that a worker has to stop by itself before it is killed."""
PATIENCE = 5.0
"""The same where the machine is so busy that the worker hardly got to run in them."""
_ENOUGH_TO_STOP = 0.1  # seconds of processor time: many times what a worker needs
_MEMORIES, _SLACK = 4, 1 << 20  # a worker may send so many times max_memory, and a little more
_REMEMBERED_FAILURES = 32
_TOO_MUCH_DISCOVERY = "this run has asked docs too often; keep the answers in variables, or go on in the next run"
_MOST_OBSERVATIONS = 10_000  # a script may read the clock without end
_REASONS = {protocol.REASON_TIME: "time", protocol.REASON_CANCELLED: "cancelled", protocol.REASON_CALLS: "calls"}


class Execution(RunRecord):
    """One run: its budget, its record, the checks of what its worker sends, its deadlines and its end."""

    __slots__ = (
        "_answered", "_batches", "_budget", "_decode", "_discovery", "_error", "_failed", "_last_id",
        "_last_patience", "_on_call", "_open", "_replies", "_sources", "_span", "_spent_before_stop", "_stop_until",
        "_telemetry", "_text_of", "_unsent", "calls_expected", "holding_answers", "interrupted",
        "interrupting", "over", "renewable", "starting", "stopping",
    )  # fmt: skip

    def __init__(
        self,
        opening: Opening,
        *,
        language: str,
        sources: Iterable[tuple[int, str]] = (),
        on_call: Callable[[CallEntry], None] | None = None,
        on_output: Callable[[str], None] | None = None,
        telemetry: Telemetry | None = None,
        intents: Intents | None = None,
    ) -> None:
        RunRecord.__init__(self, opening, language, on_output)
        calls = opening.calls
        self.starting: deque[CallEntry] = deque()
        """Calls to carry out, in order; the driver takes them."""
        self.interrupting = 0
        """The worker must be interrupted for this reason; the driver sets it back to 0."""
        self.stopping = 0
        """Why the run is being stopped; 0 while it is not."""
        self.intents = intents
        self.over = False
        self.renewable = False
        """All that the run did in its worker can be undone."""
        self.calls_expected = False
        """A guess: the script will make calls."""
        self.holding_answers = False
        """Answers are collected and not sent yet."""
        self.interrupted = False
        """Whoever waited for the run has given up."""
        self._sources = sources
        self._on_call = on_call
        self._text_of = None if on_output is None else getincrementaldecoder("utf-8")("replace").decode
        self._budget = calls.limits.max_tool_calls
        self._decode = Decoder(calls.most_elements, calls.limits.max_depth, calls.allow_nan).decode
        self._stop_until = 0.0
        self._last_patience = self._spent_before_stop = 0.0
        self._unsent = b""
        self._replies: list[tuple[int, bool, Any]] = []
        self._answered: list[CallEntry] = []
        self._open: dict[int, CallEntry] = {}
        self._failed: list[CallEntry] = []
        self._batches = self._last_id = 0
        self._discovery = DISCOVERY_BUDGET
        self._error: ScriptError | None = None
        self._telemetry = telemetry
        self._span: RunSpan | None = None
        if telemetry is not None:
            self._span = telemetry.start_run(opening.id, language, opening.repl_id)

    @property
    def streams(self) -> bool:
        """Whether somebody reads its output while it runs."""
        return self._on_output is not None

    @property
    def waits_for_one(self) -> bool:
        """Whether one call, which has not begun, is all that the script waits for."""
        return len(self._open) == 1 == len(self.starting)

    # What goes in

    def begin(self, data: bytes, *, native: bool = False, sent: bool = False) -> None:
        """Ask the worker to run the program, with these frames, which may have been sent already."""
        self._native = native
        if sent:
            self._sent = len(data)
        else:
            self._unsent = data

    def refuse(self, error: EngineError | ScriptError) -> None:
        """The script cannot be run; the worker hears nothing of it."""
        self._error = error if isinstance(error, ScriptError) else self._explain(error)
        self.over = True

    def frame(self, kind: int, payload: bytes) -> None:
        """Take a frame from the worker."""
        self._received += len(payload) + protocol.HEADER.size
        if self._received > self._limits.max_memory * _MEMORIES + _SLACK:
            raise WorkerError(f"the worker sent more than {_MEMORIES} times max_memory in one run")
        if kind == protocol.VALUE or kind == protocol.RENEWABLE:
            self._report = read_value(payload, self._decode)
            self.over = True
            self.renewable = kind == protocol.RENEWABLE
        elif kind == protocol.CALLS:
            self._take_calls(payload)
        elif kind == protocol.OUTPUT:
            self._printed += len(payload)
            if not payload or self._printed > self._limits.max_output:
                raise WorkerError("the worker sent more output than max_output allows, or none")
            self._output.append(payload)
            if self._on_output is not None and self._text_of is not None and (text := self._text_of(payload)):
                self._on_output(text)
        elif kind == protocol.KEPT:
            if payload not in (b"\1", b"\2", b"\3"):
                raise WorkerError("the worker kept something that a run does not have")
            self._kept = payload[0]
        elif kind == protocol.CANCEL:
            for call in read_cancelled(payload, self._decode):
                if call in self._open:
                    self.cancel(self._open[call])
        elif kind == protocol.DONE:
            self._report = read_done(payload, self._decode)
            self.over = True
        else:
            raise WorkerError(f"the worker sent a frame of unknown type {kind}")

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

    def tick(self, now: float) -> None:
        """Do what is due: the run's timeout, the timeouts of its calls, the end of a worker that does not stop."""
        if self.stopping:
            if now >= self._stop_until:
                if now >= self._last_patience or self._had_its_chance():
                    raise WorkerError("it did not stop")
                self._stop_until = min(now + GRACE / 4, self._last_patience)
            return
        if self.clock.is_late(now):
            self.stop(protocol.REASON_TIME, now)
            return
        for entry in list(self._open.values()):
            if entry.deadline is not None and now >= entry.deadline:
                message = entry.obstacle or f"{entry.tool} did not answer within its timeout"
                code = "busy" if entry.obstacle else "timeout"
                error = ToolError(message, code=code, retryable=True, tool=entry.tool)
                self.answer(entry, "timeout", None, error)
                entry.leave()

    def stop(self, reason: int, now: float) -> None:
        """End the run: the script has a moment to stop by itself, and gets no more answers."""
        if not self.stopping and not self.over:
            self.stopping = self.interrupting = reason
            self._stop_until, self._last_patience = now + GRACE, now + PATIENCE
            self._spent_before_stop = self.clock.worker_time() or 0.0
            self._unsent += protocol.frame(protocol.HALT, bytes((reason,)))

    def lose(self, problem: WorkerError, status: str = "", *, closed: bool = False) -> None:
        """The worker is gone: by itself, or ended for what it did. `closed` says that we hung up on it before."""
        self.over = self.worker_lost = True
        reason = self.stopping or (protocol.REASON_CANCELLED if closed else 0)
        if reason:
            self._error = self._explain(EngineError("stop", limit=_REASONS[reason]))
            return
        by_itself = isinstance(problem, Gone)
        how = f"ended unexpectedly ({status or problem})" if by_itself else f"had to be ended ({problem})"
        self._error = ScriptError("crashed", f"the worker process {how}; what the scripts had defined is lost")

    # What comes out

    def outgoing(self) -> bytes:
        """The bytes to send now; answers that are ready go together in one frame."""
        if self._replies and not self.holding_answers and not self.stopping:
            self._pack_answers()
        data = self._unsent
        if data:
            self._unsent = b""
            self._sent += len(data)
        return data

    def deadline(self) -> float | None:
        """When something is due next, on the monotonic clock."""
        if self.stopping:
            return self._stop_until
        nearest = self.clock.deadline
        if not self._open:
            return nearest
        for entry in self._open.values():
            if entry.deadline is not None and (nearest is None or entry.deadline < nearest):
                nearest = entry.deadline
        return nearest

    def add_call(self, call_id: int, target: str, arguments: list[Any], *, batch: int, size: int) -> CallEntry:
        """Enter a call in the record before anything else happens to it."""
        index = len(self._entries) + 1
        entry = CallEntry(call_id, target, arguments, index=index, batch=batch, size=size)
        entry.failures_before = len(self._failed)
        self._entries.append(entry)
        self._open[call_id] = entry
        if self._telemetry is not None and self._span is not None:
            known = entry.tool in self.calls.toolbox or entry.tool in self.calls.functions
            entry.span = self._telemetry.start_call(self._span, index, entry.tool, known=known)
        return entry

    def leave_calls(self) -> None:
        """What has begun goes on without us and stays in flight; what has not does not begin."""
        for entry in self._open.values():
            entry.leave()

    def finish(self) -> Run:
        """The record of the run, which is over."""
        if self._open:
            self.leave_calls()
        report, error = self._report, self._error
        if self.interrupted:
            error = self._explain(EngineError("stop", limit="cancelled"))
        elif report is not None and report.kind != "ok":
            error = self._explain(
                EngineError.from_report(
                    report.kind, report.message, limit=report.limit, frames=report.frames, extra=report.extra
                )
            )
        return self.conclude(tuple(report.values) if report is not None and error is None else (), error)

    def conclude(self, values: tuple[Any, ...], error: ScriptError | None) -> Run:
        """The record of the run, which is over, with these values or this error."""
        run = self.record(values, error)
        if self._span is not None:
            self._end_spans(run, self._span)
        return run

    # Calls

    def _take_calls(self, payload: bytes) -> None:
        items = read_calls(payload, self._decode, self._last_id)
        self._last_id = items[-1][0]
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
            entry = self.add_call(call_id, target, arguments, batch=self._batches, size=share)
            if self.stopping:  # a call that comes now is not made
                self.cancel(entry)
                continue
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
        replies, self._replies = self._replies, []
        answered, self._answered = self._answered, []
        if self._native:
            frame = protocol.frame(protocol.ANSWERS, message_pack(replies))
        else:
            frame = protocol.pack(protocol.ANSWERS, [(call, ok, packed(value)) for call, ok, value in replies])
        self._unsent += frame
        share = len(frame) // len(replies)
        for entry in answered:
            entry.bytes_out = share
            if entry.span is not None:
                entry.span.end(entry.to_call())
            if self._on_call is not None:
                self._on_call(entry)

    def _find_retry(self, entry: CallEntry) -> None:
        """Note the latest call with the same tool and arguments that had failed before this one came."""
        latest = self._failed[: entry.failures_before][-_REMEMBERED_FAILURES:]
        for earlier in reversed(latest):
            if earlier.tool == entry.tool and earlier.arguments == entry.arguments:
                entry.retry_of = earlier.index
                return

    def _had_its_chance(self) -> bool:
        """Whether the worker has run long enough to stop, as far as the kernel tells it."""
        spent = self.clock.worker_time()
        return spent is None or spent - self._spent_before_stop >= _ENOUGH_TO_STOP

    # The end

    def _explain(self, error: EngineError) -> ScriptError:
        calls = self.calls
        sources = {protocol.chunk_name(number): source for number, source in self._sources}
        return calls.language.explain(error, sources=sources, tools=calls.toolbox.paths(), limits=self._limits)

    def _end_spans(self, run: Run, span: RunSpan) -> None:
        for entry, call in zip(self._entries, run.calls, strict=True):
            if entry.span is not None:
                entry.span.end(call)
        span.end(run)
