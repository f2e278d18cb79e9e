"""The databases behind tools, as chores: a statement is checked and run in a process of its own."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import functools
import importlib
import json
import math
import os
import pkgutil
import sqlite3
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from moonbox.errors import ToolError
from moonbox.sources.statements import Statement, check, is_file
from moonbox.values import plain, text_or_bytes
from moonbox.worker.chore_process import Stale

FAILED, LATE = "database", "late"
"""Codes of errors whose message has the words of a database; those of a statement that took too long."""
MOST_TABLES, MOST_COLUMNS, MOST_LISTED = 200, 100, 5000
_EXACT = (str, bytes, bool, datetime.date, datetime.time, datetime.timedelta, uuid.UUID)
_PAGE_BYTES, _PAGE_ROWS = 4_000_000, 200
_LONGEST_WORDS = 1_000


def load(kind: str) -> None:
    """Load what this kind of database needs, and use it once."""
    import sqlglot
    import sqlglot.optimizer

    database = _DATABASES[kind]
    database.load()
    for package in (sqlglot, sqlglot.optimizer):  # nothing can be loaded later
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if not module.ispkg and not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    check("SELECT count(*) AS n FROM t WHERE a = ?", [1], database.dialect, functions=(), folders=(), write=False)
    if kind != "postgresql":
        query(None, kind, "", [], "SELECT 1 AS a", None, {"rows": 9, "bytes": 999, "seconds": 9.0})


def opened(
    kind: str, url: str, seconds: float, environment: Sequence[Sequence[str]], write: bool
) -> tuple[Any, tuple[int, ...]]:
    """A connection, which is there before the jail is."""
    os.environ.update(map(tuple, environment))  # type: ignore[arg-type]  # pairs
    postgres = PostgresDatabase(url, seconds, write)
    return postgres, (postgres.connection.fileno(),)


def query(
    state: Any, kind: str, place: str, folders: list[str], sql: str, params: Any, bounds: dict[str, Any]
) -> list[Any]:
    """The rows of a statement, and how many it has changed."""
    database = state or _DATABASES[kind](place, folders)
    write = bool(bounds.get("write"))
    statement = check(
        sql,
        params,
        database.dialect,
        functions=bounds.get("functions", ()),
        folders=folders,
        write=write,
        allowed=(bounds.get("include", ()), bounds.get("exclude", ())),
        catalog=state,
    )
    return _run(database, statement, bounds, write=write)


def tables(state: Any, kind: str, place: str, folders: list[str], bounds: dict[str, Any]) -> list[Any]:
    """Table, column and type of each column."""
    database = state or _DATABASES[kind](place, folders)
    found = _run(database, Statement(database.columns, [], streams=True), bounds, trusted=True)[0]
    listed = [[str(value)[:200] for value in row.values()] for row in found]
    return listed + database.files(bounds) if kind == "duckdb" else listed


CHORES = {"query": query, "tables": tables}


def _run(database: Any, statement: Statement, bounds: dict[str, Any], **how: bool) -> list[Any]:
    began = time.monotonic()
    try:
        with database.run(statement, bounds["seconds"], **how) as cursor:
            rows = list(_rows(cursor, bounds["rows"], bounds["bytes"]))
            changed = max(0, cursor.rowcount if hasattr(cursor, "rowcount") else 0)
        return [plain(rows), changed]
    except (database.failure, ValueError, OverflowError, TypeError) as problem:
        late = time.monotonic() - began >= bounds["seconds"] * 0.95
        words = database.words(problem)
        if "out of memory" in words[:60].lower():
            raise MemoryError from None
        raise ToolError(words[:_LONGEST_WORDS], code=LATE if late else FAILED) from None


def _rows(cursor: Any, most_rows: int, most_bytes: int) -> Iterator[dict[str, Any]]:
    names: list[str] = []
    for place, (name, *_) in enumerate(cursor.description or (), 1):
        while name in names:
            name = f"{name}_{place}"
        names.append(name)
    count = size = 0
    fetched = 1 if isinstance(cursor, sqlite3.Cursor) else 20
    while names and (page := cursor.fetchmany(fetched)):
        for row in page:
            values = [_plain(value) for value in row]
            count += 1
            size += sum(len(value) if isinstance(value, str | bytes) else len(str(value)) for value in values)
            if count > most_rows or size > most_bytes:
                message = f"the result has more than {most_rows:,} rows or {most_bytes:,} bytes; use LIMIT"
                raise ToolError(message, code="result_too_large")
            yield dict(zip(names, values, strict=True))
        if not isinstance(cursor, sqlite3.Cursor):  # which has one row in memory at a time
            fetched = max(1, min(_PAGE_ROWS, _PAGE_BYTES * count // (size + 1)))


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
WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite_%' AND p.hidden <> 1 AND NOT EXISTS (
SELECT 1 FROM sqlite_master AS v WHERE v.sql LIKE 'CREATE VIRTUAL TABLE%' AND m.name IN (v.name || '_data',
v.name || '_idx', v.name || '_content', v.name || '_docsize', v.name || '_config', v.name || '_segments',
v.name || '_segdir', v.name || '_stat', v.name || '_node', v.name || '_parent', v.name || '_rowid'))
ORDER BY m.name, p.cid LIMIT 5000"""
_POSTGRES_COLUMNS = """SELECT CASE nspname WHEN 'public' THEN '' ELSE nspname || '.' END || relname,
attname, format_type(atttypid, atttypmod)
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace JOIN pg_attribute ON attrelid = pg_class.oid
WHERE relkind IN ('r', 'v', 'm', 'f', 'p') AND attnum > 0 AND NOT attisdropped AND nspname <> 'information_schema'
AND nspname NOT LIKE 'pg\\_%' AND has_column_privilege(attrelid, attnum, 'SELECT') ORDER BY 1, attnum LIMIT 5000"""
_POSTGRES_CALLABLES = "SELECT proname::text FROM pg_proc UNION SELECT typname::text FROM pg_type"
_POSTGRES_OWNED = """SELECT proname::text FROM pg_proc JOIN pg_namespace ON pg_namespace.oid = pronamespace
WHERE nspname NOT IN ('pg_catalog', 'information_schema') AND NOT EXISTS (
SELECT 1 FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = pg_proc.oid AND deptype = 'e')
EXCEPT SELECT proname::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace"""
_POSTGRES_TABLE = """SELECT attname::text FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE attnum > 0 AND NOT attisdropped AND relname = $1
AND CASE $2 WHEN '' THEN pg_table_is_visible(pg_class.oid) ELSE nspname = $2 END"""
_MOST_MEMORY = "256MB"
_MOST_LENGTH = 10_000_000
_STEPS = 10_000


class _Sqlite:
    dialect, failure, columns = "sqlite", sqlite3.Error, _SQLITE_COLUMNS
    words = staticmethod(str)

    def __init__(self, place: str, folders: Sequence[str]) -> None:
        self._path = Path(place) if place else None

    @staticmethod
    def load() -> None:
        return

    @contextlib.contextmanager
    def run(self, statement: Statement, seconds: float, *, write: bool = False, trusted: bool = False) -> Iterator[Any]:
        address = f"{self._path.as_uri()}?mode={'rw' if write else 'ro'}" if self._path else "file::memory:"
        deadline = time.monotonic() + seconds
        with contextlib.closing(sqlite3.connect(address, uri=True, timeout=seconds, isolation_level=None)) as db:
            db.execute("PRAGMA temp_store = MEMORY")
            db.execute(f"PRAGMA query_only = {'OFF' if write else 'ON'}")
            db.execute("PRAGMA trusted_schema = OFF")
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_LENGTH)
            db.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
            db.text_factory = text_or_bytes  # SQLite does not check that a text is UTF-8
            if not trusted:
                db.set_authorizer(functools.partial(_authorize, write))
            yield db.execute(statement.text, _written(statement.values))


def _written(values: Any) -> Any:
    """Parameters that are lists or objects as JSON text, which is how SQLite keeps them."""
    if isinstance(values, dict):
        return dict(zip(values, _written(list(values.values())), strict=True))
    return [json.dumps(value) if isinstance(value, list | dict) else value for value in values]


_READING = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
_NEVER = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA)
_VIRTUAL = ((sqlite3.SQLITE_UPDATE, "sqlite_master"), (sqlite3.SQLITE_PRAGMA, "data_version"))
"""What a virtual table asks for: to declare its columns, and whether the file has changed. Neither writes the file."""


def _authorize(write: bool, action: int, first: str | None, second: str | None, *_: str | None) -> int:
    allowed = (action not in _NEVER if write else action in _READING) or (action, first) in _VIRTUAL
    return sqlite3.SQLITE_OK if allowed and (second or "").lower() != "load_extension" else sqlite3.SQLITE_DENY


class _DuckDB:
    dialect, columns = "duckdb", _DUCKDB_COLUMNS
    words = staticmethod(str)

    def __init__(self, place: str, folders: Sequence[str]) -> None:
        import duckdb

        self._duckdb, self.failure, self._place = duckdb, duckdb.Error, place
        self._folders = folders

    @staticmethod
    def load() -> None:
        import duckdb

        with contextlib.suppress(ImportError):
            importlib.import_module("pytz")  # for times with a zone
        with duckdb.connect() as db:  # each type of Python's is loaded when it is first needed
            db.execute(
                "SELECT now(), current_date, TIME '1:00', INTERVAL 1 DAY, 1::DECIMAL(9, 2), uuid(), 'a'::BLOB, "
                "[1], {'a': 1}, MAP {'a': 1}, 1::HUGEINT, '[1]'::JSON, TIMESTAMP '2020-01-01', ?, ?",
                ["a", 1.5],
            ).fetchmany(2)

    @contextlib.contextmanager
    def run(self, statement: Statement, seconds: float, *, write: bool = False, trusted: bool = False) -> Iterator[Any]:
        options: dict[str, Any] = {"memory_limit": _MOST_MEMORY, "threads": "1", "temp_directory": ""}
        options |= {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
        read_only = bool(self._place) and not write
        with self._duckdb.connect(self._place or ":memory:", read_only, options) as db:
            listed = ", ".join("'" + folder.replace("'", "''") + "'" for folder in self._folders)
            db.execute(f"SET allowed_directories = [{listed}]")
            db.execute("SET enable_external_access = false")
            db.execute("SET lock_configuration = true")
            yield db.execute(statement.text, statement.values or None)

    def files(self, bounds: dict[str, Any]) -> list[list[str]]:
        """The files of the folders that can be read, with their columns."""
        found: list[list[str]] = []
        for folder in self._folders:
            names = sorted(
                os.path.relpath(Path(place, name), folder) for place, _, files in os.walk(folder) for name in files
            )
            for name in filter(is_file, names[:MOST_LISTED]):
                quoted = str(Path(folder, name)).replace("'", "''")
                described = Statement(f"DESCRIBE SELECT * FROM '{quoted}'", [], streams=True)
                with contextlib.suppress(ToolError):  # it is not what its name says
                    for row in _run(self, described, bounds, trusted=True)[0]:
                        found.append([name, *(str(row[key])[:200] for key in ("column_name", "column_type"))])
                if len(found) > MOST_LISTED:
                    return found
        return found


class PostgresDatabase:
    """A connection, which is also the catalog of what is in the database."""

    dialect, columns = "postgres", _POSTGRES_COLUMNS
    callables: frozenset[str]
    """The names of all functions and types."""
    owned: frozenset[str]
    """The names of functions that the database's owner has made, and that no function of PostgreSQL has."""

    def __init__(self, url: str, seconds: float, write: bool) -> None:
        import psycopg

        self._psycopg, self.failure = psycopg, psycopg.Error
        options = "-c default_transaction_read_only=on" if not write else ""
        try:
            timeout = max(2, int(seconds))
            self.connection = psycopg.connect(url, options=options, connect_timeout=timeout, autocommit=True)
        except psycopg.Error as problem:
            raise ToolError(f"{problem}"[:_LONGEST_WORDS], code=FAILED) from None
        _ = self.connection.info.timezone  # whose file is out of reach later
        _adapt(self.connection)
        self.callables, self.owned = (
            frozenset(name for (name,) in self.connection.execute(names))
            for names in (_POSTGRES_CALLABLES, _POSTGRES_OWNED)
        )

    @staticmethod
    def load() -> None:
        importlib.import_module("encodings.idna")  # for names of hosts
        importlib.import_module("psycopg.types.json")

        from moonbox.sources.calls import check_calls  # noqa: F401

    def columns_of(self, schema: str, table: str) -> frozenset[str]:
        """The columns of a table; of the one that the search path finds where the schema is empty."""
        cursor = self._psycopg.RawCursor(self.connection)
        return frozenset(name for (name,) in cursor.execute(_POSTGRES_TABLE, [table, schema]))

    @contextlib.contextmanager
    def run(self, statement: Statement, seconds: float, *, write: bool = False, trusted: bool = False) -> Iterator[Any]:
        pg, db, milliseconds = self._psycopg, self.connection, max(1, int(seconds * 1000))
        try:
            db.execute(
                f"BEGIN {'READ WRITE' if write else 'READ ONLY'}; SET LOCAL statement_timeout = {milliseconds}; "
                f"SET LOCAL lock_timeout = {milliseconds}"
            )
        except pg.Error as problem:
            raise Stale from problem
        try:
            cursor = pg.RawServerCursor(db, "rows") if statement.streams else pg.RawCursor(db)
            with cursor:
                yield cursor.execute(statement.text, statement.values or None)
            db.execute("COMMIT" if write else "ROLLBACK")
        except BaseException:
            if not db.closed:
                with contextlib.suppress(pg.Error):
                    db.execute("ROLLBACK")
            raise

    @staticmethod
    def words(problem: Exception) -> str:
        about = getattr(problem, "diag", None)
        said = [part for part in (about.message_primary, about.message_hint) if part] if about is not None else []
        return "; ".join(said) or str(problem)


def _adapt(connection: Any) -> None:
    """Dates and times that Python has no value for are text; an object is JSON."""
    from psycopg import DataError
    from psycopg.types import datetime as types
    from psycopg.types.json import JsonbDumper

    def or_text(base: Any) -> Any:
        class OrText(base):  # type: ignore[misc]
            def load(self, data: Any) -> Any:
                try:
                    return super().load(data)
                except (DataError, ValueError, OverflowError):
                    return bytes(data).decode()

        return OrText

    for name in ("date", "time", "timetz", "timestamp", "timestamptz", "interval"):
        connection.adapters.register_loader(name, or_text(getattr(types, f"{name.title()}Loader")))
    connection.adapters.register_dumper(dict, JsonbDumper)


_DATABASES: dict[str, Any] = {"sqlite": _Sqlite, "duckdb": _DuckDB, "postgresql": PostgresDatabase}
