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
from typing import TYPE_CHECKING, Any

from moonbox.errors import ScriptError, ToolError, WorkerError
from moonbox.frozen import NATIVE
from moonbox.languages.registry import EngineError
from moonbox.sandbox.call_ledger import MEMORIES, SLACK, CallLedger
from moonbox.sandbox.docs import DISCOVERY_BUDGET
from moonbox.sandbox.messages import LARGEST_COUNT, make_report, read_cancelled, read_done, value_of
from moonbox.sandbox.record import RunClock
from moonbox.worker import protocol
from moonbox.worker.link import Gone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from moonbox.audit.records import Run
    from moonbox.audit.telemetry import RunSpan, Telemetry
    from moonbox.sandbox.intents import Intents
    from moonbox.sandbox.opening import Opening
    from moonbox.sandbox.record import CallEntry
    from moonbox.worker.link import Link

__all__ = ["GRACE", "Execution"]

GRACE = 1.0
"""Seconds that a worker has to stop by itself before it is killed."""
PATIENCE = 5.0
"""The same where the machine is so busy that the worker hardly got to run in them."""
_ENOUGH_TO_STOP = 0.5  # seconds of processor time; most need far less, but nothing interrupts a function of Lua's own
_REASONS = {protocol.REASON_TIME: "time", protocol.REASON_CANCELLED: "cancelled", protocol.REASON_CALLS: "calls"}


class Execution(CallLedger):
    """One run: its budget, its record, the checks of what its worker sends, its deadlines and its end."""

    __slots__ = (
        "_error", "_last_patience", "_sources", "_spent_before_stop", "_stop_until", "_text_of", "calls_expected",
        "interrupted", "interrupting", "over",
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
        CallLedger.__init__(self, opening, language, on_output, on_call, telemetry, intents)
        self.interrupting = 0
        """The worker must be interrupted for this reason; the driver sets it back to 0."""
        self.over = False
        self.calls_expected = False
        """A guess: the script will make calls."""
        self.interrupted = False
        """Whoever waited for the run has given up."""
        self._sources = sources
        self._text_of = None if on_output is None else getincrementaldecoder("utf-8")("replace").decode
        self._stop_until = 0.0
        self._last_patience = self._spent_before_stop = 0.0
        self._error: ScriptError | None = None

    @staticmethod
    def of(opening: Opening, link: Link, sources: Iterable[tuple[int, str]], calls_expected: bool) -> Execution:
        """One that begins, of which nobody is told on the way; made quickly where the native parts are in use."""
        calls, data, sent = opening.calls, opening.data, opening.sent
        if _make is None:
            execution = Execution(opening, language=calls.language.name, sources=sources)
            execution.clock.worker = link
            execution.calls_expected = calls_expected
            execution.begin(data, native=link.native, sent=sent)
            return execution
        limits = calls.limits
        clock = RunClock.of(limits.timeout, link, opening.began)
        return _make(  # type: ignore[no-any-return]
            calls, clock, opening.id, opening.number, opening.repl_id, opening.source, opening.notes, opening.started,
            opening.seed, opening.lost_before, limits, calls.language.name, sources, calls_expected, link.native,
            calls.bounds.first_decoder.for_another_run(), limits.max_tool_calls, limits.max_memory * MEMORIES + SLACK,
            len(data) if sent else 0, b"" if sent else data, deque(), {}, [], [], [], [], [], [], [],
        )  # fmt: skip

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
        if self._received > self._most_received:
            raise WorkerError(f"the worker sent more than {MEMORIES} times max_memory in one run")
        if kind in protocol.ENDS_WELL:
            decoder = self._decoder
            self._report = make_report(*(decoder.lone_end(payload, LARGEST_COUNT) or value_of(payload, decoder.decode)))
            self.over = True
            if kind == protocol.VALUE_KEPT:
                self._kept = 1
        elif kind == protocol.CALLS:
            self.take_calls(payload)
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
            for call in read_cancelled(payload, self._decoder.decode):
                if call in self._open:
                    self.cancel(self._open[call])
        elif kind == protocol.DONE:
            self._report = read_done(payload, self._decoder.decode)
            self.over = True
        else:
            raise WorkerError(f"the worker sent a frame of unknown type {kind}")

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
        values = tuple(report.values) if report is not None and error is None else ()
        return self.record(values, error) if self._span is None else self.conclude(values, error)

    def conclude(self, values: tuple[Any, ...], error: ScriptError | None) -> Run:
        """The record of the run, which is over, with these values or this error."""
        run = self.record(values, error)
        if self._span is not None:
            self._end_spans(run, self._span)
        return run

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


# The slots in the order in which `Execution.of` gives them, and those that are the same at every beginning.
_GIVEN = (
    "calls", "clock", "id", "number", "repl_id", "source", "notes", "_started",
    "_seed", "_lost_before", "_limits", "_language", "_sources", "calls_expected", "_native",
    "_decoder", "_budget", "_most_received",
    "_sent", "_unsent", "starting", "_open", "_entries", "_output", "_shown", "_observations", "_replies", "_answered",
    "_failed",
)  # fmt: skip
_SAME: dict[str, Any] = {
    **dict.fromkeys(("intents", "_on_output", "_on_call", "_telemetry", "_span", "_text_of", "_report", "_error")),
    **dict.fromkeys(("worker_lost", "holding_answers", "over", "interrupted"), False),
    **dict.fromkeys(("_shown_bytes", "_printed", "_received", "_kept", "_batches", "_last_id"), 0),
    **dict.fromkeys(("stopping", "interrupting"), 0),
    **dict.fromkeys(("_stop_until", "_last_patience", "_spent_before_stop"), 0.0),
    "_discovery": DISCOVERY_BUDGET,
}
_make: Any = None
if NATIVE is not None:
    _make = NATIVE.maker(Execution, (*_GIVEN, *_SAME), Execution, tuple(_SAME.values()))
