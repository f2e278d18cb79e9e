"""All calls in progress: those that a request waits for, that wait for an answer, or that are in the background.

A call in the background outlives its request: a script that took too long, or a task. Its owner finds it by its id
until it has the result, for a limited time, and has a limited number of them.

Tasks are calls that a client starts, leaves, and comes back to, in the protocol of 2025-11-25; the SDK knows their
types and handles none of their requests. A task is a call that is in the background from its start. It cannot ask its
client anything. A script in the background is a task too, under the id of its run.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import mcp_types as types
import msgspec
from mcp import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from moonbox.durable.handles import Handles
from moonbox.errors import UsageError
from moonbox.mcp.server.call import OpenCall
from moonbox.mcp.server.results import RELATED_KEY, error_result, not_in_background, still_running, stopped
from moonbox.mcp.server.sessions import McpClient
from moonbox.threads import in_thread, unbroken

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from moonbox.config.sections import ServeSettings
    from moonbox.durable.store import Journal
    from moonbox.mcp.server.call import DirectName, Outcome
    from moonbox.mcp.server.tools import ToolViews

    Request = ServerRequestContext[Any, Any]
    Begin = Callable[[McpClient, types.CallToolRequestParams], OpenCall]
    Work = Callable[[OpenCall], Coroutine[Any, Any, types.CallToolResult]]

MOST_KEPT = 64
"""In the background for one client, in all of its sessions; the oldest that have ended are forgotten first."""
_KEPT_MILLISECONDS = 300_000
_LONGEST_MILLISECONDS = 3_600_000
_POLL_MILLISECONDS = 500
_MOST_CHARACTERS = 32 * 1024 * 1024
"""Of the results that are kept for one client; the last one is kept in any case."""
_MAX_PAUSED = 1_000
_LONGEST_PROBLEM = 200
_STOP_SECONDS = 5.0
"""How long a script has to stop before the client is told that it was stopped."""
_LOOK_SECONDS = 0.25
_BEGIN_SECONDS = 30.0  # until a script that waits for its turn on another front end is unknown


class OpenCalls:
    """All calls in progress, including those that wait for an answer of their client."""

    def __init__(self, settings: ServeSettings, direct_name: DirectName, journal: Journal | None = None) -> None:
        self._settings = settings
        self._direct_name = direct_name
        self._journal = journal
        self._handles = None if journal is None else Handles(journal.backend)
        self._calls: dict[str, OpenCall] = {}
        self._awaited: set[str] = set()  # runs that go on by themselves and have a handle
        self.recover: Callable[..., Coroutine[Any, Any, types.CallToolResult]]
        """Continues a script that a restart of the server has cut off."""

    def start(self, client: McpClient, work: Work, **options: Any) -> OpenCall:
        """Start a new call; `resume` waits for its result. The options are those of OpenCall."""
        call = OpenCall(client, self._settings, self._direct_name, **options)
        self._calls[call.id] = call
        call.start(work(call))
        call.task.add_done_callback(lambda _: self._done(call))
        return call

    def _done(self, call: OpenCall) -> None:
        if call.in_background:
            self._note_end(call)
        elif call.paused_at is None:  # otherwise the client comes back for the result
            self._forget(call)

    def find(self, state: str, client: McpClient) -> OpenCall | None:
        """The paused call that a client continues; None if there is none, or another client owns it."""
        call = self._calls.get(state)
        return None if call is None or call.owner != client.owner or call.paused_at is None else call

    async def resume(self, call: OpenCall, client: McpClient, seconds: float | None = None) -> Outcome:
        """Wait for the result, or for the next question; a script that takes long continues in the background."""
        limit = call.answered_within
        result = await call.drive(client, limit if seconds is None or limit is None else min(seconds, limit))
        if result is None and not call.task.done():
            if not await self._is_in_background(call, client):
                call.answered_within = None  # there is no other way than to wait
                return await self.resume(call, client)
            return still_running(call, client, structured=self._settings.structured)
        if result is None:
            result = stopped(call.id, call.reported.begun, structured=self._settings.structured)
        if result.result_type != "input_required":
            self._forget(call)
            if call.in_background and not call.cut_off:
                await self._drop_handle(call.id, client)
        return result

    async def wait_for_conversation(self, conversation: str) -> None:
        """Before another script runs there: give a paused call some time to continue, then stop it."""
        deadline = asyncio.get_running_loop().time() + self._settings.resume_seconds
        for call in [call for call in self._calls.values() if call.conversation == conversation]:
            if call.paused_at and not call.task.done():
                try:
                    async with asyncio.timeout_at(deadline):
                        await call.attached.wait()
                except TimeoutError:
                    self.stop(call)

    # In the background

    def has_room(self, client: McpClient) -> bool:
        """Whether one more of this client can be kept; the oldest that has ended is forgotten for that."""
        self.sweep()
        if sum(call.in_background and call.share == client.share for call in self._calls.values()) < MOST_KEPT:
            return True
        ended = self._ended(client.share)
        if ended:
            self._forget(ended[0])
        return bool(ended)

    async def _is_in_background(self, call: OpenCall, client: McpClient) -> bool:
        """Whether the client can come back for the result, which is possible for a limited number of calls."""
        if not call.in_background and self.has_room(client):
            call.enter_background()
            if self._handles is not None:
                try:
                    await unbroken(self._handles.keep, call.id, call.owner)
                except BaseException:  # the client will not know its id
                    self._forget(call)
                    call.task.cancel()
                    raise
                call.has_handle = True
        return call.in_background

    def of(self, client: McpClient) -> list[OpenCall]:
        """What the client itself has in the background."""
        self.sweep()
        return [call for call in self._calls.values() if call.in_background and call.client == client.id]

    def _kept(self, id: str, client: McpClient) -> OpenCall | None:
        """What has this id, if it is this owner's; ids cannot be guessed, which tells one owner's clients apart."""
        self.sweep()
        call = self._calls.get(id)
        return call if call is not None and call.in_background and call.owner == client.owner else None

    async def find_kept(
        self, id: str, client: McpClient, wait_tool: str | None = None, in_flight: str | None = None
    ) -> OpenCall | None:
        """What the client was told to come back for; a script that was cut off by a restart is continued."""
        call = self._kept(id, client)
        if call is not None or self._handles is None:
            return call
        known = await in_thread(self._handles.has, id, client.owner)
        if (call := self._kept(id, client)) is None and known and self.has_room(client):
            call = self.start(client, lambda call: self.recover(call, client, in_flight), wait_tool=wait_tool, id=id)
            call.enter_background()
            call.has_handle = True
        return call

    async def wait(self, client: McpClient, arguments: Mapping[str, Any], wait_tool: str | None) -> Outcome:
        """Wait for a script in the background, or stop it; its result is given once."""
        try:
            asked = msgspec.convert(arguments, WaitArguments)
        except msgspec.ValidationError as problem:
            return error_result(f"invalid arguments: {str(problem)[:_LONGEST_PROBLEM]}")
        call = self._kept(asked.run_id, client)
        if call is not None and call.cut_off and asked.in_flight is not None:
            self._forget(call)  # it was refused for want of this decision
            call = None
        if call is None and asked.cancel and await self.give_up(asked.run_id, client):
            return stopped(asked.run_id, structured=self._settings.structured)
        call = call or await self.find_kept(asked.run_id, client, wait_tool, asked.in_flight)
        if call is None:
            return error_result(not_in_background(asked.run_id))
        if asked.cancel and not call.task.done():
            self._forget(call)
            call.task.cancel()
            await asyncio.wait((call.task,), timeout=_STOP_SECONDS)
            await self.give_up(call.id, client)
            return stopped(call.id, call.reported.begun, structured=self._settings.structured)
        call.take_answers(None)
        call.wait_tool, call.answered_within = wait_tool, self._settings.answer_within
        return await self.resume(call, client, asked.seconds)

    async def _drop_handle(self, id: str, client: McpClient) -> bool:
        """Whether the journal had one of this client; a run that a restart has cut off then stays as it is."""
        return self._handles is not None and await unbroken(self._handles.drop, id, client.owner)

    async def give_up(self, id: str, client: McpClient) -> bool:
        """Drop the handle of a script that is cancelled; whether there was one. Another front end may still run it."""
        if not await self._drop_handle(id, client):
            return False
        assert self._journal is not None
        self._stop_recovering(id)
        with suppress(TimeoutError, UsageError):
            async with asyncio.timeout(_STOP_SECONDS):
                await self.until_free(id)
            await in_thread(self._journal.park, id, "its client has cancelled it")  # one that was cut off
        return True

    def _stop_recovering(self, id: str) -> None:
        if self._journal is not None and (running := self._journal.recovering.get(id)) is not None:
            running.cancel()

    async def until_free(self, id: str) -> None:
        """Wait while another front end runs the script, or is about to. Raises UsageError where it does not begin."""
        assert self._journal is not None
        latest = time.monotonic() + _BEGIN_SECONDS
        while await in_thread(self._journal.look_up, id) is None and time.monotonic() < latest:
            await asyncio.sleep(_LOOK_SECONDS)  # its client was told of it while it waited for its turn
        while await self.runs_elsewhere(id):
            await asyncio.sleep(_LOOK_SECONDS)

    async def runs_elsewhere(self, id: str) -> bool:
        """Whether the script has not ended, and a living process has its Repl."""
        assert self._journal is not None
        known = await in_thread(self._journal.known, id)
        return known.in_use and not known.has_ended

    async def stop_given_up(self) -> None:
        """Stop the scripts whose handle another front end has dropped: it has given the result, or cancelled them."""
        if self._handles is None or self._journal is None:
            return
        calls = {call.id: call for call in self._calls.values() if call.has_handle and not call.cancelled}
        recovering = set(self._journal.recovering)
        if not (calls or recovering):
            return
        dropped = set(await in_thread(self._handles.dropped, [*calls, *recovering]))
        for id in dropped & calls.keys():
            calls[id].task.cancel()
            self._forget(calls[id])
        for id in dropped & recovering & self._awaited:
            self._stop_recovering(id)
        self._awaited = recovering - dropped

    def suspended(self) -> list[str]:
        """The scripts in the background that have not ended and can continue after a restart, which tasks cannot."""
        return [
            call.id
            for call in self._calls.values()
            if call.in_background and call.seconds is None and not (call.cancelled or call.task.done())
        ]

    def _note_end(self, call: OpenCall) -> None:
        """What is kept has a budget: the oldest results are forgotten first."""
        call.updated = time.time()
        if call.task.cancelled() or call.task.exception() is not None:  # reading it keeps asyncio from logging it
            return
        call.size = _size(call.task.result())
        kept = self._ended(call.share)
        while len(kept) > 1 and sum(other.size for other in kept) > _MOST_CHARACTERS:
            self._forget(kept.pop(0))

    def _ended(self, share: str) -> list[OpenCall]:
        """Those in the background of one client that have ended, the oldest first."""
        own = [call for call in self._calls.values() if call.in_background and call.share == share]
        return sorted((call for call in own if call.task.done()), key=lambda call: call.updated)

    # Ends

    def sweep(self) -> None:
        """Stop the calls whose client did not come back, and forget what was kept long enough."""
        now, oldest = time.time(), time.monotonic() - self._settings.answer_seconds
        paused = sorted((call.paused_at, call.id) for call in self._calls.values() if call.paused_at is not None)
        surplus = len(paused) - _MAX_PAUSED
        for number, (paused_at, name) in enumerate(paused):
            if number < surplus or paused_at < oldest:
                self.stop(self._calls[name])
        for call in list(self._calls.values()):
            if call.in_background and now > self._end(call):
                call.task.cancel()
                self._forget(call)

    def _end(self, call: OpenCall) -> float:
        if call.seconds is not None:
            return call.created + call.seconds
        return call.updated + self._settings.idle_seconds if call.task.done() else float("inf")

    def stop(self, call: OpenCall) -> None:
        """Stop a call. One in the background stays known, so that its client learns that it was stopped."""
        call.paused_at = None
        call.task.cancel()
        if not call.in_background:
            self._forget(call)

    async def close(self) -> None:
        tasks = [call.task for call in self._calls.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._calls.clear()

    def _forget(self, call: OpenCall) -> None:
        self._calls.pop(call.id, None)


def _size(result: types.CallToolResult) -> int:
    size = 0 if result.structured_content is None else len(json.dumps(result.structured_content, default=str))
    for block in result.content:
        inner = getattr(block, "resource", block)
        size += sum(len(getattr(inner, name, None) or "") for name in ("text", "data", "blob"))
    return size


class WaitArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    run_id: str
    seconds: Annotated[float, msgspec.Meta(ge=0)] | None = None
    cancel: bool | None = None
    in_flight: Literal["retry", "fail"] | None = None


@dataclass(eq=False)
class TaskCalls:
    """Middleware and handlers. `begin` starts a call; `wait` is awaited before."""

    _begin: Begin
    _wait: Callable[[], Awaitable[None]]
    _views: ToolViews
    _calls: OpenCalls

    def register(self, app: Server[Any]) -> None:
        app.add_request_handler("tasks/get", types.GetTaskRequestParams, self._get)
        app.add_request_handler("tasks/result", types.GetTaskPayloadRequestParams, self._result)
        app.add_request_handler("tasks/cancel", types.CancelTaskRequestParams, self._cancel)
        app.add_request_handler("tasks/list", types.PaginatedRequestParams, self._list)

    async def __call__(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        params, modern = ctx.params or {}, ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        if modern and ctx.method.startswith("tasks/"):
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found", ctx.method)
        if ctx.method != "tools/call" or params.get("task") is None or modern:
            return await call_next(ctx)
        await self._wait()
        task = self._start(McpClient.of(ctx), types.CallToolRequestParams.model_validate(params, by_name=False))
        result = types.CreateTaskResult(task=types.Task(**_fields(task)))
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    def _start(self, client: McpClient, params: types.CallToolRequestParams) -> OpenCall:
        if not self._views.supports_tasks(client, params.name):
            raise MCPError(types.METHOD_NOT_FOUND, f"the tool '{params.name}' cannot be called as a task")
        if not self._calls.has_room(client):
            raise MCPError(types.INVALID_PARAMS, f"this client already has {MOST_KEPT} tasks; try again later")
        assert params.task is not None
        wanted = _KEPT_MILLISECONDS if params.task.ttl is None else params.task.ttl
        seconds = min(max(wanted, 1), _LONGEST_MILLISECONDS) / 1000
        # The request ends now, and with it whatever could be asked or told on its way.
        alone = replace(client, capabilities=None, wants_progress=False)
        call = self._begin(alone, params.model_copy(update={"task": None}))
        call.enter_background(seconds)
        return call

    # Requests

    async def _find(self, context: Request, task_id: str) -> OpenCall:
        client = McpClient.of(context)
        call = await self._calls.find_kept(task_id, client, self._views.of(client).wait_tool)
        if call is None:
            raise MCPError(types.INVALID_PARAMS, "unknown task; it may have expired")
        return call

    async def _get(self, context: Request, params: types.GetTaskRequestParams) -> types.GetTaskResult:
        return types.GetTaskResult(**_fields(await self._find(context, params.task_id)))

    async def _list(self, context: Request, _: types.PaginatedRequestParams) -> types.ListTasksResult:
        own = self._calls.of(McpClient.of(context))
        return types.ListTasksResult(tasks=[types.Task(**_fields(call)) for call in own])

    async def _result(self, context: Request, params: types.GetTaskPayloadRequestParams) -> types.CallToolResult:
        """The result as soon as there is one."""
        call = await self._find(context, params.task_id)
        await asyncio.wait((call.task,))
        if call.cancelled or call.task.cancelled():
            raise MCPError(types.INVALID_PARAMS, "the task was cancelled; it has no result")
        result: types.CallToolResult = call.task.result()
        meta = {**(result.meta or {}), RELATED_KEY: {"taskId": call.id}}
        return result.model_copy(update={"meta": meta})

    async def _cancel(self, context: Request, params: types.CancelTaskRequestParams) -> types.CancelTaskResult:
        call = await self._find(context, params.task_id)
        if (status := _status(call)) != "working":
            raise MCPError(types.INVALID_PARAMS, f"the task cannot be cancelled: it is {status}")
        call.cancel()
        await self._calls.give_up(call.id, McpClient.of(context))
        return types.CancelTaskResult(**_fields(call))


def _status(call: OpenCall) -> types.TaskStatus:
    if call.cancelled:
        return "cancelled"
    if not call.task.done():
        return "working"
    failed = call.task.cancelled() or call.task.exception() is not None or call.task.result().is_error
    return "failed" if failed else "completed"


def _fields(call: OpenCall) -> dict[str, Any]:
    moments = (datetime.fromtimestamp(moment, UTC).replace(tzinfo=None) for moment in (call.created, call.updated))
    created, updated = (f"{moment.isoformat(timespec='milliseconds')}Z" for moment in moments)
    return {
        "task_id": call.id,
        "status": _status(call),
        "status_message": None if call.task.done() else call.reported.words(),
        "created_at": created,
        "last_updated_at": updated,
        "ttl": None if call.seconds is None else round(call.seconds * 1000),
        "poll_interval": _POLL_MILLISECONDS,
    }
