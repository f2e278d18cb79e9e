"""Tasks: calls that a client starts, leaves, and comes back to, in the protocol of 2025-11-25.

The SDK knows the types of tasks and handles none of their requests. `TaskCalls` is middleware that takes the calls
which are to become tasks, and the handlers of the requests about them. A task runs on the way of every other call, with
the same limits, and its owner finds it again after a lost connection. It cannot ask its client anything.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolRequestParams,
    CallToolResult,
    CancelTaskRequestParams,
    CancelTaskResult,
    CreateTaskResult,
    GetTaskPayloadRequestParams,
    GetTaskRequestParams,
    GetTaskResult,
    ListTasksResult,
    PaginatedRequestParams,
    Task,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from moonbox.mcp.server.sessions import Client

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server import Server
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp_types import TaskStatus

    Request = ServerRequestContext[Any, Any]
    Run = Callable[[Client, CallToolRequestParams], Awaitable[Any]]

RELATED_KEY = "io.modelcontextprotocol/related-task"
_KEPT_MILLISECONDS = 300_000
_LONGEST_MILLISECONDS = 3_600_000
_POLL_MILLISECONDS = 500
_MOST_TASKS = 64
"""Of one client, in all of its sessions; the oldest that have ended are forgotten first."""
_MOST_KEPT = 32 * 1024 * 1024
"""Characters of the results that are kept for one client; the last one is kept in any case."""


@dataclass(slots=True)
class _Task:
    id: str
    owner: str
    client: str
    share: str
    ttl: int
    created: float
    updated: float
    work: asyncio.Task[Any]
    cancelled: bool = False
    size: int = 0
    """Of its result."""

    @property
    def status(self) -> TaskStatus:
        if self.cancelled:
            return "cancelled"
        if not self.work.done():
            return "working"
        failed = self.work.cancelled() or self.work.exception() is not None or self.work.result().is_error
        return "failed" if failed else "completed"

    def fields(self) -> dict[str, Any]:
        return {
            "task_id": self.id,
            "status": self.status,
            "created_at": _iso(self.created),
            "last_updated_at": _iso(self.updated),
            "ttl": self.ttl,
            "poll_interval": _POLL_MILLISECONDS,
        }


class TaskCalls:
    """Middleware and handlers. `run` carries a call out; `supports` says whether a tool may be called as a task."""

    def __init__(
        self, run: Run, supports: Callable[[Client, str], bool], *, clock: Callable[[], float] = time.time
    ) -> None:
        self._run = run
        self._supports = supports
        self._clock = clock
        self._tasks: dict[str, _Task] = {}

    def register(self, app: Server[Any]) -> None:
        """Handle the requests about tasks."""
        app.add_request_handler("tasks/get", GetTaskRequestParams, self._get)
        app.add_request_handler("tasks/result", GetTaskPayloadRequestParams, self._result)
        app.add_request_handler("tasks/cancel", CancelTaskRequestParams, self._cancel)
        app.add_request_handler("tasks/list", PaginatedRequestParams, self._list)

    async def __call__(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        params = ctx.params or {}
        if ctx.method != "tools/call" or params.get("task") is None or ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return await call_next(ctx)
        call = CallToolRequestParams.model_validate(params, by_name=False)
        task = self._start(Client.of(ctx), call)
        result = CreateTaskResult(task=Task.model_validate(task.fields(), by_name=True))
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    def end_expired(self) -> None:
        """Forget the tasks whose time is over; those that still run are stopped."""
        now = self._clock()
        for task in [task for task in self._tasks.values() if now > task.created + task.ttl / 1000]:
            self._forget(task)

    async def close(self) -> None:
        """Stop every task."""
        running = [task.work for task in self._tasks.values() if not task.work.done()]
        for work in running:
            work.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._tasks.clear()

    def _start(self, client: Client, call: CallToolRequestParams) -> _Task:
        if not self._supports(client, call.name):
            raise MCPError(METHOD_NOT_FOUND, f"the tool '{call.name}' cannot be called as a task")
        self._make_room(client)
        assert call.task is not None
        wanted = _KEPT_MILLISECONDS if call.task.ttl is None else call.task.ttl
        now = self._clock()
        # The request ends now, and with it whatever could be asked or told on its way.
        alone = replace(client, capabilities=None, wants_progress=False)
        work = asyncio.ensure_future(self._run(alone, call.model_copy(update={"task": None})))
        task = _Task(
            id=secrets.token_urlsafe(16),
            owner=client.owner,
            client=client.id,
            share=client.share,
            ttl=min(max(wanted, 1), _LONGEST_MILLISECONDS),
            created=now,
            updated=now,
            work=work,
        )
        self._tasks[task.id] = task
        work.add_done_callback(lambda _: self._note_end(task))
        return task

    def _note_end(self, task: _Task) -> None:
        task.updated = self._clock()
        if task.work.cancelled() or task.work.exception() is not None:  # reading it keeps asyncio from logging it
            return
        if task.id not in self._tasks:  # its time was over
            return
        task.size = _size(task.work.result())
        others = self._ended(task.share)
        others.remove(task)
        kept = task.size + sum(other.size for other in others)
        for other in others:
            if kept <= _MOST_KEPT:
                break
            self._forget(other)
            kept -= other.size

    def _make_room(self, client: Client) -> None:
        self.end_expired()
        if sum(task.share == client.share for task in self._tasks.values()) < _MOST_TASKS:
            return
        ended = self._ended(client.share)
        if not ended:
            raise MCPError(INVALID_PARAMS, f"this client already has {_MOST_TASKS} tasks; try again later")
        self._forget(ended[0])

    def _ended(self, share: str) -> list[_Task]:
        """Those of one client that have ended, the oldest first."""
        ended = [task for task in self._tasks.values() if task.share == share and task.work.done()]
        return sorted(ended, key=lambda task: task.updated)

    def _forget(self, task: _Task) -> None:
        self._tasks.pop(task.id, None)
        task.work.cancel()

    # Requests

    def _find(self, context: Request, task_id: str) -> _Task:
        """A task of the same owner; its id, which cannot be guessed, tells one owner's clients apart."""
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(METHOD_NOT_FOUND, "Method not found", context.method)
        self.end_expired()
        task = self._tasks.get(task_id)
        if task is None or task.owner != Client.of(context).owner:
            raise MCPError(INVALID_PARAMS, "unknown task; it may have expired")
        return task

    async def _get(self, context: Request, params: GetTaskRequestParams) -> GetTaskResult:
        return GetTaskResult.model_validate(self._find(context, params.task_id).fields(), by_name=True)

    async def _list(self, context: Request, _: PaginatedRequestParams) -> ListTasksResult:
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(METHOD_NOT_FOUND, "Method not found", context.method)
        self.end_expired()
        client = Client.of(context)
        own = [task for task in self._tasks.values() if task.owner == client.owner and task.client == client.id]
        return ListTasksResult(tasks=[Task.model_validate(task.fields(), by_name=True) for task in own])

    async def _result(self, context: Request, params: GetTaskPayloadRequestParams) -> CallToolResult:
        """The result as soon as there is one."""
        task = self._find(context, params.task_id)
        await asyncio.wait((task.work,))
        if task.cancelled or task.work.cancelled():
            raise MCPError(INVALID_PARAMS, "the task was cancelled; it has no result")
        result: CallToolResult = task.work.result()
        meta = {**(result.meta or {}), RELATED_KEY: {"taskId": task.id}}
        return result.model_copy(update={"meta": meta})

    async def _cancel(self, context: Request, params: CancelTaskRequestParams) -> CancelTaskResult:
        task = self._find(context, params.task_id)
        if task.status != "working":
            raise MCPError(INVALID_PARAMS, f"the task cannot be cancelled: it is {task.status}")
        task.cancelled = True
        task.updated = self._clock()
        task.work.cancel()
        return CancelTaskResult.model_validate(task.fields(), by_name=True)


def _size(result: CallToolResult) -> int:
    """About how many characters it has."""
    size = 0 if result.structured_content is None else len(json.dumps(result.structured_content, default=str))
    for block in result.content:
        inner = getattr(block, "resource", block)
        size += sum(len(getattr(inner, name, None) or "") for name in ("text", "data", "blob"))
    return size


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
