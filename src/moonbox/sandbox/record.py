"""The record of a run while it happens: its calls, and its clock, which stands still while a person thinks."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from moonbox.audit.records import Call, CallError, CallStatus
from moonbox.errors import ToolError
from moonbox.frozen import quick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moonbox.audit.telemetry import CallSpan
    from moonbox.sandbox.threads import RunningCall

__all__ = ["CLOCK", "CallEntry", "RunClock"]

_call = quick(Call)
_LOOK = 0.1  # seconds between two looks at a worker's processor time


class RunClock:
    """Measures a run against its timeout. Whoever asks a person pauses it meanwhile, from any thread.

    A person's time is free, the worker's is not: while the clock is paused, it goes on by the processor time that the
    worker spends, so that a script cannot compute for as long as somebody thinks.
    """

    __slots__ = ("_began", "_cpu", "_cpu_before", "_lock", "_paused_at", "_pauses", "_timeout", "changed", "deadline")

    def __init__(self, timeout: float | None, cpu: Callable[[], float] | None = None) -> None:
        self._began = monotonic()
        self._timeout = timeout
        self._cpu = cpu
        self._cpu_before = 0.0
        self._lock = threading.Lock()  # several people may be asked at once, in threads of their own
        self._pauses = 0
        self._paused_at = 0.0
        self.deadline = None if timeout is None else self._began + timeout
        """On the monotonic clock: when the timeout passes, or, while paused, when it may have passed. None: never."""
        self.changed: Callable[[], object] | None = None
        """Called when the clock goes on, so that whoever waits for the old deadline looks at the new one."""

    def elapsed(self) -> float:
        """Seconds on the run's account."""
        with self._lock:
            return self._elapsed(monotonic())

    def is_late(self, now: float) -> bool:
        """Whether the timeout has passed. While paused, it finds a new deadline where it has not."""
        if self.deadline is None or now < self.deadline:
            return False
        with self._lock:
            if self._pauses:
                self._look_ahead(now)
            return self.deadline is not None and now >= self.deadline

    def measure(self, cpu: Callable[[], float] | None) -> None:
        """Where to read the processor time that the worker has spent; not while paused."""
        self._cpu = cpu

    def worker_time(self) -> float | None:
        """Seconds of processor time that the worker has spent, where the kernel tells it."""
        return None if self._cpu is None else self._cpu()

    def pause(self) -> None:
        with self._lock:
            if self._pauses == 0:
                self._paused_at = monotonic()
                self._cpu_before = self.worker_time() or 0.0
            self._pauses += 1
            self._look_ahead(self._paused_at)

    def go_on(self) -> None:
        with self._lock:
            if self._pauses == 1:
                now = monotonic()
                self._began = now - self._elapsed(now)
                self.deadline = None if self._timeout is None else self._began + self._timeout
            self._pauses -= 1
            if self._pauses:
                return
        if self.changed is not None:
            self.changed()

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        self.pause()
        try:
            yield
        finally:
            self.go_on()

    def _elapsed(self, now: float) -> float:
        if not self._pauses:
            return now - self._began
        computed = 0.0 if self._cpu is None else max(0.0, self._cpu() - self._cpu_before)
        return self._paused_at - self._began + computed

    def _look_ahead(self, now: float) -> None:
        """Paused: the worker cannot have spent the rest before as much time has passed."""
        if self._timeout is None or self._cpu is None:
            self.deadline = None
            return
        rest = self._timeout - self._elapsed(now)
        self.deadline = now if rest <= 0 else now + max(rest, _LOOK)


CLOCK: ContextVar[RunClock | None] = ContextVar("moonbox_run_clock", default=None)
"""The clock of the run for which a tool is called: a tool that asks a person lets it stand still meanwhile."""


class CallEntry:
    """One call, from its arrival to its answer.

    Whoever drives the run changes its status; the thread or task that runs the tool fills in the rest on the way.
    """

    __slots__ = (
        "approval", "arguments", "batch", "began", "bytes_in", "bytes_out", "cancel", "deadline", "ended", "error",
        "failures_before", "given", "id", "index", "left", "obstacle", "received", "result", "retry_of", "running",
        "span", "started", "status", "target", "tool",
    )  # fmt: skip

    def __init__(self, call_id: int, target: str, given: list[Any], *, index: int, batch: int, size: int) -> None:
        self.id = call_id
        """The worker's number for it."""
        self.target = target
        """Whom it is for: "tools.<path>" or "fn.<name>"."""
        self.given = given
        """The arguments as the script gave them."""
        space, _, self.tool = target.partition(".")
        self.arguments: Any = given[0] if space == "tools" and _are_named(given) else given
        """By name: as the script gave them until they are bound, then with defaults; a list if they have no names."""
        self.index = index
        self.batch = batch
        self.status: CallStatus = "in_flight"
        self.result: Any = None
        self.error: CallError | None = None
        self.approval: str | None = None
        self.retry_of: int | None = None
        self.failures_before = 0
        """How many calls of the run had failed when it came."""
        self.started = time()
        self.received = monotonic()
        self.began: float | None = None
        self.ended: float | None = None
        self.deadline: float | None = None
        """On the monotonic clock: when the tool's own timeout passes."""
        self.bytes_in = size
        self.bytes_out = 0
        self.cancel: Callable[[], object] | None = None
        """Stops what runs for it, where that is possible."""
        self.left = False
        """The run is over, or does not wait for it any more: what has not begun does not begin."""
        self.obstacle = ""
        """What it waits for before its tool can start."""
        self.running: RunningCall | None = None
        """Held by what runs for it, until that has ended."""
        self.span: CallSpan | None = None

    @property
    def open(self) -> bool:
        return self.status == "in_flight"

    def begin(self, timeout: float | None = None) -> None:
        """The tool itself starts now; ToolError when nobody waits for it any more."""
        if self.left:
            raise ToolError("the run is over", code="cancelled")
        self.began = monotonic()
        self.obstacle = ""
        self.deadline = None if timeout is None else self.began + timeout

    def leave(self) -> None:
        """Nobody waits for it any more."""
        self.left = True
        if self.cancel is not None:
            self.cancel()

    def close(self, status: CallStatus, result: Any = None, error: ToolError | None = None) -> None:
        """It has its answer."""
        if self.ended is None:
            self.ended = monotonic()
        self.status, self.result = status, result
        if error is not None:
            self.error = CallError(error.code, error.message, error.retryable, error.data, error.detail)

    def to_call(self) -> Call:
        """The record as it is now."""
        ended = monotonic() if self.ended is None else self.ended
        began = ended if self.began is None else self.began
        return _call(
            index=self.index,
            tool=self.tool,
            arguments=self.arguments,
            status=self.status,
            result=self.result,
            error=self.error,
            started=self.started,
            queued=max(0.0, began - self.received),
            duration=max(0.0, ended - began),
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            approval=self.approval,
            retry_of=self.retry_of,
            batch=self.batch,
        )


def _are_named(arguments: list[Any]) -> bool:
    """Whether a call was given one table of named arguments."""
    return len(arguments) == 1 and type(arguments[0]) is dict and all(type(name) is str for name in arguments[0])
