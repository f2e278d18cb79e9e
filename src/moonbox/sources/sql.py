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
from moonbox.failures import one_line
from moonbox.secrets import SecretRedactor
from moonbox.sources.databases import open_database
from moonbox.sources.service import latest
from moonbox.sources.statements import CHANGES, Statement, check
from moonbox.tools.tool import Tool
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_TABLES, _MOST_COLUMNS, _MOST_LISTED = 200, 100, 5000
_NAMES = {"sqlite": "SQLite", "duckdb": "DuckDB", "postgres": "PostgreSQL"}
_PARAMETERS = {
    "type": "object",
    "properties": {
        "sql": {"type": "string", "description": "One statement, with ? or :name in place of values."},
        "params": {"type": ["array", "object"], "description": "The values: a list for ?, or an object for :name."},
    },
    "required": ["sql"],
}
_EXACT = (str, bytes, float, bool, decimal.Decimal, datetime.date, datetime.time, datetime.timedelta, uuid.UUID)


def from_sql(url: str, *, namespace: str | None = None, folder: Path = Path(), **options: Any) -> Toolbox:
    """The tools of a database. Paths start from `folder`."""
    source = _Source(read(SqlSettings, {"url": url, **options}, ""), folder)
    try:
        tables = source.tables({})
    except ToolError as problem:
        raise UsageError(f"the database cannot be used: {problem.message}") from None
    system = _NAMES[source.dialect]
    shape = {
        name: {"type": "object", "properties": {column: {"const": kind} for column, kind in columns.items()}}
        for name, columns in tables.items()
    }
    rows = {"type": "array", "items": {"type": "object"}}
    changed = {"type": "object", "properties": {"changed": {"type": "integer"}, "rows": rows}}
    made: list[tuple[Any, str, Any, Any]] = [
        (source.query, f"Read the {system} database with one SELECT. Gives rows as objects.", _PARAMETERS, rows),
        (
            source.tables,
            f"The tables of the {system} database with the type of each column.",
            {},
            {"type": "object", "properties": shape},
        ),
    ]
    if source.settings.execute:
        made.append((source.execute, f"Change the {system} database with one {CHANGES}.", _PARAMETERS, changed))
    tools = [
        Tool.from_schema(
            name=call.__name__,
            description=text,
            parameters=parameters,
            returns=returns,
            call=call,
            policy="approve" if call == source.execute else "auto",
            hints={"read_only": call != source.execute},
        )
        for call, text, parameters, returns in made
    ]
    return Toolbox().merge(tools, namespace=namespace)


class _Source:
    """One database with its bounds."""

    def __init__(self, settings: SqlSettings, folder: Path) -> None:
        self.settings = settings
        self._database = open_database(settings.url, folder, settings.folders)
        self.dialect = self._database.dialect
        self._redact = SecretRedactor({"password": urlsplit(settings.url).password or ""})

    def query(self, given: dict[str, Any]) -> list[dict[str, Any]]:
        return self._run(self._checked(given, write=False))[0]

    def execute(self, given: dict[str, Any]) -> dict[str, Any]:
        rows, changed = self._run(self._checked(given, write=True), write=True)
        return {"changed": changed, "rows": rows}

    def tables(self, _: dict[str, Any]) -> dict[str, dict[str, str]]:
        tables: dict[str, dict[str, str]] = {}
        statement = Statement(self._database.columns, [], streams=True)
        for row in self._run(statement, trusted=True)[0]:
            table, column, kind = (one_line(str(value), 100) for value in row.values())
            columns = tables.setdefault(table, {}) if len(tables) < _MOST_TABLES else tables.get(table, {})
            if len(columns) < _MOST_COLUMNS:
                columns[column] = kind
        return tables

    def _checked(self, given: dict[str, Any], *, write: bool) -> Statement:
        functions, files = self.settings.functions, bool(self.settings.folders)
        return check(given["sql"], given.get("params"), self.dialect, functions=functions, files=files, write=write)

    def _run(self, statement: Statement, **how: bool) -> tuple[list[dict[str, Any]], int]:
        began = time.monotonic()
        bounds = self.settings.max_rows, self.settings.max_bytes
        if how.get("trusted"):
            bounds = _MOST_LISTED, _MOST_LISTED * 1000
        seconds = max(0.05, latest(began + self.settings.timeout) - began)
        try:
            with self._database.run(statement, seconds, **how) as cursor:
                return list(self._rows(cursor, *bounds)), max(0, cursor.rowcount if hasattr(cursor, "rowcount") else 0)
        except (self._database.failure, ValueError, OverflowError, TypeError) as problem:
            # The database's words are bounded and in quotes, so that nobody takes them for ours.
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
                count, size = (
                    count + 1,
                    size + sum(len(value) if isinstance(value, str | bytes) else 8 for value in values),
                )
                if count > most_rows or size > most_bytes:
                    bounds = f"{most_rows:,} rows or {most_bytes:,} bytes"
                    raise ToolError(
                        f"the result has more than {bounds}; aggregate, or use LIMIT", code="result_too_large"
                    )
                yield dict(zip(names, values, strict=True))


def _plain(value: Any) -> Any:
    """A value that crosses exactly; text for what scripts have no type for."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    is_large = isinstance(value, int) and not -(2**63) <= value < 2**63
    return (
        value if value is None or isinstance(value, _EXACT) or (isinstance(value, int) and not is_large) else str(value)
    )
