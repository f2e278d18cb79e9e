"""The store: the schema of its SQLite file, and the numbers that name its chunks.

A chunk's id is its source, document and position in one number. The index, the chunks and the vectors share it. A row
of the index thus tells its document and its source without a look-up, and what belongs to a document, or to a source,
is one range.

    source (15 bits) | document (32 bits) | position (15 bits)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.database import Database, Schema
from moonbox.knowledge.errors import KnowledgeError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from pathlib import Path

__all__ = [
    "DOCUMENT_OF",
    "MAX_CHUNKS",
    "MAX_DOCUMENT",
    "SCHEMA",
    "TOKENIZER",
    "chunk_id",
    "chunks_of",
    "document_of",
    "document_range",
    "open_store",
    "position_of",
    "source_range",
]

BUSY_SECONDS = 10.0

TOKENIZER = "porter unicode61 remove_diacritics 2"
"""Words are runs of letters and digits, without case and accents, reduced to their English stem."""

POSITION_BITS = 15
DOCUMENT_BITS = 32
SOURCE_SHIFT = POSITION_BITS + DOCUMENT_BITS
MAX_CHUNKS = 1 << POSITION_BITS
MAX_DOCUMENT = (1 << DOCUMENT_BITS) - 1

DOCUMENT_OF = f"({{}} >> {POSITION_BITS} & {MAX_DOCUMENT})"
"""The document of a chunk in SQL; format it with the name of the column."""


def chunk_id(source: int, document: int, position: int) -> int:
    return source << SOURCE_SHIFT | document << POSITION_BITS | position


def document_of(chunk: int) -> int:
    return chunk >> POSITION_BITS & MAX_DOCUMENT


def position_of(chunk: int) -> int:
    return chunk & MAX_CHUNKS - 1


def document_range(source: int, document: int) -> tuple[int, int]:
    """The first and the last id that a document's chunks can have."""
    return chunk_id(source, document, 0), chunk_id(source, document, MAX_CHUNKS - 1)


def source_range(source: int) -> tuple[int, int]:
    """The first and the last id that a source's chunks can have."""
    return source << SOURCE_SHIFT, (source + 1 << SOURCE_SHIFT) - 1


def chunks_of(column: str, sources: Iterable[int]) -> str:
    """The condition, in SQL, that a chunk belongs to one of the sources."""
    ranges = (source_range(source) for source in sources)
    return " OR ".join(f"{column} BETWEEN {first} AND {last}" for first, last in ranges) or "0"


def open_store(path: Path, *, read_only: bool = False) -> Database:
    """The database of a knowledge base; made when it is missing, unless it is only read."""
    if read_only and not path.exists():
        raise KnowledgeError(f"there is no knowledge base at {path}; run `moonbox sync` to make one")
    return Database(path, SCHEMA, read_only=read_only, timeout=BUSY_SECONDS)


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


SCHEMA = Schema(
    name="knowledge base",
    application_id=0x6D626B62,  # "mbkb"
    migrations=(create_documents_and_index, create_vectors),
    error=KnowledgeError,
    repair="delete it and run `moonbox sync` again",
    upgrade="run `moonbox sync` to update it",
)
