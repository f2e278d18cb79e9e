"""The blocking driver: moves one run's bytes and performs its calls, from ordinary threads.

One thread at a time drives the run and touches its Execution; it holds the lock `_owner`. The caller's thread begins.
Every call is performed in a tool thread. When one call is all that the script waits for, the driving thread gives the
run up; the tool thread that has performed the call takes it and drives on. So a sequence of calls costs no switch of
threads, and the caller's thread is always free to watch the clock. It takes the run back from a tool that is slow.

Where the latest run of the Repl has made such a call, and ended a moment ago, a tool thread drives the next run from
its beginning and makes its record: what one thread has used is in the caches of one processor.
"""

from __future__ import annotations

from collections import deque
from threading import Event, RLock, get_ident
from time import monotonic, sleep
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from moonbox.errors import ToolError, WorkerError
from moonbox.runs.call_entry import failure
from moonbox.runs.calls import run_to_end
from moonbox.runs.execution import GRACE, Execution
from moonbox.threads import Signal
from moonbox.values import ORDINARY
from moonbox.worker.link import Link, Unread
from moonbox.worker.protocol import REASON_CANCELLED, REASON_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future

    from moonbox.runs.call_entry import CallEntry, CallResult
    from moonbox.runs.decisions import ToolCall
    from moonbox.runs.services import Services
    from moonbox.runs.slots import Slots

SLOW = 0.002
"""Seconds after which the caller's thread takes the run back from a tool."""
WARM = 0.05
"""Seconds after a run with calls in which a tool thread drives the next one from its beginning."""
_LOOK = 0.02


class BlockingExecutor:
    """Runs tools in the current thread; async ones on the event loop of another thread, waiting for them.

    submit         runs there the coroutine that it makes; its second argument is called when that has really ended
    wake           makes the driving thread read the deadlines again
    interruptible  the thread is that of the run's caller, which Ctrl-C interrupts
    """

    def __init__(
        self,
        submit: Callable[[Any, Callable[[], object] | None], Future[Any]],
        wake: Callable[[], object],
        *,
        interruptible: bool = False,
    ) -> None:
        self._submit = submit
        self._wake = wake
        self._interruptible = interruptible

    def is_cancelled(self, problem: BaseException) -> bool:
        return self._interruptible and isinstance(problem, KeyboardInterrupt)  # no task performs the call

    async def invoke(self, call: Callable[[], Any], entry: CallEntry, *, is_async: bool = False) -> Any:
        if entry.deadline is not None:
            self._wake()
        result = call()
        if is_async or (type(result) not in ORDINARY and _is_awaitable(result)):
            assert entry.running is not None
            return self._result(result, entry, entry.running.hold(entry))
        return result

    async def settle(self, value: Any) -> Any:
        return self._result(value, None, None) if _is_awaitable(value) else value

    async def pause(self, seconds: float, entry: CallEntry) -> None:
        stop = Event()
        entry.cancel = stop.set
        if not entry.left:  # since a moment ago, when there was nothing to cancel
            stop.wait(seconds)

    async def ask(self, approve: Callable[[ToolCall], Any], call: ToolCall, entry: CallEntry) -> Any:
        self._wake()  # the run may give its worker back while it waits for a person
        answer = approve(call)
        return self._result(answer, entry, None) if _is_awaitable(answer) else answer

    async def wait(self, slots: Slots, turn: Future[None], entry: CallEntry) -> None:
        if entry.deadline is not None:
            self._wake()
        slots.wait(turn)

    def _result(self, awaitable: Any, entry: CallEntry | None, ended: Callable[[], object] | None) -> Any:
        try:
            future = self._submit(lambda: _awaited(awaitable), ended)
        except ToolError:  # the Sandbox has been closed
            if isinstance(awaitable, CoroutineType):
                awaitable.close()
            if ended is not None:
                ended()
            raise
        if entry is not None:
            entry.cancel = future.cancel
            if entry.left:  # since a moment ago, when there was nothing to cancel
                future.cancel()
        return future.result()


class BlockingDriver:
    """Drives one run: to its end with `run`, or from batch to batch of calls with `advance` and `carry_out`."""

    def __init__(
        self, link: Link, execution: Execution, services: Services, conclude: Callable[[Execution], object]
    ) -> None:
        """A tool thread that drives the run to its end calls `conclude`."""
        self._link = link
        self._execution = execution
        self._services = services
        self._conclude = conclude
        self._executor: BlockingExecutor | None = None  # made for the first call: many runs have none
        execution.clock.changed = link.wake
        self._caller = get_ident()
        self._owner = RLock()  # held by the thread that drives a run, and by the caller's thread for good at its end
        self._ended: Signal | None = None  # given by a tool thread that has driven the run to its end
        self._problem: BaseException | None = None  # what ended that thread's driving
        self._in_tool_since = 0.0  # since when no thread drives the run, because its only call is being performed
        self._done: deque[tuple[CallEntry, CallResult]] = deque()  # appended to by tool threads

    def run(self) -> None:
        """To the end. KeyboardInterrupt stops the script first and then goes on to the caller."""
        self._owner.acquire()
        self._guarded(self._drive)

    def advance(self) -> None:
        """Until the script has made calls, or the run is over."""
        self._guarded(self._step_until_calls)

    def carry_out(self, entries: Iterable[CallEntry]) -> None:
        """Perform these calls; they have their results, or have timed out, when this returns."""
        self._guarded(lambda: self._carry_out(list(entries)))

    def stop(self, reason: int) -> None:
        """Stop the script and receive its end."""
        self._guarded(lambda: self._stop_and_drain(reason))

    def _guarded(self, work: Callable[[], None]) -> None:
        execution, link = self._execution, self._link
        try:
            with link:
                try:
                    work()
                except KeyboardInterrupt:
                    execution.interrupted = True
                    self._reclaim()
                    self._stop_and_drain(REASON_CANCELLED)
                    raise
        except WorkerError as problem:
            closed = link.closed
            execution.lose(problem, link.kill(), closed=closed, host_lost=link.host_lost)
            if execution.moving:
                self._drain()
            if execution.interrupted:
                raise KeyboardInterrupt from None
        finally:
            if link.bell is not None:
                link.stop_waking()
            if execution.interrupted and not execution.over:  # a second Ctrl-C
                left = WorkerError("the caller stopped waiting; the worker was killed")
                execution.lose(left, link.kill(), closed=True)

    # The caller's thread

    def _drive(self) -> None:
        if monotonic() < self._execution.calls.warm_until and self._hand_over(None):
            self._watch()
        while (entry := self._until_lone_call()) is not None:
            if self._hand_over(entry):
                self._watch()

    def _hand_over(self, entry: CallEntry | None) -> bool:
        """Let a tool thread perform the call, if any, and then drive the run; False where no thread can be started."""
        self._ended = self._ended or Signal()
        self._in_tool_since = monotonic()
        if entry is not None:
            entry.performing = True
        self._owner.release()
        try:
            self._services.threads.submit(lambda: self._perform(entry))
        except ToolError as problem:
            self._owner.acquire()
            if entry is not None:
                self._execution.answer(entry, *failure(problem))
            return False
        return True

    def _watch(self) -> None:
        """Until a tool thread has driven the run to its end, or a tool is slow: then this thread drives."""
        assert self._ended is not None
        wait = SLOW
        while not self._ended.take(wait):
            if monotonic() - self._in_tool_since >= SLOW and self._owner.acquire(blocking=False):
                break
            wait = min(wait * 2, _LOOK)
        else:
            self._owner.acquire()
        self._raise_problem()

    def _raise_problem(self) -> None:
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem

    def _carry_out(self, entries: list[CallEntry]) -> None:
        self._link.let_wake()
        for entry in entries:
            self._start(entry, drives=False)
        while not self._execution.over and any(entry.open for entry in entries):
            self._step()
            self._collect()

    def _step_until_calls(self) -> None:
        execution = self._execution
        while not execution.over and not execution.starting:
            self._step()

    def _stop_and_drain(self, reason: int) -> None:
        self._execution.stop(reason, monotonic())
        while not self._execution.over:
            self._step()

    def _drain(self) -> None:
        """The worker's host is gone: take the results of the calls under way, which are not made again elsewhere."""
        execution = self._execution
        opened = execution.ledger.open
        while any(entry.performing for entry in opened.values()) and not execution.stopping:
            sleep(_LOOK)
            self._collect()
            execution.tick(monotonic())
        execution.move()

    # The tool threads

    def _perform(self, entry: CallEntry | None, *, drives: bool = True) -> Signal | None:
        """Perform the call, if any; then drive the run, if no other thread does, and perform its next calls."""
        execution, done = self._execution, None
        # The link's method, not one of ours: no reference cycle keeps the driver for the garbage collector.
        executor = self._executor = self._executor or BlockingExecutor(self._services.loop.submit, self._link.wake)
        while True:
            if entry is not None:
                done = entry, run_to_end(execution.calls.perform(entry, execution.record, executor))
            if not drives or not self._owner.acquire(blocking=False):
                if done is not None:
                    self._done.append(done)
                    self._link.wake()  # the driving thread takes the result
                return None
            try:
                with self._link:
                    if done is not None:
                        execution.answer(done[0], *done[1])
                    entry = self._until_lone_call()
                if execution.over:
                    execution.calls.warm_until = 0.0 if done is None else monotonic() + WARM
                    self._conclude(execution)
            except BaseException as raised:  # noqa: BLE001 - the caller's thread raises it
                self._problem, entry = raised, None
            self._in_tool_since = monotonic()
            self._owner.release()
            if entry is None:
                return self._ended

    # The thread that drives

    def _until_lone_call(self) -> CallEntry | None:
        """Until one call is all that the script waits for, which is returned; None when the run is over."""
        execution, link, done = self._execution, self._link, self._done
        starting, opened = execution.ledger.starting, execution.ledger.open
        while not (execution.over or execution.sleeping):
            if done:
                self._collect()
                continue  # that may be the end: a person has declined the script
            if execution.interrupted:
                execution.stop(REASON_CANCELLED, monotonic())
            if starting and not execution.stopping and starting[0].only_computes:
                self._perform_here(starting.popleft())
                continue
            if len(starting) == 1 == len(opened) and not execution.stopping:
                if link.bell is not None:
                    link.stop_waking()
                return starting.popleft()
            if opened:
                link.let_wake()
                while starting:
                    self._start(starting.popleft())
                self._collect()  # of calls that ended before `wake` had an effect
            self._step()
        return None

    def _perform_here(self, entry: CallEntry) -> None:
        """Perform the call of a tool that only computes in the thread that drives the run."""
        execution, interruptible = self._execution, get_ident() == self._caller
        executor = BlockingExecutor(self._services.loop.submit, self._link.wake, interruptible=interruptible)
        entry.performing = True
        execution.answer(entry, *run_to_end(execution.calls.perform(entry, execution.record, executor)))

    def _start(self, entry: CallEntry, *, drives: bool = True) -> None:
        """Perform the call in a tool thread. Where none can be started, that is its answer."""
        entry.performing = True
        try:
            self._services.threads.submit(lambda: self._perform(entry, drives=drives))
        except ToolError as problem:
            self._execution.answer(entry, *failure(problem))

    def _collect(self) -> None:
        while self._done:
            entry, result = self._done.popleft()
            self._execution.answer(entry, *result)

    def _step(self) -> None:
        """Send what is to be sent, take a frame, and do what is due."""
        execution, link = self._execution, self._link
        if execution.interrupting:
            link.interrupt(execution.record.number, execution.interrupting)
            execution.interrupting = 0
        data = execution.outgoing()  # in a replay, the script may begin to wait with it
        deadline = execution.deadline()
        journal = execution.record.journal
        until = deadline if journal is None else journal.sooner(deadline)
        if execution.starting:  # a replay has come to calls that are to be made
            until = monotonic()
        try:
            frame = link.exchange(data, until, None if deadline is None else deadline + GRACE)
        except Unread:
            execution.stop(REASON_TIME, monotonic())
            raise
        if frame is not None:
            execution.frame(*frame)
            if execution.over:
                return
        if journal is not None and journal.is_due(starting=bool(execution.starting)):
            journal.put(journal.take())
        if deadline is not None:  # checked after every frame: a worker may send them without end
            now = monotonic()
            if now >= deadline:
                execution.tick(now)

    # After Ctrl-C, which comes at any moment, in the caller's thread

    def _reclaim(self) -> None:
        """Take the run back from a tool thread, if one drives it."""
        if self._owner.acquire(blocking=False):  # this thread drives, or a tool is being performed
            return
        self._link.interrupt(self._execution.record.number, REASON_CANCELLED)
        deadline = monotonic() + 2 * GRACE
        while not self._owner.acquire(timeout=_LOOK):
            late = monotonic() - deadline
            if late >= 0:  # the worker does not stop, and the tool thread waits for it
                self._link.hang_up()
            if late >= GRACE:
                raise WorkerError("it did not stop")
        self._raise_problem()


def _is_awaitable(value: Any) -> bool:
    from inspect import isawaitable  # slow to load, and a run may call nothing

    return isawaitable(value)


async def _awaited(value: Any) -> Any:
    return await value
