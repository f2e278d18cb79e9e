"""The guard before every request: who may ask, from where, how much at a time."""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox.errors import UsageError
from moonbox.http.failures import failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Receive = Callable[[], Awaitable[Any]]
    Send = Callable[[Any], Awaitable[None]]

__all__ = ["Access", "Guard", "is_loopback"]

_OPEN = frozenset({"/health"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a server demands of its clients."""

    token: str | None = None
    """Clients send it as `Authorization: Bearer <token>`. Without one, only loopback addresses may be served."""
    hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]")
    """Host headers that are answered (with any port): a page on another site cannot reach us by rebinding a name."""
    origins: tuple[str, ...] = ()
    """Origins whose pages may ask; none by default, whatever the page."""
    max_body: int = 1_000_000

    def check_address(self, host: str) -> None:
        """Refuse to serve strangers without a token."""
        if self.token is None and not is_loopback(host):
            raise UsageError(f"serving on {host} needs a token: pass --token, or serve on 127.0.0.1")


class Guard:
    """ASGI middleware: checks Host, Origin and token, and bounds the body."""

    def __init__(self, app: Any, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope["path"], headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, _Bounded(receive, self._access.max_body), send)

    def _refusal(self, path: str, headers: dict[bytes, str]) -> Any:
        access = self._access
        if _name(headers.get(b"host", "")) not in access.hosts:
            return failure(421, "wrong_host", "this server does not answer to that Host header")
        origin = headers.get(b"origin")
        if origin is not None and origin not in access.origins:
            return failure(403, "wrong_origin", "pages of this origin may not use this server")
        if access.token is not None and path not in _OPEN and not self._has_token(headers):
            asks = {"WWW-Authenticate": "Bearer"}
            return failure(401, "unauthorized", "send the header Authorization: Bearer <token>", headers=asks)
        length = headers.get(b"content-length", "")
        if length.isdigit() and int(length) > access.max_body:
            return failure(413, "too_large", f"the body is larger than {access.max_body:,} bytes")
        return None

    def _has_token(self, headers: dict[bytes, str]) -> bool:
        kind, _, token = headers.get(b"authorization", "").partition(" ")
        wanted = self._access.token or ""
        return kind.lower() == "bearer" and hmac.compare_digest(token.strip().encode("latin-1"), wanted.encode())


class _Bounded:
    """A body that may not grow past its bound, whatever its Content-Length said."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._left = most

    async def __call__(self) -> Any:
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                from moonbox.http.failures import Refused

                raise Refused(413, "too_large", "the body is too large")
        return message


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _name(host: str) -> str:
    """A Host header without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].lower()
