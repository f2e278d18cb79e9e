"""Serving over streamable HTTP: the MCP endpoint as an ASGI application, and the events that a session keeps."""

from __future__ import annotations

import contextlib
import json
import math
import re
import secrets
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import AnyHttpUrl
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.routing import BaseRoute, Route, Router

from moonbox.mcp.server.limits import RequestRate, TooMany
from moonbox.mcp.server.sessions import Verifier, configured_tokens, current_owner, owner_named, share_of
from moonbox.net import guard
from moonbox.schema.learned import LOCAL

if TYPE_CHECKING:
    from mcp.server.streamable_http import EventCallback, EventId, StreamableHTTPServerTransport, StreamId
    from mcp_types.jsonrpc import JSONRPCMessage
    from starlette.types import ASGIApp, Receive, Scope, Send

    from moonbox.config.sections import ServeSettings
    from moonbox.mcp.server.server import MoonboxServer

PATH = "/mcp"
MAX_EVENTS = 200
MAX_BYTES = 4 * 1024 * 1024
RETRY_MILLISECONDS = 1_000
_SESSION_SECONDS = 60
"""When a client with too many sessions may try again: some end when they are idle."""


def create_app(server: MoonboxServer, *, other: ASGIApp | None = None) -> Router:
    """An ASGI application that serves MCP at /mcp; all other paths go to `other`, with the same limits."""
    settings = server.settings
    manager, senders = HttpSessions(server), _Senders(settings)
    endpoint: ASGIApp = manager.handle_request
    routes: list[BaseRoute] = []
    if configured_tokens(settings) or settings.oauth is not None:
        metadata = None
        scopes: Sequence[str] = ()
        if settings.oauth is not None:
            resource, scopes = AnyHttpUrl(settings.oauth.resource), settings.oauth.scopes
            metadata = build_resource_metadata_url(resource)
            routes += create_protected_resource_routes(
                resource_url=resource,
                authorization_servers=[AnyHttpUrl(settings.oauth.issuer)],
                scopes_supported=list(scopes) or None,
            )
        endpoint = RequireAuthMiddleware(endpoint, list(scopes), metadata)
        endpoint = AuthContextMiddleware(endpoint)
        endpoint = AuthenticationMiddleware(endpoint, backend=BearerAuthBackend(senders.tokens))
    routes.append(Route(PATH, endpoint=guarded(endpoint, settings, senders)))
    api = other and guard.Guard(_taking_turns(other, server, senders), senders.check, senders.check_rate)

    @contextlib.asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        async with server.running(), manager.run():
            await server.requests.start_for_all(owners=bool(settings.tokens) or settings.oauth is not None)
            yield

    # Not a Starlette application: its handlers of errors would be in the way of each request a second time.
    return Router(routes, redirect_slashes=False, default=api, lifespan=lifespan)


def guarded(app: ASGIApp, settings: ServeSettings, senders: _Senders | None = None) -> guard.Guard:
    """The endpoint behind checks of Host and Origin, and of how many requests an address sends."""
    senders = senders or _Senders(settings)
    # Any header: arguments of tools may be bound to headers of their own (Mcp-Param-*).
    rated = guard.with_cors(guard.Guard(app, senders.check_rate), settings.origins, headers=("*",))
    return guard.Guard(rated, senders.check)


class _Senders:
    """Who sends a request, whether it may, and how many requests came before."""

    def __init__(self, settings: ServeSettings) -> None:
        self.check = guard.Callers(settings.host_names, frozenset(settings.origins)).check
        self._rate = RequestRate(settings.requests_per_minute)
        self.tokens = Verifier(settings)
        self._has_tokens = bool(configured_tokens(settings))

    def check_rate(self, scope: guard.Scope) -> guard.Refusal | None:
        """Clients with a token of their own have a rate of their own: several may come from one address."""
        name = self._name(scope)
        wait = self._rate.wait(f"client {name}" if name is not None else f"address {_address(scope)}")
        if not wait or scope["path"] == "/health":  # a proxy that checks it may have the address of all clients
            return None
        message = "too many requests from this client or address; try again later"
        return guard.Refusal(429, "too_many_requests", message, {"Retry-After": str(math.ceil(wait))})

    def share(self, scope: guard.Scope) -> str | None:
        """Whose share of the limits a call uses; None where a token is missing."""
        name = self._name(scope)
        return None if name is None and self._has_tokens else share_of(owner_named(name), _address(scope))

    def _name(self, scope: guard.Scope) -> str | None:
        token = guard.bearer(scope)
        return self.tokens.name_of(token) if token else None


def _taking_turns(api: ASGIApp, server: MoonboxServer, senders: _Senders) -> ASGIApp:
    """The HTTP API; its calls of tools and scripts take their turns with those of MCP, and have the same quotas."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        called = scope["type"] == "http" and scope["method"] == "POST"
        called = called and (scope["path"].startswith("/tools/") or scope["path"].endswith("/run"))
        share = senders.share(scope) if called else None
        if share is None:  # no call, or one that the API refuses
            await api(scope, receive, send)
            return
        try:
            async with server.turn(share):
                await api(scope, receive, send)
        except TooMany as problem:
            again = {"Retry-After": str(problem.seconds)}
            await guard.Refusal(429, "too_many_calls", str(problem), again)(scope, receive, send)

    return app


def _address(scope: guard.Scope) -> str:
    return str(scope["client"][0]) if scope.get("client") else "unknown"


class EventLog(EventStore):
    """The latest events of one session; the oldest are dropped when there are too many.

    The id of an event has its number and its stream: a client whose last event was dropped gets what is still there.
    """

    def __init__(self, max_events: int = MAX_EVENTS, max_bytes: int = MAX_BYTES) -> None:
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._events: deque[tuple[int, StreamId, EventMessage | None, int]] = deque()
        self._size = 0
        self._prefix = secrets.token_hex(8)
        self._count = 0

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        self._count += 1
        name = f"{self._prefix}-{self._count}-{quote(stream_id, safe='')}"
        event = None if message is None else EventMessage(message, name)
        size = len(name) + (0 if message is None else len(message.model_dump_json(by_alias=True, exclude_unset=True)))
        self._events.append((self._count, stream_id, event, size))
        self._size += size
        while len(self._events) > self._max_events or (self._size > self._max_bytes and len(self._events) > 1):
            self._size -= self._events.popleft()[-1]
        return name

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        last = re.fullmatch(rf"{self._prefix}-([0-9]{{1,15}})-(.*)", last_event_id)
        if last is None:
            return None
        stream = unquote(last[2])
        for number, of, event, _ in list(self._events):
            if number > int(last[1]) and of == stream and event is not None:
                await send_callback(event)
        return stream


class HttpSessions(StreamableHTTPSessionManager):
    """The SDK's sessions: each has an event log of its own, and each client has a limited number of them."""

    def __init__(self, server: MoonboxServer) -> None:
        settings = server.settings
        most = max(settings.max_conversations * 2, 1_000)
        super().__init__(
            server.app,
            retry_interval=RETRY_MILLISECONDS,
            max_request_body_size=settings.max_body,
            session_idle_timeout=settings.idle_seconds,
            max_sessions=most,
        )
        self._server = server
        # Fewer for each client than there are in all, so that one client cannot keep the others out.
        self._most_of_one = most // (len(configured_tokens(settings)) + 1)
        server.end_streams = self._end_streams

    def _end_streams(self) -> None:
        for transport in self._server_instances.values():
            transport.close_standalone_sse_stream()

    @property
    def event_store(self) -> EventStore | None:
        """A new log: read once for each session."""
        return EventLog()

    @event_store.setter
    def event_store(self, _: EventStore | None) -> None:
        """Set by the SDK's constructor; there is no log for all sessions."""

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        version = "".join(guard.header_values(scope, b"mcp-protocol-version"))
        if guard.header_values(scope, b"mcp-session-id") or version in MODERN_PROTOCOL_VERSIONS:
            await super().handle_request(scope, receive, send)
            return
        if list(map(self._owner, self._server_instances)).count(current_owner()) >= self._most_of_one:
            again = {"Retry-After": str(_SESSION_SECONDS)}
            refusal = guard.Refusal(429, "too_many_sessions", "this client has too many sessions open", again)
            await refusal(scope, receive, send)
            return
        await super().handle_request(scope, receive, send)

    def _owner(self, session_id: str) -> str:
        principal = self._session_owners.get(session_id)
        return LOCAL if principal is None else json.dumps(list(principal.values()))

    async def _discard_session(self, session_id: str, transport: StreamableHTTPServerTransport) -> None:
        """However it ended: by its client, because it was idle, or by an error. The SDK has no other hook for that."""
        is_known, owner = session_id in self._server_instances, self._owner(session_id)
        await super()._discard_session(session_id, transport)
        if is_known:
            await self._server.end_session(owner, session_id)
