"""Functions csv.parse and csv.encode."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from moonbox.errors import ToolError
from moonbox.scripts.hostapi.functions import Host, HostFunction, Parameter, Wrong, options, scalar_text, type_word
from moonbox.scripts.hostapi.grants import excerpt
from moonbox.values import text_or_bytes

if TYPE_CHECKING:
    from moonbox.scripts.hostapi.functions import HostLimits

_ENCODINGS = ("utf-8", "latin-1", "windows-1252", "utf-16")
_DELIMITER = Parameter("delimiter", "string", "a comma by default", default=",")


def functions(host: Host) -> Sequence[HostFunction]:
    def parse(text: bytes, options: dict[str, Any]) -> list[Any]:
        decoded = _decoded(text, options["encoding"])
        delimiter = _delimiter(options)
        cells = sum(map(decoded.count, (delimiter, "\n", "\r")))
        if cells > host.limits.max_cells:  # counted before the reader makes an object of each
            raise ToolError(f"at most {host.limits.max_cells:,} fields are read, not {cells:,}", code="too_large")
        rows = _rows(decoded, delimiter)
        return _tables(rows, host.limits.max_parsed) if options["header"] else [row for _, row in rows]

    def encode(rows: list[Any], options: dict[str, Any]) -> str | bytes:
        return _encoded(rows, options["columns"], _delimiter(options), host.limits)

    reading = (
        Parameter("header", "boolean", "the first row names the columns, true by default", default=True),
        _DELIMITER,
        Parameter("encoding", "string", "utf-8 by default", default="utf-8", choices=_ENCODINGS),
    )
    writing = (Parameter("columns", "array", "names and order of the columns; by default all, sorted"), _DELIMITER)
    text = Parameter("text", "data", required=True, most=host.limits.max_text)
    rows = Parameter("rows", "array", required=True)
    parsed = (
        "The rows of a CSV text: tables by column name, or arrays when header is false. All fields are strings; a row "
        "that is too short lacks the last columns."
    )
    encoded = "Rows as CSV text: tables (with a row of column names first) or arrays."
    return [
        HostFunction("csv.parse", parsed, parse, (text, options(*reading)), "array"),
        HostFunction("csv.encode", encoded, encode, (rows, options(*writing)), "string"),
    ]


def _delimiter(options: dict[str, Any]) -> str:
    delimiter = str(options["delimiter"])
    if len(delimiter) != 1 or delimiter in '"\r\n\0 ':
        raise Wrong("options.delimiter must be one character, such as ; or a tab")
    return delimiter


def _decoded(text: bytes, encoding: str) -> str:
    try:
        return text.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError:
        known = ", ".join(f'"{name}"' for name in _ENCODINGS)
        raise Wrong(f"text is not {encoding}; give options.encoding as one of {known}") from None


def _rows(text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """Each row that is not empty, with the number of its last line."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        return [(reader.line_num, row) for row in reader if row]
    except csv.Error as problem:
        raise ToolError(f"line {reader.line_num}: {problem}", code="invalid_data") from None


def _tables(rows: list[tuple[int, list[str]]], most: int) -> list[dict[str, str]]:
    """Each row by column name. Missing columns are left out, so the cost depends on the row, not on the header."""
    if not rows:
        return []
    names = rows[0][1]
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise ToolError(f"duplicate column '{excerpt(twice)}'; use header = false", code="invalid_data")
    lengths = [len(name) for name in names]
    size = 0
    tables: list[dict[str, str]] = []
    for line, row in rows[1:]:
        if len(row) > len(names):
            message = f"line {line} has {len(row)} fields, but the header has {len(names)}"
            raise ToolError(message, code="invalid_data")
        # Names are shared here, but written out for each row on the way to the script.
        size += sum(lengths[: len(row)]) + sum(map(len, row))
        if size > most:
            message = f"the rows have more than {most:,} characters, column names included; use header = false"
            raise ToolError(message, code="too_large")
        tables.append(dict(zip(names, row, strict=False)))
    return tables


def _encoded(rows: list[Any], columns: list[Any] | None, delimiter: str, limits: HostLimits) -> str | bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    named = bool(rows) and isinstance(rows[0], dict)
    if named and columns is None:
        columns = sorted({scalar_text(key) for row in rows if isinstance(row, dict) for key in row})
    if len(columns or ()) * len(rows) > limits.max_cells:
        raise ToolError(f"at most {limits.max_cells:,} fields are written", code="too_large")
    cells = _Cells(limits.max_text)
    names = [cells.text(column) for column in columns or ()]
    if names:
        writer.writerow(names)
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict if named else list):
            wanted = "a table" if named else "an array"
            raise Wrong(f"row {number} must be {wanted}, not {type_word(row)}")
        if isinstance(row, dict):
            named_values = {scalar_text(key): value for key, value in row.items()}  # a key may be a number
            row = [named_values.get(name) for name in names]
        writer.writerow([cells.text(value) for value in row])
    try:
        return text_or_bytes(out.getvalue().encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        raise Wrong("a field contains half of a surrogate pair, which is not a character") from None


class _Cells:
    """Values as text. The size is checked before each is made, because one value may be in many columns."""

    def __init__(self, most: int) -> None:
        self._left = self._most = most

    def text(self, value: Any) -> str:
        if isinstance(value, list | dict):
            raise Wrong(f"a field must be a string or number, not {type_word(value)}")
        self._left -= len(value) if isinstance(value, str | bytes) else 1
        if self._left < 0:
            raise ToolError(f"at most {self._most:,} characters are written", code="too_large")
        return "" if value is None else scalar_text(value)
