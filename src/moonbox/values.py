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
import math
from collections import deque
from collections.abc import Mapping, Sequence, Set
from itertools import chain
from typing import Any

from moonbox.errors import ConversionError
from moonbox.native import extension

__all__ = ["INT64_MAX", "INT64_MIN", "ORDINARY", "from_jsonable", "measure", "measured", "plain", "to_jsonable"]

ORDINARY = frozenset({str, int, float, bool, bytes, list, dict, tuple, type(None)})
"""The types of most values: of none of these is it asked whether they are something else besides."""
_NATIVE = extension("_values")

_Path = str | tuple[Any, str | int]
"""Where a value is: a name, or a path and a key in it; written out only for an error's message."""

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_TABLE_FROM = 16
_SCALARS = frozenset({str, int, float, bool, bytes, type(None)})
_BYTES_KEY = "$bytes"
_PAIRS_KEY = "$pairs"
_FLOAT_KEY = "$float"
_TAGS = frozenset({_BYTES_KEY, _PAIRS_KEY, _FLOAT_KEY})


def plain(value: Any, *, allow_nan: bool = True, max_depth: int = 64, path: _Path = "value") -> Any:
    """Lower any supported Python value to what can cross; raises ConversionError naming the path."""
    kind = type(value)
    if kind is str or kind is bool or value is None or kind is bytes:
        return value
    if kind is int:
        if INT64_MIN <= value <= INT64_MAX:
            return value
        raise ConversionError(
            f"{_where(path)} is an integer of more than 64 bits ({_short(value)}); send it as a string"
        )
    if kind is float:
        if allow_nan or math.isfinite(value):
            return value
        raise ConversionError(f"{_where(path)} is {value}, which is not a JSON number")
    if max_depth <= 0:
        raise ConversionError(f"{_where(path)} is nested too deeply (or contains itself)", limit="depth")
    if kind is list or kind is tuple or kind is deque:
        if len(value) >= _TABLE_FROM and _is_plain_table(value, allow_nan):
            return list(map(dict.copy, value))
        return [
            item
            if (kind := type(item)) is str
            or (kind is int and INT64_MIN <= item <= INT64_MAX)
            or (kind is float and allow_nan)
            else plain(item, allow_nan=allow_nan, max_depth=max_depth - 1, path=(path, index))
            for index, item in enumerate(value)
        ]
    if kind is dict:
        return _plain_mapping(value, allow_nan, max_depth, path)
    return _plain_other(value, allow_nan, max_depth, path)


def _plain_mapping(value: Mapping[Any, Any], allow_nan: bool, max_depth: int, path: _Path) -> dict[Any, Any]:
    lowered: dict[Any, Any] = {}
    for key, item in value.items():
        name = key
        if type(key) is str:  # most items are scalars under text keys: no call, and no path to build
            kind = type(item)
            if kind is str or kind is bool or item is None or (kind is float and allow_nan):
                lowered[key] = item
                continue
            if kind is int and INT64_MIN <= item <= INT64_MAX:
                lowered[key] = item
                continue
        else:
            if isinstance(key, enum.Enum):
                name = key.value
            elif not isinstance(key, (str, int)):
                name = _iso_date(key)
            if isinstance(name, bool) or not isinstance(name, (str, int)):
                raise ConversionError(
                    f"{_where(path)} has a key of type {type(key).__name__}; keys must be strings or integers"
                )
            if isinstance(name, int) and not INT64_MIN <= name <= INT64_MAX:
                raise ConversionError(f"{_where(path)} has an integer key of more than 64 bits")
        lowered[name] = plain(item, allow_nan=allow_nan, max_depth=max_depth - 1, path=(path, name))
    return lowered


def _plain_other(value: Any, allow_nan: bool, max_depth: int, path: _Path) -> Any:
    def again(item: Any) -> Any:
        return plain(item, allow_nan=allow_nan, max_depth=max_depth, path=path)

    kind = type(value)
    if (lower := getattr(kind, "__moonbox_lower__", None)) is not None:
        return lower(value)
    if isinstance(value, enum.Enum):
        return again(value.value)
    if isinstance(value, bool | str):
        return again(bool(value) if isinstance(value, bool) else str.__str__(value))
    if isinstance(value, int):
        return again(int(value))
    if isinstance(value, float):
        return again(float(value))
    if isinstance(value, bytearray | memoryview | bytes):
        return bytes(value)
    import datetime as dt  # slow to load, and most values are of the kinds above

    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if hasattr(kind, "model_dump") and hasattr(kind, "model_fields"):
        return again(value.model_dump(mode="json", by_alias=True))
    if hasattr(kind, "__dataclass_fields__"):
        import dataclasses

        return again({item.name: getattr(value, item.name) for item in dataclasses.fields(value)})
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return again(dict(zip(kind._fields, value, strict=True)))
    if isinstance(value, Mapping):
        return _plain_mapping(value, allow_nan, max_depth, path)
    if isinstance(value, Set):
        return again(_ordered(value))
    if isinstance(value, Sequence):
        return again(list(value))
    return _plain_by_module(value, again, path)


def _plain_by_module(value: Any, again: Any, path: _Path) -> Any:
    """Types of modules that need not be imported just to be recognised."""
    kind = type(value)
    for base in kind.__mro__:
        match (base.__module__.partition(".")[0].lstrip("_"), base.__name__):
            case ("decimal" | "pydecimal", "Decimal"):
                return again(_plain_decimal(value))
            case ("fractions", "Fraction"):
                return str(value)
            case ("uuid", "UUID") | ("ipaddress", _) | ("pathlib", "PurePath"):
                return str(value)
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


def _ordered(items: Set[Any]) -> list[Any]:
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=repr)


def _iso_date(key: Any) -> Any:
    """A date as text; anything else as it is."""
    from datetime import date

    return key.isoformat() if isinstance(key, date) else key


def to_jsonable(value: Any) -> Any:
    """A plain value as strict JSON: bytes, non-string keys and NaN or infinity become tagged objects."""
    if isinstance(value, float) and not math.isfinite(value):
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


def measure(value: Any, *, max_string: int, max_array: int, max_depth: int, path: _Path = "value") -> None:
    """Raise ConversionError where a plain value is larger than the limits allow, naming size and limit."""
    if isinstance(value, str | bytes):
        if len(value) > max_string // 4:
            size = len(value) if isinstance(value, bytes) else len(value.encode("utf-8", "surrogatepass"))
            if size > max_string:
                raise ConversionError(
                    f"{_where(path)} is a string of {size:,} bytes; max_string is {max_string:,}", limit="string"
                )
    elif isinstance(value, list | dict):
        if len(value) > max_array:
            what = "an array" if isinstance(value, list) else "a table"
            raise ConversionError(
                f"{_where(path)} is {what} of {len(value):,} elements; max_array is {max_array:,}", limit="array"
            )
        if max_depth <= 0:
            raise ConversionError(f"{_where(path)} is nested deeper than max_depth", limit="depth")
        if len(value) >= _TABLE_FROM and isinstance(value, list) and _is_small_table(value, max_string, max_array):
            return
        pairs = enumerate(value) if isinstance(value, list) else value.items()
        for key, item in pairs:
            kind = type(item)
            if kind is int or kind is float or kind is bool or item is None or (kind is str and len(item) < 64):
                continue
            measure(item, max_string=max_string, max_array=max_array, max_depth=max_depth - 1, path=(path, key))


def measured(
    value: Any, max_string: int, max_array: int, max_depth: int, allow_nan: bool, path: _Path = "value"
) -> Any:
    """The plain value, within these limits: `plain` and `measure` in one pass where the native part is in use."""
    if _NATIVE is not None:
        lowered = _NATIVE.lowered(value, max_string, max_array, max_depth, allow_nan)
        if lowered is not NotImplemented:  # what is not ordinary, or too large, is done again with exact messages
            return lowered
    lowered = plain(value, allow_nan=allow_nan, max_depth=max_depth, path=path)
    measure(lowered, max_string=max_string, max_array=max_array, max_depth=max_depth, path=path)
    return lowered


def _is_plain_table(rows: Any, allow_nan: bool) -> bool:
    """Whether it is a list of dicts from text to scalars, all of which cross as they are.

    Large results are mostly such tables. Asking in bulk, at the speed of the interpreter's own loops, is several times
    faster than looking at each item; whatever is not so simple takes the long way, which says what is wrong.
    """
    leaves = _leaves(rows)
    if leaves is None:
        return False
    kinds = set(map(type, leaves))
    if not kinds <= _SCALARS or (float in kinds and not allow_nan and not all(map(math.isfinite, _of(float, leaves)))):
        return False
    if int in kinds:
        integers = _of(int, leaves)
        return bool(min(integers) >= INT64_MIN and max(integers) <= INT64_MAX)
    return True


def _is_small_table(rows: list[Any], max_string: int, max_array: int) -> bool:
    """Whether it is such a table, within the limits without a doubt."""
    leaves = _leaves(rows)
    if leaves is None or not set(map(type, leaves)) <= _SCALARS or max(map(len, rows)) > max_array:
        return False
    texts = [*_of(str, leaves), *_of(bytes, leaves)]
    return not texts or max(map(len, texts)) <= max_string // 4


def _leaves(rows: Any) -> list[Any] | None:
    if set(map(type, rows)) != {dict} or not set(map(type, chain.from_iterable(rows))) <= {str}:
        return None
    return list(chain.from_iterable(map(dict.values, rows)))


def _of(kind: type[Any], leaves: list[Any]) -> list[Any]:
    return [leaf for leaf in leaves if type(leaf) is kind]


def _where(path: _Path) -> str:
    if isinstance(path, str):
        return path
    outer, key = path
    return f"{_where(outer)}.{key}" if isinstance(key, str) else f"{_where(outer)}[{key}]"


def _short(value: int) -> str:
    return f"about 2^{value.bit_length()}" if value.bit_length() > 130 else str(value)


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
