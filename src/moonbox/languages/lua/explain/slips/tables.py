"""Tables, lists and arguments written as in other languages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.lua.explain.grammar import expression_end
from moonbox.languages.lua.explain.mend import with_line
from moonbox.languages.names import is_identifier

if TYPE_CHECKING:
    from moonbox.languages.lua.explain.slips.spot import Rule, Spot

__all__ = ["RULES"]


def _colon_field(spot: Spot) -> str | None:
    """`{key: 1}`, `{"key": 1}`, `{["key"]: 1}`."""
    if spot.bracket() == "[" and len(spot.failure.brackets) > 1:
        return None
    if spot.bracket() != "{":
        return None
    first = spot.part_start()
    colon = _colon_after_key(spot, first)
    if colon is None or colon > spot.index:
        return None
    key = _key(spot, first, colon)
    stop = expression_end(spot.tokens, colon + 1)
    value = spot.listing.text(colon + 1, stop) if stop else ""
    if _is_nested_object(spot, colon + 1):
        value = "{…}"
    return with_line("a table's fields are written with =", f"{{{key} = {value or '…'}}}")


def _colon_after_key(spot: Spot, first: int) -> int | None:
    """Where the colon of `key:` stands if the part beginning at `first` is one."""
    token = spot.tokens[first]
    if token.text == "[":
        close = spot.listing.closing(first)
        colon = close + 1 if close is not None else first
    else:
        colon = first + 1
        if token.kind not in ("name", "string", "number", "keyword"):
            return None
    return colon if colon < len(spot.tokens) and spot.tokens[colon].text == ":" else None


def _key(spot: Spot, first: int, colon: int) -> str:
    token = spot.tokens[first]
    if token.kind == "string":
        inner = token.text[1:-1]
        return inner if is_identifier(inner) else f"[{token.text}]"
    if token.kind == "keyword":
        return f'["{token.text}"]'
    return f"[{token.text}]" if token.kind == "number" else spot.listing.text(first, colon)


def _is_nested_object(spot: Spot, index: int) -> bool:
    return spot.tokens[index].text == "{" and _colon_after_key(spot, index + 1) is not None


def _named_arguments(spot: Spot) -> str | None:
    """`f(a = 1)`, `f(a: 1)`."""
    if spot.bracket() != "(":
        return None
    opener, first = spot.failure.brackets[-1], spot.part_start()
    if first + 2 >= len(spot.tokens):
        return None
    sign = spot.tokens[first + 1].text
    if spot.tokens[first].kind != "name" or sign not in ("=", ":") or first + 1 > spot.index:
        return None
    if sign == ":" and spot.index != first + 2:
        return None
    if spot.tokens[first + 2].text == ">":
        return None
    name = _called(spot, opener)
    fields = _fields(spot, opener)
    return f"named arguments are written in braces with =; write: {name}{{{fields}}}"


def _called(spot: Spot, opener: int) -> str:
    """The dotted name before the parenthesis."""
    first = opener - 1
    while first >= 2 and spot.tokens[first].kind == "name" and spot.tokens[first - 1].text in (".", ":"):
        first -= 2
    return spot.listing.text(first, opener) if first >= 0 and spot.tokens[first].kind == "name" else "f"


def _fields(spot: Spot, opener: int) -> str:
    fields = []
    for first, stop in spot.listing.parts(opener) or []:
        if spot.tokens[first].kind != "name" or first + 2 >= stop or spot.tokens[first + 1].text not in ("=", ":"):
            return "name = value"
        fields.append(f"{spot.tokens[first].text} = {spot.listing.text(first + 2, stop)}")
    return ", ".join(fields) if fields and len(", ".join(fields)) <= 80 else "name = value"


def _list(spot: Spot) -> str | None:
    """`[1, 2, 3]`, and `[x for x in list]`."""
    if spot.text != "[" or spot.failure.text != "unexpected symbol" or spot.index == spot.statement:
        return None
    close = spot.listing.closing(spot.index)
    if close is None:
        return "a list is written in braces: {1, 2, 3}"
    inside = spot.listing.text(spot.index + 1, close)
    if any(spot.tokens[index].text == "for" for index in range(spot.index, close)):
        return (
            "Lua has no list comprehension; build the list in a loop: "
            "local out = {} for _, x in ipairs(list) do out[#out + 1] = x end"
        )
    if "…" in inside or "[" in inside or ":" in inside:
        return "a list is written in braces: {1, 2, 3}"
    return f"a list is written in braces; write: {{{inside}}}"


def _bare_list(spot: Spot) -> str | None:
    """`[1, 2, 3]` as the whole script."""
    if spot.text == "[" and spot.index == 0 and spot.failure.text == "unexpected symbol":
        close = spot.listing.closing(0)
        inside = spot.listing.text(1, close) if close else ""
        plain = inside and not set("[:…") & set(inside) and " for " not in inside
        return with_line("a list is written in braces", f"return {{{inside}}}" if plain else "return {1, 2, 3}")
    return None


def _slice(spot: Spot) -> str | None:
    """`list[1:3]`."""
    if spot.bracket() != "[":
        return None
    between = spot.text == "]" and spot.failure.text == "function arguments expected"
    if spot.text != ":" and not between:
        return None
    return "Lua has no slices; of a text take s:sub(first, last), of a list {table.unpack(list, first, last)}"


def _spread(spot: Spot) -> str | None:
    """`f(...args)`, `{...list}`."""
    before = spot.before
    if before is None or before.text != "..." or spot.token.kind != "name" or not spot.joined(-1, 0):
        return None
    if spot.bracket() not in ("(", "{"):
        return None
    return f"Lua has no spread operator; write: table.unpack({spot.text})"


def _reserved(spot: Spot) -> str | None:
    """`t.end`, `{end = 5}`, `local end`."""
    before, after = spot.before, spot.after
    if spot.token.kind != "keyword" or before is None or after is None:
        return None
    said = f"'{spot.text}' is a reserved word in Lua"
    if before.text == "." and spot.follows_on_line():
        return f'{said}: use ["{spot.text}"] instead of .{spot.text}'
    if spot.bracket() == "{" and after.text == "=" and spot.part_start() == spot.index:
        return f'{said}; write: ["{spot.text}"] = …'
    if before.text in ("local", "function", "for", "goto") and spot.failure.text == "<name> expected":
        return f"{said}: choose another name"
    return None


def _missing_comma(spot: Spot) -> str | None:
    """`{a = 1 b = 2}`, and lines of a table without a comma between them."""
    if spot.bracket() != "{" or not spot.failure.text.startswith("'}' expected") or not spot.ends_value(-1):
        return None
    before = spot.before
    if before is None or not (spot.token.kind in ("name", "string", "number") or spot.text in ("{", "[")):
        return None
    if not spot.follows_on_line() and _leaves(spot):
        return None
    if spot.follows_on_line() and not (spot.token.kind == "name" and spot.after is not None and spot.after.text == "="):
        return None
    where = f"at the end of line {before.last_line}" if not spot.follows_on_line() else f"before '{spot.text}'"
    return f"the fields of a table are separated by commas: one is missing {where}"


def _unclosed(spot: Spot) -> str | None:
    """A bracket that should have been closed before this line."""
    closes = {"'}' expected": "}", "')' expected": ")", "']' expected": "]"}
    close = next((close for text, close in closes.items() if spot.failure.text.startswith(text)), None)
    if close is None or not spot.failure.brackets or spot.follows_on_line() or spot.text == "<eof>":
        return None
    if not _leaves(spot):
        return None
    opener = spot.tokens[spot.failure.brackets[-1]]
    return f"the {opener.text} of line {opener.line} is not closed before this line: add {close}"


def _leaves(spot: Spot) -> bool:
    """Whether the failing word, the first on its line, stands too far left to be inside the innermost bracket."""
    opener = spot.failure.brackets[-1]
    inner, first = spot.tokens[opener + 1], spot.listing.span(spot.tokens[opener].line).start
    if inner.line == spot.tokens[opener].line:
        return spot.token.column <= spot.tokens[first].column
    return spot.token.column < inner.column


def _double_comma(spot: Spot) -> str | None:
    before = spot.before
    if spot.text == "," and before is not None and before.text == "," and spot.bracket() in ("{", "("):
        return "there are two commas in a row: remove one, or write nil between them"
    return None


def _trailing_comma(spot: Spot) -> str | None:
    """`f(a, b,)`."""
    before = spot.before
    if spot.text == ")" and before is not None and before.text == "," and spot.bracket() == "(":
        return "the last argument is not followed by a comma: remove it"
    return None


RULES: tuple[Rule, ...] = (
    _colon_field,
    _named_arguments,
    _list,
    _bare_list,
    _slice,
    _spread,
    _reserved,
    _missing_comma,
    _unclosed,
    _double_comma,
    _trailing_comma,
)
