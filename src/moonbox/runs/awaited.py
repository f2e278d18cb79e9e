"""The asyncio driver: moves one run's bytes and performs its calls, on the caller's event loop."""

from __future__ import annotations

import asyncio
import inspect
from time import monotonic
from typing import TYPE_CHECKING, Any

from moonbox.errors import WorkerError
from moonbox.runs.execution import GRACE
from moonbox.threads import asked, in_thread, soon, to_its_end, unbroken
from moonbox.worker.protocol import REASON_CANCELLED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from concurrent.futures import Future

    from moonbox.runs.call_entry import CallEntry
    from moonbox.runs.decisions import ToolCall
    from moonbox.runs.execution import Execution
    from moonbox.runs.recording import RunRecorder
    from moonbox.runs.slots import Slots
    from moonbox.threads import Threads
    from moonbox.worker.link import Link

_FRAMES_IN_A_ROW = 32  # after so many frames that are there already, other tasks run


class AwaitingExecutor:
    """Awaits async tools on the current loop; sync ones run in threads.

    wake     makes the driver read the deadlines again
    """

    def __init__(self, threads: Threads, wake: Callable[[], object]) -> None:
        self._threads = threads
        self._wake = wake

    def is_cancelled(self, problem: BaseException) -> bool:
        task = asyncio.current_task()
        return isinstance(problem, asyncio.CancelledError) and (task is None or task.cancelling() > 0)

    async def invoke(self, call: Callable[[], Any], entry: CallEntry, *, is_async: bool = False) -> Any:
        if entry.deadline is not None:
            self._wake()
        if is_async:
            return await call()
        if entry.only_computes:
            return call()
        assert entry.running is not None
        result = await in_thread(call, start=self._threads.submit, ended=entry.running.hold(entry))
        return await result if inspect.isawaitable(result) else result

    async def settle(self, value: Any) -> Any:
        return await value if inspect.isawaitable(value) else value

    async def pause(self, seconds: float, entry: CallEntry) -> None:
        await asyncio.sleep(seconds)

    async def ask(self, approve: Callable[[ToolCall], Any], call: ToolCall, entry: CallEntry) -> Any:
        self._wake()  # the run may give its worker back while it waits for a person
        return await asked(approve, call, self._threads.submit)

    async def wait(self, slots: Slots, turn: Future[None], entry: CallEntry) -> None:
        if entry.deadline is not None:
            self._wake()
        await slots.await_turn(turn)


class AwaitedDriver:
    """Drives one run to its end. Each call is a task of its own; frames are taken in a callback of the loop."""

    def __init__(self, link: Link, execution: Execution, threads: Threads) -> None:
        self._link = link
        self._execution = execution
        self._threads = threads
        self._tasks: dict[CallEntry, asyncio.Task[None]] = {}
        self._unsent = b""
        self._sender: asyncio.Task[None] | None = None
        self._writer: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due: float | None = None
        self._act_scheduled = False
        self._over: asyncio.Future[None]  # done when the run is over
        self._failure: Exception | None = None

    async def run(self) -> None:
        """To the end. Cancellation stops the script first and then goes on to the caller."""
        execution, link = self._execution, self._link
        cancelled: asyncio.CancelledError | None = None
        loop = asyncio.get_running_loop()
        execution.clock.changed = lambda: soon(loop, self._act_in_callback)  # from the thread that had paused it
        try:
            with link:
                try:
                    await self._until_over()
                except asyncio.CancelledError as problem:
                    cancelled = problem
                    execution.interrupted = True
                    execution.stop(REASON_CANCELLED, monotonic())
                    await to_its_end(self._until_over())
                    raise
        except WorkerError as problem:
            if execution.sleeping and self._failure is None:
                return
            failure = self._failure or problem
            if not isinstance(failure, WorkerError):
                raise failure from None  # a defect of ours
            closed, status = link.closed and self._failure is None, ""
            try:
                status = await unbroken(link.kill)
            except asyncio.CancelledError as problem:
                cancelled = problem
            execution.lose(failure, status, closed=closed, host_lost=link.host_lost)
            if execution.moving and cancelled is None:
                await self._drain()
            if cancelled is not None:
                raise cancelled from None
        finally:
            self._set_timer(None)
            execution.clock.changed = None
            execution.ledger.leave_all()
            if self._writer is not None or self._sender is not None or self._tasks:
                await to_its_end(self._clean_up())

    async def _until_over(self) -> None:
        execution, link, loop = self._execution, self._link, asyncio.get_running_loop()
        over = self._over = loop.create_future()
        self._act()
        self._take_frames()  # what had arrived before a cancellation, or arrives at once
        if over.done():
            return
        link.start_reading(loop, self._on_arrival)
        try:
            if execution.asking is not None:
                await self._until_allowed(over)
                self._act()
            if not execution.over:
                await over
        finally:
            link.stop_reading(loop)
            if not over.cancel() and not over.cancelled():
                over.exception()  # retrieved, so that asyncio does not log it

    def _on_arrival(self) -> None:
        """There is something to take from the worker, or it is gone."""
        try:
            self._take_frames()
        except Exception as problem:  # noqa: BLE001 - raised by `_until_over`
            if not self._over.done():
                self._over.set_exception(problem)

    def _take_frames(self) -> None:
        """Take what has arrived, and do what the Execution asks for after each frame."""
        execution, link, over = self._execution, self._link, self._over
        if over.done():
            return
        has_taken = False
        for _ in range(_FRAMES_IN_A_ROW):
            while (frame := link.next_frame()) is None:  # those before the end of a worker are taken first
                if has_taken or not link.take():
                    return
                has_taken = True
            if execution.asking is not None:
                raise WorkerError("the worker sent a frame before it was asked for anything")
            execution.frame(*frame)
            if execution.over:
                over.set_result(None)
                return
            self._act()
        asyncio.get_running_loop().call_soon(self._on_arrival)

    async def _until_allowed(self, over: asyncio.Future[None]) -> None:
        """Until a person has said whether the script may run. The worker has nothing to say before, but it may end."""
        while self._execution.asking is not None and not self._execution.over:
            await asyncio.wait({over, *self._under_way()}, return_when=asyncio.FIRST_COMPLETED)
            if over.done():
                over.result()

    def _under_way(self) -> set[asyncio.Task[None]]:
        """The tasks of calls, and the one that writes to the journal."""
        tasks = {task for task in self._tasks.values() if not task.done()}
        return tasks if self._writer is None else {self._writer, *tasks}

    async def _drain(self) -> None:
        """The worker's host is gone: take the results of the calls under way, which are not made again elsewhere."""
        execution = self._execution
        while (tasks := self._under_way()) and not execution.stopping:
            due = execution.deadline()
            await asyncio.wait(tasks, timeout=None if due is None else max(0.0, due - monotonic()))
            execution.tick(monotonic())
        execution.move()

    def _is_over(self) -> bool:
        """Whether nothing more is sent or started here."""
        return self._execution.over or self._execution.moving or self._execution.sleeping

    def _act(self) -> None:
        """Do what the Execution asks for."""
        execution = self._execution
        self._act_scheduled = False
        if self._is_over():
            return
        if execution.interrupting:
            self._link.interrupt(execution.record.number, execution.interrupting)
            execution.interrupting = 0
        journal = execution.record.journal
        if journal is None and execution.starting:
            self._start(len(execution.starting))
        if execution.asking is None and (data := execution.outgoing()):
            self._send(data)
        due = execution.deadline()
        if journal is not None and self._writer is None:
            if execution.starting or journal.is_due(starting=False):
                self._writer = asyncio.create_task(self._write_ahead(journal))
            else:
                due = journal.sooner(due)
        if due != self._due:
            self._set_timer(due)

    def _start(self, most: int) -> None:
        starting = self._execution.starting
        for _ in range(min(most, len(starting))):
            entry = starting.popleft()
            entry.performing = True
            task = self._tasks[entry] = asyncio.create_task(self._perform(entry))
            entry.cancel = task.cancel

    async def _write_ahead(self, journal: RunRecorder) -> None:
        """Write to the journal, in a thread, what has happened; then start the calls that it tells of."""
        execution = self._execution
        try:
            while not self._is_over() and (execution.starting or journal.is_due(starting=True)):
                told = len(execution.starting)
                await in_thread(journal.put, journal.take(), start=self._threads.submit)
                if not self._is_over():
                    self._start(told)
        except Exception as problem:  # noqa: BLE001 - raised by `run`
            self._fail(problem)
        finally:
            self._writer = None

    def _act_soon(self) -> None:
        """Once for everything that happens in this turn of the loop: answers that are ready together go together."""
        if not self._act_scheduled:
            self._act_scheduled = True
            asyncio.get_running_loop().call_soon(self._act_in_callback)

    def _act_in_callback(self) -> None:
        """From a callback of the loop, where an exception would only be logged: `run` raises it instead."""
        try:
            self._act()
        except Exception as problem:  # noqa: BLE001 - raised by `run`
            self._fail(problem)

    def _fail(self, problem: Exception) -> None:
        self._failure = problem
        self._link.hang_up()  # reading then raises

    async def _perform(self, entry: CallEntry) -> None:
        execution = self._execution
        executor = AwaitingExecutor(self._threads, self._act_soon)
        try:
            execution.answer(entry, *await execution.calls.perform(entry, execution.record, executor))
        finally:
            self._tasks.pop(entry, None)  # here: a callback of the task would take one more turn of the loop
        if execution.ledger.open:
            self._act_soon()
        else:  # there is no other answer to wait for
            self._act_in_callback()

    # Bytes: what cannot be sent at once is sent by a task that is not cancelled, because half a frame would make the
    # worker useless

    def _send(self, data: bytes) -> None:
        if self._sender is not None:
            self._unsent += data
            return
        try:
            self._unsent = self._link.send_now(data)
        except WorkerError:
            return  # reading raises when the worker is gone
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

    def _set_timer(self, due: float | None) -> None:
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
        if self._execution.sleeping:
            self._link.hang_up()  # reading then raises
        self._act_in_callback()

    async def _clean_up(self) -> None:
        execution = self._execution
        if self._writer is not None:
            await asyncio.wait({self._writer})  # the end comes after what it writes
        for task in self._tasks.values():
            task.cancel()
        if self._sender is not None and execution.over and not execution.record.worker_lost:
            await asyncio.wait({self._sender}, timeout=GRACE)
            # A worker that ended the run and does not read what it was sent cannot be used again.
            execution.record.worker_lost = self._sender is not None
        if execution.record.worker_lost or not execution.over:
            self._link.hang_up()  # a task that still sends then ends
        await until_ended({*self._tasks.values(), *([] if self._sender is None else [self._sender])})


async def until_ended(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Wait a moment for tasks that were cancelled. Those that refuse go on and keep their slots."""
    if not tasks:
        return
    ended, _ = await asyncio.wait(tasks, timeout=GRACE)
    for task in ended:
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it
