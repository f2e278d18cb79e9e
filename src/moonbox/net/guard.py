"""Checks of incoming requests: the Host and Origin headers, and CORS, for every server of moonbox."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from moonbox.net.addresses import LOOPBACK_NAMES

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]{1,45}\]|[a-z0-9_.-]{1,253})(?::[0-9]{0,5})?", re.ASCII)
_ORIGIN = re.compile(r"https?://(?P<host>[^/?#@]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that says why a request is refused."""

    status: int
    code: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As an ASGI application."""
        from starlette.responses import JSONResponse  # slow to load, and rarely needed

        content = {"error": {"code": self.code, "message": self.message}}
        await JSONResponse(content, self.status, dict(self.headers))(scope, receive, send)


@dataclass(frozen=True, slots=True)
class Callers:
    """Who may send requests, as far as their headers tell.

    A page in a browser can send requests to this machine, but it cannot choose their Host and Origin headers: a name
    that was rebound to our address shows in the first, the page's own site in the second.
    """

    hosts: frozenset[str] = frozenset(LOOPBACK_NAMES)
    """Host headers that are answered, without ports; empty for any."""
    origins: frozenset[str] = frozenset()
    """Origins whose pages may send requests, beside pages of this machine."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "hosts", frozenset(host.lower() for host in self.hosts))

    def check(self, scope: Scope) -> Refusal | None:
        hosts = header_values(scope, b"host")
        if len(hosts) != 1 or (self.hosts and _name(hosts[0]) not in self.hosts):
            return Refusal(421, "wrong_host", "this server does not answer to that Host header")
        if not all(self._knows(origin) for origin in header_values(scope, b"origin")):
            return Refusal(403, "wrong_origin", "pages of this origin may not use this server")
        return None

    def _knows(self, origin: str) -> bool:
        if origin in self.origins:
            return True
        page = _ORIGIN.fullmatch(origin.lower())
        name = _name(page["host"]) if page else ""
        return name in LOOPBACK_NAMES and (not self.hosts or name in self.hosts)


class Guard:
    """ASGI middleware: a request reaches the application when no check refuses it."""

    def __init__(self, app: Any, *checks: Callable[[Scope], Refusal | None]) -> None:
        self._app, self._checks = app, checks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            for check in self._checks:
                refusal = check(scope)
                if refusal is not None:
                    await refusal(scope, receive, send)
                    return
        await self._app(scope, receive, send)


def with_cors(app: Any, origins: Collection[str], *, headers: Collection[str] = ("Authorization",)) -> Any:
    """The application, with CORS for pages of these origins: they may send the headers and read the answers.

    Cookies are not allowed: a page of another origin needs a token where the server needs one.
    """
    if not origins:
        return app
    from starlette.middleware.cors import CORSMiddleware

    return CORSMiddleware(
        app,
        allow_origins=tuple(origins),
        allow_methods=("GET", "POST", "DELETE"),
        allow_headers=headers,
        allow_private_network=True,
        expose_headers=("Mcp-Session-Id", "MCP-Protocol-Version", "WWW-Authenticate", "Retry-After"),
    )


def header_values(scope: Scope, name: bytes) -> list[str]:
    """Every value of a header, which a client may send repeatedly."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def bearer(scope: Scope) -> str:
    """The token that a client sends; empty where it sends none, or several."""
    values = header_values(scope, b"authorization")
    kind, _, token = values[0].partition(" ") if len(values) == 1 else ("", "", "")
    return token.strip() if kind.lower() == "bearer" else ""


def _name(host: str) -> str:
    """The host of a Host header without its port, in lower case; empty when it is invalid."""
    parts = _HOST.fullmatch(host.lower())
    return parts["name"] if parts else ""
