"""Ways off an event loop and back onto one. No other module has one; tests/sandbox/test_threads.py holds that.

off a loop    `in_thread` awaits a blocking function; `unbroken` waits for its end even if it is cancelled
onto a loop   `soon` from any thread, `on_loop` from another loop, `wait_on_loop` from a thread, and a `LoopThread`

anyio has counterparts, which are not used here, because a thread of ours can be left behind: a tool that never returns
must not keep a program from ending. anyio's worker threads are not daemons, so that the interpreter waits for them, as
it does for those of `asyncio.to_thread`. A call that anyio abandons loses its result, where `left` gives back a worker
that nobody waits for. A BlockingPortal waits for all its tasks when it ends. And scripts run without anyio installed.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import sys
import threading
from _queue import Empty, SimpleQueue  # without the queues of `queue`, which take longer to load
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

from moonbox.errors import ToolError
from moonbox.shortage import shortage

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future

    Make = Callable[[], Coroutine[Any, Any, Any]]
    Job = Callable[[], "Signal | None"]
    Start = Callable[[Callable[[], None]], None]
    """Runs a job in a thread."""
    _Work = tuple[contextvars.Context, Job]

_T = TypeVar("_T")
_A = TypeVar("_A")
_Ts = TypeVarTuple("_Ts")
_IDLE_SECONDS = 10.0
_MOST_IDLE = 8
_CANCEL_SECONDS = 2.0
_PLACES = 40
"""Functions of one event loop that run in threads at a time; those that `own_thread` starts do not count."""


class Contained(Exception):
    """Carries an exception of a tool that would end the event loop, such as SystemExit."""

    def __init__(self, problem: BaseException) -> None:
        super().__init__(f"{type(problem).__name__}: {problem}")
        self.problem = problem


class Signal:
    """A flag that one thread sets with `give` and another waits for and clears with `take`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # quicker than a condition or an event; held while it is not given
        self._lock.acquire()

    def give(self) -> None:
        """Set it; nothing changes if it is set."""
        with contextlib.suppress(RuntimeError):
            self._lock.release()

    def take(self, seconds: float = -1) -> bool:
        """Wait until it is set, at most so many seconds, and clear it; whether it was set."""
        return self._lock.acquire(timeout=seconds)


class Threads:
    """Runs jobs in daemon threads, which are reused. A job that never returns keeps one thread.

    At most `most_idle` threads wait for a further job, for some seconds; the others end with theirs.
    """

    def __init__(self, name: str = "moonbox-tool", *, most_idle: int = sys.maxsize) -> None:
        self._name = name
        self._most_idle = most_idle
        # The queues of idle threads. `pop` and `append` are atomic; None ends a thread.
        self._idle: list[SimpleQueue[_Work | None]] = []
        self._closed = False

    def submit(self, job: Job) -> None:
        """Run it in another thread, in a copy of the caller's context. It must not raise; ToolError: no thread left.

        A Signal that it returns is given when its thread is free again.
        """
        work = contextvars.copy_context(), job
        try:
            idle = self._idle.pop()
        except IndexError:
            self._start(work)
            return
        idle.put(work)

    def close(self) -> None:
        """End the idle threads; the others end when their jobs return."""
        self._closed = True  # set before the list is read: a thread appends itself first and reads this flag then
        while self._idle:
            with contextlib.suppress(IndexError):
                self._idle.pop().put(None)

    def _start(self, work: _Work) -> None:
        thread = threading.Thread(target=self._run, args=(work,), name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError as problem:
            reason = shortage(problem)
            if not reason:  # the interpreter is shutting down
                raise
            raise ToolError(reason, code="busy", retryable=True) from None

    def _run(self, work: _Work | None) -> None:
        idle: SimpleQueue[_Work | None] = SimpleQueue()
        while work is not None:
            context, job = work
            done = context.run(job)
            del context, job
            work = None
            self._idle.append(idle)
            ends = (self._closed or len(self._idle) > self._most_idle) and self._withdraw(idle)
            if done is not None:  # only now: a caller that waits for the job finds this thread idle
                done.give()
                del done
            if ends:
                return
            try:
                work = idle.get(timeout=_IDLE_SECONDS)
            except Empty:
                if self._withdraw(idle):
                    return
                work = idle.get()  # `submit` has taken this thread from the list and is about to wake it

    def _withdraw(self, idle: SimpleQueue[_Work | None]) -> bool:
        """Remove the thread from the idle ones; whether it was among them."""
        try:
            self._idle.remove(idle)
        except ValueError:
            return False
        return True


class LoopThread:
    """An event loop in a thread, for async tools called from blocking runs. Started when first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, make: Make, ended: Callable[[], object] | None = None) -> Future[Any]:
        """Run there the coroutine that `make` makes: Ctrl-C here leaves none behind.

        Cancelling the future cancels it; `ended` is called at its real end.
        """
        from concurrent.futures import Future  # here and below: slow to load, and most programs have no use for it

        with self._lock:  # also while it is handed over: `close` then finds it on the loop, and cancels it
            if self._closed:  # a run that goes on for a moment must not start a loop that is never ended
                raise ToolError("the Sandbox is closed", code="cancelled")
            if self._loop is None:
                made: Future[None] = Future()
                threading.Thread(target=self._run, args=(made,), name="moonbox-loop", daemon=True).start()
                made.result()
            assert self._loop is not None
            return _submit(self._loop, make, ended)

    def _run(self, made: Future[None]) -> None:
        """Make the loop and run it: in its thread, which Ctrl-C does not interrupt, so that it is always closed."""
        import asyncio

        loop = None
        try:
            with self._making:
                if self._loop is None and not self._closed:  # else Ctrl-C ended the wait for this thread
                    loop = self._loop = asyncio.new_event_loop()
                    self._thread = threading.current_thread()
        except BaseException as problem:  # noqa: BLE001 - handed over to the caller
            made.set_exception(problem)
        else:
            made.set_result(None)
        if loop is not None:
            with contextlib.closing(loop):
                loop.run_forever()

    def close(self) -> None:
        with self._lock, self._making:
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


def _submit(loop: asyncio.AbstractEventLoop, make: Make, ended: Callable[[], object] | None) -> Future[Any]:
    from concurrent.futures import Future

    future: Future[Any] = Future()
    loop.call_soon_threadsafe(_begin, loop, make, future, ended)
    return future


def _begin(
    loop: asyncio.AbstractEventLoop, make: Make, future: Future[Any], ended: Callable[[], object] | None
) -> None:
    task = loop.create_task(_contained(make))
    task.add_done_callback(partial(_finish, future, ended))
    future.add_done_callback(partial(_cancel, task))


async def _contained(make: Make) -> Any:
    try:
        work = make()
        del make  # what made it is not kept while it goes on
        return await work
    except (KeyboardInterrupt, SystemExit) as problem:  # they would end the loop, which others use
        raise Contained(problem) from None


def _cancel(task: asyncio.Task[Any], future: Future[Any]) -> None:
    if future.cancelled():
        soon(task.get_loop(), task.cancel)


def _finish(future: Future[Any], ended: Callable[[], object] | None, task: asyncio.Task[Any]) -> None:
    # Not when the future is cancelled: the coroutine may take its time to end, or refuse to be cancelled.
    if ended is not None:
        ended()
    if task.cancelled():
        future.cancel()
    if future.set_running_or_notify_cancel():
        if (problem := task.exception()) is None:
            future.set_result(task.result())
        else:
            future.set_exception(problem)


_LOOPS: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Threads, asyncio.Semaphore]] = WeakKeyDictionary()
"""The threads of each event loop, and its free places."""


async def in_thread(
    work: Callable[[*_Ts], _T],
    *arguments: *_Ts,
    start: Start | None = None,
    ended: Callable[[], object] = lambda: None,
    left: Callable[[_T], object] | None = None,
) -> _T:
    """The result of a blocking function, in a thread that is left behind when this is cancelled.

    `start` runs a job in a thread. Without it, the function waits for one of a limited number of places, which it must
    not keep for long: what waits for a person, a script or a worker passes `own_thread`. `ended` is called at the
    function's real end. `left` gets the result that nobody waits for any more, in a thread, where it may block.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    if start is None:
        made = Threads("moonbox-loop-work"), asyncio.Semaphore(_PLACES)
        threads, places = _LOOPS.get(loop) or _LOOPS.setdefault(loop, made)
        await places.acquire()
        start, ended = threads.submit, partial(soon, loop, places.release)
    done: asyncio.Future[_T] = loop.create_future()
    claim = partial(threading.Lock().acquire, blocking=False)  # true once: for the thread or for the cancellation
    results: list[_T] = []

    def leave() -> None:
        if left is not None:
            left(results[0])

    def job() -> None:
        found, problem = _outcome(work, *arguments)
        results.extend(found)
        ended()
        if claim():
            soon(loop, partial(_settle, done, results, problem))  # the future belongs to the loop's thread
        elif results:
            leave()

    try:
        start(job)
    except BaseException:  # no thread could be started
        ended()
        raise
    try:
        return await done
    except asyncio.CancelledError:
        if not claim() and results and left is not None:  # the thread has ended: another one, as `left` may block
            start(leave)
        raise


def _outcome(work: Callable[[*_Ts], _T], *arguments: *_Ts) -> tuple[list[_T], BaseException | None]:
    """Its result in a list, or its exception in a form that a future can hold."""
    from asyncio import CancelledError

    try:
        return [work(*arguments)], None
    except BaseException as problem:  # noqa: BLE001 - handed over to the event loop
        if isinstance(problem, StopIteration) or not isinstance(problem, Exception | CancelledError):
            return [], Contained(problem)  # raised there, it would end the loop
        return [], problem


def _settle(done: asyncio.Future[_T], results: list[_T], problem: BaseException | None) -> None:
    if done.done():  # it was abandoned
        return
    if problem is None:
        done.set_result(results[0])
    else:
        done.set_exception(problem)


def own_thread(job: Callable[[], None]) -> None:
    """Run the job in a thread of its own, which does not count among the places of a loop.

    The thread is reused when the job has ended: the start of a new one keeps the loop waiting.
    """
    _own_threads(os.getpid()).submit(job)


@cache
def _own_threads(pid: int) -> Threads:  # a fork of the process has none of its threads
    return Threads("moonbox-work", most_idle=_MOST_IDLE)


async def asked(function: Callable[[_A], Any], argument: _A, start: Start | None = None) -> Any:
    """What a function of the user's gives, sync or async. A sync one may block, and has a thread."""
    import inspect

    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        return await function(argument)
    answer = await in_thread(function, argument, start=start or own_thread)
    return await answer if inspect.isawaitable(answer) else answer


async def _cancel_all() -> None:
    import asyncio

    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def soon(loop: asyncio.AbstractEventLoop, work: Callable[[], object]) -> None:
    """Do it in the loop's thread, from any thread; nothing happens when the loop has ended."""
    try:
        loop.call_soon_threadsafe(work)
    except RuntimeError:
        if not loop.is_closed():
            raise


async def on_loop(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, _T]) -> _T:
    """Await it on this loop, whichever loop we are on. The task there has our context, and is cancelled with us."""
    import asyncio

    if asyncio.get_running_loop() is loop:
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


def wait_on_loop(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, _T], seconds: float | None = None) -> _T:
    """The result of a coroutine on a loop of another thread; TimeoutError after so many seconds."""
    import asyncio

    return asyncio.run_coroutine_threadsafe(work, loop).result(seconds)


async def unbroken(work: Callable[..., Any], *arguments: Any) -> Any:
    """As `in_thread`, in a thread of its own that is waited for: for what must be done whole, such as a write."""
    return await to_its_end(in_thread(work, *arguments, start=own_thread))


async def to_its_end(work: Coroutine[Any, Any, _T]) -> _T:
    """Await it in a task that is not cancelled with the caller's. A cancellation is raised when it has ended.

    There may be many of them: a cancel scope of anyio cancels again and again.
    """
    import asyncio

    task, cancelled = asyncio.ensure_future(work), None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as problem:
            cancelled = problem
    result = task.result()
    if cancelled is not None:
        raise cancelled
    return result
