"""The pool: keeps spare workers ready, hands workers out and makes sure that they end."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from moonbox.errors import ClosedError, PoolTimeout, WorkerError
from moonbox.threads import in_thread, own_thread
from moonbox.worker.sources import WorkerSource, check_layers

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from concurrent.futures import Future

    from moonbox.worker.link import Link

SPAWN_DELAY = 0.01
"""Seconds by which the end of a retired worker, and the start of a spare, are delayed."""
FREEZE_AFTER = 1.0
"""Seconds after which an idle worker is frozen, so that a hijacked one cannot compute between runs."""
RENEWAL_DELAY = 1.0
"""Seconds between two changes of what new workers are given, which take some milliseconds of the zygote's time."""
_RETRY_AFTER = 0.5


class PoolCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many workers a pool has at one moment."""

    live: int
    """All of them, including those that are being started."""
    in_use: int
    waiting: int = 0
    """Requests for a worker that wait because all are in use."""
    spare_pids: tuple[int | None, ...]
    """Of the spare workers; None for a worker that is not a process."""

    @property
    def spare(self) -> int:
        return len(self.spare_pids)


class Pool:
    """Hands out workers: at most `most` at once. Up to `spares` of them are started in advance.

    A background thread starts spares, ends retired workers, freezes idle ones and renews what new ones are given.
    """

    def __init__(self, source: WorkerSource, *, spares: int, most: int, require: Collection[str] = ()) -> None:
        self._source = source
        self._require = require  # layers of the jail that each worker must have
        self._want_spares = spares
        self._most = most
        self.lock = threading.RLock()
        """Guards everything below."""
        self._wakeup = threading.Condition(self.lock)  # the background thread has something to do
        self._awaiting: set[Future[None]] = set()  # done when a worker may be available, or the pool is closed
        self._spares: deque[Link] = deque()
        self._out: set[Link] = set()  # handed out
        self._retired: deque[Link] = deque()  # handed out, no longer needed, and to be ended soon
        self._live = 0  # handed out, spare, or being started
        self._some_awake = False  # some of those handed out may not be frozen
        self.closed = False
        self.template: object = None
        """What the source gives the workers that it starts; None while that changes."""
        self._lacked: object = None  # by the latest new worker that lacked something
        self._renewal: Callable[[], None] | None = None
        self._renewed = -RENEWAL_DELAY
        self.on_full: Callable[[], object] = lambda: None
        """Called when a request for a worker begins to wait."""
        self._maintainer: threading.Thread | None = None

    def checkout(self, timeout: float | None) -> Link:
        """A worker for one Repl. Waits while `most` are out; PoolTimeout after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (link := self.try_checkout()) is None:
            with self._awaited() as freed:
                try:
                    freed.result(None if deadline is None else max(0.0, deadline - time.monotonic()))
                except TimeoutError:
                    raise self._all_in_use(timeout) from None
        return link

    async def acheckout(self, timeout: float | None) -> Link:
        """The same, awaited. If it is cancelled, the worker that it has got is ended."""
        import asyncio

        try:
            async with asyncio.timeout(timeout):
                while True:
                    link = self.try_spare()
                    link = link or await in_thread(self.try_checkout, start=own_thread, left=self.discard)
                    if link is not None:
                        return link
                    with self._awaited() as freed:
                        await asyncio.wrap_future(freed)
        except TimeoutError:
            raise self._all_in_use(timeout) from None

    @contextlib.contextmanager
    def _awaited(self) -> Iterator[Future[None]]:
        """A future that is done as soon as a worker may be available."""
        from concurrent.futures import Future  # slow to load

        freed: Future[None] = Future()
        with self.lock:
            if self._is_available():
                freed.set_result(None)
            else:
                self._awaiting.add(freed)
                self.on_full()
        try:
            yield freed
        finally:
            with self.lock:
                self._awaiting.discard(freed)

    def try_spare(self) -> Link | None:
        """A spare worker if there is one; never blocks."""
        with self.lock:
            self._check_open()
            while self._spares:
                link = self._spares.popleft()
                if link.alive():
                    self._hand_out(link)
                    return link
                link.close()
                self._live -= 1
                self._notify_freed()
        return None

    def try_checkout(self) -> Link | None:
        """A worker if there is one without waiting for another to be returned; may block to start it."""
        link = self.try_spare()
        if link is not None:
            return link
        with self.lock:
            self._check_open()
            if self._live >= self._most and self._retired:
                self.discard(self._retired.popleft())
            if self._live >= self._most:
                return None
            self._live += 1
        return self._start(out=True)

    def retire(self, link: Link) -> None:
        """End an idle worker that is no longer needed, a moment later: its end would slow down what runs next."""
        with self.lock:
            if self._want_spares and self._live < self._most and not self.closed and link in self._out:
                self._retired.append(link)
                self._wake_maintainer()
                return
        self.discard(link)

    def discard(self, link: Link | None) -> None:
        """End a worker that is no longer needed, dead or alive, now; None: there is none."""
        if link is None:
            return
        link.close()
        with self.lock:
            if link in self._out:
                self._out.discard(link)
                self._live -= 1
                self._notify_freed()

    def counts(self) -> PoolCounts:
        with self.lock:
            spare_pids = tuple(link.pid for link in self._spares)
            waiting = len(self._awaiting)
            return PoolCounts(live=self._live, in_use=len(self._out), spare_pids=spare_pids, waiting=waiting)

    def prime(self) -> None:
        """Start a spare now; raises what prevents it."""
        with self.lock:
            self._check_open()
            self._live += 1
        self._start(out=False)

    def warm(self) -> None:
        """Begin to start spares in the background."""
        with self.lock:
            if self._wants_spare():
                self._wake_maintainer()

    def lacked(self, template: object, config: Callable[[], dict[str, Any]]) -> None:
        """A new worker lacked this. If the one before did too, the source gives it to all that come from now on."""
        with self.lock:
            is_second, self._lacked = template == self._lacked, template
            rests = time.monotonic() < self._renewed + RENEWAL_DELAY
            if is_second and not rests and template != self.template and not self.closed:
                self._renewal, self._renewed = partial(self._renew, template, config), time.monotonic()
                self._wake_maintainer()

    def close(self) -> None:
        with self.lock:
            if self.closed:
                return
            self.closed = True
            self._notify_freed()
            maintainer = self._maintainer
        if maintainer is not None and maintainer is not threading.current_thread():
            maintainer.join()
        for link in (*self._spares, *self._out):
            link.close()
        self._source.close()

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedError("the Sandbox is closed")

    def _is_available(self) -> bool:
        """Whether `try_checkout` may return a worker, or raise. The lock is held."""
        return bool(self.closed or self._spares or self._retired or self._live < self._most)

    def _all_in_use(self, timeout: float | None) -> PoolTimeout:
        return PoolTimeout(
            f"all {self._most} workers are in use and none became free within {timeout:g} s; "
            "close a Repl, or raise Sandbox(max_workers=…)"
        )

    def _notify_freed(self) -> None:
        """A worker may be available, or the pool was closed. The lock is held."""
        if self.closed or self._wants_spare():
            self._wake_maintainer()
        if not self._awaiting:
            return
        awaiting, self._awaiting = self._awaiting, set()
        from concurrent.futures import InvalidStateError  # loaded already, with the futures

        for future in awaiting:
            with contextlib.suppress(InvalidStateError):
                future.set_result(None)

    def _start(self, *, out: bool) -> Link:
        """Start a worker, which is counted as live already."""
        template = self.template
        try:
            link = self._source.spawn()
            if template is self.template:
                link.template = template
            if self._require:
                check_layers(link, self._require)
        except BaseException:
            with self.lock:
                self._live -= 1
                self._notify_freed()
            raise
        link.on_thaw = self._on_thaw
        with self.lock:
            if out:
                self._hand_out(link)
            else:
                self._spares.append(link)
                self._notify_freed()
        return link

    def _hand_out(self, link: Link) -> None:
        link.touch()
        self._out.add(link)
        if not self._some_awake or self._wants_spare():
            self._some_awake = True
            self._wake_maintainer()

    def _on_thaw(self) -> None:
        """A frozen worker is used again."""
        with self.lock:
            if not self._some_awake:
                self._some_awake = True
                self._wake_maintainer()

    # The background thread

    def _wake_maintainer(self) -> None:
        """There is something to do for the background thread; start it if needed. The lock is held."""
        if self._maintainer is None and not self.closed:
            self._maintainer = threading.Thread(target=self._maintain, name="moonbox-pool", daemon=True)
            self._maintainer.start()
        self._wakeup.notify()

    def _wants_spare(self) -> bool:
        return len(self._spares) < self._want_spares and self._live < self._most

    def _is_urgent(self) -> bool:
        """Whether the background thread has something to do that cannot wait. The lock is held."""
        return self.closed or (not self._spares and self._wants_spare())

    def _maintain(self) -> None:
        """Do what the background thread is for, until the pool is closed."""
        looked = time.monotonic()
        while True:
            with self.lock:
                while not (self.closed or self._retired or self._wants_spare() or self._renewal):
                    rest = looked + FREEZE_AFTER - time.monotonic() if self._some_awake else None
                    if rest is not None and rest <= 0:
                        break
                    self._wakeup.wait(rest)
                self._wakeup.wait_for(self._is_urgent, SPAWN_DELAY)  # the worker handed out last runs first
                if self.closed:
                    return
                retired, self._retired = self._retired, deque()
                renewal, self._renewal = self._renewal, None
                wants_spare = self._wants_spare()
                self._live += wants_spare
                freezes = self._some_awake and time.monotonic() >= looked + FREEZE_AFTER
            if freezes:
                looked = time.monotonic()
                self._freeze_idle(looked - FREEZE_AFTER)
            if renewal is not None:
                renewal()
            if wants_spare:
                self._start_spare()
            for link in retired:
                self.discard(link)

    def _freeze_idle(self, before: float) -> None:
        """Freeze the workers that have not been used since then."""
        with self.lock:
            self._some_awake = False
            links = list(self._out)
        settled = [link.freeze_idle(before) for link in links]
        if not all(settled):
            with self.lock:
                self._some_awake = True

    def _renew(self, template: object, config: Callable[[], dict[str, Any]]) -> None:
        self.template = None
        with contextlib.suppress(WorkerError, OSError):  # until it works, new workers are told everything
            self._source.configure(config())
            self.template = template

    def _start_spare(self) -> None:
        try:
            self._start(out=False)
        except (WorkerError, OSError):
            # The next checkout makes its own attempt and reports the error.
            with self.lock:
                self._wakeup.wait_for(lambda: self.closed, _RETRY_AFTER)
