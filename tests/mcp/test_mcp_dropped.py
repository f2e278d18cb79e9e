"""Clients, and connections to servers, that come and go leave nothing behind: no more objects are alive than before."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import EmptyResult, SubscribeRequest, SubscribeRequestParams

from moonbox import CodeMode, Sandbox, Tool
from moonbox.config.mcp import ServerSettings
from moonbox.config.sections import ServeSettings
from moonbox.mcp.server.server import MoonboxServer
from moonbox.mcp.server.web import create_app
from moonbox.mcp.upstreams.manager import Upstreams
from tests.long import LONG
from tests.mcp.mcp_driver import CURRENT, SECONDS
from tests.sandbox.test_dropped import SPARE, alive
from tests.waiting import await_until

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import AsyncIterator, Awaitable, Callable

TIMES = 1_000 if LONG else 25
FIRST = 5
"""Clients that come before anything is counted: they leave what is made once."""
SETTINGS = ServeSettings(idle_seconds=0.5, max_conversations=10_000, requests_per_minute=1_000_000)
KEPT = ("moonbox.audit.", "moonbox.values.Packed", "moonbox.runs.call_entry.", "moonbox.codemode.")
"""Records of runs, which their owner can read for some time: a bounded number."""


def double(n: int) -> int:
    """Twice n."""
    return 2 * n


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[str]:
    """moonbox over HTTP on this event loop; its address."""
    with Sandbox([Tool.from_function(double)]) as box, CodeMode(box, mode="always") as code:
        app = create_app(MoonboxServer(code, settings=SETTINGS))
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="on"))
        task = asyncio.create_task(server.serve())
        await await_until(lambda: server.started or task.done())
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            await task


async def visit(url: str, mode: Any, *, says_goodbye: bool) -> None:
    async with (
        httpx2.AsyncClient(timeout=SECONDS) as http,
        Client(
            streamable_http_client(url, http_client=http, terminate_on_close=says_goodbye), mode=mode, cache=None
        ) as client,
    ):
        assert (await client.list_tools()).tools
        done = await client.call_tool("lua_repl", {"source_code": "n = 1 return tools.double{n = n}"})
        assert done.structured_content is not None and done.structured_content["value"] == 2
        if mode == "legacy":
            request = SubscribeRequest(params=SubscribeRequestParams(uri="moonbox://servers"))
            await client.session.send_request(request, EmptyResult)


async def connect(url: str) -> None:
    upstreams = Upstreams([ServerSettings(name="here", url=url)])
    await upstreams.start_here()
    assert await upstreams.async_wait(SECONDS)
    assert (await upstreams.acall("here.lua_repl", {"source_code": "return tools.double{n = 2}"}))["value"] == 4
    await upstreams.aclose()


async def nothing_stays(make: Callable[[], Awaitable[object]]) -> None:
    def left() -> dict[str, int]:
        now = {name: count - before[name] for name, count in alive().items() if not name.startswith(KEPT)}
        return {name: more for name, more in now.items() if more > SPARE}

    before: Counter[str]
    for _ in range(FIRST):
        await make()
    before = alive()
    for _ in range(TIMES):
        await make()
    with contextlib.suppress(AssertionError):
        await await_until(lambda: left() == {}, 20)
    assert left() == {}


@pytest.mark.timeout(4_000 if LONG else 400)
@pytest.mark.parametrize("says_goodbye", [True, False])
@pytest.mark.parametrize("mode", ["legacy", CURRENT])
def test_clients_leave_nothing(mode: str, says_goodbye: bool) -> None:
    async def main() -> None:
        async with serving() as url:
            await nothing_stays(lambda: visit(url, mode, says_goodbye=says_goodbye))

    asyncio.run(main())


@pytest.mark.timeout(4_000 if LONG else 400)
def test_connections_to_servers_leave_nothing() -> None:
    async def main() -> None:
        async with serving() as url:
            await nothing_stays(lambda: connect(url))

    asyncio.run(main())
