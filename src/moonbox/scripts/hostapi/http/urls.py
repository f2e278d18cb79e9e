"""URLs of requests: one strict reading, used both to check a request and to send it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urljoin

from moonbox.errors import ArgumentError
from moonbox.net.addresses import Address, parse_address
from moonbox.scripts.hostapi.patterns import is_host_name

__all__ = ["Target", "follow", "parse_target"]

_MAX_URL = 8_000
_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>[^#]*)(?:#.*)?", re.DOTALL)
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]{0,5}))?", re.ASCII)
# What may stand in a path and query as it is: RFC 3986, and the characters that browsers leave alone.
_AS_IS = "!#$%&'()*+,/:;=?@[]~|^`{}"


@dataclass(frozen=True, slots=True)
class Target:
    """What a request goes to. `address` is set when the URL names an address instead of a name."""

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

    def __str__(self) -> str:
        return self.url


def parse_target(url: str) -> Target:
    """Raises ArgumentError for everything that two programs could read differently."""
    if len(url) > _MAX_URL:
        raise _bad(url, f"it is longer than {_MAX_URL:,} characters")
    if re.search(r"[\x00-\x20\x7f\\]", url):
        raise _bad(url, "it holds a space, a control character or a backslash; encode them with url.encode")
    parts = _URL.fullmatch(url)
    if parts is None:
        raise _bad(url, 'it must begin with "https://" or "http://"')
    scheme = parts["scheme"].lower()
    if scheme not in _PORTS:
        raise _bad(url, f"only http and https are possible, not {scheme}")
    if "@" in parts["authority"]:
        raise _bad(url, "a user name or password may not stand in it; use options.auth or a header")
    authority = _AUTHORITY.fullmatch(parts["authority"])
    if authority is None:
        raise _bad(url, f"{parts['authority']!r} is not a host and port")
    host, address = _host(url, authority["host"])
    port = int(authority["port"]) if authority["port"] else _PORTS[scheme]
    if not 1 <= port <= 65535:
        raise _bad(url, f"{port} is not a port")
    path = parts["rest"] if parts["rest"].startswith("/") else "/" + parts["rest"]
    return Target(scheme, host, port, quote(path, safe=_AS_IS.replace("#", "")), address)


def follow(target: Target, location: str) -> Target:
    """Where a Location header leads; raises ArgumentError as `parse_target` does."""
    if re.search(r"[\x00-\x1f\x7f\\]", location):
        raise _bad(location, "it holds a control character or a backslash")
    return parse_target(urljoin(target.url, location.replace(" ", "%20")))


def _host(url: str, text: str) -> tuple[str, Address | None]:
    if text.startswith("["):
        address = parse_address(text[1:-1])
        if address is None or "%" in text or ":" not in text:
            raise _bad(url, f"{text!r} is not an IPv6 address")
        return str(address), address
    if not text.isascii():  # before lower(), which makes ASCII of some other letters
        raise _bad(url, "the host must be in its ASCII form (xn--…)")
    name = text.lower().removesuffix(".")
    address = parse_address(name) if "%" not in name else None
    if address is not None:
        return str(address), address
    if not is_host_name(name):
        raise _bad(
            url, f"{text!r} is not a host name, nor an address like 192.0.2.1" if text else "the host is missing"
        )
    return name, None


def _bad(url: str, why: str) -> ArgumentError:
    shown = url if len(url) <= 100 else url[:100] + "…"
    return ArgumentError(f"{shown!r} is not a URL that can be requested: {why}", code="invalid_url")
