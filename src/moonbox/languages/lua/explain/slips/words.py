"""Statements that begin with a word of another language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.lua.explain.grammar import expression_end
from moonbox.languages.lua.explain.mend import DECLARATIONS, mended, with_line
from moonbox.languages.lua.explain.slips.spot import Advice

if TYPE_CHECKING:
    from moonbox.languages.lua.explain.slips.spot import Rule, Spot

__all__ = ["RULES", "TRY"]

TRY = "Lua has no try; use: local ok, result = pcall(function() … end) if not ok then … end"
_IMPORT = "there is nothing to import: string, table, math, utf8, os, json, docs and tools are already there"
_WAIT = "calls wait for their result by themselves: leave out {}"
_SWITCH = "Lua has no switch; use if … elseif … else … end, or a table of values"
_CONTINUE = "Lua has no continue; write goto continue here and ::continue:: on a line of its own before the loop's end"
_TYPES = frozenset(
    {"int", "float", "double", "bool", "boolean", "auto", "number", "char", "dynamic", "final", "my", "mut"}
)
_WORDS = {
    "try": TRY,
    "catch": TRY,
    "except": TRY,
    "finally": TRY,
    "switch": _SWITCH,
    "case": _SWITCH,
    "import": _IMPORT,
    "from": _IMPORT,
    "export": "a script exports nothing: return the value at its end",
    "async": _WAIT.format("async"),
    "await": _WAIT.format("await"),
    "class": "Lua has no classes; use tables and functions",
    "pass": "Lua needs no pass: a block may be empty",
    "global": "a name that is not declared local is global: leave out global",
    "nonlocal": "a function sees the locals around it: leave out nonlocal",
    "with": "Lua has no with; call the functions one after the other",
    "unless": "Lua has no unless; write: if not … then … end",
    "foreach": "Lua's loop over a list is: for _, item in ipairs(list) do … end",
    "yield": "Lua has no yield; collect the values in a table and return it",
}


def _continue(spot: Spot) -> Advice | None:
    word = spot.tokens[spot.statement]
    if word.kind != "name" or word.text != "continue" or spot.index != spot.statement + 1:
        return None
    looping = any(spot.within(loop) for loop in ("for", "while", "repeat"))
    return Advice(_CONTINUE, spot.statement) if looping else None


def _declaration(spot: Spot) -> str | None:
    """`const x = 5`, `let x`, `int x = 5`."""
    word = spot.tokens[spot.statement]
    if (
        spot.index != spot.statement + 1
        or word.kind != "name"
        or not spot.follows_on_line()
        or spot.token.kind != "name"
    ):
        return None
    if word.text in DECLARATIONS:
        return with_line("variables are declared with local", mended(spot.listing, word.line))
    assigned = spot.after is not None and spot.after.text == "="
    if word.text in _TYPES and assigned:
        stop = expression_end(spot.tokens, spot.index + 2)
        line = f"local {spot.listing.text(spot.index, stop)}" if stop else None
        return with_line("variables are declared with local, without a type", line)
    return None


def _destructured(spot: Spot) -> str | None:
    """`local {a, b} = t`, `const [a, b] = t`."""
    word, opener = spot.tokens[spot.statement], spot.statement + 1
    if word.text not in (*DECLARATIONS, "local") or spot.tokens[opener].text not in ("{", "["):
        return None
    close = spot.listing.closing(opener)
    if close is None or spot.tokens[close + 1].text != "=":
        return None
    names = [spot.tokens[first].text for first, stop in spot.listing.parts(opener) or [] if stop == first + 1]
    stop = expression_end(spot.tokens, close + 2)
    source = spot.listing.text(close + 2, stop) if stop else "t"
    if stop is not None and stop > close + 3:
        source = "t"
    if not names or len(names) > 6:
        return "Lua cannot take a table apart in an assignment; write: local a, b = t.a, t.b"
    if spot.tokens[opener].text == "{":
        values = ", ".join(f"{source}.{name}" for name in names)
    else:
        values = ", ".join(f"{source}[{number}]" for number in range(1, len(names) + 1))
    return f"Lua cannot take a table apart in an assignment; write: local {', '.join(names)} = {values}"


def _elif(spot: Spot) -> Advice | None:
    word = spot.tokens[spot.statement]
    if word.text not in ("elif", "elsif", "elseIf") or word.kind != "name" or not spot.within("if"):
        return None
    return Advice(with_line(f"Lua writes elseif, not {word.text}", mended(spot.listing, word.line)), spot.statement)


def _statement_word(spot: Spot) -> Advice | None:
    """A statement that opens with a keyword of another language."""
    word = spot.tokens[spot.statement]
    if word.kind != "name" or (spot.index <= spot.statement and not spot.failure.after_return):
        return None
    follower = spot.tokens[spot.statement + 1]
    if word.text not in _WORDS or follower.text in ("=", ".", ",", "["):
        return None
    calls = follower.text in ("(", "{", ":") or follower.kind == "string"
    if calls and word.text not in ("try", "catch", "switch", "except", "finally", "import", "class", "with"):
        return None
    if not calls and spot.index > spot.statement + 1:
        return None
    return Advice(_WORDS[word.text], spot.statement)


def _raised(spot: Spot) -> str | None:
    """`throw new Error("x")`, `raise ValueError(…)`, `delete t.x`, `del t[1]`, `print x`."""
    word = spot.tokens[spot.statement]
    if spot.index != spot.statement + 1 or word.kind != "name" or not spot.follows_on_line():
        return None
    stop = expression_end(spot.tokens, spot.index)
    value = spot.listing.text(spot.index, stop) if stop else ""
    match word.text:
        case "throw" | "raise":
            return 'Lua raises errors with a function; write: error("what went wrong")'
        case "delete" | "del" if value:
            return f"Lua removes a field by setting it to nil; write: {value} = nil"
        case "print" | "assert" if value:
            return f"{word.text} is a function; write: {word.text}({value})"
        case "new":
            return "Lua has no new; call the function that makes the value"
    return None


def _prefix_word(spot: Spot) -> str | None:
    """`return await f()`, `local n = new Map()`, `typeof x == …`: the word before the failing one is no value."""
    before = spot.before
    if before is None or before.kind != "name" or spot.token.kind != "name" or not spot.follows_on_line():
        return None
    match before.text:
        case "await" | "async":
            return _WAIT.format(before.text)
        case "new":
            return "Lua has no new; call the function that makes the value"
        case "typeof":
            return f"type is a function in Lua; write: type({spot.text})"
    return None


def _semicolon_block(spot: Spot) -> str | None:
    """`try { … }` and `switch (x) { … }`, whose braces Lua reads as a table."""
    for opener in spot.failure.brackets:
        if spot.tokens[opener].text != "{" or opener == 0:
            continue
        word = spot.tokens[opener - 1].text
        if word in ("try", "finally"):
            return TRY
        if spot.tokens[spot.statement].text == "switch":
            return _SWITCH
    return None


def _import_path(spot: Spot) -> str | None:
    """`#include`, `using x`, `use x`."""
    if spot.text == "#" and spot.index == spot.statement and spot.after is not None and spot.after.text == "include":
        return _IMPORT
    return None


RULES: tuple[Rule, ...] = (
    _continue,
    _destructured,
    _declaration,
    _elif,
    _statement_word,
    _raised,
    _prefix_word,
    _semicolon_block,
    _import_path,
)
