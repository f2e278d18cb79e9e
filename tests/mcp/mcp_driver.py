"""The driver: the SDK's own client for tests that are plain functions, on an event loop in a thread."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import threading
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.programs import program
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator
    from concurrent.futures import Future

    from mcp_types import CallToolResult

SECONDS = 100
"""For whatever must happen; a machine may be slow."""
TOKENS = {"alice": "alices-secret-token", "bob": "bobs-own-secret-token"}
"""For a server with two clients."""
SERVE = f'''
[serve]
tokens = {{ alice = "{TOKENS["alice"]}", bob = "{TOKENS["bob"]}" }}
'''
"""The beginning of its configuration."""
HOLD = """
import asyncio
import json
import os
from moonbox import Media, tool

@tool
async def hold(path: str) -> str:
    open(path + ".entered", "w").close()
    try:
        while not os.path.exists(path):
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        open(path + ".cancelled", "w").close()
        raise
    return "released"

@tool
def picture() -> Media:
    return Media(bytes(6 << 20), "image/png")
"""
"""Tools: one waits for a file, and says in others that it was entered or cancelled; one returns much."""
HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}
EARLIER, CURRENT = "2025-11-25", "2026-07-28"


class Driver:
    """Runs coroutines to their end, or leaves them running."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Any], seconds: float = SECONDS) -> Any:
        return self.start(work).result(seconds)

    def start(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    @contextmanager
    def session(self, transport: Any, *, mode: str = "auto", **callbacks: Any) -> Iterator[Session]:
        """A client that stays connected; it is opened and closed by one task, as the SDK wants it."""
        session = Session(self)
        ready: Future[Client] = self.start(self._hold(session, transport, mode, callbacks))
        try:
            session.opened.wait(SECONDS)
            if session.problem is not None:
                raise session.problem
            assert session.opened.is_set(), "the server did not answer"
            yield session
        finally:
            self.loop.call_soon_threadsafe(session.done.set)
            ready.result(SECONDS)

    async def _hold(self, session: Session, transport: Any, mode: str, callbacks: dict[str, Any]) -> None:
        async def on_message(message: Any) -> None:
            session.messages.append(message)

        session.done = asyncio.Event()
        try:
            async with AsyncExitStack() as stack:
                client = Client(transport, mode=mode, message_handler=on_message, cache=None, **callbacks)
                session.client = await stack.enter_async_context(client)
                session.opened.set()
                await session.done.wait()
        except BaseException as problem:
            session.problem = problem
            session.opened.set()
            if session.client is not None:
                raise


class Session:
    """A connected client, for blocking use."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.client: Any = None
        self.messages: list[Any] = []
        self.opened = threading.Event()
        self.done: asyncio.Event
        self.problem: BaseException | None = None

    @property
    def version(self) -> str:
        return str(self.client.protocol_version)

    def tools(self) -> dict[str, Any]:
        """Every tool by name, in the order in which they were listed."""
        return {tool.name: tool for tool in self.driver.run(self.client.list_tools()).tools}

    def call(self, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> CallToolResult:
        result: CallToolResult = self.driver.run(self.client.call_tool(name, arguments or {}, **options))
        return result

    def lua(self, source: str, **more: Any) -> CallToolResult:
        """Run a script by the code tool."""
        options = {key: more.pop(key) for key in ("meta", "progress_callback") if key in more}
        return self.call("lua_repl", {"source_code": source, **more}, **options)

    def value(self, source: str, **more: Any) -> Any:
        """What a script returns; fails with its text where it failed."""
        result = self.lua(source, **more)
        assert not result.is_error, text(result)
        return result.structured_content.get("value")

    def read(self, uri: str) -> str:
        return str(self.driver.run(self.client.read_resource(uri)).contents[0].text)

    def news(self, beyond: int = -1) -> int:
        """How often it was notified that the tools have changed, as soon as that is more often than `beyond`."""

        def count() -> int:
            return sum(type(message).__name__ == "ToolListChangedNotification" for message in self.messages)

        wait_until(lambda: count() > beyond)
        return count()

    def resources(self) -> list[str]:
        return [resource.uri for resource in self.driver.run(self.client.list_resources()).resources]


class Peer:
    """A client of the earlier protocol that speaks JSON-RPC by itself: the SDK's has no tasks."""

    def __init__(self, url: str, token: str = "none") -> None:
        self.url = url
        self.session: dict[str, str] = {}
        self.http = httpx2.Client(headers={**ACCEPT, **bearer(token)}, timeout=SECONDS)
        params = {**HELLO["params"], "protocolVersion": EARLIER}
        opened = self.post({**HELLO, "params": params})
        self.session = {"Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": EARLIER}
        self.capabilities = answer_in(opened)["result"]["capabilities"]
        self.post({"method": "notifications/initialized"})

    def post(self, message: dict[str, Any], headers: dict[str, str] | None = None) -> httpx2.Response:
        return self.http.post(self.url, json={"jsonrpc": "2.0", **message}, headers=headers or self.session)

    def ask(self, method: str, **params: Any) -> Any:
        """The whole answer."""
        return answer_in(self.post({"id": 2, "method": method, "params": params}))

    def result(self, method: str, **params: Any) -> Any:
        answer = self.ask(method, **params)
        assert "result" in answer, answer
        return answer["result"]

    def start(self, source: str, **task: Any) -> Any:
        """Run a script as a task."""
        arguments = {"source_code": source}
        return self.result("tools/call", name="lua_repl", arguments=arguments, task=task)["task"]

    def close(self) -> None:
        self.http.close()


def answer_in(response: httpx2.Response) -> Any:
    """The message with an id, from JSON or from a stream."""
    if response.headers.get("content-type", "").startswith("application/json"):
        return response.json()
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
    return next((message for message in map(json.loads, lines) if "id" in message and "method" not in message), None)


def modern(method: str, params: dict[str, Any], **meta: Any) -> dict[str, Any]:
    """A request of the current protocol: what httpx sends as its body and headers."""
    envelope = {
        "io.modelcontextprotocol/protocolVersion": CURRENT,
        "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": 3, "method": method}
    name = params.get("name") or params.get("uri")
    return {
        "json": {**body, "params": {**params, "_meta": {**envelope, **meta, **params.get("_meta", {})}}},
        "headers": {"MCP-Protocol-Version": CURRENT, "Mcp-Method": method, **({"Mcp-Name": name} if name else {})},
    }


async def give_up(call: Coroutine[Any, Any, Any], when: Awaitable[Any]) -> None:
    """Begin a call, and cancel it then."""
    task = asyncio.ensure_future(call)
    async with asyncio.timeout(SECONDS):
        await when
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def abandoned(client: Client, source: str) -> None:
    """Give a call of the code tool up as soon as its script has made a call of its own."""
    begun = asyncio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        begun.set()

    await give_up(client.call_tool("lua_repl", {"source_code": source}, progress_callback=note), begun.wait())


def text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


def moonbox(*args: str | Path) -> tuple[str, list[str]]:
    """The command that starts the program under test."""
    command, *arguments = program("-m", "moonbox", *args)
    return command, arguments


@asynccontextmanager
async def stdio(*args: str | Path, env: dict[str, str], log: Path | None = None) -> AsyncIterator[Any]:
    """`moonbox serve` over stdio, by the SDK's transport, which passes few variables on."""
    command, arguments = moonbox("serve", *args)
    parameters = StdioServerParameters(command=command, args=arguments, env={"MOONBOX_TRUST": "1", **env})
    with (log or Path(os.devnull)).open("w") as errors:
        async with stdio_client(parameters, errlog=errors) as streams:
            yield streams


@asynccontextmanager
async def over_http(url: str, headers: dict[str, str] | None = None) -> AsyncIterator[Any]:
    """A server by its address."""
    async with (
        httpx2.AsyncClient(headers=headers or {}, timeout=SECONDS) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams


@contextmanager
def http_server(*args: str | Path, env: dict[str, str], cwd: Path) -> Iterator[str]:
    """`moonbox serve --http` on a free port; its address."""
    with server_process(*args, env=env, cwd=cwd) as (url, process):
        yield url
        process.terminate()
        assert process.wait(SECONDS) == 0, (cwd / "serve.log").read_text()


@contextmanager
def server_process(*args: str | Path, env: dict[str, str], cwd: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The same with its process, which the caller ends as it likes."""
    command, arguments = moonbox("serve", "--http", "--port", "0", *args)
    log = cwd / "serve.log"
    with log.open("w") as errors:
        process = subprocess.Popen([command, *arguments], stderr=errors, cwd=cwd, env={**os.environ, **env})
    try:
        yield announced_address(process, log), process
    finally:
        process.kill()
        process.wait(SECONDS)


@contextmanager
def served(folder: Path, config: str, tools: str = "") -> Iterator[str]:
    """The same for a configuration and a file of tools."""
    (folder / "moonbox.toml").write_text(config)
    (folder / "kit.py").write_text(tools)
    options = ("--tools", "kit.py") if tools else ()
    with http_server(*options, env={"MOONBOX_HOME": str(folder / "home")}, cwd=folder) as url:
        yield url


def bearer(token: str) -> dict[str, str]:
    """The header of a client with this token, which may be the name of one of TOKENS."""
    return {"Authorization": f"Bearer {TOKENS.get(token, token)}"}


def announced_address(process: subprocess.Popen[bytes], log: Path) -> str:
    """The address that a server with this log announces."""
    announced = re.compile(r"(?:serving MCP on )?(http://\S+)")
    wait_until(lambda: announced.search(log.read_text()) or process.poll() is not None)
    found = announced.search(log.read_text())
    assert found is not None, log.read_text()
    return found.group(1)
