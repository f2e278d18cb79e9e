"""Loop headers of other languages, written as Lua's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.lua.syntax.parser import expression_end

if TYPE_CHECKING:
    from moonbox.languages.lua.syntax.listing import Listing

__all__ = ["lua_loop"]

_DECLARATIONS = frozenset({"let", "const", "var", "int", "auto", "local"})
_COMPARISONS = frozenset({"<", "<=", ">", ">="})


def lua_loop(listing: Listing, keyword: int, stop: int) -> str | None:
    """The `for` header from the keyword up to `stop`, as Lua writes it; None when it is not understood."""
    first = keyword + 1
    tokens = listing.tokens
    parenthesised = first < stop and tokens[first].text == "(" and listing.closing(first) == stop - 1
    if parenthesised:
        first, stop = first + 1, stop - 1
    if first < stop and tokens[first].text in _DECLARATIONS:
        first += 1
    semicolons = [index for index in range(first, stop) if tokens[index].text == ";"]
    if len(semicolons) == 2:
        return _counted(listing, (first, semicolons[0]), (semicolons[0] + 1, semicolons[1]), (semicolons[1] + 1, stop))
    for index in range(first, stop):
        if tokens[index].text in ("in", "of"):
            return _each(listing, first, index, stop, keys_only=parenthesised and tokens[index].text == "in")
    return None


def _counted(listing: Listing, init: tuple[int, int], test: tuple[int, int], step: tuple[int, int]) -> str | None:
    tokens = listing.tokens
    if init[1] - init[0] < 3 or test[1] - test[0] < 3 or tokens[init[0] + 1].text != "=":
        return None
    name, comparison = tokens[init[0]].text, tokens[test[0] + 1].text
    by = _step(listing, *step)
    if tokens[init[0]].kind != "name" or tokens[test[0]].text != name or comparison not in _COMPARISONS or by is None:
        return None
    start, bound = listing.text(init[0] + 2, init[1]), _length(listing, test[0] + 2, test[1])
    if (by > 0) != (comparison in ("<", "<=")):
        return None
    if start == "0" and comparison == "<" and bound.startswith("#") and by == 1:
        return f"for {name} = 1, {bound} do"
    if comparison in ("<", ">"):
        bound = _shifted(bound, -1 if comparison == "<" else 1)
    return f"for {name} = {start}, {bound}{'' if by == 1 else f', {by}'} do"


def _step(listing: Listing, first: int, stop: int) -> int | None:
    words = [listing.tokens[index].text for index in range(first, stop)]
    match words:
        case [_, "+", "+"] | ["+", "+", _]:
            return 1
        case [_, "+", "=", number] if number.isdigit() and int(number) > 0:
            return int(number)
        case [_, "-", "=", number] if number.isdigit() and int(number) > 0:
            return -int(number)
    return None


def _each(listing: Listing, first: int, middle: int, stop: int, *, keys_only: bool) -> str | None:
    tokens = listing.tokens
    names = [tokens[index].text for index in range(first, middle) if tokens[index].kind == "name"]
    if not 1 <= len(names) <= 2 or middle + 1 >= stop:
        return None
    over = listing.text(middle + 1, stop)
    words = [*tokens[middle + 1 : stop], tokens[-1]]
    if over == "…" or expression_end(words, 0) != len(words) - 1:
        return None
    call = tokens[stop - 1].text == ")"
    if not call:
        if keys_only:
            return f"for {names[0]} in pairs({over}) do" if len(names) == 1 else None
        if any(tokens[index].text == "," for index in range(middle + 1, stop)):
            return None
        return (
            f"for {names[0]}, {names[1]} in pairs({over}) do"
            if len(names) == 2
            else f"for _, {names[0]} in ipairs({over}) do"
        )
    return _over_call(listing, names, middle + 1, stop)


def _over_call(listing: Listing, names: list[str], first: int, stop: int) -> str | None:
    tokens = listing.tokens
    if tokens[first].text == "Object" and first + 3 < stop and tokens[first + 3].text == "(":
        function, opener, subject = tokens[first + 2].text, first + 3, listing.text(first + 4, stop - 1)
        wanted = {"entries": 2, "keys": 1, "values": 1}.get(function)
    elif tokens[stop - 2].text == "(" and stop - first >= 5 and tokens[stop - 4].text in (".", ":"):
        function, opener, subject = tokens[stop - 3].text, stop - 2, listing.text(first, stop - 4)
        wanted = {"items": 2, "entries": 2, "keys": 1, "values": 1}.get(function)
    else:
        return _over_function(listing, names, first, stop)
    if wanted != len(names) or listing.closing(opener) != stop - 1 or not subject:
        return None
    variables = f"_, {names[0]}" if function == "values" else ", ".join(names)
    return f"for {variables} in pairs({subject}) do"


def _over_function(listing: Listing, names: list[str], first: int, stop: int) -> str | None:
    """Over `range(…)`, `enumerate(…)` and the like."""
    tokens = listing.tokens
    if tokens[first + 1].text != "(" or listing.closing(first + 1) != stop - 1:
        return None
    parts = listing.parts(first + 1) or []
    arguments = [_length(listing, *part) for part in parts]
    match tokens[first].text, arguments, names:
        case "enumerate", [over], [index, value]:
            return f"for {index}, {value} in ipairs({over}) do"
        case (("list" | "iter" | "sorted"), [over], [value]):
            return f"for _, {value} in ipairs({over}) do" if tokens[first].text != "sorted" else None
        case "range", [bound], [name]:
            return (
                f"for {name} = 1, {bound} do" if bound.startswith("#") else f"for {name} = 0, {_shifted(bound, -1)} do"
            )
        case "range", [start, bound], [name]:
            return f"for {name} = {start}, {_shifted(bound, -1)} do"
        case "range", [start, bound, step], [name]:
            by = -1 if step.startswith("-") else 1
            return f"for {name} = {start}, {_shifted(bound, -by)}, {step} do"
    return None


def _length(listing: Listing, first: int, stop: int) -> str:
    """The text of an expression, with `x.length` and `len(x)` as `#x`."""
    tokens = listing.tokens
    if stop - first >= 3 and tokens[stop - 1].text in ("length", "size") and tokens[stop - 2].text == ".":
        return f"#{listing.text(first, stop - 2)}"
    if stop - first >= 4 and tokens[first].text == "len" and listing.closing(first + 1) == stop - 1:
        return f"#{listing.text(first + 2, stop - 1)}"
    return listing.text(first, stop)


def _shifted(text: str, by: int) -> str:
    """An upper or lower bound one further in."""
    if text.isdigit():
        return str(int(text) + by)
    undone = " + 1" if by < 0 else " - 1"
    if text.endswith(undone):
        return text[: -len(undone)]
    return f"{text} {'-' if by < 0 else '+'} 1"
