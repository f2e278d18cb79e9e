"""Sitemaps: the addresses that a site lists for machines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.parsers import expat

from moonbox.knowledge.connectors.fetching import FetchError, gunzip

if TYPE_CHECKING:
    from moonbox.knowledge.connectors.fetching import Response

__all__ = ["Sitemap", "read_sitemap"]

MAX_UNPACKED = 50_000_000
MAX_ENTRIES = 50_000
MAX_ADDRESS = 2_000


@dataclass(slots=True)
class Sitemap:
    """Pages, and further sitemaps."""

    pages: list[str] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)


def read_sitemap(response: Response) -> Sitemap:
    """What a sitemap lists, be it XML, an index of sitemaps, plain lines, or any of them packed with gzip."""
    body = response.body
    if body.startswith(b"\x1f\x8b"):
        body = gunzip(body, MAX_UNPACKED)
    if not body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        lines = (line.strip() for line in body.decode("utf-8", "replace").splitlines())
        return Sitemap(pages=[line for line in lines if line and len(line) <= MAX_ADDRESS][:MAX_ENTRIES])
    return _Reader().read(body)


class _Reader:
    """Expat without document types: where none can be declared, no entity can grow."""

    def __init__(self) -> None:
        self._found = Sitemap()
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
        return self._found

    def _refuse(self, *_: object) -> None:
        raise FetchError("the sitemap declares a document type, which is refused")

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
        kept = self._found.sitemaps if self._inside[-1] == "sitemap" else self._found.pages
        if address and self._length <= MAX_ADDRESS and len(kept) < MAX_ENTRIES:
            kept.append(address)
