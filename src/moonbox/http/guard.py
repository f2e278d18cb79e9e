"""Access to the HTTP API: who may send requests, from where, and how large they may be."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox.http.browser import BrowserAccess, is_same_origin
from moonbox.http.requests import Refused
from moonbox.net import guard
from moonbox.net.addresses import LOOPBACK_NAMES

if TYPE_CHECKING:
    from moonbox.net.guard import Receive, Refusal, Scope, Send

_OPEN = frozenset({"/health"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a server demands of its clients."""

    token: str | None = None
    """Clients send it as `Authorization: Bearer <token>`. Without one, only loopback addresses may be served."""
    hosts: tuple[str, ...] = LOOPBACK_NAMES
    """Host headers that are answered (with any port): a page on another site cannot reach us by rebinding a name."""
    origins: tuple[str, ...] = ()
    """Origins whose pages may send requests and read the answers, besides our own.

    Without a `browser`, pages of this machine may send requests too, as a proxy does; they cannot read the answers."""
    max_body: int = 1_000_000
    browser: BrowserAccess | None = None
    """Signed-in browsers may send requests too; unless it is public, every request needs a token or a sign-in."""
    open_paths: tuple[str, ...] = ()
    """Paths that check for themselves who asks, with all that is below them ("/" stands for itself alone)."""


class ApiGuard:
    """ASGI middleware: checks Host, Origin and token, answers CORS preflights, and bounds the body."""

    def __init__(self, app: Any, access: Access) -> None:
        self._app, self._access = app, access
        callers = guard.Callers(frozenset(access.hosts), frozenset(access.origins))
        checked = guard.Guard(self._bounded, self._check_page, self._check_token, self._check_length)
        self._guard = guard.Guard(guard.with_cors(checked, access.origins), callers.check)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guard(scope, receive, send)

    def _check_page(self, scope: Scope) -> Refusal | None:
        """Where people work in a browser, only our own pages and those of `origins` may send requests."""
        if self._access.browser is None or is_same_origin(scope):
            return None
        if any(origin in self._access.origins for origin in guard.header_values(scope, b"origin")):
            return None
        return guard.Refusal(403, "wrong_origin", "pages of other origins may not use this server")

    def _check_token(self, scope: Scope) -> Refusal | None:
        access, path = self._access, scope["path"]
        if path in _OPEN or any(_is_under(path, place) for place in access.open_paths):
            return None
        browser = access.browser
        if access.token is None and (browser is None or browser.public):
            return None
        if browser is not None and browser.allows(scope):
            return None
        token = guard.bearer(scope).encode("latin-1")
        if access.token and hmac.compare_digest(token, access.token.encode()):
            return None
        message = "send the header Authorization: Bearer <token>"
        return guard.Refusal(401, "unauthorized", message, {"WWW-Authenticate": "Bearer"})

    def _check_length(self, scope: Scope) -> Refusal | None:
        most = self._access.max_body
        for length in guard.header_values(scope, b"content-length"):
            digits = length.strip().lstrip("0")
            if digits.isascii() and digits.isdigit() and (len(digits) > 18 or int(digits) > most):
                return guard.Refusal(413, "too_large", f"the body is larger than {most:,} bytes")
        return None

    async def _bounded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application, with a body that may not grow past its bound, whatever its Content-Length said."""
        left = self._access.max_body

        async def bounded() -> Any:
            nonlocal left
            message = await receive()
            if message["type"] == "http.request":
                left -= len(message.get("body", b""))
                if left < 0:
                    raise Refused(413, "too_large", f"the body is larger than {self._access.max_body:,} bytes")
            return message

        await self._app(scope, bounded, send)


def _is_under(path: str, place: str) -> bool:
    return path == place or (place != "/" and path.startswith(f"{place}/"))
