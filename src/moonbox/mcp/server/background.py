"""Scripts in the background and tasks: how a client is told of them, and how it comes back for the result.

`wait_tool` is the tool that gives the result of a script that took too long. Tasks are calls that a client starts,
leaves, and comes back to, in the protocol of 2025-11-25; the SDK knows their types and handles none of their requests.
A task is a call that is in the background from its start: it has the same limits, and its owner finds it again after a
lost connection. It cannot ask its client anything. A script in the background is a task too, under the id of its run.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import mcp_types as types
import msgspec
from mcp import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from moonbox.mcp.server.results import RELATED_KEY, RUN_KEY
from moonbox.mcp.server.sessions import McpClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcp.server import Server
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from moonbox.durable.recorded import PendingCall
    from moonbox.mcp.server.call import OpenCall
    from moonbox.mcp.server.calls import OpenCalls
    from moonbox.mcp.server.tools import ToolViews

    Request = ServerRequestContext[Any, Any]
    Begin = Callable[[McpClient, types.CallToolRequestParams, float], OpenCall]

MOST_KEPT = 64
"""In the background for one client, in all of its sessions; the oldest that have ended are forgotten first."""
_LONGEST_ID = 64
_LONGEST_ARGUMENTS = 500
_KEPT_MILLISECONDS = 300_000
_LONGEST_MILLISECONDS = 3_600_000
_POLL_MILLISECONDS = 500


def wait_tool(
    name: str, code_tool: str, result: dict[str, Any] | None, seconds: float, *, journaled: bool = False
) -> types.Tool:
    """The tool as clients see it; `result` is the schema of the code tool's result."""
    properties = {
        "run_id": {"type": "string", "description": f"The run's id, from the answer of {code_tool}."},
        "seconds": {"type": "number", "minimum": 0, "description": f"How long to wait; at most {seconds:g}."},
        "cancel": {"type": "boolean", "description": "Stop the script instead."},
    }
    if journaled:
        properties["in_flight"] = {
            "enum": ["retry", "fail"],
            "description": "After a restart of the server: make calls in doubt again, or let them fail.",
        }
    return types.Tool(
        name=name,
        title="Wait for a script",
        description=(
            f"Waits for a script that {code_tool} left running, and returns its result once it has ended. "
            "Until then it returns how far the script is."
        ),
        input_schema={"type": "object", "properties": properties, "required": ["run_id"]},
        output_schema=result,
        annotations=types.ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False),
    )


class WaitArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the tool is called with."""

    run_id: str
    seconds: Annotated[float, msgspec.Meta(ge=0)] | None = None
    cancel: bool | None = None
    in_flight: Literal["retry", "fail"] | None = None


def still_running(call: OpenCall, client: McpClient, *, structured: bool) -> types.CallToolResult:
    """The answer in place of a result that is not there yet."""
    progress = call.reported.own
    data: dict[str, Any] = {"run": call.id, "calls": call.reported.begun, "running": True}
    if progress is not None:
        shown = {"done": progress.done, "total": progress.total, "text": progress.text or None}
        data["progress"] = {name: value for name, value in shown.items() if value is not None}
    text = (
        f"The script has not ended; it continues as run {call.id}.\n"
        f"Progress: {call.reported.words()}.\n"
        f'For its result, call {call.wait_tool} with run_id = "{call.id}"; with cancel = true it is stopped.'
    )
    meta: dict[str, Any] = {RUN_KEY: call.id}
    if not client.modern:
        meta[RELATED_KEY] = {"taskId": call.id}
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=data if structured else None, _meta=meta
    )


def stopped(run_id: str, calls: int = 0, *, structured: bool) -> types.CallToolResult:
    """The answer where there will be no result."""
    text = types.TextContent(text=f"The run {run_id} was stopped.")
    data = {"run": run_id, "calls": calls} if structured else None
    return types.CallToolResult(content=[text], structured_content=data, _meta={RUN_KEY: run_id})


def in_doubt(call: OpenCall, pending: Iterable[PendingCall]) -> str:
    """What the model is told of calls that a restart of the server cut off, and what it can do."""
    lines = [f"  {each.tool} {json.dumps(each.arguments, default=str)[:_LONGEST_ARGUMENTS]}" for each in pending]
    said = "the server was restarted while this script made the calls below; whether they took effect is not known."
    choice = (
        f'The script waits. Find out what you can, then call {call.wait_tool} with run_id = "{call.id}" and '
        'in_flight = "retry" to make these calls again, or in_flight = "fail" to let them fail with code in_doubt.'
    )
    return "\n".join((said, *lines, choice))


def not_in_background(run_id: str) -> str:
    shown = run_id if len(run_id) <= _LONGEST_ID else run_id[:_LONGEST_ID] + "…"
    return (
        f"no run {shown!r} is in the background: its result was given before, or was not asked for in time. "
        "If it has ended, the resource moonbox://runs/ID is its record."
    )


class TaskCalls:
    """Middleware and handlers. `begin` starts a call."""

    def __init__(self, begin: Begin, views: ToolViews, calls: OpenCalls) -> None:
        self._begin = begin
        self._views = views
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
        task = self._start(McpClient.of(ctx), call)
        result = types.CreateTaskResult(task=types.Task.model_validate(_fields(task), by_name=True))
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    def _start(self, client: McpClient, call: types.CallToolRequestParams) -> OpenCall:
        if not self._views.supports_tasks(client, call.name):
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

    async def _find(self, context: Request, task_id: str) -> OpenCall:
        _check_version(context)
        client = McpClient.of(context)
        call = await self._calls.find_kept(task_id, client, self._views.of(client).wait_tool)
        if call is None:
            raise MCPError(types.INVALID_PARAMS, "unknown task; it may have expired")
        return call

    async def _get(self, context: Request, params: types.GetTaskRequestParams) -> types.GetTaskResult:
        return types.GetTaskResult.model_validate(_fields(await self._find(context, params.task_id)), by_name=True)

    async def _list(self, context: Request, _: types.PaginatedRequestParams) -> types.ListTasksResult:
        _check_version(context)
        own = self._calls.of(McpClient.of(context))
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
        await self._calls.give_up(call.id, McpClient.of(context))
        return types.CancelTaskResult.model_validate(_fields(call), by_name=True)


def _check_version(context: Request) -> None:
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found", context.method)


def _status(call: OpenCall) -> types.TaskStatus:
    if call.cancelled:
        return "cancelled"
    if not call.task.done():
        return "working"
    failed = call.task.cancelled() or call.task.exception() is not None or call.task.result().is_error
    return "failed" if failed else "completed"


def _fields(call: OpenCall) -> dict[str, Any]:
    return {
        "task_id": call.id,
        "status": _status(call),
        "status_message": None if call.task.done() else call.reported.words(),
        "created_at": _iso(call.created),
        "last_updated_at": _iso(call.updated),
        "ttl": None if call.seconds is None else round(call.seconds * 1000),
        "poll_interval": _POLL_MILLISECONDS,
    }


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
