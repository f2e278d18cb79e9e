"""Plain Python values made into Lua values, by the shortest way for their shape.

lupa's own recursive conversion spends its time on Python-level recursion. Flat lists are cheap; so an array of tables
with the same keys comes as one flat list for each key, and Lua puts the rows together.
"""

from __future__ import annotations

TYPE_CHECKING = False  # see protocol.py: a worker starts without `typing`
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Inbound"]

_DIRECT = frozenset({bytes, int, float, bool})


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
        if kind is tuple:
            return self._table(value)
        raise TypeError(f"not a plain value: {kind.__name__}")

    def _list(self, items: list[Any] | tuple[Any, ...]) -> Any:
        kinds = set(map(type, items))
        if kinds <= _DIRECT:
            return self._table_from(items)
        if kinds == {str}:
            return self._table_from(list(map(_encode, items)))
        convert = self.value
        return self._table_from([convert(item) for item in items])

    def _table(self, table: tuple[Any, ...]) -> Any:
        """(keys, column, …) as an array of tables; see worker/encoding.py."""
        keys, *columns = table
        lists = self._table_from([self._list(column) for column in columns])
        return self._rows(len(columns[0]), self._table_from(list(map(_encode, keys))), lists)

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
