"""Conditional values of other languages, `a if b else c` and `b ? a : c`, written as Lua's."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from moonbox.languages.lua.syntax.parser import expression_end

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moonbox.languages.lua.syntax.lexer import Token
    from moonbox.languages.lua.syntax.listing import Listing

__all__ = ["Choice", "choice_in"]

_BEFORE_VALUE = frozenset({"=", "return", ",", ";", ".."})
_TRUE = frozenset({"true", "True", "TRUE"})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "^", ".."})
_LOGIC = frozenset({"and", "or", "not", "==", "~=", "<", "<=", ">", ">=", "!", "&", "|"})
_DECLARATIONS = frozenset({"local", "const", "let", "var"})

Part = tuple[int, int]


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
        if _is_true(tokens, *self.yes):
            either = any(token.text in ("or", "|") for token in _outer(tokens, *self.condition))
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


def _is_true(tokens: Sequence[Token], first: int, stop: int) -> bool:
    """Whether the value can be neither nil nor false, whatever the names in it hold."""
    outer = _outer(tokens, first, stop)
    if any(token.text in _LOGIC for token in outer):
        return False
    head = tokens[first]
    if stop == first + 1:
        return head.kind in ("number", "string") or head.text in _TRUE
    return head.text in ("{", "function", "#", "-") or any(token.text in _ARITHMETIC for token in outer)


def _outer(tokens: Sequence[Token], first: int, stop: int) -> list[Token]:
    """The words that are in no brackets."""
    outer, depth = [], 0
    for token in tokens[first:stop]:
        if token.text in (")", "]", "}"):
            depth -= 1
        if depth == 0 and token.kind != "string":
            outer.append(token)
        if token.text in ("(", "[", "{"):
            depth += 1
    return outer
