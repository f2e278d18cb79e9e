"""A web site: its pages, fetched with the bounded HTTP client, its sitemaps, and what its robots.txt forbids."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser
from xml.parsers import expat

from moonbox._version import __version__
from moonbox.errors import MoonboxError
from moonbox.net.addresses import InvalidURL, NetError, parse_target
from moonbox.net.client import Client, PublicAddresses, Request, Response, unpack_gzip

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Fetch", "FetchError", "Fetcher", "Response", "Robots", "Sitemap", "gunzip", "read_sitemap"]

_HEADERS = {"user-agent": f"moonbox/{__version__}", "accept": "text/html, text/plain, application/pdf, */*;q=0.5"}
MAX_UNPACKED = 50_000_000
MAX_ENTRIES = 50_000
MAX_ADDRESS = 2_000
MAX_ROBOTS = 500_000


class FetchError(OSError):
    """The page could not be fetched; the message says why."""


class Fetch(Protocol):
    """Anything that gets a page; raises OSError or a MoonboxError. Called from several threads."""

    def __call__(self, url: str, headers: Mapping[str, str]) -> Response: ...


class Fetcher:
    """Pages, bounded in size and time, and only from public addresses unless private ones are allowed."""

    def __init__(self, *, max_size: int, timeout: float, allow_private: bool = False) -> None:
        self._max_size, self._timeout = max_size, timeout
        self._client = Client(PublicAddresses(allow_private), extra="web", purpose="a web source")

    def __call__(self, url: str, headers: Mapping[str, str]) -> Response:
        given = tuple((name, value.encode()) for name, value in {**_HEADERS, **headers}.items())
        try:
            request = Request(parse_target(_ascii(url)), headers=given)
            return self._client.send(request, timeout=self._timeout, max_bytes=self._max_size)
        except NetError as problem:
            advice = " (set allow_private to fetch it)" if problem.code == "not_allowed" else ""
            raise FetchError(problem.message + advice) from None

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Fetcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def gunzip(data: bytes, most: int) -> bytes:
    """Unpacked data; raises FetchError when there is more than `most` of it."""
    try:
        return unpack_gzip(data, most)
    except NetError as problem:
        raise FetchError(problem.message.replace("the response", "the file")) from None


def _ascii(url: str) -> str:
    """A URL as people write it in the form in which it is sent: an international host name, spaces in the path."""
    scheme, slashes, rest = url.partition("://")
    end = re.search(r"[/?#]|$", rest)
    assert end is not None  # the end of the text always matches
    authority, path = rest[: end.start()], rest[end.start() :]
    if not authority.isascii():
        try:
            authority = authority[:300].encode("idna").decode()
        except UnicodeError:
            raise InvalidURL(url, "the host is not a valid international name") from None
    return f"{scheme}{slashes}{authority}{path.replace(' ', '%20')}"


@dataclass(slots=True)
class Sitemap:
    """Pages, and further sitemaps."""

    pages: list[str] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)


def read_sitemap(response: Response) -> Sitemap:
    """The entries of a sitemap: XML, an index of sitemaps, or plain lines; compressed with gzip or not."""
    body = response.body
    if body.startswith(b"\x1f\x8b"):
        body = gunzip(body, MAX_UNPACKED)
    if not body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        lines = (line.strip() for line in body.decode("utf-8", "replace").splitlines())
        return Sitemap(pages=[line for line in lines if line and len(line) <= MAX_ADDRESS][:MAX_ENTRIES])
    return _Reader().read(body)


class _Reader:
    """Expat without document types: where none can be declared, no entity can expand."""

    def __init__(self) -> None:
        self._sitemap = Sitemap()
        self._inside: list[str] = []
        self._address: list[str] = []
        self._length = 0

    def read(self, body: bytes) -> Sitemap:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        try:
            parser.Parse(body, True)
        except expat.ExpatError as error:
            raise FetchError(f"the sitemap is not XML: {error}") from None
        return self._sitemap

    def _refuse(self, *_: object) -> None:
        raise FetchError("the sitemap has a document type declaration, which is not allowed")

    def _start(self, name: str, _: object) -> None:
        if len(self._inside) > 20:
            raise FetchError("the sitemap is nested too deeply")
        self._inside.append(name.rpartition(" ")[2])
        self._address, self._length = [], 0

    def _text(self, text: str) -> None:
        if self._inside[-1] == "loc" and self._length <= MAX_ADDRESS:
            self._address.append(text)
            self._length += len(text)

    def _end(self, _: str) -> None:
        if self._inside.pop() != "loc" or not self._inside:
            return
        address = "".join(self._address).strip()
        kept = self._sitemap.sitemaps if self._inside[-1] == "sitemap" else self._sitemap.pages
        if address and self._length <= MAX_ADDRESS and len(kept) < MAX_ENTRIES:
            kept.append(address)


class Robots:
    """The rules of the hosts that a scan visits, each fetched once."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._rules: dict[str, RobotFileParser | str] = {}

    def allow(self, url: str) -> bool:
        """Whether a page may be fetched; raises FetchError when the site's rules cannot be read."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        with self._lock:
            if origin not in self._rules:
                self._rules[origin] = self._read(origin)
            rules = self._rules[origin]
        if isinstance(rules, str):
            raise FetchError(f"cannot read robots.txt: {rules}")
        return rules.can_fetch("moonbox", url)

    def _read(self, origin: str) -> RobotFileParser | str:
        rules = RobotFileParser()
        try:
            response = self._fetch(origin + "/robots.txt", {})
        except (MoonboxError, OSError) as error:
            return str(error)
        if response.status >= 500:
            return f"the server responded with status {response.status}"
        # No such file means no rules.
        lines = response.body[:MAX_ROBOTS].decode("utf-8", "replace").splitlines() if response.status == 200 else []
        rules.parse(lines)
        return rules
