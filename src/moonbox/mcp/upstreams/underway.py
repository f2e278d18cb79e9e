"""Calls under way on one server: whom its questions concern, and whose time stands still while a person thinks."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcp_types import INVALID_REQUEST, ElicitRequest, ErrorData

from moonbox.audit.terminal import visible
from moonbox.mcp.caller import CALLER
from moonbox.sandbox.record import CLOCK, RunClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_types import InputRequest, InputResponse

    from moonbox.mcp.caller import Caller
    from moonbox.mcp.upstreams.broker import Broker

__all__ = ["MOST_OPEN", "UnderWay"]

MOST_OPEN = 8
"""Questions of one server that wait for their answers at a time."""


@dataclass(eq=False, slots=True)
class _Call:
    timer: asyncio.Timeout
    clock: RunClock | None
    caller: Caller | None
    pauses: int = 0
    rest: float = 0.0

    def pause(self) -> None:
        self.pauses += 1
        if self.pauses == 1:
            now = asyncio.get_running_loop().time()
            self.rest = (self.timer.when() or now) - now
            self.timer.reschedule(None)
            if self.clock is not None:
                self.clock.pause()

    def go_on(self) -> None:
        self.pauses -= 1
        if self.pauses == 0:
            if self.clock is not None:
                self.clock.go_on()
            with contextlib.suppress(RuntimeError):  # it has ended meanwhile
                self.timer.reschedule(asyncio.get_running_loop().time() + self.rest)


class UnderWay:
    """Enter each call; give `answer` the server's questions.

    A question of the newer protocol belongs to a call and comes with it. One of the earlier protocol comes by itself:
    it is passed on when all calls under way are of one client, and refused when they are of several, so that nobody is
    asked about another's affairs. A form says which server asks, so that none can pass for another, or for moonbox.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self.broker: Broker | None = None
        self._calls: set[_Call] = set()
        self._open = 0

    @contextlib.contextmanager
    def call(self, timer: asyncio.Timeout) -> Iterator[Caller | None]:
        """While it lasts, a call of the present caller is under way."""
        call = _Call(timer, CLOCK.get(), CALLER.get())
        self._calls.add(call)
        try:
            yield call.caller
        finally:
            self._calls.discard(call)

    async def answer(self, request: InputRequest) -> InputResponse | ErrorData:
        caller = CALLER.get()
        if caller is None:
            callers = [call.caller for call in self._calls if call.caller is not None]
            if len({item.client for item in callers}) > 1:
                return _refusal(f"{request.method} is refused: several clients use this server at the moment")
            alone = self.broker.alone() if self.broker is not None else None
            caller = callers[0] if callers else alone
        if caller is None:
            return _refusal(f"{request.method} is refused: no client is there to answer it")
        if self._open >= MOST_OPEN:
            return _refusal(f"{request.method} is refused: {MOST_OPEN} questions of this server are open already")
        waiting = [call for call in self._calls if call.caller is not None and call.caller.client == caller.client]
        self._open += 1
        for call in waiting:
            call.pause()
        try:
            return await caller.forward(self._signed(request))
        finally:
            self._open -= 1
            for call in waiting:
                call.go_on()

    def _signed(self, request: InputRequest) -> InputRequest:
        if not isinstance(request, ElicitRequest):
            return request
        message = f"The MCP server '{self._server}' asks: {visible(request.params.message)}"
        return request.model_copy(update={"params": request.params.model_copy(update={"message": message})})


def _refusal(message: str) -> ErrorData:
    return ErrorData(code=INVALID_REQUEST, message=message)
