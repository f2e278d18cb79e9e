"""Tools that run as tasks, as the protocol of 2025-11-25 has them: started, asked after, and fetched."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcp import MCPError
from mcp_types import (
    CallToolRequest,
    CallToolResult,
    CancelTaskRequest,
    CancelTaskRequestParams,
    CancelTaskResult,
    CreateTaskResult,
    GetTaskPayloadRequest,
    GetTaskPayloadRequestParams,
    GetTaskRequest,
    GetTaskRequestParams,
    GetTaskResult,
    TaskMetadata,
)

from moonbox.errors import ToolError

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp_types import Task
    from mcp_types import Tool as Listed

__all__ = ["call_as_task", "needs_task"]

_SHORTEST_WAIT, _LONGEST_WAIT = 0.05, 5.0
_KEPT_MILLISECONDS = 600_000


def needs_task(tool: Listed) -> bool:
    """Whether the server refuses to answer an ordinary call of it."""
    return tool.execution is not None and tool.execution.task_support == "required"


async def call_as_task(session: ClientSession, request: CallToolRequest) -> CallToolResult:
    """Start the call as a task and wait for its result; cancelling this cancels the task."""
    params = request.params.model_copy(update={"task": TaskMetadata(ttl=_KEPT_MILLISECONDS)})
    # `send_request` knows only ordinary answers to tools/call and refuses a task; the channel below it does not.
    raw = await session._dispatcher.send_raw_request(
        request.method, params.model_dump(by_alias=True, mode="json", exclude_none=True)
    )
    created = CreateTaskResult.model_validate(raw, by_name=False)
    try:
        task = await _finished(session, created.task)
    except asyncio.CancelledError:
        cancel = CancelTaskRequest(params=CancelTaskRequestParams(task_id=created.task.task_id))
        await _quietly(session, cancel)
        raise
    if task.status == "cancelled":
        raise ToolError("the server cancelled the task", code="cancelled")
    fetch = GetTaskPayloadRequest(params=GetTaskPayloadRequestParams(task_id=task.task_id))
    return await session.send_request(fetch, CallToolResult)


async def _finished(session: ClientSession, task: Task) -> Task:
    while task.status == "working":
        wait = (task.poll_interval or 500) / 1000
        await asyncio.sleep(min(max(wait, _SHORTEST_WAIT), _LONGEST_WAIT))
        task = await session.send_request(
            GetTaskRequest(params=GetTaskRequestParams(task_id=task.task_id)), GetTaskResult
        )
    return task


async def _quietly(session: ClientSession, request: CancelTaskRequest) -> None:
    try:
        async with asyncio.timeout(2):
            await session.send_request(request, CancelTaskResult)
    except (MCPError, TimeoutError, ValueError):
        return
