"""The store: the schema of its SQLite file, and the numbers that name its chunks.

A chunk's id is its source, document and position in one number. The index, the chunks and the vectors share it. A row
of the index thus tells its document and its source without a look-up, and what belongs to a document, or to a source,
is one range.

    source (15 bits) | document (32 bits) | position (15 bits)
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

from moonbox.database import Database, Schema
from moonbox.knowledge.records import Item, KnowledgeError
from moonbox.knowledge.text import Piece, separated

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence
    from pathlib import Path


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
PIPELINE = 2
"""Increment this number if files are read or cut differently than before. Everything is then indexed again."""


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
        "CREATE TABLE documents (id INTEGER PRIMARY KEY AUTOINCREMENT, source INTEGER NOT NULL REFERENCES sources (id),"
        " source_id TEXT NOT NULL, title TEXT NOT NULL, source_url TEXT, updated_at TEXT, author TEXT,"
        " metadata TEXT NOT NULL, digest BLOB NOT NULL, fingerprint TEXT, UNIQUE (source, source_id))"
    )
    db.execute(
        "CREATE TABLE chunks"
        " (id INTEGER PRIMARY KEY, overlap INTEGER NOT NULL, heading TEXT NOT NULL, text TEXT NOT NULL)"
    )
    # The index holds no text of its own: it reads this view.
    db.execute(
        "CREATE VIEW passages AS SELECT chunks.id AS id, documents.title AS title, chunks.heading AS heading,"
        f" chunks.text AS text FROM chunks JOIN documents ON documents.id = {DOCUMENT_OF.format('chunks.id')}"
    )
    db.execute(
        "CREATE VIRTUAL TABLE passage_index USING fts5 (title, heading, text,"
        f" content = 'passages', content_rowid = 'id', tokenize = '{TOKENIZER}', prefix = '3')"
    )
    db.execute(
        "CREATE TABLE sync_runs (id INTEGER PRIMARY KEY AUTOINCREMENT, source INTEGER NOT NULL REFERENCES sources (id),"
        " started_at TEXT NOT NULL, finished_at TEXT, pid INTEGER NOT NULL, report TEXT,"
        " status TEXT NOT NULL CHECK (status IN ('running', 'ok', 'failed', 'interrupted')))"
    )
    db.execute("CREATE INDEX sync_runs_by_source ON sync_runs (source, id)")


def create_vectors(db: sqlite3.Connection) -> None:
    """Vectors of chunks: one bit for each dimension to find candidates by, one byte for each to rank them."""
    db.execute("CREATE TABLE models (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimensions INTEGER NOT NULL)")
    # Two tables, because the first is read as a whole for every query and the second in a few places.
    db.execute("CREATE TABLE coarse_vectors (chunk INTEGER PRIMARY KEY, model INTEGER NOT NULL, bits BLOB NOT NULL)")
    db.execute("CREATE TABLE vectors (chunk INTEGER PRIMARY KEY, digest BLOB NOT NULL, numbers BLOB NOT NULL)")


SCHEMA = Schema(
    name="knowledge base",
    application_id=0x6D626B62,  # "mbkb"
    migrations=(create_documents_and_index, create_vectors),
    error=KnowledgeError,
    repair="delete it and run `moonbox sync` again",
    upgrade="run `moonbox sync` to update it",
)


class Prepared(NamedTuple):
    """An item that is ready to be written. All work that needs no transaction is done."""

    item: Item
    document: int | None
    """The id of the document that it replaces."""
    digest: bytes
    fingerprint: str | None
    pieces: Sequence[Piece]


def digest(item: Item) -> bytes:
    """A hash that changes when the item changes."""
    parts = (PIPELINE, item.title, item.source_url, item.updated_at, item.author, item.format, item.metadata)
    hasher = hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16)
    hasher.update(item.body.encode())
    return hasher.digest()


def write(db: sqlite3.Connection, source: int, batch: Sequence[Prepared]) -> None:
    """Add or replace documents. Vectors of passages that stayed the same are kept."""
    replaced = [entry.document for entry in batch if entry.document is not None]
    kept = _vectors_of(db, source, replaced)
    _remove_passages(db, source, replaced)
    chunks: list[tuple[int, int, str, str]] = []
    passages: list[tuple[int, str, str, str]] = []
    for entry in batch:
        document, title = _write_document(db, source, entry), separated(entry.item.title)
        for position, piece in enumerate(entry.pieces):
            id = chunk_id(source, document, position)
            heading, text = separated(piece.heading), separated(entry.item.body[piece.start : piece.end])
            chunks.append((id, piece.overlap, heading, text))
            passages.append((id, title, heading, text))
    db.executemany("INSERT INTO chunks (id, overlap, heading, text) VALUES (?, ?, ?, ?)", chunks)
    db.executemany("INSERT INTO passage_index (rowid, title, heading, text) VALUES (?, ?, ?, ?)", passages)
    for id, title, heading, text in passages if kept else ():
        key = text_digest(embedded_text(title, heading, text))
        if vector := kept.get(key):
            model, bits, numbers = vector
            db.execute("INSERT INTO coarse_vectors (chunk, model, bits) VALUES (?, ?, ?)", (id, model, bits))
            db.execute("INSERT INTO vectors (chunk, digest, numbers) VALUES (?, ?, ?)", (id, key, numbers))


def remove(db: sqlite3.Connection, source: int, documents: Sequence[int]) -> None:
    """Remove documents with everything that belongs to them."""
    _remove_passages(db, source, documents)
    db.executemany("DELETE FROM documents WHERE id = ?", ((document,) for document in documents))


def embedded_text(title: str, heading: str, text: str) -> str:
    """The text of a chunk for the model, with title and heading as context."""
    context = " > ".join(part for part in (title, heading) if part)
    return f"{context}\n\n{text.strip()}".strip() or "(empty)"  # endpoints refuse empty texts


def _write_document(db: sqlite3.Connection, source: int, entry: Prepared) -> int:
    item, metadata = entry.item, json.dumps(entry.item.metadata, ensure_ascii=False)
    own = item.source_id, separated(item.title), item.source_url, item.updated_at, item.author
    row = (entry.document, source, *own, metadata, entry.digest, entry.fingerprint)  # no id makes a new one
    cursor = db.execute(
        "INSERT OR REPLACE INTO documents (id, source, source_id, title, source_url, updated_at, author, metadata,"
        " digest, fingerprint) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        row,
    )
    return cursor.lastrowid or 0


def _remove_passages(db: sqlite3.Connection, source: int, documents: Sequence[int]) -> None:
    ranges = [document_range(source, document) for document in documents]
    # The index keeps no text: to delete a row it needs the text that was indexed.
    db.executemany(
        "INSERT INTO passage_index (passage_index, rowid, title, heading, text)"
        " SELECT 'delete', id, title, heading, text FROM passages WHERE id BETWEEN ? AND ?",
        ranges,
    )
    for table, column in (("chunks", "id"), ("coarse_vectors", "chunk"), ("vectors", "chunk")):
        db.executemany(f"DELETE FROM {table} WHERE {column} BETWEEN ? AND ?", ranges)


def _vectors_of(db: sqlite3.Connection, source: int, documents: Sequence[int]) -> dict[bytes, tuple[int, bytes, bytes]]:
    """Model, bits and numbers of the documents' vectors, by what they were made from."""
    columns = "digest, model, bits, numbers"
    sql = f"SELECT {columns} FROM vectors JOIN coarse_vectors USING (chunk) WHERE chunk BETWEEN ? AND ?"
    rows = (row for document in documents for row in db.execute(sql, document_range(source, document)))
    return {digest: (model, bits, numbers) for digest, model, bits, numbers in rows}


def text_digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
