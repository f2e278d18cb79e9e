"""Comments, strings and numbers written as in other languages, and characters that Lua does not know."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from moonbox.languages.lua.explain.lexer import bad_escape
from moonbox.languages.lua.explain.mend import with_line

if TYPE_CHECKING:
    from moonbox.languages.lua.explain.slips.spot import Rule, Spot

__all__ = ["RULES", "concatenated"]

_COMMENT = "comments begin with -- in Lua, not with {}"
_HOLE = re.compile(r"\$?\{([^{}]{1,80})\}")
_REGEX_CLASSES = frozenset("dDwWsSb")
_QUOTES = {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "«": '"', "»": '"'}
_SIGNS = {"≠": "~=", "≤": "<=", "≥": ">=", "×": "*", "÷": "/", "−": "-", "–": "-", "—": "-", "→": "->", "…": "..."}


def _fence(spot: Spot) -> str | None:
    if spot.text != "`" or spot.listing.line(spot.token.line) is None:
        return None
    line = spot.listing.line(spot.token.line) or ""
    if line.strip().startswith("```"):
        return "leave out the ``` lines: the script is the code alone"
    return None


def _template(spot: Spot) -> str | None:
    """`` `hello ${name}` ``."""
    if spot.text != "`":
        return None
    line = spot.listing.line(spot.token.line) or ""
    start = spot.token.column
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


def _slashes(spot: Spot) -> str | None:
    """`// comment`, `/* comment */`, and `x = 1 // a comment`."""
    if spot.text == "//" and spot.failure.text == "unexpected symbol" and not spot.failure.brackets:
        return _COMMENT.format("//")
    if spot.text == "/" and spot.after is not None and spot.after.text == "*" and spot.joined(0, 1):
        return "comments begin with -- in Lua, or stand between --[[ and ]]"
    if spot.before is not None and spot.text == "*" and spot.before.text == "/" and spot.joined(-1, 0):
        return "comments begin with -- in Lua, or stand between --[[ and ]]"
    span = spot.listing.span(spot.token.line)
    for index in range(span.start, span.stop - 2):
        words = spot.tokens[index : index + 3]
        if words[0].text == "//" and all(word.kind == "name" for word in words[1:]) and index < spot.index:
            return _COMMENT.format("//")
    return None


def _hash(spot: Spot) -> str | None:
    """`# comment`."""
    if spot.text != "#" or spot.index != spot.statement or spot.after is None or spot.after.text == "include":
        return None
    if spot.joined(0, 1) and spot.after.kind == "name" and not spot.follows_on_line():
        return None  # `#list` on a line of its own is a length that nobody returns
    return _COMMENT.format("#")


def _hash_behind(spot: Spot) -> str | None:
    """A comment with # whose first words happen to read as Lua."""
    span = spot.listing.span(spot.token.line)
    for index in range(span.start, min(span.stop - 2, spot.index)):
        words = spot.tokens[index : index + 3]
        if words[0].text == "#" and all(word.kind == "name" for word in words[1:]) and words[0].end < words[1].start:
            return _COMMENT.format("#")
    return None


def _triple_quotes(spot: Spot) -> str | None:
    for first in (spot.index - 1, spot.index, spot.index - 2):
        if first < 0 or first + 1 >= len(spot.tokens):
            continue
        a, b = spot.tokens[first], spot.tokens[first + 1]
        if a.text in ('""', "''") and b.text[:1] == a.text[0] and a.end == b.start:
            return f"text over several lines stands between [[ and ]], not {a.text[0] * 3}"
    return None


def _unfinished(spot: Spot) -> str | None:
    if spot.failure.text == "unfinished string":
        quote = spot.text[0]
        several = "for several lines use [[ … ]], for a line break \\n"
        return f"the string that begins with {quote} must end on the same line; {several}"
    if spot.failure.text in ("unfinished long string", "unfinished long comment"):
        what = spot.failure.text.removeprefix("unfinished ")
        return f"the {what} that begins on line {spot.token.line} is never closed: add ]]"
    return None


def _inner_quote(spot: Spot) -> str | None:
    """`'it's'`."""
    before = spot.before
    if (
        before is None
        or before.kind != "string"
        or spot.token.kind not in ("name", "keyword", "bad")
        or not spot.joined(-1, 0)
    ):
        return None
    quote = before.text[0]
    line = spot.listing.line(spot.token.line) or ""
    if quote not in "'\"" or quote not in line[spot.token.column :]:
        return None
    other = '"' if quote == "'" else "'"
    return (
        f"the {quote} inside the text ends the string; write \\{quote} there, or begin and end the string with {other}"
    )


def _escape(spot: Spot) -> str | None:
    if spot.failure.text != "invalid escape sequence":
        return None
    letter = bad_escape(spot.text)[1:]
    if letter in _REGEX_CLASSES:
        known = "%f[%w] for a word's edge" if letter == "b" else f"%{letter}"
        return f"Lua patterns are not regular expressions: write {known}, not \\{letter}"
    if letter == "u":
        return "a character by its number is written \\u{XXXX} in Lua"
    if letter and letter in ".()[]{}*+?^$|-/":
        return f"in a Lua pattern write %{letter}, not \\{letter}; in other text the \\ is not needed"
    return "a backslash in text is written \\\\"


def _range(spot: Spot) -> str | None:
    """`for i in 1..3 do`."""
    if spot.failure.text != "malformed number" or spot.tokens[spot.statement].text != "for":
        return None
    first, dots, last = spot.text.partition("..")
    if not dots or not first.isdigit():
        return None
    name = spot.tokens[spot.statement + 1].text
    return f"Lua has no ranges; write: for {name} = {first}, {last.lstrip('.=') or 'n'} do"


def _number(spot: Spot) -> str | None:
    if spot.failure.text != "malformed number":
        return None
    line = spot.listing.line(spot.token.line) or ""
    written = re.match(r"[0-9][0-9_]*", line[spot.token.column - 1 :][:60])
    if written and "_" in written[0]:
        return f"numbers have no _ between digits; write: {written[0].replace('_', '')}"
    base = re.match(r"0(?:b([01]{1,60})|o([0-7]{1,20}))\b", line[spot.token.column - 1 :][:80])
    if base:
        return f"Lua has no 0b and 0o numbers; write: {int(base[1], 2) if base[1] else int(base[2], 8)}"
    if ".." in spot.text:
        return "leave a space before .. when it joins a number: 1 .. 2"
    return None


def _character(spot: Spot) -> str | None:
    """Typographic quotes and signs, `$name`, `@name`."""
    if spot.token.kind != "foreign":
        return None
    if spot.text in _QUOTES:
        return f"strings stand between straight quotes: write {_QUOTES[spot.text]}, not {spot.text}"
    if spot.text in _SIGNS:
        return f"write {_SIGNS[spot.text]}, not {spot.text}"
    if spot.text == "\u00a0":
        return "there is a no-break space here: write an ordinary space"
    if spot.text == "$" and spot.after is not None and spot.after.kind == "name":
        return f"names have no $ in Lua; write: {spot.after.text}"
    if spot.text == "@" and spot.index == spot.statement:
        return "Lua has no decorators: leave it out"
    if ord(spot.text[0]) > 127 and spot.text.isalpha():
        return "names consist of the letters a to z, digits and _: other letters may only stand in strings"
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
