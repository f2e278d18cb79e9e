"""Plain calls of the code tool over HTTP, which do not go through the SDK: the answers are those of the SDK."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import CallToolResult, TextContent

from moonbox import CodeMode, Sandbox, tool
from moonbox.mcp.caller import approve, watch
from moonbox.mcp.server.events import PLAIN, ResumableSessions
from moonbox.mcp.server.plain import PlainAnswers
from moonbox.mcp.server.server import MoonboxServer
from tests.counting import count_awaited
from tests.mcp.mcp_driver import SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

VERSION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
ASKED: dict[str, Any] = {f"{PREFIX}clientCapabilities": {"elicitation": {"form": {}}}}
"""Of a client that can ask a person."""
Change = dict[str, Any]


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(policy="approve")
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def request(
    source: str = "return tools.add{a = 1, b = 2}",
    *,
    body: Change | None = None,
    params: Change | None = None,
    meta: Change | None = None,
    headers: Change | None = None,
    more_headers: tuple[tuple[str, str], ...] = (),
    encoded: Callable[[Any], bytes] = lambda message: json.dumps(message).encode(),
) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """A plain call, changed: ... as a value leaves the entry out."""
    whole_meta = _changed(
        {
            f"{PREFIX}protocolVersion": VERSION,
            f"{PREFIX}clientInfo": {"name": "test", "version": "1"},
            f"{PREFIX}clientCapabilities": {},
        },
        meta,
    )
    whole_params = _changed({"name": "lua_repl", "arguments": {"source_code": source}, "_meta": whole_meta}, params)
    message = _changed({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": whole_params}, body)
    content = encoded(message)
    whole_headers = _changed(
        {
            "host": "127.0.0.1",
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "content-length": str(len(content)),
            "mcp-protocol-version": VERSION,
            "mcp-method": "tools/call",
            "mcp-name": "lua_repl",
        },
        headers,
    )
    lines = [*whole_headers.items(), *more_headers]
    return content, [(name.encode(), value.encode()) for name, value in lines]


def _changed(entries: Change, changes: Change | None) -> Change:
    return {name: value for name, value in {**entries, **(changes or {})}.items() if value is not ...}


class Served:
    """One server twice: behind PlainAnswers, and as the SDK serves it."""

    def __init__(self, server: MoonboxServer, mode: CodeMode, sdk: ResumableSessions) -> None:
        self.mode = mode
        self._sdk = sdk
        self._plain = PlainAnswers(self._counted, server)
        self.held, self.stopped = asyncio.Event(), asyncio.Event()
        """Set by the tool `hold`, which waits until it is cancelled."""
        self.sdk_requests = 0
        """How many requests PlainAnswers left to the SDK."""

    async def answer(self, sent: tuple[bytes, list[tuple[bytes, bytes]]]) -> tuple[int, str, Any]:
        return await exchange(self._plain, *sent)

    async def sdk_answer(self, sent: tuple[bytes, list[tuple[bytes, bytes]]]) -> tuple[int, str, Any]:
        before = PLAIN.set(True)
        try:
            return await exchange(self._sdk.handle_request, *sent)
        finally:
            PLAIN.reset(before)

    async def _counted(self, scope: Any, receive: Any, send: Any) -> None:
        self.sdk_requests += 1
        await self._sdk.handle_request(scope, receive, send)


async def exchange(app: Any, content: bytes, headers: Any) -> tuple[int, str, Any]:
    """Status, type and content of the answer, without what is random in it."""
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"",
        "scheme": "http",
        "http_version": "1.1",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "headers": headers,
    }
    messages = [{"type": "http.request", "body": content, "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop() if messages else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    async with asyncio.timeout(SECONDS):
        await app(scope, receive, send)
    text = b"".join(message.get("body", b"") for message in sent).decode()
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    assert told.get("content-length", str(len(text))) == str(len(text))
    try:
        data = json.loads(text)
    except ValueError:
        data = text
    return sent[0]["status"], told.get("content-type", ""), data


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    @tool
    async def hold() -> None:
        """Wait until it is cancelled."""
        both.held.set()
        try:
            await asyncio.Event().wait()
        finally:
            both.stopped.set()

    async with Sandbox([add, pay, hold], on_call=watch, approve=approve) as box:
        mode = CodeMode(box, mode="always", approvals=True)
        server = MoonboxServer(mode)
        sdk = ResumableSessions(server.app)
        both = Served(server, mode, sdk)
        async with server.running(), sdk.run():
            yield both


def without_random(answer: tuple[int, str, Any]) -> tuple[int, str, Any]:
    text = re.sub(r"\b[0-9a-f]{12}(?:[0-9a-f]{20})?\b", "random", json.dumps(answer[2], sort_keys=True))
    return answer[0], answer[1], json.loads(text)


DIRECT: dict[str, dict[str, Any]] = {
    "calls a tool": {},
    "null": {"source": "return nil"},
    "nulls inside": {"source": "return {a = json.null, b = {json.null, 1}, c = {}, d = array{}}"},
    "several values": {"source": "return 1, 'two', nil, {3}"},
    "output": {"source": "print('one', 2) return true"},
    "characters": {"source": "return 'ä\\u{1F319}\\0\\n</script>'"},
    "numbers": {"source": "return {1.5, 1e300, -0.0, 9007199254740993, 0/1}"},
    "globals": {"source": "kept = 1 return kept"},
    "runtime error": {"source": "error('no')"},
    "syntax error": {"source": "return ("},
    "tool that needs approval": {"source": "return tools.pay{amount = 1}"},
    "invalid arguments of a tool": {"source": "return tools.add{a = 'x', b = 2}"},
    "no script": {"params": {"arguments": {}}},
    "unknown argument": {"params": {"arguments": {"source": "return 1", "more": 2}}},
    "unknown state": {"params": {"arguments": {"source_code": "return 1", "state": "nothing"}}},
    "no arguments": {"params": {"arguments": ...}},
    "null arguments": {"params": {"arguments": None}},
    "text as id": {"body": {"id": "one"}},
    "large id": {"body": {"id": 2**70}},
    "half a character as id": {"body": {"id": "\ud800"}},
    "half a character in the script": {"source": "return '\ud800'"},
    "no client": {"meta": {f"{PREFIX}clientInfo": ...}},
    "conversation": {"meta": {"moonbox/conversation": "mine"}},
    "further meta": {"meta": {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}},
    "roots": {"meta": {f"{PREFIX}clientCapabilities": {"roots": {}, "experimental": {"x": {}}}}},
    "accepts JSON": {"headers": {"accept": "application/json"}},
    "UTF-16": {"encoded": lambda message: json.dumps(message).encode("utf-16")},
}
"""Answered without the SDK."""
LEFT_TO_SDK: dict[str, dict[str, Any]] = {
    "another tool": {"params": {"name": "add"}, "headers": {"mcp-name": "add"}},
    "name in another header": {"headers": {"mcp-name": "add"}},
    "no name in the headers": {"headers": {"mcp-name": ...}},
    "encoded name": {"headers": {"mcp-name": "=?base64?bHVhX3JlcGw=?="}},
    "number as name": {"params": {"name": 3}},
    "list as arguments": {"params": {"arguments": ["return 1"]}},
    "another method": {"body": {"method": "tools/list"}},
    "another method in the header": {"headers": {"mcp-method": "tools/list"}},
    "no method in the header": {"headers": {"mcp-method": ...}},
    "method twice": {"more_headers": (("mcp-method", "tools/call"),)},
    "version twice": {"more_headers": (("mcp-protocol-version", VERSION),)},
    "other version in the body": {"meta": {f"{PREFIX}protocolVersion": "2025-06-18"}},
    "no version in the body": {"meta": {f"{PREFIX}protocolVersion": ...}},
    "null as version": {"meta": {f"{PREFIX}protocolVersion": None}},
    "no capabilities": {"meta": {f"{PREFIX}clientCapabilities": ...}},
    "null as capabilities": {"meta": {f"{PREFIX}clientCapabilities": None}},
    "invalid capabilities": {"meta": {f"{PREFIX}clientCapabilities": {"elicitation": 3}}},
    "invalid client": {"meta": {f"{PREFIX}clientInfo": {"name": 3}}},
    "no meta": {"params": {"_meta": ...}},
    "list as meta": {"params": {"_meta": []}},
    "no params": {"body": {"params": ...}},
    "list as params": {"body": {"params": []}},
    "null as id": {"body": {"id": None}},
    "fraction as id": {"body": {"id": 1.5}},
    "boolean as id": {"body": {"id": True}},
    "notification": {"body": {"id": ...}},
    "other JSON-RPC": {"body": {"jsonrpc": "1.0"}},
    "no JSON-RPC": {"body": {"jsonrpc": ...}},
    "further member": {"body": {"more": 1}},
    "invented request state": {"params": {"requestState": "mine"}},
    "answers to no question": {"params": {"inputResponses": {"question-1": {"action": "accept"}}}},
    "task": {"params": {"task": {"ttl": 1000}}},
    "batch": {"encoded": lambda message: json.dumps([message]).encode()},
    "no JSON": {"encoded": lambda _: b'{"jsonrpc"'},
    "nested too deeply": {"encoded": lambda _: b"[" * 200_000},
    "no body": {"encoded": lambda _: b""},
    "accepts HTML": {"headers": {"accept": "text/html"}},
    "accepts anything": {"headers": {"accept": "*/*"}},
    "accepts nothing": {"headers": {"accept": ...}},
    "type with parameters": {"headers": {"content-type": "application/json; charset=utf-8"}},
    "other type": {"headers": {"content-type": "text/plain"}},
    "no type": {"headers": {"content-type": ...}},
    "session": {"headers": {"mcp-session-id": "mine"}},
    "argument in a header": {"headers": {"mcp-param-region": "north"}},
    "hidden progress token": {
        "meta": {"progressToken": "p"},
        "encoded": lambda message: json.dumps(message).replace("progressToken", "progress\\u0054oken").encode(),
    },
}
"""Not plain: the SDK reads them, and refuses most."""
CASES = [(name, change, 0) for name, change in DIRECT.items()]
CASES += [(name, change, 1) for name, change in LEFT_TO_SDK.items()]


@pytest.mark.parametrize(("change", "sdk_requests"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_answer_is_that_of_the_sdk(change: dict[str, Any], sdk_requests: int) -> None:
    async def work() -> None:
        async with served() as both:
            expected = await both.sdk_answer(request(**change))
            answer = await both.answer(request(**change))
            assert without_random(answer) == without_random(expected)
            assert both.sdk_requests == sdk_requests

    asyncio.run(work())


def test_a_question_of_a_plain_call_is_sealed_and_its_answer_continues_the_script() -> None:
    source = "return tools.pay{amount = 3}"

    async def work() -> None:
        async with served() as both:
            _, _, question = await both.answer(request(source, meta=ASKED))
            result = question["result"]
            assert (result["resultType"], both.sdk_requests) == ("input_required", 1)
            assert len(result["requestState"]) > 100  # the seal, not the call's own name
            responses = {key: {"action": "accept", "content": {}} for key in result["inputRequests"]}
            answered = {"requestState": result["requestState"], "inputResponses": responses}
            _, _, paid = await both.answer(request(source, meta=ASKED, params=answered))
            assert paid["result"]["structuredContent"]["value"] == "paid 3"
            # The outcome of the first request is nobody else's.
            _, _, other = await both.answer(request("return 5", meta=ASKED, params={"inputResponses": {}}))
            assert other["result"]["structuredContent"]["value"] == 5

    asyncio.run(work())


def test_an_error_of_ours_is_the_sdks_to_answer() -> None:
    async def work() -> None:
        async with served() as both:
            both.mode.close()
            expected = await both.sdk_answer(request(meta=ASKED))
            answer = await both.answer(request(meta=ASKED))
            assert answer == expected
            assert (answer[2]["error"]["code"], both.sdk_requests) == (-32603, 1)

    asyncio.run(work())


def test_a_script_of_a_plain_call_is_stopped_with_the_server() -> None:
    async def work() -> None:
        async with served() as both:
            call = asyncio.create_task(both.answer(request("return tools.hold()")))
            async with asyncio.timeout(SECONDS):
                await both.held.wait()
        assert both.stopped.is_set()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(work())


def test_a_plain_call_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        async with served() as both:
            await both.answer(request())
            await both.answer(
                request("return tools.pay{amount = 3}", meta={f"{PREFIX}clientCapabilities": {"elicitation": {}}})
            )

    with caplog.at_level(logging.DEBUG, logger="moonbox.mcp"):
        asyncio.run(work())
    lines = [record for record in caplog.records if record.name == "moonbox.mcp"]
    fields = [(line.getMessage(), getattr(line, "fields", {}).get("result")) for line in lines]
    assert fields == [("request begins", None), ("request", "ok")] * 2


def test_a_plain_call_takes_less_of_the_event_loop_than_a_tool_of_the_sdk_that_does_nothing() -> None:
    """Counted in calls of functions in the loop's thread; the least of several, because timers may fire in between."""

    async def call_nothing(_: Any, __: Any) -> CallToolResult:
        return CallToolResult(content=[TextContent(text="10")])

    async def least(answer: Callable[[], Awaitable[Any]]) -> int:
        return min([await count_awaited(answer) for _ in range(10)])

    async def work() -> None:
        bare = StreamableHTTPSessionManager(Server("bare", on_call_tool=call_nothing))
        async with served() as both, bare.run():
            nothing = await least(lambda: exchange(bare.handle_request, *request()))
            script = await least(lambda: both.answer(request("return 1")))
            assert script < nothing

    asyncio.run(work())
