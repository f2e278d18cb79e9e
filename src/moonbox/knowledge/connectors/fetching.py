"""Pages of the web, fetched with the bounded HTTP client."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from moonbox._version import __version__
from moonbox.net.bodies import unpack_gzip
from moonbox.net.client import Client, PublicAddresses, Request, Response
from moonbox.net.errors import InvalidURL, NetError
from moonbox.net.urls import parse_target

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Fetch", "FetchError", "Fetcher", "Response", "gunzip"]

_HEADERS = {"user-agent": f"moonbox/{__version__}", "accept": "text/html, text/plain, application/pdf, */*;q=0.5"}


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
