"""Compact text of values, bounded without being built in full."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from moonbox.wording import counted


class Clip:
    """The beginning and the end of a text that is read once, piece by piece, and its whole length.

    Never holds more than twice `limit` characters, however long the text is.
    """

    def __init__(self, text: Iterable[str], limit: int) -> None:
        limit = max(limit, 1)
        self.total = 0
        front: list[str] = []
        back: deque[str] = deque()
        held = 0
        for raw in text:
            piece = clean(raw)
            if self.total < limit:
                front.append(piece[:limit])
            self.total += len(piece)
            back.append(piece[-limit:])
            held += len(back[-1])
            while held - len(back[0]) >= limit:
                held -= len(back.popleft())
        self._front = "".join(front)[:limit]
        self._back = "".join(back)[-limit:]

    def fit(self, room: int, note: Callable[[int, int], str]) -> str:
        """The whole text if it has room, else its head and tail around `note(characters left out, all of them)`."""
        if self.total <= room:
            return self._front
        if len(note(self.total, self.total)) > room // 2:
            note = _brief
        left = room - len(note(self.total, self.total))
        if left < 16:
            return self._front[: room - 1] + "…" if room > 0 else ""
        tail = left // 3
        return self._front[: left - tail] + note(self.total - left, self.total) + self._back[-tail:]


def json_in(text: str) -> Any:
    """The table or list that a text is as JSON; None for any other text."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def pieces(value: Any, *, whole: bool = False, exact: bool = False) -> Iterator[str]:
    """The value as JSON in parts: sorted keys, no spaces, readable characters; bytes as escaped text, NaN as NaN.

    `whole`: numbers such as 2.0 are written as integers. `exact`: neither that, nor are keys sorted.
    """
    whole = whole and not exact
    kind = type(value)
    if kind is str and len(value) > _PART:
        yield '"'
        for start in range(0, len(value), _PART):
            yield _encode(value[start : start + _PART])[1:-1]
        yield '"'
    elif kind is list and not _is_small(value):
        opener = "["
        for item in value:
            yield opener
            yield from pieces(item, whole=whole, exact=exact)
            opener = ","
        yield "]"
    elif kind is dict and not _is_small(value):
        opener = "{"
        for name, item in _named(value, exact):
            yield f"{opener}{_encode(name, exact)}:"
            yield from pieces(item, whole=whole, exact=exact)
            opener = ","
        yield "}"
    else:
        yield _encode(_whole(value) if whole else value, exact)


def short(value: Any, limit: int) -> str:
    """At most `limit` characters of the value's JSON; only as much of it is made as is shown."""
    text = ""
    for piece in pieces(value):
        text += piece[: limit + 1]
        if len(text) > limit:
            return clean(text[: limit - 1])[: limit - 1] + "…"
    return clean(text)[:limit]


def shape(value: Any) -> str:
    """What kind of thing a large value is, in a few words."""
    if isinstance(value, str):
        return f"a string of {counted(len(value), 'character')}"
    if isinstance(value, bytes):
        return f"a binary string of {counted(len(value), 'byte')}"
    if isinstance(value, list):
        return f"an array of {counted(len(value), 'element')}"
    if isinstance(value, dict):
        inside = [clean(name[:40]) + _size(item) for name, item in islice(_named(value), 8)]
        more = ", …" if len(value) > 8 else ""
        return f"a table with {len(value):,} keys ({', '.join(inside)}{more})"
    return "a number"


def binary(value: bytes) -> str:
    """Bytes as text: what is not UTF-8 as \\xNN; data that is not text at all by its first bytes and its size."""
    sample = value[:4096]
    text = sample.decode("utf-8", "backslashreplace")
    odd = text.count("\\x") + sum(1 for byte in sample if byte < 32 and byte not in b"\t\n\r")
    if len(value) > 256 and odd * 10 > len(sample):
        start = value[:24].decode("ascii", "backslashreplace")
        start = "".join(f"\\x{ord(mark):02x}" if ord(mark) < 32 else mark for mark in start)
        return f"<binary, {len(value):,} bytes: {start}…>"
    return value.decode("utf-8", "backslashreplace")


def clean(text: str) -> str:
    """The text without half surrogate pairs, which no provider's JSON can carry."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()


_PART = 32_768
_EXACT = 2**53  # below it, a float that is whole is the integer that it looks like


def _encode(value: Any, exact: bool = False) -> str:
    try:
        if not (exact and _has_numbers(value)):
            return json.dumps(value, ensure_ascii=False, sort_keys=not exact, separators=(",", ":"), default=_other)
    except TypeError:  # keys that are partly strings and partly integers have no order of their own
        pass
    return json.dumps(_renamed(value, exact), ensure_ascii=False, separators=(",", ":"), default=_other)


def _has_numbers(value: Any) -> bool:
    """Whether a mapping in it has keys that are numbers, which may also be there as text."""
    if isinstance(value, dict):
        return any(type(key) is not str for key in value) or any(map(_has_numbers, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_numbers, value))


def _whole(value: Any) -> Any:
    kind = type(value)
    if kind is float:
        return int(value) if value.is_integer() and abs(value) < _EXACT else value
    if kind is dict:
        return {key: _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if kind is list else value


def _other(value: Any) -> Any:
    return binary(value) if isinstance(value, bytes) else str(value)


def _renamed(value: Any, exact: bool = False) -> Any:
    if isinstance(value, dict):
        return {name: _renamed(item, exact) for name, item in _named(value, exact)}
    if isinstance(value, list | tuple):
        return [_renamed(item, exact) for item in value]
    return value


def _named(value: dict[Any, Any], exact: bool = False) -> Iterator[tuple[str, Any]]:
    """Items in a fixed order, integer keys first; an integer that is also there as a string is written [1].

    `exact`: in their own order.
    """
    for key in value if exact else sorted(value, key=lambda key: (isinstance(key, str), key)):
        name = str(key)
        yield (f"[{name}]" if not isinstance(key, str) and name in value else name), value[key]


def _size(value: Any) -> str:
    return f": {len(value):,}" if isinstance(value, list | dict | str | bytes) and len(value) > 99 else ""


def _is_small(value: Any) -> bool:
    return _weigh(value, _PART) >= 0


def _weigh(value: Any, room: int) -> int:
    """How many of `room` characters are left after the value, roughly; negative as soon as there are none."""
    for item in value.values() if type(value) is dict else value:
        kind = type(item)
        room -= 16
        if kind is str or kind is bytes:
            room -= len(item)
        elif kind is list or kind is dict:
            room = _weigh(item, room)
        if room < 0:
            return room
    if type(value) is dict:
        room -= sum(len(key) for key in value if type(key) is str)
    return room


def _brief(left_out: int, total: int) -> str:
    return f"… [{left_out:,} of {total:,} characters left out] …"
