"""Threads for tools, an event loop in a thread, and slots that threads and tasks wait for alike.

The threads are daemons that are reused, and that can be left behind when a tool never returns.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from moonbox.tools.tool import Tool

    _Work = tuple[contextvars.Context, Callable[[], None]]

__all__ = ["LoopThread", "Slots", "Threads", "ToolSlots"]

_IDLE_SECONDS = 10.0
_CANCEL_SECONDS = 2.0


class Threads:
    """Runs jobs in threads of its own. A job that blocks for ever costs its thread, nothing else."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[queue.SimpleQueue[_Work | None]] = []
        self._closed = False
        self._members: set[threading.Thread] = set()

    def submit(self, job: Callable[[], None]) -> None:
        """Run it in another thread, in a copy of the caller's context. It must not raise."""
        work = contextvars.copy_context(), job
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is not None:
            inbox.put(work)
            return
        thread = threading.Thread(target=self._work, args=(work,), name="moonbox-tool", daemon=True)
        with self._lock:
            self._members.add(thread)
        thread.start()

    def close(self) -> None:
        """End the idle ones; those that are inside a tool end when it returns."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for inbox in idle:
            inbox.put(None)

    def join_idle(self, seconds: float) -> None:
        """Wait briefly for threads that are on their way out."""
        for thread in list(self._members):
            thread.join(seconds)

    def _work(self, work: _Work | None) -> None:
        inbox: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
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
            except queue.Empty:
                with self._lock:
                    if inbox in self._idle:
                        self._idle.remove(inbox)
                        break
                work = inbox.get()
        with self._lock:
            self._members.discard(threading.current_thread())


class LoopThread:
    """An event loop in a thread, for async tools called from blocking runs. Started when first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="moonbox-loop", daemon=True)
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def close(self) -> None:
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is None or self._thread is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result(_CANCEL_SECONDS)
        except TimeoutError:
            return  # a tool does not let itself be cancelled: its thread is a daemon and is left behind
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join()
        loop.close()


async def _cancel_all() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Slots:
    """At most `most` at once, first come first served; the others get a future that is done when it is their turn."""

    def __init__(self, most: int = 1) -> None:
        self.free = most
        self._lock = threading.Lock()
        self._waiting: deque[Future[None]] = deque()

    def enter(self) -> Future[None] | None:
        """None when there is a free slot."""
        with self._lock:
            if self.free > 0:
                self.free -= 1
                return None
            future: Future[None] = Future()
            self._waiting.append(future)
            return future

    def leave(self) -> None:
        """Let the next one in."""
        with self._lock:
            while self._waiting:
                future = self._waiting.popleft()
                if future.set_running_or_notify_cancel():  # False: whoever waited has given up
                    future.set_result(None)
                    return
            self.free += 1

    def give_up(self, future: Future[None]) -> None:
        """Whoever waited was interrupted: pass on the turn if it had come already."""
        if not future.cancel() and future.done():
            self.leave()


class ToolSlots:
    """The slots of each tool that has a `max_concurrency`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[str, Slots] = {}

    def of(self, tool: Tool) -> Slots | None:
        if tool.max_concurrency is None:
            return None
        with self._lock:
            slots = self._slots.get(tool.path)
            if slots is None:
                slots = self._slots[tool.path] = Slots(tool.max_concurrency)
            return slots
