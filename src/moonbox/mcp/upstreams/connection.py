"""One connection to a server: the SDK's client session, its tools, and a test of what the server can do.

The SDK's Client is not used: it cannot try the earlier protocol first, it has no tasks, and it validates results on the
event loop of all servers.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import mcp_types as types
from mcp import ClientSession, MCPError
from mcp.client import ClientRequestContext
from mcp.client._input_required import InputRequiredRoundsExceededError, run_input_required_driver
from mcp.client._probe import negotiate_auto
from mcp.client.subscriptions import listen
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from moonbox._version import __version__
from moonbox.errors import ToolError
from moonbox.mcp.caller import Callbacks, ClientFeatures, sdk_callbacks
from moonbox.mcp.upstreams.catalog import all_pages, list_offers
from moonbox.mcp.upstreams.login import LoginRequired
from moonbox.mcp.upstreams.status import ConnectionLost, is_lost, start_failure
from moonbox.mcp.upstreams.tools import MAX_TOOLS, convert_tools
from moonbox.mcp.upstreams.transport import ServerProcess, Transport
from moonbox.mcp.upstreams.web import WebServer

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams
    from mcp.shared.dispatcher import ProgressFnT

    from moonbox.config.mcp import ServerSettings
    from moonbox.mcp.caller import Answer, Log

T = TypeVar("T", bound=BaseModel)
Questions = types.InputRequiredResult
Clients = Literal["current", "earlier", "mixed"]
"""The protocol of the clients that the servers work for."""

_LISTEN_AGAIN_SECONDS = 5.0
_MIN_POLL_SECONDS, _MAX_POLL_SECONDS = 0.05, 5.0
_TASK_KEPT_MILLISECONDS = 600_000
_LISTS = 5


class UncheckedSession(ClientSession):
    """The SDK's session. Results are checked where scripts get them: here it would be on the loop of all servers."""

    async def validate_tool_result(self, name: str, result: types.CallToolResult) -> None:
        pass


class Connection:
    """A live connection. Use it only on the event loop on which it was made."""

    def __init__(
        self, transport: Transport, streams: TransportStreams, features: ClientFeatures, answer: Answer, log: Log
    ) -> None:
        self.transport = transport
        self._dispatcher: JSONRPCDispatcher[Any] = JSONRPCDispatcher(*streams)
        self.session = UncheckedSession(
            dispatcher=self._dispatcher,
            client_info=types.Implementation(name="moonbox", version=__version__),
            message_handler=self._take_message,
            **sdk_callbacks(features, answer, log),
        )
        self.changed = asyncio.Event()
        """Set when the server says that its tools, prompts or resources have changed."""
        self.resource_updated: Callable[[str], None] = lambda _: None
        """Called with the address of a resource that has changed."""
        self._subscribed: set[str] = set()
        self._listening: asyncio.Task[None] | None = None
        self._listed = False

    @property
    def protocol(self) -> str:
        return self.session.protocol_version or ""

    @property
    def capabilities(self) -> types.ServerCapabilities:
        return self.session.server_capabilities or types.ServerCapabilities()

    @property
    def server(self) -> str:
        info = self.session.server_info
        return "" if info is None else f"{info.name} {info.version}".strip()

    async def _take_message(self, message: Any) -> None:
        match message:
            case (
                types.ToolListChangedNotification()
                | types.PromptListChangedNotification()
                | types.ResourceListChangedNotification()
            ):
                self.changed.set()
            case types.ResourceUpdatedNotification():
                self.resource_updated(str(message.params.uri))

    @contextlib.asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """While it lasts, a stream of change notifications is kept open, which the current protocol requires."""
        self._listen_anew()
        try:
            yield
        finally:
            last, self._listening = self._listening, None
            assert last is not None
            last.cancel()
            await asyncio.gather(last, return_exceptions=True)

    def _listen_anew(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
        # In an empty context: the stream outlives the request that subscribes to something.
        self._listening = asyncio.get_running_loop().create_task(self._listen(), context=contextvars.Context())

    async def _listen(self) -> None:
        if self.protocol not in MODERN_PROTOCOL_VERSIONS:
            return  # in the earlier protocol notifications come by themselves
        declared = {kind: getattr(self.capabilities, kind) for kind in ("tools", "prompts", "resources")}
        changing: Any = {f"{kind}_list_changed": bool(item and item.list_changed) for kind, item in declared.items()}
        while self._subscribed or any(changing.values()):
            with contextlib.suppress(Exception):  # a lost connection is noticed elsewhere
                followed = sorted(self._subscribed)
                async with listen(self.session, resource_subscriptions=followed, **changing) as events:
                    if self._listed:
                        self.changed.set()  # changes may have been missed, while no stream was open
                    async for _ in events:
                        pass  # the session hands each event to `_take_message` too
            self.changed.set()
            await asyncio.sleep(_LISTEN_AGAIN_SECONDS)

    async def end_unless_healthy(self, seconds: float) -> None:
        """After a call without an answer: end the connection if the server answers nothing else either."""
        try:
            async with asyncio.timeout(seconds):
                await self.tools()
        except Exception:  # noqa: BLE001 - any failure to answer counts
            self.transport.end("it stopped answering")

    # Tools

    async def tools(self) -> list[types.Tool]:
        tools: list[types.Tool] = await all_pages(self.session.list_tools, "tools", MAX_TOOLS)
        self._listed = True
        return tools

    async def call(
        self,
        tool: types.Tool,
        arguments: dict[str, Any],
        on_progress: ProgressFnT | None = None,
        log_level: str | None = None,
    ) -> types.CallToolResult:
        """Call a tool, whatever the server wants to know first."""
        meta: Any = None if log_level is None else {types.LOG_LEVEL_META_KEY: log_level}
        if tool.execution is not None and tool.execution.task_support == "required":
            return await self._call_as_task(
                types.CallToolRequestParams(name=tool.name, arguments=arguments, _meta=meta)
            )
        send = functools.partial(self.session.call_tool, tool.name, arguments, progress_callback=on_progress, meta=meta)
        try:
            return await self._answered(tool.name, send)
        except MCPError as problem:
            if problem.code != types.HEADER_MISMATCH:
                raise
            await self.tools()  # the session derives headers from the listed schemas, which have changed
            return await self._answered(tool.name, send)

    async def _answered(self, name: str, send: Callable[..., Awaitable[T | Questions]]) -> T:
        """The final result: what the server wants to know first is asked, and the request is sent again."""

        async def again(responses: types.InputResponses | None, state: str | None) -> T | Questions:
            return await send(input_responses=responses, request_state=state, allow_input_required=True)

        async def ask(key: str, asked: types.InputRequest) -> types.InputResponse | types.ErrorData:
            # Through the session, which refuses what was not announced to the server.
            meta = asked.params.meta if asked.params else None
            context = ClientRequestContext(session=self.session, request_id=key, meta=meta)
            return await self.session.dispatch_input_request(context, asked)

        try:
            first = await again(None, None)
            if not isinstance(first, Questions):
                return first
            return await run_input_required_driver(first, dispatch=ask, retry=again)
        except InputRequiredRoundsExceededError as problem:
            message = f"{name} asked for input more than {problem.max_rounds} times"
            raise ToolError(message, code="bad_result") from None
        except ExceptionGroup as problems:
            raise problems.exceptions[0] from None

    # Prompts and resources

    async def get_prompt(self, name: str, arguments: dict[str, str] | None) -> types.GetPromptResult:
        return await self._answered(name, functools.partial(self.session.get_prompt, name, arguments))

    async def read_resource(self, uri: str) -> types.ReadResourceResult:
        return await self._answered(uri, functools.partial(self.session.read_resource, uri))

    async def complete(self, params: types.CompleteRequestParams) -> types.CompleteResult:
        return await self.session.send_request(types.CompleteRequest(params=params), types.CompleteResult)

    async def subscribe(self, uris: set[str]) -> dict[str, MCPError]:
        """Be told about changes of exactly these resources; why the server refused to tell of some."""
        refused: dict[str, MCPError] = {}
        if self.protocol in MODERN_PROTOCOL_VERSIONS:
            self._subscribed = set(uris)
            if self._listening is not None:  # otherwise the connection is being closed
                self._listen_anew()
            return refused
        if self.capabilities.resources is None or not self.capabilities.resources.subscribe:
            return refused
        for uri in uris ^ self._subscribed:
            request: types.ClientRequest = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))
            if uri in uris:
                request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
            try:
                await self.session.send_request(request, types.EmptyResult)
            except MCPError as problem:
                if is_lost(problem):
                    raise
                if uri in uris:
                    refused[uri] = problem
                    continue
            self._subscribed ^= {uri}
        return refused

    async def set_log_level(self, level: types.LoggingLevel) -> None:
        if self.capabilities.logging is None or self.protocol in MODERN_PROTOCOL_VERSIONS:
            return  # in the current protocol each request says it
        await self.session.send_request(
            types.SetLevelRequest(params=types.SetLevelRequestParams(level=level)), types.EmptyResult
        )

    # Tasks

    async def _call_as_task(self, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Start the call as a task and wait for its result; cancelling this cancels the task."""
        params = params.model_copy(update={"task": types.TaskMetadata(ttl=_TASK_KEPT_MILLISECONDS)})
        # The session accepts only ordinary results of tools/call; the dispatcher below it does not care.
        raw = await self._dispatcher.send_raw_request(
            "tools/call", params.model_dump(by_alias=True, mode="json", exclude_none=True)
        )
        task: types.Task = types.CreateTaskResult.model_validate(raw, by_name=False).task
        try:
            while task.status == "working":
                interval = (task.poll_interval or 500) / 1000
                await asyncio.sleep(min(max(interval, _MIN_POLL_SECONDS), _MAX_POLL_SECONDS))
                request = types.GetTaskRequest(params=types.GetTaskRequestParams(task_id=task.task_id))
                task = await self.session.send_request(request, types.GetTaskResult)
        except asyncio.CancelledError:
            cancel = types.CancelTaskRequest(params=types.CancelTaskRequestParams(task_id=task.task_id))
            with contextlib.suppress(MCPError, TimeoutError, ValueError):
                async with asyncio.timeout(2):
                    await self.session.send_request(cancel, types.CancelTaskResult)
            raise
        if task.status == "cancelled":
            raise ToolError("the server cancelled the task", code="cancelled")
        fetch = types.GetTaskPayloadRequest(params=types.GetTaskPayloadRequestParams(task_id=task.task_id))
        return await self.session.send_request(fetch, types.CallToolResult)


def make_transport(settings: ServerSettings, auth: httpx2.Auth | None = None) -> Transport:
    return ServerProcess(settings) if settings.kind == "stdio" else WebServer(settings, auth)


@contextlib.asynccontextmanager
async def connect(
    transport: Transport, features: ClientFeatures, answer: Answer, log: Log = lambda _: None
) -> AsyncIterator[Connection]:
    """Start or reach the server and agree on a protocol that suits it and its clients.

    `answer` gets what the server asks, within `features`; `log` gets its log messages.
    """
    async with transport.connect() as streams:
        connection = Connection(transport, streams, features, answer, log)
        async with connection.session:
            await _negotiate(connection.session, transport.settings.protocol, features.clients)
            yield connection


async def _negotiate(session: ClientSession, protocol: str, clients: Clients) -> None:
    """Agree on a protocol: by discovery, or by the earlier handshake."""
    try:
        if protocol == "current":
            await session.discover()
        elif protocol == "earlier":
            await session.initialize()
        elif clients != "earlier":
            await negotiate_auto(session)
        else:
            try:
                await session.initialize()
            except (MCPError, ValidationError, RuntimeError):  # it may speak the current protocol alone
                await negotiate_auto(session)
    except MCPError as problem:
        if protocol == "auto" or problem.code == types.CONNECTION_CLOSED:
            raise
        message = f'{problem.message}; the setting protocol = "{protocol}" rules out the other protocol'
        raise MCPError(problem.code, message, problem.data) from None


async def examine(settings: ServerSettings, auth: httpx2.Auth | None = None) -> dict[str, Any]:
    """Start or reach it, list everything, and report; raises ConnectionLost with the reason where that fails."""
    transport = make_transport(settings, auth)
    try:
        async with asyncio.timeout(settings.start_timeout):
            began = time.monotonic()
            async with connect(transport, ClientFeatures(), Callbacks(settings.name).answer) as connection:
                return await _report(connection, settings, time.monotonic() - began)
    except LoginRequired:
        raise
    except Exception as problem:
        raise ConnectionLost(start_failure(problem, transport, settings.start_timeout)) from problem


async def _report(connection: Connection, settings: ServerSettings, started: float) -> dict[str, Any]:
    times: list[float] = []
    tools: list[types.Tool] = []
    for _ in range(1 + _LISTS):
        began = time.monotonic()
        tools = await connection.tools()
        times.append(time.monotonic() - began)
    offers = await list_offers(connection)
    _, problems = convert_tools(tools, settings, connection.call)
    undescribed = [f"the tool '{tool.name}' has no description" for tool in tools if not tool.description]
    return {
        "name": settings.name,
        "server": connection.server,
        "protocol": connection.protocol,
        "capabilities": sorted(connection.capabilities.model_dump(exclude_none=True, by_alias=True)),
        "tools": len(tools),
        "annotated": sum(tool.annotations is not None for tool in tools),
        "with_result_schema": sum(tool.output_schema is not None for tool in tools),
        "prompts": len(offers.prompts),
        "resources": len(offers.resources),
        "templates": len(offers.templates),
        "seconds": {"start": started, "first_list": times[0], "list": statistics.median(times[1:])},
        "lists": _LISTS,
        "problems": [*problems, *undescribed],
    }
