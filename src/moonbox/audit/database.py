"""Connections to the audit database."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from typing import TYPE_CHECKING

from moonbox.audit.migrations import APPLICATION_ID, MIGRATIONS
from moonbox.errors import AuditError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Writer", "check", "connect", "is_empty"]


class Writer:
    """The connection through which one process writes; as a context manager, one transaction."""

    def __init__(self, path: Path, fsync: bool, timeout: float) -> None:
        self._lock = threading.Lock()
        self._timeout = timeout
        self._db = connect(path.absolute().as_uri(), timeout)
        try:
            if not is_empty(self._db):
                check(self._db, path)
            _use_wal(self._db, timeout)
            self._db.execute(f"PRAGMA synchronous={'FULL' if fsync else 'NORMAL'}")
            self._db.execute(f"PRAGMA fullfsync={'ON' if fsync else 'OFF'}")  # macOS: past the drive's cache
            self._db.execute("PRAGMA secure_delete=ON")  # what is pruned is gone from the file too
            _migrate(self._db)
        except BaseException:
            self._db.close()
            raise

    def __enter__(self) -> sqlite3.Connection:
        self._lock.acquire()
        try:
            # IMMEDIATE: the write lock is taken before anything is read, so that waiting for it cannot fail half-way.
            self._db.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._lock.release()
            raise
        return self._db

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            self._db.execute("COMMIT" if kind is None else "ROLLBACK")
        except sqlite3.Error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        finally:
            self._lock.release()

    def give_back_space(self) -> None:
        """After much was deleted: a smaller file, once more than half of it is empty. Others at work postpone it."""
        with self._lock, contextlib.suppress(sqlite3.OperationalError):  # busy, or no room for the copy: next time
            (pages,) = self._db.execute("PRAGMA page_count").fetchone()
            (free,) = self._db.execute("PRAGMA freelist_count").fetchone()
            self._db.execute("PRAGMA busy_timeout=1000")  # runs wait for this connection meanwhile
            try:
                if free > pages / 2:
                    self._db.execute("VACUUM")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the log, too, holds what was deleted
            finally:
                self._db.execute(f"PRAGMA busy_timeout={int(self._timeout * 1000)}")

    def close(self) -> None:
        with self._lock:
            self._db.close()


def connect(address: str, timeout: float) -> sqlite3.Connection:
    return sqlite3.connect(address, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False)


def is_empty(db: sqlite3.Connection) -> bool:
    return bool(db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,))


def check(db: sqlite3.Connection, path: Path) -> None:
    (mark,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if mark != APPLICATION_ID:
        raise AuditError(f"{path} is not an audit trail but another program's database; choose another file")
    if version > len(MIGRATIONS):
        raise AuditError(
            f"the audit trail {path} was written by a newer moonbox "
            f"(schema {version}, this one knows {len(MIGRATIONS)}); upgrade moonbox or choose another file"
        )


def _use_wal(db: sqlite3.Connection, timeout: float) -> None:
    """Switch to write-ahead mode; SQLite does not wait for others by itself here, so this does."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            (mode,) = db.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
            continue
        if mode != "wal":
            raise sqlite3.OperationalError(f"write-ahead mode is not available there (journal mode {mode})")
        return


def _migrate(db: sqlite3.Connection) -> None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    while version < len(MIGRATIONS):
        db.execute("BEGIN IMMEDIATE")
        try:
            (version,) = db.execute("PRAGMA user_version").fetchone()  # another process may have been quicker
            if version < len(MIGRATIONS):
                MIGRATIONS[version](db)
                version += 1
                db.execute(f"PRAGMA application_id={APPLICATION_ID}")
                db.execute(f"PRAGMA user_version={version}")
            db.execute("COMMIT")
        except BaseException:
            db.execute("ROLLBACK")
            raise
