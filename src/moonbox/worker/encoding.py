"""Frames and values from a worker, which is assumed hostile: counted and bounded before they are decoded."""

from __future__ import annotations

import gc
import re
from itertools import chain
from math import inf, isfinite, nan
from time import thread_time
from typing import TYPE_CHECKING, Any

from msgspec import json

from moonbox.errors import WorkerError
from moonbox.worker.protocol import HEADER

if TYPE_CHECKING:
    from collections.abc import Callable

_AROUND = 8  # levels of the wire around a script's value
_INTEGERS = 1 << 63  # a script has no integers beyond it
_BLOCK, _KEY_SECONDS, _PATIENCE = 256, 1e-6, 0.1  # a key takes a tenth of that
_SPECIAL_FLOATS = {"nan": nan, "inf": inf, "-inf": -inf}
# Never fails to match at a quote, and never goes back: an unfinished string takes all the rest.
_STRINGS = rb'(?s)"(?:[^"\\]++|\\.)*+"?'
# How numbers look: every digit as 1, every exponent as e or e+.
_SHAPES = bytes.maketrans(b"0123456789E-", b"1111111111e+")
_LONG_NUMBER = b"1" * 19  # as many digits as the largest integer has


def _float(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError("a number out of range")
    return value


_decode = json.Decoder().decode
# msgspec takes 100 times as long for floats near the ends of their range as for others; Python does not.
_decode_extremes = json.Decoder(float_hook=_float).decode
_NOT_NODES = bytes(set(range(256)) - set(b",[{"))  # an element follows one of these
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_MANY = 1_000  # elements
_LONG_TEXT, _MOST_TEXTS = 10_000, 100  # bytes; texts of one frame
_CONTAINERS = frozenset({list, dict})


class FrameReader:
    """Cuts a stream of bytes into frames; refuses frames of more than `largest` bytes before they are read."""

    __slots__ = ("buffer", "largest")

    def __init__(self, largest: int) -> None:
        self.buffer = bytearray()
        """Bytes that have arrived and are not taken yet; add to it what arrives."""
        self.largest = largest

    def take(self, data: bytes) -> tuple[int, bytes] | None:
        """Add what has arrived; the next whole frame, or None when more bytes are needed."""
        if not self.buffer and len(data) >= HEADER.size:  # nearly always it is one whole frame
            kind, length = HEADER.unpack_from(data)
            if length == len(data) - HEADER.size and length <= self.largest:
                return kind, data[HEADER.size :]
        self.buffer += data
        return self.next()

    def next(self) -> tuple[int, bytes] | None:
        """The next whole frame of what has arrived before, or None when more bytes are needed."""
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
    """Decodes the JSON that a worker sends in one run: at most `most` elements, and half of that in one frame."""

    __slots__ = ("_allow_nan", "_frame", "_left", "_levels")

    def __init__(self, most: int, max_depth: int, *, allow_nan: bool = False) -> None:
        self._allow_nan = allow_nan
        self._left = most
        self._frame = most // 2
        self._levels = 3 * max_depth + _AROUND

    def decode(self, payload: bytes, start: int = 0) -> Any:
        """The value that begins there; raises WorkerError where it is not JSON of ours or has too many elements."""
        data = payload[start:] if start else payload
        try:
            bare = data if len(data) < _LONG_TEXT else _without_long_texts(data)
            nodes = len(bare.translate(None, _NOT_NODES))
            if nodes > self._frame or nodes > self._left:  # what stands inside strings does not count
                nodes = len(re.sub(_STRINGS, b"", bare).translate(None, _NOT_NODES))
                if nodes > self._frame or nodes > self._left:
                    raise ValueError(f"more than {min(self._frame, self._left):,} elements")
            self._left -= nodes
            shapes = bare.translate(_SHAPES)
            decode = _decode_extremes if b"e+111" in shapes or b"1e111" in shapes else _decode
            value = decode(data) if nodes < _MANY else _without_collecting(decode, data)
            if b"\\" in data and b"\\u0001" in data:
                value = _Restorer(self._allow_nan).restore(value)
            if nodes > self._levels and not _is_shallow(bare, self._levels):
                _check_depth(value, self._levels)
            if _LONG_NUMBER in shapes:
                _check_integers(value)
            return value
        except (ValueError, RecursionError) as problem:  # msgspec's errors are ValueErrors
            raise WorkerError(f"the worker sent an invalid value: {str(problem)[:200]}") from None


def _without_long_texts(data: bytes) -> bytes:
    """JSON without its long texts, as far as these are few: what else there is to look at is then short."""
    kept, place, after = [], 0, 0
    for _ in range(_MOST_TEXTS):
        begin = data.find(b'"', after) + 1
        end = data.find(b'"', begin) if begin else -1
        if end < 0 or data.find(b"\\", begin, end) >= 0:
            break
        after = end + 1
        if end - begin >= _LONG_TEXT:
            kept.append(data[place:begin])
            place = end
    return b"".join((*kept, data[place:])) if place else data


def _without_collecting(decode: Callable[[bytes], Any], data: bytes) -> Any:
    """Without the garbage collector, which would look through the new values again and again."""
    if not gc.isenabled():
        return decode(data)
    gc.disable()
    try:
        return decode(data)
    finally:
        gc.enable()


def _is_shallow(data: bytes, levels: int) -> bool:
    """Whether all brackets, also inside strings, are nested no deeper. Each round removes the innermost pairs."""
    brackets = data.translate(None, _NOT_BRACKETS)
    for _ in range(levels):
        inner = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if not inner or len(inner) == len(brackets):
            return not inner
        brackets = inner
    return False


def _check_depth(value: Any, levels: int) -> None:
    """Raise ValueError where a value is nested too deeply."""
    level = [value]
    for _ in range(levels):
        within = chain.from_iterable([item.values() if type(item) is dict else item for item in level])
        level = [item for item in within if type(item) in _CONTAINERS]
        if not level:
            return
    raise ValueError(f"nested more than {levels} levels deep")


def _check_integers(value: Any) -> None:
    """Raise ValueError where a value has an integer that no script can hold."""
    if type(value) is int and not -_INTEGERS <= value < _INTEGERS:
        raise ValueError("an integer of more than 64 bits")
    if type(value) in _CONTAINERS:
        for item in value.values() if type(value) is dict else value:
            _check_integers(item)


class _Restorer:
    """Undoes what prelude/encode.lua does to values that JSON lacks."""

    def __init__(self, allow_nan: bool) -> None:
        self._allow_nan = allow_nan
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
        if key == "\x01f" and self._allow_nan and type(item) is str and item in _SPECIAL_FLOATS:
            return _SPECIAL_FLOATS[item]
        if key == "\x01m" and type(item) is list:
            return self._mapped([_pair(pair) for pair in item])
        raise ValueError("a malformed value")

    def _mapped(self, pairs: list[tuple[str | int, Any]]) -> dict[str | int, Any]:
        """A dict with integer keys. Hashes of integers are public, so a script can choose keys that collide. The
        processor time to build the dict is bounded."""
        table: dict[str | int, Any] = {}
        restored = [(name, self.restore(inner)) for name, inner in pairs]
        for start in range(0, len(restored), _BLOCK):
            began = thread_time()
            table.update(restored[start : start + _BLOCK])
            self._late += max(0.0, thread_time() - began - _BLOCK * _KEY_SECONDS)
            if self._late > _PATIENCE:
                raise ValueError("a table whose keys have colliding hashes")
        return table


def _pair(item: Any) -> tuple[str | int, Any]:
    if type(item) is not list or len(item) != 2:
        raise ValueError("a malformed pair")
    name = item[0]
    if type(name) is not str and (type(name) is not int or not -_INTEGERS <= name < _INTEGERS):
        raise ValueError("a malformed key")
    return name, item[1]
