"""The host's side of extraction: files are read by chores."""

from __future__ import annotations

import importlib.util
from typing import Any, TypeVar

import msgspec

from moonbox.closing import Closing
from moonbox.knowledge.extract.formats import Extracted, Kind, Unreadable
from moonbox.worker.chores import ChoreFailed, Chores

T = TypeVar("T")
SECONDS = 20.0
MAX_ANSWER = 50_000_000
_HTML, _OFFICE = {"html_to_markdown": "html-to-markdown"}, {"docx": "python-docx", "pptx": "python-pptx"}
_NEEDS = {
    "html": ("web", _HTML),
    "epub": ("office", _HTML),
    "pdf": ("pdf", {"pypdf": "pypdf"}),
    "office": ("office", {**_OFFICE, "openpyxl": "openpyxl"}),
}
"""What reads each kind of file: the extra that brings it, and its modules with the names of their packages."""


class Extractor(Closing):
    """Takes the text out of files. Use it as a context manager.

    Files are hostile input: they may make a parser run forever, fill the memory, or do worse. Parsers therefore run in
    jailed processes, which are killed when they take too long.
    """

    def __init__(self, *, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._chores: dict[str, Chores] = {}

    def extract(self, data: bytes, kind: Kind, charset: str | None = None) -> Extracted:
        """The text of a file's bytes; raises Unreadable."""
        kind = "pdf" if data.startswith(b"%PDF-") else kind
        reader = "office" if kind in ("docx", "pptx", "xlsx") else kind if kind in _NEEDS else "plain"
        extracted = self._run(reader, Extracted, kind, data, charset)
        if extracted.error:
            raise Unreadable(extracted.error[:500], expected=extracted.expected)
        return extracted

    def sitemap(self, body: bytes) -> tuple[list[str], list[str]]:
        """The pages and the further sitemaps that a sitemap lists; raises Unreadable."""
        return self._run("plain", tuple[list[str], list[str]], "sitemap", body)

    def allows(self, robots: bytes, url: str) -> bool:
        """Whether a site's robots.txt allows moonbox a page; raises Unreadable."""
        return self._run("robots", bool, "robots", robots, url)

    def close(self) -> None:
        for chores in self._chores.values():
            chores.close()
        self._chores.clear()

    def _run(self, reader: str, answer: type[T], chore: str, *arguments: Any) -> T:
        if reader not in self._chores:
            chores = Chores("moonbox.knowledge.extract.reader", reader, packages=_packages(reader, chore))
            self._chores.setdefault(reader, chores)
        try:
            found = self._chores[reader].run(chore, *arguments, seconds=self._seconds, answer=MAX_ANSWER)
            return msgspec.convert(found, answer)
        except ChoreFailed as problem:
            raise Unreadable(f"reading the file {problem.reason}") from None
        except msgspec.ValidationError:
            raise Unreadable("reading the file sent an invalid answer") from None


def _packages(reader: str, kind: str) -> tuple[str, ...]:
    """The modules that read such files, which must be installed."""
    extra, modules = _NEEDS.get(reader, ("", {"charset_normalizer": "charset-normalizer"}))
    for module, package in modules.items():
        if importlib.util.find_spec(module) is None:
            message = f"{kind.upper()} files need the package {package}: pip install 'moonbox[{extra}]'"
            raise Unreadable(message, expected=True)
    return tuple(modules)
