"""The words of a Rhai script, for the checker's reader: in one pass, and only so many."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["UNIT", "Token", "Unreadable", "tokenize"]

UNIT = "()"

_MOST_WORDS = 12_000
_KEYWORDS = frozenset(
    {
        *("true", "false", "let", "const", "if", "else", "switch", "do", "while", "until", "loop", "for", "in", "fn"),
        *("continue", "break", "return", "throw", "try", "catch", "private", "import", "export", "as"),
    }
)
_WORD = re.compile(
    r"""
      (?P<space>\s++)
    | (?P<comment>//[^\n]*+)
    | (?P<long>/\*)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<number>0[xX][0-9a-fA-F_]++|0[oO][0-7_]++|0[bB][01_]++|[0-9][0-9_]*+(?:\.[0-9][0-9_]*+)?(?:[eE][+-]?[0-9]++)?)
    | (?P<string>"(?:[^"\\]++|\\[\s\S])*+")
    | (?P<char>'(?:[^'\\\n]|\\[^\n]{1,10}?)')
    | (?P<tick>`)
    | (?P<op>\*\*=|<<=|>>=|\.\.=|!in\b|\*\*|\+=|-=|\*=|/=|%=|&&|\|\||==|!=|<=|>=|<<|>>|&=|\|=|\^=|=>|::|\.\.
        |\?\?|\?\.|\?\[|\#\{|\(\)|[-+*/%^&|<>=!(){}\[\];:,.])
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


class Unreadable(Exception):
    """Something that this reader does not know."""


def tokenize(source: str) -> list[Token]:
    """The words; text in backticks becomes a `text` word with the words of its `${…}` between marks."""
    tokens: list[Token] = []
    open_: list[int] = []  # how many braces are open in each interpolation
    at, size = 0, len(source)
    while at < size:
        match = _WORD.match(source, at)
        if match is None or len(tokens) > _MOST_WORDS:
            raise Unreadable
        kind, text, start, at = match.lastgroup or "", match.group(), at, match.end()
        if kind == "long":
            at = _comment_end(source, at)
        elif kind == "tick":
            tokens.append(Token("text", "`", start, at))
            at = _literal_text(source, at, tokens, open_)
        elif kind not in ("space", "comment"):
            if kind == "name" and text in _KEYWORDS:
                kind = "keyword"
            if kind == "op" and open_ and text in ("{", "#{"):
                open_[-1] += 1
            elif kind == "op" and open_ and text == "}":
                open_[-1] -= 1
                if open_[-1] < 0:
                    open_.pop()
                    tokens.append(Token("close", "}", start, at))
                    at = _literal_text(source, at, tokens, open_)
                    continue
            tokens.append(Token(kind, text, start, at))
    if open_:
        raise Unreadable
    tokens.append(Token("eof", "", size, size))
    return tokens


def _literal_text(source: str, at: int, tokens: list[Token], open_: list[int]) -> int:
    """Moves to the next `${` or to the end of a text in backticks."""
    while True:
        tick, hole = source.find("`", at), source.find("${", at)
        if tick < 0:
            raise Unreadable
        if hole < 0 or tick < hole:
            if source.startswith("``", tick):
                at = tick + 2
                continue
            tokens.append(Token("end", "`", tick, tick + 1))
            return tick + 1
        tokens.append(Token("open", "${", hole, hole + 2))
        open_.append(0)
        return hole + 2


def _comment_end(source: str, at: int) -> int:
    depth = 1
    for match in re.compile(r"/\*|\*/").finditer(source, at):
        depth += 1 if match.group() == "/*" else -1
        if depth == 0:
            return match.end()
    raise Unreadable
