"""The clock of a run: measures it against its timeout, and stands still while a person is asked."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moonbox.worker.link import Link

_LOOK = 0.1  # seconds between two looks at a worker's processor time


class RunClock:
    """Measures a run against its timeout. Code that asks a person pauses it, from any thread.

    A person's time is free, the worker's is not: while the clock is paused, it advances by the processor time that the
    worker spends. So a script cannot compute for as long as a person thinks.
    """

    __slots__ = (
        "_began", "_cpu_before", "_lock", "_outer", "_paused_at", "_pauses", "_timeout", "changed", "deadline", "worker"
    )  # fmt: skip

    def __init__(self, timeout: float | None) -> None:
        self._began = monotonic()
        self._timeout = timeout
        self._outer = CLOCK.get()  # of the run for whose call this run is made: it pauses together with this one
        self.worker: Link | None = None
        """Gives the processor time that is spent for the run; not to be changed while the clock is paused."""
        self._cpu_before = 0.0
        self._lock = Lock()  # several people may be asked at once, each from a thread of its own
        self._pauses = 0
        self._paused_at = 0.0
        self.deadline = None if timeout is None else self._began + timeout
        """On the monotonic clock: when the timeout passes, or, while paused, when it may have passed. None: never."""
        self.changed: Callable[[], object] | None = None
        """Called when the clock goes on: the driver of the run then reads the new deadline."""

    def elapsed(self) -> float:
        """Seconds that count for the run."""
        if not self._pauses:
            return monotonic() - self._began
        with self._lock:
            return self._elapsed(monotonic())

    def left(self) -> float | None:
        """Seconds until the timeout; None where there is none."""
        return None if self._timeout is None else self._timeout - self.elapsed()

    def is_late(self, now: float) -> bool:
        """Whether the timeout has passed. While paused, it sets a new deadline where it has not."""
        if self.deadline is None or now < self.deadline:
            return False
        with self._lock:
            if self._pauses:
                self._look_ahead(now)
            return self.deadline is not None and now >= self.deadline

    def worker_time(self) -> float | None:
        """Seconds of processor time that the worker has spent, where the kernel provides them."""
        cpu = None if self.worker is None else self.worker.cpu
        return None if cpu is None else cpu()

    def pause(self) -> None:
        if self._outer is not None:
            self._outer.pause()
        with self._lock:
            if self._pauses == 0:
                self._paused_at = monotonic()
                self._cpu_before = self.worker_time() or 0.0
            self._pauses += 1
            self._look_ahead(self._paused_at)

    def go_on(self) -> None:
        if self._outer is not None:
            self._outer.go_on()
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
        spent = self.worker_time()
        computed = 0.0 if spent is None else max(0.0, spent - self._cpu_before)
        return self._paused_at - self._began + computed

    def _look_ahead(self, now: float) -> None:
        """While paused: the worker cannot have spent the rest before as much time has passed."""
        if self._timeout is None or self.worker_time() is None:
            self.deadline = None
            return
        rest = self._timeout - self._elapsed(now)
        self.deadline = now if rest <= 0 else now + max(rest, _LOOK)


CLOCK: ContextVar[RunClock | None] = ContextVar("moonbox_run_clock", default=None)
"""The clock of the run for which a tool is called: a tool that asks a person pauses it."""
