"""Plain Python values made into Lua values; lists of numbers, bytes and truth values as they are."""

from __future__ import annotations

TYPE_CHECKING = False  # see protocol.py: a worker starts without `typing`
if TYPE_CHECKING:
    from typing import Any

_NONE = type(None)
_DIRECT = frozenset({bytes, int, float, bool})
_DIRECT_OR_NONE = _DIRECT | {_NONE}


class Inbound:
    """Converts for one Lua runtime. None is nil there; tables remember where it was (prelude/nulls.lua)."""

    def __init__(self, runtime: Any, engine: Any) -> None:
        self._table_from = runtime.table_from
        self._mark = engine[b"mark"]
        self._mark_array = engine[b"nulls"][b"array"]
        self._mark_fields = engine[b"nulls"][b"fields"]

    def value(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return _encode(value)
        if kind in _DIRECT or value is None:
            return value
        if kind is list:
            return self._array(value)
        if kind is dict:
            return self._dict(value)
        raise TypeError(f"not a plain value: {kind.__name__}")

    def _array(self, items: list[Any]) -> Any:
        kinds = set(map(type, items))
        flat = kinds <= _DIRECT_OR_NONE
        table = self._table_from(items if flat else [self.value(item) for item in items])
        return self._mark_array(table, len(items)) if _NONE in kinds else self._mark(table)

    def _dict(self, items: dict[Any, Any]) -> Any:
        convert = self.value
        fields = {
            (_encode(key) if type(key) is str else key): convert(item)
            for key, item in items.items()
            if item is not None
        }
        table = self._table_from(fields)
        if len(fields) == len(items):
            return table
        absent = [_encode(key) if type(key) is str else key for key, item in items.items() if item is None]
        return self._mark_fields(table, self._table_from([key for key in absent if key not in fields]))


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which no UTF-8 text can hold
        return text.encode("utf-8", "replace")
