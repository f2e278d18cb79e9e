"""Values that cross between host and script, and how each Python type becomes one.

What crosses is plain: None, bool, int (64 bit), float, str, bytes, list, and dict with string (or integer) keys.
Everything else is lowered to one of these here, and nowhere else:

    Python                                    in the script
    None, bool, int, float, str, list, dict   null, boolean, integer, float, string, array, table
    bytes, bytearray, memoryview              string of the same bytes
    tuple, set, frozenset, deque, other Sequence/Iterator-free collections   array (sets in sorted order where possible)
    other Mapping                             table
    datetime, date, time                      string, ISO 8601
    timedelta                                 number of seconds
    Decimal                                   integer or float when exact, else string
    Fraction                                  string "numerator/denominator"
    other numbers (with __float__)            float
    UUID, Path, IP addresses                  string
    Enum                                      its value
    dataclass                                 table of its fields
    pydantic model                            table, as model_dump(mode="json", by_alias=True)
    namedtuple                                table of its fields
    Media, PIL image, matplotlib figure       table: the handle of a medium, see media.py

A script's string that is not UTF-8 arrives in Python as bytes; its table with keys 1..n as a list, one with
string or integer keys as a dict.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from itertools import chain, islice
from math import isfinite
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, msgpack

from moonbox.errors import ConversionError

if TYPE_CHECKING:
    from moonbox.limits import Limits

ORDINARY = frozenset({str, int, float, bool, bytes, list, dict, tuple, type(None)})
"""The types of most values. None of them has a special form."""
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

_Path = str | tuple[Any, str | int]
"""Where a value is: a name, or a path and a key in it. It is written out only for an error message."""

_SCALARS = frozenset({str, int, float, bool, bytes, type(None)})
_BYTES_KEY = "$bytes"
_PAIRS_KEY = "$pairs"
_FLOAT_KEY = "$float"
_TAGS = frozenset({_BYTES_KEY, _PAIRS_KEY, _FLOAT_KEY})
_ELEMENT_BYTES = 16  # the least that an element takes in a script's memory
_encode = msgpack.Encoder().encode
_decode = msgpack.Decoder().decode


class ValueLimits(Struct, frozen=True, kw_only=True):
    """How large a value may be that crosses between host and script."""

    max_string: int = 2**62
    max_array: int = 2**62
    max_depth: int = 64
    max_elements: int = 10_000_000
    """In all, at every level of nesting."""
    allow_nan: bool = True

    @classmethod
    def of(cls, limits: Limits, allow_nan: bool) -> ValueLimits:
        """What the limits of a run mean for each value."""
        return cls(
            max_string=limits.max_string,
            max_array=limits.max_array,
            max_depth=limits.max_depth,
            max_elements=limits.max_memory // _ELEMENT_BYTES,
            allow_nan=allow_nan,
        )


_WIDE = ValueLimits()


class Packed(Struct, eq=False):
    """A plain value as MessagePack; `value` is decoded when it is first read."""

    data: bytes
    _value: Any = UNSET

    @property
    def value(self) -> Any:
        if self._value is UNSET:
            self._value = _decode(self.data)
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Packed) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.data)

    def __repr__(self) -> str:
        return f"Packed({self.value!r})"


def pack(value: Any, limits: ValueLimits = _WIDE, path: str = "value") -> Packed:
    """Encode any supported Python value; raises ConversionError naming the path, the size and the limit."""
    if not _crosses_unchanged(value, limits):
        value = plain(value, limits, path)
    data = encode(value)
    if len(data) > limits.max_string:
        plain(value, limits, path)  # raises where one of the strings is too long
    return Packed(data)


def encode(value: Any) -> bytes:
    """A plain value as MessagePack."""
    try:
        return _encode(value)
    except UnicodeEncodeError:  # half of a surrogate pair: no UTF-8 text can hold it
        return _encode(mapped(value, _replace_surrogates))


def _crosses_unchanged(value: Any, limits: ValueLimits) -> bool:
    """Whether the value is plain and within the limits, except for the sizes of strings, which `pack` checks.

    Built-in functions look at one level of nesting at a time. This is much faster than a visit of each element.
    """
    kind = type(value)
    if kind is int:
        return bool(INT64_MIN <= value <= INT64_MAX)
    if kind is float:
        return limits.allow_nan or isfinite(value)
    if kind in _SCALARS:
        return True
    groups: list[Sequence[Any]] = [[value]]
    elements = 0
    for _ in range(limits.max_depth + 1):
        lists: list[Any] = []
        tables: list[Any] = []
        for group in groups:
            kinds = set(map(type, group))
            if not kinds <= ORDINARY or tuple in kinds:
                return False
            if float in kinds and not limits.allow_nan and not all(map(isfinite, _of(float, group, kinds))):
                return False
            if int in kinds and not INT64_MIN <= min(whole := _of(int, group, kinds)) <= max(whole) <= INT64_MAX:
                return False
            if list in kinds:
                lists += _of(list, group, kinds)
            if dict in kinds:
                tables += _of(dict, group, kinds)
        if not lists and not tables:
            return True
        sizes = [*map(len, lists), *map(len, tables)]
        elements += sum(sizes)
        if elements > limits.max_elements:
            raise _too_many(limits)
        if max(sizes) > limits.max_array:
            return False
        names = set(chain.from_iterable(tables))
        if not set(map(type, names)) <= {str}:
            return False
        groups = [list(chain.from_iterable(lists))]
        if set(map(len, tables)) == {len(names)}:  # rows with the same fields: the values of one field are mostly alike
            groups += zip(*map(dict.values, tables), strict=True)
        else:
            groups.append(list(chain.from_iterable(map(dict.values, tables))))
    return False


def _of(kind: type[Any], group: Sequence[Any], kinds: set[type[Any]]) -> Sequence[Any]:
    return group if len(kinds) == 1 else [item for item in group if type(item) is kind]


def _replace_surrogates(value: Any) -> Any:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def plain(value: Any, limits: ValueLimits = _WIDE, path: str = "value") -> Any:
    """A copy of any supported Python value in plain types; raises ConversionError naming the path."""
    return _Lowering(limits).lower(value, limits.max_depth, path)


class _Lowering:
    """One conversion: the limits, and how many elements are left of them."""

    __slots__ = ("left", "limits")

    def __init__(self, limits: ValueLimits) -> None:
        self.limits = limits
        self.left = limits.max_elements

    def lower(self, value: Any, depth: int, path: _Path) -> Any:
        kind = type(value)
        if kind is bool or value is None:
            return value
        if kind is str or kind is bytes:
            return self._string(value, path)
        if kind is int:
            return _integer(value, path)
        if kind is float:
            return self._float(value, path)
        if kind is list or kind is tuple or kind is deque:
            return self._list(value, depth, path)
        if kind is dict:
            return self._table(value, depth, path)
        return self._other(value, depth, path)

    def _string(self, value: Any, path: _Path) -> Any:
        most = self.limits.max_string
        if len(value) > most // 4:
            size = len(value) if isinstance(value, bytes) else len(value.encode("utf-8", "surrogatepass"))
            if size > most:
                raise ConversionError(
                    f"{_where(path)} is a string of {size:,} bytes; max_string is {most:,}", limit="string"
                )
        return value

    def _float(self, value: float, path: _Path) -> float:
        if self.limits.allow_nan or isfinite(value):
            return value
        raise ConversionError(f"{_where(path)} is {value}, which is not a JSON number")

    def _enter(self, what: str, count: int, depth: int, path: _Path) -> None:
        """Count the elements of a list or table before any of them is copied."""
        if count > self.limits.max_array:
            raise ConversionError(
                f"{_where(path)} is {what} of {count:,} elements; max_array is {self.limits.max_array:,}", limit="array"
            )
        if depth <= 0:
            raise ConversionError(f"{_where(path)} is nested too deeply (or contains itself)", limit="depth")
        self.left -= count
        if self.left < 0:
            raise _too_many(self.limits)

    # No more elements are taken than the length says: it may be a lie, or the value may grow in another thread.

    def _list(self, items: Any, depth: int, path: _Path) -> list[Any]:
        count = len(items)
        self._enter("an array", count, depth, path)
        given = _ordered(items, count) if isinstance(items, Set) else islice(items, count)
        return [self.lower(item, depth - 1, (path, index)) for index, item in enumerate(given)]

    def _table(self, table: Mapping[Any, Any], depth: int, path: _Path) -> dict[Any, Any]:
        count = len(table)
        self._enter("a table", count, depth, path)
        lowered: dict[Any, Any] = {}
        for key, item in islice(table.items(), count):
            name = self._string(key, path) if type(key) is str else _key(key, path)
            lowered[name] = self.lower(item, depth - 1, (path, name))
        return lowered

    def _other(self, value: Any, depth: int, path: _Path) -> Any:
        kind = type(value)
        if (lower := getattr(kind, "__moonbox_lower__", None)) is not None:
            return lower(value)
        if isinstance(value, enum.Enum):
            return self.lower(value.value, depth, path)
        if isinstance(value, str):
            return self._string(str.__str__(value), path)
        if isinstance(value, int):
            return _integer(int(value), path)
        if isinstance(value, float):
            return self._float(float(value), path)
        if isinstance(value, bytearray | memoryview | bytes):
            return self._string(bytes(value), path)
        import datetime as dt  # slow to load, and most values are of the kinds above

        if isinstance(value, dt.datetime | dt.date | dt.time):
            return self._string(value.isoformat(), path)
        if isinstance(value, dt.timedelta):
            return value.total_seconds()
        if hasattr(kind, "model_dump") and hasattr(kind, "model_fields"):
            return self.lower(value.model_dump(mode="json", by_alias=True), depth, path)
        if hasattr(kind, "__dataclass_fields__"):
            import dataclasses

            fields = {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
            return self._table(fields, depth, path)
        if isinstance(value, Struct):
            return self._table({name: getattr(value, name) for name in value.__struct_fields__}, depth, path)
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return self._table(dict(zip(kind._fields, value, strict=True)), depth, path)
        if isinstance(value, Mapping):
            return self._table(value, depth, path)
        if isinstance(value, Set | Sequence):
            return self._list(value, depth, path)
        if isinstance(size := getattr(value, "size", 0), int) and size > self.limits.max_elements:  # numpy's arrays
            raise _too_many(self.limits)
        return _plain_by_module(value, lambda item: self.lower(item, depth, path), path)


def _too_many(limits: ValueLimits) -> ConversionError:
    return ConversionError(f"the value has more than {limits.max_elements:,} elements in all", limit="array")


def _integer(value: int, path: _Path) -> int:
    if INT64_MIN <= value <= INT64_MAX:
        return value
    raise ConversionError(f"{_where(path)} is an integer of more than 64 bits ({_short(value)}); send it as a string")


def _key(key: Any, path: _Path) -> str | int:
    name = key.value if isinstance(key, enum.Enum) else key
    if not isinstance(name, (str, int)):
        name = _iso_date(name)
    if isinstance(name, bool) or not isinstance(name, (str, int)):
        raise ConversionError(
            f"{_where(path)} has a key of type {type(key).__name__}; keys must be strings or integers"
        )
    if isinstance(name, int) and not INT64_MIN <= name <= INT64_MAX:
        raise ConversionError(f"{_where(path)} has an integer key of more than 64 bits")
    return name


def _plain_by_module(value: Any, again: Any, path: _Path) -> Any:
    """Types of modules that need not be imported just to be recognised."""
    kind = type(value)
    for base in kind.__mro__:
        match (base.__module__.partition(".")[0].lstrip("_"), base.__name__):
            case ("decimal" | "pydecimal", "Decimal"):
                return again(_plain_decimal(value))
            case ("fractions", "Fraction"):
                return again(str(value))
            case ("uuid", "UUID") | ("ipaddress", _) | ("pathlib", "PurePath"):
                return again(str(value))
            case ("numpy", "generic" | "ndarray"):
                return again(value.tolist())
            case ("pandas", "NAType" | "NaTType"):
                return None
            case ("PIL", "Image") | ("matplotlib", "Figure"):
                from moonbox.media import Media

                return again(Media.from_picture(value))
    if hasattr(kind, "__float__"):  # a number of another library, such as mpmath.mpf
        return again(float(value))
    raise ConversionError(
        f"{_where(path)} is {_article(kind.__name__)}, which cannot cross to a script; "
        "return JSON-like data, a dataclass or a pydantic model"
    )


def _plain_decimal(value: Any) -> Any:
    if not value.is_finite():
        return float(value)
    if value == value.to_integral_value() and abs(value) <= INT64_MAX:
        exponent = value.as_tuple().exponent
        return int(value) if exponent >= 0 else (float(value) if type(value)(float(value)) == value else str(value))
    number = float(value)
    return number if type(value)(repr(number)) == value else str(value)


def _ordered(items: Set[Any], count: int) -> list[Any]:
    try:
        return sorted(islice(items, count))
    except TypeError:
        return sorted(islice(items, count), key=repr)


def _iso_date(key: Any) -> Any:
    """A date as text; anything else as it is."""
    from datetime import date

    return key.isoformat() if isinstance(key, date) else key


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of a plain value, with each key and each item that is no list or table as `change` makes it."""
    if isinstance(value, list | tuple):
        return [mapped(item, change) for item in value]
    if isinstance(value, dict):
        return {change(key): mapped(item, change) for key, item in value.items()}
    return change(value)


def text_or_bytes(data: bytes) -> str | bytes:
    """Text when it is valid UTF-8. Scripts see the same string either way."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def to_jsonable(value: Any) -> Any:
    """A plain value as strict JSON: bytes, non-string keys and NaN or infinity become tagged objects."""
    if isinstance(value, float) and not isfinite(value):
        return {_FLOAT_KEY: str(value)}
    if isinstance(value, bytes):
        from base64 import b64encode

        return {_BYTES_KEY: b64encode(value).decode("ascii")}
    if isinstance(value, list | tuple):
        return [to_jsonable(item) for item in value]
    if isinstance(value, dict):
        tagged = len(value) == 1 and next(iter(value)) in _TAGS
        if tagged or any(type(key) is not str for key in value):
            return {_PAIRS_KEY: [[key, to_jsonable(item)] for key, item in value.items()]}
        return {key: to_jsonable(item) for key, item in value.items()}
    return value


def from_jsonable(value: Any) -> Any:
    """The inverse of `to_jsonable`."""
    if isinstance(value, list):
        return [from_jsonable(item) for item in value]
    if isinstance(value, dict):
        if len(value) == 1:
            ((key, item),) = value.items()
            if key == _BYTES_KEY:
                from base64 import b64decode

                return b64decode(item)
            if key == _FLOAT_KEY:
                return float(item)
            if key == _PAIRS_KEY:
                return {name: from_jsonable(inner) for name, inner in item}
        return {key: from_jsonable(item) for key, item in value.items()}
    return value


def refuse_constant(constant: str) -> None:
    """For `parse_constant` of `json`: NaN and infinity, which Python reads, are not JSON."""
    raise ValueError(f"{constant} is not JSON")


def _where(path: _Path) -> str:
    if isinstance(path, str):
        return path
    outer, key = path
    return f"{_where(outer)}.{key}" if isinstance(key, str) else f"{_where(outer)}[{key}]"


def _short(value: int) -> str:
    return f"about 2^{value.bit_length()}" if value.bit_length() > 130 else str(value)


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
