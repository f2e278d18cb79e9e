"""The caller: the call of a client for which a tool runs, known in every thread that runs for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types
from pydantic import BaseModel

from moonbox.errors import Denied, ToolError
from moonbox.media import Media, MediaStore
from moonbox.runs.record import CLOCK, RunClock
from moonbox.wording import visible

if TYPE_CHECKING:
    from moonbox.mcp.server.call import OpenCall
    from moonbox.mcp.upstreams.connection import Clients
    from moonbox.runs.call_entry import CallEntry
    from moonbox.runs.decisions import ToolCall
    from moonbox.secrets import SecretRedactor

    Response = types.InputResponse | types.ErrorData
    Answer = Callable[[types.InputRequest], Awaitable[Response]]
    Log = Callable[[types.LoggingMessageNotificationParams], None]


CALLER: ContextVar[OpenCall | None] = ContextVar("moonbox_mcp_caller", default=None)


class OwnedMedia(MediaStore):
    """The media that calls returned. Each can be read by the owners of these calls."""

    def __init__(self) -> None:
        super().__init__()
        self._owners: dict[str, set[str]] = {}

    def keep(self, medium: Media) -> None:
        super().keep(medium)
        caller = CALLER.get()
        with self._lock:
            self._owners = {address: owners for address, owners in self._owners.items() if address in self.kept}
            if caller is not None:
                self._owners.setdefault(medium.address, set()).add(caller.owner)

    def owned(self, address: str, owner: str) -> Media | None:
        return self.get(address) if owner in self._owners.get(address, ()) else None


class _Asked:
    """Who is asked for approval: the current caller."""

    @property
    def answers_in_journal(self) -> bool:
        """There is no caller for a run that goes on by itself: only people answer, through the journal."""
        return CALLER.get() is None

    async def approve(self, call: ToolCall) -> Any:
        caller = CALLER.get()
        if caller is None:
            raise Denied(
                f"the tool '{call.tool}' needs approval, and there is nobody to ask; continue without it",
                code="approval_unavailable",
            )
        return await caller.approve(call)


approve = _Asked().approve
"""For `Sandbox(approve=…)`."""


def watch(entry: CallEntry) -> None:
    """For `Sandbox(on_call=…)`: informs the current caller."""
    if (caller := CALLER.get()) is not None:
        caller.call_changed(entry)


def sample(prompt: str, system: str, max_tokens: int) -> str:
    """What the client's model answers; ToolError where it cannot be asked. For the thread of a tool."""
    caller = CALLER.get()
    if caller is None:
        raise ToolError("there is no client whose model could be asked", code="unavailable")
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    params = types.CreateMessageRequestParams(messages=[message], system_prompt=system or None, max_tokens=max_tokens)
    answer = asyncio.run(caller.forward(types.CreateMessageRequest(params=params)))
    if isinstance(answer, types.ErrorData):
        raise ToolError(f"the client's model did not answer: {answer.message}", code="unavailable")
    if not isinstance(answer, types.CreateMessageResult) or not isinstance(answer.content, types.TextContent):
        raise ToolError("the client's model did not answer with text", code="unavailable")
    return answer.content.text


T = TypeVar("T")

MAX_OPEN = 8
"""Requests of one server that wait for their answers at a time."""


@dataclass(frozen=True, slots=True)
class ClientFeatures:
    """What servers may ask for, and the caller that they reach outside of a call."""

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
        self.calls: set[_Call] = set()
        self._open = 0

    @contextlib.contextmanager
    def call(self, timer: asyncio.Timeout) -> Iterator[None]:
        """A call of the current caller is in progress; its timer stops while a client is asked something."""
        call = _Call(timer, CLOCK.get(), CALLER.get())
        self.calls.add(call)
        try:
            yield
        finally:
            self.calls.discard(call)

    async def answer(self, request: types.InputRequest) -> Response:
        caller = CALLER.get()  # set where the request came as part of a call's result
        callers = self._callers() if caller is None else [caller]
        if len(callers) > 1:
            return _refusal(request, "several clients are using this server at the moment")
        if not callers:
            return _refusal(request, "no client is connected that could answer it")
        [caller] = callers
        if self._open >= MAX_OPEN:
            return _refusal(request, f"{MAX_OPEN} requests of this server are already waiting for an answer")
        asked = request
        if isinstance(request, types.ElicitRequest):  # so that no server can pass for another one, or for moonbox
            message = f"The MCP server '{self._server}' asks: {visible(request.params.message)}"
            asked = request.model_copy(update={"params": request.params.model_copy(update={"message": message})})
        waiting = [call for call in self.calls if call.caller is not None and call.caller.client == caller.client]
        self._open += 1
        for call in waiting:
            call.pause()
        try:
            return _with_defaults(request, await caller.forward(asked))
        finally:
            self._open -= 1
            for call in waiting:
                call.resume()

    def log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Pass a log message on to the client whose call the server works on, and to no other."""
        callers = self._callers()
        if len(callers) == 1:
            callers[0].log(params)

    def _callers(self) -> list[OpenCall]:
        """A call of each client that the server works for, or that of the only client there is."""
        working = {call.caller.client: call.caller for call in self.calls if call.caller is not None}
        alone = None if working else self.features.caller()
        return list(working.values()) if alone is None else [alone]


def _with_defaults(request: types.InputRequest, response: Response) -> Response:
    """An accepted form in which fields that were left out have their defaults."""
    params = request.params
    if not isinstance(params, types.ElicitRequestFormParams) or not isinstance(response, types.ElicitResult):
        return response
    fields: Any = params.requested_schema.get("properties")
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


async def is_set_within(event: asyncio.Event, seconds: float | None) -> bool:
    """Wait for the event, not longer than this; whether it is set."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


def _refusal(request: types.InputRequest, reason: str) -> types.ErrorData:
    return types.ErrorData(code=types.INVALID_REQUEST, message=f"{request.method} refused: {reason}")


def redacted(model: T, hide: SecretRedactor) -> T:
    """What a server sent, without secrets."""
    if not hide or not isinstance(model, BaseModel):
        return model
    data = model.model_dump(mode="json", by_alias=True)
    clean = hide(data)
    return model if clean is data else type(model).model_validate(clean, by_name=False)


def sdk_callbacks(features: ClientFeatures, answer: Answer, log: Log) -> dict[str, Any]:
    """Callbacks for what the server may ask; the SDK announces exactly these."""

    async def message(params: types.LoggingMessageNotificationParams) -> None:
        log(params)

    callbacks: dict[str, Any] = {"logging_callback": message}
    if features.sampling:
        callbacks["sampling_callback"] = lambda _, params: answer(types.CreateMessageRequest(params=params))
    if features.elicitation:
        callbacks["elicitation_callback"] = lambda _, params: answer(types.ElicitRequest(params=params))
    if features.roots:
        callbacks["list_roots_callback"] = lambda _: answer(types.ListRootsRequest())
    return callbacks
