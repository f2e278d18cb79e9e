"""Connections to the store's SQLite file: many readers, one writer, and errors in plain words."""

from __future__ import annotations

import itertools
import os
import sqlite3
import threading
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from moonbox.errors import ClosedError, UsageError
from moonbox.knowledge.errors import KnowledgeError
from moonbox.knowledge.migrations import APPLICATION_ID, MIGRATIONS
from moonbox.knowledge.vec_extension import connect_with_vectors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Database"]

BUSY_SECONDS = 10.0
IDLE_READERS = 8
CACHE_KIB = 16 * 1024
WAL_BYTES = 64 * 1024 * 1024


class Database:
    """One SQLite file, shared safely between threads and processes.

    Readers see the last committed state and never wait. Writers take turns: threads by a lock, processes by SQLite's
    own, for at most ten seconds. Connections inherited through a fork are never used.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path, self.read_only = path, read_only
        self._abandoned: list[sqlite3.Connection] = []
        self._idle: dict[bool, list[sqlite3.Connection]]
        self._writer: sqlite3.Connection | None
        self._closed = False
        self._start()
        with self._in_plain_words():
            self._address = self._open_read_only() if read_only else self._create()

    @contextmanager
    def reading(self, *, vectors: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection for this caller alone, in one consistent state of the store; with sqlite-vec when asked for."""
        self._check()
        with self._in_plain_words():
            db = self._borrow(vectors)
            try:
                db.execute("BEGIN")
                yield db
            finally:
                self._give_back(db, vectors)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The writing connection, in one transaction that is undone when the block raises."""
        if self.read_only:
            raise UsageError(f"the knowledge base {self.path} was opened read-only")
        self._check()
        with self._in_plain_words(), self._write_lock:
            db = self._own_writer()
            # IMMEDIATE: the write lock is taken before anything is read, so that waiting for it cannot fail half-way.
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    def maintain(self) -> None:
        """Fold the write-ahead log into the file, as far as readers allow, and refresh the planner's statistics."""
        self._check()
        with self._in_plain_words(), self._write_lock:
            db = self._own_writer()
            db.execute("PRAGMA wal_checkpoint(PASSIVE)")
            db.execute("PRAGMA optimize")

    def close(self) -> None:
        """Close every connection that is not in use now; the others follow when their users are done."""
        if self._closed:
            return
        self._check()
        with self._guard:
            self._closed = True
            idle, self._idle = self._idle, {}
        for db in itertools.chain(*idle.values()):
            db.close()
        with self._write_lock:
            if self._writer is not None:
                self._writer.close()
            self._writer = None

    def _start(self) -> None:
        self._guard = threading.Lock()
        self._write_lock = threading.Lock()
        self._idle = {False: [], True: []}
        self._writer = None
        self._pid = os.getpid()

    def _check(self) -> None:
        if self._closed:
            raise ClosedError(f"the knowledge base {self.path} is closed")
        if self._pid != os.getpid():
            # SQLite's connections must not be used, nor closed, on the other side of a fork; locks may be held there.
            self._abandoned += [*itertools.chain(*self._idle.values()), *([self._writer] if self._writer else [])]
            self._start()

    def _borrow(self, vectors: bool) -> sqlite3.Connection:
        with self._guard:
            idle = self._idle.get(vectors)
            db = idle.pop() if idle else None
        if db is not None:
            return db
        connect = partial(self._connect, self._address)
        return connect_with_vectors(connect) if vectors else connect()

    def _give_back(self, db: sqlite3.Connection, vectors: bool) -> None:
        if db.in_transaction:
            db.execute("ROLLBACK")
        with self._guard:
            if not self._closed and self._pid == os.getpid() and len(self._idle[vectors]) < IDLE_READERS:
                self._idle[vectors].append(db)
                return
        db.close()

    def _own_writer(self) -> sqlite3.Connection:
        if self._closed:  # by another thread while this one waited for its turn
            raise ClosedError(f"the knowledge base {self.path} is closed")
        if self._writer is None:
            self._writer = self._connect(self._address)
        return self._writer

    def _connect(self, address: str) -> sqlite3.Connection:
        db = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            db.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
            db.execute("PRAGMA foreign_keys=ON")
            db.execute("PRAGMA trusted_schema=OFF")
            db.execute("PRAGMA synchronous=NORMAL")
            db.execute("PRAGMA secure_delete=ON")  # a document that was removed is gone from the file too
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opens the file, which connecting does not
        except BaseException:
            db.close()
            raise
        return db

    def _create(self) -> str:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # The owner's documents are inside: nobody else may read them. SQLite gives its side files the same mode.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise KnowledgeError(f"the knowledge base {self.path} cannot be made: {error.strerror}") from error
        address = self.path.absolute().as_uri() + "?mode=rw"
        db = self._connect(address)
        try:
            if db.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
                self._recognise(db)
            _use_wal(db)
            db.execute(f"PRAGMA journal_size_limit={WAL_BYTES}")
            _migrate(db)
        except BaseException:
            db.close()
            raise
        self._writer = db
        return address

    def _open_read_only(self) -> str:
        if not self.path.exists():
            raise KnowledgeError(f"there is no knowledge base at {self.path}; `moonbox sync` makes one")
        address = self.path.absolute().as_uri() + "?mode=ro"
        try:
            db = self._connect(address)
        except sqlite3.OperationalError as error:
            # Where nothing can be written SQLite cannot make the shared memory that a log needs. Without a log there is
            # nothing to share, and the file can be read as it is.
            log = self.path.with_name(self.path.name + "-wal")
            if error.sqlite_errorcode & 0xFF not in _NO_LOG or (log.exists() and log.stat().st_size):
                raise
            address += "&immutable=1"
            db = self._connect(address)
        try:
            self._recognise(db)
        except BaseException:
            db.close()
            raise
        self._idle[False].append(db)
        return address

    def _recognise(self, db: sqlite3.Connection) -> None:
        (mark,) = db.execute("PRAGMA application_id").fetchone()
        if mark != APPLICATION_ID:
            raise KnowledgeError(f"{self.path} is not a knowledge base but another database; choose another file")
        names = [name for (name,) in db.execute("SELECT name FROM migrations ORDER BY position")]
        known = [step.__name__ for step in MIGRATIONS]
        if names != known[: len(names)]:
            raise KnowledgeError(f"{self.path} was written by a newer moonbox; upgrade moonbox or choose another file")
        if self.read_only and names != known:
            raise KnowledgeError(f"{self.path} was written by an older moonbox; `moonbox sync` brings it up to date")

    @contextmanager
    def _in_plain_words(self) -> Iterator[None]:
        """The one place where SQLite's exceptions become ours."""
        try:
            yield
        except sqlite3.ProgrammingError:
            if self._closed:
                raise ClosedError(f"the knowledge base {self.path} is closed") from None
            raise
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            raise KnowledgeError(f"the knowledge base {self.path} {_WORDS.get(code, f'failed: {error}')}") from error


_NO_LOG = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
_WORDS = {
    sqlite3.SQLITE_BUSY: f"is busy: another process has been writing for more than {BUSY_SECONDS:g} s; try again",
    sqlite3.SQLITE_LOCKED: "is busy: try again",
    sqlite3.SQLITE_NOTADB: "is not a SQLite database; choose another file",
    sqlite3.SQLITE_CORRUPT: "is damaged; delete it and synchronise again",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full",
    sqlite3.SQLITE_READONLY: "cannot be written: the file or its folder is read-only",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; look at the permissions of the file and its folder",
}


def _use_wal(db: sqlite3.Connection) -> None:
    """Switch to write-ahead mode; SQLite does not wait for others by itself here, so this does."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def _migrate(db: sqlite3.Connection) -> None:
    if _applied(db) == len(MIGRATIONS):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        db.execute(f"PRAGMA application_id={APPLICATION_ID}")
        db.execute(
            "CREATE TABLE IF NOT EXISTS migrations (position INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT)"
        )
        # Asked again inside the transaction: another process may have been quicker.
        for position, step in enumerate(MIGRATIONS[_applied(db) :], _applied(db)):
            step(db)
            db.execute("INSERT INTO migrations VALUES (?, ?, datetime('now'))", (position, step.__name__))
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def _applied(db: sqlite3.Connection) -> int:
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone():
        return 0
    return int(db.execute("SELECT count(*) FROM migrations").fetchone()[0])
