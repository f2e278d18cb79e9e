"""Values of a script as the JSON of the wire, within the limits of the run; worker/encoding.py is the other side."""

from __future__ import annotations

import json
import re
from math import isfinite

TYPE_CHECKING = False  # see worker/protocol.py: a worker starts without `typing`
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_INTEGERS = 1 << 63
_NODES_FOR_EACH = 20  # elements that a value may have in all, for each that one list may have
_SHORTEST = 500  # characters of an iterator's text that a message quotes
_TEXTS = ("<", "dict_", "range(")
_NO_DATA = re.compile(  # what Monty makes of values that are none
    r"<(?P<what>function|coroutine|module)\b.{1,200}>|<(?P<iterator>\w+_iterator) object>"
    r"|(?P<view>dict_(?:keys|values|items))\(\[.*\]\)|(?P<range>range)\(-?\d+, -?\d+(?:, -?\d+)?\)",
    re.DOTALL,
)
_dump = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


class Refused(Exception):
    """A value that cannot leave the script."""


class TooLarge(Exception):
    """A value that is larger than a limit allows."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(message)
        self.limit = limit


class Encoder:
    """Encodes the values of one run."""

    def __init__(self, limits: Mapping[str, Any]) -> None:
        self._string: int = limits["max_string"]
        self._array: int = limits["max_array"]
        self._depth: int = limits["max_depth"]
        self._nan = bool(limits.get("allow_nan"))
        self._most = min(self._array * _NODES_FOR_EACH, limits["max_memory"] // 64)
        self._nodes = 0

    def encode(self, value: Any, name: str) -> bytes:
        """The JSON of a value; `name` is what messages call it."""
        return _dump(self._wire(value, name, 0)).encode("utf-8", "replace")

    def _wire(self, value: Any, path: str, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return self._text(value, path)
        if value is None or kind is bool:
            return value
        if kind is int:
            if not -_INTEGERS <= value < _INTEGERS:
                raise Refused(f"{path} is an integer of more than 64 bits: write str({_last(path)}) or float(…)")
            return value
        if kind is float:
            return self._number(value, path)
        if depth >= self._depth:
            raise TooLarge("depth", f"{path} is nested deeper than max_depth = {self._depth}")
        if isinstance(value, dict):
            return self._mapping(value, path, depth + 1)
        if isinstance(value, (list, tuple, range)) or kind.__name__ == "deque":
            return self._sequence(value, path, depth + 1)
        if isinstance(value, (set, frozenset)):  # their order here is not that of the script
            return self._sequence(sorted(value, key=lambda item: (type(item).__name__, repr(item))), path, depth + 1)
        if isinstance(value, bytes):
            return {"\x01b": self._text(value.decode("latin-1"), path)}
        return self._object(value, path, depth)

    def _object(self, value: Any, path: str, depth: int) -> Any:
        """Dates, paths and instances of classes as the data that they stand for."""
        if hasattr(value, "isoformat"):
            return value.isoformat()
        if hasattr(value, "total_seconds"):
            return value.total_seconds()
        name = type(value).__name__
        if name == "MontyClassProxy":
            return self._mapping(value.attributes, path, depth + 1)
        if name in ("Decimal", "UUID") or hasattr(value, "__fspath__"):
            return str(value)
        what = {
            "type": "a class (write type(x).__name__ for its name)",
            "MontyStdTypeProxy": "a function",
            "ExternalModule": "a module",
        }.get(name, name)
        raise Refused(f"{path} is {what}, which cannot leave the script")

    def _text(self, value: str, path: str) -> str:
        if value.startswith(_TEXTS) and (found := _NO_DATA.fullmatch(value)) is not None:
            instead = {"coroutine": "await it", None: f"write list({_last(path)})"}.get(found["what"])
            what = found["what"] or found["iterator"] or found["view"] or found["range"]
            raise Refused(f"{path} is a {what}, which cannot leave the script" + (f": {instead}" if instead else ""))
        size = len(value) if value.isascii() else len(value.encode("utf-8", "replace"))
        if size > self._string:
            raise TooLarge("string", f"{path} is a string of {size} bytes; max_string is {self._string}")
        return value

    def _number(self, value: float, path: str) -> Any:
        if isfinite(value):
            return value
        if not self._nan:
            what = "NaN (not a number)" if value != value else "infinity" if value > 0 else "-infinity"
            raise Refused(f"{path} is {what}, which is not a JSON number")
        return {"\x01f": "nan" if value != value else "inf" if value > 0 else "-inf"}

    def _count(self, size: int, path: str) -> None:
        if size > self._array:
            raise TooLarge("array", f"{path} has {size} elements; max_array is {self._array}")
        self._nodes += size
        if self._nodes > self._most:
            raise TooLarge("array", f"{path} and what was sent before have more than {self._most} elements")

    def _sequence(self, value: Any, path: str, depth: int) -> list[Any]:
        self._count(len(value), path)
        return [self._wire(item, f"{path}[{index}]", depth) for index, item in enumerate(value)]

    def _mapping(self, value: dict[Any, Any], path: str, depth: int) -> Any:
        self._count(len(value), path)
        pairs = [(self._key(key, path), self._wire(item, _below(path, key), depth)) for key, item in value.items()]
        if all(type(key) is str and not key.startswith("\x01") for key, _ in pairs):
            return dict(pairs)
        return {"\x01m": [list(pair) for pair in pairs]}

    def _key(self, key: Any, path: str) -> str | int:
        if type(key) is str:
            return self._text(key, path)
        if type(key) is int and -_INTEGERS <= key < _INTEGERS:
            return key
        raise Refused(f"{path} has a key that is a {type(key).__name__}; keys must be strings or integers: str(key)")


def _below(path: str, key: Any) -> str:
    return f"{path}.{key}" if type(key) is str and key.isidentifier() else f"{path}[{repr(key)[:_SHORTEST]}]"


def _last(path: str) -> str:
    return "x" if path in ("value", "argument") else path.rpartition(".")[2]
