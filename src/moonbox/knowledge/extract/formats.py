"""Formats: the kind of a file by its name or type, and what is taken out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["markdown", "rst", "text", "html", "pdf", "csv", "docx", "pptx", "xlsx", "epub"]


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of a file and what it says about itself."""

    text: str
    title: str = ""
    author: str | None = None
    updated_at: str | None = None
    metadata: dict[str, str] | None = None
    markdown: bool = True


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """What the reading process sends: what it took out of a file, or why it could not."""

    extracted: Extracted | None = None
    error: str = ""
    expected: bool = False


class Unreadable(Exception):
    """A file has no text that can be read; `expected` when that is normal for such a file and not a fault."""

    def __init__(self, message: str, *, expected: bool = False) -> None:
        self.expected = expected
        super().__init__(message)


def kind_of(name: str) -> Kind:
    """The kind of a file by its name; an unknown one is text, unless it turns out to be binary."""
    return _SUFFIXES.get(name.lower().rpartition(".")[2], "text")


def kind_of_type(content_type: str) -> Kind | None:
    """The kind of an HTTP response by its content type; None for types without text."""
    name = content_type.partition(";")[0].strip().lower()
    return _TYPES.get(name) or ("text" if name.startswith("text/") else None)


_SUFFIXES: dict[str, Kind] = {
    **dict.fromkeys(("md", "markdown", "mdown", "mkd", "mdx"), "markdown"),
    **dict.fromkeys(("html", "htm", "xhtml"), "html"),
    **dict.fromkeys(("csv", "tsv"), "csv"),
    **{kind: kind for kind in ("rst", "pdf", "docx", "pptx", "xlsx", "epub")},
}
_OFFICE: dict[str, Kind] = {
    "wordprocessingml.document": "docx",
    "presentationml.presentation": "pptx",
    "spreadsheetml.sheet": "xlsx",
}
_TYPES: dict[str, Kind] = {
    **dict.fromkeys(("text/html", "application/xhtml+xml"), "html"),
    **dict.fromkeys(("text/markdown", "text/x-markdown"), "markdown"),
    **dict.fromkeys(("text/x-rst", "text/prs.fallenstein.rst"), "rst"),
    **dict.fromkeys(("text/csv", "text/tab-separated-values"), "csv"),
    **{f"application/vnd.openxmlformats-officedocument.{name}": kind for name, kind in _OFFICE.items()},
    "application/epub+zip": "epub",
    "application/pdf": "pdf",
    "application/json": "text",
}
