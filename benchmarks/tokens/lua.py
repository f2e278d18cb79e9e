"""Calls as Lua source."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORDS = frozenset(
    {"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local", "nil"}
    | {"not", "or", "repeat", "return", "then", "true", "until", "while"}
)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


def script(calls: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """A script that makes the calls in order and returns every result."""
    return "return " + ",\n".join(call(name, arguments) for name, arguments in calls)


def call(name: str, arguments: dict[str, Any]) -> str:
    if not arguments:
        return f"tools{_member(name)}()"
    return f"tools{_member(name)}{literal(arguments)}"


def literal(value: Any) -> str:
    """A JSON value as a Lua expression."""
    match value:
        case None:
            return "json.null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return '"' + "".join(_ESCAPES.get(letter, letter) for letter in value) + '"'
        case list() | tuple():
            return "{" + ", ".join(literal(item) for item in value) + "}" if value else "array{}"
        case dict():
            return "{" + ", ".join(f"{_key(key)} = {literal(item)}" for key, item in value.items()) + "}"
    raise TypeError(f"no Lua literal for {type(value).__name__}")


def _member(name: str) -> str:
    return f".{name}" if _is_name(name) else f"[{literal(name)}]"


def _key(name: str) -> str:
    return name if _is_name(name) else f"[{literal(name)}]"


def _is_name(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z_]\w*", text, re.ASCII) is not None and text not in _WORDS
