"""Functions csv.parse and csv.encode."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from moonbox.errors import ArgumentError, ToolError
from moonbox.scripts.hostapi.arguments import Parameter, type_word
from moonbox.scripts.hostapi.function import Host, HostFunction
from moonbox.scripts.hostapi.text import bounded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moonbox.scripts.hostapi.limits import HostLimits

__all__ = ["functions"]

_ENCODINGS = ("utf-8", "latin-1", "windows-1252", "utf-16")
_DELIMITER = Parameter("delimiter", "string", "a comma unless given", default=",")


def functions(host: Host) -> Sequence[HostFunction]:
    def parse(text: bytes, options: dict[str, Any]) -> list[Any]:
        bounded("csv.parse", text, host.limits.max_text)
        decoded = _decoded(text, options["encoding"])
        delimiter = _delimiter("csv.parse(text, options)", options)
        cells = sum(map(decoded.count, (delimiter, "\n", "\r")))
        if cells > host.limits.max_cells:  # counted before the reader makes an object of each
            raise ToolError(
                f"csv.parse takes at most {host.limits.max_cells:,} fields, not {cells:,}", code="too_large"
            )
        rows = _rows(decoded, delimiter)
        return _tables(rows) if options["header"] else [row for _, row in rows]

    def encode(rows: list[Any], options: dict[str, Any]) -> str:
        delimiter = _delimiter("csv.encode(rows, options)", options)
        return _encoded(rows, options["columns"], delimiter, host.limits)

    reading = (
        Parameter("header", "boolean", "the first row names the columns, true unless given", default=True),
        _DELIMITER,
        Parameter("encoding", "string", "utf-8 unless given", default="utf-8", choices=_ENCODINGS),
    )
    writing = (Parameter("columns", "array", "names and order of the columns; else all, sorted"), _DELIMITER)
    return [
        HostFunction(
            "csv.parse",
            "The rows of a CSV text: tables by column name, or arrays when header is false. All fields are strings.",
            parse,
            (Parameter("text", "data", required=True), Parameter("options", "options", options=reading)),
            "array",
        ),
        HostFunction(
            "csv.encode",
            "Rows as CSV text: tables (with a row of column names first) or arrays.",
            encode,
            (Parameter("rows", "array", required=True), Parameter("options", "options", options=writing)),
            "string",
        ),
    ]


def _delimiter(signature: str, options: dict[str, Any]) -> str:
    delimiter = str(options["delimiter"])
    if len(delimiter) != 1 or delimiter in '"\r\n\0 ':
        raise ArgumentError(f"{signature}: options.delimiter must be one character, such as ; or a tab")
    return delimiter


def _decoded(text: bytes, encoding: str) -> str:
    try:
        return text.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError:
        known = ", ".join(f'"{name}"' for name in _ENCODINGS)
        raise ArgumentError(
            f"csv.parse(text, options): text is not {encoding}; give options.encoding as one of {known}"
        ) from None


def _rows(text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """Each row that is not empty, with the number of its last line."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        return [(reader.line_num, row) for row in reader if row]
    except csv.Error as problem:
        raise ToolError(f"csv.parse: line {reader.line_num}: {problem}", code="invalid_data") from None


def _tables(rows: list[tuple[int, list[str]]]) -> list[dict[str, str | None]]:
    if not rows:
        return []
    names = rows[0][1]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ToolError(f"csv.parse: the column {twice!r} is named twice; use header = false", code="invalid_data")
    tables: list[dict[str, str | None]] = []
    for line, row in rows[1:]:
        if len(row) > len(names):
            raise ToolError(
                f"csv.parse: line {line} has {len(row)} fields, but the header has {len(names)}", code="invalid_data"
            )
        padded: list[str | None] = [*row, *[None] * (len(names) - len(row))]
        tables.append(dict(zip(names, padded, strict=True)))
    return tables


def _encoded(rows: list[Any], columns: list[Any] | None, delimiter: str, limits: HostLimits) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    named = bool(rows) and isinstance(rows[0], dict)
    if named and columns is None:
        columns = sorted({str(key) for row in rows if isinstance(row, dict) for key in row})
    columns = columns or []
    if len(columns) * len(rows) > limits.max_cells:
        raise ToolError(f"csv.encode writes at most {limits.max_cells:,} fields", code="too_large")
    if columns:
        writer.writerow(map(_cell, columns))
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict if named else list):
            wanted = "a table" if named else "an array"
            raise ArgumentError(f"csv.encode(rows, options): row {number} must be {wanted}, not {type_word(row)}")
        cells = [_cell(row.get(name)) for name in columns] if isinstance(row, dict) else [_cell(item) for item in row]
        if out.tell() + sum(map(len, cells)) > limits.max_text:
            raise ToolError(f"csv.encode writes at most {limits.max_text:,} characters", code="too_large")
        writer.writerow(cells)
    return out.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, list | dict):
        raise ArgumentError(f"csv.encode(rows, options): a field must be a string or number, not {type_word(value)}")
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)
