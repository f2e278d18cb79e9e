"""Plain answers: requests of the current protocol that are answered at once and as a whole, with JSON.

The SDK prepares every request to be streamed, and looks at each request and each result in several steps. For most
scripts that takes longer than the script. Here a request that asks for no progress and no log messages is answered with
JSON, and a plain call of the code tool does not go through the SDK at all. Every request that differs from such a call
in any way, every error and every question to the client is the SDK's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING

from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
    CallToolRequestParams,
    CallToolResult,
    ClientCapabilities,
    JSONRPCRequest,
)
from mcp_types.methods import validate_client_request
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from moonbox.mcp.server.calls import OUTCOME
from moonbox.mcp.server.events import PLAIN
from moonbox.mcp.server.sessions import Client, current_owner

if TYPE_CHECKING:
    from mcp_types import RequestId
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from moonbox.mcp.server.calls import Outcome
    from moonbox.mcp.server.server import MoonboxServer

    Headers = dict[bytes, bytes]
    ScriptCall = tuple[RequestId, Client, CallToolRequestParams]

__all__ = ["PlainAnswers"]

PING_SECONDS = 15.0
"""A client that waits longer for an answer gets a sign of life, so that no proxy in between gives up."""
WATCH_SECONDS = 0.05
"""A client that hangs up while it waits longer than this ends its request."""
_CALL = "tools/call"
_STREAMING = (b"progressToken", LOG_LEVEL_META_KEY.encode(), b"subscriptions/listen")
"""In a request's body: it may be sent something before the answer."""
_STREAMING_META = frozenset({"progressToken", "progress_token", LOG_LEVEL_META_KEY})
_VERSIONS = frozenset(version.encode() for version in MODERN_PROTOCOL_VERSIONS)
_JSON = b"application/json"
_STREAM_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
_REQUEST_KEYS = frozenset({"jsonrpc", "id", "method", "params"})
_CALL_KEYS = frozenset({"name", "arguments", "_meta"})


class PlainAnswers:
    """ASGI middleware: such a request ends when its client hangs up, and a client that waits for long gets a stream."""

    def __init__(self, app: ASGIApp, server: MoonboxServer) -> None:
        self._app = app
        self._server = server
        self._max_body = server.settings.max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = self._headers(scope)
        if headers is None:
            await self._app(scope, receive, send)
            return
        messages: list[Message] = [await receive()]
        while messages[-1].get("more_body"):
            messages.append(await receive())
        body = b"".join(message.get("body", b"") for message in messages)
        messages.reverse()

        async def replayed() -> Message:
            return messages.pop() if messages else await receive()

        if any(word in body for word in _STREAMING):
            await self._app(scope, replayed, send)
            return
        call = self._script_call(scope, headers, body)
        answer = _Answer(send)
        if call is None:
            await self._answer(self._app, scope, replayed, receive, answer)
        else:
            await self._answer(_ScriptAnswer(self._app, self._server, call), scope, replayed, receive, answer)

    def _headers(self, scope: Scope) -> Headers | None:
        """The headers of a request that may be answered as a whole; None for all others."""
        if scope["type"] != "http" or scope["method"] != "POST":
            return None
        headers: Headers = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), value)
        if headers.get(b"mcp-protocol-version") not in _VERSIONS:
            return None
        length = headers.get(b"content-length", b"")
        return headers if length.isdigit() and int(length[:20]) <= self._max_body else None

    def _script_call(self, scope: Scope, headers: Headers, body: bytes) -> ScriptCall | None:
        """The call of a request which is nothing but a valid call of the code tool; None for all others."""
        accepted = [kind.strip() for kind in headers.get(b"accept", b"").split(b",")]
        if (
            headers.get(b"mcp-method") != _CALL.encode()
            or headers.get(b"content-type") != _JSON
            or _JSON not in accepted
            or len(headers) != len(scope["headers"])  # one is there twice
            or any(name == b"mcp-session-id" or name.startswith(b"mcp-param-") for name in headers)
        ):
            return None
        try:
            request = json.loads(body)
        except (ValueError, RecursionError):
            return None
        if not isinstance(request, dict) or request.keys() != _REQUEST_KEYS or request["method"] != _CALL:
            return None
        params, name, version = request["params"], self._server.code_tool, headers[b"mcp-protocol-version"].decode()
        if not isinstance(params, dict) or not params.keys() <= _CALL_KEYS or params.get("name") != name:
            return None
        meta = params.get("_meta")
        if (
            headers.get(b"mcp-name") != name.encode()
            or not isinstance(meta, dict)
            or meta.get(PROTOCOL_VERSION_META_KEY) != version
            or not _STREAMING_META.isdisjoint(meta)
        ):
            return None
        try:
            JSONRPCRequest.model_validate(request)
            validate_client_request(_CALL, version, params)
            call = CallToolRequestParams.model_validate(params, by_name=False)
            capabilities = ClientCapabilities.model_validate(meta.get(CLIENT_CAPABILITIES_META_KEY), by_name=False)
        except ValidationError:
            return None
        return request["id"], _client(scope, request["id"], capabilities), call

    async def _answer(self, app: ASGIApp, scope: Scope, replayed: Receive, receive: Receive, answer: _Answer) -> None:
        request = asyncio.current_task()
        assert request is not None
        gone = False
        watching: asyncio.Task[None] | None = None

        async def watch() -> None:
            nonlocal gone
            while (await receive())["type"] != "http.disconnect":
                pass
            if not answer.complete:  # afterwards the server reports every request as disconnected
                gone = True
                request.cancel()

        def start_watching() -> None:
            nonlocal watching
            watching = asyncio.create_task(watch())
            answer.ping_later()

        # Most requests are answered before watching their connection would pay.
        timer = asyncio.get_running_loop().call_later(WATCH_SECONDS, start_watching)
        before = PLAIN.set(True)
        try:
            await app(scope, replayed, answer.send)
        except asyncio.CancelledError:
            if not gone or request.uncancel():  # somebody else cancelled it, too
                raise
        finally:
            PLAIN.reset(before)
            timer.cancel()
            if watching is not None:
                watching.cancel()
            answer.close()


class _ScriptAnswer:
    """ASGI application: the answer to one call of the code tool."""

    def __init__(self, app: ASGIApp, server: MoonboxServer, call: ScriptCall) -> None:
        self._app = app
        self._server = server
        self._call = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        number, client, params = self._call
        outcome = await self._server.run_script(client, params)
        body = None if outcome is None else self._body(number, outcome)
        if body is None:  # the SDK answers it: with a question, whose state it seals, or with an error
            before = OUTCOME.set(outcome)
            try:
                await self._app(scope, receive, send)
            finally:
                OUTCOME.reset(before)
            return
        headers = [(b"content-length", str(len(body)).encode()), (b"content-type", _JSON)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _body(self, number: RequestId, outcome: Outcome) -> bytes | None:
        if not isinstance(outcome.result, CallToolResult):
            return None
        try:
            result = outcome.result.model_dump(by_alias=True, mode="json", exclude_none=True)
        except ValueError:  # something that JSON cannot express
            return None
        result["_meta"] = {**result.get("_meta", {}), SERVER_INFO_META_KEY: self._server.info}
        return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}, separators=(",", ":")).encode()


class _Answer:
    """One answer: JSON, or the same as the only event of a stream if it took long."""

    def __init__(self, send: Send) -> None:
        self.complete = False
        self._send = send
        self._pinging: asyncio.Task[None] | None = None
        self._streams = False
        self._body = b""
        self._timer: asyncio.TimerHandle | None = None

    def ping_later(self) -> None:
        """Send signs of life if the answer takes long."""
        self._timer = asyncio.get_running_loop().call_later(PING_SECONDS, self._start_pings)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._pinging is not None:
            self._pinging.cancel()

    async def send(self, message: Message) -> None:
        self.close()  # a sign of life must not come in between
        last = message["type"] == "http.response.body" and not message.get("more_body")
        if not self._streams:
            self.complete = last
            await self._send(message)
        elif message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if last:
                self.complete = True
                event = b"event: message\r\ndata: " + self._body + b"\r\n\r\n"
                await self._send({"type": "http.response.body", "body": event})

    def _start_pings(self) -> None:
        self._pinging = asyncio.get_running_loop().create_task(self._ping())

    async def _ping(self) -> None:
        with contextlib.suppress(OSError):  # the client is gone, which is noticed elsewhere
            await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS})
            self._streams = True
            while True:
                await self._send({"type": "http.response.body", "body": b": ping\r\n\r\n", "more_body": True})
                await asyncio.sleep(PING_SECONDS)


def _client(scope: Scope, number: RequestId, capabilities: ClientCapabilities) -> Client:
    peer = scope.get("client")
    return Client(
        owner=current_owner(),
        session=None,
        address="unknown" if peer is None else peer[0],
        modern=True,
        capabilities=capabilities,
        stream=None,
        request_id=number,
        wants_progress=False,
    )
