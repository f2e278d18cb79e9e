"""The watch of a journal: one thread of this process that tells waiting runs of their time and of people's answers."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from time import time
from typing import TYPE_CHECKING

from moonbox.errors import ClosedError, JournalError, MoonboxError
from moonbox.runs.slots import Slots
from moonbox.threads import Signal, soon

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from moonbox.durable.backends import Backend, Listener
    from moonbox.runs.options import RunOptions
    from moonbox.runs.record import RunRecord

    Ready = Callable[[], object]

_LOOK = 0.5
"""Seconds between two looks for answers, where the database does not tell of them."""
_LONGEST = 30.0  # seconds until the clock is read again, which may be set
_OVERLAP = 5.0
_MOST_AT_ONCE = 32  # runs that begin again together: each takes a thread and a worker


class Asleep(MoonboxError):
    """A run that goes on by itself has given its worker back: it goes on again when its time has come."""


class Watch:
    """Calls each waiting thing once: when its time has come, or a question of its run was answered."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._lock = threading.Lock()
        self._heap: list[tuple[float, int, str]] = []
        self._known: dict[int, tuple[str, Ready]] = {}
        self._numbers = count()
        self._listener: Listener | None = None
        self._closed = False
        self._told: Ready | None = None
        self.runs: set[str] = set()
        """Runs that sleep in this process, which wakes them."""
        self._early: set[str] = set()  # of them: those that were answered before anything waited for them
        self._seen: set[str] = set()  # questions that the latest look has found answered
        self.rising = Slots(_MOST_AT_ONCE)

    def add(self, run: str, until: float, ready: Ready) -> int:
        """Call `ready` from the watching thread: then, or when a question of that run was answered."""
        with self._lock:
            if run in self._early:
                until = 0.0
            number = next(self._numbers)
            self._known[number] = run, ready
            heappush(self._heap, (until, number, run))
            if not self._start() and self._heap[0][1] == number and self._listener is not None:
                self._listener.interrupt()
        return number

    def tell(self, ready: Ready) -> None:
        """Call it for every answer, and at the end."""
        with self._lock:
            self._told = ready
            self._start()

    def _start(self) -> bool:
        """Start the thread; False where it runs."""
        if self._listener is not None or self._closed:
            return False
        self._listener = self._backend.listener()
        threading.Thread(target=self._run, args=(self._listener,), name="moonbox-watch", daemon=True).start()
        return True

    def remove(self, number: int) -> None:
        with self._lock:
            self._known.pop(number, None)
            if len(self._heap) > 2 * len(self._known) + 64:
                self._heap = [each for each in self._heap if each[1] in self._known]
                heapify(self._heap)

    def expect(self, run: str) -> None:
        """The run falls asleep, and `add` follows: answers are heard from now on."""
        with self._lock:
            self.runs.add(run)
            self._start()

    def risen(self, run: str) -> None:
        """The run no longer sleeps here."""
        with self._lock:
            self.runs.discard(run)
            self._early.discard(run)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            listener, self._listener = self._listener, None
        if listener is not None:
            listener.interrupt()
        if self._told is not None:
            self._told()

    def _run(self, listener: Listener) -> None:
        since = time()
        while not self._closed:
            now = time()
            with self._lock:
                due = self._due(now)
                wait = min(self._heap[0][0] - now, _LONGEST) if self._heap else _LONGEST
                listens = bool(self._known) or self._told is not None
            for ready in due:
                ready()
            try:
                answered = listener.wait(max(0.0, wait), _LOOK if listens else _LONGEST)
                if answered is None:  # whatever was answered in the meantime
                    answered, since = self._backend_answered(since), time()
            except (JournalError, ClosedError):
                continue
            if answered and self._told is not None:
                self._told()
            for ready in self._told_of(answered):
                ready()
        listener.close()

    def _told_of(self, answered: list[str]) -> list[Ready]:
        """What waits for these runs."""
        with self._lock:
            told = frozenset(answered)
            numbers = [number for number, (run, _) in self._known.items() if run in told]
            found = [self._known.pop(number) for number in numbers]
            self._early |= (self.runs & told) - {run for run, _ in found}
        return [ready for _, ready in found]

    def _backend_answered(self, since: float) -> list[str]:
        """The runs whose questions were answered, and found answered by no look before."""
        with self._backend.reading() as db:
            rows = db.rows("SELECT id, run FROM questions WHERE answered > ?", (since - _OVERLAP,))
        seen, self._seen = self._seen, {str(id) for id, _ in rows}
        return [str(run) for id, run in rows if id not in seen]

    def _due(self, now: float) -> list[Ready]:
        due = []
        while self._heap and self._heap[0][0] <= now:
            number = heappop(self._heap)[1]
            if number in self._known:
                due.append(self._known.pop(number)[1])
        return due


def _settle(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


class Sleeping:
    """A run that has given its worker back, until a time or an answer."""

    __slots__ = ("_left", "_ready", "_watch", "cancelled", "options", "record", "until")

    def __init__(self, watch: Watch, record: RunRecord, options: RunOptions) -> None:
        self.record = record
        self.options = options
        self.until = 0.0
        self.cancelled = False
        """It does not go on, here or anywhere."""
        self._watch = watch
        self._left = False
        self._ready: Ready | None = None

    def wait(self) -> None:
        """Block until the run can go on; raises ClosedError where its Repl is closed before."""
        signal = Signal()
        number = self._begin(signal.give)
        try:
            signal.take()
        finally:
            self._watch.remove(number)
        turn = self._turn()
        if turn is not None:
            self._watch.rising.wait(turn)

    async def passed(self) -> None:
        """The same, awaited."""
        import asyncio

        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        number = self._begin(partial(soon, loop, partial(_settle, done)))
        try:
            await done
        except asyncio.CancelledError:
            self._check()
            raise
        finally:
            self._watch.remove(number)
        turn = self._turn()
        if turn is not None:
            await self._watch.rising.await_turn(turn)

    @contextmanager
    def rising(self) -> Iterator[None]:
        """The run goes on; then the next one may."""
        try:
            yield
        finally:
            self._watch.rising.leave()

    def leave(self) -> None:
        """Nothing of this process waits for the run any more; it stays asleep in the journal."""
        self._left = True
        self._watch.risen(self.record.id)
        if self._ready is not None:
            self._ready()

    def _begin(self, ready: Ready) -> int:
        self._ready = ready
        number = self._watch.add(self.record.id, self.until, ready)
        if self._left:
            ready()
        return number

    def _turn(self) -> Future[None] | None:
        """What is to be waited for before the run goes on."""
        self._ready = None
        self._check()
        return self._watch.rising.enter()

    def _check(self) -> None:
        if self._left and not self.cancelled:
            raise ClosedError(
                f"the Repl was closed while run {self.record.id} waits; "
                "it goes on in a process that has the journal with recover=True, or with resume"
            )
