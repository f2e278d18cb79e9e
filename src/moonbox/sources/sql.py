"""Tools of a database: `query`, which reads, `tables`, which says what there is, and where granted `execute`."""

from __future__ import annotations

import datetime
import decimal
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from moonbox.config.reader import read
from moonbox.config.sources import SqlSettings
from moonbox.errors import ToolError, UsageError
from moonbox.secrets import SecretRedactor
from moonbox.sources.databases import open_database
from moonbox.sources.service import latest
from moonbox.sources.statements import CHANGES, Statement, check
from moonbox.tools.tool import Tool
from moonbox.tools.toolbox import Toolbox
from moonbox.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_TABLES, _MOST_COLUMNS, _MOST_LISTED = 200, 100, 5000
_EXACT = (str, bytes, float, bool, decimal.Decimal, datetime.date, datetime.time, datetime.timedelta, uuid.UUID)


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
        Tool.from_function(source.query, description=f"Read rows with SELECT. {about}", hints=read_only),
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
        self._folders = [str((folder / name).expanduser().resolve()) for name in settings.folders]
        self.database = open_database(settings.url, folder, self._folders)
        self._redact = SecretRedactor({"password": urlsplit(settings.url).password or ""})

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
        for column in cursor.description or ():
            names.append(column[0] if column[0] not in names else f"{column[0]}_{len(names) + 1}")
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
    return value if value is None or is_exact else str(value)
