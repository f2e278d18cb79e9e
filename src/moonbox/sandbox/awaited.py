"""The asyncio driver: moves one run's bytes and carries out its calls, on the caller's event loop."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from typing import TYPE_CHECKING, Any

from moonbox.errors import ToolError, WorkerError
from moonbox.sandbox.blocking import GRACE, Lost
from moonbox.worker import protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future

    from moonbox.sandbox.conversation import Ended
    from moonbox.sandbox.exchange import Exchange, Job, Step
    from moonbox.sandbox.pipeline import Reply
    from moonbox.sandbox.recorder import CallEntry
    from moonbox.sandbox.threads import Threads
    from moonbox.worker.link import Link

__all__ = ["AwaitedDrive", "AwaitingExecutor"]

_LOOK_AGAIN = 0.1
_BREATH = 32


class AwaitingExecutor:
    """Awaits async tools here; sync ones run in threads."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def invoke(self, call: Callable[[], Any], entry: CallEntry, *, is_async: bool) -> Any:
        loop = asyncio.get_running_loop()
        rest = None if entry.deadline is None or entry.began is None else entry.deadline - entry.began
        async with asyncio.timeout(rest):
            try:
                if is_async:
                    return await call()
                result = await self._in_thread(call, loop)
                return await result if inspect.isawaitable(result) else result
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                raise ToolError("it was cancelled", code="cancelled", tool=entry.tool) from None  # by the tool itself

    async def settle(self, value: Any) -> Any:
        return await value if inspect.isawaitable(value) else value

    async def wait(self, future: Future[None]) -> None:
        await asyncio.wrap_future(future)

    async def _in_thread(self, call: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> Any:
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
            if not loop.is_closed():
                loop.call_soon_threadsafe(deliver, result, problem)

        self._threads.submit(job)
        return await done


class AwaitedDrive:
    """Drives one run to its end."""

    def __init__(self, link: Link, exchange: Exchange, threads: Threads) -> None:
        self._link = link
        self._exchange = exchange
        self._clock = exchange.recorder.clock
        self._executor = AwaitingExecutor(threads)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._sending = asyncio.Lock()
        self._ready: list[Reply] = []
        self._sends: set[asyncio.Task[None]] = set()
        self._stopping = 0
        self._timer: asyncio.TimerHandle | None = None
        self._frames = 0
        self.drained = False
        """The worker has said how the run ended, so that it can be used again."""

    async def run(self, opening: bytes) -> Ended:
        """Returns how the run ended, or raises Lost. Cancellation stops the script first."""
        self._arm()
        cancelled = False
        try:
            with self._link.in_use():
                await self._send(opening)
                try:
                    return await self._until_ended()
                except asyncio.CancelledError:
                    cancelled = True
                    self._stop(protocol.REASON_CANCELLED)
                    await self._until_ended()
                    raise
        except WorkerError as problem:
            reason = self._stopping or (protocol.REASON_CANCELLED if self._link.closed else 0)
            raise Lost(reason, problem, await asyncio.to_thread(self._kill), cancelled=cancelled) from None
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._exchange.abandon_all()
            for task in self._tasks.values():
                task.cancel()
            if not self.drained:
                self._link.hang_up()  # nobody knows what the worker is doing; whoever still sends is told
            await asyncio.gather(*self._tasks.values(), *self._sends, return_exceptions=True)

    async def _until_ended(self) -> Ended:
        while True:
            step = self._exchange.feed(*await self._link.areceive())
            if step.ended is not None:
                self.drained = True
                return step.ended
            await self._act(step)
            self._frames += 1
            if self._frames % _BREATH == 0:  # frames that are there already do not suspend: let the timer have its turn
                await asyncio.sleep(0)

    async def _act(self, step: Step) -> None:
        if step.halt is not None:
            self._stop(step.halt)
            return
        if self._stopping:
            self._exchange.refuse(step.jobs)
            return
        for call in step.dropped:
            task = self._tasks.pop(call, None)
            if task is not None:
                task.cancel()
        self._exchange.drop(step.dropped)
        if step.replies:
            await self._send(self._exchange.answers(list(step.replies)))
        for job in step.jobs:
            self._tasks[job.request.id] = asyncio.create_task(self._perform(job))

    async def _perform(self, job: Job) -> None:
        reply = await self._exchange.pipeline.perform(job.request, job.entry, self._exchange.recorder, self._executor)
        self._tasks.pop(job.request.id, None)
        if not self._stopping and job.request.id in self._exchange.entries:
            self._ready.append(reply)
            if len(self._ready) == 1:
                self._send_soon(self._answer())

    async def _answer(self) -> None:
        """Send what is ready; others that are done by now go along."""
        replies, self._ready = self._ready, []
        if replies and not self._stopping:
            await self._send(self._exchange.answers(replies))

    def _send_soon(self, sending: Coroutine[Any, Any, None]) -> None:
        """In a task of its own, which is not cancelled with the call's: half a frame would make the worker useless."""
        task = asyncio.get_running_loop().create_task(sending)
        self._sends.add(task)
        task.add_done_callback(self._sent)

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._sends.discard(task)
        if not task.cancelled():
            task.exception()  # a worker that is gone is noticed where its frames are awaited

    async def _send(self, data: bytes) -> None:
        async with self._sending:
            await self._link.asend(data)

    # The deadline: a timer that stops the script, then kills the worker

    def _arm(self) -> None:
        rest = self._clock.remaining()
        loop = asyncio.get_running_loop()
        if rest is not None:
            self._timer = loop.call_later(max(0.0, rest), self._on_time)
        elif self._clock.has_timeout:
            self._timer = loop.call_later(_LOOK_AGAIN, self._arm)

    def _on_time(self) -> None:
        rest = self._clock.remaining()
        if rest is None or rest > 0:
            self._arm()
        else:
            self._stop(protocol.REASON_TIME)

    def _stop(self, reason: int) -> None:
        if self._stopping:
            return
        self._stopping = reason
        for task in self._tasks.values():
            task.cancel()
        self._link.stop(self._exchange.number, reason)
        loop = asyncio.get_running_loop()
        self._send_soon(self._halt(reason))
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(GRACE, self._link.hang_up)

    async def _halt(self, reason: int) -> None:
        with contextlib.suppress(WorkerError):
            await self._send(self._exchange.conversation.halt(reason))

    def _kill(self) -> str:
        how = self._link.ending.kill()
        self._link.close()
        return how
