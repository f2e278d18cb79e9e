"""The HTTP client: one request with its redirects, bounded in time and size, each hop and each address checked."""

from __future__ import annotations

import json
import math
import re
import threading
import time
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from moonbox.closing import Closing
from moonbox.errors import ArgumentError, MissingExtra
from moonbox.net.addresses import Address, InvalidURL, NameLookup, NetError, Resolver, Target, follow, why_refused
from moonbox.values import INT64_MAX, INT64_MIN, refuse_constant

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Iterator, Mapping

    import httpcore

    from moonbox.net.connections import Deadlines

_REDIRECTS = (301, 302, 303, 307, 308)
# Every other header may be a credential, so it stays with the origin that it was meant for.
_HARMLESS = frozenset({"accept", "accept-language", "user-agent", "content-type"})
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}", re.ASCII)
ACCEPT_ENCODING = "gzip, deflate"
_STEP = 65_536
_MOST_VALUES = 1_000_000


@dataclass(frozen=True, slots=True)
class Request:
    """One request. Header names are in lower case."""

    target: Target
    method: str = "GET"
    headers: tuple[tuple[str, bytes], ...] = ()
    body: bytes = b""
    secret_headers: frozenset[str] = frozenset()
    """Names of headers that are never sent to another origin, whatever they are."""
    secret_body: bool = False
    """The body is never sent to another origin."""

    def redirected(self, target: Target, status: int) -> Request:
        """The request that follows a redirect: without credentials when it leaves the origin."""
        request = replace(self, target=target)
        if status == 303 or (status in (301, 302) and self.method == "POST"):
            method = "HEAD" if self.method == "HEAD" else "GET"
            headers = tuple(item for item in request.headers if item[0] != "content-type")
            request = replace(request, method=method, headers=headers, body=b"", secret_body=False)
        if target.origin != self.target.origin:
            if request.secret_body:
                message = f"the server redirects a body with a secret to {target.host}"
                raise NetError(message, code="secret_refused")
            kept = _HARMLESS - self.secret_headers
            request = replace(request, headers=tuple(item for item in request.headers if item[0] in kept))
        return request

    def raw_headers(self) -> list[tuple[bytes, bytes]]:
        """With those that belong to the connection."""
        own = [(b"host", self.target.authority.encode()), (b"accept-encoding", ACCEPT_ENCODING.encode())]
        if self.body or self.method in ("POST", "PUT", "PATCH"):
            own.append((b"content-length", str(len(self.body)).encode()))
        return own + [(name.encode(), value) for name, value in self.headers]


@dataclass(frozen=True, slots=True)
class Response:
    """What a server answered in the end."""

    url: str
    """Where the redirects led."""
    status: int
    headers: Mapping[str, str]
    """Names in lower case; the values of a repeated header joined by commas, cookies by line breaks."""
    body: bytes


class Policy(Protocol):
    """What may be requested. Each method raises, or lets it pass."""

    def check_target(self, target: Target, redirected_by: str | None) -> None:
        """For each request, and for each redirect with the host that sent it."""

    def check_address(self, host: str, address: Address, port: int) -> None:
        """For each address that a host has, before a connection is made to any of them."""


@dataclass(frozen=True, slots=True)
class PublicAddresses:
    """Any host, but only at public addresses unless private ones are allowed too."""

    allow_private: bool = False

    def check_target(self, target: Target, redirected_by: str | None) -> None:
        """Any host may be named: its addresses decide."""

    def check_address(self, host: str, address: Address, port: int) -> None:
        reason = None if self.allow_private else why_refused(address)
        if reason is not None:
            what = str(address) if host == str(address) else f"{host} ({address})"
            raise NetError(f"{what} is {reason}; only public addresses are allowed", code="not_allowed")


class Client(Closing):
    """Requests under one policy, over connections that are kept open between them. Safe to use from several threads.

    No proxies, no cookies, no settings of the environment. The connection library is loaded with the first request;
    `extra` and `purpose` say what to install, and for what, when it is missing.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        resolver: Resolver | None = None,
        ssl_context: ssl.SSLContext | None = None,
        extra: str = "web",
        purpose: str = "HTTP",
    ) -> None:
        self._policy, self._ssl_context = policy, ssl_context
        self._lookup = NameLookup(resolver)
        self._missing = MissingExtra("httpcore", extra, purpose)
        self._connecting = threading.Lock()
        self._connected: tuple[httpcore.ConnectionPool, Deadlines] | None = None
        self._closed = False

    def send(self, request: Request, *, timeout: float, max_bytes: int, redirects: int = 5) -> Response:
        """The answer, whatever its status; with `redirects=0` the redirect itself.

        `timeout` covers everything together: name lookups, connections, TLS, headers, bodies, redirects. Raises
        NetError, or what the policy raises.
        """
        self._policy.check_target(request.target, None)
        _, deadlines = self._pool()
        with deadlines.until(time.monotonic() + timeout):
            for _ in range(redirects + 1):
                answer = self._exchange(request, timeout, max_bytes, follows=bool(redirects))
                if isinstance(answer, Response):
                    return answer
                request = answer
        raise NetError(f"more than {redirects} redirects; the last one leads to {request.target.url}", code="redirects")

    def close(self) -> None:
        """Close the connections; requests that wait for an answer fail."""
        with self._connecting:
            self._closed = True
            if self._connected is not None:
                self._connected[0].close()

    def _pool(self) -> tuple[httpcore.ConnectionPool, Deadlines]:
        with self._connecting:
            if self._closed:
                raise NetError("the client is closed", code="unavailable")
            if self._connected is None:
                try:
                    from moonbox.net.connections import Deadlines, connection_pool
                except ModuleNotFoundError as missing:
                    if missing.name != "httpcore":
                        raise
                    raise self._missing from None
                deadlines = Deadlines()
                self._connected = connection_pool(self._addresses, deadlines, self._ssl_context), deadlines
            return self._connected

    def _addresses(self, host: str, port: int, timeout: float) -> list[str]:
        """The addresses to connect to, resolved once, after the policy has seen all of them."""
        addresses = self._lookup.addresses(host, port, timeout)
        for address in addresses:
            self._policy.check_address(host, address, port)
        return [str(address) for address in addresses]

    def _exchange(self, request: Request, timeout: float, max_bytes: int, *, follows: bool) -> Response | Request:
        """The answer, or the request to make next."""
        import ssl

        import httpcore

        target, (pool, deadlines) = request.target, self._pool()
        try:
            answer = pool.handle_request(
                httpcore.Request(
                    request.method,
                    httpcore.URL(
                        scheme=target.scheme.encode(),
                        host=target.host.encode(),
                        port=target.port,
                        target=target.path.encode(),
                    ),
                    headers=request.raw_headers(),
                    content=request.body,
                    extensions={"timeout": {"pool": deadlines.left()}},
                )
            )
            try:
                headers = _headers(answer.headers)
                if follows and answer.status in _REDIRECTS and "location" in headers:
                    return self._redirected(request, answer.status, headers["location"])
                body = b""
                if request.method != "HEAD":
                    body = read_body(answer.iter_stream(), headers.get("content-encoding", ""), max_bytes)
                return Response(target.url, answer.status, headers, body)
            finally:
                answer.close()
        except (TimeoutError, httpcore.TimeoutException):
            seconds = f"{timeout:g} second{'s' * (timeout != 1)}"
            raise NetError(f"{target.host} did not answer within {seconds}", code="timeout", retryable=True) from None
        except (OSError, httpcore.NetworkError, httpcore.ProtocolError) as problem:
            # The library wraps the system's error, as the argument of its own.
            inner = problem.args[0] if problem.args and isinstance(problem.args[0], OSError) else problem
            if isinstance(inner, ssl.SSLCertVerificationError):
                message = f"the certificate of {target.host} is not valid: {inner.verify_message}"
                raise NetError(message, code="tls") from None
            message = f"the connection to {target.authority} failed: {_reason(inner)}"
            raise NetError(message, code="unavailable", retryable=True) from None

    def _redirected(self, request: Request, status: int, location: str) -> Request:
        sender = request.target.host
        try:
            target = follow(request.target, location)
        except InvalidURL as problem:
            raise NetError(f"{sender} redirects to an {problem.message}", code="redirects") from None
        self._policy.check_target(target, sender)
        return request.redirected(target, status)


def _reason(problem: Exception) -> str:
    """Never what the other side sent, which the library quotes and which may be anything."""
    import httpcore

    if isinstance(problem, httpcore.ProtocolError):
        silent = str(problem).startswith("Server disconnected")
        return "the server closed it without an answer" if silent else "the answer is not valid HTTP"
    return getattr(problem, "strerror", None) or str(problem) or type(problem).__name__


def _headers(raw: list[tuple[bytes, bytes]]) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    for name, value in raw:
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = value.decode("latin-1")
        values.setdefault(name.decode("latin-1").lower(), []).append(text)
    return {name: ("\n" if name == "set-cookie" else ", ").join(texts) for name, texts in values.items()}


def header_value(name: str, text: str) -> bytes:
    """Raises ArgumentError for a text that would bring another header."""
    data = text.strip(" \t").encode("utf-8", "surrogateescape")
    if re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", data):
        raise ArgumentError(f"the value of the header {name} contains a line break or another control character")
    return data


def is_compressed(encoding: str) -> bool:
    """Whether a Content-Encoding header says anything but identity."""
    return encoding.strip().lower() not in ("", "identity")


def read_body(chunks: Iterable[bytes], encoding: str, most: int) -> bytes:
    """The decoded body; raises NetError as soon as it is known to be larger than `most`."""
    encoding = encoding.strip().lower()
    body = bytearray()  # not a list of pieces: a server chooses how many there are, and each has its overhead
    if is_compressed(encoding):
        if encoding not in ("gzip", "x-gzip", "deflate"):
            raise NetError(f"the response has the unexpected encoding {encoding[:40]!r}", code="protocol")
        # Compressed data is hardly ever larger than what it unpacks to; parts of it that are empty must end too.
        chunks = _inflated(_bounded(chunks, most, most // 64 + _STEP), encoding)
    for piece in _bounded(chunks, most):
        body += piece
    return bytes(body)


def _bounded(chunks: Iterable[bytes], most: int, tolerance: int = 0) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > most + tolerance:
            raise NetError(f"the response is larger than {most:,} bytes", code="too_large")
        yield chunk


def _inflated(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Decompressed pieces of bounded size, so that the caller can stop a bomb in time."""
    try:
        decoder = None
        for chunk in chunks:
            rest = chunk
            while rest:
                if decoder is None or decoder.eof:
                    decoder = zlib.decompressobj(_window_bits(encoding, rest))
                piece = decoder.decompress(rest, _STEP)
                yield piece
                rest = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
                while not rest and not decoder.eof and len(piece) == _STEP:
                    piece = decoder.decompress(b"", _STEP)  # all input is taken in, but more output may wait
                    yield piece
        if decoder is not None and not decoder.eof:
            raise zlib.error("it ends too early")
    except zlib.error:
        raise NetError(f"the response is not valid {encoding} data", code="protocol") from None


def _window_bits(encoding: str, start: bytes) -> int:
    if encoding != "deflate":
        return 31
    # Some servers send "deflate" with the zlib header that the standard asks for, some without.
    return 15 if start[0] & 0x0F == 8 and (len(start) < 2 or (start[0] << 8 | start[1]) % 31 == 0) else -15


def parse_json(data: bytes) -> Any:
    """The value, or None when the body is not JSON, is nested too deeply or contains too many values."""
    if sum(map(data.count, (b"[", b"{", b","))) > _MOST_VALUES:  # each would take far more memory than it has bytes
        return None
    try:
        return json.loads(data, parse_int=_whole, parse_float=_fraction, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return None


def _whole(digits: str) -> int | float | str:
    """Scripts have 64-bit integers; larger ones become floats, as most JSON readers do."""
    if len(digits) <= 20 and INT64_MIN <= int(digits) <= INT64_MAX:
        return int(digits)
    return _fraction(digits)


def _fraction(digits: str) -> float | str:
    """What no float can hold stays text, because infinity is not a JSON value."""
    value = float(digits)
    return value if math.isfinite(value) else digits
