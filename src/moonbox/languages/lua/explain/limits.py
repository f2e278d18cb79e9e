"""Limits that ended a run: what the script itself shows of the cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.limits import limit_hint

if TYPE_CHECKING:
    from moonbox.languages.lua.syntax.listing import Listing
    from moonbox.limits import Limits

__all__ = ["lua_limit_hint"]

_STRINGS = "build long strings with table.concat, not with .. in a loop"


def lua_limit_hint(limit: str, limits: Limits, listing: Listing, line: int | None, message: str) -> str | None:
    """What to change in the script."""
    general = limit_hint(limit, limits, message)
    match limit:
        case "time":
            where = f"it was at line {line}; " if line is not None else ""
            return f"{where}{_time(listing, line) or general}"
        case "memory":
            return f"{general}; {_STRINGS}{_recursion(listing)}"
    return general


def _recursion(listing: Listing) -> str:
    """A function that calls itself, which uses up memory when it does not end."""
    parsed, tokens = listing.parsed, listing.tokens
    bodies = dict(parsed.pairs) if parsed else {}
    for name in parsed.functions if parsed else ():
        opener = next((index for index in range(name, max(-1, name - 8), -1) if tokens[index].text == "function"), name)
        called = (
            tokens[index].text == tokens[name].text and tokens[index + 1].text == "("
            for index in range(name + 1, bodies.get(opener, name))
        )
        if any(called):
            return f"; make sure that {tokens[name].text}, which calls itself, ends"
    return ""


def _time(listing: Listing, line: int | None) -> str:
    """What the line shows that took the time: tool calls, an endless loop, or neither."""
    if line is None:
        return ""
    if any(word.text == "tools" and word.kind == "name" for word in listing.words(line)):
        return "tool calls count too: make fewer of them, or run them at the same time with parallel"
    tokens = listing.tokens
    for opener, closing in listing.parsed.pairs if listing.parsed else ():
        endless = tokens[opener].text == "while" and tokens[opener + 1].text == "true"
        inside = tokens[opener].line <= line <= tokens[closing].line
        leaves = any(tokens[index].text in ("break", "return") for index in range(opener, closing))
        if endless and inside and not leaves:
            return f"the loop of line {tokens[opener].line} never ends: add a break or a condition"
    return ""
