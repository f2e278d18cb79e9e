"""The blocking driver: moves one run's bytes and carries out its calls, from ordinary threads.

The caller's thread drives the run until the script makes its first call. Then a helper thread drives on and runs the
tools itself, so that quick calls cost no switch between threads, while the caller's thread looks on. A script that is
likely to call is the helper's from the start: it wakes up while the worker compiles. When a tool takes its time, the
caller's thread takes over: the slow tool goes on in the helper, the other calls of the batch get threads of their own,
and the caller answers, times out or abandons them.

So the Execution always has one owner: the caller's thread, or the helper while `_helping` is true. It changes hands
under `_turn`, and only while the helper is inside a tool or has ended.
"""

from __future__ import annotations

import inspect
import threading
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from moonbox.errors import ToolError, WorkerError
from moonbox.sandbox.calls import failure
from moonbox.sandbox.execution import GRACE
from moonbox.values import ORDINARY
from moonbox.worker.link import Unread
from moonbox.worker.protocol import REASON_CANCELLED, REASON_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from concurrent.futures import Future

    from moonbox.sandbox.calls import CallResult
    from moonbox.sandbox.execution import Execution
    from moonbox.sandbox.record import CallEntry
    from moonbox.sandbox.threads import LoopThread, Threads
    from moonbox.worker.link import Link

__all__ = ["BlockingDriver", "BlockingExecutor", "run_to_end"]

_SLOW = 0.002  # seconds after which a tool is left to the helper
_LOOK = 0.02
T = TypeVar("T")


class BlockingExecutor:
    """Runs tools right here; async ones in the Sandbox's loop thread, waiting for them."""

    def __init__(self, loop: LoopThread, wake: Callable[[], object]) -> None:
        self._loop = loop
        self._wake = wake

    async def invoke(self, call: Callable[[], Any], entry: CallEntry, *, is_async: bool) -> Any:
        if entry.deadline is not None:
            self._wake()  # whoever waits does not know of this deadline yet
        result = call()
        if is_async or (type(result) not in ORDINARY and inspect.isawaitable(result)):
            assert entry.running is not None
            entry.running.hold()
            future = self._loop.submit(_awaited(result), entry.running.let_go)
            entry.cancel = future.cancel
            return future.result()
        return result

    async def settle(self, value: Any, entry: CallEntry | None = None) -> Any:
        if not inspect.isawaitable(value):
            return value
        future = self._loop.submit(_awaited(value))
        if entry is not None:
            entry.cancel = future.cancel
            if entry.left:
                future.cancel()
        return future.result()

    async def wait(self, future: Future[None], entry: CallEntry) -> None:
        if entry.deadline is not None:
            self._wake()
        future.result()


class BlockingDriver:
    """Drives one run: to its end with `run`, or from batch to batch of calls with `advance` and `carry_out`."""

    def __init__(self, link: Link, execution: Execution, threads: Threads, loop: LoopThread) -> None:
        self._link = link
        self._execution = execution
        self._threads = threads
        self._loop = loop
        self._executor: BlockingExecutor | None = None
        # The link's bell, not a method of ours: nothing here holds the driver, so that a run leaves nothing behind for
        # the garbage collector, whose rounds would cost more than the run.
        execution.clock.changed = link.wake
        self._done: deque[tuple[CallEntry, CallResult]] = deque()  # appended to by the threads that run tools
        # Shared between the caller's thread and the helper, under the lock of `_turn`:
        self._turn: threading.Condition | None = None
        self._baton: threading.Lock | None = None  # its lock: entering that is quicker
        self._helping = False
        self._helper_ended = False
        self._helper_problem: BaseException | None = None
        self._tool_since: float | None = None

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
        execution = self._execution
        while not execution.over and not execution.starting:
            self._step()
        if not execution.over:
            self._drive_with_helper()

    def _step_until_calls(self) -> None:
        execution = self._execution
        while not execution.over and not execution.starting:
            self._step()

    def _step(self) -> None:
        """Send what is to be sent, take a frame, and do what is due."""
        execution, link = self._execution, self._link
        if execution.interrupting:
            link.interrupt(execution.number, execution.interrupting)
            execution.interrupting = 0
        data = execution.outgoing()
        deadline = execution.deadline()
        try:
            frame = link.exchange(data, deadline, GRACE)
        except Unread:
            execution.stop(REASON_TIME, monotonic())
            raise
        if frame is not None:
            execution.frame(*frame)
            if execution.over:
                return
        if deadline is not None:  # looked at for every frame: a worker may send them without end
            now = monotonic()
            if now >= deadline:
                execution.tick(now)

    def _stop_and_drain(self, reason: int) -> None:
        self._execution.stop(reason, monotonic())
        while not self._execution.over:
            self._step()

    # The helper drives, the caller looks on

    def _send_ahead(self) -> None:
        """What is to be sent, so that the worker is at work while the helper wakes up; it sends what does not fit."""
        data = self._execution.outgoing()
        if data:
            self._execution.give_back(self._link.send_now(data))

    def _drive_with_helper(self) -> None:
        self._send_ahead()
        self._baton = threading.Lock()
        self._turn = turn = threading.Condition(self._baton)
        self._helping = True
        try:
            self._threads.submit(self._help)
        except ToolError:  # no thread can be started: each call will say so, and the script goes on
            self._helping = False
            self._take_charge()
            return
        wait = _SLOW
        while True:
            with turn:
                if not self._helper_ended:
                    turn.wait(wait)
                if self._helper_ended:
                    break
                since = self._tool_since
                if since is not None and monotonic() - since >= _SLOW:
                    self._helping = False  # the helper sees it when its tool returns
                    break
                wait = _SLOW if since is not None else min(wait * 2, _LOOK)
        self._raise_helper_problem()
        if not self._execution.over:
            self._take_charge()

    def _help(self) -> None:
        """In the helper: drive and run tools until the run ends or the caller takes over, or is to take over."""
        assert self._turn is not None and self._baton is not None
        execution = self._execution
        problem: BaseException | None = None
        try:
            with self._link:
                while not execution.over:
                    if execution.interrupted:
                        execution.stop(REASON_CANCELLED, monotonic())
                    if not execution.starting:
                        self._step()
                    elif self._wait_together():
                        break
                    elif not self._run_calls(self._baton):
                        return
        except BaseException as raised:  # noqa: BLE001 - handed over to the caller's thread, which raises it
            problem = raised
        with self._turn:
            self._helper_problem = problem
            self._helper_ended = True
            self._turn.notify()

    def _wait_together(self) -> bool:
        """Whether a batch is of asynchronous tools, which wait: one after another they would take long."""
        execution = self._execution
        if len(execution.starting) < 2:
            return False
        tool = execution.calls.toolbox.get(execution.starting[0].tool)
        return tool is not None and tool.is_async

    def _run_calls(self, turn: threading.Lock) -> bool:
        """Run the calls one after another; False when the caller has taken over meanwhile."""
        execution = self._execution
        with turn:
            entry = self._next_call()
        while entry is not None:
            result = self._perform(entry)
            with turn:
                if not self._helping:  # the Execution is the caller's now: our result goes to it as any other thread's
                    self._tool_since = None
                    self._done.append((entry, result))
                    break
                execution.answer(entry, *result)
                entry = self._next_call()
        else:
            return True
        self._link.wake()
        return False

    def _next_call(self) -> CallEntry | None:
        """The lock is held: the caller must not see a tool running that has not been taken, or the reverse."""
        starting = self._execution.starting
        self._tool_since = monotonic() if starting else None
        return starting.popleft() if starting else None

    def _raise_helper_problem(self) -> None:
        problem, self._helper_problem = self._helper_problem, None
        if problem is not None:
            raise problem

    # The caller is in charge: every call has a thread of its own

    def _take_charge(self) -> None:
        self._link.let_wake()
        while not self._execution.over:
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
        for entry in entries:
            try:
                self._threads.submit(lambda entry=entry: self._perform_apart(entry))  # type: ignore[misc]
            except ToolError as problem:
                self._execution.answer(entry, *failure(problem))

    def _perform_apart(self, entry: CallEntry) -> None:
        """In a thread of its own. A deque and the bell hand the result over: the Execution is not for many threads."""
        self._done.append((entry, self._perform(entry)))
        self._link.wake()

    def _collect(self) -> None:
        while self._done:
            entry, result = self._done.popleft()
            self._execution.answer(entry, *result)

    def _perform(self, entry: CallEntry) -> CallResult:
        executor = self._executor
        if executor is None:  # it has no state: two threads that make one each do no harm
            executor = self._executor = BlockingExecutor(self._loop, self._link.wake)
        return run_to_end(self._execution.calls.perform(entry, self._execution, executor))

    # After Ctrl-C, which comes at any moment, in the caller's thread

    def _recover(self) -> None:
        """Stop the script and see its end, so that the worker stays usable."""
        execution = self._execution
        if self._turn is not None and self._helping and not self._helper_ended:
            self._link.interrupt(execution.number, REASON_CANCELLED)
            self._wait_for_helper(self._turn, monotonic() + 2 * GRACE)
        self._raise_helper_problem()
        self._stop_and_drain(REASON_CANCELLED)

    def _wait_for_helper(self, turn: threading.Condition, deadline: float) -> None:
        """Until it has met the end of the run, or is in a tool, where it is left behind."""
        while True:
            with turn:
                if self._helper_ended:
                    return
                if self._tool_since is not None:
                    self._helping = False
                    return
                late = monotonic() - deadline
                if late >= 0:  # the worker does not stop, and the helper waits for it
                    self._link.hang_up()
                if late >= GRACE:
                    raise WorkerError("it did not stop")
                turn.wait(_LOOK)


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
