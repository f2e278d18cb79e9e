"""The blocking driver: moves one run's bytes and carries out its calls, from ordinary threads.

The caller's thread drives the run until the script makes its first call. Then a helper thread drives on and runs the
tools itself, while the caller's thread looks on. A script that is likely to call is the helper's from the start: it
wakes up while the worker compiles. When a tool takes its time, the caller's thread takes over: the other calls of the
batch get threads of their own, and the caller answers, times out or abandons them.
"""

from __future__ import annotations

from collections import deque
from time import monotonic
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from moonbox.errors import ToolError, WorkerError
from moonbox.frozen import NATIVE
from moonbox.sandbox.execution import GRACE
from moonbox.sandbox.helper import SLOW, Helper, send, step
from moonbox.sandbox.record import failure
from moonbox.sandbox.threads import Signal
from moonbox.tools.results import to_tool_error
from moonbox.values import ORDINARY
from moonbox.worker.link import Unread
from moonbox.worker.protocol import REASON_CANCELLED, REASON_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future

    from moonbox.sandbox.execution import Execution
    from moonbox.sandbox.record import CallEntry, CallResult
    from moonbox.sandbox.threads import LoopThread, PlainSignal, Threads
    from moonbox.worker.link import Link

__all__ = ["BlockingDriver", "BlockingExecutor"]

_LOOK = 0.02


class BlockingExecutor:
    """Runs tools right here; async ones on an event loop of another thread, waiting for them.

    submit   runs there the coroutine that it makes; its second argument is called when that has really ended
    """

    __slots__ = ("_submit", "_wake")
    runs_here = True
    cancellations: tuple[type[BaseException], ...] = ()

    def __init__(
        self, submit: Callable[[Any, Callable[[], object] | None], Future[Any]], wake: Callable[[], object]
    ) -> None:
        self._submit = submit
        self._wake = wake

    async def invoke(self, call: Callable[[], Any], entry: CallEntry, *, is_async: bool = False) -> Any:
        if entry.deadline is not None:
            self._wake()  # whoever waits does not know of this deadline yet
        result = call()
        if is_async or (type(result) not in ORDINARY and _is_awaitable(result)):
            assert entry.running is not None
            entry.running.hold()
            future = self._start(result, entry.running.let_go)
            entry.cancel = future.cancel
            return future.result()
        return result

    async def settle(self, value: Any, entry: CallEntry | None = None) -> Any:
        if not _is_awaitable(value):
            return value
        future = self._start(value, None)
        if entry is not None:
            entry.cancel = future.cancel
            if entry.left:
                future.cancel()
        return future.result()

    def _start(self, awaitable: Any, ended: Callable[[], object] | None) -> Future[Any]:
        try:
            return self._submit(lambda: _awaited(awaitable), ended)
        except ToolError:  # the Sandbox was closed meanwhile
            if isinstance(awaitable, CoroutineType):
                awaitable.close()
            if ended is not None:
                ended()
            raise

    async def wait(self, future: Future[None], entry: CallEntry) -> None:
        if entry.deadline is not None:
            self._wake()
        future.result()


_make_executor: Any = BlockingExecutor
if NATIVE is not None:
    _make_executor = NATIVE.maker(BlockingExecutor, BlockingExecutor.__slots__, BlockingExecutor)


class BlockingDriver:
    """Drives one run: to its end with `run`, or from batch to batch of calls with `advance` and `carry_out`."""

    __slots__ = (
        "_done", "_execution", "_executor", "_first", "_helper", "_helper_ends", "_link", "_loop", "_threads",
    )  # fmt: skip

    def __init__(
        self,
        link: Link,
        execution: Execution,
        threads: Threads,
        loop: LoopThread,
        first: tuple[int, bytes] | BaseException | None = None,
    ) -> None:
        self._link = link
        self._execution = execution
        self._first = first  # what came of the run before it got a driver
        self._threads = threads
        self._loop = loop
        self._executor: BlockingExecutor | None = None
        # The link's bell, not a method of ours: nothing here holds the driver, so that a run leaves nothing behind for
        # the garbage collector, whose rounds would cost more than the run.
        execution.clock.changed = link.wake
        self._done: deque[tuple[CallEntry, CallResult]] = deque()  # appended to by the threads that run tools
        self._helper: Helper | None = None
        self._helper_ends: PlainSignal | None = None  # given when it has

    def run(self) -> None:
        """To the end. KeyboardInterrupt stops the script first and then goes on to the caller."""
        self._guarded(self._drive_with_helper if self._execution.calls_expected else self._drive)

    def advance(self) -> None:
        """Until the script has made calls, or the run is over."""
        self._guarded(self._step_until_calls)

    def carry_out(self, entries: Iterable[CallEntry]) -> None:
        """Run these calls; they have their results, or have timed out, when this returns."""
        self._guarded(lambda: self._carry_out(list(entries)))

    def stop(self, reason: int) -> None:
        """Stop the script and see its end."""
        self._guarded(lambda: self._stop_and_drain(reason))

    def _guarded(self, work: Callable[[], None]) -> None:
        execution, link = self._execution, self._link
        try:
            with link:
                try:
                    work()
                except KeyboardInterrupt:
                    execution.interrupted = True
                    self._recover()
                    raise
        except WorkerError as problem:
            closed = link.closed
            execution.lose(problem, link.kill(), closed=closed)
            if execution.interrupted:
                raise KeyboardInterrupt from None
        finally:
            link.stop_waking()
            if execution.interrupted and not execution.over:  # a second Ctrl-C
                execution.lose(WorkerError("it was left behind"), link.kill(), closed=True)

    # The caller's thread alone

    def _drive(self) -> None:
        execution, first = self._execution, self._first
        if isinstance(first, BaseException):
            self._first = None
            if isinstance(first, Unread):
                execution.stop(REASON_TIME, monotonic())
            raise first
        if first is not None:
            execution.frame(*first)
        while not execution.over and not execution.starting:
            self._step()
        if not execution.over:
            self._drive_with_helper()

    def _step_until_calls(self) -> None:
        execution = self._execution
        while not execution.over and not execution.starting:
            self._step()

    def _step(self) -> None:
        step(self._link, self._execution)

    def _stop_and_drain(self, reason: int) -> None:
        self._execution.stop(reason, monotonic())
        while not self._execution.over:
            self._step()

    # The helper drives, the caller looks on

    def _drive_with_helper(self) -> None:
        execution = self._execution
        while not execution.over:
            send(self._link, execution)
            helped = self._let_help()
            if not execution.over:
                # After a slow tool, on to the next single call: that the machine was busy must not slow all the rest
                # down.
                self._take_charge(for_good=not helped)

    def _let_help(self) -> bool:
        """Until the run is over or ours to drive; False where no thread can be started."""
        self._helper_ends = ends = Signal()
        link = self._link
        self._helper = helper = Helper.of(
            link, self._execution, self._tool_executor(), _waits_together, link.wake, self._done, ends
        )
        wait = SLOW
        try:
            ended = self._threads.submit(helper.drive, ends, wait)
        except ToolError:  # each call will say so, and the script goes on
            helper.in_charge = False
            return False
        while not ended:
            seconds = helper.tool_seconds()
            if seconds is not None and seconds >= SLOW and helper.take_over():
                break
            wait = SLOW if seconds is not None else min(wait * 2, _LOOK)
            ended = ends.take(wait)
        helper.raise_problem()
        return True

    # The caller is in charge: every call has a thread of its own

    def _take_charge(self, *, for_good: bool) -> None:
        """To the end, or until one call is all that the script waits for."""
        self._link.let_wake()
        while not self._execution.over:
            if not for_good and self._execution.waits_for_one and not self._done:
                self._link.stop_waking()
                return
            self._start(self._take_starting())
            self._collect()
            self._step()

    def _carry_out(self, entries: list[CallEntry]) -> None:
        self._link.let_wake()
        self._start(entries)
        while not self._execution.over and any(entry.open for entry in entries):
            self._step()
            self._collect()

    def _take_starting(self) -> list[CallEntry]:
        starting = self._execution.starting
        entries = list(starting)
        starting.clear()
        return entries

    def _start(self, entries: Iterable[CallEntry]) -> None:
        calls = self._execution.calls
        for entry in entries:
            try:
                if self._execution.intents is None and calls.needs_only_loop(entry):
                    self._await(entry)
                    continue
                self._threads.submit(lambda entry=entry: self._perform_apart(entry))  # type: ignore[misc]
            except ToolError as problem:
                self._execution.answer(entry, *failure(problem))

    def _await(self, entry: CallEntry) -> None:
        """On the event loop of another thread: many calls that wait need no thread each."""
        from moonbox.sandbox.awaited import AwaitingExecutor  # slow to load, but asyncio is needed now

        execution = self._execution
        executor = AwaitingExecutor(self._threads, self._link.wake)

        def finish(future: Future[CallResult]) -> None:
            if not future.cancelled():  # else nobody waits for it any more
                problem = future.exception()
                result = future.result() if problem is None else failure(to_tool_error(problem, entry.tool))
                self._done.append((entry, result))
                self._link.wake()

        future = self._loop.submit(lambda: execution.calls.perform(entry, execution, executor))
        entry.cancel = future.cancel
        future.add_done_callback(finish)

    def _perform_apart(self, entry: CallEntry) -> None:
        """In a thread of its own. A deque and the bell hand the result over: the Execution is not for many threads."""
        self._done.append((entry, self._perform(entry)))
        self._link.wake()

    def _collect(self) -> None:
        while self._done:
            entry, result = self._done.popleft()
            self._execution.answer(entry, *result)

    def _perform(self, entry: CallEntry) -> CallResult:
        return self._execution.calls.perform_here(entry, self._execution, self._tool_executor())

    def _tool_executor(self) -> BlockingExecutor:
        executor = self._executor
        if executor is None:  # it has no state: two threads that make one each do no harm
            executor = self._executor = _make_executor(self._loop.submit, self._link.wake)
        return executor

    # After Ctrl-C, which comes at any moment, in the caller's thread

    def _recover(self) -> None:
        """Stop the script and see its end, so that the worker stays usable."""
        execution = self._execution
        helper = self._helper
        if helper is not None and self._helper_ends is not None:
            if helper.in_charge and not helper.ended:
                self._link.interrupt(execution.number, REASON_CANCELLED)
                self._wait_for_helper(helper, self._helper_ends, monotonic() + 2 * GRACE)
            helper.raise_problem()
        self._stop_and_drain(REASON_CANCELLED)

    def _wait_for_helper(self, helper: Helper, ends: PlainSignal, deadline: float) -> None:
        """Until it has met the end of the run, or is in a tool, where it is left behind."""
        while not helper.leave_to_tool():
            late = monotonic() - deadline
            if late >= 0:  # the worker does not stop, and the helper waits for it
                self._link.hang_up()
            if late >= GRACE:
                raise WorkerError("it did not stop")
            ends.take(_LOOK)


def _waits_together(execution: Execution) -> bool:
    """Whether a batch is of asynchronous tools, which wait: one after another they would take long."""
    if len(execution.starting) < 2:
        return False
    tool = execution.calls.toolbox.get(execution.starting[0].tool)
    return tool is not None and tool.is_async


def _is_awaitable(value: Any) -> bool:
    from inspect import isawaitable  # slow to load, and a run may call nothing

    return isawaitable(value)


async def _awaited(value: Any) -> Any:
    return await value
