"""Kinds of files, and what is taken out of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Extracted", "Kind", "Unreadable", "kind_of", "kind_of_type"]

Kind = Literal["markdown", "text", "html", "pdf"]


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of a file and what it says about itself."""

    text: str
    title: str = ""
    author: str | None = None
    updated_at: str | None = None
    metadata: dict[str, str] | None = None
    markdown: bool = True


class Unreadable(Exception):
    """There is no text to be had; `expected` when that is in the nature of the file and no fault of it."""

    def __init__(self, message: str, *, expected: bool = False) -> None:
        self.expected = expected
        super().__init__(message)


def kind_of(name: str) -> Kind:
    """The kind of a file by its name; whatever is not known is text until it turns out binary."""
    return _SUFFIXES.get(name.lower().rpartition(".")[2], "text")


def kind_of_type(content_type: str) -> Kind | None:
    """The kind of an HTTP response by its content type; None for what holds no text."""
    name = content_type.partition(";")[0].strip().lower()
    return _TYPES.get(name) or ("text" if name.startswith("text/") else None)


_SUFFIXES: dict[str, Kind] = {
    "md": "markdown",
    "markdown": "markdown",
    "mdown": "markdown",
    "mkd": "markdown",
    "mdx": "markdown",
    "html": "html",
    "htm": "html",
    "xhtml": "html",
    "pdf": "pdf",
}
_TYPES: dict[str, Kind] = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "application/pdf": "pdf",
    "application/json": "text",
}
