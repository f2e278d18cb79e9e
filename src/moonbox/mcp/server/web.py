"""Serving over streamable HTTP: the MCP endpoint as an ASGI application, and a server to run it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.routing import Mount, Route

from moonbox.mcp.server.auth import verifier
from moonbox.mcp.server.guard import guarded
from moonbox.mcp.server.peer import owner_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from moonbox.mcp.server.server import MoonboxServer

__all__ = ["PATH", "create_app"]

PATH = "/mcp"


def create_app(server: MoonboxServer, *, other: ASGIApp | None = None) -> Starlette:
    """An ASGI application that serves MCP at /mcp; every other path is for `other`."""
    settings = server.settings
    manager = StreamableHTTPSessionManager(
        server.app,
        max_request_body_size=settings.max_body,
        session_idle_timeout=settings.idle_seconds,
        max_sessions=max(settings.max_conversations * 2, 1_000),
    )
    endpoint: ASGIApp = _Endpoint(StreamableHTTPASGIApp(manager), server)
    routes: list[BaseRoute] = []
    checks = verifier(settings)
    if checks is not None:
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
        endpoint = AuthenticationMiddleware(endpoint, backend=BearerAuthBackend(checks))
    routes.append(Route(PATH, endpoint=guarded(endpoint, settings)))
    if other is not None:
        routes.append(Mount("/", app=other))

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with server.running(), manager.run():
            await server.starting.start_for_all()
            yield

    return Starlette(routes=routes, lifespan=lifespan)


class _Endpoint:
    """The SDK's endpoint; ends a conversation when its client ends the session."""

    def __init__(self, app: ASGIApp, server: MoonboxServer) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "DELETE":
            await self._app(scope, receive, send)
            return
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        await self._app(scope, receive, watched)
        session = _header(scope, b"mcp-session-id")
        if session and status < 300:
            self._server.end_session(owner_of(), session)


def _header(scope: Any, name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name), None)
