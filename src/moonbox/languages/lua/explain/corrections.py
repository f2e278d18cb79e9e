"""Lines of a script with the slips of other languages put right, offered only when the result is Lua."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from moonbox.languages.lua.syntax.lexer import Token, tokenize
from moonbox.languages.lua.syntax.parser import expression_end, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moonbox.languages.lua.syntax.listing import Listing

__all__ = [
    "DECLARATIONS",
    "LONGEST_LINE",
    "Edit",
    "Operator",
    "corrected",
    "is_lua",
    "lua_loop",
    "operator_at",
    "with_line",
]

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


def corrected(listing: Listing, number: int) -> str | None:
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
    parsed = parse(tokenize(source))
    return parsed is not None and parsed.failure is None


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
