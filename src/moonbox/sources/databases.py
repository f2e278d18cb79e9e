"""Databases behind tools: each call has a connection of its own, read-only by the database's own means, and bounded."""

from __future__ import annotations

import contextlib
import functools
import sqlite3
import threading
import time
from typing import TYPE_CHECKING, Any

from moonbox.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from moonbox.sources.statements import Statement

_COLUMNS = """SELECT CASE WHEN table_schema IN ('public', 'main') THEN '' ELSE table_schema || '.' END || table_name,
column_name, data_type FROM information_schema.columns
WHERE table_schema NOT IN ('information_schema', 'pg_catalog') ORDER BY 1, ordinal_position LIMIT 5000"""
_SQLITE_COLUMNS = """SELECT m.name, p.name, p.type FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS p
WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, p.cid LIMIT 5000"""
_MOST_MEMORY = "256MB"
_MOST_LENGTH = 10_000_000
_STEPS = 10_000


def open_database(url: str, folder: Path, folders: Sequence[str]) -> _Sqlite | _DuckDB | _Postgres:
    """The database of an address. Its `run` gives a cursor with the result of a statement, for the block.

    `columns` is a statement that gives table, column and type of every column; `failure` is what its errors are.
    """
    kind, _, rest = url.partition("://")
    if folders and kind != "duckdb":
        raise UsageError("only DuckDB reads files: folders need a url that begins with duckdb://")
    if kind in ("postgresql", "postgres"):
        return _Postgres(url)
    path = folder / rest.removeprefix("/") if rest.startswith("/") else None
    if kind == "sqlite" and path is not None:
        return _Sqlite(path)
    if kind == "duckdb" and (path is not None or not rest):
        return _DuckDB(path, folders)
    raise UsageError(
        "the url of a database must be sqlite:///file, duckdb:///file, duckdb:// or postgresql://…; "
        "an absolute path has one slash more"
    )


class _Sqlite:
    name, dialect, failure, columns = "SQLite", "sqlite", sqlite3.Error, _SQLITE_COLUMNS

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextlib.contextmanager
    def run(self, statement: Statement, seconds: float, *, write: bool = False, trusted: bool = False) -> Iterator[Any]:
        address = f"{self._path.absolute().as_uri()}?mode={'rw' if write else 'ro'}"
        deadline = time.monotonic() + seconds
        with contextlib.closing(sqlite3.connect(address, uri=True, timeout=seconds, isolation_level=None)) as db:
            db.execute(f"PRAGMA query_only = {'OFF' if write else 'ON'}")
            db.execute("PRAGMA trusted_schema = OFF")
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_LENGTH)
            db.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
            if not trusted:
                db.set_authorizer(functools.partial(_authorize, write))
            yield db.execute(statement.text, statement.values)


_READING = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
_NEVER = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA)


def _authorize(write: bool, action: int, _: str | None, second: str | None, *__: str | None) -> int:
    allowed = action not in _NEVER if write else action in _READING
    return sqlite3.SQLITE_OK if allowed and (second or "").lower() != "load_extension" else sqlite3.SQLITE_DENY


class _DuckDB:
    name, dialect, columns = "DuckDB", "duckdb", _COLUMNS

    def __init__(self, path: Path | None, folders: Sequence[str]) -> None:
        try:
            import duckdb
        except ImportError:
            raise MissingExtra("duckdb", "duckdb", "a DuckDB database") from None
        self._duckdb, self.failure, self._path = duckdb, duckdb.Error, path
        self._folders = folders
        self._lock = threading.Lock()  # a file is open either to be read or to be written

    @contextlib.contextmanager
    def run(self, statement: Statement, seconds: float, *, write: bool = False, trusted: bool = False) -> Iterator[Any]:
        options: dict[str, Any] = {"memory_limit": _MOST_MEMORY, "threads": "2", "temp_directory": ""}
        options |= {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
        read_only = self._path is not None and not write
        with self._lock, self._duckdb.connect(str(self._path or ":memory:"), read_only, options) as db:
            listed = ", ".join("'" + folder.replace("'", "''") + "'" for folder in self._folders)
            db.execute(f"SET allowed_directories = [{listed}]")
            db.execute("SET enable_external_access = false")
            db.execute("SET lock_configuration = true")
            timer = threading.Timer(seconds, db.interrupt)
            timer.start()
            try:
                yield db.execute(statement.text, statement.values or None)
            finally:
                timer.cancel()


class _Postgres:
    name, dialect, columns = "PostgreSQL", "postgres", _COLUMNS

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingExtra("psycopg", "postgres", "a PostgreSQL database") from None
        self._psycopg, self.failure, self._url = psycopg, psycopg.Error, url

    @contextlib.contextmanager
    def run(self, statement: Statement, seconds: float, *, write: bool = False, trusted: bool = False) -> Iterator[Any]:
        pg, milliseconds = self._psycopg, max(1, int(seconds * 1000))
        options = f"-c statement_timeout={milliseconds} -c lock_timeout={milliseconds}"
        if not write:
            options += " -c default_transaction_read_only=on"
        with pg.connect(self._url, options=options, connect_timeout=max(2, int(seconds))) as db:
            db.execute("SET TRANSACTION READ ONLY" if not write else "SET TRANSACTION READ WRITE")
            cursor = pg.RawServerCursor(db, "rows") if statement.streams else pg.RawCursor(db)
            with cursor:
                yield cursor.execute(statement.text, statement.values or None)
            if not write:
                db.rollback()
