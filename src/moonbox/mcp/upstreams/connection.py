"""One connection to a server: its client, its tools, and the questions that the server asks back."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from mcp import Client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CreateMessageRequest,
    ElicitRequest,
    Implementation,
    ListRootsRequest,
    ToolListChangedNotification,
)

from moonbox._version import __version__
from moonbox.mcp.upstreams.process import ServerProcess
from moonbox.mcp.upstreams.tasks import call_as_task, needs_task
from moonbox.mcp.upstreams.tools import MOST_TOOLS
from moonbox.mcp.upstreams.web import WebServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import CallToolResult, ErrorData, InputRequest, InputResponse, ServerCapabilities
    from mcp_types import Tool as Listed

    from moonbox.config.mcp import ServerSettings
    from moonbox.mcp.upstreams.broker import Offers

    Answer = Callable[[InputRequest], Awaitable[InputResponse | ErrorData]]

__all__ = ["Connection", "connect"]

_MOST_PAGES = 100
_LISTEN_AGAIN = 5.0


class Connection:
    """A live connection. Use it on the loop on which it was made."""

    def __init__(self, client: Client, transport: ServerProcess | WebServer) -> None:
        self.client = client
        self.transport = transport
        self.changed = asyncio.Event()
        """Set when the server says that its tools are others now."""
        self.broken = asyncio.Event()
        """Set by whoever finds it of no more use."""

    @property
    def protocol(self) -> str:
        return self.client.protocol_version

    @property
    def server(self) -> str:
        info = self.client.server_info
        return "" if info is None else f"{info.name} {info.version}".strip()

    @property
    def capabilities(self) -> ServerCapabilities:
        return self.client.server_capabilities

    async def tools(self) -> list[Listed]:
        """Every tool that the server has now."""
        found: list[Listed] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self.client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if cursor is None or len(found) > MOST_TOOLS:
                break
        return found

    async def call(self, tool: Listed, arguments: dict[str, Any], report: ProgressFnT | None) -> CallToolResult:
        if needs_task(tool):
            request = CallToolRequest(params=CallToolRequestParams(name=tool.name, arguments=arguments))
            return await call_as_task(self.client.session, request)
        return await self.client.call_tool(tool.name, arguments, progress_callback=report)

    async def follow(self) -> None:
        """Note changes of the tools for as long as the connection holds; the newer protocol must be asked for them."""
        tools = self.capabilities.tools
        if tools is None or not tools.list_changed:
            return
        while True:
            try:
                async with self.client.listen(tools_list_changed=True) as events:
                    async for _ in events:
                        self.changed.set()
            except ListenNotSupportedError:
                return  # notifications come by themselves
            except SubscriptionLost:
                self.changed.set()  # whatever changed meanwhile was not told
            await asyncio.sleep(_LISTEN_AGAIN)

    async def ended(self) -> None:
        """Return when the connection is of no more use."""
        waits = [asyncio.create_task(self.transport.ended.wait()), asyncio.create_task(self.broken.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()


@contextlib.asynccontextmanager
async def connect(
    settings: ServerSettings, offers: Offers, answer: Answer, made: Callable[[Any], None]
) -> AsyncIterator[Connection]:
    """Start or reach the server and agree on a protocol; `made` is given the transport before that.

    `answer` is given what the server asks back, as far as it was offered.
    """
    transport = ServerProcess(settings) if settings.kind == "stdio" else WebServer(settings)
    made(transport)
    found: list[Connection] = []

    async def on_message(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification) and found:
            found[0].changed.set()

    client = Client(
        transport.connect(),
        client_info=Implementation(name="moonbox", version=__version__),
        message_handler=on_message,
        cache=None,
        **_callbacks(offers, answer),
    )
    async with client:
        # The SDK would check results in Python, on this loop, which every server shares; `Upstream` does it elsewhere.
        vars(client.session)["validate_tool_result"] = _accept
        found.append(Connection(client, transport))
        yield found[0]


async def _accept(name: str, result: Any) -> None:
    return None


def _callbacks(offers: Offers, answer: Answer) -> dict[str, Any]:
    """What the server may ask us: the SDK announces just these."""

    async def sample(_: Any, params: Any) -> Any:
        return await answer(CreateMessageRequest(params=params))

    async def elicit(_: Any, params: Any) -> Any:
        return await answer(ElicitRequest(params=params))

    async def roots(_: Any) -> Any:
        return await answer(ListRootsRequest())

    made: dict[str, Any] = {}
    if offers.sampling:
        made["sampling_callback"] = sample
    if offers.elicitation:
        made["elicitation_callback"] = elicit
    if offers.roots:
        made["list_roots_callback"] = roots
    return made
