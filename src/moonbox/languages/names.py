"""Names that every language can write as they are."""

from __future__ import annotations

import re

__all__ = ["RESERVED_WORDS", "is_identifier"]

RESERVED_WORDS = frozenset(
    {
        *("and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if"),
        *("in", "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while"),
    }
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_identifier(text: str) -> bool:
    """Whether a script can write `tools.<text>`."""
    return _IDENTIFIER.fullmatch(text) is not None and text not in RESERVED_WORDS
