"""The asyncio driver: moves one run's bytes and carries out its calls, on the caller's event loop.

Calls that need only a thread are the helper's, together with the run: going back and forth between a thread and the
loop for each of them costs more than most tools. The loop looks on, and takes over when a tool is slow.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from moonbox.errors import ToolError, WorkerError
from moonbox.sandbox.blocking import BlockingExecutor
from moonbox.sandbox.execution import GRACE
from moonbox.sandbox.helper import SLOW, Helper
from moonbox.sandbox.record import cancelled_itself
from moonbox.sandbox.threads import soon, submit_to
from moonbox.worker.link import Unread
from moonbox.worker.protocol import REASON_CANCELLED, REASON_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from concurrent.futures import Future

    from moonbox.sandbox.execution import Execution
    from moonbox.sandbox.record import CallEntry, CallResult
    from moonbox.sandbox.threads import Threads
    from moonbox.worker.link import Link

__all__ = ["AwaitedDriver", "AwaitingExecutor", "until_ended"]

_BREATH = 32  # frames after which the event loop has its turn
_PATIENCE = 0.01  # seconds that a helper waits for a script which computes; its thread is worth more than the detour
_LOOK = 0.02


class AwaitingExecutor:
    """Awaits async tools here; sync ones run in threads."""

    runs_here = False
    cancellations: tuple[type[BaseException], ...] = ()

    def __init__(self, threads: Threads, wake: Callable[[], object]) -> None:
        self._threads = threads
        self._wake = wake

    async def invoke(self, call: Callable[[], Any], entry: CallEntry, *, is_async: bool = False) -> Any:
        if entry.deadline is not None:
            self._wake()  # whoever waits does not know of this deadline yet
        try:
            if is_async:
                return await call()
            result = await self._in_thread(call, entry)
            return await result if inspect.isawaitable(result) else result
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise cancelled_itself(entry.tool) from None

    async def settle(self, value: Any, entry: CallEntry | None = None) -> Any:
        return await value if inspect.isawaitable(value) else value

    async def wait(self, future: Future[None], entry: CallEntry) -> None:
        if entry.deadline is not None:
            self._wake()
        await asyncio.wrap_future(future)

    async def _in_thread(self, call: Callable[[], Any], entry: CallEntry) -> Any:
        running = entry.running
        assert running is not None
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()

        def deliver(result: Any, problem: BaseException | None) -> None:
            if not done.done():  # nobody waits for an abandoned call
                if problem is None:
                    done.set_result(result)
                else:
                    done.set_exception(problem)

        def job() -> None:
            result, problem = None, None
            try:
                result = call()
            except BaseException as raised:  # noqa: BLE001 - handed over to the event loop
                problem = raised if not isinstance(raised, StopIteration) else RuntimeError("StopIteration")
            running.let_go()
            # The future belongs to the loop's thread, so that thread fills it in.
            soon(loop, lambda: deliver(result, problem))

        running.hold()
        try:
            self._threads.submit(job)
        except BaseException:  # no thread could be started
            running.let_go()
            raise
        return await done


class _HelperExecutor(BlockingExecutor):
    """Runs tools in the helper; what they return to be awaited, on the loop that waits for the run."""

    # Raised by the tool itself: nobody cancels a thread.
    cancellations: tuple[type[BaseException], ...] = (asyncio.CancelledError,)

    async def invoke(self, call: Callable[[], Any], entry: CallEntry, *, is_async: bool = False) -> Any:
        try:
            return await super().invoke(call, entry, is_async=is_async)
        except self.cancellations:
            raise cancelled_itself(entry.tool) from None


class AwaitedDriver:
    """Drives one run to its end, on the event loop, which lends the Execution to a helper at times."""

    def __init__(
        self,
        link: Link,
        execution: Execution,
        threads: Threads,
        first: tuple[int, bytes] | BaseException | None = None,
    ) -> None:
        self._link = link
        self._execution = execution
        self._threads = threads
        self._first = first  # what came of the run before it got a driver
        self._tasks: set[asyncio.Task[None]] = set()
        self._unsent = b""
        self._sender: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due: float | None = None
        self._acting = False
        self._failure: Exception | None = None
        self._helper: Helper | None = None  # while the Execution is its
        self._helper_done: asyncio.Future[None] | None = None
        self._slow_tools = False

    async def run(self) -> None:
        """To the end. Cancellation stops the script first and then goes on to the caller."""
        execution, link = self._execution, self._link
        loop = asyncio.get_running_loop()
        execution.clock.changed = lambda: soon(loop, self._act_apart)  # from the thread of whoever had paused it
        try:
            with link:
                try:
                    await self._until_over()
                except asyncio.CancelledError:
                    execution.interrupted = True
                    await self._reclaim()
                    execution.stop(REASON_CANCELLED, monotonic())
                    await self._until_over()
                    raise
        except WorkerError as problem:
            failure = self._failure or problem
            if not isinstance(failure, WorkerError):
                raise failure from None  # something of ours
            closed = link.closed and self._failure is None
            execution.lose(failure, await asyncio.to_thread(link.kill), closed=closed)
            if execution.interrupted:
                raise asyncio.CancelledError from None
        finally:
            await self._clean_up()

    async def _until_over(self) -> None:
        execution, link = self._execution, self._link
        frames = 0
        first, self._first = self._first, None
        if isinstance(first, BaseException):
            if isinstance(first, Unread):
                execution.stop(REASON_TIME, monotonic())
            raise first
        if execution.calls_expected and execution.calls.threads_expected:
            await self._let_help()
        self._act()
        while not execution.over:
            execution.frame(*(first or await link.areceive()))
            first = None
            if execution.starting and not self._tasks and _needs_only_threads(execution):
                await self._let_help()
            if not execution.over:
                self._act()
            frames += 1
            if frames % _BREATH == 0:  # frames that are there already do not suspend: let the timer have its turn
                await asyncio.sleep(0)

    def _act(self) -> None:
        """Do what the Execution asks for."""
        execution = self._execution
        self._acting = False
        if execution.over or self._helper is not None:  # the helper looks at deadlines by itself
            return
        if execution.interrupting:
            self._link.interrupt(execution.number, execution.interrupting)
            execution.interrupting = 0
        while execution.starting:
            entry = execution.starting.popleft()
            task = asyncio.create_task(self._perform(entry))
            entry.cancel = task.cancel
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        data = execution.outgoing()
        if data:
            self._send(data)
        due = execution.deadline()
        if due != self._due:
            self._arm(due)

    def _act_soon(self) -> None:
        """Once for everything that happens in this turn of the loop: answers that are ready together go together."""
        if not self._acting:
            self._acting = True
            asyncio.get_running_loop().call_soon(self._act_apart)

    def _act_apart(self) -> None:
        """From a callback of the loop, where nobody would see what goes wrong: `run` is told."""
        try:
            self._act()
        except Exception as problem:  # noqa: BLE001 - raised by `run`
            self._fail(problem)

    def _fail(self, problem: Exception) -> None:
        self._failure = problem
        self._link.hang_up()  # whoever awaits a frame is told that the worker is gone

    async def _perform(self, entry: CallEntry) -> None:
        execution = self._execution
        executor = AwaitingExecutor(self._threads, self._act_soon)
        execution.answer(entry, *await execution.calls.perform(entry, execution, executor))
        self._act_soon()

    # The helper

    async def _let_help(self) -> None:
        """Let a helper drive the run, until it is over, needs the loop, or a tool is slow."""
        execution = self._execution
        if self._slow_tools or self._sender is not None or execution.streams or execution.stopping:
            return
        self._arm(None)
        loop = asyncio.get_running_loop()
        self._helper_done = done = loop.create_future()
        late: deque[tuple[CallEntry, CallResult]] = deque()
        helper = Helper(
            self._link,
            execution,
            _HelperExecutor(lambda make, ended: submit_to(loop, make, ended), lambda: None),
            returns=lambda run: not _needs_only_threads(run),
            on_end=lambda: soon(loop, lambda: _set_done(done)),
            on_late=lambda: soon(loop, lambda: self._collect(late)),
            late=late,
            patience=_PATIENCE,
        )
        try:
            self._threads.submit(helper.drive)
        except ToolError:  # no thread can be started: each call will say so
            self._slow_tools = True
            return
        self._helper = helper
        looking = loop.call_later(SLOW, self._look, helper, SLOW)
        try:
            await done
        finally:
            looking.cancel()
        self._helper = None
        helper.raise_problem()

    def _look(self, helper: Helper, wait: float) -> None:
        """Take over from a helper whose tool takes its time."""
        if self._helper is not helper or self._helper_done is None or self._helper_done.done():
            return
        seconds = None if helper.ended else helper.tool_seconds()
        if seconds is not None and seconds >= SLOW and helper.take_over():
            self._slow_tools = True
            self._helper_done.set_result(None)
            return
        wait = SLOW if seconds is not None else min(wait * 2, _LOOK)
        asyncio.get_running_loop().call_later(wait, self._look, helper, wait)

    def _collect(self, late: deque[tuple[CallEntry, CallResult]]) -> None:
        """The slow tool of a helper has ended."""
        while late:
            entry, result = late.popleft()
            self._execution.answer(entry, *result)
        self._act_soon()

    async def _reclaim(self) -> None:
        """Whoever waits was cancelled: take the run back from the helper, which stops it at the next chance."""
        helper, execution = self._helper, self._execution
        if helper is None:
            return
        self._link.interrupt(execution.number, REASON_CANCELLED)
        deadline = monotonic() + 2 * GRACE
        try:
            while not helper.leave_to_tool():
                if monotonic() >= deadline:  # the worker does not stop, and the helper waits for it
                    self._link.hang_up()
                await asyncio.sleep(SLOW)
        except asyncio.CancelledError:
            # Cancelled again: nobody waits for the script's end. The helper only moves bytes now, or is inside a tool,
            # so that it leaves the Execution to us in a moment.
            self._link.hang_up()
            while not helper.leave_to_tool():
                sleep(SLOW / 10)
            raise
        finally:
            self._helper = None
        helper.raise_problem()

    # Bytes: what cannot be sent at once is sent by a task that nobody cancels, because half a frame would make the
    # worker useless

    def _send(self, data: bytes) -> None:
        if self._sender is not None:
            self._unsent += data
            return
        try:
            self._unsent = self._link.send_now(data)
        except WorkerError:
            return  # a worker that is gone is noticed where its frames are awaited
        if self._unsent:
            self._sender = asyncio.create_task(self._send_rest())

    async def _send_rest(self) -> None:
        try:
            while self._unsent:
                data, self._unsent = self._unsent, b""
                await self._link.asend(data)
        except WorkerError:
            pass  # as above
        finally:
            self._sender = None

    # Time

    def _arm(self, due: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = None
        if due is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, due - monotonic()), self._on_time)

    def _on_time(self) -> None:
        self._due = None
        if self._execution.over:
            return
        try:
            self._execution.tick(monotonic())
        except WorkerError as problem:
            self._fail(problem)
            return
        self._act_apart()

    async def _clean_up(self) -> None:
        execution = self._execution
        self._arm(None)
        execution.clock.changed = None
        if execution.interrupted and not execution.over:  # cancelled again
            execution.lose(WorkerError("it was left behind"), closed=True)
        execution.leave_calls()
        for task in self._tasks:
            task.cancel()
        if self._sender is not None and execution.over and not execution.worker_lost:
            await asyncio.wait({self._sender}, timeout=GRACE)
            execution.worker_lost = self._sender is not None  # it ended the run and does not read what it was sent
        if execution.worker_lost or not execution.over:
            self._link.hang_up()  # whoever still sends is told
        await until_ended({*self._tasks, *([] if self._sender is None else [self._sender])})


async def until_ended(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Wait for tasks that were cancelled. Those that refuse are left behind after a moment; they keep their slots."""
    if not tasks:
        return
    ended, _ = await asyncio.wait(tasks, timeout=GRACE)
    for task in ended:
        if not task.cancelled():
            task.exception()  # asked for, so that asyncio does not complain about it


def _set_done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _needs_only_threads(execution: Execution) -> bool:
    return all(map(execution.calls.needs_only_thread, execution.starting))
