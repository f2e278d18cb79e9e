"""Lines of a script with the slips of other languages put right, offered only when the result is Lua."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from moonbox.languages.lua.explain.rewrites import choice_in, lua_loop
from moonbox.languages.lua.syntax.lexer import tokenize
from moonbox.languages.lua.syntax.parser import parse
from moonbox.languages.lua.vocabulary import equivalents

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moonbox.languages.lua.syntax.lexer import Token
    from moonbox.languages.lua.syntax.listing import Listing

LONGEST_LINE = 120
DECLARATIONS = frozenset({"const", "let", "var"})
_OPENS = {"if": "then", "elseif": "then", "elif": "then", "elsif": "then", "while": "do", "for": "do"}
_COMPOUND = frozenset({"+", "-", "*", "/", ".."})
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


def corrected(listing: Listing, number: int) -> str | None:
    """That line with everything put right that can be; None unless something was and the result is Lua."""
    text = listing.line(number)
    if text is None or len(text) > LONGEST_LINE or not listing.whole:
        return None
    span = listing.span(number)
    if not span or listing.tokens[span[-1]].last_line != number:
        return None
    edits = [
        *_operator_edits(listing.tokens, span),
        *_block_edits(listing, span),
        *_word_edits(listing, span),
        *_compound_edits(listing.tokens, span),
    ]
    start = listing.tokens[span[0]].start - (listing.tokens[span[0]].column - 1)

    def edited(first: int, stop: int) -> str:
        """The words from `first` up to before `stop`, put right."""
        begin, end = listing.tokens[first].start, listing.tokens[stop - 1].end
        inside = [edit for edit in edits if begin <= edit[0] and edit[1] <= end]
        return _applied(text[begin - start : end - start], inside, begin)

    choice = choice_in(listing, span)
    if choice is not None:
        line = choice.as_lua(listing, span, edited)
        return line if line is not None and is_lua(line) else None
    result = _applied(text, edits, start) if edits else None
    return result if result is not None and is_lua(result) else None


def is_lua(text: str) -> bool:
    """Whether the text can stand as one line of a Lua script."""
    return any(_parses(frame.format(text)) for frame in _FRAMES)


def _parses(source: str) -> bool:
    parsed = parse(tokenize(source))
    return parsed is not None and parsed.failure is None


def block_colon(listing: Listing, span: range) -> int | None:
    """The colon that opens a block in Python: the last word of its line, or one with a space behind it alone."""
    tokens = listing.tokens
    for index in listing.outer(span.start + 1, span.stop):
        alone = index == span.stop - 1 or (
            tokens[index - 1].end == tokens[index].start and tokens[index].end < tokens[index + 1].start
        )
        if tokens[index].text == ":" and alone:
            return index
    return None


Edit = tuple[int, int, str]


def _applied(text: str, edits: Iterable[Edit], start: int) -> str:
    """The text that begins at `start` of the script, edited; of edits that overlap, the first and longest is made."""
    parts, at = [], 0
    for first, stop, new in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
        if first - start < at:
            continue
        parts += [text[at : first - start], new]
        at = stop - start
        if not new and parts[-2].endswith(" ") and text[at : at + 1] == " ":
            at += 1
    return "".join([*parts, text[at:]]).strip()


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
    edits += _function_edits(listing, span, keyword)
    if keyword == "else" and first < last and tokens[first + 1].text in ("{", ":"):
        return [*edits, _edit(tokens[first + 1], "")]
    if keyword not in _OPENS:
        return edits
    opener = _header_brace(listing, first, span)
    if opener is not None:
        return [*edits, *_opened(listing, first, opener, keyword), *_braces(listing, opener, span)]
    opener = block_colon(listing, range(first, span.stop))
    if opener is not None:
        return [*edits, *_opened(listing, first, opener, keyword), *_inline_body(tokens, opener, span, keyword)]
    if keyword == "for" and tokens[last].text == "do" and (loop := lua_loop(listing, first, last)):
        edits.append((tokens[first].start, tokens[last].end, loop))
    return edits


def _function_edits(listing: Listing, span: range, keyword: str) -> list[Edit]:
    """Braces around the bodies of functions, and the colon behind a header."""
    tokens, last = listing.tokens, span[-1]
    edits: list[Edit] = []
    for index in span:
        foreign = index == span.start and tokens[index].text in _FUNCTIONS
        if tokens[index].text != "function" and not foreign:
            continue
        opener = next((at for at in range(index + 1, min(index + 6, span.stop)) if tokens[at].text == "("), None)
        close = listing.closing(opener) if opener is not None else None
        if close is None or close + 1 >= span.stop:
            continue
        if tokens[close + 1].text == ":" and close + 1 == last:
            edits.append(_edit(tokens[last], ""))
        elif tokens[close + 1].text == "{":
            brace = close + 1
            end = listing.closing(brace)
            edits.append(_edit(tokens[brace], ""))
            if end is not None and end in span:
                edits.append(_edit(tokens[end], "end"))
    return edits


_FUNCTIONS = frozenset({"def", "func", "fn", "fun"})


def _opened(listing: Listing, first: int, opener: int, keyword: str) -> list[Edit]:
    """The header from the keyword to the word that opens the block."""
    tokens = listing.tokens
    if keyword == "for" and (loop := lua_loop(listing, first, opener)):
        return [(tokens[first].start, tokens[opener].end, loop)]
    space = " " if tokens[opener - 1].end == tokens[opener].start else ""
    return [(tokens[opener].start, tokens[opener].end, space + _OPENS[keyword])]


def _header_brace(listing: Listing, first: int, span: range) -> int | None:
    tokens, last = listing.tokens, span[-1]
    close = listing.closing(first + 1) if tokens[first + 1].text == "(" else None
    if close is not None and close + 1 < span.stop and tokens[close + 1].text == "{":
        return close + 1
    return last if tokens[last].text == "{" and last > first else None


def _braces(listing: Listing, opener: int, span: range) -> list[Edit]:
    """What closes a block that was opened on this line, and the `else` behind it."""
    tokens, edits = listing.tokens, list[Edit]()
    brace: int | None = opener
    while brace is not None:
        close = listing.closing(brace)
        if close is None or close not in span:
            break
        otherwise = close + 1 in span and tokens[close + 1].text == "else"
        edits.append(_edit(tokens[close], "" if otherwise else "end"))
        brace = close + 2 if otherwise and close + 2 in span and tokens[close + 2].text == "{" else None
        if brace is not None:
            edits.append(_edit(tokens[brace], ""))
    return edits


def _inline_body(tokens: Sequence[Token], colon: int, span: range, keyword: str) -> list[Edit]:
    """The body behind a colon on the same line, which needs an `end`; a `pass` in it needs nothing."""
    if colon == span[-1]:
        return []
    last = tokens[span[-1]]
    edits = [] if keyword.startswith("el") else [(last.end, last.end, " end")]
    if colon + 1 == span[-1] and last.text == "pass":
        edits = [(last.start, last.end, "" if keyword.startswith("el") else "end")]
    return edits


def _word_edits(listing: Listing, span: range) -> list[Edit]:
    tokens = listing.tokens
    first, second = tokens[span[0]], tokens[span[0] + 1]
    edits: list[Edit] = []
    if first.text in DECLARATIONS and second.kind == "name":
        edits.append(_edit(first, "local"))
    if first.text in ("elif", "elsif"):
        edits.append(_edit(first, "elseif"))
    if first.text in _FUNCTIONS and second.kind == "name":
        edits.append(_edit(first, "function"))
    for index in span:
        token = tokens[index]
        if token.kind != "name" or tokens[index - 1].text in (".", ":"):
            continue
        if token.text in equivalents().constants and tokens[index + 1].text != "=":
            edits.append(_edit(token, equivalents().constants[token.text]))
        elif token.text == "is" and index > span.start and index + 1 in span:
            edits += _identity(tokens, index)
        elif token.text == "len" and tokens[index + 1].text == "(":
            edits += _length(listing, index)
    return edits


def _identity(tokens: Sequence[Token], index: int) -> list[Edit]:
    """`is None` and `is not None`."""
    negated = tokens[index + 1].text == "not"
    value = tokens[index + 1 + negated]
    constant = value.text in equivalents().constants or value.text in ("nil", "null", "true", "false")
    if not constant:
        return []
    return [(tokens[index].start, tokens[index + negated].end, "~=" if negated else "==")]


def _length(listing: Listing, index: int) -> list[Edit]:
    """`len(x)`."""
    tokens, close = listing.tokens, listing.closing(index + 1)
    plain = close == index + 3 and tokens[index + 2].kind == "name"
    return [(tokens[index].start, tokens[index + 3].end, f"#{tokens[index + 2].text}")] if plain else []


def _compound_edits(tokens: Sequence[Token], span: range) -> list[Edit]:
    """`n += 1` and `n++`, where they stand alone."""
    edits: list[Edit] = []
    for index in range(span.start, span.stop - 2):
        name, sign, other = tokens[index], tokens[index + 1], tokens[index + 2]
        member = index > span.start and tokens[index - 1].text in (".", ":") and tokens[index - 1].end == name.start
        plain = name.kind == "name" and not member
        if not plain or sign.kind != "op" or sign.end != other.start:
            continue
        ends = index + 4 >= span.stop or tokens[index + 4].text in (";", "}", "end")
        if other.text == "=" and sign.text in _COMPOUND and ends and index + 3 in span:
            edits.append((sign.start, other.end, f"= {name.text} {sign.text}"))
        elif sign.text == other.text == "+" and (index + 3 >= span.stop or tokens[index + 3].text in (";", "}")):
            edits.append((sign.start, other.end, f" = {name.text} + 1"))
    return edits


def _edit(token: Token, new: str) -> Edit:
    return token.start, token.end, new
