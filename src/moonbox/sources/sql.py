"""Tools of a database: `query`, which reads, `tables`, which says what there is, and where granted `execute`.

Each call has a connection of its own, read-only by the database's own means, and bounded.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import functools
import math
import sqlite3
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from moonbox.config.file import resolve_path
from moonbox.config.reader import read
from moonbox.config.sources import SqlSettings
from moonbox.errors import MissingExtra, ToolError, UsageError
from moonbox.secrets import SecretRedactor
from moonbox.sources.service import latest
from moonbox.sources.statements import CHANGES, LONGEST_PATTERN, Statement, check
from moonbox.tools.tool import Tool
from moonbox.tools.toolbox import Toolbox
from moonbox.values import text_or_bytes
from moonbox.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WRONG_URL = (
    "the url of a database must be sqlite:///file, duckdb:///file, duckdb:// or postgresql://…; "
    "an absolute path has one slash more"
)
_NAMES = "Name computed columns with AS."
_MOST_TABLES, _MOST_COLUMNS, _MOST_LISTED = 200, 100, 5000
_EXACT = (str, bytes, bool, datetime.date, datetime.time, datetime.timedelta, uuid.UUID)


def from_sql(url: str, *, namespace: str | None = None, folder: Path = Path(), **options: Any) -> Toolbox:
    """The tools of a database. Paths start from `folder`."""
    source = _Source(read(SqlSettings, {"url": url, **options}, ""), folder)
    try:
        tables = source.tables()
    except ToolError as problem:
        raise UsageError(f"the database cannot be used: {problem.message}") from None
    properties = {
        name: {"type": "object", "properties": {column: {"const": kind} for column, kind in columns.items()}}
        for name, columns in tables.items()
    }
    shape, read_only = {"type": "object", "properties": properties}, {"read_only": True}
    about = f"One statement in the SQL of {source.database.name}, with ? or :name for values."
    tools: list[Tool] = [
        Tool.from_function(source.query, description=f"Read rows with SELECT. {about} {_NAMES}", hints=read_only),
        Tool.from_function(source.tables, returns=shape, hints=read_only),
    ]
    if source.settings.execute:
        text = f"Change data with {CHANGES}. {about}"
        tools.append(Tool.from_function(source.execute, description=text, policy="approve"))
    return Toolbox().merge(tools, namespace=namespace)


class _Source:
    """One database with its bounds."""

    def __init__(self, settings: SqlSettings, folder: Path) -> None:
        self.settings = settings
        self._folders = [str(resolve_path(folder, name).resolve()) for name in settings.folders]
        self.database = open_database(settings.url, folder, self._folders)
        try:
            self._redact = SecretRedactor({"password": urlsplit(settings.url).password or ""})
        except ValueError:
            raise UsageError(_WRONG_URL) from None

    def query(self, sql: str, params: list[Any] | dict[str, Any] | None = None) -> list[dict[str, Any]]:
        return self._run(self._checked(sql, params))[0]

    def execute(self, sql: str, params: list[Any] | dict[str, Any] | None = None) -> dict[str, Any]:
        rows, changed = self._run(self._checked(sql, params, write=True), write=True)
        return {"changed": changed, "rows": rows}

    def tables(self) -> dict[str, dict[str, str]]:
        """The tables, with the type of each column."""
        tables: dict[str, dict[str, str]] = {}
        for row in self._run(Statement(self.database.columns, [], streams=True), trusted=True)[0]:
            table, column, kind = (one_line(str(value), 100) for value in row.values())
            columns = tables.setdefault(table, {}) if len(tables) < _MOST_TABLES else tables.get(table, {})
            if len(columns) < _MOST_COLUMNS:
                columns[column] = kind
        return tables

    def _checked(self, sql: str, params: Any, *, write: bool = False) -> Statement:
        functions, folders = self.settings.functions, self._folders
        return check(sql, params, self.database.dialect, functions=functions, folders=folders, write=write)

    def _run(self, statement: Statement, **how: bool) -> tuple[list[dict[str, Any]], int]:
        began = time.monotonic()
        bounds = self.settings.max_rows, self.settings.max_bytes
        if how.get("trusted"):
            bounds = _MOST_LISTED, _MOST_LISTED * 1000
        seconds = max(0.05, latest(began + self.settings.timeout) - began)
        try:
            with self.database.run(statement, seconds, **how) as cursor:
                return list(self._rows(cursor, *bounds)), max(0, cursor.rowcount if hasattr(cursor, "rowcount") else 0)
        except (self.database.failure, ValueError, OverflowError, TypeError) as problem:
            # The database's words are bounded and in quotes, so that a model does not take them for ours.
            words = one_line(str(self._redact(str(problem))), 300).replace('"', "'")
            late = time.monotonic() - began >= seconds * 0.95
            why = f"it took longer than {seconds:.3g} seconds" if late else f'the database says: "{words}"'
            raise ToolError(f"the statement failed: {why}", code="timeout" if late else "invalid") from None

    def _rows(self, cursor: Any, most_rows: int, most_bytes: int) -> Iterator[dict[str, Any]]:
        names: list[str] = []
        for place, (name, *_) in enumerate(cursor.description or (), 1):
            while name in names:
                name = f"{name}_{place}"
            names.append(name)
        count = size = 0
        while names and (page := cursor.fetchmany(200)):
            for row in page:
                values = [_plain(value) for value in row]
                count += 1
                size += sum(len(value) if isinstance(value, str | bytes) else len(str(value)) for value in values)
                if count > most_rows or size > most_bytes:
                    message = f"the result has more than {most_rows:,} rows or {most_bytes:,} bytes; use LIMIT"
                    raise ToolError(message, code="result_too_large")
                yield dict(zip(names, values, strict=True))


def _plain(value: Any) -> Any:
    """A value that crosses exactly; text for what scripts have no type for."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    is_exact = isinstance(value, _EXACT) or (isinstance(value, int) and -(2**63) <= value < 2**63)
    if isinstance(value, float | decimal.Decimal):
        is_exact = math.isfinite(value)
    return value if value is None or is_exact else str(value)


_DUCKDB_COLUMNS = """SELECT CASE table_schema WHEN 'main' THEN '' ELSE table_schema || '.' END || table_name,
column_name, data_type FROM information_schema.columns
WHERE table_schema NOT IN ('information_schema', 'pg_catalog') ORDER BY 1, ordinal_position LIMIT 5000"""
_SQLITE_COLUMNS = """SELECT m.name, p.name, p.type FROM sqlite_master AS m JOIN pragma_table_xinfo(m.name) AS p
WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite_%' AND p.hidden <> 1 ORDER BY m.name, p.cid LIMIT 5000"""
_POSTGRES_COLUMNS = """SELECT CASE nspname WHEN 'public' THEN '' ELSE nspname || '.' END || relname,
attname, format_type(atttypid, atttypmod)
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace JOIN pg_attribute ON attrelid = pg_class.oid
WHERE relkind IN ('r', 'v', 'm', 'f', 'p') AND attnum > 0 AND NOT attisdropped AND nspname <> 'information_schema'
AND nspname NOT LIKE 'pg\\_%' AND has_column_privilege(attrelid, attnum, 'SELECT') ORDER BY 1, attnum LIMIT 5000"""
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
    raise UsageError(_WRONG_URL)


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
            db.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, LONGEST_PATTERN)
            db.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
            db.text_factory = text_or_bytes  # SQLite does not check that a text is UTF-8
            if not trusted:
                db.set_authorizer(functools.partial(_authorize, write))
            yield db.execute(statement.text, statement.values)


_READING = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
_NEVER = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA)
_VIRTUAL = ((sqlite3.SQLITE_UPDATE, "sqlite_master"), (sqlite3.SQLITE_PRAGMA, "data_version"))
"""What a virtual table asks for: to declare its columns, and whether the file has changed. Neither writes the file."""


def _authorize(write: bool, action: int, first: str | None, second: str | None, *_: str | None) -> int:
    allowed = (action not in _NEVER if write else action in _READING) or (action, first) in _VIRTUAL
    return sqlite3.SQLITE_OK if allowed and (second or "").lower() != "load_extension" else sqlite3.SQLITE_DENY


class _DuckDB:
    name, dialect, columns = "DuckDB", "duckdb", _DUCKDB_COLUMNS

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
    name, dialect, columns = "PostgreSQL", "postgres", _POSTGRES_COLUMNS

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
