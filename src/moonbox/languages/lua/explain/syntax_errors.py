"""Syntax errors: where the script stops being Lua, and the Lua form of what was probably meant."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from moonbox.languages.lua.explain.slips import Advice, corrected, find_slip, is_lua, with_line
from moonbox.languages.lua.syntax.lexer import Words
from moonbox.languages.lua.syntax.parser import SyntaxFailure, expressions_end, parse
from moonbox.languages.lua.vocabulary import message_hint
from moonbox.suggest import nearest

if TYPE_CHECKING:
    from moonbox.languages.lua.syntax.lexer import Token
    from moonbox.languages.lua.syntax.listing import Listing

_LONGEST_NEAR = 60
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_HEADERS = frozenset({"if", "elseif", "while", "for"})
_LONG_KEYWORDS = ("else", "elseif", "function", "local", "repeat", "return", "then", "until", "while")
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
    advice = find_slip(listing, failure, near) or _structure(listing, failure)
    if advice is None:
        return ExplainedSyntax(message, line, column)
    others = _elsewhere(listing, failure) if _trusted(listing, failure) else ""
    hint = f"{advice.text} (also {others})" if others else advice.text
    return (
        ExplainedSyntax(message, line, column, hint)
        if advice.line is None
        else ExplainedSyntax(message, *advice[1:], hint)
    )


def _failure(listing: Listing) -> SyntaxFailure | None:
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


def _elsewhere(listing: Listing, failure: SyntaxFailure) -> str:
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


def _trusted(listing: Listing, failure: SyntaxFailure) -> bool:
    """Whether what follows was read as code: behind a foreign comment or string, words are not what they seem."""
    is_letter = failure.token.kind == "foreign" and not failure.token.text.isascii()
    rest = listing.tokens[failure.index :]
    return not is_letter and all(word.kind != "bad" and word.text not in ("`", "#", "//") for word in rest)


def _structure(listing: Listing, failure: SyntaxFailure) -> Advice | None:
    """What is missing or too many at the place where the script stops being Lua."""
    return (
        _unfinished(listing, failure)
        or _missing_opener(listing, failure)
        or _else_if(listing, failure)
        or _missing_end(listing, failure)
        or _unclosed(listing, failure)
        or _misplaced(listing, failure)
        or _missing_return(listing, failure)
        or _misspelled(listing, failure)
    )


def _unfinished(listing: Listing, failure: SyntaxFailure) -> Advice | None:
    if not failure.text.startswith("unfinished long"):
        return None
    what = failure.text.removeprefix("unfinished ")
    return Advice(f"the {what} that begins on line {failure.token.line} is never closed: add ]]")


def _missing_opener(listing: Listing, failure: SyntaxFailure) -> Advice | None:
    """A condition without `then`, a loop without `do`."""
    word = {"'then' expected": "then", "'do' expected": "do"}.get(failure.text)
    header, before = listing.tokens[failure.statement], failure.before
    text = listing.line(header.line) or ""
    if word is None or header.text not in _HEADERS or header.line != before.last_line or f" {word} " in f"{text} ":
        return None
    cut = before.column - 1 + len(before.text)
    line = f"{text[:cut]} {word} {text[cut:].strip()}".strip()
    return Advice(f"{word} is missing; write: {line}", header.line, before.column) if is_lua(line) else None


def _else_if(listing: Listing, failure: SyntaxFailure) -> Advice | None:
    """`else if`, which opens a second `if` that needs an `end` of its own."""
    if not failure.text.startswith("'end' expected") or failure.token.kind != "eof":
        return None
    words = [listing.tokens[0].text]
    joined: Token | None = None
    for before, token in pairwise(listing.tokens[:-1]):
        if token.text == "if" and before.text == "else" and before.line == token.line:
            words[-1] = "elseif"
            joined = joined or token
        else:
            words.append(token.text)
    parsed = parse(Words(" ".join(words))) if joined is not None else None
    if joined is None or parsed is None or parsed.failure is not None:
        return None
    explanation = "else if opens another if that needs an end of its own; use elseif"
    return Advice(with_line(explanation, corrected(listing.line(joined.line))), joined.line, joined.column)


def _missing_end(listing: Listing, failure: SyntaxFailure) -> Advice | None:
    """An `end` too few: indentation tells which block lacks it."""
    tokens = listing.tokens
    expected = failure.text.startswith(("'end' expected", "'until' expected"))
    if not expected or failure.token.kind != "eof" or listing.parsed is None:
        return None
    for opener, closing in listing.parsed.pairs:
        first, last = tokens[opener], tokens[closing]
        begins_line = listing.span(last.line).start == closing
        if first.line != last.line and begins_line and last.column < tokens[listing.span(first.line).start].column:
            return Advice(
                f"the {first.text} of line {first.line} seems to have no end: the end of line {last.line} closes it"
            )
    if not failure.blocks:
        return None
    block = failure.blocks[-1]
    word = "until" if block.text == "repeat" else "end"
    return Advice(f"the {block.text} of line {block.line} is never closed: add {word}")


def _unclosed(listing: Listing, failure: SyntaxFailure) -> Advice | None:
    """A bracket that is open at the end of the script or before this line, and a comma too few."""
    token, before = failure.token, failure.before
    if not failure.brackets or "expected" not in failure.text:
        return None
    opener = failure.brackets[-1]
    close = _CLOSERS[opener.text]
    if token.kind == "eof":
        return Advice(f"the {opener.text} of line {opener.line} is never closed: add {close}")
    if before.last_line == token.line or not failure.text.startswith(f"'{close}' expected"):
        return None
    if token.kind == "keyword" or token.column <= listing.tokens[listing.span(opener.line).start].column:
        return Advice(f"the {opener.text} of line {opener.line} is not closed before this line: add {close}")
    if opener.text == "{":
        return Advice(f"table fields are separated by commas: one is missing at the end of line {before.last_line}")
    return None


def _misplaced(listing: Listing, failure: SyntaxFailure) -> Advice | None:
    """An `end` too many, one too few before this line, and statements behind a `return`."""
    token, before = failure.token, failure.before
    if failure.text == "<eof> expected" and token.text == "end":
        return Advice("this end closes nothing: remove it, or look for a block that was closed too early")
    behind = failure.after_return and before.last_line != token.line and token.text != "end"
    if not behind or token.kind not in ("name", "keyword"):
        return None
    for block in failure.blocks[-1:]:
        first = listing.tokens[listing.span(block.line).start]
        if block.text != "repeat" and token.column <= first.column:
            return Advice(f"the {block.text} of line {block.line} is not closed before this line: add end")
    return Advice("return must be the last statement of its block: nothing may follow it")


def _missing_return(listing: Listing, failure: SyntaxFailure) -> Advice | None:
    """An expression as the last line, and one that stands where a statement must be."""
    tokens, first = listing.tokens, failure.statement
    if failure.text not in ("syntax error", "unexpected symbol") or failure.blocks or failure.after_return:
        return None
    if failure.text == "unexpected symbol" and failure.index != first:
        return None
    stop = expressions_end(listing.read, first)
    alone = first == 0 or tokens[first - 1].last_line < tokens[first].line or tokens[first - 1].text == ";"
    if stop is None or not alone:
        return None
    text, end = listing.text(first, stop), tokens[stop]
    if text == "…":
        return Advice("an expression is not a statement: return its value, or assign it")
    if end.kind == "eof" or (end.text == ";" and tokens[stop + 1].kind == "eof"):
        written = f"the last line is an expression; write: return {text}"
        return Advice(written, tokens[first].line, tokens[first].column)
    if end.line <= tokens[stop - 1].last_line:
        return None
    if failure.token.text == "==":
        left, right = listing.text(first, failure.index), listing.text(failure.index + 1, stop)
        return Advice(f"== compares, = assigns; to assign write: {left} = {right}")
    return Advice(f"an expression is not a statement; use its value, for example: local result = {text}")


def _misspelled(listing: Listing, failure: SyntaxFailure) -> Advice | None:
    """`retrun x`, `if x tehn`."""
    for index in (failure.index, failure.statement):
        word = listing.tokens[index]
        keywords = nearest(word.text, _LONG_KEYWORDS) if word.kind == "name" else []
        if keywords and failure.index <= index + 1:
            return Advice(f"did you mean {keywords[0]}?", word.line, word.column)
    return None
