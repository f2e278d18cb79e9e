"""Gates: at most so many at once, first come first served, the same for threads and asyncio."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moonbox.tools.tool import Tool

__all__ = ["Gate", "Slots"]


class Gate:
    """Lets `most` through at once; the others get a future that is done when it is their turn."""

    def __init__(self, most: int = 1) -> None:
        self._free = most
        self._lock = threading.Lock()
        self._waiting: deque[Future[None]] = deque()

    def enter(self) -> Future[None] | None:
        """None when we are through at once."""
        with self._lock:
            if self._free > 0:
                self._free -= 1
                return None
            future: Future[None] = Future()
            self._waiting.append(future)
            return future

    @property
    def taken(self) -> bool:
        """Whether no more can come in now."""
        return self._free <= 0

    def leave(self) -> None:
        """Let the next one through."""
        with self._lock:
            while self._waiting:
                future = self._waiting.popleft()
                if future.set_running_or_notify_cancel():  # False: whoever waited has given up
                    future.set_result(None)
                    return
            self._free += 1

    def give_up(self, future: Future[None]) -> None:
        """Whoever waited was interrupted: pass on the turn if it had come already."""
        if not future.cancel() and future.done():
            self.leave()


class Slots:
    """A gate for each tool that has a `max_concurrency`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._gates: dict[str, Gate] = {}

    def gate(self, tool: Tool) -> Gate | None:
        if tool.max_concurrency is None:
            return None
        with self._lock:
            gate = self._gates.get(tool.path)
            if gate is None:
                gate = self._gates[tool.path] = Gate(tool.max_concurrency)
            return gate
