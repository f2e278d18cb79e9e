"""Expressions where Lua expects statements, and values that need parentheses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.lua.explain.grammar import values_end
from moonbox.languages.lua.explain.site import operand_before
from moonbox.languages.lua.explain.slips.spot import Advice

if TYPE_CHECKING:
    from moonbox.languages.lua.explain.slips.spot import Rule, Spot

__all__ = ["RULES"]


def _literal_access(spot: Spot) -> str | None:
    """`"abc".upper()`, `"abc"[1]`, `{1, 2}[1]`, `", ".join(list)`."""
    before, after = spot.before, spot.after
    if spot.text not in (".", ":", "[") or before is None or after is None or not spot.follows_on_line():
        return None
    if before.kind == "string":
        literal, call = before.text, spot.at(2)
        if len(literal) > 60:
            literal = '"…"'
        if spot.text in (".", ":") and after.kind == "name" and call is not None and call.text == "(":
            if after.text == "join":
                parts = spot.listing.parts(spot.index + 2)
                inner = spot.listing.text(*parts[0]) if parts else "list"
                return f"Lua joins a list with a function; write: table.concat({inner}, {literal})"
            return f"a string that a method is called on stands in parentheses; write: ({literal}):{after.text}(…)"
        return (
            f"a string that is indexed stands in parentheses: ({literal})" if spot.text != "[" else _character(literal)
        )
    if before.text == "}" and spot.text in (".", "["):
        return "a table that is indexed at once stands in parentheses: ({…})[1]"
    return None


def _character(literal: str) -> str:
    return f"strings are not indexed with [ ]; one character is: ({literal}):sub(1, 1)"


def _neighbours(spot: Spot) -> str | None:
    """`"a" "b"` and `"a" x`, which other languages join."""
    before = spot.before
    if before is None or before.kind != "string" or spot.token.kind not in ("string", "name") or spot.joined(-1, 0):
        return None
    if not spot.follows_on_line() or spot.bracket() == "{" or spot.failure.text == "syntax error":
        return None
    if spot.index == spot.statement and spot.token.kind == "name":
        return None
    left, right = spot.listing.text(spot.index - 1, spot.index), spot.listing.text(spot.index, spot.index + 1)
    return f"strings are joined with ..; write: {left} .. {right}"


def _method_without_call(spot: Spot) -> str | None:
    """`x:y` without arguments."""
    before = spot.before
    if spot.failure.text != "function arguments expected" or before is None or before.kind != "name":
        return None
    if spot.index < 3 or spot.tokens[spot.index - 2].text != ":" or spot.bracket() == "{":
        return None
    owner = operand_before(spot.listing, spot.index - 2) or "x"
    method, field = f"{owner}:{before.text}()", f"{owner}.{before.text}"
    return f"a : calls a method and needs parentheses: {method}; a field is read with a dot: {field}"


def _missing_return(spot: Spot) -> Advice | str | None:
    """An expression as the last line."""
    if (
        spot.failure.text not in ("syntax error", "unexpected symbol")
        or spot.failure.blocks
        or spot.failure.after_return
    ):
        return None
    first = spot.statement
    if spot.failure.text == "unexpected symbol" and spot.index != first:
        return None
    stop = values_end(spot.tokens, first)
    if stop is None or (first and not _begins_line(spot, first)):
        return None
    text = spot.listing.text(first, stop)
    end = spot.tokens[stop]
    if text == "…":
        return "an expression alone is no statement: return its value, or assign it"
    if end.kind == "eof" or (end.text == ";" and spot.tokens[stop + 1].kind == "eof"):
        return Advice(f"the last line is an expression; write: return {text}", first)
    if end.line > spot.tokens[stop - 1].last_line and spot.text == "==":
        left, right = spot.listing.text(first, spot.index), spot.listing.text(spot.index + 1, stop)
        return f"== compares, = assigns; to assign write: {left} = {right}"
    if end.line > spot.tokens[stop - 1].last_line and stop > first + 1:
        return f"an expression alone does nothing; use its value, such as: local result = {text}"
    return None


def _begins_line(spot: Spot, index: int) -> bool:
    return spot.tokens[index - 1].last_line < spot.tokens[index].line or spot.tokens[index - 1].text == ";"


RULES: tuple[Rule, ...] = (_literal_access, _neighbours, _method_without_call, _missing_return)
