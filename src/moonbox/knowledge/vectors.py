"""Vectors in the store: written beside the chunks, searched with sqlite-vec.

A vector is kept twice, as one bit and as one byte for each dimension. The bits of all chunks are compared with the
query's first, and the nearest three thousand are then ranked by the bytes: half the time of ranking all of them. Up to
that many chunks the ranking is exact, of fifty thousand chunks it finds some 97 of the 100 best. These are ordinary
tables, so that a store with vectors stays usable where sqlite-vec is missing.
"""

from __future__ import annotations

import array
import ctypes
import math
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from moonbox.errors import MissingExtra
from moonbox.knowledge.records import EmbeddingError, KnowledgeError
from moonbox.knowledge.store import chunks_of, document_of, source_range, text_digest

CANDIDATES = 3_000
_lock = threading.Lock()  # guards SQLite's process-wide list of extensions, not state of ours


class Match(NamedTuple):
    """One document's best chunk, from either kind of search."""

    document: int
    chunk: int
    score: float


def best_of(matches: Sequence[Match], limit: int) -> list[Match]:
    """The best match of each document, best first."""
    best: dict[int, Match] = {}
    for match in sorted(matches, key=lambda match: (-match.score, match.chunk)):
        best.setdefault(match.document, match)
    return list(best.values())[:limit]


def best_documents(find: Callable[[int], list[tuple[int, float]]], limit: int, wanted: int) -> list[Match]:
    """The best matches; `find` gives the chunks that score best, at most as many as it is asked for."""
    while True:
        rows = find(wanted)
        matches = best_of([Match(document_of(chunk), chunk, score) for chunk, score in rows], limit)
        if len(matches) == limit or len(rows) < wanted:
            return matches
        wanted *= 8  # a few documents with many chunks filled the list


def model_id(db: sqlite3.Connection, name: str) -> int | None:
    """The number under which the store knows a model; None when it has no vectors of it."""
    row = db.execute("SELECT id FROM models WHERE name = ?", (name,)).fetchone()
    return None if row is None else int(row[0])


def register_model(db: sqlite3.Connection, name: str, dimensions: int) -> int:
    """Make a model known; its vectors must have as many dimensions as before."""
    row = db.execute("SELECT id, dimensions FROM models WHERE name = ?", (name,)).fetchone()
    if row is None:
        cursor = db.execute("INSERT INTO models (name, dimensions) VALUES (?, ?)", (name, dimensions))
        return cursor.lastrowid or 0
    if row[1] != dimensions:
        raise EmbeddingError(
            f"{name} returned vectors of {dimensions} dimensions, but those in the store have {row[1]}; "
            "use another model name in the configuration, so that all vectors are made again"
        )
    return int(row[0])


def forget_other_models(db: sqlite3.Connection, source: int, model: int | None) -> None:
    """Drop a source's vectors that another model made: they cannot be compared."""
    stale = "SELECT chunk FROM coarse_vectors WHERE chunk BETWEEN ? AND ? AND model IS NOT ?"
    values = (*source_range(source), model)
    db.execute(f"DELETE FROM vectors WHERE chunk IN ({stale})", values)
    db.execute(f"DELETE FROM coarse_vectors WHERE chunk IN ({stale})", values)
    db.execute("DELETE FROM models WHERE id IS NOT ? AND id NOT IN (SELECT model FROM coarse_vectors)", (model,))


def pending(db: sqlite3.Connection, source: int) -> list[int]:
    """The source's chunks that have no vector yet."""
    rows = db.execute(
        "SELECT id FROM chunks LEFT JOIN coarse_vectors ON chunk = id"
        " WHERE id BETWEEN ? AND ? AND chunk IS NULL ORDER BY id",
        source_range(source),
    )
    return [id for (id,) in rows]


def write_vectors(db: sqlite3.Connection, model: int, rows: Sequence[tuple[int, str, Sequence[float]]]) -> None:
    """Store vectors, given as (chunk, the text that was embedded, vector)."""
    for chunk, text, vector in rows:
        bits, numbers = quantized(vector)
        db.execute("INSERT INTO coarse_vectors (chunk, model, bits) VALUES (?, ?, ?)", (chunk, model, bits))
        db.execute("INSERT INTO vectors (chunk, digest, numbers) VALUES (?, ?, ?)", (chunk, text_digest(text), numbers))


def semantic_matches(
    db: sqlite3.Connection, model: int, vector: Sequence[float], limit: int, sources: Sequence[int] | None
) -> list[Match]:
    """The documents with the nearest chunks, nearest first; the score is the cosine."""
    bits, numbers = quantized(vector)
    scope = "" if sources is None else f" AND ({chunks_of('chunk', sources)})"
    sql = (
        "SELECT chunk, 1.0 - vec_distance_cosine(vec_int8(numbers), vec_int8(:numbers)) AS score FROM vectors"
        " WHERE chunk IN ("
        f"SELECT chunk FROM coarse_vectors WHERE model = :model AND length(bits) = :width{scope}"
        f" ORDER BY vec_distance_hamming(vec_bit(bits), vec_bit(:bits)) LIMIT {CANDIDATES}"
        ") ORDER BY score DESC, chunk LIMIT :wanted"
    )
    values = {"numbers": numbers, "bits": bits, "width": len(bits), "model": model}
    return best_documents(lambda wanted: db.execute(sql, {**values, "wanted": wanted}).fetchall(), limit, limit * 20)


def quantized(vector: Sequence[float]) -> tuple[bytes, bytes]:
    """One bit and one byte for each dimension. The scale does not change the cosine."""
    largest = max(map(abs, vector), default=0.0)
    if not largest or not all(map(math.isfinite, vector)):
        raise EmbeddingError("the embedder returned a vector that is all zeros or not finite")
    scale = 127 / largest
    numbers = array.array("b", [round(number * scale) for number in vector])
    numbers.extend([0] * (-len(numbers) % 8))
    bits = bytearray(len(numbers) // 8)
    for position, number in enumerate(vector):
        if number > 0:
            bits[position >> 3] |= 1 << (position & 7)
    return bytes(bits), numbers.tobytes()


def connect_with_vectors(connect: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
    """What `connect` opens, with the functions of sqlite-vec."""
    try:
        import sqlite_vec  # type: ignore[import-untyped]  # ships no types
    except ImportError:
        raise MissingExtra("sqlite-vec", "semantic", "semantic search") from None
    path, loads = sqlite_vec.loadable_path(), hasattr(sqlite3.Connection, "enable_load_extension")
    db = connect() if loads else _connect_through_the_library(path, connect)
    try:
        if loads:
            db.enable_load_extension(True)
            db.load_extension(path)
            db.enable_load_extension(False)
        db.execute("SELECT vec_version()")
    except sqlite3.Error as error:
        db.close()
        raise KnowledgeError(f"sqlite-vec cannot be loaded: {error}") from error
    return db


def _connect_through_the_library(path: str, connect: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
    """Many builds of Python have no `load_extension`, although their SQLite library supports extensions."""
    try:
        import _sqlite3

        library = ctypes.CDLL(_sqlite3.__file__)  # finds the symbols of the library that it is linked with
        extension = ctypes.CDLL(next(str(file) for file in Path(path).parent.glob(Path(path).name + ".*")))
        start = ctypes.cast(extension.sqlite3_vec_init, ctypes.c_void_p)
        register, cancel = library.sqlite3_auto_extension, library.sqlite3_cancel_auto_extension
    except (ImportError, AttributeError, OSError, StopIteration) as error:
        raise KnowledgeError(
            "semantic search needs a Python whose sqlite3 module can load extensions; this one cannot "
            f"({error or type(error).__name__})"
        ) from error
    with _lock:
        register(start)
        try:
            return connect()
        finally:
            cancel(start)
