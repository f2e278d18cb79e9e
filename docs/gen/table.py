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
    flat = " ".join(text.split()).replace("|", "\\|")
    parts = flat.split("`")
    return "`".join(part if at % 2 else part.replace("<", "&lt;") for at, part in enumerate(parts))
