"""Syntax errors: where the script stops being Lua, and the Lua form of what was probably meant."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from moonbox.languages.lua.explain.slips import find_slip
from moonbox.languages.lua.explain.structure import find_structure
from moonbox.languages.lua.vocabulary import message_hint

if TYPE_CHECKING:
    from moonbox.languages.lua.syntax.listing import Listing
    from moonbox.languages.lua.syntax.parser import Failure

_LONGEST_NEAR = 60
_AT_LINE = re.compile(r"^(?:break outside|no visible label|<goto).{0,120} at line (\d{1,9})")

_OPERATORS = frozenset({"!=", "!==", "===", "&&", "||", "+=", "-=", "*=", "/=", "..=", "++"})
"""What no line of Lua has, so that all of them can be named at once."""


class ExplainedSyntax(NamedTuple):
    """What is known about an error's place and cause."""

    message: str
    line: int | None
    column: int | None = None
    hint: str | None = None


def explain_syntax(listing: Listing, message: str, line: int | None) -> ExplainedSyntax:
    """A syntax error that Lua reported for that line (its "near" part still in the message)."""
    what, _, near = message.rpartition(" near ")
    failure = _failure(listing) if what else None
    if failure is None:
        named = _AT_LINE.search(message)
        line = int(named[1]) if named else line
        columns = [token.column for token in listing.words(line) if f"'{token.text}'" == near]
        column = columns[0] if len(columns) == 1 else None
        return ExplainedSyntax(_shortened(what, near) if what else message, line, column, message_hint(message))
    token = failure.token
    if token.kind != "bad" and token.text.isprintable():  # of others Lua says more
        what, near, line = failure.text, token.text if token.kind == "eof" else f"'{token.text}'", token.last_line
    message = _shortened(what, near)
    # The line of a token that spans several is where it ends; its column, where it begins.
    column = token.column if token.line == line else None
    advice = find_slip(listing, failure, near) or find_structure(listing, failure)
    if advice is None:
        return ExplainedSyntax(message, line, column)
    others = _elsewhere(listing, failure) if _trusted(listing, failure) else ""
    hint = f"{advice.text} (also {others})" if others else advice.text
    return (
        ExplainedSyntax(message, line, column, hint)
        if advice.line is None
        else ExplainedSyntax(message, *advice[1:], hint)
    )


def _failure(listing: Listing) -> Failure | None:
    """Where the script stops being Lua; one that begins as an expression is read as one."""
    failure = listing.parsed.failure if listing.parsed else None
    first = listing.tokens[0]
    if failure is None or failure.index > 1:
        return failure
    if first.kind in ("string", "number") or first.text in _EXPRESSION_STARTS:
        value = listing.parsed_as_value.failure if listing.parsed_as_value else None
        if value is not None and value.index > failure.index and value.text != "<eof> expected":
            return value
    return failure


def _elsewhere(listing: Listing, failure: Failure) -> str:
    """Where else operators stand that Lua does not have, so that all can be mended at once."""
    tokens, lines_of = listing.tokens, dict[str, list[int]]()
    for first, second in pairwise(tokens[failure.index + 1 :]):
        name = first.text + second.text if first.end == second.start else ""
        if name in _OPERATORS and first.line > failure.token.line:
            lines = lines_of.setdefault(name, [])
            if first.line not in lines and len(lines) < 5:
                lines.append(first.line)
    return ", ".join(
        f"{name} on line{'s' * (len(lines) > 1)} {' and '.join(map(str, lines))}" for name, lines in lines_of.items()
    )


_EXPRESSION_STARTS = frozenset({"{", "#", "-", "~", "not", "nil", "true", "false", "function", "("})


def _shortened(what: str, near: str) -> str:
    near = near if len(near) <= _LONGEST_NEAR else f"{near[: _LONGEST_NEAR - 2]}…'"
    return f"{what} near {near}"


def _trusted(listing: Listing, failure: Failure) -> bool:
    """Whether what follows was read as code: behind a foreign comment or string, words are not what they seem."""
    is_letter = failure.token.kind == "foreign" and not failure.token.text.isascii()
    rest = listing.tokens[failure.index :]
    return not is_letter and all(word.kind != "bad" and word.text not in ("`", "#", "//") for word in rest)
