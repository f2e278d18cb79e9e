"""URLs of requests: one strict reading, used both to check a request and to send it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urljoin

from moonbox.net.addresses import Address, parse_address
from moonbox.net.errors import InvalidURL

__all__ = ["Target", "follow", "is_host_name", "parse_target"]

_MAX_URL = 8_000
_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>[^#]*)(?:#.*)?", re.DOTALL)
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]{0,5}))?", re.ASCII)
# What may stand in a path and query unescaped: RFC 3986, and the characters that browsers leave alone.
_AS_IS = "!$%&'()*+,/:;=?@[]~|^`{}"
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.ASCII)


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

    def __str__(self) -> str:
        return self.url


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
