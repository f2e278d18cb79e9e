"""Snippets: the part of a chunk that shows why it was found."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from moonbox.knowledge.migrations import TOKENIZER
from moonbox.knowledge.text import clean_line, joined

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["beginning", "snippets"]

TOKENS = 32
PLAIN_CHARS = 240


def snippets(texts: Mapping[int, str], words: str, marks: tuple[str, str]) -> dict[int, str]:
    """For each chunk, its best passage with the found words between the marks.

    The words are found by an index in memory over these few chunks: SQLite's own snippets would walk through the whole
    index again, and only the same tokenizer knows which words count as the same.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute(f"CREATE VIRTUAL TABLE shown USING fts5 (text, tokenize = '{TOKENIZER}')")
        db.execute("BEGIN")
        db.executemany("INSERT INTO shown (rowid, text) VALUES (?, ?)", texts.items())
        rows = db.execute(
            f"SELECT rowid, snippet(shown, 0, ?, ?, '…', {TOKENS}) FROM shown WHERE shown MATCH ?", (*marks, words)
        ).fetchall()
    found = {chunk: clean_line(joined(text)) for chunk, text in rows}
    return {chunk: found.get(chunk) or beginning(text) for chunk, text in texts.items()}


def beginning(text: str) -> str:
    """A chunk's first words."""
    line = clean_line(joined(text[: PLAIN_CHARS * 4]))
    if len(line) <= PLAIN_CHARS:
        return line
    return line[:PLAIN_CHARS].rsplit(" ", 1)[0].rstrip() + "…"
