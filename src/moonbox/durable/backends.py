"""Where a journal is kept: a SQLite file or a PostgreSQL database, behind the same few operations.

Statements are written with `?` for their values, once for both.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from moonbox.audit.tables import SCHEMA
from moonbox.database import Database
from moonbox.errors import ClosedError, JournalError, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_SCHEMA = replace(
    SCHEMA, name="journal", error=JournalError, repair="restore it from a copy; nothing was changed in it"
)
_VERSION = 3
"""In version 1 one event could not both begin and end a run; versions 1 and 2 have no table `handles`, the last one."""


# In SQLite the tables can be in the file of an audit trail.
_TABLES = (
    """
    CREATE TABLE repls (
        id TEXT PRIMARY KEY,
        created {real} NOT NULL,
        language TEXT NOT NULL,
        labels TEXT NOT NULL,
        parent TEXT NOT NULL,
        fence BIGINT NOT NULL,
        holder TEXT NOT NULL,
        expires {real} NOT NULL
    )
    """,
    """
    CREATE TABLE events (
        repl TEXT NOT NULL,
        seq BIGINT NOT NULL,
        run TEXT NOT NULL,
        mark TEXT NOT NULL,
        at {real} NOT NULL,
        checksum BIGINT NOT NULL,
        data {bytes} NOT NULL,
        PRIMARY KEY (repl, seq)
    ) {clustered}
    """,
    "CREATE INDEX events_of_runs ON events (run, mark) WHERE mark <> ''",
    """
    CREATE TABLE questions (
        id TEXT PRIMARY KEY,
        repl TEXT NOT NULL,
        run TEXT NOT NULL,
        call BIGINT NOT NULL,
        question TEXT NOT NULL,
        asked {real} NOT NULL,
        expires {real},
        decision TEXT,
        answered {real}
    )
    """,
    "CREATE UNIQUE INDEX questions_of_calls ON questions (run, call)",
    "CREATE TABLE IF NOT EXISTS handles (run TEXT PRIMARY KEY, repl TEXT NOT NULL, owner TEXT NOT NULL)",
)
"""`fence` counts the leases of a Repl. `mark` says which rows begin or end a run."""


class Transaction:
    """One transaction: what is done in it is done as a whole, or not at all."""

    __slots__ = ("_execute",)

    def __init__(self, execute: Callable[[str, Sequence[Any]], Any]) -> None:
        self._execute = execute

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return list(self._execute(statement, values).fetchall())

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        """How many rows it has changed."""
        return int(self._execute(statement, values).rowcount)


class Backend(Protocol):
    """A database that holds journals."""

    name: str
    for_update: str
    """What a SELECT ends with to keep others from changing its rows."""
    for_share: str
    """The same, where several may keep them."""

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        """One statement, which is a transaction by itself: how many rows it has changed."""

    def writing(self) -> contextlib.AbstractContextManager[Transaction]: ...

    def reading(self) -> contextlib.AbstractContextManager[Transaction]: ...

    def now(self) -> float:
        """The time that leases are measured with."""

    def close(self) -> None: ...


class SqliteBackend:
    """A file. A commit survives the death of the process; with `machine`, that of the machine as well."""

    for_update = for_share = ""

    def __init__(self, path: str | Path, *, machine: bool = False, create: bool = True) -> None:
        self.name = f"journal {path}"
        self.path = Path(path)
        self._database = Database(self.path, _SCHEMA, create=create, durable=machine)
        with self.reading() as db:
            made = db.rows("SELECT 1 FROM sqlite_master WHERE name = 'moonbox_journal'")
        if not made and not create:
            raise JournalError(f"there is no journal in {path}")
        with self.writing() as db:
            _create(db, real="REAL", bytes="BLOB", clustered="WITHOUT ROWID")

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self._database.change(statement, values)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Transaction]:
        with self._database.writing() as db:
            yield Transaction(db.execute)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Transaction]:
        with self._database.reading() as db:
            yield Transaction(db.execute)

    def now(self) -> float:
        return time.time()

    def close(self) -> None:
        self._database.close()


MOST_CONNECTIONS = 16
"""Of one open journal to PostgreSQL, which by default takes 100 from all processes together."""


class PostgresBackend:
    """A database that several machines share. A commit survives the death of any of them.

    A thread uses one connection at a time: inside a transaction it must not ask for another.
    """

    for_update, for_share = " FOR UPDATE", " FOR SHARE"

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingExtra("psycopg", "postgres", "a journal in PostgreSQL") from None
        self.name = f"journal {psycopg.conninfo.conninfo_to_dict(url).get('dbname', 'in PostgreSQL')}"
        self._psycopg = psycopg
        self._url = url
        self._idle: list[Any] = []
        self._closed = False
        self._start()
        with self.writing() as db:
            db.rows("SELECT pg_advisory_xact_lock(1836019566)")  # two hosts may start at once
            _create(db, real="DOUBLE PRECISION", bytes="BYTEA", clustered="")

    def _start(self) -> None:
        """In a process that was forked from another, which uses its connections, none of them."""
        self._pid, self._inherited, self._idle = os.getpid(), self._idle, []
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._lock = threading.Lock()

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        with self._connection() as connection:
            return _transaction(connection).change(statement, values)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Transaction]:
        with self._connection() as connection, connection.transaction():
            yield _transaction(connection)

    reading = writing

    def now(self) -> float:
        with self._connection() as connection:
            return float(connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()[0])

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Any]:
        """An idle connection or a new one; waits while all are in use. Here psycopg's errors become ours."""
        if self._closed:
            raise ClosedError(f"the {self.name} is closed")
        if os.getpid() != self._pid:
            self._start()
        connection = None
        with self._room:
            try:
                with self._lock:
                    connection = self._idle.pop() if self._idle else None
                if connection is None:
                    connection = self._psycopg.connect(self._url, autocommit=True, connect_timeout=10)
                yield connection
            except self._psycopg.Error as error:
                if connection is not None:
                    connection.close()
                    connection = None
                raise JournalError(f"the {self.name} failed: {str(error).strip()}") from error
            finally:
                if connection is not None:
                    self._put_back(connection)

    def _put_back(self, connection: Any) -> None:
        with self._lock:
            keeps = not self._closed and not connection.closed
            if keeps:
                self._idle.append(connection)
        if not keeps:
            connection.close()


def _transaction(connection: Any) -> Transaction:
    return Transaction(lambda statement, values: connection.execute(statement.replace("?", "%s"), values))


def _create(db: Transaction, **types: str) -> None:
    """Make the tables where they are missing; raises JournalError where they are newer than this version."""
    db.change("CREATE TABLE IF NOT EXISTS moonbox_journal (version BIGINT NOT NULL)")
    found = db.rows("SELECT version FROM moonbox_journal")
    if not found:
        for statement in _TABLES:
            db.change(statement.format(**types))
        db.change("INSERT INTO moonbox_journal VALUES (?)", (_VERSION,))
    elif found[0][0] > _VERSION:
        raise JournalError("the journal was written by a newer version of moonbox; upgrade moonbox")
    elif found[0][0] < _VERSION:
        db.change(_TABLES[-1].format(**types))
        db.change("UPDATE moonbox_journal SET version = ?", (_VERSION,))
