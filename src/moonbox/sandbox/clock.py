"""A run's clock: it measures against the timeout and stands still while a person thinks."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CLOCK", "RunClock"]


class RunClock:
    """Thread-safe; several people may be asked at once."""

    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._paused = 0.0
        self._pauses = 0
        self._paused_at = 0.0

    @property
    def has_timeout(self) -> bool:
        return self._timeout is not None

    @staticmethod
    def now() -> float:
        return time.monotonic()

    def elapsed(self) -> float:
        """Seconds on the run's account."""
        with self._lock:
            now = self._paused_at if self._pauses else time.monotonic()
            return now - self._began - self._paused

    def remaining(self) -> float | None:
        """Seconds until the timeout; None when there is none or the clock stands still."""
        if self._timeout is None or self._pauses:
            return None
        return self._timeout - self.elapsed()

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        self.pause()
        try:
            yield
        finally:
            self.go_on()

    def pause(self) -> None:
        with self._lock:
            if self._pauses == 0:
                self._paused_at = time.monotonic()
            self._pauses += 1

    def go_on(self) -> None:
        with self._lock:
            self._pauses -= 1
            if self._pauses == 0:
                self._paused += time.monotonic() - self._paused_at


CLOCK: ContextVar[RunClock | None] = ContextVar("moonbox_run_clock", default=None)
"""The clock of the run for which a tool is called: a tool that asks a person lets it stand still meanwhile."""
