"""Lua constants as text: whatever a script holds, it stays data."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moonbox.languages.rhai.syntax.tokens import Pos

__all__ = ["number", "place", "place_text", "quote"]

_PLAIN = frozenset(range(32, 127)) - {ord('"'), ord("\\")}
_LEAST = -(2**63)


def quote(text: str) -> str:
    """A Lua string literal with exactly these characters, in UTF-8."""
    out = []
    for byte in text.encode("utf-8", "replace"):
        out.append(chr(byte) if byte in _PLAIN else f"\\{byte:03d}")
    return '"' + "".join(out) + '"'


def number(value: int | float) -> str:
    """A Lua number literal of exactly this value and kind."""
    if isinstance(value, int):
        if value == _LEAST:
            return "0x8000000000000000"
        return str(value) if value >= 0 else f"({value})"
    text = repr(value)
    if "inf" in text:
        text = text.replace("inf", "1e999")
    elif text.lstrip("-").isdigit():
        text += ".0"
    return f"({text})" if text.startswith("-") else text


def place(pos: Pos | None) -> int:
    """A position as one number, 0 for none."""
    return (pos.line << 16) | min(pos.column, 0xFFFF) if pos is not None else 0


def place_text(pos: Pos | None) -> str:
    return f"{pos.line}:{pos.column}" if pos is not None else "0:0"
