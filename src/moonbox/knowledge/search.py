"""Search: what was typed as expressions of the full-text index, the three modes, and how keyword search ranks.

    words               documents with any of them; the more and the rarer, the better
    "two words"         the words next to each other; documents without them come only when there are no others
    pre*                words that begin so (three letters at least)
    -word -"a phrase"   not in the document (also: NOT word)
    this OR that        either; together they count as one word (AND may be written and changes nothing)

Anything else is punctuation. Words without meaning of their own ("how", "the") are left out when others remain. Any
input is valid.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from moonbox.errors import UsageError
from moonbox.knowledge.records import Hit, Hits, KnowledgeError, Mode
from moonbox.knowledge.store import DOCUMENT_OF, TOKENIZER, chunks_of, document_of
from moonbox.knowledge.text import clean_line, joined, separated
from moonbox.knowledge.vectors import Match, best_documents, best_of, connect_with_vectors, model_id, semantic_matches

if TYPE_CHECKING:
    from moonbox.database import Database
    from moonbox.knowledge.embedding import Embedder

MAX_LIMIT = 200
FUSED = 50
RANK_CONSTANT = 60
"""The usual constant of reciprocal rank fusion: how little the first few ranks differ from each other."""

WEIGHTS = "5.0, 2.0, 1.0"  # of title, heading and text
DOCUMENT = DOCUMENT_OF.format("rowid")
MOST_RANKED, NEWEST = 10_000, 3_000
"""Ranking a chunk takes one microsecond. A word in more than MOST_RANKED chunks selects only the NEWEST of them; for
the rank it also counts in the chunks that rarer words, titles and headings select."""
CANDIDATES = 3
"""The best CANDIDATES * `limit` documents are ranked again by how many of the words they have."""
CHUNK_BONUS, DOCUMENT_BONUS = 2.0, 0.5
"""What a document's score is raised by, as a multiple, when its best chunk, or all its chunks together, have all words.
With half of the words it is half of that."""

SNIPPET_TOKENS = 32
PLAIN_CHARS = 240
MAX_CHARS = 1_000
MAX_TERMS = 32
SHORTEST_PREFIX = 3


class SearchRequest(NamedTuple):
    text: str
    limit: int
    sources: list[int] | None
    marks: tuple[str, str]


def search(database: Database, embedder: Embedder | None, request: SearchRequest, mode: Mode) -> Hits:
    """Answer a request in one of the modes."""
    query = parse_query(request.text)
    if mode == "keyword":
        return _by_keyword(database, request, query)
    try:
        return _by_vector(database, embedder, request, query, mode)
    except (KnowledgeError, UsageError) as error:
        if mode == "semantic":
            raise
        hits = _by_keyword(database, request, query)
        return Hits(hits, mode="keyword", notes=(f"keyword search only: {error}",))


def keyword_matches(
    db: sqlite3.Connection, query: Query, limit: int, sources: Sequence[int] | None = None
) -> list[Match]:
    """The documents with any of the words, ranked by BM25 and by how many of the words they have."""
    if not query.groups:
        return []
    index = _Index(db, sources, query)
    return best_of(index.with_bonus(index.ranked(limit * CANDIDATES)), limit)


def _by_keyword(database: Database, request: SearchRequest, query: Query) -> Hits:
    with database.reading() as db:
        matches = keyword_matches(db, query, request.limit, request.sources)
        return Hits(_rows(db, matches, query, request.marks), mode="keyword")


def _by_vector(database: Database, embedder: Embedder | None, request: SearchRequest, query: Query, mode: Mode) -> Hits:
    if embedder is None:
        raise UsageError(
            "semantic search needs an embedder: set [knowledge.embeddings] with provider = "
            '"openai" (url and model of any compatible endpoint) or "local"'
        )
    if not request.text.strip():
        raise UsageError("semantic search needs some words to search for")
    (vector,) = embedder.embed([clean_line(request.text)], "query")
    with database.reading(connect_with_vectors) as db:
        model, sources = model_id(db, embedder.name), request.sources
        if model is None:
            raise UsageError(f"the store has no vectors of {embedder.name} yet; run `moonbox sync` to make them")
        if mode == "semantic":
            nearest = semantic_matches(db, model, vector, request.limit, sources)
            return Hits(_rows(db, nearest, None, request.marks), mode="semantic")
        nearest = semantic_matches(db, model, vector, FUSED, sources)
        worded = keyword_matches(db, query, FUSED, sources)
        return Hits(_rows(db, _fused(worded, nearest)[: request.limit], query, request.marks), mode="hybrid")


class _Index:
    """The full-text index as one query sees it."""

    def __init__(self, db: sqlite3.Connection, sources: Sequence[int] | None, query: Query) -> None:
        self._db, self._query = db, query
        self._any = " OR ".join(query.terms())
        # A word in a title is rarer, and says more, than in a text: a term of its own gives it a weight of its own.
        titles = (f"{{title}} : {term}" for term in query.terms())
        excluded = _any(query.excluded) if query.excluded else ""
        self._values = {"scored": " OR ".join((*query.terms(), *titles)), "excluded": excluded}
        self._scope = "" if sources is None else f" AND ({chunks_of('rowid', sources)})"
        self._condition = self._scope
        if excluded:
            # In the whole document, not in this chunk alone.
            found = f"SELECT {DOCUMENT} FROM passage_index WHERE passage_index MATCH :excluded{self._scope}"
            self._condition += f" AND {DOCUMENT} NOT IN ({found})"

    def ranked(self, limit: int) -> list[Match]:
        """The best chunk of each of the best documents."""
        query = self._query
        if (required := query.required()) and (matches := self._top([required], limit)):
            return matches
        if not self._is_common(self._any):
            return self._top([], limit)
        rare = [term for term in query.terms() if not self._is_common(term)]
        chosen = (*rare, " AND ".join(query.each), f"{{title heading}} : ({self._any})", self._any)
        return self._top(list(dict.fromkeys(chosen)), limit)

    def with_bonus(self, matches: Sequence[Match]) -> list[Match]:
        """The matches with higher scores the more of the words their chunks, and their documents, have."""
        groups, met = self._query.each, Counter[tuple[str, int]]()
        documents = ", ".join(str(match.document) for match in matches)
        sql = f"SELECT rowid FROM passage_index WHERE passage_index MATCH ? AND {DOCUMENT} IN ({documents})"
        for group in groups:
            chunks = [id for (id,) in self._db.execute(sql, (group,))]
            met.update(("chunk", id) for id in chunks)
            met.update(("document", id) for id in {document_of(chunk) for chunk in chunks})
        return [
            match._replace(
                score=match.score
                * (1 + CHUNK_BONUS * met["chunk", match.chunk] / len(groups))
                * (1 + DOCUMENT_BONUS * met["document", match.document] / len(groups)),
            )
            for match in matches
        ]

    def _top(self, chosen: Sequence[str], limit: int) -> list[Match]:
        """The best chunks of different documents, of those that fit any of the chosen terms, or of all that score."""
        condition, values = self._condition, {**self._values}
        if chosen:
            values |= {f"chosen{number}": terms for number, terms in enumerate(chosen)}
            newest = (
                f"SELECT * FROM (SELECT rowid FROM passage_index WHERE passage_index MATCH :chosen{number}{self._scope}"
                f" ORDER BY rowid DESC LIMIT {NEWEST})"
                for number in range(len(chosen))
            )
            condition += f" AND +rowid IN ({' UNION '.join(newest)})"
        sql = (
            f"SELECT rowid, -bm25(passage_index, {WEIGHTS}) AS score FROM passage_index"
            f" WHERE passage_index MATCH :scored{condition} ORDER BY score DESC, rowid LIMIT "
        )
        return best_documents(lambda wanted: self._db.execute(f"{sql}{wanted}", values).fetchall(), limit, limit * 4)

    def _is_common(self, terms: str) -> bool:
        row = self._db.execute(
            f"SELECT 1 FROM passage_index WHERE passage_index MATCH ?{self._scope} LIMIT 1 OFFSET {MOST_RANKED}",
            (terms,),
        ).fetchone()
        return row is not None


def _fused(*rankings: Sequence[Match]) -> list[Match]:
    """Reciprocal rank fusion: a document's score is the sum of 1 / (60 + its rank) over the rankings that have it."""
    fused: dict[int, Match] = {}
    for ranking in rankings:
        for rank, match in enumerate(ranking, 1):
            share = 1 / (RANK_CONSTANT + rank)
            before = fused.get(match.document)
            fused[match.document] = (before or match)._replace(score=share + (before.score if before else 0.0))
    return sorted(fused.values(), key=lambda match: (-match.score, match.document))


def _rows(db: sqlite3.Connection, matches: Sequence[Match], query: Query | None, marks: tuple[str, str]) -> list[Hit]:
    sql = (
        "SELECT text, sources.name, source_id, title, source_url, updated_at FROM chunks, documents"
        " JOIN sources ON sources.id = documents.source WHERE chunks.id = ? AND documents.id = ?"
    )
    rows = {match.chunk: db.execute(sql, (match.chunk, match.document)).fetchone() for match in matches}
    texts = {chunk: row[0] for chunk, row in rows.items()}
    if query is not None and query.groups and texts:
        snippets = _snippets(texts, " OR ".join(query.terms()), marks)
    else:
        snippets = {chunk: _beginning(text) for chunk, text in texts.items()}
    hits = []
    for match in matches:
        _, source, source_id, title, source_url, updated_at = rows[match.chunk]
        own = f"{source}:{source_id}", round(match.score, 6), source, source_id, joined(title), snippets[match.chunk]
        hits.append(Hit(*own, source_url, updated_at))
    return hits


def _snippets(texts: Mapping[int, str], words: str, marks: tuple[str, str]) -> dict[int, str]:
    """For each chunk, its best passage with the found words between the marks.

    The words are found by an index in memory over these few chunks: SQLite's own snippets would walk through the whole
    index again, and only the same tokenizer knows which words count as the same.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute(f"CREATE VIRTUAL TABLE chunks USING fts5 (text, tokenize = '{TOKENIZER}')")
        db.execute("BEGIN")
        db.executemany("INSERT INTO chunks (rowid, text) VALUES (?, ?)", texts.items())
        rows = db.execute(
            f"SELECT rowid, snippet(chunks, 0, ?, ?, '…', {SNIPPET_TOKENS}) FROM chunks WHERE chunks MATCH ?",
            (*marks, words),
        ).fetchall()
    passages = {chunk: clean_line(joined(text)) for chunk, text in rows}
    return {chunk: passages.get(chunk) or _beginning(text) for chunk, text in texts.items()}


def _beginning(text: str) -> str:
    """A chunk's first words."""
    line = clean_line(joined(text[: PLAIN_CHARS * 4]))
    if len(line) <= PLAIN_CHARS:
        return line
    return line[:PLAIN_CHARS].rsplit(" ", 1)[0].rstrip() + "…"


class Term(NamedTuple):
    """One word, phrase or prefix."""

    text: str
    quoted: bool = False
    prefix: bool = False

    @property
    def expression(self) -> str:
        quoted = separated(self.text).replace('"', " ")
        return f'"{quoted}"*' if self.prefix else f'"{quoted}"'

    def parts(self) -> tuple[Term, ...]:
        """The words of a compound such as `get_user` or `a/b`, which as a whole is a phrase."""
        words = _WORD.findall(self.text)
        if self.quoted or len(words) < 2:
            return (self,)
        *most, last = words
        return (*(Term(word) for word in most), Term(last, prefix=self.prefix))


class Query(NamedTuple):
    """A query: groups of alternatives, of which more matches rank higher, and exclusions."""

    groups: tuple[tuple[Term, ...], ...] = ()
    excluded: tuple[Term, ...] = ()

    @property
    def each(self) -> tuple[str, ...]:
        """One expression for each group."""
        return tuple(_any(group) for group in self.groups)

    def required(self) -> str | None:
        """The groups that were written in quotes."""
        quoted = [_any(group) for group in self.groups if all(term.quoted for term in group)]
        return " AND ".join(quoted) or None

    def terms(self) -> tuple[str, ...]:
        """What counts for the ranking: each group, and the words of compounds."""
        compounds = (term for group in self.groups for term in group if len(term.parts()) > 1)
        parts = (part.expression for term in compounds for part in term.parts())
        return tuple(dict.fromkeys((*self.each, *parts)))


def parse_query(text: str) -> Query:
    """Read a query; never fails."""
    groups: list[list[Term]] = []
    excluded: list[Term] = []
    joining = negating = False
    for token in list(_TOKEN.finditer(clean_line(text)[:MAX_CHARS]))[:MAX_TERMS]:
        word = token["word"] or ""
        if word in ("OR", "AND", "NOT"):
            joining, negating = word == "OR" and bool(groups), word == "NOT"
            continue
        term = _term(token)
        if term is not None:
            if token["minus"] or negating:
                excluded.append(term)
            elif joining:
                groups[-1].append(term)
            else:
                groups.append([term])
        joining = negating = False
    kept = [group for group in groups if len(group) > 1 or not _is_stop_word(group[0])]
    return Query(tuple(tuple(group) for group in kept or groups), tuple(excluded))


_WORD = re.compile(r"[^\W_]+")
_TOKEN = re.compile(r'(?P<minus>-)?(?:"(?P<phrase>[^"]*)(?:"|$)(?P<after>\*?)|(?P<word>[^\s"]+))')
_STOP_WORDS = frozenset({
    "a", "about", "am", "an", "and", "any", "are", "as", "at", "be", "been", "being", "by", "can", "could", "did",
    "do", "does", "for", "from", "had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "me", "my",
    "of", "on", "or", "our", "please", "should", "so", "tell", "than", "that", "the", "their", "them", "then",
    "there", "these", "they", "this", "those", "to", "us", "was", "we", "were", "what", "when", "where", "which",
    "who", "whom", "whose", "why", "will", "with", "would", "you", "your",
})  # fmt: skip


def _term(token: re.Match[str]) -> Term | None:
    if token["phrase"] is not None:
        text, quoted, prefix = token["phrase"], True, bool(token["after"])
    else:
        text, quoted, prefix = token["word"].rstrip("*"), False, token["word"].endswith("*")
    words = _WORD.findall(text)
    return Term(text, quoted, prefix and len(words[-1]) >= SHORTEST_PREFIX) if words else None


def _is_stop_word(term: Term) -> bool:
    plain = not term.quoted and not term.prefix
    return plain and _STOP_WORDS.issuperset(_WORD.findall(term.text.lower()))


def _any(terms: tuple[Term, ...]) -> str:
    expressions = [term.expression for term in terms]
    return expressions[0] if len(expressions) == 1 else f"({' OR '.join(expressions)})"
