"""Blocks that are opened, closed or ordered as in other languages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.lua.explain.grammar import read
from moonbox.languages.lua.explain.loops import lua_loop
from moonbox.languages.lua.explain.mend import is_lua, mended, with_line
from moonbox.languages.lua.explain.slips.spot import Advice

if TYPE_CHECKING:
    from moonbox.languages.lua.explain.lexer import Token
    from moonbox.languages.lua.explain.slips.spot import Rule, Spot

__all__ = ["RULES"]

_HEADERS = {"if": "then", "elseif": "then", "while": "do", "for": "do"}
_BRACES = "Lua has no braces around blocks"
_COLON = "Lua has no colon before a block"


def _for_header(spot: Spot) -> str | None:
    """`for (let i = 0; …) {`, `for item of items do`, `for i = 1 to 3 do`."""
    keyword = spot.statement
    if spot.tokens[keyword].text != "for" or spot.index == keyword:
        return None
    span = spot.listing.span(spot.tokens[keyword].line)
    stop = next((index for index in range(keyword, span.stop) if spot.tokens[index].text in ("{", "do")), span.stop)
    if spot.text == "(" and spot.index == keyword + 1:
        close = spot.listing.closing(spot.index)
        header = lua_loop(spot.listing, keyword, close + 1) if close is not None else None
        return with_line("a loop's header has no parentheses", header or "for i = 1, 10 do … end")
    if spot.text == "of" or spot.text == "{":
        header = lua_loop(spot.listing, keyword, stop)
        if spot.text == "of":
            return with_line("a loop over a list is written with ipairs", header or "for _, item in ipairs(list) do")
    if spot.text == "to" and spot.failure.text == "',' expected":
        header = f"{spot.listing.text(keyword, spot.index)}, {spot.listing.text(spot.index + 1, stop)} do"
        return with_line("the bounds of a loop are separated by a comma", header if is_lua(header) else None)
    return None


def _brace(spot: Spot) -> Advice | str | None:
    """`if (x) {`, `while x {`, `function f() {`, `}`."""
    header = spot.tokens[spot.statement]
    brace = _header_brace(spot) if header.text in _HEADERS else None
    if brace is not None:
        explanation = f"{_BRACES}; they begin with {_HEADERS[header.text]} and close with end"
        return Advice(with_line(explanation, mended(spot.listing, header.line)), brace)
    before = spot.before
    if spot.text == "{" and spot.index == spot.statement and before is not None:
        if before.text == ")" and spot.failure.blocks and spot.failure.blocks[-1].keyword == "function":
            return with_line(f"{_BRACES}; a function's body ends with end", mended(spot.listing, spot.token.line))
        if before.text in ("else", "then", "do", "repeat"):
            return f"{_BRACES}: leave out the {{ and close with end"
    if spot.text == "}" and spot.index == spot.statement and not spot.failure.brackets:
        return f"{_BRACES}; a block is closed with end, not }}"
    return None


def _header_brace(spot: Spot) -> int | None:
    """The brace that was meant to open the block of an `if`, `while` or `for`."""
    span = spot.listing.span(spot.tokens[spot.statement].line)
    expected = spot.failure.text in ("'then' expected", "'do' expected")
    if expected and spot.text == "{":
        return spot.index
    if expected and span and spot.tokens[span[-1]].text == "{":
        return span[-1]
    condition = spot.statement + 1
    close = spot.listing.closing(condition) if spot.tokens[condition].text == "(" else None
    if close is None or spot.tokens[close + 1].text != "{":
        return None
    return close + 1 if expected or close + 1 in spot.failure.brackets else None


def _colon(spot: Spot) -> Advice | str | None:
    """`if x == 1:`, `else:`, `for x in list:`."""
    header = spot.tokens[spot.statement]
    if header.text in _HEADERS and spot.failure.text in ("'then' expected", "'do' expected"):
        last = spot.listing.span(header.line)[-1]
        colon = spot.index if spot.text == ":" else last if spot.tokens[last].text == ":" else None
        if colon is None:
            return None
        explanation = f"{_COLON}: use {_HEADERS[header.text]} … end"
        return Advice(with_line(explanation, mended(spot.listing, header.line)), colon)
    before = spot.before
    if spot.text == ":" and spot.index == spot.statement and before is not None and spot.follows_on_line():
        if before.text in ("then", "do", "else", "repeat"):
            return f"{_COLON}: leave it out"
        if before.text == ")" and spot.failure.blocks and spot.failure.blocks[-1].keyword == "function":
            return f"{_COLON}: leave it out; the function ends with end"
    return None


def _conditional_value(spot: Spot) -> str | None:
    """`local y = 1 if x else 2`, `local y = if a then b else c end`."""
    keyword = spot.index if spot.text == "if" else spot.statement
    if spot.tokens[keyword].text != "if":
        return None
    before = spot.tokens[keyword - 1] if keyword else None
    if before is None or before.last_line != spot.tokens[keyword].line:
        return None
    if spot.failure.text == "unexpected symbol" and keyword == spot.index:
        return "if is a statement in Lua, not a value; write: condition and a or b"
    span = spot.listing.span(spot.tokens[keyword].line)
    otherwise = next((index for index in range(keyword, span.stop) if spot.tokens[index].text == "else"), None)
    if otherwise is None or any(spot.tokens[index].text == "then" for index in range(keyword, otherwise)):
        return None
    start = next(
        (at for at in range(keyword - 1, span.start - 1, -1) if spot.tokens[at].text in ("=", "return", "(", ",")), None
    )
    condition = spot.listing.text(keyword + 1, otherwise)
    yes = spot.listing.text(start + 1, keyword) if start is not None else ""
    no = spot.listing.text(otherwise + 1, span.stop)
    line = f"{condition} and {yes} or {no}" if yes and no and yes not in ("nil", "false", "None", "False") else None
    return with_line("Lua has no `a if b else c`; use and … or", line)


def _missing_opener(spot: Spot) -> Advice | None:
    """A condition without `then`, a loop without `do`."""
    word = {"'then' expected": "then", "'do' expected": "do"}.get(spot.failure.text)
    before, header = spot.before, spot.tokens[spot.statement]
    if word is None or before is None or header.text not in _HEADERS or header.line != before.last_line:
        return None
    text = spot.listing.line(header.line)
    if text is None or len(text) > 100:
        return None
    cut = before.column - 1 + len(before.text)
    rest = range(spot.index, spot.listing.span(header.line).stop)
    if before.line != header.line or not spot.ends_value(-1) or any(spot.tokens[index].text == word for index in rest):
        return None
    line = f"{text[:cut]} {word}{'' if not text[cut:].strip() else ' ' + text[cut:].strip()}".strip()
    return Advice(f"{word} is missing; write: {line}", spot.index - 1) if is_lua(line) else None


def _else_if(spot: Spot) -> Advice | None:
    """`else if`, which opens a second `if` that needs an `end` of its own."""
    if not spot.failure.text.startswith("'end' expected") or spot.text != "<eof>":
        return None
    kept: list[Token] = []
    found: list[int] = []
    for index, token in enumerate(spot.tokens):
        before = spot.tokens[index - 1]
        if token.text == "if" and index and before.text == "else" and before.line == token.line:
            kept[-1] = before._replace(text="elseif")
            found.append(index)
        else:
            kept.append(token)
    reading = read(kept) if found else None
    if reading is None or reading.failure is not None:
        return None
    explanation = "else if opens another if that needs an end of its own; use elseif"
    return Advice(with_line(explanation, mended(spot.listing, spot.tokens[found[0]].line)), found[0])


def _missing_end(spot: Spot) -> str | None:
    """An `end` too few: indentation tells which block lacks it."""
    if not spot.failure.text.startswith(("'end' expected", "'until' expected")) or spot.text != "<eof>":
        return None
    reading = spot.listing.reading
    for opener, closing in reading.pairs if reading else ():
        first, last = spot.tokens[opener], spot.tokens[closing]
        if first.line != last.line and _begins_line(spot, closing) and last.column < _indent(spot, opener):
            return f"the {first.text} of line {first.line} seems to lack its end: the end of line {last.line} closes it"
    if not spot.failure.blocks:
        return None
    block = spot.failure.blocks[-1]
    word = "until" if block.keyword == "repeat" else "end"
    return f"the {block.keyword} of line {spot.tokens[block.index].line} is never closed: add {word}"


def _indent(spot: Spot, index: int) -> int:
    return spot.tokens[spot.listing.span(spot.tokens[index].line).start].column


def _begins_line(spot: Spot, index: int) -> bool:
    return spot.listing.span(spot.tokens[index].line).start == index


def _unclosed(spot: Spot) -> str | None:
    """A bracket that is open at the end of the script."""
    if spot.text != "<eof>" or not spot.failure.brackets or "expected" not in spot.failure.text:
        return None
    opener = spot.tokens[spot.failure.brackets[-1]]
    close = {"(": ")", "[": "]", "{": "}"}[opener.text]
    return f"the {opener.text} of line {opener.line} is never closed: add {close}"


def _extra_end(spot: Spot) -> str | None:
    if spot.failure.text == "<eof> expected" and spot.text == "end":
        return "this end closes nothing: remove it, or look for a block that was closed too early"
    return None


def _after_return(spot: Spot) -> str | None:
    """Statements behind a `return`."""
    if not spot.failure.after_return or spot.follows_on_line() or spot.text in ("<eof>", "end"):
        return None
    if spot.token.kind not in ("name", "keyword"):
        return None
    return "return must be the last statement of its block: nothing may follow it"


RULES: tuple[Rule, ...] = (
    _for_header,
    _conditional_value,
    _brace,
    _colon,
    _missing_opener,
    _else_if,
    _missing_end,
    _unclosed,
    _extra_end,
    _after_return,
)
