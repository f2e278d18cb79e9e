"""Rewrites: loop headers and conditional values (`a if b else c`, `b ? a : c`) of other languages, written as Lua's."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from moonbox.languages.lua.syntax.parser import expression_end

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moonbox.languages.lua.syntax.lexer import Token
    from moonbox.languages.lua.syntax.listing import Listing

_LOOP_DECLARATIONS = frozenset({"let", "const", "var", "int", "auto", "local"})
_COMPARISONS = frozenset({"<", "<=", ">", ">="})
_BEFORE_VALUE = frozenset({"=", "return", ",", ";", ".."})
_TRUE = frozenset({"true", "True", "TRUE"})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "^", ".."})
_LOGIC = frozenset({"and", "or", "not", "==", "~=", "<", "<=", ">", ">=", "!", "&", "|"})
_DECLARATIONS = frozenset({"local", "const", "let", "var"})

Part = tuple[int, int]


def lua_loop(listing: Listing, keyword: int, stop: int) -> str | None:
    """The `for` header from the keyword up to `stop`, as Lua writes it; None when it is not understood."""
    first = keyword + 1
    tokens = listing.tokens
    parenthesised = first < stop and tokens[first].text == "(" and listing.closing(first) == stop - 1
    if parenthesised:
        first, stop = first + 1, stop - 1
    if first < stop and tokens[first].text in _LOOP_DECLARATIONS:
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


class Choice(NamedTuple):
    """A conditional value: where it stands, and its three parts, as indexes of words."""

    first: int
    stop: int
    condition: Part
    yes: Part
    no: Part

    def as_lua(self, listing: Listing, span: range, edited: Callable[[int, int], str]) -> str | None:
        """The whole line in Lua; None where its meaning cannot be kept. `edited` gives the text of a part."""
        tokens = listing.tokens
        condition, yes, no = edited(*self.condition), edited(*self.yes), edited(*self.no)
        if not (condition and yes and no):
            return None
        if _is_true(listing, *self.yes):
            either = any(tokens[index].text in ("or", "|") for index in listing.outer(*self.condition))
            before = edited(span.start, self.first) if self.first > span.start else ""
            after = edited(self.stop, span.stop) if self.stop < span.stop else ""
            value = f"{f'({condition})' if either else condition} and {yes} or {no}"
            tight = before.endswith(("(", "[", "{"))
            return f"{before}{'' if tight else ' '}{value}{after}".strip()
        return self._statement(tokens, span, condition, yes, no)

    def _statement(self, tokens: Sequence[Token], span: range, condition: str, yes: str, no: str) -> str | None:
        """With `if`: where the first value may be nil or false, `and … or` would give the second."""
        if self.stop < span.stop and tokens[self.stop].text != ";":
            return None
        words = [token.text for token in tokens[span.start : self.first]]
        match words:
            case ["return"]:
                return f"if {condition} then return {yes} else return {no} end"
            case [declaration, name, "="] if declaration in _DECLARATIONS:
                return f"local {name} if {condition} then {name} = {yes} else {name} = {no} end"
            case [*target, "="] if target and "=" not in target and "," not in target:
                place = "".join(target)
                return f"if {condition} then {place} = {yes} else {place} = {no} end"
        return None


def choice_in(listing: Listing, span: range) -> Choice | None:
    """The conditional value of a line, if it has one."""
    tokens = listing.tokens
    for index in range(span.start + 1, span.stop):
        token = tokens[index]
        if token.text == "if" and token.kind == "keyword" and _ends_value(tokens[index - 1]):
            return _python(listing, span, index)
        if token.text == "?" and _ends_value(tokens[index - 1]) and tokens[index + 1].text not in (".", "?"):
            return _javascript(listing, span, index)
    return None


def _python(listing: Listing, span: range, keyword: int) -> Choice | None:
    tokens = listing.tokens
    otherwise = next((at for at in range(keyword, span.stop) if tokens[at].text == "else"), None)
    if otherwise is None or any(tokens[at].text == "then" for at in range(keyword, otherwise)):
        return None
    first = _value_start(tokens, keyword, span.start)
    if first is None or first >= keyword or otherwise + 1 >= span.stop:
        return None
    stop = min(expression_end(tokens, otherwise + 1) or span.stop, span.stop)
    return Choice(first, stop, (keyword + 1, otherwise), (first, keyword), (otherwise + 1, stop))


def _javascript(listing: Listing, span: range, sign: int) -> Choice | None:
    tokens = listing.tokens
    colon = next((at for at in range(sign, span.stop) if tokens[at].text == ":"), None)
    first = _value_start(tokens, sign, span.start)
    if colon is None or first is None or colon + 1 >= span.stop:
        return None
    if any(tokens[at].text == "?" for at in range(sign + 1, span.stop)):
        return None
    stop = min(expression_end(tokens, colon + 1) or span.stop, span.stop)
    return Choice(first, stop, (first, sign), (sign + 1, colon), (colon + 1, stop))


def _value_start(tokens: Sequence[Token], stop: int, floor: int) -> int | None:
    """Where the value begins that ends before `stop`, on the same line."""
    depth = 0
    for index in range(stop - 1, floor - 1, -1):
        text = tokens[index].text
        if text in (")", "]", "}"):
            depth += 1
        elif text in ("(", "[", "{"):
            if depth == 0:
                return index + 1
            depth -= 1
        elif depth == 0 and text in _BEFORE_VALUE:
            joined = text == "=" and index > floor and tokens[index - 1].text in ("!", "==", "=")
            if not (joined and tokens[index - 1].end == tokens[index].start):
                return index + 1
    return None


def _ends_value(token: Token) -> bool:
    return token.kind in ("name", "number", "string") or token.text in (")", "]", "}", "nil", "true", "false")


def _is_true(listing: Listing, first: int, stop: int) -> bool:
    """Whether the value can be neither nil nor false, whatever the names in it hold."""
    outer = {listing.tokens[index].text for index in listing.outer(first, stop)}
    if outer & _LOGIC:
        return False
    head = listing.tokens[first]
    if stop == first + 1:
        return head.kind in ("number", "string") or head.text in _TRUE
    return head.text in ("{", "function", "#", "-") or bool(outer & _ARITHMETIC)
