"""One connection to a server: the SDK's client session, its tools, and the requests that the server makes."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from mcp import ClientSession, MCPError
from mcp.client import ClientRequestContext
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, listen
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import (
    HEADER_MISMATCH,
    UNSUPPORTED_PROTOCOL_VERSION,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    CancelTaskRequest,
    CancelTaskRequestParams,
    CancelTaskResult,
    CreateMessageRequest,
    CreateTaskResult,
    ElicitRequest,
    ErrorData,
    GetTaskPayloadRequest,
    GetTaskPayloadRequestParams,
    GetTaskRequest,
    GetTaskRequestParams,
    GetTaskResult,
    Implementation,
    InputRequiredResult,
    ListRootsRequest,
    PaginatedRequestParams,
    TaskMetadata,
    ToolListChangedNotification,
)
from pydantic import TypeAdapter, ValidationError

from moonbox._version import __version__
from moonbox.errors import ToolError
from moonbox.mcp.upstreams.process import ServerProcess
from moonbox.mcp.upstreams.tools import MAX_TOOLS
from moonbox.mcp.upstreams.web import WebServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import InputRequest, InputResponse, InputResponses, Task
    from mcp_types import Tool as McpTool

    from moonbox.config.mcp import ServerSettings
    from moonbox.mcp.upstreams.callbacks import ClientFeatures

    Transport = ServerProcess | WebServer
    Answer = Callable[[InputRequest], Awaitable[InputResponse | ErrorData]]

__all__ = ["Connection", "connect", "make_transport"]

_MAX_PAGES = 100
_MAX_ROUNDS = 10
"""How often a server may answer one call with further questions."""
_STATE_ONLY_SECONDS = 0.25
_LISTEN_AGAIN_SECONDS = 5.0
_MIN_POLL_SECONDS, _MAX_POLL_SECONDS = 0.05, 5.0
_TASK_KEPT_MILLISECONDS = 600_000
_RESULT: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)


class Connection:
    """A live connection. Use it only on the event loop on which it was made."""

    def __init__(self, transport: Transport, dispatcher: JSONRPCDispatcher[Any]) -> None:
        self.transport = transport
        self.tools_changed = asyncio.Event()
        """Set when the server says that its tools have changed."""
        self.broken = asyncio.Event()
        """Set by whoever finds it of no more use."""
        self.session: ClientSession
        self._dispatcher = dispatcher

    @property
    def protocol(self) -> str:
        return self.session.protocol_version or ""

    @property
    def server(self) -> str:
        """What the server calls itself."""
        info = self.session.server_info
        return "" if info is None else f"{info.name} {info.version}".strip()

    async def on_message(self, message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            self.tools_changed.set()

    async def follow(self) -> None:
        """Keep a stream of change notifications open, which the current protocol requires."""
        capabilities = self.session.server_capabilities
        if capabilities is None or capabilities.tools is None or not capabilities.tools.list_changed:
            return
        while True:
            try:
                async with listen(self.session, tools_list_changed=True) as events:
                    async for _ in events:
                        self.tools_changed.set()
            except ListenNotSupportedError:
                return  # in the earlier protocol notifications come by themselves
            except SubscriptionLost:
                self.tools_changed.set()  # changes may have been missed
            await asyncio.sleep(_LISTEN_AGAIN_SECONDS)

    async def wait_ended(self) -> None:
        """Return when the connection is of no more use."""
        waits = [asyncio.create_task(self.transport.ended.wait()), asyncio.create_task(self.broken.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()

    # Tools

    async def tools(self) -> list[McpTool]:
        """Every tool that the server has now."""
        tools: list[McpTool] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await self.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None or len(tools) > MAX_TOOLS:
                break
        return tools

    async def call(self, tool: McpTool, arguments: dict[str, Any], on_progress: ProgressFnT | None) -> CallToolResult:
        """Call a tool, whatever the server wants to know first."""
        params = CallToolRequestParams(name=tool.name, arguments=arguments)
        if tool.execution is not None and tool.execution.task_support == "required":
            return await self._call_as_task(params)
        try:
            result = await self._send_call(params, on_progress)
        except MCPError as problem:
            if problem.code != HEADER_MISMATCH:
                raise
            await self.tools()  # the session derives headers from the listed schemas, which have changed
            result = await self._send_call(params, on_progress)
        for _ in range(_MAX_ROUNDS):
            if isinstance(result, CallToolResult):
                return result
            responses = None
            if result.input_requests:
                responses = await self._responses(result.input_requests)
            else:
                await asyncio.sleep(_STATE_ONLY_SECONDS)
            update = {"input_responses": responses, "request_state": result.request_state}
            result = await self._send_call(params.model_copy(update=update), on_progress)
        raise ToolError(f"{tool.name} asked for input more than {_MAX_ROUNDS} times", code="bad_result")

    async def _send_call(
        self, params: CallToolRequestParams, on_progress: ProgressFnT | None
    ) -> CallToolResult | InputRequiredResult:
        # Not `session.call_tool`, which validates results in Python on this loop, which all servers share.
        return await self.session.send_request(CallToolRequest(params=params), _RESULT, progress_callback=on_progress)

    async def _responses(self, requests: dict[str, InputRequest]) -> InputResponses:
        async def answered(key: str, request: InputRequest) -> InputResponse:
            # Through the session, which refuses what was not announced to the server.
            meta = request.params.meta if request.params else None
            context = ClientRequestContext(session=self.session, request_id=key, meta=meta)
            response = await self.session.dispatch_input_request(context, request)
            if isinstance(response, ErrorData):
                raise MCPError.from_error_data(response)
            return response

        try:
            async with asyncio.TaskGroup() as group:  # one refusal is enough: the others are cancelled
                tasks = {key: group.create_task(answered(key, request)) for key, request in requests.items()}
        except ExceptionGroup as problems:
            raise problems.exceptions[0] from None
        return {key: task.result() for key, task in tasks.items()}

    async def _call_as_task(self, params: CallToolRequestParams) -> CallToolResult:
        """Start the call as a task and wait for its result; cancelling this cancels the task."""
        params = params.model_copy(update={"task": TaskMetadata(ttl=_TASK_KEPT_MILLISECONDS)})
        # The session accepts only ordinary results of tools/call; the dispatcher below it does not care.
        raw = await self._dispatcher.send_raw_request(
            "tools/call", params.model_dump(by_alias=True, mode="json", exclude_none=True)
        )
        task: Task = CreateTaskResult.model_validate(raw, by_name=False).task
        try:
            while task.status == "working":
                interval = (task.poll_interval or 500) / 1000
                await asyncio.sleep(min(max(interval, _MIN_POLL_SECONDS), _MAX_POLL_SECONDS))
                request = GetTaskRequest(params=GetTaskRequestParams(task_id=task.task_id))
                task = await self.session.send_request(request, GetTaskResult)
        except asyncio.CancelledError:
            await self._cancel_task(task)
            raise
        if task.status == "cancelled":
            raise ToolError("the server cancelled the task", code="cancelled")
        fetch = GetTaskPayloadRequest(params=GetTaskPayloadRequestParams(task_id=task.task_id))
        return await self.session.send_request(fetch, CallToolResult)

    async def _cancel_task(self, task: Task) -> None:
        cancel = CancelTaskRequest(params=CancelTaskRequestParams(task_id=task.task_id))
        with contextlib.suppress(MCPError, TimeoutError, ValueError):
            async with asyncio.timeout(2):
                await self.session.send_request(cancel, CancelTaskResult)


def make_transport(settings: ServerSettings) -> Transport:
    return ServerProcess(settings) if settings.kind == "stdio" else WebServer(settings)


@contextlib.asynccontextmanager
async def connect(transport: Transport, features: ClientFeatures, answer: Answer) -> AsyncIterator[Connection]:
    """Start or reach the server and agree on a protocol; `answer` gets what the server asks, within `features`."""
    async with transport.connect() as (reader, writer):
        dispatcher: JSONRPCDispatcher[Any] = JSONRPCDispatcher(reader, writer)
        connection = Connection(transport, dispatcher)
        connection.session = ClientSession(
            dispatcher=dispatcher,
            client_info=Implementation(name="moonbox", version=__version__),
            message_handler=connection.on_message,
            **_callbacks(features, answer),
        )
        async with connection.session:
            await _negotiate(connection.session)
            yield connection


async def _negotiate(session: ClientSession) -> None:
    """Agree on the newest protocol: by discovery if the server supports it, otherwise by the handshake."""
    for attempt in (1, 2):
        try:
            await session.discover()
        except (MCPError, ValidationError, RuntimeError):
            pass  # the server does not know discovery, or knows only earlier protocols
        else:
            return
        try:
            await session.initialize()
        except MCPError as problem:
            # A server that was slow to start may have answered the discovery too late, and now accepts nothing else.
            if problem.code != UNSUPPORTED_PROTOCOL_VERSION or attempt == 2:
                raise
        else:
            return


def _callbacks(features: ClientFeatures, answer: Answer) -> dict[str, Any]:
    """Callbacks for what the server may ask; the SDK announces exactly these."""

    async def sample(_: Any, params: Any) -> Any:
        return await answer(CreateMessageRequest(params=params))

    async def elicit(_: Any, params: Any) -> Any:
        return await answer(ElicitRequest(params=params))

    async def list_roots(_: Any) -> Any:
        return await answer(ListRootsRequest())

    callbacks: dict[str, Any] = {}
    if features.sampling:
        callbacks["sampling_callback"] = sample
    if features.elicitation:
        callbacks["elicitation_callback"] = elicit
    if features.roots:
        callbacks["list_roots_callback"] = list_roots
    return callbacks
