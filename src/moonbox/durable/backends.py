"""Where a journal is kept: a SQLite file or a PostgreSQL database, behind the same few operations.

Statements are written with `?` for their values, once for both.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import select
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from moonbox.audit.tables import SCHEMA
from moonbox.database import Database
from moonbox.errors import ClosedError, JournalError, MissingExtra

_SCHEMA = replace(
    SCHEMA, name="journal", error=JournalError, repair="restore it from a copy; nothing was changed in it"
)
_VERSION = 4


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
    "CREATE TABLE handles (run TEXT PRIMARY KEY, repl TEXT NOT NULL, owner TEXT NOT NULL)",
    """
    CREATE TABLE journal_runs (
        n {number} PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        repl TEXT NOT NULL,
        began {real} NOT NULL,
        ended {real},
        state TEXT NOT NULL,
        wakes {real},
        attempts BIGINT NOT NULL,
        undone TEXT NOT NULL,
        reason TEXT NOT NULL,
        labels TEXT NOT NULL,
        source TEXT NOT NULL
        {words}
    )
    """,
    "CREATE INDEX journal_runs_of_repls ON journal_runs (repl)",
    "CREATE INDEX journal_runs_by_time ON journal_runs (began)",
    "CREATE INDEX journal_runs_by_state ON journal_runs (state, n)",
    "CREATE INDEX journal_runs_asleep ON journal_runs (wakes) WHERE wakes IS NOT NULL",
    "CREATE TABLE journal_tags (tag TEXT NOT NULL, run BIGINT NOT NULL, PRIMARY KEY (tag, run)) {clustered}",
    "CREATE INDEX journal_tags_of_runs ON journal_tags (run)",
    "{search}",
    "CREATE INDEX questions_answered ON questions (answered) WHERE answered IS NOT NULL",
)
"""`fence` counts the leases of a Repl. `mark` says which rows begin or end a run.

`n` counts the runs, `wakes` is when a sleeping one goes on, `attempts` how often it was begun or resumed since it
has last come further. `tags` has labels, tools and failures."""


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


class _Looking:
    """Waits for answers to questions of the journal, in a database that does not tell of changes."""

    def __init__(self) -> None:
        self._interrupted = threading.Event()

    def wait(self, seconds: float, look: float) -> list[str] | None:
        """The runs whose questions were answered; None where the caller looks. `look` is how often that is needed."""
        self._interrupted.wait(min(seconds, look))
        self._interrupted.clear()
        return None

    def interrupt(self) -> None:
        """End the wait of another thread."""
        self._interrupted.set()

    def close(self) -> None:
        pass


_PASSING = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
}


class SqliteBackend:
    """A file. A commit survives the death of the process; with `machine`, that of the machine as well."""

    for_update = for_share = ""
    """What a SELECT ends with to keep others from changing its rows, or where several may keep them."""
    index_text = "INSERT INTO journal_text (rowid, source) SELECT n, source FROM journal_runs WHERE id = ?"
    """Makes the script of a run findable; empty where its row does that."""
    forget_text = (
        "INSERT INTO journal_text (journal_text, rowid, source) "
        "SELECT 'delete', n, source FROM journal_runs WHERE id = ?"
    )
    """The opposite, before the row is changed or deleted."""

    def __init__(self, path: str | Path, *, machine: bool = False, create: bool = True, timeout: float = 10.0) -> None:
        """`timeout` is how long a statement waits for other processes that write."""
        self.name = f"journal {path}"
        self.path = Path(path)
        self._options: dict[str, Any] = {"durable": machine, "timeout": timeout}
        self._lock = threading.Lock()
        self._database = Database(self.path, _SCHEMA, create=create, **self._options)
        self._file = self._found()
        with self.reading() as db:
            made = db.rows("SELECT 1 FROM sqlite_master WHERE name = 'moonbox_journal'")
        if not made and not create:
            raise JournalError(f"there is no journal in {path}")
        with self.writing() as db:
            _create(
                db,
                real="REAL",
                bytes="BLOB",
                number="INTEGER",
                clustered="WITHOUT ROWID",
                words="",
                search="CREATE VIRTUAL TABLE journal_text USING fts5"
                "(source, content='journal_runs', content_rowid='n')",
            )

    def text_search(self, db: Transaction, query: str) -> tuple[str, str, str]:
        """Where scripts are searched, the condition, and the number of the run."""
        joined = "journal_text CROSS JOIN journal_runs AS b ON b.n = journal_text.rowid"
        return joined, "journal_text MATCH ?", "journal_text.rowid"

    def text_query(self, words: Sequence[str]) -> str:
        """The value of the condition: all of these words."""
        return " ".join(f'"{word}"' for word in words)

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        """One statement, which is a transaction by itself: how many rows it has changed."""
        with self._marked() as database:
            return database.change(statement, values)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Transaction]:
        with self._marked() as database, database.writing() as db:
            yield Transaction(db.execute)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Transaction]:
        with self._marked() as database, database.reading() as db:
            yield Transaction(db.execute)

    def now(self) -> float:
        """The time that leases are measured with."""
        return time.time()

    def listener(self) -> Listener:
        return _Looking()

    def notify(self, db: Transaction, run: str) -> None:
        """Tell other processes, when the transaction ends, that a question of this run was answered."""

    def close(self) -> None:
        self._database.close()

    @contextlib.contextmanager
    def _marked(self) -> Iterator[Database]:
        """The database of the file that has the name now; a failure that passes is marked as such."""
        if self._found() != self._file:
            with self._lock:
                if self._found() != self._file:  # it was replaced by a copy: SQLite would write to the file before
                    self._database.close()
                    self._database = Database(self.path, _SCHEMA, create=False, **self._options)
                    self._file = self._found()
        try:
            yield self._database
        except JournalError as problem:
            problem.passing = getattr(problem.__cause__, "sqlite_errorcode", 0) & 0xFF in _PASSING
            raise

    def _found(self) -> tuple[int, int]:
        """Identifies the file."""
        try:
            found = self.path.stat()
        except OSError as error:
            what = f"the {self.name} is gone ({error.strerror}): put the file back; a new one would lack what is in it"
            raise JournalError(what) from error
        return found.st_dev, found.st_ino


# The parser of PostgreSQL takes `tools.pay` for one word, the name of a host.
_WORDS = "regexp_replace(left(source, 100000), '[^[:alnum:]]+', ' ', 'g')"
MOST_CONNECTIONS = 16
"""Of one open journal to PostgreSQL, which by default takes 100 from all processes together."""
_CONNECT_SECONDS = 2.0
_IDLE_SECONDS = 2.0
"""An idle connection is given up soon, because other Sandboxes may wait for one."""
_UNCHECKED_SECONDS = 1.0
_CONNECTION = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "tcp_user_timeout": 15_000,
    "options": "-c lock_timeout=10000",
}
"""Where the address does not say otherwise: nothing waits for ever."""


class PostgresBackend:
    """A database that several machines share. A commit survives the death of any of them.

    A thread uses one connection at a time: inside a transaction it must not ask for another.
    """

    for_update, for_share = " FOR UPDATE", " FOR SHARE"
    index_text = forget_text = ""

    def __init__(self, url: str) -> None:
        try:
            import psycopg
            import psycopg_pool
        except ImportError:
            raise MissingExtra("psycopg", "postgres", "a journal in PostgreSQL") from None
        logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())  # what it says is in our errors
        self.name = "journal in PostgreSQL"
        self._psycopg, self._pools = psycopg, psycopg_pool
        self._closed = False
        with self.plain_errors():
            given: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
            self.name = f"journal {given.get('dbname', 'in PostgreSQL')}"
            self._address = psycopg.conninfo.make_conninfo(**{**_CONNECTION, **given})
            with self.connect() as connection, connection.transaction():
                db = _transaction(connection)
                db.rows("SELECT pg_advisory_xact_lock(1836019566)")  # two hosts may start at once
                _create(
                    db,
                    real="DOUBLE PRECISION",
                    bytes="BYTEA",
                    number="BIGINT GENERATED BY DEFAULT AS IDENTITY",
                    clustered="",
                    words=f", words tsvector GENERATED ALWAYS AS (to_tsvector('simple', {_WORDS})) STORED",
                    search="CREATE INDEX journal_text ON journal_runs USING gin (words)",
                )
        self._inherited: list[Any] = []
        self._start()

    def text_search(self, db: Transaction, query: str) -> tuple[str, str, str]:
        """For words that most scripts have, the latest runs are looked at; for others, all that have them.

        The planner of PostgreSQL does not know which words are rare.
        """
        fits = "words @@ plainto_tsquery('simple', ?)"
        latest = f"SELECT 1 FROM journal_runs WHERE n > (SELECT max(n) FROM journal_runs) - 10000 AND {fits} LIMIT 50"
        if len(db.rows(latest, (query,))) == 50:
            return "journal_runs AS b", f"b.{fits}", "b.n"
        return f"(SELECT * FROM journal_runs WHERE {fits} OFFSET 0) AS b", "TRUE", "b.n"

    def text_query(self, words: Sequence[str]) -> str:
        return " ".join(words)

    def connect(self) -> Any:
        """A connection of its own, which the caller closes."""
        return self._psycopg.connect(self._address, autocommit=True)

    def _start(self) -> None:
        self._pid, self._lock = os.getpid(), threading.Lock()
        self._pool = self._pools.ConnectionPool(
            self._address,
            min_size=0,
            max_size=MOST_CONNECTIONS,
            kwargs={"autocommit": True},
            check=self._check,
            max_idle=_IDLE_SECONDS,
            reconnect_timeout=_CONNECT_SECONDS / 4,
            num_workers=2,
            open=True,
        )

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

    def listener(self) -> Listener:
        return _Listening(self)

    def notify(self, db: Transaction, run: str) -> None:
        db.rows("SELECT pg_notify('moonbox_answers', ?)", (run,))

    def close(self) -> None:
        self._closed = True
        if os.getpid() == self._pid:
            self._pool.close()

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Any]:
        """One of the pool; waits for one while all are in use."""
        if self._closed:
            raise ClosedError(f"the {self.name} is closed")
        if os.getpid() != self._pid:  # a fork: the connections are the other process's
            self._inherited.append(self._pool)
            self._start()
        pool = self._pool
        with self.plain_errors():
            try:
                connection = pool.getconn(_CONNECT_SECONDS)
            except self._pools.PoolTimeout:
                with contextlib.closing(self.connect()):  # which says why there is none
                    raise
            try:
                yield connection
            finally:
                connection.used = time.monotonic()
                pool.putconn(connection)

    def _check(self, connection: Any) -> None:
        """Raise where the server has gone in the meantime."""
        if time.monotonic() - getattr(connection, "used", -math.inf) > _UNCHECKED_SECONDS:
            try:
                connection.execute("")
            except self._psycopg.Error:
                self._pool.check()  # the others, too
                raise

    @contextlib.contextmanager
    def plain_errors(self) -> Iterator[None]:
        """The one place where psycopg's exceptions become ours."""
        try:
            yield
        except self._psycopg.Error as error:
            if self._closed:
                raise ClosedError(f"the {self.name} is closed") from error
            away = isinstance(error, self._psycopg.OperationalError | self._psycopg.InterfaceError)
            read_only = error.sqlstate == "25006"  # during a change of servers
            raise JournalError(f"the {self.name} failed: {str(error).strip()}", passing=away or read_only) from error


class _Listening:
    """A connection on which PostgreSQL tells of answers. Nothing is asked while there are none."""

    def __init__(self, backend: PostgresBackend) -> None:
        self._backend = backend
        self._connection: Any = None
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) if hasattr(os, "eventfd") else -1

    def wait(self, seconds: float, look: float) -> list[str] | None:
        try:
            if self._connection is None:
                with self._backend.plain_errors():
                    self._connection = self._backend.connect()
                    self._connection.execute("LISTEN moonbox_answers")
                return None  # for what was answered before
            return self._told(seconds)
        except JournalError:  # away, or restarted
            self._drop()
            time.sleep(min(seconds, _CONNECT_SECONDS / 4))
            return []

    def _told(self, seconds: float) -> list[str]:
        poll = select.poll()
        for each in (self._connection.fileno(), self._bell):
            if each >= 0:
                poll.register(each, select.POLLIN)
        ready = dict(poll.poll(1000 * (seconds if self._bell >= 0 else min(seconds, 1.0))))
        if ready.pop(self._bell, 0):
            os.eventfd_read(self._bell)
        if not ready:
            return []
        with self._backend.plain_errors():
            return [told.payload for told in self._connection.notifies(timeout=0)]

    def interrupt(self) -> None:
        if self._bell >= 0:
            os.eventfd_write(self._bell, 1)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()

    def close(self) -> None:
        self._drop()
        bell, self._bell = self._bell, -1
        if bell >= 0:
            os.close(bell)


def _transaction(connection: Any) -> Transaction:
    return Transaction(lambda statement, values: connection.execute(statement.replace("?", "%s"), values))


def _create(db: Transaction, **types: str) -> None:
    """Make the tables where they are missing; raises JournalError where they are those of another version."""
    db.change("CREATE TABLE IF NOT EXISTS moonbox_journal (version BIGINT NOT NULL)")
    found = db.rows("SELECT version FROM moonbox_journal")
    if not found:
        for statement in _TABLES:
            db.change(statement.format(**types))
        db.change("INSERT INTO moonbox_journal VALUES (?)", (_VERSION,))
    elif found[0][0] > _VERSION:
        raise JournalError("the journal was written by a newer version of moonbox; upgrade moonbox")
    elif found[0][0] < _VERSION:
        raise JournalError(
            "the journal was written by an older version of moonbox, before 0.3; "
            "end its runs with that version, and choose another place for the journal"
        )


Backend = SqliteBackend | PostgresBackend
Listener = _Looking | _Listening
