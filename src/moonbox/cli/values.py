"""Values for people: JSON-like, coloured, formatted for the terminal's width, and shortened if they are long."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moonbox.compact import binary, clean, pieces
from moonbox.wording import counted, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

Piece = tuple[str, str]
"""A text and its style."""

_STYLES = {bool: "magenta", int: "cyan", float: "cyan", str: "green", bytes: "yellow", type(None): "magenta"}
_KEY = "blue"
_NOTE = "dim italic"
_INDENT = "  "


class Pretty(Struct, frozen=True):
    """A value on the screen, and whether something of it was left out."""

    text: Text
    shortened: bool


def pretty(value: Any, width: int, *, items: int = 30, chars: int = 500, rows: int = 60) -> Pretty:
    """At most `rows` lines: of each table the first `items`, of each string the first `chars` characters."""
    from rich.text import Text

    layout = _Layout(items, chars, rows)
    text = Text()
    for piece, style in layout.pieces(value, width, ""):
        text.append(piece, style or None)
    return Pretty(text, layout.shortened)


def plain_text(value: Any) -> str:
    """The value for another program: text as it is, everything else as JSON on one line."""
    return value if isinstance(value, str) else "".join(pieces(value))


class _Layout(Struct):
    items: int
    chars: int
    rows: int
    shortened: bool = False
    _used: int = 1

    def pieces(self, value: Any, room: int, indent: str, taken: int = 0) -> Iterator[Piece]:
        """The value on one line if it fits behind the `taken` characters, else one item to a line."""
        line = self._on_one_line(value, room - taken)
        if line is not None:
            yield from line
            return
        if not isinstance(value, list | dict) or not value:
            yield from self._scalar(value)
            return
        yield from self._on_lines(value, room, indent)

    def _on_lines(self, value: Any, room: int, indent: str) -> Iterator[Piece]:
        opener, closer = ("[", "]") if isinstance(value, list) else ("{", "}")
        deeper = indent + _INDENT
        yield opener, ""
        number = 0
        for key, item in self._members(value):
            if number == self.items or self._used >= self.rows:
                break
            self._used += 1
            number += 1
            yield "\n" + deeper, ""
            label = "" if key is None else _key(key)
            if label:
                yield label, _KEY
                yield ": ", ""
            yield from self.pieces(item, room - len(_INDENT), deeper, len(label) + len(": ,"))
            if number < len(value):
                yield ",", ""
        if number < len(value):
            self.shortened = True
            self._used += 1
            yield f"\n{deeper}… {len(value) - number:,} more", _NOTE
        self._used += 1
        yield f"\n{indent}{closer}", ""

    def _on_one_line(self, value: Any, room: int) -> list[Piece] | None:
        """The pieces, or None as soon as they do not fit."""
        line: list[Piece] = []
        left = room
        for piece in self._flat(value):
            left -= len(piece[0])
            if left < 0:
                return None
            line.append(piece)
        return line

    def _flat(self, value: Any) -> Iterator[Piece]:
        if not isinstance(value, list | dict):
            yield from self._scalar(value, flat=True)
            return
        opener, closer = ("[", "]") if isinstance(value, list) else ("{", "}")
        yield opener, ""
        for position, (key, item) in enumerate(self._members(value)):
            if position:
                yield ", ", ""
            if key is not None:
                yield _key(key), _KEY
                yield ": ", ""
            yield from self._flat(item)
        yield closer, ""

    def _scalar(self, value: Any, *, flat: bool = False) -> Iterator[Piece]:
        style = _STYLES.get(type(value), "")
        if isinstance(value, str):
            cut = len(value) - self.chars
            if cut > 0 and flat:
                yield value, style  # longer than any line; the full length makes the caller use several lines
                return
            yield _quoted(value[: self.chars]), style
            if cut > 0:
                self.shortened = True
                yield f" … {counted(cut, 'more character')}", _NOTE
        elif isinstance(value, bytes):
            yield visible(binary(value), keep=""), style
        else:
            yield json.dumps(value) if isinstance(value, bool | int | float | None) else visible(str(value)), style

    @staticmethod
    def _members(value: Any) -> Iterator[tuple[Any, Any]]:
        if isinstance(value, list):
            return ((None, item) for item in value)
        # Sorted, so that the same table always looks the same.
        return iter(sorted(value.items(), key=lambda item: (isinstance(item[0], str), item[0])))


def _key(key: Any) -> str:
    return _quoted(key) if isinstance(key, str) else f"[{key}]"


def _quoted(text: str) -> str:
    return visible(json.dumps(clean(text), ensure_ascii=False), keep="")
