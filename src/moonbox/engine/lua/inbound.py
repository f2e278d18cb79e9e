"""Plain Python values made into Lua values, by the shortest way for their shape.

lupa's own recursive conversion spends its time on Python-level recursion. Flat lists are cheap; so an array of tables
with the same keys goes over as one flat list for each key, and Lua puts the rows together.
"""

from __future__ import annotations

from itertools import chain

TYPE_CHECKING = False  # see protocol.py: a worker starts without `typing`
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Inbound"]

_DIRECT = frozenset({bytes, int, float, bool})
_ROWS_FROM = 8
_MOST_COLUMNS = 40


class Inbound:
    """Converts for one Lua runtime."""

    def __init__(self, runtime: Any, engine: Any) -> None:
        self._table_from = runtime.table_from
        self._mark = engine[b"mark"]
        self._rows = engine[b"rows"]
        self._null = engine[b"null"]

    def top(self, value: Any) -> Any:
        """A value handed to the script by itself: None is nil there, not null."""
        return None if value is None else self.value(value)

    def value(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return _encode(value)
        if kind in _DIRECT:
            return value
        if value is None:
            return self._null
        if kind is list:
            return self._mark(self._list(value))
        if kind is dict:
            return self._dict(value)
        raise TypeError(f"not a plain value: {kind.__name__}")

    def _list(self, items: list[Any] | tuple[Any, ...]) -> Any:
        kinds = set(map(type, items))
        if kinds <= _DIRECT:
            return self._table_from(items)
        if kinds == {str}:
            return self._table_from(list(map(_encode, items)))
        if kinds == {dict} and len(items) >= _ROWS_FROM:
            rows = self._uniform(items)
            if rows is not None:
                return rows
        convert = self.value
        return self._table_from([convert(item) for item in items])

    def _uniform(self, items: list[dict[Any, Any]] | tuple[dict[Any, Any], ...]) -> Any:
        keys = tuple(items[0])
        width = len(keys)
        if not 0 < width <= _MOST_COLUMNS or not all(type(key) is str for key in keys):
            return None
        for item in items:
            if tuple(item) != keys:
                return None
        flat = list(chain.from_iterable(map(dict.values, items)))
        columns = [self._list(flat[column::width]) for column in range(width)]
        return self._rows(len(items), self._table_from(list(map(_encode, keys))), self._table_from(columns))

    def _dict(self, items: dict[Any, Any]) -> Any:
        convert = self.value
        return self._table_from(
            {(_encode(key) if type(key) is str else key): convert(item) for key, item in items.items()}
        )


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which no UTF-8 text can hold
        return text.encode("utf-8", "replace")
