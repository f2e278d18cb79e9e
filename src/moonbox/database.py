"""SQLite files that threads and processes share: opening, migrations, locks, and errors in plain words."""

from __future__ import annotations

import contextlib
import itertools
import os
import sqlite3
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox.errors import ClosedError, MoonboxError, UsageError
from moonbox.files import create_private_file
from moonbox.shortage import descriptors_shortage, disk_shortage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    Connect = Callable[[], sqlite3.Connection]

IDLE_READERS = 8
CACHE_KIB = 16 * 1024
WAL_BYTES = 64 * 1024 * 1024
CHECKPOINT_PAGES = 4_000  # SQLite's 1,000 make every few hundred small commits wait for the disk
LOCK_SLICE = 0.2


@dataclass(frozen=True, slots=True)
class Schema:
    """One kind of file: what it is called, how it is recognised, and the steps that led to its tables."""

    name: str
    """As errors call it: "knowledge base"."""
    application_id: int
    """In the file's header; it tells our files from those of other programs."""
    migrations: tuple[Callable[[sqlite3.Connection], None], ...]
    """Applied in order, each once, and recorded by name. Only ever append."""
    error: type[MoonboxError]
    """What is raised when the file cannot be used."""
    repair: str
    """What to do about a damaged file."""
    upgrade: str
    """What brings an older file up to date, for those who opened it to read."""


class Database:
    """One SQLite file in write-ahead mode.

    Readers see the last committed state and never wait. Writers take turns: threads by a lock, processes by SQLite's
    own, for at most `timeout` seconds. A forked process opens connections of its own.

    The file is made when it is missing, unless `create` is False; then it is first written to by `writing`. With
    `durable` a commit waits for the disk.
    """

    def __init__(
        self,
        path: Path,
        schema: Schema,
        *,
        create: bool = True,
        read_only: bool = False,
        durable: bool = False,
        timeout: float = 10.0,
    ) -> None:
        self.path, self.schema, self.read_only = path, schema, read_only
        self._durable, self._timeout = durable, timeout
        self._inherited: list[sqlite3.Connection] = []
        self._idle: dict[object, list[sqlite3.Connection]]
        self._writer: sqlite3.Connection | None
        self._closed = False
        self._start()
        self._address = path.absolute().as_uri()
        with self._plain_errors():
            if create and not read_only:
                self._create()
            else:
                self._open_existing()

    @contextlib.contextmanager
    def reading(
        self, connect_with: Callable[[Connect], sqlite3.Connection] | None = None
    ) -> Iterator[sqlite3.Connection]:
        """A connection for this caller alone, in one consistent state of the file.

        `connect_with` opens it in place of the plain way, to load an extension.
        """
        self._check()
        with self._plain_errors():
            db = self._borrow(connect_with)
            try:
                db.execute("BEGIN")
                yield db
            finally:
                self._give_back(db, connect_with)

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The writing connection, in one transaction that is undone when the block raises."""
        self._check_writable()
        with self._plain_errors(), self._write_lock, _transaction(self._own_writer()) as db:
            yield db

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Execute one statement, which is a transaction by itself; how many rows it has changed."""
        self._check_writable()
        try:
            with self._write_lock:
                return self._own_writer().execute(statement, values).rowcount
        except sqlite3.DatabaseError as error:
            raise self._in_plain_words(error) from error

    @contextlib.contextmanager
    def lock(self, name: str, wait: float, busy: Callable[[], MoonboxError]) -> Iterator[None]:
        """Hold a named lock over threads and processes; raises what `busy` gives when it is not free within `wait` s.

        The lock is SQLite's own, on an empty database beside the file: it works on every platform, and it goes when its
        holder dies, however that happens.
        """
        path = self.path.with_name(f"{self.path.name}-{name}")
        deadline = time.monotonic() + wait
        with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as db:
            while True:
                # In slices, so that Ctrl-C gets through.
                left = deadline - time.monotonic()
                db.execute(f"PRAGMA busy_timeout={int(1000 * max(0.0, min(LOCK_SLICE, left)))}")
                try:
                    db.execute("BEGIN EXCLUSIVE")
                    break
                except sqlite3.OperationalError as error:
                    if _code(error) != sqlite3.SQLITE_BUSY:
                        raise self.schema.error(f"the lock {path} cannot be taken: {error}") from error
                    if left <= 0:
                        raise busy() from None
            try:
                yield
            finally:
                db.execute("ROLLBACK")

    def optimize(self) -> None:
        """Fold the write-ahead log into the file, as far as readers allow, and refresh the planner's statistics."""
        self._check()
        with self._plain_errors(), self._write_lock:
            db = self._own_writer()
            db.execute("PRAGMA wal_checkpoint(PASSIVE)")
            db.execute("PRAGMA optimize")

    def shrink(self) -> None:
        """After much was deleted: a smaller file, once more than half of it is empty. Other writers postpone it."""
        self._check()
        # Suppressed: busy, or no room for the copy. The next call tries again.
        with self._write_lock, contextlib.suppress(sqlite3.OperationalError):
            db = self._own_writer()
            (pages,) = db.execute("PRAGMA page_count").fetchone()
            (free,) = db.execute("PRAGMA freelist_count").fetchone()
            db.execute("PRAGMA busy_timeout=1000")  # other threads wait for this connection
            try:
                if free > pages / 2:
                    db.execute("VACUUM")
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the log, too, holds what was deleted
            finally:
                db.execute(f"PRAGMA busy_timeout={int(self._timeout * 1000)}")

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

    @property
    def _name(self) -> str:
        return f"{self.schema.name} {self.path}"

    def _start(self) -> None:
        self._guard = threading.Lock()
        self._write_lock = threading.Lock()
        self._idle = {}
        self._writer = None
        self._pid = os.getpid()

    def _check_writable(self) -> None:
        if self.read_only:
            raise UsageError(f"the {self._name} was opened read-only")
        self._check()

    def _check(self) -> None:
        if self._closed:
            raise ClosedError(f"the {self._name} is closed")
        if self._pid != os.getpid():
            # SQLite's connections must not be used, nor closed, on the other side of a fork, and the locks may have
            # been held by a thread that does not exist here: keep the first out of reach and make new ones of both.
            self._inherited += [*itertools.chain(*self._idle.values()), *([self._writer] if self._writer else [])]
            self._start()

    def _borrow(self, connect_with: Callable[[Connect], sqlite3.Connection] | None) -> sqlite3.Connection:
        with self._guard:
            idle = self._idle.get(connect_with)
            db = idle.pop() if idle else None
        if db is not None:
            return db
        return self._connect() if connect_with is None else connect_with(self._connect)

    def _give_back(self, db: sqlite3.Connection, kind: object) -> None:
        if db.in_transaction:
            db.execute("ROLLBACK")
        with self._guard:
            idle = self._idle.setdefault(kind, [])
            if not self._closed and self._pid == os.getpid() and len(idle) < IDLE_READERS:
                idle.append(db)
                return
        db.close()

    def _own_writer(self) -> sqlite3.Connection:
        if self._closed:  # by another thread while this one waited for its turn
            raise ClosedError(f"the {self._name} is closed")
        if self._writer is None:
            self._writer = self._open_writer()
        return self._writer

    def _connect(self, options: str | None = None) -> sqlite3.Connection:
        address = self._address if options is None else self.path.absolute().as_uri() + options
        db = sqlite3.connect(address, uri=True, timeout=self._timeout, isolation_level=None, check_same_thread=False)
        with _closed_on_error(db):
            db.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
            db.execute("PRAGMA foreign_keys=ON")
            db.execute("PRAGMA trusted_schema=OFF")
            db.execute("PRAGMA secure_delete=ON")  # what is deleted is gone from the file too
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opens the file, which connecting does not
        return db

    def _open_writer(self) -> sqlite3.Connection:
        db = self._connect("?mode=rw")
        with _closed_on_error(db):
            if not _is_empty(db):
                self._recognise(db)
            _use_wal(db, self._timeout)
            db.execute(f"PRAGMA journal_size_limit={WAL_BYTES}")
            db.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}")
            db.execute(f"PRAGMA synchronous={'FULL' if self._durable else 'NORMAL'}")
            db.execute(f"PRAGMA fullfsync={'ON' if self._durable else 'OFF'}")  # macOS: past the drive's cache
            _migrate(db, self.schema)
        return db

    def _create(self) -> None:
        try:
            create_private_file(self.path)
        except OSError as error:
            raise self.schema.error(f"cannot open the {self._name}: {error.strerror}") from error
        self._writer = self._open_writer()
        self._address += "?mode=ro"

    def _open_existing(self) -> None:
        self._address += "?mode=ro"
        try:
            db = self._connect()
        except sqlite3.OperationalError as error:
            # Where nothing can be written SQLite cannot make the shared memory that a log needs. Without a log there is
            # nothing to share, and the file can be read as it is.
            if _code(error) not in _NO_LOG or (self._log().exists() and self._log().stat().st_size):
                raise
            self._address += "&immutable=1"
            db = self._connect()
        with _closed_on_error(db):
            if _is_empty(db):
                raise UsageError(f"the {self._name} is empty: nothing was ever written to it")
            if self._recognise(db) < len(self.schema.migrations):
                raise self.schema.error(
                    f"the {self._name} was written by an older version of moonbox; {self.schema.upgrade}"
                )
        self._idle[None] = [db]

    def _recognise(self, db: sqlite3.Connection) -> int:
        """How many migrations were applied to the file; raises when it is not ours or newer than this version."""
        (application_id,) = db.execute("PRAGMA application_id").fetchone()
        if application_id != self.schema.application_id:
            raise self.schema.error(
                f"the {self._name} cannot be used: the file is the database of another program; choose another file"
            )
        applied = _applied(db, self.schema)
        if applied is None:
            raise self.schema.error(
                f"the {self._name} was written by a newer version of moonbox; upgrade moonbox or choose another file"
            )
        return applied

    def _log(self) -> Path:
        return self.path.with_name(self.path.name + "-wal")

    @contextlib.contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise self._in_plain_words(error) from error

    def _in_plain_words(self, error: sqlite3.DatabaseError) -> Exception:
        """The one place where SQLite's exceptions become ours."""
        if isinstance(error, sqlite3.ProgrammingError):
            return ClosedError(f"the {self._name} is closed") if self._closed else error
        waited = f"another process has been writing to it for more than {self._timeout:g} s"
        message = _MESSAGES.get(_code(error), "failed: {error}")
        if _code(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR) and (lacking := descriptors_shortage()):
            message = f"cannot be opened: {lacking}"
        elif _code(error) == sqlite3.SQLITE_IOERR and (lacking := disk_shortage(self.path, self._log())):
            message = f"cannot be written: {lacking}"
        message = message.format(error=error, waited=waited, repair=self.schema.repair)
        return self.schema.error(f"the {self._name} {message}")


_NO_LOG = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
_MESSAGES = {
    sqlite3.SQLITE_BUSY: "is locked: {waited}; try again",
    sqlite3.SQLITE_LOCKED: "is locked; try again",
    sqlite3.SQLITE_NOTADB: "is not a SQLite database; choose another file",
    sqlite3.SQLITE_CORRUPT: "is damaged; {repair}",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full; free some space",
    sqlite3.SQLITE_READONLY: "cannot be written: the file or its folder is read-only",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; check the permissions of the file and its folder",
}


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


@contextlib.contextmanager
def _closed_on_error(db: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        db.close()
        raise


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    # IMMEDIATE: the write lock is taken before anything is read, so that waiting for it cannot fail half-way.
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _is_empty(db: sqlite3.Connection) -> bool:
    return bool(db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,))


def _use_wal(db: sqlite3.Connection, timeout: float) -> None:
    """Switch to write-ahead mode; SQLite does not wait for others by itself here, so this does."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            (mode,) = db.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
            continue
        if mode != "wal":
            raise sqlite3.OperationalError(f"write-ahead mode is not available there (journal mode {mode})")
        return


def _applied(db: sqlite3.Connection, schema: Schema) -> int | None:
    """How many migrations a file has; None when it has some that this version does not know."""
    known = [step.__name__ for step in schema.migrations]
    (count,) = db.execute("PRAGMA user_version").fetchone()
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone():
        return int(count) if count <= len(known) else None  # a file from before migrations had names
    names = [name for (name,) in db.execute("SELECT name FROM migrations ORDER BY position")]
    return len(names) if names == known[: len(names)] else None


def _migrate(db: sqlite3.Connection, schema: Schema) -> None:
    if _applied(db, schema) == len(schema.migrations):
        return
    with _transaction(db):
        # Asked inside the transaction: another process may have been quicker.
        done = _applied(db, schema) or 0
        db.execute(f"PRAGMA application_id={schema.application_id}")
        db.execute(
            "CREATE TABLE IF NOT EXISTS migrations (position INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT)"
        )
        for position, step in enumerate(schema.migrations):
            if position >= done:
                step(db)
            row = (position, step.__name__)
            db.execute("INSERT OR IGNORE INTO migrations VALUES (?, ?, datetime('now'))", row)
        db.execute(f"PRAGMA user_version={len(schema.migrations)}")
