"""Runs in a SQLite database, shared by any number of threads and processes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from moonbox.audit import tables
from moonbox.audit.chain import Verification, check_chain, json_object
from moonbox.audit.files import FileTrail, Pruning
from moonbox.audit.query import SUMMARY, RunSummary
from moonbox.audit.records import Call, Run
from moonbox.audit.writers import state_of_start
from moonbox.database import Database

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator


_BUSY_SECONDS = 30.0


class SqliteSink(FileTrail):
    """A database in write-ahead mode: one transaction for each run, done when `write` returns.

    The commit is in the operating system's hands by then, so that SIGKILL of this process loses no run that was
    returned; SQLite's own checksums drop what was half written. With `fsync` each commit waits for the disk
    and survives a loss of power as well; without it, a loss of power may cost the latest runs, never the file.
    """

    def _open(self, *, create: bool, fsync: bool) -> None:
        self._database = Database(self.path, tables.SCHEMA, create=create, durable=fsync, timeout=_BUSY_SECONDS)

    def tail(self, mark: int | None = None, limit: int = 100) -> tuple[int, tuple[RunSummary, ...]]:
        """The runs that were written after this mark, by any process, and the next mark; None marks the end."""
        with self._reading() as db:
            if mark is None:
                return int(db.execute("SELECT ifnull(max(seq), 0) FROM runs").fetchone()[0]), ()
            sql = f"SELECT seq, {SUMMARY} FROM runs WHERE seq > ? ORDER BY seq LIMIT ?"
            rows = db.execute(sql, (mark, limit)).fetchall()
        return (rows[-1][0] if rows else mark), tuple(RunSummary(*row[1:]) for row in rows)

    def verify(self, *, expect: str | None = None) -> Verification:
        with self._reading() as db:
            return check_chain(tables.chain_links(db), expect)

    def close(self) -> None:
        self._database.close()
        super().close()

    def _put(self, event: str, run: str, record: str, about: Run | Call) -> None:
        with self._database.writing() as db:
            if isinstance(about, Call):
                tables.put_call(db, run, about, record)
                tables.add_to_chain(db, "call", run, record, about.index)
            elif event == "run":
                tables.put_run(db, about, record)
                tables.add_to_chain(db, "run", run, record)
            elif tables.put_start(db, about, record):
                tables.add_to_chain(db, "start", run, record)

    def _prune(self, choice: Pruning, *, dry_run: bool = False) -> int:
        if dry_run:
            with self._reading() as db:
                return len(choice.of_runs(_sizes(db)))
        with self._database.writing() as db:
            removed = choice.of_runs(_sizes(db))
            tables.delete_runs(db, removed)
            if removed:
                tables.prune_chain(db, removed)
        if removed:
            self._database.shrink()
        return len(removed)

    def _size(self) -> int:
        with self._database.reading() as db:
            pages, free, page = (
                db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
            )
        return int((pages - free) * page)

    @contextlib.contextmanager
    def _reading(self, *, records: bool = True, prefix: str = "") -> Iterator[sqlite3.Connection]:
        """A closed sink stays readable, as every other sink does: the file is opened for this once."""
        if not self._closed:
            with self._database.reading(_reader) as db:
                yield db
            return
        database = Database(self.path, tables.SCHEMA, read_only=True)
        with contextlib.closing(database), database.reading(_reader) as db:
            yield db


def _reader(connect: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
    """A connection that knows the state of a run of which only the start is on file."""
    db = connect()
    db.create_function("state_of_start", 1, lambda record: state_of_start(json_object(record)))
    return db


def _sizes(db: sqlite3.Connection) -> list[tuple[str, float, int]]:
    """Every run with its start and size, in the order they were written."""
    return db.execute(
        """
        SELECT id, started, ifnull((SELECT sum(size) FROM chain WHERE chain.run = runs.id), 0) FROM runs ORDER BY seq
        """
    ).fetchall()
