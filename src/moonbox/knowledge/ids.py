"""Ids of chunks: source, document and position in one number.

The index, the chunks and the vectors share it. A row of the index thus tells its document and its source without a
look-up, and what belongs to a document, or to a source, is one range.

    source (15 bits) | document (32 bits) | position (15 bits)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "DOCUMENT_OF",
    "MAX_CHUNKS",
    "MAX_DOCUMENT",
    "chunk_id",
    "chunks_of",
    "document_of",
    "document_range",
    "position_of",
    "source_range",
]

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
