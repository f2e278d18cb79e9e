"""Requests of a server to its clients: sampling, elicitation and roots, and which client answers them.

A request of the current protocol belongs to a call and comes with it. One of the earlier protocol comes by itself: it
goes to the client whose calls the server is working on, and is refused when these are of several clients, so that
nobody is asked about somebody else's call.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types
from pydantic import BaseModel

from moonbox.mcp.caller import CALLER
from moonbox.runs.record import CLOCK, RunClock
from moonbox.wording import visible

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from mcp.shared.dispatcher import ProgressFnT

    from moonbox.mcp.server.call import OpenCall
    from moonbox.mcp.upstreams.protocols import Clients
    from moonbox.secrets import SecretRedactor

    Answer = Callable[[types.InputRequest], Awaitable[types.InputResponse | types.ErrorData]]
    Log = Callable[[types.LoggingMessageNotificationParams], None]

T = TypeVar("T")

MAX_OPEN = 8
"""Requests of one server that wait for their answers at a time."""


@dataclass(frozen=True, slots=True)
class ClientFeatures:
    """What servers are told that they can ask for, and whom they reach outside of a call."""

    sampling: bool = False
    elicitation: bool = False
    roots: bool = False
    shared: bool = False
    """Several owners use the servers: what one of them makes a server write is not shown to the others."""
    clients: Clients = "current"
    """The protocol that the clients speak."""
    caller: Callable[[], OpenCall | None] = lambda: None
    """The client to ask while no call is in progress; None if there is none."""


class Callbacks:
    """Register each call with `call`; pass the server's requests to `answer`."""

    def __init__(self, server: str) -> None:
        self._server = server
        self.features = ClientFeatures()
        self._calls: set[_Call] = set()
        self._open = 0

    @property
    def calls(self) -> int:
        """How many calls are in progress."""
        return len(self._calls)

    @contextlib.contextmanager
    def call(self, timer: asyncio.Timeout) -> Iterator[OpenCall | None]:
        """A call of the current caller is in progress; its timer stops while a client is asked something."""
        call = _Call(timer, CLOCK.get(), CALLER.get())
        self._calls.add(call)
        try:
            yield call.caller
        finally:
            self._calls.discard(call)

    async def answer(self, request: types.InputRequest) -> types.InputResponse | types.ErrorData:
        caller = CALLER.get()  # set where the request came as part of a call's result
        if caller is None and self._has_several_clients():
            return _refusal(request, "several clients are using this server at the moment")
        caller = caller or self._caller()
        if caller is None:
            return _refusal(request, "no client is connected that could answer it")
        if self._open >= MAX_OPEN:
            return _refusal(request, f"{MAX_OPEN} requests of this server are already waiting for an answer")
        waiting = [call for call in self._calls if call.caller is not None and call.caller.client == caller.client]
        self._open += 1
        for call in waiting:
            call.pause()
        try:
            return _with_defaults(request, await caller.forward(self._with_origin(request)))
        finally:
            self._open -= 1
            for call in waiting:
                call.resume()

    def log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Pass a log message on to the client that the server works for; nobody gets one about another's call."""
        caller = None if self._has_several_clients() else self._caller()
        if caller is not None:
            caller.log(params)

    def _caller(self) -> OpenCall | None:
        """The client that the server works for, or the only one there is."""
        callers = [call.caller for call in self._calls if call.caller is not None]
        return callers[0] if callers else self.features.caller()

    def _has_several_clients(self) -> bool:
        return len({call.caller.client for call in self._calls if call.caller is not None}) > 1

    def _with_origin(self, request: types.InputRequest) -> types.InputRequest:
        """A form says which server asks, so that no server can pass for another one, or for moonbox."""
        if not isinstance(request, types.ElicitRequest):
            return request
        message = f"The MCP server '{self._server}' asks: {visible(request.params.message)}"
        return request.model_copy(update={"params": request.params.model_copy(update={"message": message})})


def _with_defaults(
    request: types.InputRequest, response: types.InputResponse | types.ErrorData
) -> types.InputResponse | types.ErrorData:
    """An accepted form in which fields that were left out have their defaults."""
    params = request.params
    if not isinstance(params, types.ElicitRequestFormParams) or not isinstance(response, types.ElicitResult):
        return response
    fields = params.requested_schema.get("properties")
    if response.action != "accept" or not isinstance(fields, dict):
        return response
    defaults = {
        name: field["default"] for name, field in fields.items() if isinstance(field, dict) and "default" in field
    }
    return response.model_copy(update={"content": {**defaults, **(response.content or {})}})


@dataclass(eq=False, slots=True)
class _Call:
    """A call in progress, with the two clocks that stand still while a person thinks: its own and the run's."""

    timer: asyncio.Timeout
    clock: RunClock | None
    caller: OpenCall | None
    pauses: int = 0
    remaining: float = 0.0

    def pause(self) -> None:
        self.pauses += 1
        if self.pauses == 1:
            now = asyncio.get_running_loop().time()
            self.remaining = (self.timer.when() or now) - now
            self.timer.reschedule(None)
            if self.clock is not None:
                self.clock.pause()

    def resume(self) -> None:
        self.pauses -= 1
        if self.pauses == 0:
            if self.clock is not None:
                self.clock.go_on()
            with contextlib.suppress(RuntimeError):  # the call has ended
                self.timer.reschedule(asyncio.get_running_loop().time() + self.remaining)


def _refusal(request: types.InputRequest, reason: str) -> types.ErrorData:
    return types.ErrorData(code=types.INVALID_REQUEST, message=f"{request.method} refused: {reason}")


def progress_reporter(caller: OpenCall | None, name: str) -> ProgressFnT | None:
    """Reports the progress of a call to its client; None if the client did not ask for it."""
    if caller is None or not caller.wants_progress:
        return None

    async def report(progress: float, total: float | None, message: str | None) -> None:
        caller.progress(name, progress, total, message)

    return report


def named_logger(params: types.LoggingMessageNotificationParams, server: str) -> types.LoggingMessageNotificationParams:
    """A log message with the server's name before the logger's."""
    if not server:
        return params
    return params.model_copy(update={"logger": f"{server}.{params.logger}" if params.logger else server})


def redacted(model: T, hide: SecretRedactor) -> T:
    """What a server sent, without secrets."""
    if not hide or not isinstance(model, BaseModel):
        return model
    data = model.model_dump(mode="json", by_alias=True)
    clean = hide(data)
    return model if clean is data else type(model).model_validate(clean, by_name=False)


def sdk_callbacks(features: ClientFeatures, answer: Answer, log: Log | None) -> dict[str, Any]:
    """Callbacks for what the server may ask; the SDK announces exactly these."""

    async def message(params: types.LoggingMessageNotificationParams) -> None:
        if log is not None:
            log(params)

    callbacks: dict[str, Any] = {"logging_callback": message}
    if features.sampling:
        callbacks["sampling_callback"] = lambda _, params: answer(types.CreateMessageRequest(params=params))
    if features.elicitation:
        callbacks["elicitation_callback"] = lambda _, params: answer(types.ElicitRequest(params=params))
    if features.roots:
        callbacks["list_roots_callback"] = lambda _: answer(types.ListRootsRequest())
    return callbacks
