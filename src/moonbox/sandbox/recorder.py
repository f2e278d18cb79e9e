"""The recorder: gathers what a run does while it does it, and makes the Run of it."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from moonbox.audit.records import Call, CallError, CallStatus, Observation, Run, Usage
from moonbox.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.audit.telemetry import CallSpan, Telemetry
    from moonbox.errors import ScriptError
    from moonbox.sandbox.clock import RunClock
    from moonbox.sandbox.conversation import Ended

__all__ = ["CallEntry", "Recorder"]

_REMEMBERED_FAILURES = 32
_MOST_OBSERVATIONS = 10_000  # a script may read the clock without end


class CallEntry:
    """One call while it is under way. Whoever finishes it first decides; later endings are ignored."""

    __slots__ = (
        "_left", "_lock", "approval", "arguments", "batch", "began", "bytes_in", "bytes_out", "cancel", "deadline",
        "duration", "error", "id", "index", "queued", "received", "result", "retry_of", "started", "status", "tool",
    )  # fmt: skip

    def __init__(self, index: int, batch: int, call: int, tool: str, arguments: Any, size: int) -> None:
        self.index = index
        self.batch = batch
        self.id = call
        self.tool = tool
        self.arguments = arguments
        self.status: CallStatus = "in_flight"
        self.result: Any = None
        self.error: CallError | None = None
        self.approval: str | None = None
        self.retry_of: int | None = None
        self.started = time.time()
        self.received = time.monotonic()
        self.began: float | None = None
        self.queued = 0.0
        self.duration = 0.0
        self.bytes_in = size
        self.bytes_out = 0
        self.deadline: float | None = None
        """On the monotonic clock: when the tool's own timeout passes."""
        self.cancel: Callable[[], object] | None = None
        """Stops what runs for it, where that is possible."""
        self._left = False
        self._lock = threading.Lock()

    def begin(self, timeout: float | None = None) -> None:
        """The tool itself starts now; ToolError when its run is over already."""
        if self._left or not self.open:
            raise ToolError("the run is over", code="cancelled")
        self.began = time.monotonic()
        self.queued = self.began - self.received
        if timeout is not None:
            self.deadline = self.began + timeout

    @property
    def open(self) -> bool:
        return self.status == "in_flight"

    def succeed(self, result: Any) -> bool:
        with self._lock:
            if not self.open or self._left:
                return False
            self._stop_clock()
            self.result = result
            self.status = "ok"
            return True

    def fail(self, error: ToolError, status: CallStatus = "error") -> bool:
        with self._lock:
            if not self.open or self._left:
                return False
            self._stop_clock()
            self.error = CallError(error.code, error.message, error.retryable, error.data, error.detail)
            self.status = status
            return True

    def abandon(self, status: CallStatus) -> bool:
        """Nobody waits for it any more."""
        with self._lock:
            if not self.open:
                return False
            self._stop_clock()
            self.status = status
        if self.cancel is not None:
            self.cancel()
        return True

    def leave_behind(self) -> None:
        """Its run is over: what has begun goes on without us and stays in flight, what has not does not begin."""
        with self._lock:
            self._left = True
        if self.cancel is not None:
            self.cancel()

    def _stop_clock(self) -> None:
        now = time.monotonic()
        if self.began is None:
            self.queued = now - self.received
        else:
            self.duration = now - self.began

    def to_call(self) -> Call:
        with self._lock:
            if self.open:
                self._stop_clock()
            return Call(
                index=self.index,
                tool=self.tool,
                arguments=self.arguments,
                status=self.status,
                result=self.result,
                error=self.error,
                started=self.started,
                queued=self.queued,
                duration=self.duration,
                bytes_in=self.bytes_in,
                bytes_out=self.bytes_out,
                approval=self.approval,
                retry_of=self.retry_of,
                batch=self.batch,
            )


class Recorder:
    """Everything about one run that will be in its record."""

    def __init__(
        self,
        *,
        run_id: str,
        repl: str,
        number: int,
        source: str,
        language: str,
        seed: int,
        clock: RunClock,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.run_id = run_id
        self.repl = repl
        self.number = number
        self.source = source
        self.language = language
        self.seed = seed
        self.clock = clock
        self.started = time.time()
        self._lock = threading.Lock()
        self._output: list[bytes] = []
        self._entries: list[CallEntry] = []
        self._observations: list[Observation] = []
        self._batches = 0
        self._failed: deque[CallEntry] = deque(maxlen=_REMEMBERED_FAILURES)
        self._telemetry = telemetry
        self._span = telemetry.start_run(run_id, language, repl) if telemetry is not None else None

    def call_span(self, entry: CallEntry, *, known: bool) -> CallSpan | None:
        """The span of a call, where spans are wanted."""
        if self._telemetry is None or self._span is None:
            return None
        return self._telemetry.start_call(self._span, entry.index, entry.tool, known=known)

    @property
    def calls_made(self) -> int:
        return len(self._entries)

    def printed(self, text: bytes) -> None:
        self._output.append(text)

    def next_batch(self) -> int:
        self._batches += 1
        return self._batches

    def call(self, batch: int, call: int, tool: str, arguments: Any, size: int) -> CallEntry:
        """A call has come in; from here on it is in the record."""
        with self._lock:
            entry = CallEntry(len(self._entries) + 1, batch, call, tool, arguments, size)
            self._entries.append(entry)
            return entry

    def find_retry(self, entry: CallEntry) -> None:
        """Note the latest failed call with the same tool and arguments."""
        for earlier in reversed(self._failed):
            if earlier.tool == entry.tool and earlier.arguments == entry.arguments and earlier is not entry:
                entry.retry_of = earlier.index
                return

    def failed(self, entry: CallEntry) -> None:
        """Remember a failed call for `find_retry`; a retry comes soon after."""
        self._failed.append(entry)

    def observed(self, name: str, value: Any) -> None:
        if len(self._observations) < _MOST_OBSERVATIONS:
            self._observations.append(Observation(name, value))

    def open_entries(self) -> list[CallEntry]:
        with self._lock:
            return [entry for entry in self._entries if entry.open]

    def finish(
        self,
        *,
        ended: Ended | None,
        values: tuple[Any, ...],
        error: ScriptError | None,
        bytes_in: int,
        bytes_out: int,
        state_lost: bool,
    ) -> Run:
        output = b"".join(self._output).decode("utf-8", "replace")
        calls = tuple(entry.to_call() for entry in self._entries)
        run = Run(
            id=self.run_id,
            source=self.source,
            language=self.language,
            values=values,
            output=output,
            output_cut=ended.cut if ended else 0,
            calls=calls,
            usage=Usage(
                wall=self.clock.elapsed(),
                cpu=ended.cpu if ended else 0.0,
                operations=ended.operations if ended else None,
                peak_memory=ended.memory if ended else 0,
                calls=len(calls),
                bytes_in=bytes_in,
                bytes_out=bytes_out,
            ),
            error=error,
            started=self.started,
            repl=self.repl,
            number=self.number,
            seed=self.seed,
            observations=tuple(self._observations),
            state_lost=state_lost,
        )
        if self._span is not None:
            self._span.end(run)
        return run
