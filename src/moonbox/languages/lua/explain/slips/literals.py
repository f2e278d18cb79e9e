"""Comments, strings and numbers written as in other languages, and characters that Lua does not know."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from moonbox.languages.lua.explain.corrections import with_line
from moonbox.languages.lua.syntax.lexer import bad_escape

if TYPE_CHECKING:
    from moonbox.languages.lua.explain.slips import FailurePoint, Rule

_COMMENT = "comments begin with -- in Lua, not with {}"
_HOLE = re.compile(r"\$?\{([^{}]{1,80})\}")
_REGEX_CLASSES = frozenset("dDwWsSb")
_QUOTES = {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "«": '"', "»": '"'}
_SIGNS = {"≠": "~=", "≤": "<=", "≥": ">=", "×": "*", "÷": "/", "−": "-", "–": "-", "—": "-", "→": "->", "…": "..."}


def _fence(point: FailurePoint) -> str | None:
    line = point.listing.line(point.token.line) or ""
    fenced = point.text == "`" and line.strip().startswith("```")
    return "remove the ``` lines: send only the code" if fenced else None


def _template(point: FailurePoint) -> str | None:
    """`` `hello ${name}` ``."""
    if point.text != "`":
        return None
    line = point.listing.line(point.token.line) or ""
    start = point.token.column
    end = line.find("`", start, start + 200)
    written = concatenated(line[start:end]) if end > 0 else None
    return with_line("Lua has no template strings; join the parts with ..", written)


def concatenated(text: str) -> str | None:
    """A text with `{holes}` as Lua joins it; None when there is nothing to join or it cannot be told."""
    if '"' in text or "\\" in text or len(text) > 200:
        return None
    parts, at = [], 0
    for hole in _HOLE.finditer(text):
        if hole.start() > at:
            parts.append(f'"{text[at : hole.start()]}"')
        inner = hole[1].strip()
        if not re.fullmatch(r"[A-Za-z_][\w.\[\]]*", inner):
            return None
        parts.append(inner)
        at = hole.end()
    if at < len(text):
        parts.append(f'"{text[at:]}"')
    return " .. ".join(parts) if at else None


def _slashes(point: FailurePoint) -> str | None:
    """`// comment`, `/* comment */`, and `x = 1 // a comment`."""
    if point.text == "//" and point.failure.text == "unexpected symbol" and not point.failure.brackets:
        return _COMMENT.format("//")
    if point.text == "/" and point.after.text == "*" and point.joined(0, 1):
        return "comments begin with -- in Lua, or are written --[[ … ]]"
    if point.text == "*" and point.before.text == "/" and point.joined(-1, 0):
        return "comments begin with -- in Lua, or are written --[[ … ]]"
    span = point.listing.span(point.token.line)
    for index in range(span.start, span.stop - 2):
        words = point.tokens[index : index + 3]
        if words[0].text == "//" and all(word.kind == "name" for word in words[1:]) and index < point.index:
            return _COMMENT.format("//")
    return None


def _hash(point: FailurePoint) -> str | None:
    """`# comment`."""
    if point.text != "#" or point.index != point.statement or point.after.text == "include":
        return None
    if point.joined(0, 1) and point.after.kind == "name" and not point.follows_on_line():
        return None  # `#list` on a line of its own is a length that is not used
    return _COMMENT.format("#")


def _hash_behind(point: FailurePoint) -> str | None:
    """A comment with # whose first words happen to read as Lua."""
    span = point.listing.span(point.token.line)
    for index in range(span.start, min(span.stop - 2, point.index)):
        words = point.tokens[index : index + 3]
        if words[0].text == "#" and all(word.kind == "name" for word in words[1:]) and words[0].end < words[1].start:
            return _COMMENT.format("#")
    return None


def _triple_quotes(point: FailurePoint) -> str | None:
    for first in (point.index - 1, point.index, point.index - 2):
        if first < 0 or first + 1 >= len(point.tokens):
            continue
        a, b = point.tokens[first], point.tokens[first + 1]
        if a.text in ('""', "''") and b.text[:1] == a.text[0] and a.end == b.start:
            return f"a string over several lines is written [[ … ]], not with {a.text[0] * 3}"
    return None


def _unfinished(point: FailurePoint) -> str | None:
    if point.failure.text == "unfinished string":
        quote = point.text[0]
        several = "for several lines use [[ … ]], for a line break \\n"
        return f"the string that begins with {quote} must end on the same line; {several}"
    if point.failure.text in ("unfinished long string", "unfinished long comment"):
        what = point.failure.text.removeprefix("unfinished ")
        return f"the {what} that begins on line {point.token.line} is never closed: add ]]"
    return None


def _inner_quote(point: FailurePoint) -> str | None:
    """`'it's'`."""
    before = point.before
    if before.kind != "string" or point.token.kind not in ("name", "keyword", "bad") or not point.joined(-1, 0):
        return None
    quote = before.text[0]
    line = point.listing.line(point.token.line) or ""
    if quote not in "'\"" or quote not in line[point.token.column :]:
        return None
    other = '"' if quote == "'" else "'"
    return f"the {quote} inside the string ends it; write \\{quote}, or put the string between {other}"


def _escape(point: FailurePoint) -> str | None:
    if point.failure.text != "invalid escape sequence":
        return None
    letter = bad_escape(point.text)[1:]
    if letter in _REGEX_CLASSES:
        known = "%f[%w] for a word's edge" if letter == "b" else f"%{letter}"
        return f"Lua patterns are not regular expressions: write {known}, not \\{letter}"
    if letter == "u":
        return "Lua writes a Unicode character as \\u{XXXX}"
    if letter and letter in ".()[]{}*+?^$|-/":
        return f"in a Lua pattern write %{letter}, not \\{letter}; in other strings the backslash is not needed"
    return "write a backslash in a string as \\\\"


def _range(point: FailurePoint) -> str | None:
    """`for i in 1..3 do`."""
    if point.failure.text != "malformed number" or point.tokens[point.statement].text != "for":
        return None
    first, dots, last = point.text.partition("..")
    if not dots or not first.isdigit():
        return None
    name = point.tokens[point.statement + 1].text
    return f"Lua has no ranges; write: for {name} = {first}, {last.lstrip('.=') or 'n'} do"


def _number(point: FailurePoint) -> str | None:
    if point.failure.text != "malformed number":
        return None
    line = point.listing.line(point.token.line) or ""
    written = re.match(r"[0-9][0-9_]*", line[point.token.column - 1 :][:60])
    if written and "_" in written[0]:
        return f"numbers have no _ between digits; write: {written[0].replace('_', '')}"
    base = re.match(r"0(?:b([01]{1,60})|o([0-7]{1,20}))\b", line[point.token.column - 1 :][:80])
    if base:
        return f"Lua has no 0b and 0o numbers; write: {int(base[1], 2) if base[1] else int(base[2], 8)}"
    if ".." in point.text:
        return "put a space between a number and ..: 1 .. 2"
    return None


def _character(point: FailurePoint) -> str | None:
    """Typographic quotes and signs, `$name`, `@name`."""
    if point.token.kind != "foreign":
        return None
    if point.text in _QUOTES:
        return f"strings need straight quotes: write {_QUOTES[point.text]}, not {point.text}"
    if point.text in _SIGNS:
        return f"write {_SIGNS[point.text]}, not {point.text}"
    if point.text == "\u00a0":
        return "there is a no-break space here: write an ordinary space"
    if point.text == "$" and point.after.kind == "name":
        return f"names have no $ in Lua; write: {point.after.text}"
    if point.text == "@" and point.index == point.statement:
        return "Lua has no decorators: remove it"
    if ord(point.text[0]) > 127 and point.text.isalpha():
        return "names consist of the letters a to z, digits and _: use other letters only in strings"
    return None


RULES: tuple[Rule, ...] = (
    _fence,
    _template,
    _slashes,
    _hash,
    _hash_behind,
    _triple_quotes,
    _unfinished,
    _inner_quote,
    _escape,
    _range,
    _number,
    _character,
)
