"""The helper: a thread that drives a run and runs its tools itself, so that quick calls cost no switch of threads.

Whoever waits for the run looks on, a thread or an event loop. When a tool takes its time, the waiter takes over: the
slow tool goes on in the helper, and the waiter answers, times out or abandons it like any other call.

So the Execution always has one owner: the helper while `in_charge` is true, otherwise the waiter. It changes hands
under `lock`, and only while the helper is inside a tool or has ended.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from moonbox.sandbox.execution import GRACE
from moonbox.worker.link import Unread
from moonbox.worker.protocol import REASON_CANCELLED, REASON_TIME

if TYPE_CHECKING:
    import threading
    from collections import deque
    from collections.abc import Callable, Coroutine
    from typing import Any

    from moonbox.sandbox.calls import Executor
    from moonbox.sandbox.execution import Execution
    from moonbox.sandbox.record import CallEntry, CallResult
    from moonbox.worker.link import Link

__all__ = ["SLOW", "Helper", "run_to_end", "send", "step"]

SLOW = 0.002
"""Seconds after which a tool is left to the helper."""
T = TypeVar("T")


class Helper:
    """Drives until the run is over, the waiter takes over, or `returns` says that the waiter is to carry out the calls.

    on_end    called, with the lock held, when it drives no more and is not inside a tool
    on_late   called when a tool has ended after the waiter took over; its result is in `late` by then
    patience  seconds after which a script that only computes is the waiter's; None to wait for it
    """

    def __init__(
        self,
        link: Link,
        execution: Execution,
        executor: Executor,
        *,
        returns: Callable[[Execution], bool],
        on_end: Callable[[], object],
        on_late: Callable[[], object],
        late: deque[tuple[CallEntry, CallResult]],
        lock: threading.Lock,
        patience: float | None = None,
    ) -> None:
        self.lock = lock
        self.in_charge = True
        self.ended = False
        self._late = late
        self._problem: BaseException | None = None
        self._tool_since: float | None = None
        self._link = link
        self._execution = execution
        self._executor = executor
        self._returns = returns
        self._on_end, self._on_late = on_end, on_late
        self._patience = patience

    # For the waiter

    def tool_seconds(self) -> float | None:
        """How long it has been inside a tool; None while it is not. The lock is held."""
        return None if self._tool_since is None else monotonic() - self._tool_since

    def leave_to_tool(self) -> bool:
        """Take over if it has ended or is inside a tool; whether the Execution is the waiter's now."""
        with self.lock:
            if self._tool_since is not None:
                self.in_charge = False  # it sees that when its tool returns
            return self.ended or not self.in_charge

    def raise_problem(self) -> None:
        """Raise what ended it."""
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem

    # In its thread

    def drive(self) -> None:
        execution = self._execution
        problem: BaseException | None = None
        try:
            with self._link:
                while not execution.over:
                    if execution.interrupted:
                        execution.stop(REASON_CANCELLED, monotonic())
                    if not execution.starting:
                        if not step(self._link, execution, self._patience) and self._patience is not None:
                            break
                    elif self._returns(execution):
                        break
                    elif not self._run_calls():
                        return
        except BaseException as raised:  # noqa: BLE001 - handed over to the waiter, which raises it
            problem = raised
        with self.lock:
            self._problem = problem
            self.ended = True
            self._on_end()

    def _run_calls(self) -> bool:
        """Run the calls one after another; False when the waiter has taken over meanwhile."""
        execution = self._execution
        with self.lock:
            entry = self._next_call()
        while entry is not None:
            result = run_to_end(execution.calls.perform(entry, execution, self._executor))
            with self.lock:
                if not self.in_charge:  # the Execution is the waiter's now: our result goes to it as any other thread's
                    self._tool_since = None
                    self._late.append((entry, result))
                    break
                execution.answer(entry, *result)
                entry = self._next_call()
        else:
            return True
        self._on_late()
        return False

    def _next_call(self) -> CallEntry | None:
        """The lock is held: the waiter must not see a tool running that has not been taken, or the reverse."""
        starting = self._execution.starting
        self._tool_since = monotonic() if starting else None
        return starting.popleft() if starting else None


def step(link: Link, execution: Execution, patience: float | None = None) -> bool:
    """Send what is to be sent, take a frame, and do what is due; whether there was a frame, or something due."""
    if execution.interrupting:
        link.interrupt(execution.number, execution.interrupting)
        execution.interrupting = 0
    data = execution.outgoing()
    until = deadline = execution.deadline()
    if patience is not None:
        until = monotonic() + patience
        if deadline is not None and deadline < until:
            until = deadline
    try:
        frame = link.exchange(data, until, None if deadline is None else deadline + GRACE)
    except Unread:
        execution.stop(REASON_TIME, monotonic())
        raise
    if frame is not None:
        execution.frame(*frame)
        if execution.over:
            return True
    if deadline is not None:  # looked at for every frame: a worker may send them without end
        now = monotonic()
        if now >= deadline:
            execution.tick(now)
            return True
    return frame is not None


def send(link: Link, execution: Execution) -> float | None:
    """Send what is to be sent; when something is due next."""
    if execution.interrupting:
        link.interrupt(execution.number, execution.interrupting)
        execution.interrupting = 0
    data = execution.outgoing()
    deadline = execution.deadline()
    # Half a frame would make the worker useless: it has some more time to take the rest.
    if data and not link.send(data, None if deadline is None else deadline + GRACE):
        execution.stop(REASON_TIME, monotonic())
        raise Unread
    return deadline


def run_to_end(coroutine: Coroutine[Any, Any, T]) -> T:
    """Drive a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise RuntimeError("a blocking call tried to suspend")
