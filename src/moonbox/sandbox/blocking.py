"""The blocking driver: moves one run's bytes and carries out its calls, from ordinary threads.

The caller's thread drives the run until the script makes its first call. Then a helper thread drives on and runs the
tools itself, so that quick calls cost no switch between threads, while the caller's thread looks on. A script that is
likely to call is the helper's from the start: it wakes up while the worker compiles. When a tool takes its time, the
caller's thread takes the wheel back: the slow tool goes on in the helper, the other calls of the batch get threads of
their own, and the caller answers, times out or abandons them.
"""

from __future__ import annotations

import contextlib
import inspect
import socket
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

from moonbox.errors import WorkerError
from moonbox.sandbox.exchange import Step
from moonbox.worker import protocol
from moonbox.worker.link import Gone, TimedOut, Woken

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future

    from moonbox.sandbox.conversation import Ended
    from moonbox.sandbox.exchange import Exchange, Job
    from moonbox.sandbox.pipeline import Reply
    from moonbox.sandbox.recorder import CallEntry
    from moonbox.sandbox.threads import LoopThread, Threads
    from moonbox.worker.link import Link

__all__ = ["BlockingDrive", "BlockingExecutor", "Lost", "run_to_end"]

GRACE = 0.4  # seconds that a worker has to stop by itself before it is killed
_SLOW = 0.002
_NOT_YET = threading.Condition()  # stands for the one that is made when a helper is needed; nobody waits on it
T = TypeVar("T")
_LOOK = 0.02


class Lost(Exception):
    """The worker is gone. `reason` is why we ended it (0: for what it did, or it ended by itself), `how` says which."""

    def __init__(self, reason: int, problem: WorkerError, status: str, *, cancelled: bool = False) -> None:
        self.reason, self.cancelled = reason, cancelled
        by_itself = isinstance(problem, Gone)
        self.how = f"ended unexpectedly ({status or problem})" if by_itself else f"had to be ended ({problem})"
        super().__init__(self.how)


class BlockingExecutor:
    """Runs tools right here; async ones in the Sandbox's loop thread, waiting for them."""

    def __init__(self, loop: LoopThread, on_deadline: Callable[[], None] = lambda: None) -> None:
        self._loop = loop
        self._on_deadline = on_deadline

    async def invoke(self, call: Callable[[], Any], entry: CallEntry, *, is_async: bool) -> Any:
        if entry.deadline is not None:
            self._on_deadline()
        result = call()
        if is_async or inspect.isawaitable(result):
            future = self._loop.submit(_awaited(result))
            entry.cancel = future.cancel
            return future.result()
        return result

    async def settle(self, value: Any) -> Any:
        result = self._loop.submit(_awaited(value)).result() if inspect.isawaitable(value) else value
        self._on_deadline()  # the run's clock may go on now
        return result

    async def wait(self, future: Future[None]) -> None:
        future.result()


class _Bell:
    """Wakes whoever waits for the worker; made of sockets only when there is somebody to wake.

    Apart from the drive, so that the drive and its executor do not hold each other: a run leaves nothing behind for
    the garbage collector, whose rounds would cost more than the run.
    """

    def __init__(self) -> None:
        self._ends: tuple[socket.socket, socket.socket] | None = None

    def ring(self) -> None:
        if self._ends is not None:
            with contextlib.suppress(OSError):
                self._ends[1].send(b"!")

    def listening(self) -> socket.socket:
        """What to listen to. It has rung: nobody knows what happened before."""
        if self._ends is None:
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            theirs.setblocking(False)
            self._ends = ours, theirs
            self.ring()
        return self._ends[0]

    def close(self) -> None:
        if self._ends is not None:
            for end in self._ends:
                end.close()


class BlockingDrive:
    """Drives one run to its end."""

    def __init__(self, link: Link, exchange: Exchange, threads: Threads, loop: LoopThread) -> None:
        self._link = link
        self._exchange = exchange
        self._clock = exchange.recorder.clock
        self._threads = threads
        self._bell = _Bell()
        self._executor = BlockingExecutor(loop, self._bell.ring)
        self._stopping = 0
        self._stop_until = 0.0
        self._interrupted = False
        self.drained = False
        """The worker has said how the run ended, so that it can be used again."""
        # Shared between the caller's thread and the helper
        self._turn = _NOT_YET
        self._helping = False
        self._tool_since: float | None = None
        self._queue: deque[Job] = deque()
        self._replies: list[Reply] = []
        self._outcome: Ended | BaseException | None = None
        self._done: deque[Reply] = deque()

    def run(self, opening: bytes, *, calls_expected: bool = False) -> Ended:
        """Returns how the run ended, or raises Lost. KeyboardInterrupt stops the script first."""
        try:
            with self._link.in_use():
                self._send(opening)
                try:
                    return self._together(None) if calls_expected else self._alone()
                except KeyboardInterrupt:
                    self._recover()
                    raise
        except WorkerError as problem:
            raise self._lost(problem) from None
        finally:
            self._exchange.abandon_all()
            self._bell.close()

    def stop(self, reason: int) -> None:
        """Stop the script; it has a moment to end by itself. Safe from any thread."""
        if not self._stopping:
            self._stop_until = time.monotonic() + GRACE
            self._stopping = reason
            self._link.stop(self._exchange.number, reason)
            with contextlib.suppress(WorkerError, TimedOut):
                self._link.send(self._exchange.conversation.halt(reason), GRACE / 2)

    def _interrupt(self) -> None:
        self._interrupted = True
        self.stop(protocol.REASON_CANCELLED)

    def _recover(self) -> None:
        """After Ctrl-C, which comes at any moment: stop the script and see its end, so that the worker stays usable."""
        self._interrupt()
        while not self.drained:
            with self._turn:
                if isinstance(self._outcome, BaseException):
                    raise self._outcome
                if self._helping and self._tool_since is None:
                    self._turn.wait(_LOOK)  # the helper drives, and will meet the end
                    continue
                self._helping = False
            self._drain()

    # The caller's thread, before the first call

    def _alone(self) -> Ended:
        while True:
            step = self._next()
            if step.ended is not None:
                return step.ended
            if step.jobs:
                return self._together(step)
            self._reply(list(step.replies))

    def _drain(self) -> None:
        """After a stop: read until the run has ended, so that the worker can be used again."""
        while self._next().ended is None:
            pass

    def _next(self, *, wake: socket.socket | None = None, until: float | None = None) -> Step:
        """The next frame's step. At the deadline the script is stopped; past the grace period the worker is killed."""
        while True:
            rest = self._rest()
            if rest is not None and rest <= 0:  # looked at for every frame: a worker may send them without end
                if self._stopping:
                    raise WorkerError("it did not stop")
                self.stop(protocol.REASON_TIME)
                continue
            timeout = rest if until is None else min(until, rest) if rest is not None else until
            try:
                kind, payload = self._link.receive(timeout, wake)
            except TimedOut:
                if until is not None:
                    raise
                continue
            step = self._exchange.feed(kind, payload)
            if step.halt is not None:
                self.stop(step.halt)
                continue
            if step.ended is not None:
                self.drained = True
            elif self._stopping:
                self._exchange.refuse(step.jobs)
                step = Step()
            return step

    def _rest(self) -> float | None:
        """Seconds until something must be done about the time."""
        return self._stop_until - time.monotonic() if self._stopping else self._clock.remaining()

    def _reply(self, replies: list[Reply]) -> None:
        if replies and not self._stopping:
            self._send(self._exchange.answers(replies))

    def _send(self, data: bytes) -> None:
        rest = self._rest()
        try:  # half a frame would make the worker useless: it has some more time to take the rest
            self._link.send(data, None if rest is None else max(0.0, rest) + GRACE)
        except TimedOut:
            self._stopping = self._stopping or protocol.REASON_TIME
            raise WorkerError("it does not take what it is sent") from None

    def _lost(self, problem: WorkerError) -> Lost:
        """The worker is gone; when we hung up on it, that was to cancel the run."""
        reason = self._stopping or (protocol.REASON_CANCELLED if self._link.closed else 0)
        return Lost(reason, problem, self._kill(), cancelled=self._interrupted)

    # The helper drives, the caller looks on

    def _together(self, step: Step | None) -> Ended:
        self._turn = threading.Condition(threading.Lock())
        self._helping = True
        self._threads.submit(lambda: self._help(step))
        wait = _SLOW
        while True:
            with self._turn:
                if self._outcome is None:
                    self._turn.wait(wait)
                if self._outcome is not None:
                    break
                since = self._tool_since
                if since is not None and time.monotonic() - since >= _SLOW:
                    self._helping = False
                    break
                wait = _SLOW if since is not None else min(wait * 2, _LOOK)
                if self._stopping and time.monotonic() > self._stop_until + GRACE:
                    self._link.ending.kill()
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome if self._outcome is not None else self._in_charge()

    def _help(self, step: Step | None) -> None:
        """In the helper: run tools and drive, from that step on, until the run ends or the caller takes over."""
        outcome: Ended | BaseException
        try:
            with self._link.in_use():
                if step is None:
                    step = self._next()
                while step.ended is None:
                    self._replies = list(step.replies)
                    self._queue.extend(step.jobs)
                    if not self._run_queue():
                        return
                    self._reply(self._replies)
                    step = self._next()
            outcome = step.ended
        except BaseException as problem:  # noqa: BLE001 - handed over to the caller's thread, which raises it
            outcome = problem
        with self._turn:
            self._outcome = outcome
            self._turn.notify()

    def _run_queue(self) -> bool:
        """Run the queued calls one after another; False when the caller has taken over meanwhile."""
        job = self._take_job()
        while job is not None:
            reply = self._perform(job)
            with self._turn:
                if not self._helping:
                    self._tool_since = None
                    self._finish(reply)
                    return False
                self._replies.append(reply)
                job = self._next_job()
        return True

    def _take_job(self) -> Job | None:
        with self._turn:
            return self._next_job()

    def _next_job(self) -> Job | None:
        """The lock is held."""
        if not self._queue:
            self._tool_since = None
            return None
        self._tool_since = time.monotonic()
        return self._queue.popleft()

    # The caller is in charge: every call has a thread of its own

    def _in_charge(self) -> Ended:
        replies, self._replies = self._replies, []
        jobs = list(self._queue)
        self._queue.clear()
        self._reply(replies)
        self._start(jobs)
        bell = self._bell.listening()
        while True:
            try:
                step = self._next(wake=bell, until=self._until_tool_timeout())
                if step.ended is not None:
                    return step.ended
                self._exchange.drop(step.dropped)
                self._reply(list(step.replies))
                self._start(step.jobs)
            except (TimedOut, Woken):
                self._collect()

    def _start(self, jobs: list[Job] | tuple[Job, ...]) -> None:
        for job in jobs:
            self._threads.submit(lambda job=job: self._finish(self._perform(job)))  # type: ignore[misc]

    def _collect(self) -> None:
        """Answer what has been done, and what has run out of its own time."""
        replies = []
        while self._done:
            reply = self._done.popleft()
            if reply[0] in self._exchange.entries:
                replies.append(reply)
        now = time.monotonic()
        for entry in list(self._exchange.entries.values()):
            if entry.deadline is not None and now >= entry.deadline:
                late = self._exchange.timed_out(entry)
                if late is not None:
                    replies.append(late)
        if not self._stopping:
            self._reply(replies)

    def _until_tool_timeout(self) -> float | None:
        deadlines = [
            entry.deadline
            for entry in list(self._exchange.entries.values())
            if entry.deadline is not None and entry.open
        ]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _perform(self, job: Job) -> Reply:
        return run_to_end(
            self._exchange.pipeline.perform(job.request, job.entry, self._exchange.recorder, self._executor)
        )

    def _finish(self, reply: Reply) -> None:
        self._done.append(reply)
        self._bell.ring()

    def _kill(self) -> str:
        how = self._link.ending.kill()
        self._link.close()
        return how


def run_to_end(coroutine: Coroutine[Any, Any, T]) -> T:
    """Drive a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise RuntimeError("a blocking call tried to suspend")


async def _awaited(value: Any) -> Any:
    return await value
