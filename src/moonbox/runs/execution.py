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
be ended; the driver then kills it and calls `lose`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic
from typing import TYPE_CHECKING

from moonbox.errors import ScriptError, ToolError, WorkerError
from moonbox.languages.registry import EngineError
from moonbox.runs.call_entry import CallEntry
from moonbox.runs.call_ledger import CallLedger
from moonbox.worker import protocol
from moonbox.worker.encoding import Decoder, read_calls, read_cancelled, read_done, read_value
from moonbox.worker.link import Gone, Link

if TYPE_CHECKING:
    from moonbox.audit.records import Run
    from moonbox.audit.telemetry import Telemetry
    from moonbox.runs.decisions import ToolCall
    from moonbox.runs.options import RunOptions
    from moonbox.runs.record import RunRecord

GRACE = 1.0
"""Seconds that a worker has to stop by itself before it is killed."""
LONGEST_GRACE = 5.0
"""Seconds after which a worker is killed that had less than `_STOP_SECONDS` of processor time until then."""
_QUIET = 5.0
"""Seconds after an answer in which a script, which has other functions in `parallel`, may be computing."""
_STOP_SECONDS = 0.5  # most scripts need far less, but nothing interrupts a C function of Lua
_RECEIVED_FACTOR, _RECEIVED_SLACK = 4, 1 << 20
"""A worker may send `max_memory` times the factor in one run, and the slack besides."""
_REASONS = {protocol.REASON_TIME: "time", protocol.REASON_CANCELLED: "cancelled", protocol.REASON_CALLS: "calls"}


class Execution:
    """One run: the checks of what its worker sends, its deadlines and its end."""

    over = False
    stopping = 0
    """Why the run is being stopped; 0 while it is not."""
    interrupting = 0
    """The worker must be interrupted for this reason; the driver sets it back to 0."""
    interrupted = False
    """The caller has stopped waiting for the run."""
    host_gone = False
    """The worker is gone with its machine; what scripts had defined is in the journal."""
    moving = False
    """For that reason the run goes on in another worker."""
    moves = 0
    """How often it did."""
    wakes_at: float | None = None
    """Then: when, on the monotonic clock; None where it waits for people only."""
    people = 0
    """Then: how many calls wait for a person."""
    may_sleep = False
    """What drives it gives the worker back for long waits."""
    sleeping = False
    """The run waits for longer than it may hold its worker: it goes on later, in another one."""
    options: RunOptions
    """What the run was given."""
    asking: CallEntry | None = None
    """The question whether the script may run; None where it is answered, or nobody is asked."""
    run: Run | None = None
    """Its record, from `finish`."""
    _unsent = b""
    _error: ScriptError | None = None
    _stop_until = _kill_at = _cpu_before_stop = _quiet_at = 0.0

    def __init__(
        self,
        record: RunRecord,
        *,
        sources: Iterable[tuple[int, str]] = (),
        on_call: Callable[[CallEntry], None] | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        calls, limits = record.calls, record.calls.limits
        self.record = record
        self.calls = calls
        self.clock = record.clock
        self._span = None
        if telemetry is not None:
            self._span = telemetry.start_run(record.id, record.language, record.repl_id, record.labels)
        self.ledger = ledger = CallLedger(record, on_call, telemetry, self._span)
        self.answer = ledger.answer
        self.starting = ledger.starting
        self._sources = sources
        self._decoder = Decoder(calls.most_elements, limits.max_depth, allow_nan=calls.value_limits.allow_nan)
        self._most_received = limits.max_memory * _RECEIVED_FACTOR + _RECEIVED_SLACK

    # What goes in

    def begin(self, data: bytes, link: Link) -> None:
        """Ask the worker to run the program, with these frames."""
        self.record.native = link.native
        self.clock.worker = link
        self._unsent = data

    def ask(self, question: ToolCall, answered: Callable[[CallEntry, ToolError | None], object]) -> None:
        """Have the driver ask a person whether the script may run, as it performs a call. Nothing is sent before."""
        entry = self.asking = CallEntry(0, "script", [], index=0, batch=0, bytes_in=0, run_id=self.record.id)
        entry.question = question

        def take(error: ToolError | None) -> None:
            self.asking = None
            answered(entry, error)

        entry.on_answer = take
        self.ledger.open[entry.id] = entry
        self.ledger.starting.append(entry)

    def refuse(self, error: EngineError | ScriptError) -> None:
        """The script cannot be run; nothing is sent to the worker."""
        self._error = error if isinstance(error, ScriptError) else self._explain(error)
        self.over = True

    def frame(self, kind: int, payload: bytes) -> None:
        """Take a frame from the worker."""
        record = self.record
        record.received += len(payload) + protocol.HEADER.size
        if record.received > self._most_received:
            raise WorkerError(f"the worker sent more than {_RECEIVED_FACTOR} times max_memory in one run")
        if kind == protocol.CALLS:
            ledger = self.ledger
            if not ledger.take(read_calls(payload, self._decoder, ledger.last_id), len(payload)):
                self.stop(protocol.REASON_CALLS, monotonic())
            elif self.stopping:  # a call that comes now is not made
                ledger.cancel_starting()
        elif kind in (protocol.VALUE, protocol.VALUE_KEPT):
            record.report = read_value(payload, self._decoder)
            if record.journal is not None:
                record.journal.ended(payload[protocol.SPENT.size :])
            if kind == protocol.VALUE_KEPT:
                record.kept = 1
            self.over = True
        elif kind == protocol.DONE:
            record.report = report = read_done(payload, self._decoder)
            record.worker_lost = "lost" in report.extra  # its engine has ended with the run
            if record.journal is not None:
                record.journal.ended(f"{report.kind} {report.limit} {report.message}".encode())
            self.over = True
        elif kind == protocol.OUTPUT:
            self._take_output(payload)
        elif kind == protocol.KEPT:
            if payload not in (b"\1", b"\2", b"\3"):
                raise WorkerError("the worker kept something that a run does not have")
            record.kept = payload[0]
        elif kind == protocol.CANCEL:
            for call in reversed(read_cancelled(payload, self._decoder)):  # as `CallLedger.leave_all` does
                if self.ledger.has_waits:
                    self.ledger.waits.end(call)
                if call in self.ledger.open:
                    self.ledger.cancel(self.ledger.open[call])
        else:
            raise WorkerError(f"the worker sent a frame of unknown type {kind}")

    def _take_output(self, payload: bytes) -> None:
        if not payload or self.record.printed + len(payload) > self.calls.limits.max_output:
            raise WorkerError("the worker sent more output than max_output allows, or none")
        if self.record.journal is not None:
            self.record.journal.printed(payload)
        self.record.print(payload)

    def tick(self, now: float) -> None:
        """Do what is due: the run's timeout, the timeouts of its calls, the end of a worker that does not stop."""
        if self.stopping:
            if now >= self._stop_until:
                if now >= self._kill_at or self._stop_cpu_spent():
                    raise WorkerError("it did not stop")
                self._stop_until = min(now + GRACE / 4, self._kill_at)
            return
        if self.clock.is_late(now):
            self.stop(protocol.REASON_TIME, now)
            return
        for entry in list(self.ledger.open.values()):
            if entry.deadline is not None and now >= entry.deadline:
                message = entry.obstacle or f"{entry.tool} did not answer within its timeout"
                code = "busy" if entry.obstacle else "timeout"
                self.answer(entry, "timeout", None, ToolError(message, code=code, retryable=True, tool=entry.tool))
                entry.leave()
        self.ledger.wake(now)
        moment = self._sleeps_at()
        if moment is not None and now >= moment:
            self.sleeping, self.wakes_at = True, self.ledger.waits.nearest()
            self.people = sum(entry.asked is not None for entry in self.ledger.open.values())

    def stop(self, reason: int, now: float) -> None:
        """End the run: the script has a moment to stop by itself, and gets no more answers."""
        if self.asking is not None and not self.over:  # the worker has nothing to stop
            self.stopping = reason
            self.ledger.cancel_starting()
            self.ledger.leave_all()
            self.ledger.open.clear()
            self.refuse(EngineError("stop", limit=_REASONS[reason]))
        elif not self.stopping and not self.over:
            self.stopping = self.interrupting = reason
            self._stop_until, self._kill_at = now + GRACE, now + LONGEST_GRACE
            self._cpu_before_stop = self.clock.worker_time() or 0.0
            self._unsent += protocol.frame(protocol.HALT, bytes((reason,)))
            self.ledger.cancel_starting()
        if reason == protocol.REASON_CANCELLED and self.record.journal is not None:
            self.record.journal.stop_waiting()

    def lose(self, problem: WorkerError, status: str = "", *, closed: bool = False, host_lost: bool = False) -> None:
        """The worker is gone: by itself, or ended for what it did. `closed`: the host closed the link first.

        Where its machine is gone, a run with a journal is not over: the driver calls `move`, and it goes on elsewhere.
        """
        reason = self.stopping or (protocol.REASON_CANCELLED if closed else 0)
        self.host_gone |= host_lost and self.record.journal is not None
        self.moving = self.host_gone and not reason
        if self.moving:
            return
        self.over, self.record.worker_lost = True, not self.host_gone
        if reason:
            self._error = self._explain(EngineError("stop", limit=_REASONS[reason]))
            return
        by_itself = isinstance(problem, Gone)
        status = "its node is gone" if host_lost else status
        how = f"ended unexpectedly ({status or problem})" if by_itself else f"had to be ended ({problem})"
        self._error = ScriptError("crashed", f"the worker process {how}; what the scripts had defined is lost")

    def move(self) -> None:
        """The calls under way have ended: the run goes on elsewhere; one whose time is over ends here."""
        self.moving = not self.stopping
        self.over = True
        if not self.moving:
            self.lose(Gone())

    # What comes out

    def outgoing(self) -> bytes:
        """The bytes to send now."""
        data = self._unsent
        ledger = self.ledger
        if not self.stopping and (ledger.replies or self.record.journal is not None):
            answers = ledger.answers()
            if answers:
                self._quiet_at = monotonic() + _QUIET
            data += answers
        self._unsent = b""
        self.record.sent += len(data)
        return data

    def deadline(self) -> float | None:
        """When something is due next, on the monotonic clock."""
        if self.stopping:
            return self._stop_until
        nearest = self.clock.deadline
        for entry in self.ledger.open.values():
            if entry.deadline is not None and (nearest is None or entry.deadline < nearest):
                nearest = entry.deadline
        if self.ledger.has_waits or self.record.journal is not None:
            moments = (nearest, self.ledger.waits.nearest(), self._sleeps_at())
            nearest = min((moment for moment in moments if moment is not None), default=None)
        return nearest

    def _sleeps_at(self) -> float | None:
        """When the run may give its worker back: while it waits only for times and people, and does not compute."""
        ledger, journal = self.ledger, self.record.journal
        if journal is None or not self.may_sleep or journal.replaying or ledger.starting or ledger.replies:
            return None
        moment = ledger.waits.leaves_at(ledger.open.values())
        if moment is None or not (ledger.open or ledger.waits.open):
            return None
        return max(moment, self._quiet_at) if ledger.is_answered else moment

    def finish(self) -> Run:
        """The record of the run, which is over."""
        if self.ledger.open or self.ledger.has_waits:
            self.ledger.leave_all()
        report, error = self.record.report, self._error
        if self.interrupted:
            error = self._explain(EngineError("stop", limit="cancelled"))
        elif report is not None and report.kind != "ok":
            error = self._explain(
                EngineError(report.kind, report.message, report.limit, tuple(report.frames), report.extra)
            )
        if error is not None and error.limit == "time":
            error = self.record.name_slow_call(error)
        run = self.record.finish(tuple(report.values) if report is not None and error is None else (), error)
        return run if self._span is None else self.end_span(run)

    def end_span(self, run: Run) -> Run:
        """End the telemetry of the run, with that of calls that have none ended yet."""
        if self._span is not None:
            self.ledger.end_spans()
            self._span.end(run)
        return run

    def leave_span(self, state: str) -> None:
        """The same for a run that goes on later, or in another worker: from then on it has a span of its own."""
        if self._span is not None:
            self.ledger.end_spans(state)
            self._span.leave(state)

    def _stop_cpu_spent(self) -> bool:
        """Whether the worker has run long enough to stop, as far as the kernel says."""
        spent = self.clock.worker_time()
        return spent is None or spent - self._cpu_before_stop >= _STOP_SECONDS

    def _explain(self, error: EngineError) -> ScriptError:
        calls = self.calls
        sources = {protocol.chunk_name(number): source for number, source in self._sources}
        return calls.language.explain(error, sources=sources, tools=calls.toolbox.paths(), limits=calls.limits)
