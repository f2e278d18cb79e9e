"""Answers over HTTP, at the ASGI interface: JSON where nothing is streamed, and clients that hang up."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import CodeMode, Sandbox, Tool, tool
from moonbox.mcp.caller import watch
from moonbox.mcp.server import web
from moonbox.mcp.server.server import MoonboxServer
from tests.mcp.mcp_driver import SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

VERSION = "2026-07-28"


class Exchange:
    """One request of a client, which can hang up, and what it was sent."""

    def __init__(
        self,
        app: Any,
        source: str = "",
        *,
        call: tuple[str, dict[str, Any]] | None = None,
        headers: dict[str, str] | None = None,
        **meta: Any,
    ) -> None:
        name, arguments = call or ("lua_repl", {"source_code": source})
        envelope = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": name, "arguments": arguments, "_meta": {**envelope, **meta}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        headers = {
            **(headers or {}),
            "host": "127.0.0.1",
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "content-length": str(len(body)),
            "mcp-protocol-version": VERSION,
            "mcp-method": "tools/call",
            "mcp-name": name,
        }
        scope = {
            "type": "http",
            "method": "POST",
            "path": web.PATH,
            "raw_path": web.PATH.encode(),
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "http_version": "1.1",
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        self._messages = [{"type": "http.request", "body": body[:50], "more_body": True}]
        self._messages.append({"type": "http.request", "body": body[50:], "more_body": False})
        self.hung_up = asyncio.Event()
        self.sent: list[Any] = []
        self._news = asyncio.Event()
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def _receive(self) -> Any:
        if self._messages:
            return self._messages.pop(0)
        await self.hung_up.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.sent.append(message)
        self._news.set()
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self.hung_up.set()  # as servers do: after the answer every request counts as disconnected
            await asyncio.sleep(0)

    async def finished(self) -> None:
        async with asyncio.timeout(SECONDS):
            await self.task

    async def until_sent(self, part: bytes) -> None:
        async with asyncio.timeout(SECONDS):
            while part not in self.body:
                self._news.clear()
                await self._news.wait()

    @property
    def type(self) -> str:
        return dict(self.sent[0]["headers"])[b"content-type"].decode()

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)


class Gate:
    """A tool that waits for the test."""

    def __init__(self) -> None:
        self.entered, self.open, self.cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def tool(self) -> Any:
        @tool
        async def hold() -> str:
            """Wait for the test."""
            self.entered.set()
            try:
                await self.open.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            return "released"

        return hold


@asynccontextmanager
async def serving(gate: Gate) -> AsyncIterator[Any]:
    async with Sandbox([gate.tool()], on_call=watch) as box:
        app = web.create_app(MoonboxServer(CodeMode(box, mode="always")))
        async with app.router.lifespan_context(app):
            yield app


def test_an_answer_is_json_unless_the_client_wants_more() -> None:
    async def work() -> None:
        gate = Gate()
        async with serving(gate) as app:
            plain = Exchange(app, "return 6 * 7")
            await plain.finished()
            assert plain.type == "application/json"
            assert json.loads(plain.body)["result"]["structuredContent"]["value"] == 42
            streamed = Exchange(app, "return tools.hold()", progressToken="p")
            await streamed.until_sent(b"notifications/progress")
            gate.open.set()
            await streamed.finished()
            assert streamed.type == "text/event-stream"
            assert b'"value":"released"' in streamed.body

    asyncio.run(work())


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"mcp-param-region": "north"}, 200), ({"mcp-param-region": "south"}, 400), ({}, 400)],
    ids=["equal", "different", "missing"],
)
def test_an_argument_that_is_bound_to_a_header_must_equal_it(headers: dict[str, str], status: int) -> None:
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    place = Tool.from_schema(name="place", description="A place.", parameters=schema, call=lambda given: given)

    async def work() -> None:
        async with Sandbox([place], on_call=watch) as box:
            app = web.create_app(MoonboxServer(CodeMode(box, mode="never")))
            async with app.router.lifespan_context(app):
                exchange = Exchange(app, call=("place", {"region": "north"}), headers=headers)
                await exchange.finished()
                assert exchange.sent[0]["status"] == status

    asyncio.run(work())


@pytest.mark.parametrize("meta", [{}, {"progressToken": "p"}], ids=["plain", "streamed"])
def test_a_client_that_hangs_up_stops_its_script(meta: dict[str, Any]) -> None:
    async def work() -> None:
        gate = Gate()
        async with serving(gate) as app:
            call = Exchange(app, "return tools.hold()", **meta)
            async with asyncio.timeout(SECONDS):
                await gate.entered.wait()
                call.hung_up.set()
                await gate.cancelled.wait()
            await call.finished()
            assert not [message for message in call.sent if b"released" in message.get("body", b"")]
            after = Exchange(app, "return 1")
            await after.finished()
            assert json.loads(after.body)["result"]["structuredContent"]["value"] == 1

    asyncio.run(work())
