"""Threads for tools, an event loop in a thread, and slots that threads and tasks wait for alike.

The threads are daemons that are reused, and that can be left behind when a tool never returns.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections import deque
from os import getpid
from typing import TYPE_CHECKING, Any

from moonbox.errors import ClosedError, ToolError, UsageError
from moonbox.shortage import shortage

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future
    from queue import SimpleQueue

    from moonbox.sandbox.record import CallEntry
    from moonbox.tools.tool import Tool

    Make = Callable[[], Coroutine[Any, Any, Any]]
    _Job = tuple[contextvars.Context, Callable[[], None]]

__all__ = ["LoopThread", "RunningCall", "RunningCalls", "Slots", "Threads", "ToolSlots", "Turns", "submit_to"]

MOST_LEFT = 64
"""So many calls of a Sandbox may still run that nobody waits for; then no other call is made."""
_IDLE_SECONDS = 10.0
_CANCEL_SECONDS = 2.0


class Threads:
    """Runs jobs in threads of its own. A job that blocks for ever costs its thread, nothing else."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[SimpleQueue[_Job | None]] = []
        self._closed = False

    def submit(self, job: Callable[[], None]) -> None:
        """Run it in another thread, in a copy of the caller's context. It must not raise; ToolError: no thread left."""
        work = contextvars.copy_context(), job
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is not None:
            inbox.put(work)
            return
        thread = threading.Thread(target=self._work, args=(work,), name="moonbox-tool", daemon=True)
        try:
            thread.start()
        except RuntimeError as problem:
            reason = shortage(problem)
            if not reason:  # the interpreter is shutting down
                raise
            raise ToolError(f"the tool cannot be run: {reason}", code="busy", retryable=True) from None

    def close(self) -> None:
        """End the idle ones; those that are inside a tool end when it returns."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for inbox in idle:
            inbox.put(None)

    def _work(self, work: _Job | None) -> None:
        from queue import Empty, SimpleQueue  # slow to load, and most programs need no such thread

        inbox: SimpleQueue[_Job | None] = SimpleQueue()
        while work is not None:
            context, job = work
            context.run(job)
            del context, job
            work = None
            with self._lock:
                if self._closed:
                    break
                self._idle.append(inbox)
            try:
                work = inbox.get(timeout=_IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if inbox in self._idle:
                        self._idle.remove(inbox)
                        break
                work = inbox.get()


class LoopThread:
    """An event loop in a thread, for async tools called from blocking runs. Started when first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, make: Make, ended: Callable[[], object] | None = None) -> Future[Any]:
        """Run there the coroutine that `make` makes; see `submit_to`."""
        import asyncio  # here and below: slow to load, and most programs have no use for it

        with self._lock:  # also while it is handed over: `close` then finds it on the loop, and cancels it
            if self._closed:  # a run that goes on for a moment must not start a loop that nobody ends
                raise ToolError("the Sandbox is closed", code="cancelled")
            if self._loop is None:  # set last: Ctrl-C on the way must not leave a loop that does not run
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=loop.run_forever, name="moonbox-loop", daemon=True)
                try:
                    thread.start()
                except BaseException:
                    loop.close()
                    raise
                self._thread, self._loop = thread, loop
            return submit_to(self._loop, make, ended)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            loop, self._loop = self._loop, None
        if loop is None or self._thread is None:
            return
        import asyncio

        try:
            asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result(_CANCEL_SECONDS)
        except TimeoutError:
            return  # a tool does not let itself be cancelled: its thread is a daemon and is left behind
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join()
        loop.close()


def submit_to(loop: asyncio.AbstractEventLoop, make: Make, ended: Callable[[], object] | None = None) -> Future[Any]:
    """Run on that loop, from another thread, the coroutine that `make` makes there: Ctrl-C here leaves none behind.

    Cancelling the future cancels it; `ended` is called at its real end.
    """
    from concurrent.futures import Future

    future: Future[Any] = Future()

    def begin() -> None:
        task = loop.create_task(make())
        task.add_done_callback(finish)
        future.add_done_callback(lambda done: cancel(task) if done.cancelled() else None)

    def cancel(task: asyncio.Task[Any]) -> None:  # from any thread
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(task.cancel)

    def finish(task: asyncio.Task[Any]) -> None:
        # Not when the future is cancelled: the coroutine may take its time to end, or refuse to be cancelled.
        if ended is not None:
            ended()
        if task.cancelled():
            future.cancel()
        if future.set_running_or_notify_cancel():
            problem = task.exception()
            if problem is None:
                future.set_result(task.result())
            else:
                future.set_exception(problem)

    loop.call_soon_threadsafe(begin)
    return future


async def _cancel_all() -> None:
    import asyncio

    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Slots:
    """At most `most` at once, first come first served; the others get a future that is done when it is their turn."""

    def __init__(self, most: int = 1) -> None:
        self.most = most
        # A slot is taken and given back in one step, which no other thread comes between. Whoever gives one back looks
        # then whether somebody waits; whoever waits says so first and looks then for a slot. So one sees the other.
        self._free = [None] * most
        self._waiting: deque[Future[None]] = deque()
        self._lock = threading.Lock()  # of those who pass slots on

    def enter(self) -> Future[None] | None:
        """None when there is a free slot."""
        if self._free and not self._waiting:
            try:
                return self._free.pop()
            except IndexError:  # somebody was quicker
                pass
        from concurrent.futures import Future

        future: Future[None] = Future()
        self._waiting.append(future)
        self._pass_on()
        return future

    def leave(self) -> None:
        """Let the next one in."""
        self._free.append(None)
        if self._waiting:
            self._pass_on()

    def _pass_on(self) -> None:
        with self._lock:
            while self._waiting:
                try:
                    self._free.pop()
                except IndexError:  # none is free; whoever has taken one passes it on
                    return
                future = self._waiting.popleft()
                if future.set_running_or_notify_cancel():
                    future.set_result(None)
                else:  # whoever waited has given up
                    self._free.append(None)

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
        """Whoever waited was interrupted: pass on the turn if it had come already."""
        with self._lock:  # not while it is being given a slot
            given = not future.cancel()
        if given:
            self.leave()


class Turns(Slots):
    """The runs of one Repl, from several threads and tasks: one after another, and none when it is closed or paused."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self._pid = pid  # a process that was forked from this one shares its sockets
        self.closed = False
        self.paused = False
        """A step-by-step run waits for its caller's answers."""

    @property
    def idle(self) -> bool:
        return bool(self._free)

    def enter(self) -> None:
        """Wait for our turn."""
        if self.closed or self.paused or getpid() != self._pid:
            raise self._refusal()
        turn = Slots.enter(self)
        if turn is not None:
            self.wait(turn)
            self._check_still_open()

    async def aenter(self) -> None:
        """The same, awaited."""
        if self.closed or self.paused or getpid() != self._pid:
            raise self._refusal()
        turn = super().enter()
        if turn is not None:
            await self.await_turn(turn)
            self._check_still_open()

    def pause(self, paused: bool) -> None:
        self.paused = paused

    def _refusal(self) -> UsageError:
        if self.closed:
            return ClosedError("the Repl is closed")
        if self.paused:
            return UsageError("a run of this Repl waits for answers to its calls: resume or cancel its Pause first")
        return UsageError("this process was forked from the one that made the Sandbox: make a new Sandbox here")

    def _check_still_open(self) -> None:
        if self.closed:  # while we waited
            self.leave()
            raise ClosedError("the Repl is closed")


class RunningCalls:
    """Calls that have not ended, those included that nobody waits for any more: these are counted and bounded."""

    def __init__(self, most_left: int = MOST_LEFT) -> None:
        self._most_left = most_left
        self._lock = threading.Lock()
        self._calls: set[RunningCall] = set()
        self.quick: set[CallEntry] = set()
        """Calls that only their own path holds, which adds and removes them; see `is_crowded`."""

    def enter(self, entry: CallEntry) -> RunningCall:
        """A call begins; ToolError where too many have been left behind."""
        self.check_room()
        call = RunningCall(self, entry)
        self._calls.add(call)  # as `discard` and the copy below, one step that no other thread comes between
        return call

    def is_crowded(self) -> bool:
        """Whether so many are running that it has to be asked whether another may begin: `check_room`."""
        return len(self._calls) + len(self.quick) >= self._most_left

    def check_room(self) -> None:
        """ToolError where too many have been left behind."""
        if self.is_crowded() and self._left() >= self._most_left:
            raise ToolError(
                f"{self._most_left} earlier calls timed out or were given up, and their tools are still running; "
                "no other call is made until some of them have ended",
                code="busy",
                retryable=True,
            )

    def let_go(self, call: RunningCall) -> None:
        """One of those who hold it is done; it has ended when the last of them is."""
        if call.holders > 1:  # the last one is alone with it: only who holds it gives it to others
            with self._lock:
                call.holders -= 1
                if call.holders:
                    return
        self._calls.discard(call)
        if call.slots is not None:
            call.slots.leave()

    def hold(self, call: RunningCall) -> None:
        with self._lock:
            call.holders += 1

    def all_left(self, slots: Slots) -> bool:
        """Whether every slot is held by a call that nobody waits for."""
        return self._left(slots) >= slots.most

    def _left(self, slots: Slots | None = None) -> int:
        left = sum(call.entry.left for call in self._calls.copy() if slots is None or call.slots is slots)
        return left + sum(entry.left for entry in self.quick.copy()) if slots is None else left


class RunningCall:
    """One call until its tool has ended, which may be long after its caller has given up. It then frees its slot.

    Whoever carries the call out holds it: the call's own path, and the thread or task that its tool runs in.
    """

    __slots__ = ("_calls", "entry", "holders", "slots")

    def __init__(self, calls: RunningCalls, entry: CallEntry) -> None:
        self._calls = calls
        self.holders = 1
        """How many hold it; changed by `RunningCalls` only."""
        self.entry = entry
        self.slots: Slots | None = None

    def hold(self) -> None:
        self._calls.hold(self)

    def let_go(self) -> None:
        self._calls.let_go(self)


class ToolSlots:
    """The slots of each tool that has a `max_concurrency`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[str, Slots] = {}

    def of(self, tool: Tool) -> Slots:
        assert tool.max_concurrency is not None
        with self._lock:
            slots = self._slots.get(tool.path)
            if slots is None:
                slots = self._slots[tool.path] = Slots(tool.max_concurrency)
            return slots
