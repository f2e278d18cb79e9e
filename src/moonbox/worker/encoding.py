"""Frames, values and messages from a worker, which is assumed hostile: bounded before they are decoded, then checked.

A WorkerError means that the worker must be ended.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from itertools import chain
from math import inf, isfinite, nan
from time import thread_time
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert, json

from moonbox.errors import LIMIT_NAMES, WorkerError
from moonbox.worker.protocol import HEADER, SPENT

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
        data: bytes | memoryview
        if len(payload) < _LONG_TEXT:
            data = bare = payload[start:] if start else payload
        else:
            data, bare = memoryview(payload)[start:], _without_long_texts(payload, start)
        try:
            nodes = len(bare.translate(None, _NOT_NODES))
            if nodes > self._frame or nodes > self._left:  # what stands inside strings does not count
                nodes = len(re.sub(_STRINGS, b"", bare).translate(None, _NOT_NODES))
                if nodes > self._frame or nodes > self._left:
                    raise ValueError(f"more than {min(self._frame, self._left):,} elements")
            self._left -= nodes
            shapes = bare.translate(_SHAPES)
            decode = _decode_extremes if b"e+111" in shapes or b"1e111" in shapes else _decode
            value = decode(data) if nodes < _MANY else _without_collecting(decode, data)
            if b"\\" in bare and b"\\u0001" in bare:
                value = _Restorer(self._allow_nan).restore(value)
            if nodes > self._levels and not _is_shallow(bare, self._levels):
                _check_depth(value, self._levels)
            if _LONG_NUMBER in shapes:
                _check_integers(value)
            return value
        except (ValueError, RecursionError) as problem:  # msgspec's errors are ValueErrors
            raise WorkerError(f"the worker sent an invalid value: {str(problem)[:200]}") from None


def _without_long_texts(data: bytes, start: int) -> bytes:
    """JSON without its long texts, as far as these are few: what else there is to look at is then short."""
    if data.find(b"\\", start) >= 0:  # every quote that is left begins or ends a text
        data, start = data[start:].replace(b"\\\\", b"__").replace(b'\\"', b"__"), 0
    kept, place, after = [], start, start
    for _ in range(_MOST_TEXTS):
        begin = data.find(b'"', after) + 1
        end = data.find(b'"', begin) if begin else -1
        if end < 0:
            break
        after = end + 1
        if end - begin >= _LONG_TEXT:
            kept.append(data[place:begin])
            place = end
    return b"".join((*kept, data[place:]))


def _without_collecting(decode: Callable[[bytes | memoryview], Any], data: bytes | memoryview) -> Any:
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


# Messages about a run

_MOST_CALLS_AT_ONCE = 10_000
_MOST_FRAMES = 64
_MOST_NAMES = 300
_LONGEST_MESSAGE = 100_000
_LONGEST_NAME = 400  # characters of a call's target, or of another name
_LARGEST_COUNT = 1 << 53
_SPENT = SPENT.size
_MALFORMED_END = "the worker sent a malformed end of a run"
_STOPS = frozenset({"", "cancelled", *LIMIT_NAMES})

_Count = Annotated[int, Meta(ge=0, lt=_LARGEST_COUNT)]
_Seconds = Annotated[float, Meta(ge=0, lt=_LARGEST_COUNT)]


class RunReport(Struct, kw_only=True):
    """How a run ended, as its engine reports it."""

    kind: Literal["ok", "syntax", "runtime", "tool", "stop"]
    values: list[Any]
    operations: _Count | None
    memory: _Count
    cpu: _Seconds
    cut: _Count
    """Bytes printed past `max_output`."""
    limit: str
    message: str
    frames: list[tuple[str, Annotated[int, Meta(ge=-1, lt=_LARGEST_COUNT)], str]]
    extra: dict[str, Any]


def read_calls(payload: bytes, decoder: Decoder, after: int) -> list[tuple[int, str, list[Any]]]:
    """(number, target, arguments) of each call; the numbers rise from `after`."""
    calls = decoder.decode(payload)
    if type(calls) is not list or not 0 < len(calls) <= _MOST_CALLS_AT_ONCE:
        raise WorkerError("the worker sent malformed calls")
    for call in calls:
        if type(call) is not list or len(call) != 3:
            raise WorkerError("the worker sent a malformed call")
        number, target, arguments = call
        if type(number) is not int or type(target) is not str or type(arguments) is not list:
            raise WorkerError("the worker sent a malformed call")
        if not after < number < _LARGEST_COUNT or len(target) > _LONGEST_NAME:
            raise WorkerError("the worker sent a malformed call")
        after = number
    return calls


def read_cancelled(payload: bytes, decoder: Decoder) -> list[int]:
    """The numbers of the calls that the script no longer waits for."""
    numbers = decoder.decode(payload)
    if type(numbers) is not list or not all(type(number) is int for number in numbers):
        raise WorkerError("the worker sent a malformed cancellation")
    return numbers


def read_value(payload: bytes, decoder: Decoder) -> RunReport:
    """The end of a run that went well: what it spent, then its values."""
    if len(payload) < _SPENT:
        raise WorkerError(_MALFORMED_END)
    operations, memory, cpu, cut = SPENT.unpack_from(payload)
    values = decoder.decode(payload, _SPENT)
    if type(values) is not list or operations < -1 or memory < 0 or cut < 0 or not 0 <= cpu < _LARGEST_COUNT:
        raise WorkerError(_MALFORMED_END)
    return RunReport(
        kind="ok",
        values=values,
        operations=None if operations < 0 else operations,
        memory=memory,
        cpu=cpu,
        cut=cut,
        limit="",
        message="",
        frames=[],
        extra={},
    )


def read_done(payload: bytes, decoder: Decoder) -> RunReport:
    """The end of a run that failed. Of long texts and lists it keeps the beginning."""
    try:
        report = convert(decoder.decode(payload), RunReport)
    except ValidationError:
        raise WorkerError(_MALFORMED_END) from None
    if report.limit not in _STOPS:
        raise WorkerError(_MALFORMED_END)
    report.message = report.message[:_LONGEST_MESSAGE]
    report.frames = [
        (chunk[:_LONGEST_NAME], line, name[:_LONGEST_NAME]) for chunk, line, name in report.frames[:_MOST_FRAMES]
    ]
    report.extra = _extra(report.extra)
    return report


def _extra(given: dict[str, Any]) -> dict[str, Any]:
    """The known parts of what the worker added, each within its bounds."""
    extra: dict[str, Any] = {key: given[key] for key in ("data", "line", "column") if key in given}
    if given.get("lost") is True:
        extra["lost"] = True
    if isinstance(names := given.get("names"), list):
        extra["names"] = [name for name in names[:_MOST_NAMES] if type(name) is str and len(name) <= _LONGEST_NAME]
    if isinstance(hint := given.get("hint"), str):
        extra["hint"] = hint[:_LONGEST_MESSAGE]
    return extra
