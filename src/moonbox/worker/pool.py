"""The pool: keeps spare workers warm, hands them out and makes sure that they end."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox.errors import ClosedError, PoolTimeout, WorkerError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from moonbox.worker.link import Link
    from moonbox.worker.sources import WorkerSource

__all__ = ["Pool", "PoolCounts"]

BREATH = 0.01
"""Seconds by which the end of a worker, and a new spare, are put off."""
REST = 1.0
"""Seconds after which an idle worker is frozen: one that somebody has taken over does not compute between runs."""


@dataclass(frozen=True, slots=True)
class PoolCounts:
    """How many workers a pool has at one moment."""

    live: int
    """All of them, those that are being made included."""
    in_use: int
    spare_pids: tuple[int | None, ...]
    """Of those that wait ready-made; None for a worker that is no process."""

    @property
    def spare(self) -> int:
        return len(self.spare_pids)


class Pool:
    """Hands out workers: at most `most` at once, of which some wait ready-made."""

    def __init__(self, source: WorkerSource, *, spares: int, most: int) -> None:
        self._source = source
        self._want_spares = spares
        self._most = most
        self._spares: deque[Link] = deque()
        self._live = 0  # handed out, spare, or being made
        self._closed = False
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._waiting = 0  # threads that wait for a change
        self._out: set[Link] = set()
        self._awaiting: list[Future[None]] = []
        self._retired: deque[Link] = deque()  # of those that are out: nobody needs them any more
        self._housekeeper: threading.Thread | None = None
        self._chore = threading.Lock()  # the housekeeper takes it to rest; whoever has something for it lets go of it
        self._chore.acquire()
        self._resting = False  # until somebody lets go of it
        self._looks_again = False  # and a moment has been set at which it does not rest any more
        self._some_awake = False  # of those that are out: to be looked at again

    def checkout(self, timeout: float | None) -> Link:
        """A worker for one Repl. Waits while `most` are out; PoolTimeout after `timeout` seconds."""
        link = self.try_spare()
        if link is not None:
            return link
        link = self.try_checkout()
        deadline = None if timeout is None else time.monotonic() + timeout
        while link is None:
            with self._lock:
                self._check_open()
                if not self._spares and not self._retired and self._live >= self._most:
                    rest = None if deadline is None else deadline - time.monotonic()
                    if (rest is not None and rest <= 0) or not self._wait(rest):
                        raise self._all_in_use(timeout)
                    continue
            link = self.try_checkout()
        return link

    async def acheckout(self, timeout: float | None) -> Link:
        """The same, awaited. Cancelled, it leaves no worker behind."""
        import asyncio

        try:
            async with asyncio.timeout(timeout):
                while True:
                    change = self._next_change()
                    link = self.try_spare() or await self._try_elsewhere()
                    if link is not None:
                        return link
                    await asyncio.wrap_future(change)
        except TimeoutError:
            raise self._all_in_use(timeout) from None

    async def _try_elsewhere(self) -> Link | None:
        """`try_checkout` in a thread, because starting a worker blocks; nobody may be there any more to take it."""
        import asyncio
        from concurrent.futures import Future, InvalidStateError

        future: Future[Link | None] = Future()

        def attempt() -> None:
            try:
                link = self.try_checkout()
            except BaseException as problem:  # noqa: BLE001 - raised where it is awaited
                with contextlib.suppress(InvalidStateError):
                    future.set_exception(problem)
                return
            try:
                future.set_result(link)
            except InvalidStateError:  # cancelled
                if link is not None:
                    self.discard(link)

        threading.Thread(target=attempt, name="moonbox-checkout", daemon=True).start()
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if not future.cancelled() and (link := future.result()) is not None:
                self.discard(link)
            raise

    def _next_change(self) -> Future[None]:
        """Done when a worker may have become free."""
        from concurrent.futures import Future

        with self._lock:
            self._check_open()
            self._awaiting.append(Future())
            return self._awaiting[-1]

    def _tell(self) -> None:
        """To those who wait: a worker may have become free. The lock is held."""
        if self._waiting:
            self._changed.notify_all()
        if self._resting:
            self._wake_housekeeper()
        if not self._awaiting:
            return
        awaiting, self._awaiting = self._awaiting, []
        from concurrent.futures import InvalidStateError  # there already, with the futures

        for future in awaiting:
            with contextlib.suppress(InvalidStateError):
                future.set_result(None)

    def _wait(self, seconds: float | None) -> bool:
        """Wait for a change, at most so long. The lock is held."""
        self._waiting += 1
        try:
            return self._changed.wait(seconds)
        finally:
            self._waiting -= 1

    def _all_in_use(self, timeout: float | None) -> PoolTimeout:
        return PoolTimeout(
            f"all {self._most} workers are in use and none became free within {timeout:g} s; "
            "close a Repl, or raise Sandbox(max_workers=…)"
        )

    def try_spare(self) -> Link | None:
        """A spare worker if there is one; never blocks."""
        with self._lock:
            if self._closed:
                raise ClosedError("the Sandbox is closed")
            while self._spares:
                link = self._spares.popleft()
                if link.alive():
                    self._hand_out(link)
                    self._wake_housekeeper()
                    return link
                self._forget(link)
        return None

    def _forget(self, link: Link) -> None:
        """One that nobody has ends. The lock is held."""
        link.close()
        self._live -= 1
        self._tell()

    def try_checkout(self) -> Link | None:
        """A worker if one can be had without waiting for another to be returned."""
        link = self.try_spare()
        if link is not None:
            return link
        with self._lock:
            self._check_open()
            if self._live >= self._most and self._retired:
                self.discard(self._retired.popleft())
            if self._live >= self._most:
                return None
            self._live += 1
            self._wake_housekeeper()
        return self._make(out=True)

    def retire(self, link: Link) -> None:
        """An idle worker that is no longer needed. It ends a moment later: its end would slow down what runs next."""
        with self._lock:
            if self._want_spares and self._live < self._most and not self._closed and link in self._out:
                self._retired.append(link)
                self._wake_housekeeper()
                return
        self.discard(link)

    def discard(self, link: Link) -> None:
        """A worker that is no longer needed, dead or alive, ends now."""
        link.close()
        with self._lock:
            if link in self._out:
                self._out.discard(link)
                self._live -= 1
                self._tell()

    def configure(self, config: dict[str, Any]) -> None:
        """Change what new workers start with; spares made before are replaced."""
        self._source.configure(config)
        with self._lock:
            stale, self._spares = self._spares, deque()
            self._live -= len(stale)
            self._tell()
        for link in stale:
            link.close()

    def counts(self) -> PoolCounts:
        with self._lock:
            return PoolCounts(self._live, len(self._out), tuple(link.pid for link in self._spares))

    def prime(self) -> None:
        """Make a spare now; raises what stands against it."""
        with self._lock:
            self._check_open()
            self._live += 1
        self._make(out=False)

    def warm(self) -> None:
        """Begin to make spares in the background."""
        with self._lock:
            if not self._closed:
                self._wake_housekeeper()

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._tell()
            links = [*self._spares, *self._out]
            housekeeper = self._housekeeper
        if housekeeper is not None and housekeeper is not threading.current_thread():
            housekeeper.join()
        links = list({*links, *self._spares, *self._out})
        for link in links:
            link.close()
        self._source.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the Sandbox is closed")

    def _make(self, *, out: bool) -> Link:
        try:
            link = self._source.spawn()
        except BaseException:
            with self._lock:
                self._live -= 1
                self._tell()
            raise
        link.on_thaw = self._look_again
        with self._lock:
            if out:
                self._hand_out(link)
                self._wake_housekeeper()
            else:
                self._spares.append(link)
            self._tell()
        return link

    def _hand_out(self, link: Link) -> None:
        link.touch()
        self._out.add(link)
        self._some_awake = True

    def _look_again(self) -> None:
        """A frozen worker is used again."""
        with self._lock:
            self._some_awake = True
            self._wake_housekeeper()

    def _wants_spare(self) -> bool:
        return len(self._spares) < self._want_spares and self._live < self._most

    def _wake_housekeeper(self) -> None:
        """If there is something to do that it does not come to by itself. The lock is held."""
        if self._housekeeper is not None and not self._resting:
            return
        unseen = self._some_awake and not self._looks_again
        if self._retired or unseen or self._closed or self._wants_spare():
            if self._housekeeper is None and not self._closed:
                self._housekeeper = threading.Thread(target=self._keep_house, name="moonbox-pool", daemon=True)
                self._housekeeper.start()
            if self._resting:
                self._resting = False
                self._chore.release()

    def _rest(self, seconds: float | None) -> None:
        """The housekeeper waits until it is woken, at most so long. The lock is held, once, and free meanwhile."""
        self._resting = True
        self._looks_again = seconds is not None
        self._lock.release()
        try:
            woken = self._chore.acquire(timeout=-1 if seconds is None else seconds)
        finally:
            self._lock.acquire()
        if not woken:
            if self._resting:
                self._resting = False
            else:  # somebody has let go of it in this very moment
                self._chore.acquire()
        self._looks_again = False

    def _keep_house(self) -> None:
        """In a thread: make spares, end those that are retired, and freeze or end those that are idle."""
        looked = time.monotonic()
        while True:
            with self._lock:
                while not (self._closed or self._retired or self._wants_spare()):
                    rest = looked + REST - time.monotonic() if self._some_awake else None
                    if rest is not None and rest <= 0:
                        break
                    self._rest(rest)
                in_no_hurry = bool(self._spares) or not self._wants_spare()
            if in_no_hurry:
                time.sleep(BREATH)  # whoever has just taken a worker runs first: this beside it would slow it down
            with self._lock:
                if self._closed:
                    return
                retired, self._retired = self._retired, deque()
                wants_spare = self._wants_spare()
                self._live += wants_spare
                late = self._some_awake and time.monotonic() >= looked + REST
            if late:
                looked = time.monotonic()
                self._freeze_idle(looked - REST)
            if wants_spare:
                self._make_spare()
            for link in retired:
                self.discard(link)

    def _freeze_idle(self, before: float) -> None:
        with self._lock:
            self._some_awake = False
            links = list(self._out)
        settled = [link.freeze_idle(before) for link in links]
        if not all(settled):
            with self._lock:
                self._some_awake = True

    def _make_spare(self) -> None:
        try:
            self._make(out=False)
        except (WorkerError, OSError):
            # The next checkout makes its own attempt and reports; trying again at once would only spin.
            with self._lock:
                self._rest(0.5)
