"""The store's schema, as the list of steps that led to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.knowledge.ids import DOCUMENT_OF

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

__all__ = ["APPLICATION_ID", "MIGRATIONS", "TOKENIZER"]

APPLICATION_ID = 0x6D626B62  # "mbkb", in the file's header: tells a knowledge base from a stranger's database

TOKENIZER = "porter unicode61 remove_diacritics 2"
"""Words are runs of letters and digits, without case and accents, reduced to their English stem."""


def create_documents_and_index(db: sqlite3.Connection) -> None:
    """Sources, their documents in chunks, the full-text index over them, and the runs that brought them."""
    db.execute("CREATE TABLE sources (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)")
    # AUTOINCREMENT: an id that a model still remembers must never name another document.
    db.execute(
        """
        CREATE TABLE documents (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            source INTEGER NOT NULL REFERENCES sources (id),
            source_id TEXT NOT NULL,
            title TEXT NOT NULL,
            source_url TEXT,
            updated_at TEXT,
            author TEXT,
            metadata TEXT NOT NULL,
            digest BLOB NOT NULL,
            fingerprint TEXT,
            UNIQUE (source, source_id)
        )
        """
    )
    db.execute(
        """
        CREATE TABLE chunks (
            id INTEGER PRIMARY KEY,
            overlap INTEGER NOT NULL,
            heading TEXT NOT NULL,
            text TEXT NOT NULL
        )
        """
    )
    # The index holds no text of its own: it reads this view.
    db.execute(
        f"""
        CREATE VIEW passages AS
        SELECT chunks.id AS id, documents.title AS title, chunks.heading AS heading, chunks.text AS text
        FROM chunks JOIN documents ON documents.id = {DOCUMENT_OF.format("chunks.id")}
        """
    )
    db.execute(
        f"""
        CREATE VIRTUAL TABLE passage_index USING fts5 (
            title, heading, text, content = 'passages', content_rowid = 'id', tokenize = '{TOKENIZER}', prefix = '3'
        )
        """
    )
    db.execute(
        """
        CREATE TABLE sync_runs (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            source INTEGER NOT NULL REFERENCES sources (id),
            started_at TEXT NOT NULL,
            finished_at TEXT,
            status TEXT NOT NULL CHECK (status IN ('running', 'ok', 'failed', 'interrupted')),
            pid INTEGER NOT NULL,
            report TEXT
        )
        """
    )
    db.execute("CREATE INDEX sync_runs_by_source ON sync_runs (source, id)")


def create_vectors(db: sqlite3.Connection) -> None:
    """Vectors of chunks: one bit for each dimension to find candidates by, one byte for each to rank them."""
    db.execute("CREATE TABLE models (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimensions INTEGER NOT NULL)")
    # Two tables, because the first is read as a whole for every query and the second in a few places.
    db.execute(
        """
        CREATE TABLE coarse_vectors (
            chunk INTEGER PRIMARY KEY,
            model INTEGER NOT NULL,
            bits BLOB NOT NULL
        )
        """
    )
    db.execute(
        """
        CREATE TABLE vectors (
            chunk INTEGER PRIMARY KEY,
            digest BLOB NOT NULL,
            numbers BLOB NOT NULL
        )
        """
    )


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (create_documents_and_index, create_vectors)
"""Applied in order, each once, and recorded by name. Only ever append."""
