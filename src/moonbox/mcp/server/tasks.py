"""Tasks: calls that a client starts, leaves, and comes back to, in the protocol of 2025-11-25.

The SDK knows the types of tasks and handles none of their requests. `TaskCalls` is middleware that takes the calls
which are to become tasks, and the handlers of the requests about them. A task runs on the way of every other call, with
the same limits, and its owner finds it again after a lost connection. It cannot ask its client anything. A script in
the background is a task too, under the id of its run.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from moonbox.mcp.server.kept import MOST_KEPT
from moonbox.mcp.server.results import RELATED_KEY
from moonbox.mcp.server.sessions import Client

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server import Server
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from moonbox.mcp.server.kept import Kept, KeptResults

    Request = ServerRequestContext[Any, Any]
    Run = Callable[[Client, types.CallToolRequestParams], Awaitable[Any]]
    Find = Callable[[str, Client], Awaitable[Kept | None]]

_KEPT_MILLISECONDS = 300_000
_LONGEST_MILLISECONDS = 3_600_000
_POLL_MILLISECONDS = 500


class TaskCalls:
    """Middleware and handlers. `run` carries a call out; `supports` says whether a tool may be called as a task."""

    def __init__(self, run: Run, supports: Callable[[Client, str], bool], kept: KeptResults, find: Find) -> None:
        self._run = run
        self._find_kept = find
        self._supports = supports
        self._kept = kept

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

    def _start(self, client: Client, call: types.CallToolRequestParams) -> Kept:
        if not self._supports(client, call.name):
            raise MCPError(types.METHOD_NOT_FOUND, f"the tool '{call.name}' cannot be called as a task")
        if not self._kept.has_room(client):
            raise MCPError(types.INVALID_PARAMS, f"this client already has {MOST_KEPT} tasks; try again later")
        assert call.task is not None
        wanted = _KEPT_MILLISECONDS if call.task.ttl is None else call.task.ttl
        # The request ends now, and with it whatever could be asked or told on its way.
        alone = replace(client, capabilities=None, wants_progress=False)
        work = asyncio.ensure_future(self._run(alone, call.model_copy(update={"task": None})))
        seconds = min(max(wanted, 1), _LONGEST_MILLISECONDS) / 1000
        return self._kept.add(secrets.token_urlsafe(16), client, work, seconds=seconds)

    # Requests

    async def _find(self, context: Request, task_id: str) -> Kept:
        _check_version(context)
        task = await self._find_kept(task_id, Client.of(context))
        if task is None:
            raise MCPError(types.INVALID_PARAMS, "unknown task; it may have expired")
        return task

    async def _get(self, context: Request, params: types.GetTaskRequestParams) -> types.GetTaskResult:
        return types.GetTaskResult.model_validate(_fields(await self._find(context, params.task_id)), by_name=True)

    async def _list(self, context: Request, _: types.PaginatedRequestParams) -> types.ListTasksResult:
        _check_version(context)
        own = self._kept.of(Client.of(context))
        return types.ListTasksResult(tasks=[types.Task.model_validate(_fields(task), by_name=True) for task in own])

    async def _result(self, context: Request, params: types.GetTaskPayloadRequestParams) -> types.CallToolResult:
        """The result as soon as there is one."""
        task = await self._find(context, params.task_id)
        await asyncio.wait((task.work,))
        if task.cancelled or task.work.cancelled():
            raise MCPError(types.INVALID_PARAMS, "the task was cancelled; it has no result")
        result: types.CallToolResult = task.work.result()
        meta = {**(result.meta or {}), RELATED_KEY: {"taskId": task.id}}
        return result.model_copy(update={"meta": meta})

    async def _cancel(self, context: Request, params: types.CancelTaskRequestParams) -> types.CancelTaskResult:
        task = await self._find(context, params.task_id)
        if (status := _status(task)) != "working":
            raise MCPError(types.INVALID_PARAMS, f"the task cannot be cancelled: it is {status}")
        self._kept.cancel(task)
        return types.CancelTaskResult.model_validate(_fields(task), by_name=True)


def _check_version(context: Request) -> None:
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found", context.method)


def _status(task: Kept) -> types.TaskStatus:
    if task.cancelled:
        return "cancelled"
    if not task.work.done():
        return "working"
    failed = task.work.cancelled() or task.work.exception() is not None or task.work.result().is_error
    return "failed" if failed else "completed"


def _fields(task: Kept) -> dict[str, Any]:
    return {
        "task_id": task.id,
        "status": _status(task),
        "status_message": None if task.call is None or task.work.done() else task.call.progress_text(),
        "created_at": _iso(task.created),
        "last_updated_at": _iso(task.updated),
        "ttl": None if task.seconds is None else round(task.seconds * 1000),
        "poll_interval": _POLL_MILLISECONDS,
    }


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
