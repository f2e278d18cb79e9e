"""Slips of models that think in other languages: rules that look at where a script stops being Lua."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.lua.explain.slips import blocks, functions, literals, operators, tables, values, words

if TYPE_CHECKING:
    from moonbox.languages.lua.explain.slips.spot import Rule

__all__ = ["RULES"]

RULES: tuple[Rule, ...] = (
    *literals.RULES,
    *operators.RULES,
    *words.RULES,
    *functions.RULES,
    *tables.RULES,
    *blocks.RULES,
    *values.RULES,
)
"""In the order in which they are asked; the first that knows something answers."""
