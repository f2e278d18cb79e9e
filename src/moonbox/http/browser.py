"""Browsers: how a person signs in to the console, and how their requests are distinguished from those of other pages.

A browser shows a one-time key or the server's token once and gets a cookie. The cookie alone lets it read; whatever
changes something also needs the page's key in a header, which only our own pages can read and send.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections import OrderedDict
from ipaddress import IPv6Address, IPv6Network
from time import monotonic
from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection

from moonbox.net.addresses import parse_address
from moonbox.net.guard import header_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.net.guard import Scope

_COOKIE = "moonbox_console"
KEY_HEADER = b"x-moonbox-key"
_READS = frozenset({"GET", "HEAD"})
_LIFETIME = 7 * 24 * 3600.0
_MAX_SESSIONS = 100
_MAX_FAILURES = 20
_MAX_ADDRESSES = 1_000
_PAUSE = 60.0
_RENEWAL = 5.0


class BrowserAccess:
    """Who has signed in.

    token    what a person may sign in with, besides one-time keys
    public   no sign-in is needed: the server demands nothing of its other clients either
    """

    def __init__(self, token: str | None = None, *, public: bool = False) -> None:
        self._token = token
        self.on_renewal: Callable[[str], None] | None = None
        """Gets a new one-time key where a person asks for one; it must not reach the one who asks."""
        self._renewed = -_RENEWAL
        self.public = public
        self._secret = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._one_time: set[str] = set()
        self._sessions: OrderedDict[str, float] = OrderedDict()
        self._failures: OrderedDict[str, list[float]] = OrderedDict()

    @property
    def with_token(self) -> bool:
        """Whether a person can sign in with the server's token."""
        return self._token is not None

    def one_time_key(self) -> str:
        """A key that signs one browser in, once."""
        key = secrets.token_urlsafe(24)
        with self._lock:
            self._one_time.add(_digest(key))
        return key

    def redeem(self, key: str) -> str | None:
        """The cookie for a one-time key; None when the key is wrong or was used before."""
        with self._lock:
            if _digest(key) not in self._one_time:
                return None
            self._one_time.discard(_digest(key))
        return self._new_session()

    def renew(self) -> bool:
        """Print a new one-time key and withdraw the unused ones. Returns False shortly after the latest one."""
        now = monotonic()
        with self._lock:
            if self.on_renewal is None or now - self._renewed < _RENEWAL:
                return False
            self._renewed = now
            self._one_time.clear()
        self.on_renewal(self.one_time_key())
        return True

    def sign_out(self, scope: Scope) -> None:
        """End the session of the browser that asks."""
        with self._lock:
            self._sessions.pop(_digest(_cookie(scope)), None)

    def sign_in(self, token: str, address: str) -> str | None:
        """The cookie for the server's token; None when it is wrong, or after too many wrong ones from that address."""
        client, now = _network(address), monotonic()
        with self._lock:
            recent = [moment for moment in self._failures.get(client, ()) if now - moment < _PAUSE]
            if len(recent) >= _MAX_FAILURES:
                return None
        if self._token is not None and hmac.compare_digest(token.encode(), self._token.encode()):
            return self._new_session()
        with self._lock:
            self._failures[client] = [*recent, now]
            self._failures.move_to_end(client)
            while len(self._failures) > _MAX_ADDRESSES:
                self._failures.popitem(last=False)
        return None

    def knows(self, scope: Scope) -> bool:
        """Whether the request comes from a signed-in browser; the guard has refused the pages of other origins."""
        return self.public or self._is_session(_cookie(scope))

    def allows(self, scope: Scope) -> bool:
        """Whether the request may be carried out: one that changes something needs the page's key."""
        if not self.knows(scope):
            return False
        if scope["method"] in _READS:
            return True
        keys = header_values(scope, KEY_HEADER)
        return len(keys) == 1 and hmac.compare_digest(keys[0].encode("latin-1"), self.page_key(scope).encode())

    def page_key(self, scope: Scope) -> str:
        """The key that pages of this browser carry."""
        subject = b"" if self.public else _cookie(scope).encode("latin-1")
        return hmac.new(self._secret, subject, hashlib.sha256).hexdigest()

    def _new_session(self) -> str:
        cookie = secrets.token_urlsafe(32)
        with self._lock:
            self._sessions[_digest(cookie)] = monotonic() + _LIFETIME
            while len(self._sessions) > _MAX_SESSIONS:
                self._sessions.popitem(last=False)
        return cookie

    def _is_session(self, cookie: str) -> bool:
        # Looked up by digest, so that the time it takes says nothing about the cookies that are valid.
        with self._lock:
            return self._sessions.get(_digest(cookie), 0.0) > monotonic()


def cookie_name(scope: Scope) -> str:
    """With the port: a browser sends a cookie to every port of a host, and one console must not replace another's."""
    server = scope.get("server")
    return f"{_COOKIE}_{server[1]}" if server else _COOKIE


def _network(address: str) -> str:
    """What failures are counted by: an IPv4 address, or the /64 network of an IPv6 one, which one client may own."""
    known = parse_address(address)
    return str(IPv6Network((known, 64), strict=False)) if isinstance(known, IPv6Address) else address


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _cookie(scope: Scope) -> str:
    return HTTPConnection(scope).cookies.get(cookie_name(scope), "")


def is_same_origin(scope: Scope) -> bool:
    """Neither another site's page nor one of another port of this machine; a typed address counts as our own."""
    sites = header_values(scope, b"sec-fetch-site")
    modes = header_values(scope, b"sec-fetch-mode")
    reading = scope["method"] in _READS
    if sites and sites != ["same-origin"]:
        is_visit = reading and modes == ["navigate"]  # a person followed a link to us: they see our page, not its site
        if not (is_visit or (sites == ["none"] and reading)):
            return False
    hosts = header_values(scope, b"host")
    return all(origin.partition("://")[2] in hosts for origin in header_values(scope, b"origin"))
