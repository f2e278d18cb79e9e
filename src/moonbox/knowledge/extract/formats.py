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
    error: str = ""
    """Why there is no text that can be read."""
    expected: bool = False
    """Whether that is normal for such a file and not a fault."""


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


_OFFICE = "application/vnd.openxmlformats-officedocument"
_NAMES: dict[Kind, tuple[str, str]] = {
    "markdown": ("md markdown mdown mkd mdx", "text/markdown text/x-markdown"),
    "rst": ("rst", "text/x-rst text/prs.fallenstein.rst"),
    "text": ("", "application/json"),
    "html": ("html htm xhtml", "text/html application/xhtml+xml"),
    "pdf": ("pdf", "application/pdf"),
    "csv": ("csv tsv", "text/csv text/tab-separated-values"),
    "docx": ("docx", f"{_OFFICE}.wordprocessingml.document"),
    "pptx": ("pptx", f"{_OFFICE}.presentationml.presentation"),
    "xlsx": ("xlsx", f"{_OFFICE}.spreadsheetml.sheet"),
    "epub": ("epub", "application/epub+zip"),
}
"""The endings of file names and the content types of each kind."""
_SUFFIXES = {suffix: kind for kind, (suffixes, _) in _NAMES.items() for suffix in suffixes.split()}
_TYPES = {name: kind for kind, (_, types) in _NAMES.items() for name in types.split()}
