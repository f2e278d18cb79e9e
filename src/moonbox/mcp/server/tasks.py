"""Tasks: calls that a client starts, leaves, and comes back to, in the protocol of 2025-11-25.

The SDK knows the types of tasks and handles none of their requests. `TaskCalls` is middleware that takes the calls
which are to become tasks, and the handlers of the requests about them. A task is a call that is in the background from
its start: it has the same limits, and its owner finds it again after a lost connection. It cannot ask its client
anything. A script in the background is a task too, under the id of its run.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from moonbox.mcp.server.calls import MOST_KEPT
from moonbox.mcp.server.results import RELATED_KEY
from moonbox.mcp.server.sessions import Client

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server import Server
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from moonbox.mcp.server.call import Call
    from moonbox.mcp.server.calls import Calls

    Request = ServerRequestContext[Any, Any]
    Begin = Callable[[Client, types.CallToolRequestParams, float], Call]

_KEPT_MILLISECONDS = 300_000
_LONGEST_MILLISECONDS = 3_600_000
_POLL_MILLISECONDS = 500


class TaskCalls:
    """Middleware and handlers. `begin` starts a call; `supports` says whether a tool may be called as a task."""

    def __init__(self, begin: Begin, supports: Callable[[Client, str], bool], calls: Calls) -> None:
        self._begin = begin
        self._supports = supports
        self._calls = calls

    def register(self, app: Server[Any]) -> None:
        """Handle the requests about tasks."""
        app.add_request_handler("tasks/get", types.GetTaskRequestParams, self._get)
        app.add_request_handler("tasks/result", types.GetTaskPayloadRequestParams, self._result)
        app.add_request_handler("tasks/cancel", types.CancelTaskRequestParams, self._cancel)
        app.add_request_handler("tasks/list", types.PaginatedRequestParams, self._list)

    async def __call__(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        params = ctx.params or {}
        if ctx.method != "tools/call" or params.get("task") is None or ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return await call_next(ctx)
        call = types.CallToolRequestParams.model_validate(params, by_name=False)
        task = self._start(Client.of(ctx), call)
        result = types.CreateTaskResult(task=types.Task.model_validate(_fields(task), by_name=True))
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    def _start(self, client: Client, call: types.CallToolRequestParams) -> Call:
        if not self._supports(client, call.name):
            raise MCPError(types.METHOD_NOT_FOUND, f"the tool '{call.name}' cannot be called as a task")
        if not self._calls.has_room(client):
            raise MCPError(types.INVALID_PARAMS, f"this client already has {MOST_KEPT} tasks; try again later")
        assert call.task is not None
        wanted = _KEPT_MILLISECONDS if call.task.ttl is None else call.task.ttl
        seconds = min(max(wanted, 1), _LONGEST_MILLISECONDS) / 1000
        # The request ends now, and with it whatever could be asked or told on its way.
        alone = replace(client, capabilities=None, wants_progress=False)
        return self._begin(alone, call.model_copy(update={"task": None}), seconds)

    # Requests

    async def _find(self, context: Request, task_id: str) -> Call:
        _check_version(context)
        call = await self._calls.find_kept(task_id, Client.of(context))
        if call is None:
            raise MCPError(types.INVALID_PARAMS, "unknown task; it may have expired")
        return call

    async def _get(self, context: Request, params: types.GetTaskRequestParams) -> types.GetTaskResult:
        return types.GetTaskResult.model_validate(_fields(await self._find(context, params.task_id)), by_name=True)

    async def _list(self, context: Request, _: types.PaginatedRequestParams) -> types.ListTasksResult:
        _check_version(context)
        own = self._calls.of(Client.of(context))
        return types.ListTasksResult(tasks=[types.Task.model_validate(_fields(call), by_name=True) for call in own])

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
        return types.CancelTaskResult.model_validate(_fields(call), by_name=True)


def _check_version(context: Request) -> None:
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found", context.method)


def _status(call: Call) -> types.TaskStatus:
    if call.cancelled:
        return "cancelled"
    if not call.task.done():
        return "working"
    failed = call.task.cancelled() or call.task.exception() is not None or call.task.result().is_error
    return "failed" if failed else "completed"


def _fields(call: Call) -> dict[str, Any]:
    return {
        "task_id": call.id,
        "status": _status(call),
        "status_message": None if call.task.done() else call.progress_text(),
        "created_at": _iso(call.created),
        "last_updated_at": _iso(call.updated),
        "ttl": None if call.seconds is None else round(call.seconds * 1000),
        "poll_interval": _POLL_MILLISECONDS,
    }


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
