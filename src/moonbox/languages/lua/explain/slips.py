"""Slips of models that think in other languages: the patterns of `slips.toml`, asked about a line that is not Lua."""

from __future__ import annotations

import re
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from moonbox.languages.lua.syntax.lexer import Token, Words
from moonbox.languages.lua.syntax.parser import SyntaxFailure, parse
from moonbox.languages.lua.vocabulary import equivalents
from moonbox.languages.tables import table

if TYPE_CHECKING:
    from moonbox.languages.lua.syntax.listing import Listing

LONGEST_LINE = 120
_MARK = "¦"
_STRING = re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""")
_COMMENT = re.compile(r"--.*")
_HOLE = re.compile(r"\{(\d)\}")
_MASKED = re.compile(r'"(\d+)"')
_FRAMES = ("{}", "{} end", "if x then {} end", "if x then {}", "return {}", "for i = 1, 2 do {} end", "f({})")
_OPENING = re.compile(rf"^\s*\}}?\s*(\w+)\b(?!\s*[=.,\[])(\s*;?\s*{_MARK})?")
_BEFORE_BLOCKS = frozenset({"try", "catch", "switch", "except", "finally", "import", "class", "with"})


class Advice(NamedTuple):
    """A hint, and the line and column that it is about where that is not the word at which the script failed."""

    text: str
    line: int | None = None
    column: int | None = None


class Slip(Struct, frozen=True):
    """One entry of `slips.toml`, which explains its fields."""

    hint: str
    line: str = ""
    text: str = ""
    near: str = ""
    failure: str = ""
    within: str = ""
    corrected: bool = False
    example: str = ""


class _Table(Struct, frozen=True):
    rewrites: list[tuple[str, str]]
    slips: list[Slip]


@cache
def _table() -> _Table:
    known = table("lua/explain/slips.toml")
    constants = [(rf"(?<![.:\w]){name}\b(?!\s*=[^=])", text) for name, text in equivalents().constants.items()]
    return _Table([*constants, *known["rewrites"]], [Slip(**slip) for slip in known["slips"]])


class Line:
    """A line with its strings out of the way, so that patterns see code alone."""

    def __init__(self, text: str) -> None:
        self._strings: list[str] = []
        self.masked = _COMMENT.sub("", _STRING.sub(self._keep, text)).rstrip()

    def _keep(self, string: re.Match[str]) -> str:
        self._strings.append(string[0])
        return f'"{len(self._strings) - 1}"'

    def restored(self, text: str) -> str:
        """The text of a pattern with the line's own strings in it."""
        known = self._strings
        return _MASKED.sub(lambda mask: known[int(mask[1])] if int(mask[1]) < len(known) else mask[0], text)

    def filled(self, template: str, match: re.Match[str]) -> str:
        """The template with what the pattern found in its holes."""
        return self.restored(_fill(template, match).replace(_MARK, ""))


def with_line(explanation: str, line: str | None) -> str:
    """An explanation and, where there is one, the line to write."""
    return f"{explanation}; write: {line}" if line else explanation


def corrected(text: str | None) -> str | None:
    """That line with everything put right that can be; None unless something was and the result is Lua."""
    if text is None or len(text) > LONGEST_LINE:
        return None
    line = Line(text)
    code = before = line.masked.strip()
    for pattern, new in _table().rewrites:
        code = re.sub(pattern, partial(_fill, new), code)
    result = line.restored(code.strip())
    return result if code != before and is_lua(result) else None


def is_lua(text: str) -> bool:
    """Whether the text can stand as one line of a Lua script."""
    parsed = (parse(Words(frame.replace("{}", text))) for frame in _FRAMES)
    return any(each is not None and each.failure is None for each in parsed)


def find_slip(listing: Listing, failure: SyntaxFailure, near: str) -> Advice | None:
    """What the line shows at which the script stops being Lua, or else the line of the statement."""
    token, start, before = failure.token, listing.tokens[failure.statement], failure.before
    if token.kind != "eof" and (advice := _asked(listing, failure, near, token.line, token)):
        return advice
    lines = dict.fromkeys(line for line in (start.line, before.last_line) if line < token.line or token.kind == "eof")
    return next((advice for line in lines if (advice := _asked(listing, failure, near, line, None))), None)


def _asked(listing: Listing, failure: SyntaxFailure, near: str, number: int, token: Token | None) -> Advice | None:
    """What is said of a line in which Lua stopped at that word, or behind it."""
    text = listing.line(number)
    if text is None or len(text) > 4 * LONGEST_LINE:
        return None
    at = token.column - 1 if token is not None else len(_COMMENT.sub("", text).rstrip())
    raw = f"{text[:at]}{_MARK}{text[at:]}" if token is not None else f"{text.rstrip()}{_MARK}"
    line = Line(f"{text[:at]}{_MARK}{text[at:]}")
    column = token.column if token is not None else len(text) - len(text.lstrip()) + 1
    if word := _statement(line.masked):
        return Advice(word, number, column)
    for slip in _table().slips:
        if slip.failure and not re.search(slip.failure, failure.text):
            continue
        if slip.within and not _is_within(failure, slip.within):
            continue
        subject, pattern = (
            (line.masked, slip.line) if slip.line else (raw, slip.text) if slip.text else (near, slip.near)
        )
        if match := re.search(pattern, subject):
            hint = line.filled(slip.hint, match)
            written = corrected(text) if slip.corrected else None
            example = f"{hint}; {slip.example}" if slip.example else hint
            return Advice(with_line(hint, written) if written else example, number, column)
    return None


def _statement(code: str) -> str | None:
    """A statement that opens with a word of another language."""
    opening = _OPENING.match(code)
    text = equivalents().statements.get(opening[1]) if opening else None
    return text if text and opening and (opening[2] or opening[1] in _BEFORE_BLOCKS) else None


def _is_within(failure: SyntaxFailure, what: str) -> bool:
    if what == "loop":
        return any(block.text in ("for", "while", "repeat") for block in failure.blocks)
    return bool(failure.brackets) and failure.brackets[-1].text == what


def _fill(template: str, match: re.Match[str]) -> str:
    return _HOLE.sub(lambda hole: match[int(hole[1])] or "" if int(hole[1]) <= match.re.groups else hole[0], template)
