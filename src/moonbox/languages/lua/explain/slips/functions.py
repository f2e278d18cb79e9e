"""Functions written as in other languages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.lua.explain.grammar import expression_end
from moonbox.languages.lua.explain.mend import with_line

if TYPE_CHECKING:
    from moonbox.languages.lua.explain.slips.spot import Rule, Spot

__all__ = ["RULES"]

_WORDS = frozenset({"def", "func", "fn", "fun", "sub", "procedure"})


def _definition(spot: Spot) -> str | None:
    """`def total(items):`."""
    word, name, opener = spot.statement, spot.statement + 1, spot.statement + 2
    if spot.index != name or spot.tokens[word].text not in _WORDS or spot.token.kind != "name":
        return None
    names = _parameters(spot, opener)
    line = f"function {spot.text}({', '.join(names)}) … end" if names is not None else "function name(a, b) … end"
    return f"Lua defines a function with function … end; write: {line}"


def _arrow(spot: Spot) -> str | None:
    """`x => x * 2`, `(a, b) => a + b`, also with ->."""
    tokens = spot.tokens
    close = (
        spot.listing.closing(spot.failure.brackets[-1]) if spot.bracket() == "(" and spot.text in (",", ")") else None
    )
    for sign in (spot.index, spot.index - 1, -1 if close is None else close + 1):
        if sign < 1 or tokens[sign].text not in ("=", "-") or tokens[sign + 1].text != ">":
            continue
        if tokens[sign].end != tokens[sign + 1].start:
            continue
        names, start = _parameters_before(spot, sign)
        if names is None or (start > 0 and tokens[start - 1].text in ("if", "while", "elseif")):
            return None
        if start > 0 and tokens[start - 1].kind == "name" and tokens[sign].text == "-":
            return "Lua has no type annotations: leave out -> and what follows it"
        body = _body(spot, sign + 2)
        return f"Lua has no {tokens[sign].text}> functions; write: function({', '.join(names)}) {body} end"
    return None


def _parameters_before(spot: Spot, sign: int) -> tuple[list[str] | None, int]:
    """The parameters that end before the arrow, and where they begin."""
    last = sign - 1
    if spot.tokens[last].kind == "name":
        return [spot.tokens[last].text], last
    if spot.tokens[last].text != ")":
        return None, last
    opener = last - 1
    while opener >= 0 and spot.tokens[opener].text != "(" and last - opener < 40:
        opener -= 1
    names = _parameters(spot, opener) if opener >= 0 and spot.tokens[opener].text == "(" else None
    if names is not None and opener > 0 and spot.tokens[opener - 1].text == "function":
        opener -= 1
    return names, opener


def _lambda(spot: Spot) -> str | None:
    """`lambda x: x * 2`."""
    span = spot.listing.span(spot.token.line)
    for index in range(span.start, min(spot.index, span.stop)):
        if spot.tokens[index].text != "lambda" or spot.tokens[index].kind != "name":
            continue
        colon = next((at for at in range(index + 1, span.stop) if spot.tokens[at].text == ":"), None)
        if colon is None:
            continue
        names = [spot.tokens[at].text for at in range(index + 1, colon) if spot.tokens[at].kind == "name"]
        return f"Lua has no lambda; write: function({', '.join(names)}) {_body(spot, colon + 1)} end"
    return None


def _body(spot: Spot, first: int) -> str:
    if spot.tokens[first].text == "{":
        return "…"
    stop = expression_end(spot.tokens, first)
    text = spot.listing.text(first, stop) if stop else ""
    return f"return {text}" if text else "return …"


def _parameter(spot: Spot) -> str | None:
    """Types, defaults and rest parameters inside the parentheses of a function."""
    opener = _header(spot)
    if opener is None or spot.failure.text != "')' expected":
        return None
    if spot.text == ":":
        names = _names_until(spot, opener)
        keyword = _keyword(spot, opener)
        if keyword and spot.tokens[keyword - 1].text == "local":
            keyword -= 1
        header = spot.listing.text(keyword, opener)
        return with_line("Lua has no type annotations", f"{header}({', '.join(names)})" if names else None)
    before = spot.before
    if spot.text == "=" and before is not None:
        stop = expression_end(spot.tokens, spot.index + 1)
        value = spot.listing.text(spot.index + 1, stop) if stop else "…"
        default = f"if {before.text} == nil then {before.text} = {value} end"
        return f"Lua has no default values for parameters; begin the body with: {default}"
    if before is not None and before.text == "..." and spot.token.kind == "name":
        return f"Lua's rest parameter has no name; write ... there and in the body: local {spot.text} = {{...}}"
    return None


def _header(spot: Spot) -> int | None:
    """The opening parenthesis of the function header in which the failing word stands."""
    for index in range(spot.index - 1, max(-1, spot.index - 60), -1):
        text = spot.tokens[index].text
        if text == "(":
            return index if spot.tokens[_keyword(spot, index)].text == "function" else None
        if text in (")", "{", "}"):
            return None
    return None


def _keyword(spot: Spot, opener: int) -> int:
    """Where `function` stands if the parenthesis is that of a function's header."""
    index = opener - 1
    while index > 1 and spot.tokens[index].kind == "name" and spot.tokens[index - 1].text in (".", ":"):
        index -= 2
    return index - 1 if index > 0 and spot.tokens[index].kind == "name" else max(index, 0)


def _names_until(spot: Spot, opener: int) -> list[str]:
    """The parameters' names, without what stands behind their colons."""
    parts = spot.listing.parts(opener)
    return [spot.tokens[first].text for first, _ in parts] if parts else []


def _typed_local(spot: Spot) -> str | None:
    """`local x: number = 5`, `function f(): number`."""
    before = spot.before
    if spot.text != ":" or before is None or spot.index != spot.statement or not spot.follows_on_line():
        return None
    if spot.after is None or spot.after.kind != "name":
        return None
    if before.text == ")":
        return "Lua has no type annotations: leave out the : and the type"
    if before.kind == "name" and spot.index >= 2 and spot.tokens[spot.index - 2].text in ("local", ","):
        name, equals = before.text, spot.at(2)
        stop = expression_end(spot.tokens, spot.index + 3) if equals is not None and equals.text == "=" else None
        value = f" = {spot.listing.text(spot.index + 3, stop)}" if stop else ""
        return f"Lua has no type annotations; write: local {name}{value}"
    return None


def _nameless(spot: Spot) -> str | None:
    """`function (x) … end` as a statement, and `local f = function f(x)`."""
    if spot.before is None or spot.before.text != "function":
        return None
    if spot.failure.text == "<name> expected" and spot.text == "(":
        names = _parameters(spot, spot.index)
        return f"a function needs a name here; write: local function name({_joined(names)}) … end"
    if spot.failure.text == "'(' expected" and spot.token.kind == "name":
        names = _parameters(spot, spot.index + 1)
        return f"a function that is a value has no name; write: function({_joined(names)}) … end"
    return None


def _joined(names: list[str] | None) -> str:
    return "…" if names is None else ", ".join(names)


def _parameters(spot: Spot, opener: int) -> list[str] | None:
    """The names in parentheses; None when there are other things between them."""
    parts = spot.listing.parts(opener) if spot.tokens[opener].text == "(" else None
    if parts is None or any(
        spot.tokens[first].kind != "name" and spot.tokens[first].text != "..." for first, _ in parts
    ):
        return None
    return [spot.tokens[first].text for first, _ in parts]


RULES: tuple[Rule, ...] = (_definition, _arrow, _lambda, _parameter, _typed_local, _nameless)
