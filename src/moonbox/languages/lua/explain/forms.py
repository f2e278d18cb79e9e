"""Forms: Lua code with holes for the text that the script itself has there.

`{0}`, `{1}` and `{2}` stand for the arguments, `{*}` for all of them, `{self}` for the value before the dot and `{set}`
for a pattern of everything but the separator that was given.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["filled"]


def filled(form: str, arguments: Sequence[str] = (), receiver: str = "") -> str:
    """A form with the script's own text in it, or with x, y and z where that is not known."""
    given = list(arguments) if "…" not in arguments else []
    texts = [*given, *("x", "y", "z")[len(given) :]]

    def fill(hole: re.Match[str]) -> str:
        match hole["name"]:
            case "*":
                return ", ".join(given) if given else "…"
            case "set":
                return _separated(given[-1] if given else "")
            case "self":
                return receiver or "x"
            case number:
                alone = hole.string[hole.start() - 1 : hole.start()] in ("(", " ") and hole.string[
                    hole.end() : hole.end() + 1
                ] in (")", ",")
                text = texts[int(number)]
                return text if alone else _operand(text, called=hole.string[hole.end() : hole.end() + 1] == ":")

    return _HOLE.sub(fill, form)


def _operand(text: str, *, called: bool) -> str:
    """The text so that an operator or a method may stand beside it."""
    plain = _LITERAL.fullmatch(text) is not None and not called
    return text if plain or _SIMPLE.fullmatch(text) else f"({text})"


def _separated(literal: str) -> str:
    """The pattern of a part between separators."""
    separator = literal[1:-1] if len(literal) == 3 and literal[0] in "'\"" else ","
    return f"[^{'%' if separator in '^]%-' else ''}{separator}]+"


_HOLE = re.compile(r"\{(?P<name>[012*]|self|set)\}")
_SIMPLE = re.compile(r"[A-Za-z_][\w.]*(?:\[[\w.]+\]|\([\w., ]*\))?")
_LITERAL = re.compile(r"[0-9.]+|\"[^\"]*\"|'[^']*'|\{[^{}]*\}")
