"""Blocks that are opened, closed or ordered as in other languages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.lua.explain.corrections import block_colon, corrected, is_lua, with_line
from moonbox.languages.lua.explain.rewrites import choice_in, lua_loop
from moonbox.languages.lua.explain.slips import Advice, FailurePoint, Rule
from moonbox.languages.lua.syntax.parser import parse

if TYPE_CHECKING:
    from moonbox.languages.lua.syntax.lexer import Token

_HEADERS = {"if": "then", "elseif": "then", "while": "do", "for": "do"}
_BRACES = "Lua has no braces around blocks"
_COLON = "Lua has no colon before a block"


def _for_header(point: FailurePoint) -> str | None:
    """`for (let i = 0; …) {`, `for item of items do`, `for i = 1 to 3 do`."""
    keyword = point.statement
    if point.tokens[keyword].text != "for" or point.index == keyword:
        return None
    span = point.listing.span(point.tokens[keyword].line)
    stop = next((index for index in range(keyword, span.stop) if point.tokens[index].text in ("{", "do")), span.stop)
    if point.text == "(" and point.index == keyword + 1:
        close = point.listing.closing(point.index)
        header = lua_loop(point.listing, keyword, close + 1) if close is not None else None
        return with_line("a loop's header has no parentheses", header or "for i = 1, 10 do … end")
    if point.text == "of" or point.text == "{":
        header = lua_loop(point.listing, keyword, stop)
        if point.text == "of":
            return with_line("loop over a list with ipairs", header or "for _, item in ipairs(list) do")
    if point.text == "to" and point.failure.text == "',' expected":
        header = f"{point.listing.text(keyword, point.index)}, {point.listing.text(point.index + 1, stop)} do"
        return with_line("the bounds of a loop are separated by a comma", header if is_lua(header) else None)
    return None


def _brace(point: FailurePoint) -> Advice | str | None:
    """`if (x) {`, `while x {`, `function f() {`, `}`."""
    header = point.tokens[point.statement]
    brace = _header_brace(point) if header.text in _HEADERS else None
    if brace is not None:
        explanation = f"{_BRACES}; use {_HEADERS[header.text]} … end"
        return Advice(with_line(explanation, corrected(point.listing, header.line)), brace)
    before = point.before
    if point.text == "{" and point.index == point.statement:
        if before.text == ")" and point.failure.blocks and point.failure.blocks[-1].keyword == "function":
            return with_line(f"{_BRACES}; a function's body ends with end", corrected(point.listing, point.token.line))
        if before.text in ("else", "then", "do", "repeat"):
            return f"{_BRACES}: remove the {{ and end the block with end"
    if point.text == "}" and point.index == point.statement and not point.failure.brackets:
        return f"{_BRACES}; a block is closed with end, not }}"
    return None


def _header_brace(point: FailurePoint) -> int | None:
    """The brace that was meant to open the block of an `if`, `while` or `for`."""
    span = point.listing.span(point.tokens[point.statement].line)
    expected = point.failure.text in ("'then' expected", "'do' expected")
    if expected and point.text == "{":
        return point.index
    if expected and span and point.tokens[span[-1]].text == "{":
        return span[-1]
    condition = point.statement + 1
    close = point.listing.closing(condition) if point.tokens[condition].text == "(" else None
    if close is None or point.tokens[close + 1].text != "{":
        return None
    return close + 1 if expected or close + 1 in point.failure.brackets else None


def _header_colon(point: FailurePoint) -> Advice | None:
    """`if x == 1:`, `while True: pass`, `for x in list:`."""
    header = point.tokens[point.statement]
    if header.text not in _HEADERS:
        return None
    colon = block_colon(point.listing, range(point.statement, point.listing.span(header.line).stop))
    if colon is None or colon > point.index:
        return None
    explanation = f"{_COLON}: use {_HEADERS[header.text]} … end"
    return Advice(with_line(explanation, corrected(point.listing, header.line)), colon)


def _colon(point: FailurePoint) -> str | None:
    """`else:`, `function f():`."""
    before = point.before
    if point.text == ":" and point.index == point.statement and point.follows_on_line():
        if before.text in ("then", "do", "else", "repeat"):
            return f"{_COLON}: remove it"
        if before.text == ")" and point.failure.blocks and point.failure.blocks[-1].keyword == "function":
            return f"{_COLON}: remove it; the function ends with end"
    return None


def _conditional_value(point: FailurePoint) -> str | None:
    """`local y = 1 if x else 2`, `local y = if a then b else c end`."""
    keyword = point.index if point.text == "if" else point.statement
    if point.tokens[keyword].text != "if":
        return None
    before = point.tokens[keyword - 1] if keyword else None
    if before is None or before.last_line != point.tokens[keyword].line:
        return None
    if point.failure.text == "unexpected symbol" and keyword == point.index:
        return "if is a statement in Lua, not a value; write: condition and a or b"
    line = point.tokens[keyword].line
    if choice_in(point.listing, point.listing.span(line)) is None:
        return None
    written = corrected(point.listing, line)
    missing = "Lua has no `a if b else c`"
    return with_line(missing, written) if written else f"{missing}; use if … then … else … end"


def _missing_opener(point: FailurePoint) -> Advice | None:
    """A condition without `then`, a loop without `do`."""
    word = {"'then' expected": "then", "'do' expected": "do"}.get(point.failure.text)
    before, header = point.before, point.tokens[point.statement]
    if word is None or header.text not in _HEADERS or header.line != before.last_line:
        return None
    text = point.listing.line(header.line)
    if text is None or len(text) > 100:
        return None
    cut = before.column - 1 + len(before.text)
    rest = range(point.index, point.listing.span(header.line).stop)
    if (
        before.line != header.line
        or not point.ends_value(-1)
        or any(point.tokens[index].text == word for index in rest)
    ):
        return None
    line = f"{text[:cut]} {word}{'' if not text[cut:].strip() else ' ' + text[cut:].strip()}".strip()
    return Advice(f"{word} is missing; write: {line}", point.index - 1) if is_lua(line) else None


def _else_if(point: FailurePoint) -> Advice | None:
    """`else if`, which opens a second `if` that needs an `end` of its own."""
    if not point.failure.text.startswith("'end' expected") or point.text != "<eof>":
        return None
    words: list[Token] = []
    joined: list[int] = []
    for index, token in enumerate(point.tokens):
        before = point.tokens[index - 1]
        if token.text == "if" and index and before.text == "else" and before.line == token.line:
            words[-1] = before._replace(text="elseif")
            joined.append(index)
        else:
            words.append(token)
    parsed = parse(words) if joined else None
    if parsed is None or parsed.failure is not None:
        return None
    explanation = "else if opens another if that needs an end of its own; use elseif"
    return Advice(with_line(explanation, corrected(point.listing, point.tokens[joined[0]].line)), joined[0])


def _missing_end(point: FailurePoint) -> str | None:
    """An `end` too few: indentation tells which block lacks it."""
    if not point.failure.text.startswith(("'end' expected", "'until' expected")) or point.text != "<eof>":
        return None
    parsed = point.listing.parsed
    for opener, closing in parsed.pairs if parsed else ():
        first, last = point.tokens[opener], point.tokens[closing]
        if first.line != last.line and _begins_line(point, closing) and last.column < _indent(point, opener):
            return f"the {first.text} of line {first.line} seems to have no end: the end of line {last.line} closes it"
    if not point.failure.blocks:
        return None
    block = point.failure.blocks[-1]
    word = "until" if block.keyword == "repeat" else "end"
    return f"the {block.keyword} of line {point.tokens[block.index].line} is never closed: add {word}"


def _indent(point: FailurePoint, index: int) -> int:
    return point.tokens[point.listing.span(point.tokens[index].line).start].column


def _begins_line(point: FailurePoint, index: int) -> bool:
    return point.listing.span(point.tokens[index].line).start == index


def _unclosed(point: FailurePoint) -> str | None:
    """A bracket that is open at the end of the script."""
    if point.text != "<eof>" or not point.failure.brackets or "expected" not in point.failure.text:
        return None
    opener = point.tokens[point.failure.brackets[-1]]
    close = {"(": ")", "[": "]", "{": "}"}[opener.text]
    return f"the {opener.text} of line {opener.line} is never closed: add {close}"


def _extra_end(point: FailurePoint) -> str | None:
    if point.failure.text == "<eof> expected" and point.text == "end":
        return "this end closes nothing: remove it, or look for a block that was closed too early"
    return None


def _after_return(point: FailurePoint) -> str | None:
    """Statements behind a `return`."""
    if not point.failure.after_return or point.follows_on_line() or point.text in ("<eof>", "end"):
        return None
    if point.token.kind not in ("name", "keyword"):
        return None
    return "return must be the last statement of its block: nothing may follow it"


HEADER_RULES: tuple[Rule, ...] = (_conditional_value, _header_colon)
"""Asked before all others that look at what a header is followed by."""

RULES: tuple[Rule, ...] = (
    _for_header,
    _brace,
    _colon,
    _missing_opener,
    _else_if,
    _missing_end,
    _unclosed,
    _extra_end,
    _after_return,
)
