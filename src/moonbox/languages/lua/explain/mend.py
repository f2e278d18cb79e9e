"""Lines of a script with the slips of other languages put right, offered only when the result is Lua."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from moonbox.languages.lua.explain.grammar import read
from moonbox.languages.lua.explain.lexer import tokenize
from moonbox.languages.lua.explain.loops import lua_loop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moonbox.languages.lua.explain.lexer import Token
    from moonbox.languages.lua.explain.listing import Listing

__all__ = ["DECLARATIONS", "Operator", "is_lua", "mended", "operator_at", "with_line"]

LONGEST_LINE = 120
DECLARATIONS = frozenset({"const", "let", "var"})
_OPENS = {"if": "then", "elseif": "then", "elif": "then", "elsif": "then", "while": "do", "for": "do"}
_CONSTANTS = {"None": "nil", "undefined": "nil", "True": "true", "False": "false"}
_FRAMES = (
    "{}",
    "{} end",
    "if x then {} end",
    "if x then {}",
    "repeat {}",
    "return {}",
    "for i = 1, 2 do {} end",
    "f({})",
    "t = {{{}}}",
)


class Operator(NamedTuple):
    """An operator that Lua writes otherwise."""

    words: tuple[str, ...]
    foreign: str
    lua: str


_OPERATORS = (
    Operator(("!", "=="), "!==", "~="),
    Operator(("!", "="), "!=", "~="),
    Operator(("==", "="), "===", "=="),
    Operator(("&", "&"), "&&", "and"),
    Operator(("|", "|"), "||", "or"),
    Operator(("*", "*"), "**", "^"),
    Operator(("<", ">"), "<>", "~="),
    Operator(("!",), "!", "not"),
)


def operator_at(tokens: Sequence[Token], index: int) -> Operator | None:
    """The foreign operator that begins at that word."""
    if tokens[index].kind not in ("op", "foreign"):
        return None
    for operator in _OPERATORS:
        words = tokens[index : index + len(operator.words)]
        if tuple(token.text for token in words) == operator.words and all(
            first.end == second.start for first, second in pairwise(words)
        ):
            return operator
    return None


def with_line(explanation: str, line: str | None) -> str:
    """An explanation and, where there is one, the line to write."""
    return f"{explanation}; write: {line}" if line else explanation


def mended(listing: Listing, number: int) -> str | None:
    """That line with everything put right that can be; None unless something was and the result is Lua."""
    text = listing.line(number)
    if text is None or len(text) > LONGEST_LINE or not listing.whole:
        return None
    span = listing.span(number)
    if not span or listing.tokens[span[-1]].last_line != number:
        return None
    loop = _loop(listing, span)
    if loop:
        return loop
    edits = [*_operator_edits(listing.tokens, span), *_block_edits(listing, span), *_word_edits(listing, span)]
    if not edits:
        return None
    start = listing.tokens[span[0]].start - (listing.tokens[span[0]].column - 1)
    result = _applied(text, [(first - start, stop - start, new) for first, stop, new in edits])
    return result if is_lua(result) else None


def is_lua(text: str) -> bool:
    """Whether the text can stand as one line of a Lua script."""
    return any(_reads(frame.format(text)) for frame in _FRAMES)


def _reads(source: str) -> bool:
    reading = read(tokenize(source))
    return reading is not None and reading.failure is None


Edit = tuple[int, int, str]


def _applied(text: str, edits: list[Edit]) -> str:
    parts, at = [], 0
    for first, stop, new in sorted(edits):
        if first < at:
            continue
        parts += [text[at:first], new]
        at = stop
    return "".join([*parts, text[at:]]).strip()


def _loop(listing: Listing, span: range) -> str | None:
    """A whole loop header that needs more than single words changed."""
    tokens = listing.tokens
    if tokens[span[0]].text != "for" or tokens[span[-1]].text not in ("{", ":", "do"):
        return None
    return lua_loop(listing, span[0], span[-1])


def _operator_edits(tokens: Sequence[Token], span: range) -> list[Edit]:
    edits: list[Edit] = []
    index = span.start
    while index < span.stop:
        operator = operator_at(tokens, index)
        if operator is None:
            index += 1
            continue
        last = index + len(operator.words) - 1
        before = " " if index > span.start and tokens[index - 1].end == tokens[index].start else ""
        after = " " if last + 1 < span.stop and tokens[last].end == tokens[last + 1].start else ""
        if operator.foreign == "!":
            before = before if index > span.start and tokens[index - 1].kind in ("name", "number", "keyword") else ""
        edits.append((tokens[index].start, tokens[last].end, f"{before}{operator.lua}{after}"))
        index = last + 1
    return edits


def _block_edits(listing: Listing, span: range) -> list[Edit]:
    """Braces and colons around blocks."""
    tokens = listing.tokens
    edits: list[Edit] = []
    first, last = span[0], span[-1]
    if tokens[first].text == "}":
        follower = tokens[first + 1].text if first + 1 < span.stop else ""
        edits.append((tokens[first].start, tokens[first].end, "" if follower == "else" else "end"))
        first = min(first + 1, last)
    keyword = tokens[first].text
    if keyword == "else" and first < last and tokens[first + 1].text == "if":
        edits.append((tokens[first].start, tokens[first + 1].end, "elseif"))
        keyword = "elseif"
    if tokens[last].text not in ("{", ":") or last == first:
        return edits
    if keyword == "else" and last == first + 1:
        edits.append((tokens[last].start, tokens[last].end, ""))
    elif keyword in _OPENS:
        space = " " if tokens[last - 1].end == tokens[last].start else ""
        edits.append((tokens[last].start, tokens[last].end, space + _OPENS[keyword]))
    elif "function" in (keyword, tokens[first + 1].text) or keyword == "def":
        edits.append((tokens[last].start, tokens[last].end, ""))
    return edits


def _word_edits(listing: Listing, span: range) -> list[Edit]:
    tokens = listing.tokens
    first = tokens[span[0]]
    second = tokens[span[0] + 1]
    edits: list[Edit] = []
    if first.text in DECLARATIONS and second.kind == "name":
        edits.append((first.start, first.end, "local"))
    if first.text in ("elif", "elsif"):
        edits.append((first.start, first.end, "elseif"))
    if first.text in ("def", "func", "fn") and second.kind == "name":
        edits.append((first.start, first.end, "function"))
    for index in span:
        token = tokens[index]
        if token.kind == "name" and token.text in _CONSTANTS and tokens[index - 1].text not in (".", ":"):
            edits.append((token.start, token.end, _CONSTANTS[token.text]))
    return edits
