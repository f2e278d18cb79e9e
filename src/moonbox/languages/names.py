"""Names that every language can write as they are."""

from __future__ import annotations

__all__ = ["RESERVED_WORDS", "is_identifier"]

RESERVED_WORDS = frozenset(
    {
        *("and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if"),
        *("in", "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while"),
    }
)


def is_identifier(text: str) -> bool:
    """Whether a script can write `tools.<text>`."""
    return text.isascii() and text.isidentifier() and text not in RESERVED_WORDS
