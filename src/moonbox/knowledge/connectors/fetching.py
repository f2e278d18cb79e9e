"""Fetching: one page over HTTP, and what is refused on the way."""

from __future__ import annotations

import socket
import threading
import time
import zlib
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, Protocol

from moonbox._version import __version__
from moonbox.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import httpx

__all__ = ["Fetch", "FetchError", "Fetcher", "Response", "gunzip"]

USER_AGENT = f"moonbox/{__version__}"
MAX_REDIRECTS = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})
NAT64 = IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Response:
    """What a server answered in the end."""

    url: str
    """Where the redirects led."""
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


class FetchError(OSError):
    """The page could not be fetched; the message says why."""


class Fetch(Protocol):
    """Anything that gets a page; raises OSError or a MoonboxError. Called from several threads."""

    def __call__(self, url: str, headers: Mapping[str, str]) -> Response: ...


class Fetcher:
    """A small client: http and https, bounded in size and time, and only to public addresses unless told otherwise.

    The address is looked up and checked here and then connected to as a number, on every redirect, so that a name that
    answers differently the second time gains nothing. No cookies, no proxies, no credentials.
    """

    def __init__(self, *, max_size: int, timeout: float, allow_private: bool = False) -> None:
        self._max_size, self._timeout, self._allow_private = max_size, timeout, allow_private
        self._transports: dict[str, httpx.HTTPTransport] = {}
        self._lock = threading.Lock()

    def __call__(self, url: str, headers: Mapping[str, str]) -> Response:
        try:
            import httpx
        except ImportError:
            raise MissingExtra("httpx", "web", "a web source") from None
        deadline = time.monotonic() + self._timeout
        try:
            for _ in range(MAX_REDIRECTS + 1):
                response = self._once(httpx.URL(url), headers, deadline)
                if response.status not in REDIRECTS or "location" not in response.headers:
                    return response
                url = str(httpx.URL(url).join(response.headers["location"]))
        except httpx.InvalidURL as error:
            raise FetchError(f"{url[:200]} is not an address: {error}") from None
        except httpx.TimeoutException:
            raise FetchError(f"no answer within {self._timeout:g} s") from None
        except httpx.HTTPError as error:
            raise FetchError(f"{type(error).__name__}: {error}") from None
        raise FetchError(f"more than {MAX_REDIRECTS} redirects")

    def close(self) -> None:
        for transport in self._transports.values():
            transport.close()
        self._transports.clear()

    def __enter__(self) -> Fetcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _once(self, url: httpx.URL, headers: Mapping[str, str], deadline: float) -> Response:
        import httpx

        if url.scheme not in ("http", "https") or not url.host:
            raise FetchError(f"only http and https addresses are fetched, not {str(url)[:200]!r}")
        if url.userinfo:
            raise FetchError("an address with a user name or password in it is not fetched")
        address = self._checked_address(url.host, url.port or (443 if url.scheme == "https" else 80))
        wait = max(0.1, deadline - time.monotonic())
        request = httpx.Request(
            "GET",
            url.copy_with(host=address, fragment=None),
            headers={
                "host": url.netloc.decode("ascii"),
                "user-agent": USER_AGENT,
                "accept": "text/html, text/plain, application/pdf, */*;q=0.5",
                "accept-encoding": "gzip",
                **headers,
            },
            extensions={
                "timeout": {"connect": wait, "read": wait, "write": wait, "pool": wait},
                "sni_hostname": url.host,
            },
        )
        response = self._transport(url).handle_request(request)
        try:
            plain = {name.lower(): value for name, value in response.headers.items()}
            stream = response.stream
            if not hasattr(stream, "__iter__"):
                raise FetchError("the answer cannot be read piece by piece")
            body = b"" if response.status_code in REDIRECTS else self._body(stream, plain, deadline)
        finally:
            response.close()
        return Response(str(url), response.status_code, plain, body)

    def _transport(self, url: httpx.URL) -> httpx.HTTPTransport:
        """One for each host: connections are reused by number, and two hosts may share one."""
        import httpx

        key = f"{url.scheme}://{url.netloc.decode('ascii')}"
        with self._lock:
            if key not in self._transports:
                self._transports[key] = httpx.HTTPTransport(trust_env=False)
            return self._transports[key]

    def _checked_address(self, host: str, port: int) -> str:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise FetchError(f"the name {host!r} is not known") from None
        addresses = [str(entry[4][0]).partition("%")[0] for entry in found]
        if not self._allow_private:
            for address in addresses:
                if not _is_public(address):
                    raise FetchError(f"{host} is at {address}, which is no public address (allow_private is off)")
        return addresses[0]

    def _body(self, parts: Iterable[bytes], headers: Mapping[str, str], deadline: float) -> bytes:
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "gzip", "x-gzip", ""):
            raise FetchError(f"the answer is encoded as {encoding!r}, which was not asked for")
        unpack = None if encoding in ("identity", "") else zlib.decompressobj(wbits=31)
        body = bytearray()
        for part in parts:
            try:
                body += unpack.decompress(part, self._max_size + 1 - len(body)) if unpack else part
            except zlib.error:
                raise FetchError("the answer is not the gzip data that it claims to be") from None
            if len(body) > self._max_size:
                raise FetchError(f"larger than {self._max_size:,} bytes")
            if time.monotonic() > deadline:
                raise FetchError(f"not complete within {self._timeout:g} s")
        return bytes(body)


def gunzip(data: bytes, most: int) -> bytes:
    """Unpacked data; raises FetchError when there is more than `most` of it."""
    try:
        unpacked = zlib.decompressobj(wbits=31).decompress(data, most + 1)
    except zlib.error:
        raise FetchError("the file is not the gzip data that it claims to be") from None
    if len(unpacked) > most:
        raise FetchError(f"larger than {most:,} bytes")
    return unpacked


def _is_public(text: str) -> bool:
    address: IPv4Address | IPv6Address = ip_address(text)
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inner is None and address in NAT64:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        address = inner or address
    return address.is_global and not address.is_multicast and not address.is_reserved
