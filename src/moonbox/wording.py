"""Words for numbers: a count with its noun, in the singular or the plural."""

from __future__ import annotations

__all__ = ["counted", "noun"]


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """`1 call`, `2 calls`, `1,500 calls`; `plural` for nouns that do not just take an s."""
    return f"{number:,} {noun(number, singular, plural)}"


def noun(number: int, singular: str, plural: str | None = None) -> str:
    """The noun alone, in the form that fits the number."""
    return singular if number == 1 else plural or f"{singular}s"
