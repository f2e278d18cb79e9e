"""Keyword search: ranked chunks from the full-text index, the best one of each document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moonbox.knowledge.ids import DOCUMENT_OF, chunks_of, document_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from moonbox.knowledge.query import Query

__all__ = ["MOST_RANKED", "Match", "best_of", "keyword_matches"]

MOST_RANKED = 3_000
"""Ranking costs two microseconds a chunk. What is in more chunks than this hardly tells documents apart: then those
that have it in title or heading are ranked, and of the rest those that were indexed last."""

WEIGHTS = "8.0, 3.0, 1.0"  # of title, heading and text
DOCUMENT = DOCUMENT_OF.format("rowid")


@dataclass(frozen=True, slots=True)
class Match:
    """One document's best chunk."""

    document: int
    chunk: int
    score: float


def keyword_matches(
    db: sqlite3.Connection, query: Query, limit: int, sources: Sequence[int] | None = None
) -> list[Match]:
    """The documents that fit best, best first."""
    if not query.groups:
        return []
    search = _Search(db, limit, sources, query.nothing())
    matches = search.ranked(query.every())
    if len(matches) < limit and len(query.groups) > 1:
        matches = best_of([*matches, *search.spread(query)], limit)
    if not matches and (most := query.most()):
        matches = search.ranked(most)
    return matches or search.any_of(query.words())


class _Search:
    def __init__(self, db: sqlite3.Connection, limit: int, sources: Sequence[int] | None, excluded: str | None) -> None:
        self._db, self._limit = db, limit
        self._scope = "" if sources is None else f" AND ({chunks_of('rowid', sources)})"
        self._condition, self._values = "", {"not": excluded}
        if excluded:
            # In the whole document, not in this chunk alone.
            self._condition = f" AND {DOCUMENT} NOT IN ({self._documents('not')})"

    def ranked(self, terms: str) -> list[Match]:
        """Documents with a chunk that fits the terms."""
        if not self._is_common(terms):
            return self._top(terms)
        named = self._top(f"{{title heading}} : ({terms})")
        if len(named) == self._limit:
            return named  # their weight would have put them first anyhow
        return best_of([*named, *self._top(terms)], self._limit)

    def spread(self, query: Query) -> list[Match]:
        """Documents that meet every group, each perhaps in another chunk."""
        values = {f"group{number}": terms for number, terms in enumerate(query.each)}
        documents = " INTERSECT ".join(self._documents(name) for name in values)
        return self._top(" OR ".join(query.each), f" AND {DOCUMENT} IN ({documents})", values)

    def any_of(self, words: Sequence[str]) -> list[Match]:
        """Documents with any of the words, common ones only when there are no others."""
        rare = [word for word in words if not self._is_common(word)]
        return (self.ranked(" OR ".join(rare)) if rare else []) or self.ranked(" OR ".join(words))

    def _top(self, terms: str, condition: str = "", values: Mapping[str, str] | None = None) -> list[Match]:
        """The best chunk of each of the best documents, among the chunks that were indexed last."""
        wanted = self._limit * 4
        while True:
            rows = self._db.execute(
                "SELECT id, score FROM ("
                f"SELECT rowid AS id, -bm25(passage_index, {WEIGHTS}) AS score FROM passage_index"
                f" WHERE passage_index MATCH :terms{self._scope}{self._condition}{condition}"
                f" ORDER BY rowid DESC LIMIT {MOST_RANKED}"
                ") ORDER BY score DESC, id LIMIT :wanted",
                {"terms": terms, "wanted": wanted, **self._values, **(values or {})},
            ).fetchall()
            matches = best_of([Match(document_of(id), id, score) for id, score in rows], self._limit)
            if len(matches) == self._limit or len(rows) < wanted:
                return matches
            wanted *= 8  # a few documents with many chunks took all the places

    def _is_common(self, terms: str) -> bool:
        found = self._db.execute(
            f"SELECT 1 FROM passage_index WHERE passage_index MATCH ?{self._scope} LIMIT 1 OFFSET {MOST_RANKED}",
            (terms,),
        ).fetchone()
        return found is not None

    def _documents(self, name: str) -> str:
        """The query for the documents that fit the terms of that name."""
        return f"SELECT {DOCUMENT} FROM passage_index WHERE passage_index MATCH :{name}{self._scope}"


def best_of(matches: Sequence[Match], limit: int) -> list[Match]:
    """The best match of each document, best first."""
    best: dict[int, Match] = {}
    for match in sorted(matches, key=lambda match: (-match.score, match.chunk)):
        best.setdefault(match.document, match)
    return list(best.values())[:limit]
