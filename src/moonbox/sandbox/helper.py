"""The helper: a thread that drives a run and runs its tools itself, so that quick calls cost no switch of threads.

Whoever waits for the run looks on, a thread or an event loop. When a tool takes its time, the waiter takes over: the
slow tool goes on in the helper, and the waiter answers, times out or abandons it like any other call.

So the Execution always has one owner: the helper while `in_charge` is true, otherwise the waiter. It changes hands when
the helper has ended, which it says by `ended` after it has touched the Execution for the last time, and while it is
inside a tool: whoever takes the mark in `_in_tool` away has the Execution, and taking it is one step, which no other
thread comes between.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

from moonbox.frozen import NATIVE
from moonbox.sandbox.execution import GRACE
from moonbox.sandbox.quick_calls import run_to_end
from moonbox.worker.link import Unread
from moonbox.worker.protocol import CALLS, REASON_CANCELLED, REASON_TIME

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

    from moonbox.sandbox.calls import Executor
    from moonbox.sandbox.execution import Execution
    from moonbox.sandbox.record import CallEntry, CallResult
    from moonbox.sandbox.threads import PlainSignal
    from moonbox.worker.link import Link

__all__ = ["SLOW", "Helper", "send", "step"]

SLOW = 0.002
"""Seconds after which a tool is left to the helper."""


class Helper:
    """Drives until the run is over, the waiter takes over, or `returns` says that the waiter is to carry out the calls.

    ends      given when it drives no more and is not inside a tool, and its thread is free again
    on_end    called, where there is one, when it drives no more and is not inside a tool
    on_late   called when a tool has ended after the waiter took over; its result is in `late` by then
    patience  seconds after which a script that only computes is the waiter's; None to wait for it
    """

    __slots__ = (
        "_ends", "_execution", "_executor", "_in_tool", "_late", "_link", "_on_end", "_on_late", "_patience",
        "_problem", "_returns", "_serves", "ended", "in_charge",
    )  # fmt: skip

    def __init__(
        self,
        link: Link,
        execution: Execution,
        executor: Executor,
        returns: Callable[[Execution], bool],
        on_late: Callable[[], object],
        late: deque[tuple[CallEntry, CallResult]],
        ends: PlainSignal | None = None,
        on_end: Callable[[], object] | None = None,
        patience: float | None = None,
    ) -> None:
        self.in_charge = True
        self.ended = False
        self._late = late
        self._problem: BaseException | None = None
        self._in_tool: list[float] = []  # since when it is inside a tool, on the monotonic clock; empty while it is not
        self._link = link
        self._execution = execution
        self._executor = executor
        self._returns = returns
        self._ends, self._on_end, self._on_late = ends, on_end, on_late
        self._patience = patience
        self._serves = executor.runs_here and execution.has_unwatched_calls()

    @staticmethod
    def of(
        link: Link,
        execution: Execution,
        executor: Executor,
        returns: Callable[[Execution], bool],
        on_late: Callable[[], object],
        late: deque[tuple[CallEntry, CallResult]],
        ends: PlainSignal,
    ) -> Helper:
        """The same, made quickly where the native parts are in use."""
        if _make is None:
            return Helper(link, execution, executor, returns, on_late, late, ends)
        serves = executor.runs_here and execution.has_unwatched_calls()
        # By position, in the order of the slots.
        return _make(  # type: ignore[no-any-return]
            ends, execution, executor, [], late, link, None, on_late, None, None, returns, serves, False, True
        )

    # For the waiter

    def tool_seconds(self) -> float | None:
        """How long it has been inside a tool; None while it is not."""
        since = self._in_tool[:1]
        return monotonic() - since[0] if since else None

    def take_over(self) -> bool:
        """Leave it to the tool that it is inside of; False where it is in none. It sees that when its tool returns."""
        try:
            self._in_tool.pop()
        except IndexError:
            return False
        self.in_charge = False
        return True

    def leave_to_tool(self) -> bool:
        """Take over if it has ended or is inside a tool; whether the Execution is the waiter's now."""
        return self.ended or not self.in_charge or self.take_over()

    def raise_problem(self) -> None:
        """Raise what ended it."""
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem

    # In its thread

    def drive(self) -> PlainSignal | None:
        link = self._link
        try:
            link.begin_use()
            try:
                if not self._drive_on():
                    return None
            finally:
                link.end_use()
        except BaseException as raised:  # noqa: BLE001 - handed over to the waiter, which raises it
            self._problem = raised
        # The last of it: the waiter has the Execution from here on, even before it is told.
        self.ended = True
        if self._on_end is not None:
            self._on_end()
        return self._ends

    def _drive_on(self) -> bool:
        """False when the waiter has taken over meanwhile."""
        execution = self._execution
        if self._serves and not (execution.starting or execution.stopping or execution.over) and not self._serve(None):
            return False
        while not execution.over:
            if execution.interrupted:
                execution.stop(REASON_CANCELLED, monotonic())
            starting = execution.starting
            if not starting:
                if not step(self._link, execution, self._patience) and self._patience is not None:
                    break
            elif self._returns(execution):
                break
            elif self._serves and len(starting) == 1 and not execution.stopping:
                if not self._serve(starting.popleft()):
                    return False
            elif not self._run_calls():
                return False
        return True

    def _serve(self, entry: CallEntry | None) -> bool:
        """Carry out one call after another, each of them all that the script waits for, by the shortest way.

        Without a call, wait for the first; nothing is open then. True when there is something else to be done; False
        when the waiter has taken over meanwhile.
        """
        execution, link, executor = self._execution, self._link, self._executor
        calls, clock, in_tool, patience = execution.calls, execution.clock, self._in_tool, self._patience
        perform = calls.quick.perform
        while True:
            if entry is None:
                data = execution.outgoing()
            else:
                # Only now that it is not among those that have not begun: from here on the waiter may take over.
                in_tool.append(entry.received)
                result = perform(entry, clock, executor) or run_to_end(calls.perform(entry, execution, executor))
                try:
                    in_tool.pop()
                except IndexError:
                    self._late.append((entry, result))
                    break
                # From here to the next call nobody takes over.
                if execution.interrupted:
                    execution.answer(entry, *result)
                    return True
                data = execution.answer_lone_call(entry, *result)
            until = deadline = clock.deadline
            if patience is not None:
                until = monotonic() + patience
                if deadline is not None and deadline < until:
                    until = deadline
            try:
                frame = link.exchange(data, until, None if deadline is None else deadline + GRACE)
            except Unread:
                execution.stop(REASON_TIME, monotonic())
                raise
            if frame is None:
                return True
            entry = execution.take_lone_call(*frame) if frame[0] == CALLS else None
            if entry is None:
                execution.frame(*frame)
                return True
            if deadline is not None and entry.received >= deadline:
                execution.starting.append(entry)
                execution.tick(entry.received)
                return True
        self._on_late()
        return False

    def _run_calls(self) -> bool:
        """Run the calls one after another; False when the waiter has taken over meanwhile."""
        execution = self._execution
        starting, perform = execution.starting, execution.calls.perform_here
        while starting:
            entry = starting.popleft()
            # Only now: whoever sees it there, and takes over, must not find the call among those that have not begun.
            self._in_tool.append(monotonic())
            result = perform(entry, execution, self._executor)
            try:
                self._in_tool.pop()
            except IndexError:  # the Execution is the waiter's now: our result goes to it as any other thread's
                self._late.append((entry, result))
                break
            execution.answer(entry, *result)
        else:
            return True
        self._on_late()
        return False


_make: Any = None if NATIVE is None else NATIVE.maker(Helper, Helper.__slots__, Helper)


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


def send(link: Link, execution: Execution) -> None:
    """Send what is to be sent."""
    if execution.interrupting:
        link.interrupt(execution.number, execution.interrupting)
        execution.interrupting = 0
    data = execution.outgoing()
    if data and (rest := link.send_now(data)):
        deadline = execution.deadline()
        # Half a frame would make the worker useless: it has some more time to take the rest.
        if not link.send(rest, None if deadline is None else deadline + GRACE):
            execution.stop(REASON_TIME, monotonic())
            raise Unread
