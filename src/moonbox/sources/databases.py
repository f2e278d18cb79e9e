"""Databases behind tools: each call has a connection of its own, read-only by the database's own means, and bounded."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

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


class Database(Protocol):
    """One database, of which every call opens a connection."""

    dialect: str
    failure: type[Exception]
    columns: str
    """A statement that gives table, column and type of every column."""

    def run(
        self, statement: Statement, seconds: float, *, write: bool = False, trusted: bool = False
    ) -> contextlib.AbstractContextManager[Any]:
        """A cursor with the result; a change is kept when the block ends."""


def open_database(url: str, folder: Path, folders: Sequence[str]) -> Database:
    kind, _, rest = url.partition("://")
    if folders and kind != "duckdb":
        raise UsageError("only DuckDB reads files: folders need a url that begins with duckdb://")
    if kind in ("postgresql", "postgres"):
        return _Postgres(url)
    path = folder / rest.removeprefix("/") if rest.startswith("/") else None
    if kind == "sqlite" and path is not None:
        return _Sqlite(path)
    if kind == "duckdb" and (path is not None or not rest):
        return _DuckDB(path, [folder / name for name in folders])
    raise UsageError(
        "the url of a database must be sqlite:///file, duckdb:///file, duckdb:// or postgresql://…; "
        "an absolute path has one slash more"
    )


class _Sqlite:
    dialect, failure, columns = "sqlite", sqlite3.Error, _SQLITE_COLUMNS

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
                db.set_authorizer(_may_write if write else _may_read)
            yield db.execute(statement.text, statement.values)


_READING = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
_NEVER = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA)


def _may_read(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    allowed = action in _READING and (second or "").lower() != "load_extension"
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _may_write(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    refused = action in _NEVER or (second or "").lower() == "load_extension"
    return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK


class _DuckDB:
    dialect, columns = "duckdb", _COLUMNS

    def __init__(self, path: Path | None, folders: Sequence[Path]) -> None:
        try:
            import duckdb
        except ImportError:
            raise MissingExtra("duckdb", "duckdb", "a DuckDB database") from None
        self._duckdb, self.failure, self._path = duckdb, duckdb.Error, path
        self._folders = [str(folder.expanduser().resolve()) for folder in folders]
        self._lock = threading.Lock()  # a file is open either to be read or to be written

    @contextlib.contextmanager
    def run(self, statement: Statement, seconds: float, *, write: bool = False, trusted: bool = False) -> Iterator[Any]:
        options = {"memory_limit": _MOST_MEMORY, "threads": "2", "temp_directory": ""}
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
                yield db.execute(self._with_paths(statement.text), statement.values or None)
            finally:
                timer.cancel()

    def _with_paths(self, text: str) -> str:
        """A file that is named relative to a granted folder gets its whole path; the database checks all of them."""
        for folder in self._folders:
            text = re.sub(r"""(?<=['"])(?!/)(?=[^'"]*\.(csv|tsv|parquet|json|jsonl)(\.gz)?['"])""", f"{folder}/", text)
        return text


class _Postgres:
    dialect, columns = "postgres", _COLUMNS

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
