"""Browsers: how a person signs in to the console, and how their requests are distinguished from those of other pages.

A browser shows a one-time key or the server's token once and gets a cookie, which is signed: it stays valid after a
restart of the server. The cookie alone lets it read; whatever changes something also needs the page's key in a header,
which only our own pages can read and send.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import stat
import threading
from collections import OrderedDict
from ipaddress import IPv6Address, IPv6Network
from time import monotonic, time
from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection

from moonbox.audit.sinks import default_path
from moonbox.files import write_private_file
from moonbox.net.addresses import parse_address
from moonbox.net.guard import Scope, header_values

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


_COOKIE = "moonbox_console"
KEY_HEADER = b"x-moonbox-key"
_READS = frozenset({"GET", "HEAD"})
_LIFETIME = 7 * 24 * 3600
_KEY_BYTES = 32
_SIGNED = re.compile(r"(\d{10,12})\.[\w-]{24}\.([0-9a-f]{64})", re.ASCII)
_MAX_FAILURES = 20
_MAX_ADDRESSES = 1_000
_PAUSE = 60.0
_RENEWAL = 5.0


class SignInKey:
    """The secret that sign-ins are signed with. A new one ends all of them.

    It is read for each request, so that several servers can use one file. Without a file, or where the file cannot be
    kept, the secret is in memory, and sign-ins end with the server.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._memory = secrets.token_bytes(_KEY_BYTES)

    def read(self) -> bytes:
        """The secret. A file that others could have read or written is replaced."""
        if self._path is None:
            return self._memory
        try:
            handle = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return self.rotate()
        with os.fdopen(handle, "rb") as file:
            info = os.fstat(handle)
            if stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid() and not info.st_mode & 0o077:
                secret = file.read(_KEY_BYTES + 1)
                if len(secret) == _KEY_BYTES:
                    return secret
        return self.rotate()

    def rotate(self) -> bytes:
        """Make a new secret and return it."""
        secret = secrets.token_bytes(_KEY_BYTES)
        if self._path is not None:
            try:
                write_private_file(self._path, secret)
            except OSError:
                with contextlib.suppress(OSError):  # what it signed must not become valid again
                    self._path.unlink()
                self._path = None
        self._memory = secret
        return secret


class BrowserAccess:
    """Who has signed in.

    token    what a person may sign in with, besides one-time keys
    public   no sign-in is needed: the server demands nothing of its other clients either
    key      signs the sign-ins
    """

    def __init__(self, token: str | None = None, *, public: bool = False, key: SignInKey | None = None) -> None:
        self._token = token
        self._key = SignInKey() if key is None else key
        self.on_renewal: Callable[[str], None] | None = None
        """Gets a new one-time key where a person asks for one; it must not reach the one who asks."""
        self._renewed = -_RENEWAL
        self.public = public
        self._lock = threading.Lock()
        self._one_time: set[str] = set()
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
        return self._new_cookie()

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
        """End the sign-in of the browser that asks, and with it all others: a copy of its cookie is worth nothing."""
        if self._is_signed(_cookie(scope)):  # a request without a sign-in must not end the sign-ins of others
            self._key.rotate()

    def sign_in(self, token: str, address: str) -> str | None:
        """The cookie for the server's token; None when it is wrong, or after too many wrong ones from that address."""
        client, now = _network(address), monotonic()
        with self._lock:
            recent = [moment for moment in self._failures.get(client, ()) if now - moment < _PAUSE]
            if len(recent) >= _MAX_FAILURES:
                return None
        if self._token is not None and hmac.compare_digest(token.encode(), self._token.encode()):
            return self._new_cookie()
        with self._lock:
            self._failures[client] = [*recent, now]
            self._failures.move_to_end(client)
            while len(self._failures) > _MAX_ADDRESSES:
                self._failures.popitem(last=False)
        return None

    def knows(self, scope: Scope) -> bool:
        """Whether the request comes from a signed-in browser; the guard has refused the pages of other origins."""
        return self.public or self._is_signed(_cookie(scope))

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
        return self._sign("page", "" if self.public else _cookie(scope))

    def _new_cookie(self) -> str:
        subject = f"{int(time()) + _LIFETIME}.{secrets.token_urlsafe(18)}"
        return f"{subject}.{self._sign('cookie', subject)}"

    def _is_signed(self, cookie: str) -> bool:
        parts = _SIGNED.fullmatch(cookie)
        if parts is None or not time() < int(parts[1]) <= time() + _LIFETIME + 1:
            return False
        return hmac.compare_digest(parts[2], self._sign("cookie", cookie.rpartition(".")[0]))

    def _sign(self, purpose: str, subject: str) -> str:
        """A new token of the server ends the sign-ins that were made with the one before."""
        text = "\0".join((purpose, _digest(self._token or ""), subject))
        return hmac.new(self._key.read(), text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def key_of_project(purpose: str, project: Path) -> SignInKey:
    """The key of a project's server, in the folder for state: a sign-in at one project is worth nothing at another."""
    name = _digest(f"{purpose}\0{os.path.realpath(project)}")[:32]
    return SignInKey(default_path().parent / "sign-in" / f"{name}.key")


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
