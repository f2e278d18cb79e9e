"""Slots that threads and tasks wait for alike: turns of a Repl's runs, and calls that run at the same time."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import asynccontextmanager, contextmanager
from os import getpid
from typing import TYPE_CHECKING

from moonbox.errors import ClosedError, ToolError, UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from concurrent.futures import Future

    from moonbox.sandbox.record import CallEntry
    from moonbox.tools.tool import Tool

__all__ = ["RunningCall", "RunningCalls", "Slots", "ToolSlots", "Turns"]

MOST_LEFT = 64
"""So many calls of a Sandbox may still run that nobody waits for; then no other call is made."""


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

    closed = False
    paused = False
    """A step-by-step run waits for its caller's answers."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self._pid = pid  # a process that was forked from this one shares its sockets

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

    @contextmanager
    def taken(self) -> Iterator[None]:
        """For what is done seldom; `enter` and `leave` are quicker."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    @asynccontextmanager
    async def ataken(self) -> AsyncIterator[None]:
        """The same, awaited."""
        await self.aenter()
        try:
            yield
        finally:
            self.leave()

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
