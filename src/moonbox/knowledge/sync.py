"""Synchronisation: writes the changed items of a source to the store."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from moonbox.errors import MoonboxError, UsageError
from moonbox.knowledge import records
from moonbox.knowledge.store import MAX_CHUNKS, PIPELINE, Prepared, digest, embedded_text, remove, write
from moonbox.knowledge.text import chunk_text, joined
from moonbox.knowledge.vectors import forget_other_models, model_id, pending, register_model, write_vectors
from moonbox.wording import counted

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from moonbox.database import Database
    from moonbox.knowledge.embedding import Embedder

BATCH_ITEMS = 200
BATCH_CHARS = 2_000_000
REMOVED_AT_ONCE = 500
EMBEDDED_AT_ONCE = 256
PROGRESS_SECONDS = 0.1
KEPT_PROBLEMS = 100
KEPT_RUNS = 50
KEPT_REASONS = 20


def synchronise(
    database: Database,
    name: str,
    connector: records.Connector,
    *,
    embedder: Embedder | None = None,
    progress: Callable[[records.Progress], None] | None = None,
    wait: float = 0.0,
) -> records.SyncReport:
    """Bring one source up to date. The store is always consistent; after an interruption, the next sync continues."""
    with database.writing() as db:
        db.execute("INSERT OR IGNORE INTO sources (name) VALUES (?)", (name,))
        (source,) = db.execute("SELECT id FROM sources WHERE name = ?", (name,)).fetchone()
    with sync_lock(database, name, source, wait):
        run = _begin(database, source)
        sync = _Sync(database, name, source, connector, progress)
        status: Literal["ok", "failed", "interrupted"] = "interrupted"
        try:
            sync.scan()
            if embedder is not None:
                sync.embed(embedder)
            status = "failed" if sync.error else "ok"
        finally:
            report = sync.report()
            _finish(database, source, run, status, report)
        database.optimize()
        sync.finish()
        return report


def sync_lock(database: Database, name: str, source: int, wait: float) -> AbstractContextManager[None]:
    """A lock for changes of a source's documents. Raises SyncBusy if it is not free within `wait` seconds."""

    def busy() -> records.SyncBusy:
        with database.reading() as db:
            row = db.execute(
                "SELECT pid, started_at FROM sync_runs WHERE source = ? AND status = 'running'"
                " ORDER BY id DESC LIMIT 1",
                (source,),
            ).fetchone()
        who = f"process {row[0]} (since {row[1]})" if row else "another process"
        return records.SyncBusy(f"the source {name!r} is being synchronised by {who}; try again later")

    return database.lock(f"sync-{source}", wait, busy)


class _Known(NamedTuple):
    document: int
    digest: bytes
    fingerprint: str | None


@dataclass(slots=True)
class _Sync:
    database: Database
    name: str
    source: int
    connector: records.Connector
    progress: Callable[[records.Progress], None] | None
    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    ignored: Counter[str] = field(default_factory=Counter)
    problems: list[records.Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    error: str | None = None
    _known: dict[str, _Known] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _batch: list[Prepared] = field(default_factory=list)
    _batch_chars: int = 0
    _fingerprints: list[tuple[str | None, int]] = field(default_factory=list)
    _total: int | None = None
    _started: float = field(default_factory=time.monotonic)
    _phase_started: float = field(default_factory=time.monotonic)
    _reported: float = 0.0

    def scan(self) -> None:
        """Store what the connector yields. After a complete scan, remove the documents that it did not yield."""
        salt = f"{PIPELINE}:{type(self.connector).__name__}:{getattr(self.connector, 'version', '')}:"
        with self.database.reading() as db:
            sql = "SELECT source_id, id, digest, fingerprint FROM documents WHERE source = ?"
            self._known = {source_id: _Known(*known) for source_id, *known in db.execute(sql, (self.source,))}
        unchanged = {
            source_id: known.fingerprint.removeprefix(salt)
            for source_id, known in self._known.items()
            if known.fingerprint is not None and known.fingerprint.startswith(salt)
        }
        scan: Any = ()
        try:
            scan = self.connector.scan(unchanged)
            for scanned in scan:
                self._take(scanned, salt)
        except MoonboxError as error:
            self.error = str(error)
        except Exception as error:  # noqa: BLE001 - a connector may raise anything; its failure ends this scan alone
            self.error = f"{type(error).__name__}: {error}"
        finally:
            if hasattr(scan, "close"):
                scan.close()  # closes files and processes of a generator now, not at the next garbage collection
        self._flush()
        if self.error is None:
            self._remove([known.document for source_id, known in self._known.items() if source_id not in self._seen])

    def embed(self, embedder: Embedder) -> None:
        """Create the missing vectors. A failure becomes a note, because keyword search needs no vectors."""
        self._phase_started, self._total = time.monotonic(), None
        try:
            self._embed_pending(embedder)
        except MoonboxError as error:
            self.notes.append(f"some documents cannot be found by semantic search: {error}")

    def report_progress(
        self, phase: Literal["scan", "remove", "embed", "done"], *, done: int = 0, force: bool = False
    ) -> None:
        """Report progress, at most every PROGRESS_SECONDS unless `force` is set."""
        now = time.monotonic()
        if self.progress is None or (now - self._reported < PROGRESS_SECONDS and not force):
            return
        self._reported = now
        rate = done / max(now - self._phase_started, 1e-6)
        self.progress(
            records.Progress(
                self.name, phase, done, self._total, seconds=now - self._started, rate=rate, **self._numbers()
            )
        )

    def finish(self) -> None:
        self._phase_started, self._total = self._started, self.counts["done"]
        self.report_progress("done", done=self.counts["done"], force=True)

    def report(self) -> records.SyncReport:
        with self.database.reading() as db:
            (documents,) = db.execute("SELECT count(*) FROM documents WHERE source = ?", (self.source,)).fetchone()
        numbers = self._numbers()
        reasons = self.reasons.most_common(KEPT_REASONS)
        if others := self.reasons.total() - sum(count for _, count in reasons):
            reasons.append(("other reasons", others))
        return records.SyncReport(
            self.name,
            problems=tuple(self.problems),
            problem_count=numbers.pop("problems"),
            notes=(
                *(f"{count:,} skipped: {reason}" for reason, count in reasons),
                *(f"ignored in {counted(n, 'item')}: {key}" for key, n in self.ignored.most_common(KEPT_REASONS)),
                *self.notes,
            ),
            error=self.error,
            seconds=round(time.monotonic() - self._started, 3),
            documents=documents,
            **numbers,
        )

    def _numbers(self) -> dict[str, int]:
        names = ("added", "updated", "unchanged", "removed", "skipped", "problems", "embedded")
        return {name: self.counts[name] for name in names}

    def _take(self, scanned: records.Scanned, salt: str) -> None:
        match scanned:
            case records.Total(count):
                self._total = count
                return
            case records.Skipped(source_id, reason, count):
                self.counts["skipped"] += count
                self.reasons[reason] += count
            case records.Failed(source_id, message):
                self._seen.add(source_id)
                self._problem(source_id, message)
            case records.Unchanged(source_id):
                if source_id in self._known and source_id not in self._seen:
                    self._seen.add(source_id)
                    self.counts["unchanged"] += 1
            case _:
                self._take_item(scanned, salt)
        self.counts["done"] += 1
        self.report_progress("scan", done=self.counts["done"])

    def _take_item(self, scanned: Any, salt: str) -> None:
        try:
            item = scanned if isinstance(scanned, records.Item) else records.Item.from_dict(self._known_keys(scanned))
        except UsageError as error:
            name = scanned.get("source_id") if isinstance(scanned, dict) else None
            source_id = name if isinstance(name, str) and name else "(an item without source_id)"
            self._seen.add(source_id)
            self._problem(source_id, str(error))
            return
        if item.source_id in self._seen:
            self._problem(item.source_id, "the scan yielded this source_id twice; the first one is kept")
            return
        self._seen.add(item.source_id)
        known, item_digest = self._known.get(item.source_id), digest(item)
        fingerprint = None if item.fingerprint is None else salt + item.fingerprint
        if known is not None and known.digest == item_digest:
            self.counts["unchanged"] += 1
            if known.fingerprint != fingerprint:
                self._fingerprints.append((fingerprint, known.document))
        else:
            self.counts["added" if known is None else "updated"] += 1
            pieces = chunk_text(item.body, markdown=item.format == "markdown")[:MAX_CHUNKS]
            self._batch.append(Prepared(item, known.document if known else None, item_digest, fingerprint, pieces))
            self._batch_chars += len(item.body)
        if len(self._batch) + len(self._fingerprints) >= BATCH_ITEMS or self._batch_chars >= BATCH_CHARS:
            self._flush()

    def _known_keys(self, scanned: Any) -> Any:
        """The item without its unknown keys, which the report names: a typing error must not lose a document."""
        if not isinstance(scanned, Mapping):
            return scanned
        ignored = records.unknown_keys(scanned)
        for message in ignored.values():
            if message in self.ignored or len(self.ignored) < KEPT_PROBLEMS:
                self.ignored[message] += 1
        return {key: value for key, value in scanned.items() if key not in ignored}

    def _flush(self) -> None:
        """Write the collected items in one short transaction."""
        if not self._batch and not self._fingerprints:
            return
        with self.database.writing() as db:
            write(db, self.source, self._batch)
            db.executemany("UPDATE documents SET fingerprint = ? WHERE id = ?", self._fingerprints)
        self._batch, self._batch_chars, self._fingerprints = [], 0, []

    def _remove(self, documents: list[int]) -> None:
        self._phase_started, self._total = time.monotonic(), len(documents)
        for start in range(0, len(documents), REMOVED_AT_ONCE):
            with self.database.writing() as db:
                remove(db, self.source, documents[start : start + REMOVED_AT_ONCE])
            self.counts["removed"] = min(start + REMOVED_AT_ONCE, len(documents))
            self.report_progress("remove", done=self.counts["removed"])

    def _embed_pending(self, embedder: Embedder) -> None:
        """Commits each batch, so that the next sync can continue. No transaction is open while the model works."""
        with self.database.writing() as db:
            forget_other_models(db, self.source, model_id(db, embedder.name))
            chunks = pending(db, self.source)
        self._total = len(chunks)
        for start in range(0, len(chunks), EMBEDDED_AT_ONCE):
            ids = chunks[start : start + EMBEDDED_AT_ONCE]
            with self.database.reading() as db:
                sql = "SELECT title, heading, text FROM passages WHERE id = ?"
                texts = [embedded_text(*db.execute(sql, (id,)).fetchone()) for id in ids]
            vectors = embedder.embed([joined(text) for text in texts], "document")
            if len(vectors) != len(ids):
                raise records.EmbeddingError(f"{embedder.name} returned {len(vectors)} vectors for {len(ids)} texts")
            with self.database.writing() as db:
                model = register_model(db, embedder.name, len(vectors[0]))
                write_vectors(db, model, list(zip(ids, texts, vectors, strict=True)))
            self.counts["embedded"] = start + len(ids)
            self.report_progress("embed", done=self.counts["embedded"])

    def _problem(self, source_id: str, message: str) -> None:
        self.counts["problems"] += 1
        if len(self.problems) < KEPT_PROBLEMS:
            self.problems.append(records.Problem(source_id, message))


def _begin(database: Database, source: int) -> int:
    with database.writing() as db:
        # This process holds the lock, so a run with the status 'running' was killed.
        db.execute("UPDATE sync_runs SET status = 'interrupted' WHERE source = ? AND status = 'running'", (source,))
        cursor = db.execute(
            "INSERT INTO sync_runs (source, started_at, status, pid) VALUES (?, ?, 'running', ?)",
            (source, records.iso_time(time.time()), os.getpid()),
        )
        return cursor.lastrowid or 0


def _finish(database: Database, source: int, run: int, status: str, report: records.SyncReport) -> None:
    with database.writing() as db:
        db.execute(
            "UPDATE sync_runs SET status = ?, finished_at = ?, report = ? WHERE id = ?",
            (status, records.iso_time(time.time()), json.dumps(report.to_dict()), run),
        )
        db.execute(
            "DELETE FROM sync_runs WHERE source = ? AND id NOT IN"
            " (SELECT id FROM sync_runs WHERE source = ? ORDER BY id DESC LIMIT ?)",
            (source, source, KEPT_RUNS),
        )
