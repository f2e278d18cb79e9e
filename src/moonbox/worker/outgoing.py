"""What goes to a worker: large tables are turned into columns, which travel and unpack several times faster."""

from __future__ import annotations

from itertools import chain
from typing import Any

__all__ = ["packed"]

_ROWS_FROM = 16
_MOST_COLUMNS = 40


def packed(value: Any) -> Any:
    """The value with lists of dicts that all have the same keys as a tuple (keys, column, …).

    Plain values hold no tuples, so the worker cannot mistake one. Looks at the value and, in a dict, at its fields.
    """
    if type(value) is list:
        return _columns(value)
    if type(value) is dict:
        large = [key for key, item in value.items() if type(item) is list and len(item) >= _ROWS_FROM]
        if large:
            return {**value, **{key: _columns(value[key]) for key in large}}
    return value


def _columns(rows: list[Any]) -> Any:
    if len(rows) < _ROWS_FROM or set(map(type, rows)) != {dict}:
        return rows
    keys = tuple(rows[0])
    width = len(keys)
    if not 0 < width <= _MOST_COLUMNS or set(map(type, keys)) != {str} or set(map(tuple, rows)) != {keys}:
        return rows
    leaves = list(chain.from_iterable(map(dict.values, rows)))
    return (keys, *(leaves[column::width] for column in range(width)))
