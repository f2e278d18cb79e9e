"""The gate before the MCP endpoint: Host, Origin, and how many requests an address may make."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from moonbox.mcp.server.sessions import RequestRate

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from moonbox.mcp.server.settings import ServeSettings

__all__ = ["Gate"]


class Gate:
    """ASGI middleware. A page in a browser cannot get past it, neither by rebinding a name nor from its own origin."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self._app = app
        self._hosts = settings.host_names
        self._origins = frozenset(settings.origins)
        self._rate = RequestRate(settings.requests_per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Any:
        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value.decode("latin-1"))
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or (self._hosts and _name(hosts[0]) not in self._hosts):
            return _refused(421, "wrong_host", "this server does not answer to that Host header")
        if any(origin not in self._origins for origin in headers.get(b"origin", ())):
            return _refused(403, "wrong_origin", "pages of this origin may not use this server")
        client = scope.get("client")
        wait = self._rate.wait(client[0] if client else "unknown")
        if wait:
            after = {"Retry-After": str(math.ceil(wait))}
            return _refused(429, "too_many_requests", "too many requests from this address; wait a little", after)
        return None


def _refused(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers)


def _name(host: str) -> str:
    """A Host header without its port."""
    if host.startswith("["):
        return (host.partition("]")[0] + "]").lower()
    return host.partition(":")[0].lower()
