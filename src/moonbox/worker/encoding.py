"""How values travel between host and worker: as columns on the way out, as bounded frames of JSON on the way in.

What goes out is trusted: lists of dicts with the same keys become columns, which unpack several times faster.
What comes in is assumed hostile: it is counted and measured before it is parsed.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from itertools import chain
from math import isfinite
from time import thread_time
from typing import TYPE_CHECKING, Any

from moonbox.errors import WorkerError
from moonbox.native import extension
from moonbox.worker.protocol import HEADER, SPENT

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Decoder", "Reader", "message_pack", "packed"]

_NATIVE = extension("_values")
_weight: Any = getattr(_NATIVE, "weight", None)
_lone_call: Any = getattr(_NATIVE, "lone_call", None)
_lone_end: Any = getattr(_NATIVE, "lone_end", None)
_SPENT = SPENT.size
_ROWS_FROM = 16
_MOST_COLUMNS = 40
_LARGE = 64 * 1024
_FEW_STRINGS = 32
_FEW_NODES = 64
_BACKSLASH = ord("\\")  # a number is found in bytes twenty times as fast as other bytes are
_UNUSUAL: Any = object()
_AROUND = 8  # levels of the wire around a script's value
_ROW = 3  # elements that a row counts for beyond its fields: a whole dict for what may be a few bytes on the wire
_INTEGERS = 1 << 63  # a script has none beyond; of larger ones any number can have the same hash
_BLOCK, _KEY_SECONDS, _PATIENCE = 256, 1e-6, 0.1  # a key takes a tenth of that
# Never fails to match at a quote, and never goes back: an unfinished string takes all the rest.
_STRINGS = rb'(?s)"(?:[^"\\]++|\\.)*+"?'
# To see at the speed of memory whether a number may be out of range: digits become 0, both letters of an exponent e.
_DIGITS = bytes(48 if byte in b"0123456789" else 101 if byte in b"eE" else 32 for byte in range(256))
_LONG = b"0" * 19  # digits of the largest integer
_SHORTEST_INFINITE = len("[1e309]")
_NUMBER = rb"-?[0-9][0-9.eE+-]*"
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


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


def message_pack(answers: Any) -> bytes:
    """Answers for a native worker."""
    encode = _message_encoder()
    try:
        return encode(answers)
    except UnicodeEncodeError:  # half of a surrogate pair, which no UTF-8 text can hold
        return encode(_encodable(answers))


@cache
def _message_encoder() -> Callable[[Any], bytes]:
    from msgspec import msgpack

    return msgpack.Encoder().encode


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, (list, tuple)):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
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


class Reader:
    """Cuts a stream of bytes into frames; refuses frames of more than `largest` bytes before they are read."""

    __slots__ = ("buffer", "largest")

    def __init__(self, largest: int) -> None:
        self.buffer = bytearray()
        """Bytes that have arrived and are not taken yet; add to it what arrives."""
        self.largest = largest

    def take(self, data: bytes) -> tuple[int, bytes] | None:
        """Add what has arrived; the next whole frame, or None when more bytes are needed."""
        if not self.buffer and len(data) >= HEADER.size:  # most often it is one whole frame
            kind, length = HEADER.unpack_from(data)
            if length == len(data) - HEADER.size and length <= self.largest:
                return kind, data[HEADER.size :]
        self.buffer += data
        return self.next()

    def next(self) -> tuple[int, bytes] | None:
        """The next whole frame, or None when more bytes are needed."""
        buffer = self.buffer
        if len(buffer) < HEADER.size:
            return None
        kind, length = HEADER.unpack_from(buffer)
        if length > self.largest:
            raise WorkerError(f"the worker announced a frame of {length:,} bytes; at most {self.largest:,} are allowed")
        end = HEADER.size + length
        if len(buffer) < end:
            return None
        payload = bytes(memoryview(buffer)[HEADER.size : end])
        del buffer[:end]
        return kind, payload


class Decoder:
    """Parses what a worker sends in one run; in all it may unfold to `most` elements, in one frame to half of that."""

    __slots__ = ("_allow_nan", "_frame", "_left", "_levels", "_max_depth", "_most", "_quick")

    def __init__(self, most: int, max_depth: int, allow_nan: bool = False) -> None:
        self._most = self._left = most
        self._max_depth = max_depth
        self._frame = most // 2
        self._levels = 3 * max_depth + _AROUND
        self._allow_nan = allow_nan
        self._quick = -1 if _weight is None or allow_nan else min(_LARGE, self._frame)  # bytes

    def for_another_run(self) -> Decoder:
        """One with the same bounds, of which nothing is spent."""
        if _make_decoder is None:
            return Decoder(self._most, self._max_depth, self._allow_nan)
        most, depth = self._most, self._max_depth
        # By position, in the order of the slots.
        return _make_decoder(self._allow_nan, self._frame, most, self._levels, depth, most, self._quick)  # type: ignore[no-any-return]

    def decode(self, payload: bytes, start: int = 0) -> Any:
        """The value that begins there; WorkerError where it is not JSON of ours or would unfold to too much."""
        size = len(payload) - start
        large = size > _LARGE
        fits = size <= self._left and size <= self._frame and self._quick >= 0
        if start and not (large and fits):
            payload, start = payload[start:], 0
        if size < _SHORTEST_INFINITE <= self._left and not self._allow_nan and _BACKSLASH not in payload:
            self._left -= size  # no more elements than bytes, and no number out of range
            try:
                return _scanned(payload)
            except ValueError as problem:
                raise WorkerError(f"the worker sent an invalid value: {str(problem)[:200]}") from None
        if fits:
            value = self._decode_quickly(payload, start)
            if value is not _UNUSUAL:
                return value
            payload = payload[start:]
        looked_at = _without_long_strings(payload) if large else payload
        nodes = _nodes(looked_at)
        try:
            if nodes > self._frame or nodes > self._left:
                nodes = _nodes(re.sub(_STRINGS, b"", payload))
                if nodes > self._frame or nodes > self._left:
                    raise ValueError(f"more than {min(self._frame, self._left):,} elements")
            self._left -= nodes
            if size >= _SHORTEST_INFINITE:
                digits = looked_at.translate(_DIGITS)
                if b"0e" in digits or _LONG in digits:
                    _check_numbers(re.sub(_STRINGS, b'""', payload))
            if nodes <= _AROUND and not large and _BACKSLASH not in payload and not self._allow_nan:  # as most are
                return _scanned(payload)
            parse = _parse_large if large else _parse
            value = parse(payload, self._levels, self._allow_nan)
            # Where there are few elements, to look at each is quicker than to search through long strings.
            return self._restored(value) if nodes < _FEW_NODES or b"\\u0001" in payload else value
        except (ValueError, RecursionError) as problem:
            raise WorkerError(f"the worker sent an invalid value: {str(problem)[:200]}") from None

    def _decode_quickly(self, payload: bytes, start: int = 0) -> Any:
        """The value of a payload that has no more bytes than elements are allowed: it can be parsed first and looked at
        then, which is quicker. _UNUSUAL where `decode` can say more exactly what is wrong."""
        quicker = _msgspec() if len(payload) > _LARGE else sys.modules.get("msgspec.json")  # which takes long to load
        try:
            text = memoryview(payload)[start:] if start else payload
            value = _scanned(payload) if quicker is None else _NATIVE.without_collecting(quicker.decode, text)
            nodes = _weight(value, self._levels)
            if nodes < 0:
                return _UNUSUAL
            if _BACKSLASH not in payload or b"\\u" not in payload:
                self._left -= nodes
                return value
            if quicker is None and (b"\\ud" in payload or b"\\uD" in payload):  # msgspec refuses halves of pairs
                return _UNUSUAL
            self._left -= nodes
            return self._restored(value) if b"\\u0001" in payload else value
        except RecursionError:
            return _UNUSUAL
        except ValueError as problem:
            raise WorkerError(f"the worker sent an invalid value: {str(problem)[:200]}") from None

    def lone_call(self, payload: bytes, after: int, most: int, longest: int) -> tuple[int, int, str, list[Any]] | None:
        """The call of a tool that is all that a small frame holds: its elements, number, target and arguments. The
        number is above `after` and below `most`, the target no longer than `longest`. None where `decode` must look at
        it; then nothing was counted."""
        if _lone_call is None:
            return None
        call: tuple[int, int, str, list[Any]] | None
        call = _lone_call(_SCAN, payload, min(self._quick, self._left), self._levels, after, most, longest)
        if call is not None:
            self._left -= call[0]
        return call

    def lone_end(self, payload: bytes, most: float) -> tuple[list[Any], int | None, int, float, int] | None:
        """What a small VALUE frame, the last of its run, holds: values, operations, memory, seconds of processor time,
        which are below `most`, and bytes of output cut. None where `decode` or `decode_first` must look at it."""
        if _lone_end is None or not _SPENT < len(payload) <= self._quick or len(payload) > self._left:
            return None
        end: tuple[list[Any], int | None, int, float, int] | None
        end = _lone_end(_SCAN, SPENT.unpack_from(payload), payload, _SPENT, self._levels, most)
        return end

    def decode_first(self, payload: bytes, start: int = 0) -> Any:
        """The same for the first frame of another run; this, as `lone_end`, from any thread."""
        return self.for_another_run().decode(payload, start)

    def _restored(self, value: Any) -> Any:
        restorer = _Restorer(self._left // _ROW)
        restored = restorer.restore(value)
        self._left -= restorer.rows * _ROW
        return restored


_make_decoder: Any = None if _NATIVE is None else _NATIVE.maker(Decoder, Decoder.__slots__, Decoder)


def _scanned(payload: bytes) -> Any:
    text = payload.decode()
    try:
        value, end = _SCAN(text, 0)
    except StopIteration:
        raise ValueError("not JSON") from None
    if end != len(text):
        raise ValueError("more than one value")
    return value


def _parse(payload: bytes, max_levels: int, allow_nan: bool) -> Any:
    if payload.count(b"[") + payload.count(b"{") > max_levels:
        _check_levels(payload, max_levels)
    value = (_LENIENT if allow_nan else _STRICT).decode(payload.decode())
    if b"\\ud" in payload or b"\\uD" in payload:
        json.dumps(value, ensure_ascii=False).encode()  # UnicodeEncodeError for half of a surrogate pair
    return value


def _parse_large(payload: bytes, max_levels: int, allow_nan: bool) -> Any:
    """By libraries that are faster than json, and refuse halves of surrogate pairs by themselves."""
    if _NATIVE is not None and not allow_nan:
        value = _NATIVE.without_collecting(_msgspec().decode, payload)
        if _weight(value, max_levels) < 0:
            raise ValueError(f"nested more than {max_levels} levels deep")
        return value
    from pydantic_core import from_json  # it goes 200 levels deep at most: nothing is left to be looked at

    try:
        return from_json(payload, allow_inf_nan=allow_nan, cache_strings="all")
    except ValueError as problem:
        if "recursion" not in str(problem):
            raise
    _check_levels(payload, max_levels)  # deeper than that parser goes, and perhaps not deeper than allowed
    return _parse(payload, max_levels, allow_nan)


def _msgspec() -> Any:
    from msgspec import json as quicker

    return quicker


def _without_long_strings(payload: bytes) -> bytes:
    """With empty strings where it has a few, perhaps long ones; as it is where it has many, or escaped quotes."""
    parts: list[bytes] = []
    start = 0
    for _ in range(_FEW_STRINGS):
        opening = payload.find(b'"', start)
        closing = payload.find(b'"', opening + 1)
        if opening < 0 or closing < 0:  # one that does not end is for the parser to find
            return b"".join([*parts, payload[start:]])
        if payload[closing - 1] == _BACKSLASH:
            break
        parts += payload[start : opening + 1], b'"'
        start = closing + 1
    return payload


def _nodes(payload: bytes) -> int:
    return payload.count(b",") + payload.count(b"[") + payload.count(b"{")


def _check_levels(payload: bytes, most: int) -> None:
    brackets = re.sub(_STRINGS, b"", payload).translate(None, _NOT_BRACKETS)
    for _ in range(most):
        inner = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if len(inner) == len(brackets):  # none left, or unbalanced, which the parser will find
            return
        brackets = inner
    if brackets:
        raise ValueError(f"nested more than {most} levels deep")


def _check_numbers(payload: bytes) -> None:
    """A script's numbers are finite and have 64 bits; parsers would take 1e999 and integers of any length."""
    for number in re.findall(_NUMBER, payload):
        if b"." in number or b"e" in number or b"E" in number:
            if not isfinite(float(number)):
                raise ValueError("a number that is not finite")
        elif len(number) >= len(_LONG) and not -_INTEGERS <= int(number) < _INTEGERS:
            raise ValueError("an integer of more than 64 bits")


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not allowed")


_STRICT = json.JSONDecoder(parse_constant=_no_constant)
_SCAN: Any = _STRICT.scan_once  # type: ignore[attr-defined]  # public, but not in the stubs
_LENIENT = json.JSONDecoder()


class _Restorer:
    """Undoes what encode.lua does to values that JSON lacks."""

    def __init__(self, most_rows: int) -> None:
        self._most_rows = most_rows
        self.rows = 0
        self._late = 0.0

    def restore(self, value: Any) -> Any:
        if type(value) is list:
            return [item if type(item) not in (list, dict) else self.restore(item) for item in value]
        if type(value) is not dict:
            return value
        if len(value) == 1:
            ((key, item),) = value.items()
            if key[:1] == "\x01":
                return self._special(key, item)
        return {key: item if type(item) not in (list, dict) else self.restore(item) for key, item in value.items()}

    def _special(self, key: str, item: Any) -> Any:
        if key == "\x01b" and type(item) is str:
            return item.encode("latin-1")
        if key == "\x01m" and type(item) is list:
            return self._mapped([_pair(pair) for pair in item])
        if key == "\x01t" and type(item) is list and item and set(map(type, item)) == {list}:
            return self._rows(*item)
        raise ValueError("a malformed value")

    def _mapped(self, pairs: list[tuple[str | int, Any]]) -> dict[str | int, Any]:
        """A dict with integer keys. Their hashes are no secret, so keys can be chosen to collide: the processor time
        that it takes to build the dict is bounded."""
        table: dict[str | int, Any] = {}
        restored = [(name, self.restore(inner)) for name, inner in pairs]
        for start in range(0, len(restored), _BLOCK):
            began = thread_time()
            table.update(restored[start : start + _BLOCK])
            self._late += max(0.0, thread_time() - began - _BLOCK * _KEY_SECONDS)
            if self._late > _PATIENCE:
                raise ValueError("a table whose keys have colliding hashes")
        return table

    def _rows(self, names: list[Any], *columns: list[Any]) -> list[dict[str, Any]]:
        if not columns or len(names) != len(columns) or set(map(type, names)) != {str}:
            raise ValueError("malformed rows")
        self.rows += len(columns[0])
        if self.rows > self._most_rows:
            raise ValueError("too many rows")
        whole = [self.restore(column) if dict in set(map(type, column)) else column for column in columns]
        return [dict(zip(names, row)) for row in zip(*whole, strict=True)]  # noqa: B905 - as many names as columns


def _pair(item: Any) -> tuple[str | int, Any]:
    if type(item) is not list or len(item) != 2:
        raise ValueError("a malformed pair")
    name = item[0]
    if type(name) is not str and (type(name) is not int or not -_INTEGERS <= name < _INTEGERS):
        raise ValueError("a malformed key")
    return name, item[1]
