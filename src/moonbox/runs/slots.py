"""Slots that threads and tasks wait for alike: turns of a Repl's runs, and calls that run at the same time."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import asynccontextmanager, contextmanager
from os import getpid
from typing import TYPE_CHECKING

from moonbox.errors import ClosedError, UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from concurrent.futures import Future


class Slots:
    """At most `most` at once, first come first served; the others get a future that is done when it is their turn."""

    def __init__(self, most: int = 1) -> None:
        self.most = most
        self._free = most
        self._waiting: deque[Future[None]] | None = None  # made for the first that waits
        self._lock = threading.Lock()

    def enter(self) -> Future[None] | None:
        """Take a slot: None when one is free, else a future to wait for."""
        with self._lock:
            if self._free > 0:
                self._free -= 1
                return None
            from concurrent.futures import Future

            if self._waiting is None:
                self._waiting = deque()
            self._waiting.append(Future())
            return self._waiting[-1]

    def leave(self) -> None:
        """Give the slot to the next one that waits, or free it."""
        with self._lock:
            self._free += 1
            if self._waiting:
                self._hand_out()

    def resize(self, most: int) -> None:
        """Allow so many from now on. Those that are inside stay, even where they are more."""
        with self._lock:
            self._free += most - self.most
            self.most = most
            self._hand_out()

    def _hand_out(self) -> None:
        """Give free slots to those that wait. The lock is held."""
        while self._waiting and self._free > 0:
            future = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                self._free -= 1
                future.set_result(None)

    def wait(self, future: Future[None]) -> None:
        """Until it is our turn."""
        try:
            future.result()
        except BaseException:
            self.give_up(future)
            raise

    async def await_turn(self, future: Future[None]) -> None:
        """The same, awaited."""
        import asyncio

        try:
            await asyncio.wrap_future(future)
        except BaseException:
            self.give_up(future)
            raise

    def give_up(self, future: Future[None]) -> None:
        """The wait was interrupted: pass the slot on if it has been given already."""
        if not future.cancel():
            self.leave()


class Turns(Slots):
    """The runs of one Repl, from several threads and tasks: one after another, and none when it is closed or paused."""

    closed = False
    end_pause: Callable[[], object] | None = None
    """Ends a step-by-step run that waits for its caller's answers; None where none does."""

    def __init__(self, pid: int, ended: Callable[[Turns], object] = lambda _: None) -> None:
        """`ended` is called when a run that was under way when it was closed has ended."""
        super().__init__()
        self._pid = pid  # a process that was forked from this one shares its sockets
        self._ended = ended

    @property
    def idle(self) -> bool:
        return self._free > 0

    def enter(self) -> None:
        """Wait for our turn."""
        if self.closed or self.end_pause or getpid() != self._pid:
            raise self._refusal()
        turn = super().enter()
        if turn is not None:
            self.wait(turn)
            self._check_still_open()

    def leave(self) -> None:
        super().leave()
        if self.closed:
            self._ended(self)

    def close(self) -> bool:
        """Allow no more runs; whether one is under way, which is about to end."""
        with self._lock:
            self.closed = True
            return not self._free and self.end_pause is None

    async def aenter(self) -> None:
        """The same, awaited."""
        if self.closed or self.end_pause or getpid() != self._pid:
            raise self._refusal()
        turn = super().enter()
        if turn is not None:
            await self.await_turn(turn)
            self._check_still_open()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """For what is done seldom; `enter` and `leave` are quicker."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    @asynccontextmanager
    async def ataken(self) -> AsyncIterator[None]:
        """The same, awaited."""
        await self.aenter()
        try:
            yield
        finally:
            self.leave()

    def _refusal(self) -> UsageError:
        if self.closed:
            return ClosedError("the Repl is closed")
        if self.end_pause:
            return UsageError("a run of this Repl waits for answers to its calls: resume or cancel its Pause first")
        return UsageError("this process was forked from the one that made the Sandbox: make a new Sandbox here")

    def _check_still_open(self) -> None:
        if self.closed:  # while we waited
            self.leave()
            raise ClosedError("the Repl is closed")
