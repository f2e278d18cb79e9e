"""Writing documents into the store, and taking them out."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moonbox.knowledge.store import MAX_CHUNKS, chunk_id, document_range
from moonbox.knowledge.text import chunk_text, separated

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from moonbox.knowledge.items import Item
    from moonbox.knowledge.text import Piece

__all__ = ["PIPELINE", "Prepared", "digest", "embedded_text", "prepare", "remove", "text_digest", "write"]

PIPELINE = 2
"""Raised whenever the same file would be read or cut differently than before: everything is then indexed again."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An item that is ready to be written: the work that needs no transaction is done."""

    item: Item
    document: int | None
    """The id of the document that it replaces."""
    digest: bytes
    fingerprint: str | None
    pieces: tuple[Piece, ...]


def digest(item: Item) -> bytes:
    """What tells whether an item has changed."""
    parts = (PIPELINE, item.title, item.source_url, item.updated_at, item.author, item.format, item.metadata)
    hasher = hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16)
    hasher.update(item.body.encode())
    return hasher.digest()


def prepare(item: Item, document: int | None, item_digest: bytes, fingerprint: str | None) -> Prepared:
    pieces = chunk_text(item.body, markdown=item.format == "markdown")
    return Prepared(item, document, item_digest, fingerprint, tuple(pieces[:MAX_CHUNKS]))


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
    if kept:
        _restore_vectors(db, passages, kept)


def remove(db: sqlite3.Connection, source: int, documents: Sequence[int]) -> None:
    """Take documents out, with everything that belongs to them."""
    _remove_passages(db, source, documents)
    db.executemany("DELETE FROM documents WHERE id = ?", ((document,) for document in documents))


def embedded_text(title: str, heading: str, text: str) -> str:
    """What a model is given for a chunk: the words around it help to understand it."""
    context = " > ".join(part for part in (title, heading) if part)
    return f"{context}\n\n{text.strip()}".strip() or "(empty)"  # endpoints refuse to embed nothing


def _write_document(db: sqlite3.Connection, source: int, entry: Prepared) -> int:
    item = entry.item
    row = (
        source,
        item.source_id,
        separated(item.title),
        item.source_url,
        item.updated_at,
        item.author,
        json.dumps(item.metadata, ensure_ascii=False),
        entry.digest,
        entry.fingerprint,
    )
    if entry.document is None:
        cursor = db.execute(
            "INSERT INTO documents (source, source_id, title, source_url, updated_at, author, metadata, digest,"
            " fingerprint) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        return cursor.lastrowid or 0
    db.execute(
        "UPDATE documents SET (source, source_id, title, source_url, updated_at, author, metadata, digest, fingerprint)"
        " = (?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE id = ?",
        (*row, entry.document),
    )
    return entry.document


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
    kept: dict[bytes, tuple[int, bytes, bytes]] = {}
    for document in documents:
        for key, model, bits, numbers in db.execute(
            "SELECT digest, model, bits, numbers FROM vectors JOIN coarse_vectors USING (chunk)"
            " WHERE chunk BETWEEN ? AND ?",
            document_range(source, document),
        ):
            kept[key] = (model, bits, numbers)
    return kept


def _restore_vectors(
    db: sqlite3.Connection,
    passages: Sequence[tuple[int, str, str, str]],
    kept: dict[bytes, tuple[int, bytes, bytes]],
) -> None:
    for id, title, heading, text in passages:
        key = text_digest(embedded_text(title, heading, text))
        if vector := kept.get(key):
            model, bits, numbers = vector
            db.execute("INSERT INTO coarse_vectors (chunk, model, bits) VALUES (?, ?, ?)", (id, model, bits))
            db.execute("INSERT INTO vectors (chunk, digest, numbers) VALUES (?, ?, ?)", (id, key, numbers))


def text_digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
