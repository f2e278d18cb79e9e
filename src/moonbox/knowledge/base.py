"""The knowledge base: documents from many sources in one searchable file, and the tools that search and read it."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from moonbox.closing import Closing
from moonbox.errors import ArgumentError, ToolError, UsageError
from moonbox.knowledge.records import (
    Chunk,
    Document,
    DocumentNotFound,
    Hit,
    Hits,
    KnowledgeError,
    Mode,
    SourceInfo,
    Stats,
    SyncReport,
)
from moonbox.knowledge.search import MAX_LIMIT, SearchRequest, search
from moonbox.knowledge.store import document_range, open_store, position_of, remove
from moonbox.knowledge.sync import sync_lock, synchronise
from moonbox.knowledge.text import joined
from moonbox.suggest import unknown
from moonbox.tools.tool import Tool
from moonbox.wording import counted

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from moonbox.knowledge.config import KnowledgeConfig, Unusable
    from moonbox.knowledge.embedding import Embedder
    from moonbox.knowledge.records import Connector, Progress

MODES: tuple[str, ...] = get_args(Mode)


class KnowledgeBase(Closing):
    """Documents, cut into passages and indexed, in one SQLite file that threads and processes may share.

    `sources` are the places that `sync` reads; `embedder` adds semantic and hybrid search.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        sources: Mapping[str, Connector] | None = None,
        embedder: Embedder | None = None,
        read_only: bool = False,
    ) -> None:
        self._sources = dict(sources or {})
        self._embedder = embedder
        self._database = open_store(Path(path), read_only=read_only)

    @classmethod
    def from_config(cls, config: KnowledgeConfig, *, read_only: bool = False) -> KnowledgeBase:
        """The knowledge base that a configuration describes."""
        return cls(config.path, sources=config.sources, embedder=config.embedder(), read_only=read_only)

    @property
    def path(self) -> Path:
        return self._database.path

    def search(
        self,
        query: str,
        mode: Mode = "keyword",
        limit: int = 12,
        source: str | Sequence[str] | None = None,
        *,
        marks: tuple[str, str] = ("**", "**"),
    ) -> Hits:
        """The documents that match best, one row each, best first. Any text is a valid query; some find nothing.

        `source` names one source or several; `marks` go around the found words of a snippet.
        """
        if not isinstance(query, str):
            raise UsageError(f"query must be a string, not {type(query).__name__}")
        if mode not in MODES:
            raise UsageError(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
            raise UsageError(f"limit must be an integer from 1 to {MAX_LIMIT}, not {limit!r}")
        request = SearchRequest(query, limit, self._chosen(source), marks)
        hits = search(self._database, self._embedder, request, mode)
        names = [source] if isinstance(source, str) else source
        hits.notes += tuple(self._without_documents(names))
        return hits

    def get(self, id: str) -> Document:
        """One document with its chunks, by the id that a search gave: "source:source_id"."""
        if not isinstance(id, str):
            raise UsageError(f'id must be a string "source:source_id", not {id!r}')
        source, _, source_id = id.encode("utf-8", "replace").decode().partition(":")
        with self._database.reading() as db:
            row = db.execute(
                "SELECT documents.id, sources.id, name, source_id, title, source_url, updated_at, author, metadata"
                " FROM documents JOIN sources ON sources.id = documents.source WHERE name = ? AND source_id = ?",
                (source, source_id),
            ).fetchone()
            if row is None:
                raise DocumentNotFound(f"unknown document {id!r}; search returns valid ids")
            number, source_number, source, source_id, title, source_url, updated_at, author, metadata = row
            rows = db.execute(
                "SELECT id, heading, text, overlap FROM chunks WHERE id BETWEEN ? AND ? ORDER BY id",
                document_range(source_number, number),
            ).fetchall()
        chunks = tuple(Chunk(position_of(id), joined(heading), joined(text)[cut:]) for id, heading, text, cut in rows)
        return Document(
            id=f"{source}:{source_id}",
            source=source,
            source_id=source_id,
            title=joined(title),
            source_url=source_url,
            updated_at=updated_at,
            author=author,
            metadata=json.loads(metadata),
            body="".join(chunk.text for chunk in chunks),
            chunks=chunks,
        )

    def sync(self, source: str, *, progress: Callable[[Progress], None] | None = None, wait: float = 0.0) -> SyncReport:
        """Bring one source up to date; raises SyncBusy when another sync of it is not done within `wait` seconds.

        When the scan fails, the report's `error` says why.
        """
        if source not in self._sources:
            raise UsageError(unknown("source", source, self._sources))
        return synchronise(
            self._database, source, self._sources[source], embedder=self._embedder, progress=progress, wait=wait
        )

    def sources(self) -> list[SourceInfo]:
        """Every source that is configured or that the store has documents of."""
        with self._database.reading() as db:
            stored = {name: _source_info(db, number, name, name in self._sources) for name, number in _numbers(db)}
        new = [never_synchronised(name) for name in self._sources if name not in stored]
        return sorted((*stored.values(), *new), key=lambda info: info.name)

    def forget(self, source: str, *, wait: float = 0.0) -> int:
        """Remove a source from the store with all its documents; returns how many there were."""
        with self._database.reading() as db:
            number = dict(_numbers(db)).get(source)
        if number is None:
            raise UsageError(unknown("source", source, [info.name for info in self.sources()]))
        removed = 0
        with sync_lock(self._database, source, number, wait):
            while True:
                with self._database.writing() as db:
                    rows = db.execute("SELECT id FROM documents WHERE source = ? LIMIT 500", (number,)).fetchall()
                    remove(db, number, [id for (id,) in rows])
                    if not rows:
                        db.execute("DELETE FROM sync_runs WHERE source = ?", (number,))
                        db.execute("DELETE FROM sources WHERE id = ?", (number,))
                        return removed
                removed += len(rows)

    def stats(self) -> Stats:
        """The store in numbers."""
        with self._database.reading() as db:
            models = [name for (name,) in db.execute("SELECT name FROM models ORDER BY name")]
            tables = {"sources": "sources", "documents": "documents", "chunks": "chunks", "embedded": "coarse_vectors"}
            sql = "SELECT count(*) FROM {}"
            counts = {name: db.execute(sql.format(table)).fetchone()[0] for name, table in tables.items()}
            size = self.path.stat().st_size
            return Stats(path=str(self.path), bytes=size, embedder=", ".join(models) or None, **counts)

    def warm(self) -> None:
        """Load the embedder's model now, where it has one, so that the first query does not wait for it."""
        getattr(self._embedder, "warm", lambda: None)()

    def close(self) -> None:
        """Close the file, and the embedder's connections. Closing twice is fine; using it later raises ClosedError."""
        self._database.close()
        getattr(self._embedder, "close", lambda: None)()

    def _without_documents(self, names: Sequence[str] | None) -> Iterator[str]:
        """What there is to say of the sources in which nothing can be found."""
        with self._database.reading() as db:
            numbers = dict(_numbers(db))
            for name in dict.fromkeys((*self._sources, *numbers) if names is None else names):
                number = numbers.get(name)
                sql = "SELECT 1 FROM documents WHERE source = ? LIMIT 1"
                if number is None or not db.execute(sql, (number,)).fetchone():
                    info = _source_info(db, number, name, name in self._sources)
                    yield f"the source {name!r} has no documents" + "".join(f"; {note}" for note in info.notes[:1])

    def _chosen(self, source: str | Sequence[str] | None) -> list[int] | None:
        """The numbers of the sources; one that was never synchronised has none."""
        if source is None:
            return None
        names = dict.fromkeys([source] if isinstance(source, str) else source)
        with self._database.reading() as db:
            numbers = dict(_numbers(db))
        for name in names:
            if name not in self._sources and name not in numbers:
                raise UsageError(unknown("source", name, sorted({*self._sources, *numbers})))
        return [numbers[name] for name in names if name in numbers]


def never_synchronised(name: str) -> SourceInfo:
    """The state of a source that is configured and was never synchronised."""
    return SourceInfo(name, True, False, 0, None, (_NOTES["never"].format(name=name),))


_NOTES = {
    "never": "never synchronised; run: moonbox sync {name}",
    "running": "a synchronisation is running, or was killed",
    "interrupted": "the last synchronisation was interrupted; the next one continues it",
    "failed": "the last scan failed: {error}",
}
"""What is said about a source, by the status of its last synchronisation."""


def _numbers(db: sqlite3.Connection) -> list[tuple[str, int]]:
    return db.execute("SELECT name, id FROM sources").fetchall()


def _source_info(db: sqlite3.Connection, number: int | None, name: str, configured: bool) -> SourceInfo:
    (documents,) = db.execute("SELECT count(*) FROM documents WHERE source = ?", (number,)).fetchone()
    row = db.execute(
        "SELECT status, coalesce(finished_at, started_at), report FROM sync_runs"
        " WHERE source = ? ORDER BY id DESC LIMIT 1",
        (number,),
    ).fetchone()
    status, when, report = row or ("never", None, None)
    notes = [] if configured else ["no longer in the configuration; `moonbox sync --prune` removes it"]
    report = json.loads(report) if report else {}
    if status in _NOTES:
        notes.append(_NOTES[status].format(name=name, error=report.get("error")))
    if report.get("problem_count"):
        first = report["problems"][0]
        unread = counted(report["problem_count"], "item")
        notes.append(f"{unread} could not be read, first {first['source_id']}: {first['message']}")
    notes += report.get("notes", [])
    healthy = status in ("ok", "running") and not report.get("problem_count")
    return SourceInfo(name, configured, healthy, documents, when, tuple(notes))


def knowledge_tools(base: KnowledgeBase | Unusable) -> list[Tool]:
    """The three tools over one knowledge base; they only read."""

    def search(query: str, mode: Mode = "keyword", limit: int = 12, source: str | None = None) -> list[Hit]:
        """Search the user's own documents. Documents with more of the words, and with rarer ones, come first;
        "quotes" make a phrase, -word excludes, pre* is a prefix. `get` reads a whole document.

        Args:
            query: What to look for.
            mode: By words, by meaning (when embeddings are configured), or both.
            limit: How many documents, at most 200.
            source: Only this source.
        """
        with _as_tool_errors():
            hits = base.search(query, mode, limit, source)
            if not hits and hits.notes:
                raise ToolError(f"nothing found; {'; '.join(hits.notes)}", code="not_found")
            return hits

    def get(id: str) -> Document:
        """One document by the id that search gave: its whole text is `body`, its passages are `chunks`.

        Args:
            id: "source:source_id", as search gives it.
        """
        with _as_tool_errors():
            return base.get(id)

    def sources() -> list[SourceInfo]:
        """Where the documents come from, how many each source has, and when it was last synchronised."""
        with _as_tool_errors():
            return base.sources()

    hints = {"read_only": True, "idempotent": True}
    return [Tool.from_function(function, hints=hints) for function in (search, get, sources)]


@contextmanager
def _as_tool_errors() -> Iterator[None]:
    """Errors of the knowledge base as a script sees them."""
    try:
        yield
    except UsageError as error:
        raise ArgumentError(str(error)) from error
    except DocumentNotFound as error:
        raise ToolError(str(error), code="not_found") from error
    except KnowledgeError as error:
        raise ToolError(str(error), code="knowledge_error", retryable=True) from error
