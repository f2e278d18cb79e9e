"""Markdown tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GENERATED = "<!-- Made by docs/gen/make.py from the code; change that, not this. -->"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    lines += [f"| {' | '.join(cell(text) for text in row)} |" for row in rows]
    return "\n".join(lines)


def cell(text: str) -> str:
    """On one line, with bars that do not end the cell, and placeholders that are not taken for HTML."""
    parts = " ".join(text.split()).split("`")
    return "".join(_code(part) if at % 2 else _text(part) for at, part in enumerate(parts))


def _text(part: str) -> str:
    return part.replace("|", "\\|").replace("<", "&lt;")


def _code(part: str) -> str:
    """Between backticks a bar can be neither left alone nor escaped."""
    if "|" not in part:
        return f"`{part}`"
    shown = part.replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")
    return f"<code>{shown}</code>"
