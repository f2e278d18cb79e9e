"""What comes from a worker: cut into frames, bounded, parsed. Nothing here trusts a byte of it."""

from __future__ import annotations

import json
import re
from typing import Any

from moonbox.errors import WorkerError
from moonbox.worker.protocol import HEADER

__all__ = ["Reader", "decode_json"]

_LARGE = 64 * 1024
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


class Reader:
    """Cuts a stream of bytes into frames; refuses frames of more than `largest` bytes before they are read."""

    __slots__ = ("_buffer", "largest")

    def __init__(self, largest: int) -> None:
        self._buffer = bytearray()
        self.largest = largest

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next(self) -> tuple[int, bytes] | None:
        """The next whole frame, or None when more bytes are needed."""
        buffer = self._buffer
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


def decode_json(payload: bytes, max_nodes: int) -> Any:
    """Parse what a worker sent. Raises WorkerError where it is not JSON or would unfold to too many objects."""
    if len(payload) > _LARGE:
        _check_nodes(payload, max_nodes)
    try:
        value = _parse(payload)
    except (ValueError, RecursionError) as problem:
        raise WorkerError(f"the worker sent what is not JSON: {problem}") from None
    return _restore(value) if b"\\u0001" in payload else value


def _parse(payload: bytes) -> Any:
    if len(payload) > _LARGE:
        from pydantic_core import from_json

        return from_json(payload, allow_inf_nan=True, cache_strings="all")
    return json.loads(payload)


def _check_nodes(payload: bytes, most: int) -> None:
    if _nodes(payload) > most and _nodes(_STRINGS.sub(b"", payload)) > most:
        raise WorkerError(f"the worker sent a value of more than {most:,} elements")


def _nodes(payload: bytes) -> int:
    return payload.count(b",") + payload.count(b"[") + payload.count(b"{")


def _restore(value: Any) -> Any:
    """Undo what encode.lua does to values that JSON lacks."""
    if type(value) is list:
        return [item if type(item) not in (list, dict) else _restore(item) for item in value]
    if type(value) is not dict:
        return value
    if len(value) == 1:
        ((key, item),) = value.items()
        if key[:1] == "\x01":
            return _restore_special(key, item)
    return {key: item if type(item) not in (list, dict) else _restore(item) for key, item in value.items()}


def _restore_special(key: str, item: Any) -> Any:
    try:
        if key == "\x01b":
            return item.encode("latin-1")
        if key == "\x01m":
            return {_key(name): _restore(inner) for name, inner in item}
        if key == "\x01t":
            names, *columns = item
            columns = [_restore(column) if _has_special(column) else column for column in columns]
            return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    except (ValueError, TypeError, AttributeError, UnicodeError):
        pass
    raise WorkerError("the worker sent a malformed value")


def _has_special(column: Any) -> bool:
    return dict in set(map(type, column))


def _key(name: Any) -> Any:
    if type(name) is dict:
        name = _restore(name)
    if type(name) not in (str, int, bytes):
        raise WorkerError("the worker sent a malformed value")
    return name
