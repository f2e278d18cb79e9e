"""Values of a script as JSON: for the wire, within the limits of the run, and for a person to read.

worker/encoding.py is the other side of the first, prelude/inspect.lua of Lua does the second.
"""

from __future__ import annotations

import json
import re
from math import isfinite

TYPE_CHECKING = False  # see worker/protocol.py: a worker starts without `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    _Path = tuple[Any, Any]
    """The place above, and the key there; at the top None, and a name."""

_INTEGERS = 1 << 63
_NODES_FOR_EACH = 20  # elements that a value may have in all, for each that one list may have
_LONGEST = 500  # characters of a key that a message quotes
_MOST_QUESTIONS = 1000
_TYPES = "int|float|str|bytes|bool|complex|list|dict|set|frozenset|tuple|type|None"
_TEXTS = (
    *("<", "dict_", "range(", "slice(", "re.compile(", "functools.partial(", "Context(", "Field(", "typing."),
    *_TYPES.split("|"),
)
_NO_DATA = re.compile(  # what Monty's client makes of values that are none: only Monty knows whether it is a text
    r"<(?P<kind>(?:built-in )?function|coroutine)(?: object)? '?[\w.<>]+'?(?: at 0x[0-9a-f]+)?>"
    r"|<(?P<method>bound method)\b.{0,200}>|<(?P<named>module|class) '[\w.]+'>|<(?P<together>gather)\(\d+\)>"
    r"|<(?P<object>[\w.]+)(?: [\w.]+)? object(?:; .{0,9999}| (?:at|@) 0x[0-9a-f]+)?>"
    r"|(?P<view>dict_(?:keys|values|items))\(\[.*\]\)|(?P<range>range)\(-?\d+, -?\d+(?:, -?\d+)?\)"
    r"|(?P<other>slice|re\.compile|functools\.partial|Context|Field)\(.{0,9999}\)"
    rf"|(?P<type>typing\.\w+(?:\[.{{1,999}}\])?|(?:{_TYPES})(?:\[.{{1,999}}\]|\b.{{0,999}} \| .{{1,999}}))",
    re.DOTALL,
)
_CLASS = "a class (write type(x).__name__ for its name)"
_dump = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


class CannotLeave(Exception):
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
        self._ask: Callable[[str], Any] = _unknown
        self._questions = 0

    def encode(self, value: Any, name: str, ask: Callable[[str], Any] | None = None) -> bytes:
        """The JSON of a value; `name` is what messages call it.

        `ask` gives the type of a part of it in the script, and its elements where it is a view or a range.
        """
        self._ask = ask or _unknown
        return _dump(self._wire(value, (None, name), 0)).encode("utf-8", "replace")

    def _wire(self, value: Any, path: _Path, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            if value.startswith(_TEXTS) and (found := _NO_DATA.fullmatch(value)) is not None:
                return self._shown(value, found, path, depth)
            return self._text(value, path)
        if value is None or kind is bool:
            return value
        if kind is int:
            if not -_INTEGERS <= value < _INTEGERS:
                raise CannotLeave(
                    f"{_written(path)} is an integer of more than 64 bits: write str({_last(path)}) or float(…)"
                )
            return value
        if kind is float:
            return self._number(value, path)
        if depth >= self._depth:
            raise TooLarge("depth", f"{_written(path)} is nested deeper than max_depth = {self._depth}")
        if isinstance(value, dict):
            return self._mapping(value, path, depth + 1)
        if isinstance(value, (list, tuple, range)) or kind.__name__ == "deque":
            return self._sequence(value, path, depth + 1)
        if isinstance(value, (set, frozenset)):  # their order here is not that of the script
            return self._sequence(sorted(value, key=lambda item: (type(item).__name__, repr(item))), path, depth + 1)
        if isinstance(value, bytes):
            return {"\x01b": self._text(value.decode("latin-1"), path)}
        return self._object(value, path, depth)

    def _object(self, value: Any, path: _Path, depth: int) -> Any:
        """Dates, paths and instances of classes as the data that they stand for."""
        if isinstance(value, type):
            raise CannotLeave(f"{_written(path)} is {_CLASS}, which cannot leave the script")
        if hasattr(value, "isoformat"):
            return value.isoformat()
        if hasattr(value, "total_seconds"):
            return value.total_seconds()
        name = type(value).__name__
        if name == "MontyClassProxy":
            return self._mapping(value.attributes, path, depth + 1, of_object=True)
        if name in ("Decimal", "UUID") or hasattr(value, "__fspath__"):
            return str(value)
        what = {"MontyStdTypeProxy": "a function", "ExternalModule": "a module"}.get(name, name)
        raise CannotLeave(f"{_written(path)} is {what}, which cannot leave the script")

    def _shown(self, value: str, found: re.Match[str], path: _Path, depth: int) -> Any:
        """A text, or what Monty's client shows as that text."""
        self._questions += 1
        if self._questions > _MOST_QUESTIONS:
            return self._text(value, path)  # so many are texts
        kind, elements = self._ask(_place(path)) or ("str" if found["type"] else "", None)
        if kind == "str":
            return self._text(value, path)
        if isinstance(elements, list):
            return self._wire(elements, path, depth)
        what = next(each for each in found.groups() if each)
        instead = f": write list({_last(path)})" if "iter" in what or found["view"] or found["range"] else ""
        instead = ": await it" if what == "coroutine" else instead
        what = _CLASS if what == "class" else f"{'an' if what[0] in 'aeiou' else 'a'} {what}"
        raise CannotLeave(f"{_written(path)} is {what}, which cannot leave the script{instead}")

    def _text(self, value: str, path: _Path) -> str:
        size = len(value) if value.isascii() else len(value.encode("utf-8", "replace"))
        if size > self._string:
            raise TooLarge("string", f"{_written(path)} is a string of {size} bytes; max_string is {self._string}")
        return value

    def _number(self, value: float, path: _Path) -> Any:
        if isfinite(value):
            return value
        if not self._nan:
            what = "NaN (not a number)" if value != value else "infinity" if value > 0 else "-infinity"
            raise CannotLeave(f"{_written(path)} is {what}, which is not a JSON number")
        return {"\x01f": "nan" if value != value else "inf" if value > 0 else "-inf"}

    def _count(self, size: int, path: _Path) -> None:
        if size > self._array:
            raise TooLarge("array", f"{_written(path)} has {size} elements; max_array is {self._array}")
        self._nodes += size
        if self._nodes > self._most:
            raise TooLarge("array", f"{_written(path)} and what was sent before have more than {self._most} elements")

    def _sequence(self, value: Any, path: _Path, depth: int) -> list[Any]:
        self._count(len(value), path)
        return [self._wire(item, (path, index), depth) for index, item in enumerate(value)]

    def _mapping(self, value: dict[Any, Any], path: _Path, depth: int, *, of_object: bool = False) -> Any:
        self._count(len(value), path)
        below = (path, None) if of_object else path  # None: what follows is an attribute
        pairs = [(self._key(key, path), self._wire(item, (below, key), depth)) for key, item in value.items()]
        if all(type(key) is str and not key.startswith("\x01") for key, _ in pairs):
            return dict(pairs)
        return {"\x01m": [list(pair) for pair in pairs]}

    def _key(self, key: Any, path: _Path) -> str | int:
        if type(key) is str:
            return self._text(key, path)
        if type(key) is int and -_INTEGERS <= key < _INTEGERS:
            return key
        raise CannotLeave(
            f"{_written(path)} has a key that is a {type(key).__name__}; keys must be strings or integers: str(key)"
        )


def _written(path: _Path) -> str:
    """The place in a message."""
    above, key = path
    if above is None or key is None:
        return str(key) if above is None else _written(above)
    is_word = type(key) is str and key.isidentifier()
    return _written(above) + (f".{key}" if is_word else f"[{repr(key)[:_LONGEST]}]")


def _place(path: _Path) -> str:
    """The place as a script writes it."""
    above, key = path
    if above is None:
        return ""
    return f"{_place(above[0])}.{key}" if above[0] is not None and above[1] is None else f"{_place(above)}[{key!r}]"


def _last(path: _Path) -> str:
    above, key = path
    return key if above is not None and type(key) is str and key.isidentifier() else "x"


def _unknown(_: str) -> None:
    return None


# For a person: bounded in size, depth and count; what is no data is text in angle brackets, and what is cut says so

MOST_NAMES = 200
_MOST_ITEMS, _DEEPEST, _LONGEST_TEXT, _MOST_TEXT = 100, 6, 2000, 200_000


class NamespaceShown:
    """Shortens values, which have so many characters together."""

    def __init__(self) -> None:
        self._left = _MOST_TEXT

    def value(self, value: Any, depth: int = 0) -> Any:
        self._left -= 8
        if self._left <= 0:
            return "…"
        if isinstance(value, dict) and depth < _DEEPEST:
            return self._mapping(value, depth + 1)
        if isinstance(value, (list, tuple, set, frozenset)) and depth < _DEEPEST:
            return self._items(value, len(value), depth + 1)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int) and abs(value) < 2**63:
            return int(value)
        if isinstance(value, float):
            return float(value) if isfinite(value) else f"<{value}>"
        return self._text(value if isinstance(value, str) else f"<{type(value).__name__}: {value!r}>")

    def _text(self, text: str) -> str:
        cut = (
            text
            if len(text) <= _LONGEST_TEXT
            else f"{text[:_LONGEST_TEXT]}… {len(text) - _LONGEST_TEXT} more characters"
        )
        self._left -= len(cut)
        return cut.encode("utf-8", "replace").decode()

    def _items(self, items: Iterable[Any], count: int, depth: int) -> list[Any]:
        found: list[Any] = []
        for item in items:
            if len(found) == _MOST_ITEMS or self._left <= 0:
                found.append(f"… {count - len(found)} more")
                break
            found.append(self.value(item, depth))
        return found

    def _mapping(self, mapping: dict[Any, Any], depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, item in mapping.items():
            if len(found) == _MOST_ITEMS or self._left <= 0:
                found["…"] = f"{len(mapping) - len(found)} more"
                break
            found[self._text(key if isinstance(key, str) else repr(key))] = self.value(item, depth)
        return found


def told(frames: Iterable[tuple[str, int, bool]], variables: dict[str, Any]) -> bytes:
    """What the host is sent: function, line, and whether it is of this run's script, of each frame; and the globals."""
    listed = [{"function": name, "line": line, "own": own, "locals": {}} for name, line, own in frames]
    return json.dumps({"frames": listed, "globals": variables}).encode()
