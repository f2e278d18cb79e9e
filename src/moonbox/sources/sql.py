"""Tools of a database: `query`, which reads, `tables`, which says what there is, and where granted `execute`.

Statements are checked and run in a jailed process, one for each call: see databases.py.
"""

from __future__ import annotations

import os
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from moonbox.config.file import resolve_path
from moonbox.config.reader import read
from moonbox.config.sources import SqlSettings
from moonbox.errors import MissingExtra, ToolError, UsageError
from moonbox.secrets import SecretRedactor
from moonbox.sources.databases import FAILED, LATE, MOST_COLUMNS, MOST_LISTED, MOST_TABLES
from moonbox.sources.service import latest
from moonbox.sources.statements import CHANGES, is_included
from moonbox.tools.tool import Tool
from moonbox.tools.toolbox import Toolbox
from moonbox.wording import one_line
from moonbox.worker.chores import ChoreFailed, Chores, Grant

_WRONG_URL = (
    "the url of a database must be sqlite:///file, duckdb:///file, duckdb:// or postgresql://…; "
    "an absolute path has one slash more"
)
_NAMES = "Name computed columns with AS."
_GRACE = 0.5
"""Seconds by which a process may end its statement late before it is killed."""
_KINDS = {
    "sqlite": ("SQLite", {"sqlglot": "sql"}, "tools of a database"),
    "duckdb": ("DuckDB", {"duckdb": "duckdb", "sqlglot": "sql"}, "a DuckDB database"),
    "postgresql": ("PostgreSQL", {"psycopg": "postgres", "sqlglot": "sql"}, "a PostgreSQL database"),
}
"""The name of each kind of database, the packages that it needs with their extras, and what for."""
_LIMITS = ("/proc/self/cgroup", "/sys/fs/cgroup")
"""Where DuckDB looks for how much memory the machine gives it; it gives up where it cannot look."""
_ALSO = ("lupa", "psycopg_binary", "psycopg_c", "pytz", "typing_extensions")


def from_sql(
    url: str, *, namespace: str | None = None, folder: Path = Path(), later: bool = False, **options: Any
) -> Toolbox:
    """The tools of a database. Paths start from `folder`.

    `later`: a database that is away now is a problem of the Toolbox, and its tools work as soon as it is back.
    """
    source = _Source(read(SqlSettings, {"url": url, **options}, ""), folder)
    tables: dict[str, dict[str, str]] = {}
    problems: tuple[str, ...] = ()
    try:
        tables = source.tables()
    except ToolError as problem:
        problems = (f"the database cannot be used: {problem.message}",)
        if not later:
            raise UsageError(*problems) from None
    properties = {
        name: {"type": "object", "properties": {column: {"const": kind} for column, kind in columns.items()}}
        for name, columns in tables.items()
    }
    shape, read_only = {"type": "object", "properties": properties}, {"read_only": True}
    about = f"One statement in the SQL of {source.name}, with ? or :name for values."
    tools: list[Tool] = [
        Tool.from_function(source.query, description=f"Read rows with SELECT. {about} {_NAMES}", hints=read_only),
        Tool.from_function(source.tables, returns=shape, hints=read_only),
    ]
    if source.settings.execute:
        text = f"Change data with {CHANGES}. {about}"
        tools.append(Tool.from_function(source.execute, description=text, policy="approve"))
    box = Toolbox().merge(tools, namespace=namespace)
    box.problems = problems
    return box


class _Source:
    def __init__(self, settings: SqlSettings, folder: Path) -> None:
        self.settings = settings
        self._folders = [str(resolve_path(folder, name).resolve()) for name in settings.folders]
        self._kind, self._place = _place(settings, folder)
        self.name, packages, purpose = _KINDS[self._kind]
        for package, extra in packages.items():
            if find_spec(package) is None:
                raise MissingExtra(package, extra, purpose)
        self._chores = Chores("moonbox.sources.databases", self._kind, packages=(*packages, *_ALSO))
        self._file = threading.Lock() if self._kind == "duckdb" and settings.execute else None
        try:
            self._redact = SecretRedactor({"password": urlsplit(settings.url).password or ""})
        except ValueError:
            raise UsageError(_WRONG_URL) from None

    def query(self, sql: str, params: list[Any] | dict[str, Any] | None = None) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._run("query", sql, params)[0]
        return rows

    def execute(self, sql: str, params: list[Any] | dict[str, Any] | None = None) -> dict[str, Any]:
        rows, changed = self._run("query", sql, params, write=True)
        return {"changed": changed, "rows": rows}

    def tables(self) -> dict[str, dict[str, str]]:
        """The tables, with the type of each column."""
        tables: dict[str, dict[str, str]] = {}
        for row in self._run("tables"):
            table, column, kind = (one_line(str(value), 100) for value in row)
            if not is_included(table, self.settings.include, self.settings.exclude):
                continue
            columns = tables.setdefault(table, {}) if len(tables) < MOST_TABLES else tables.get(table, {})
            if len(columns) < MOST_COLUMNS:
                columns[column] = kind
        return tables

    def _run(self, chore: str, *statement: Any, write: bool = False) -> Any:
        settings, began = self.settings, time.monotonic()
        seconds = max(0.05, latest(began + settings.timeout) - began)
        bounds: dict[str, Any] = {"seconds": seconds, "rows": MOST_LISTED, "bytes": MOST_LISTED * 1000}
        if statement:
            bounds |= {"rows": settings.max_rows, "bytes": settings.max_bytes, "write": write}
            bounds |= {name: getattr(settings, name) for name in ("functions", "include", "exclude")}
        locked = self._file is not None and self._file.acquire(timeout=seconds)
        try:
            return self._chores.run(
                chore,
                *(self._kind, self._place, self._folders, *statement, bounds),
                grant=self._grant(write),
                seconds=seconds + _GRACE,
                answer=2 * bounds["bytes"] + 1_000_000,
                fresh=write,
            )
        except ChoreFailed as problem:
            late, why = problem.late, f"its process {problem.reason}"
        except ToolError as problem:
            if problem.code not in (FAILED, LATE):
                raise
            # The database's words are bounded and in quotes, so that a model does not take them for ours.
            words = one_line(str(self._redact(problem.message)), 300).replace('"', "'")
            late, why = problem.code == LATE, f'the database says: "{words}"'
            if self._place and not Path(self._place).exists():
                why = f"there is no file '{self._place}'"
        finally:
            if locked and self._file is not None:
                self._file.release()
        why = f"it took longer than {seconds:.3g} seconds" if late else why
        raise ToolError(f"the statement failed: {why}", code="timeout" if late else "invalid")

    def _grant(self, write: bool) -> Grant:
        """What the process of a statement may reach."""
        if self._kind == "postgresql":
            names = [name for name in os.environ if name.startswith(("PG", "SSL_CERT_")) or name == "HOME"]
            environment = tuple((name, os.environ[name]) for name in sorted(names))
            return Grant(opening=("postgresql", self.settings.url, self.settings.timeout, environment, write))
        path, files = Path(self._place), (*self._folders, *(_LIMITS if self._kind == "duckdb" else ()))
        if not self._place:
            return Grant(read=files)
        if write:  # a database makes and removes files beside its own
            return Grant(read=files, write=(str(path.parent),))
        if self._kind == "duckdb":
            return Grant(read=(self._place, f"{self._place}.wal", *files))
        _make_room_for_wal(path)
        files = (self._place, f"{self._place}-wal", f"{self._place}-journal")
        return Grant(read=files, write=(f"{self._place}-shm",))


def _place(settings: SqlSettings, folder: Path) -> tuple[str, str]:
    """The kind of a database, and its file."""
    kind, _, rest = settings.url.partition("://")
    if settings.folders and kind != "duckdb":
        raise UsageError("only DuckDB reads files: folders need a url that begins with duckdb://")
    if kind in ("postgresql", "postgres"):
        return "postgresql", ""
    path = str((folder / rest.removeprefix("/")).resolve()) if rest.startswith("/") else ""
    if (kind == "sqlite" and path) or (kind == "duckdb" and (path or not rest)):
        return kind, path
    raise UsageError(_WRONG_URL)


def _make_room_for_wal(path: Path) -> None:
    """Make the two files that SQLite needs beside a file in WAL mode; its process may not make files."""
    try:
        with path.open("rb") as file:
            is_wal = file.read(20)[18:] == b"\2\2"
        for suffix in ("-wal", "-shm") if is_wal else ():
            path.with_name(path.name + suffix).touch()
    except OSError:
        return  # the database says what is wrong
