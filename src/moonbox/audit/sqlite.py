"""Runs in a SQLite database, shared by any number of threads and processes."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from moonbox.audit.chain import json_object
from moonbox.audit.query import RunSummary, pick
from moonbox.audit.reader import SUMMARY, RunReader
from moonbox.audit.records import DAMAGED, Call, Run, cut_off
from moonbox.audit.retention import Prunable, Pruning, Retention
from moonbox.audit.tables import (
    INTO_CALLS,
    SCHEMA,
    UNFINISHED,
    add_to_chain,
    call_row,
    delete_runs,
    insert_run,
    prune_chain,
    verify_tables,
)
from moonbox.audit.writers import Writer, state_of_start
from moonbox.database import Database
from moonbox.errors import AuditError

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Callable, Iterator

    from moonbox.audit.chain import Verification


class SqliteSink(RunReader, Prunable):
    """A database in write-ahead mode: one transaction for each run, done when `write` returns.

    The commit is in the operating system's hands by then, so that SIGKILL of this process loses no run that was
    returned; SQLite's own checksums drop what was half written. With `fsync` each commit waits for the disk
    and survives a loss of power as well; without it, a loss of power may cost the latest runs, never the file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        fsync: bool = False,
        create: bool = True,
        timeout: float = 30.0,
        retention: Retention | None = None,
    ) -> None:
        super().__init__(retention)
        self.path = Path(path)
        self._closed = False
        self._database = Database(self.path, SCHEMA, create=create, durable=fsync, timeout=timeout)

    def write(self, run: Run) -> None:
        summary, record = RunSummary.of(run), run.to_json()
        with self._database.writing() as db:
            insert_run(db, summary, record, run.calls)
            add_to_chain(db, "run", run.id, record)
        self._retain(len(record))

    def start_run(self, run: Run) -> None:
        """Write down a run that is about to make its first call."""
        summary = RunSummary.of(cut_off(run, (), "unfinished"))
        record = json.dumps({**run.to_dict(), "writer": Writer.current().to_dict()}, separators=(",", ":"))
        with self._database.writing() as db:
            if _seq(db, run.id) is None:
                insert_run(db, summary, record, ())
                add_to_chain(db, "start", run.id, record)

    def start_call(self, run: str, call: Call) -> None:
        """Write down a call of the run of that id before its tool is invoked."""
        record = json.dumps(call.to_dict(), separators=(",", ":"))
        with self._database.writing() as db:
            db.execute("INSERT OR REPLACE INTO intents VALUES (?, ?, ?)", (run, call.index, record))
            add_to_chain(db, "call", run, record, call.index)
            # Not in a run that has ended: an abandoned call comes too late for its record.
            if (seq := _seq(db, run, unfinished=True)) is not None:
                _put_call(db, seq, call)

    end_call = start_call
    """Write down what came of the call."""

    def get(self, id: str) -> Run:
        """The run with that id, or with the only id that starts with it; raises UsageError for none or several."""
        with self._reading() as db:
            ids = db.execute("SELECT id FROM runs WHERE id BETWEEN ? AND ? ORDER BY id LIMIT 7", (id, id + _LAST))
            chosen = pick(id, [row[0] for row in ids])
            kind, record = db.execute("SELECT kind, record FROM runs WHERE id = ?", (chosen,)).fetchone()
            calls = db.execute("SELECT record FROM intents WHERE run = ?", (chosen,)).fetchall()
        try:
            data = json.loads(record)
            run = Run.from_dict(data)
            if kind != UNFINISHED:
                return run
            return cut_off(run, [Call.from_dict(json.loads(call)) for (call,) in calls], state_of_start(data))
        except DAMAGED:
            raise AuditError(f"the record of run {chosen} in {self.path} is damaged, or was tampered with") from None

    def tail(self, mark: int | None = None, limit: int = 100) -> tuple[int, tuple[RunSummary, ...]]:
        """The runs that were written after this mark, by any process, and the next mark; None marks the end."""
        with self._reading() as db:
            if mark is None:
                return int(db.execute("SELECT ifnull(max(seq), 0) FROM runs").fetchone()[0]), ()
            sql = f"SELECT seq, {SUMMARY} FROM runs WHERE seq > ? ORDER BY seq LIMIT ?"
            rows = db.execute(sql, (mark, limit)).fetchall()
        return (rows[-1][0] if rows else mark), tuple(RunSummary(*row[1:]) for row in rows)

    def verify(self, *, expect: str | None = None) -> Verification:
        """Whether every record fits the one before; `expect` is the hash of a record that must be there."""
        with self._reading() as db:
            return verify_tables(db, expect)

    def close(self) -> None:
        self._database.close()
        self._closed = True

    def _prune(self, choice: Pruning, *, dry_run: bool = False) -> int:
        if dry_run:
            with self._reading() as db:
                return len(choice.of_runs(_sizes(db)))
        with self._database.writing() as db:
            removed = choice.of_runs(_sizes(db))
            delete_runs(db, removed)
            if removed:
                prune_chain(db, removed)
        if removed:
            self._database.shrink()
        return len(removed)

    def _extent(self) -> tuple[int, int, float | None]:
        with self._database.reading() as db:
            runs, oldest = db.execute("SELECT count(*), min(started) FROM runs").fetchone()
            (pages,) = db.execute("PRAGMA page_count").fetchone()
            (free,) = db.execute("PRAGMA freelist_count").fetchone()
            (page,) = db.execute("PRAGMA page_size").fetchone()
        return runs, (pages - free) * page, oldest

    @contextlib.contextmanager
    def _reading(self, *, records: bool = True) -> Iterator[sqlite3.Connection]:
        """A closed sink stays readable, as every other sink does: the file is opened for this once."""
        if not self._closed:
            with self._database.reading(_reader) as db:
                yield db
            return
        database = Database(self.path, SCHEMA, read_only=True)
        with contextlib.closing(database), database.reading(_reader) as db:
            yield db


def _reader(connect: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
    """A connection that knows the state of a run of which only the start is on file."""
    db = connect()
    db.create_function("state_of_start", 1, lambda record: state_of_start(json_object(record.encode())))
    return db


def _put_call(db: sqlite3.Connection, seq: int, call: Call) -> None:
    """Enter a call of a run that has not ended, or its end."""
    found = db.execute("SELECT status FROM calls WHERE run = ? AND position = ?", (seq, call.index)).fetchone()
    db.execute(f"INSERT OR REPLACE {INTO_CALLS}", call_row(seq, call))
    failed = (call.status != "ok") - (found is not None and found[0] != "ok")
    sql = "UPDATE runs SET calls = calls + ?, failed_calls = failed_calls + ? WHERE seq = ?"
    db.execute(sql, (found is None, failed, seq))


def _seq(db: sqlite3.Connection, id: str, *, unfinished: bool = False) -> int | None:
    sql = "SELECT seq FROM runs WHERE id = ?" + (f" AND kind = '{UNFINISHED}'" if unfinished else "")
    row = db.execute(sql, (id,)).fetchone()
    return None if row is None else int(row[0])


def _sizes(db: sqlite3.Connection) -> list[tuple[str, float, int]]:
    """Every run with its start and size, in the order they were written."""
    return db.execute(
        """
        SELECT id, started, ifnull((SELECT sum(size) FROM chain WHERE chain.run = runs.id), 0) FROM runs ORDER BY seq
        """
    ).fetchall()


_LAST = "\U0010ffff"
"""No id has a character after this one."""
