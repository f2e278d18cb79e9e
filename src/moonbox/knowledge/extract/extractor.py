"""The host's side of extraction: plain text is read here, HTML and PDF by chores."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import msgspec

from moonbox.closing import Closing
from moonbox.knowledge.extract.formats import (
    Extracted,
    ReadDocument,
    Unreadable,
    declared_charset,
    decode,
    read_markdown,
    read_rst,
)
from moonbox.worker.chores import ChoreFailed, Chores

if TYPE_CHECKING:
    from moonbox.knowledge.extract.formats import Kind

SECONDS = 20.0
MAX_ANSWER = 50_000_000
_PARSERS = {"html": ("html-to-markdown", "web"), "pdf": ("pypdf", "pdf")}
"""The package that reads each kind of file, and the extra that brings it."""


class Extractor(Closing):
    """Takes the text out of files. Use it as a context manager.

    HTML and PDF files are hostile input: they may make a parser run forever, fill the memory, or do worse. Parsers
    therefore run in jailed processes, which are killed when they take too long.
    """

    def __init__(self, *, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._chores: dict[str, Chores] = {}

    def extract(self, data: bytes, kind: Kind, charset: str | None = None) -> Extracted:
        """The text of a file's bytes; raises Unreadable."""
        if kind == "pdf" or data.startswith(b"%PDF-"):
            return self._read("pdf", data)
        if kind == "html":
            text = decode(data, charset or declared_charset(data))
            return self._read("html", text.encode("utf-8", "replace"))
        text = decode(data, charset)
        if kind == "markdown":
            return read_markdown(text)
        return read_rst(text) if kind == "rst" else Extracted(text, markdown=False)

    def close(self) -> None:
        for chores in self._chores.values():
            chores.close()
        self._chores.clear()

    def _read(self, kind: str, data: bytes) -> Extracted:
        chores = self._chores.get(kind)
        if chores is None:
            chores = self._chores[kind] = Chores("moonbox.knowledge.extract.reader", kind, packages=(_module(kind),))
        try:
            answer = msgspec.convert(chores.run(kind, data, seconds=self._seconds, answer=MAX_ANSWER), ReadDocument)
        except ChoreFailed as problem:
            raise Unreadable(f"reading the file {problem.reason}") from None
        except msgspec.ValidationError:
            raise Unreadable("reading the file sent an invalid answer") from None
        if answer.extracted is None:
            raise Unreadable(answer.error[:500], expected=answer.expected)
        return answer.extracted


def _module(kind: str) -> str:
    """The package of the parser, which must be installed."""
    package, extra = _PARSERS[kind]
    module = package.replace("-", "_")
    if importlib.util.find_spec(module) is None:
        message = f"{kind.upper()} files need the package {package}: pip install 'moonbox[{extra}]'"
        raise Unreadable(message, expected=True)
    return module
