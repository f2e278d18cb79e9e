"""Search: the three modes, and the rows that they give."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moonbox.errors import UsageError
from moonbox.knowledge.errors import KnowledgeError
from moonbox.knowledge.keyword import Match, keyword_matches
from moonbox.knowledge.query import Query, parse_query
from moonbox.knowledge.records import Hit, Hits, Mode
from moonbox.knowledge.snippets import beginning, snippets
from moonbox.knowledge.text import clean_line, joined
from moonbox.knowledge.vectors import model_id, semantic_matches

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from moonbox.knowledge.database import Database
    from moonbox.knowledge.embedding import Embedder

__all__ = ["MAX_LIMIT", "Request", "search"]

MAX_LIMIT = 200
FUSED = 50
RANK_CONSTANT = 60
"""The usual constant of reciprocal rank fusion: how little the first few ranks differ from each other."""


@dataclass(frozen=True, slots=True)
class Request:
    """One search."""

    text: str
    limit: int
    sources: tuple[str, ...] | None
    marks: tuple[str, str]


def search(database: Database, embedder: Embedder | None, request: Request, mode: Mode) -> Hits:
    """Answer a request in one of the modes."""
    query = parse_query(request.text)
    if mode == "keyword":
        return _keyword(database, request, query)
    try:
        return _with_vectors(database, embedder, request, query, mode)
    except (KnowledgeError, UsageError) as error:
        if mode == "semantic":
            raise
        hits = _keyword(database, request, query)
        return Hits(hits, mode="keyword", notes=(f"keyword search only: {error}",))


def _keyword(database: Database, request: Request, query: Query) -> Hits:
    with database.reading() as db:
        matches = keyword_matches(db, query, request.limit, _numbers(db, request.sources))
        return Hits(_rows(db, matches, query, request.marks), mode="keyword")


def _with_vectors(database: Database, embedder: Embedder | None, request: Request, query: Query, mode: Mode) -> Hits:
    if embedder is None:
        raise UsageError(
            "semantic search needs an embedder: set [knowledge.embeddings] with provider = "
            '"openai" (url and model of any compatible endpoint) or "local"'
        )
    if not request.text.strip():
        raise UsageError("semantic search needs some words to search for")
    (vector,) = embedder.embed([clean_line(request.text)], "query")
    with database.reading(vectors=True) as db:
        model, sources = model_id(db, embedder.name), _numbers(db, request.sources)
        if model is None:
            raise UsageError(f"the store has no vectors of {embedder.name} yet; `moonbox sync` makes them")
        if mode == "semantic":
            nearest = semantic_matches(db, model, vector, request.limit, sources)
            return Hits(_rows(db, nearest, None, request.marks), mode="semantic")
        nearest = semantic_matches(db, model, vector, FUSED, sources)
        found = keyword_matches(db, query, FUSED, sources)
        return Hits(_rows(db, _fused(found, nearest)[: request.limit], query, request.marks), mode="hybrid")


def _numbers(db: sqlite3.Connection, names: tuple[str, ...] | None) -> list[int] | None:
    if names is None:
        return None
    return [number for name, number in db.execute("SELECT name, id FROM sources") if name in names]


def _fused(*rankings: Sequence[Match]) -> list[Match]:
    """Reciprocal rank fusion: a document's score is the sum of 1 / (60 + its rank) over the rankings that have it."""
    fused: dict[int, Match] = {}
    for ranking in rankings:
        for rank, match in enumerate(ranking, 1):
            share = 1 / (RANK_CONSTANT + rank)
            before = fused.get(match.document)
            fused[match.document] = replace(before or match, score=share + (before.score if before else 0.0))
    return sorted(fused.values(), key=lambda match: (-match.score, match.document))


def _rows(db: sqlite3.Connection, matches: Sequence[Match], query: Query | None, marks: tuple[str, str]) -> list[Hit]:
    texts: dict[int, str] = {}
    rows: dict[int, tuple[str, str, str, str | None, str | None]] = {}
    for match in matches:
        (texts[match.chunk],) = db.execute("SELECT text FROM chunks WHERE id = ?", (match.chunk,)).fetchone()
        rows[match.document] = db.execute(
            "SELECT sources.name, source_id, title, source_url, updated_at"
            " FROM documents JOIN sources ON sources.id = documents.source WHERE documents.id = ?",
            (match.document,),
        ).fetchone()
    if query is not None and query.groups and texts:
        shown = snippets(texts, " OR ".join((*query.each, *query.words())), marks)
    else:
        shown = {chunk: beginning(text) for chunk, text in texts.items()}
    hits = []
    for match in matches:
        source, source_id, title, source_url, updated_at = rows[match.document]
        hits.append(
            Hit(
                id=match.document,
                score=round(match.score, 6),
                source=source,
                source_id=source_id,
                title=joined(title),
                snippet=shown[match.chunk],
                source_url=source_url,
                updated_at=updated_at,
            )
        )
    return hits
