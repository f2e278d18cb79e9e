"""Where a request goes: URLs in one strict reading, addresses that are not public, names resolved; and its errors."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import quote, urljoin

from moonbox.errors import MoonboxError

Address = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Sequence[str]]
"""The addresses of a host name, given with the port; raises OSError when there are none."""

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
"""What a URL or a Host header calls this machine."""
_MAX_URL = 8_000
_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>[^#]*)(?:#.*)?", re.DOTALL)
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]{0,5}))?", re.ASCII)
# What may stand in a path and query unescaped: RFC 3986, and the characters that browsers leave alone.
_AS_IS = "!$%&'()*+,/:;=?@[]~|^`{}"
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.ASCII)


class NetError(MoonboxError):
    """A request that could not be made or answered.

    `code` is one of: connection, timeout, tls, protocol, redirects, too_large, not_allowed, secret_refused,
    invalid_url.
    """

    def __init__(self, message: str, *, code: str, retryable: bool = False) -> None:
        self.message, self.code, self.retryable = message, code, retryable
        super().__init__(message)


class InvalidURL(NetError):
    """A URL that is not valid, or that two programs could read differently."""

    def __init__(self, url: str, reason: str) -> None:
        excerpt = url if len(url) <= 100 else url[:100] + "…"
        super().__init__(f"invalid URL {excerpt!r}: {reason}", code="invalid_url")


def parse_address(text: str) -> Address | None:
    """The address that a text spells in its one strict form, an IPv4-mapped one as IPv4; None for anything else."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def is_loopback(host: str) -> bool:
    """Whether a host to listen on or to connect to is this machine alone."""
    address = parse_address(host.removeprefix("[").removesuffix("]"))
    return host == "localhost" if address is None else address.is_loopback


def why_refused(address: Address) -> str | None:
    """What kind of non-public address this is, or None when it is public.

    The tables are our own because those of `ipaddress` differ between Python versions. For IPv6 the
    public range is named and everything outside it refused, so that a new special range is closed by default.
    """
    if isinstance(address, IPv4Address):
        return next((why for network, why in _IPV4 if address in network), None)
    if address in _NAT64:
        inner = why_refused(IPv4Address(int(address) & 0xFFFFFFFF))
        return f"{inner} (through NAT64)" if inner else None
    special = next((why for network, why in _IPV6 if address in network), None)
    return special or (None if address in _IPV6_PUBLIC else "a reserved address")


class NameLookup:
    """Name resolution with a time limit, and a bounded number of threads that wait for the system's resolver."""

    def __init__(self, resolver: Resolver | None = None, *, most_at_once: int = 16) -> None:
        self._resolver = resolver
        self._free = threading.BoundedSemaphore(most_at_once)

    def addresses(self, host: str, port: int, timeout: float) -> list[Address]:
        """All addresses of a name, or the address that it spells; raises OSError, or NetError after the timeout."""
        literal = parse_address(host)
        if literal is not None:
            return [literal]
        addresses = [parse_address(text) for text in dict.fromkeys(self._within(timeout, host, port))]
        known = [address for address in addresses if address is not None]
        if not known or len(known) < len(addresses):
            raise OSError(f"{host} has no usable address")
        return known

    def _within(self, timeout: float, host: str, port: int) -> Sequence[str]:
        """Resolve in a thread of its own: the system's resolver cannot be given a time limit.

        A lookup that takes too long is abandoned. It keeps its place until it ends, so that slow name servers
        cannot make the threads pile up.
        """
        from concurrent.futures import Future  # slow to load, and settings import this module

        answer: Future[Sequence[str]] = Future()

        def work() -> None:
            try:
                if self._resolver is not None:
                    answer.set_result(self._resolver(host, port))
                else:
                    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                    answer.set_result([str(entry[4][0]) for entry in found])
            except Exception as problem:  # noqa: BLE001 - carried over to the thread that waits
                answer.set_exception(problem)
            finally:
                self._free.release()

        ends = time.monotonic() + timeout
        if not self._free.acquire(timeout=max(timeout, 0.0)):
            raise NetError("too many name lookups are waiting for an answer", code="timeout", retryable=True)
        try:
            threading.Thread(target=work, name="moonbox-resolve", daemon=True).start()
        except RuntimeError as problem:  # no thread can be started now
            self._free.release()
            message = f"the name {host} cannot be resolved: {problem}"
            raise NetError(message, code="unavailable", retryable=True) from None
        try:
            return answer.result(max(ends - time.monotonic(), 0.0))
        except TimeoutError:
            raise NetError(f"resolving the name {host} took too long", code="timeout", retryable=True) from None
        except Exception as problem:
            raise OSError(f"the name {host} cannot be resolved") from problem


def _networks(table: dict[str, str]) -> tuple[tuple[IPv4Network | IPv6Network, str], ...]:
    return tuple((ip_network(text), why) for why, texts in table.items() for text in texts.split())


_IPV4 = _networks(
    {
        "an unspecified address": "0.0.0.0/8",
        "a private address": "10.0.0.0/8 100.64.0.0/10 172.16.0.0/12 192.168.0.0/16",
        "a loopback address": "127.0.0.0/8",
        "a link-local address": "169.254.0.0/16",
        "a reserved address": "192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 "
        "240.0.0.0/4",
        "a multicast address": "224.0.0.0/4",
        "a cloud metadata address": "168.63.129.16/32",  # public in form, but Azure answers it inside each machine
    }
)
_NAT64 = IPv6Network("64:ff9b::/96")
_IPV6_PUBLIC = IPv6Network("2000::/3")
_IPV6 = _networks(
    {
        "an unspecified address": "::/128",
        "a loopback address": "::1/128",
        # The last two are Teredo and 6to4.
        "an IPv4 address inside IPv6": "::/96 ::ffff:0:0:0/96 64:ff9b:1::/48 2001::/32 2002::/16",
        "a reserved address": "2001::/23 2001:db8::/32 3fff::/20",
        "a private address": "fc00::/7 fec0::/10",
        "a link-local address": "fe80::/10",
        "a multicast address": "ff00::/8",
    }
)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes. `address` is set when the URL holds an address instead of a name."""

    scheme: str
    host: str
    port: int
    path: str
    address: Address | None = None

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def parse_target(url: str) -> Target:
    """Raises InvalidURL for everything that two programs could read differently."""
    if len(url) > _MAX_URL:
        raise InvalidURL(url, f"it is longer than {_MAX_URL:,} characters")
    if re.search(r"[\x00-\x20\x7f\\]", url):
        raise InvalidURL(url, "it contains a space, a control character or a backslash; percent-encode them")
    parts = _URL.fullmatch(url)
    if parts is None:
        raise InvalidURL(url, 'it must begin with "https://" or "http://"')
    scheme = parts["scheme"].lower()
    if scheme not in _PORTS:
        raise InvalidURL(url, f"the scheme must be http or https, not {scheme}")
    if "@" in parts["authority"]:
        raise InvalidURL(url, "it must not contain a user name or password")
    authority = _AUTHORITY.fullmatch(parts["authority"])
    if authority is None:
        raise InvalidURL(url, f"invalid host and port {parts['authority'][:100]!r}")
    host, address = _host(url, authority["host"])
    port = int(authority["port"]) if authority["port"] else _PORTS[scheme]
    if not 1 <= port <= 65535:
        raise InvalidURL(url, f"the port must be from 1 to 65535, not {port}")
    path = parts["rest"] if parts["rest"].startswith("/") else "/" + parts["rest"]
    return Target(scheme, host, port, quote(path, safe=_AS_IS), address)


def follow(target: Target, location: str) -> Target:
    """Where a Location header leads; raises InvalidURL as `parse_target` does."""
    if len(location) > _MAX_URL:  # before urljoin, which is slow for some long texts and remembers what it read
        raise InvalidURL(location, f"it is longer than {_MAX_URL:,} characters")
    if re.search(r"[\x00-\x1f\x7f\\]", location):
        raise InvalidURL(location, "it contains a control character or a backslash")
    try:
        return parse_target(urljoin(target.url, location.replace(" ", "%20")))
    except ValueError:
        raise InvalidURL(location, "it cannot be parsed") from None


def is_host_name(name: str) -> bool:
    """Whether this is a name in lower case that no resolver could read as an address."""
    if len(name) > 253 or not _NAME.fullmatch(name):
        return False
    # Resolvers read 2130706433, 127.1 and 0x7f.1 as IPv4; a last label like these is never a name.
    last = name.rpartition(".")[2]
    return not (last.isdigit() or re.fullmatch(r"0x[0-9a-f]*", last))


def _host(url: str, text: str) -> tuple[str, Address | None]:
    if text.startswith("["):
        address = parse_address(text[1:-1])
        if address is None or "%" in text or ":" not in text:
            raise InvalidURL(url, f"invalid IPv6 address {text[:100]!r}")
        return str(address), address
    if not text.isascii():  # before lower(), which makes ASCII of some other letters
        raise InvalidURL(url, "the host must be in its ASCII form (xn--…)")
    name = text.lower().removesuffix(".")
    address = parse_address(name) if "%" not in name else None
    if address is not None:
        return str(address), address
    if not is_host_name(name):
        raise InvalidURL(url, f"invalid host {text[:100]!r}" if text else "the host is missing")
    return name, None
