"""A tolerant reader of Lua's words: what Lua would refuse becomes a token too, so that hints can name it."""

from __future__ import annotations

import re
from functools import cached_property
from typing import NamedTuple

from moonbox.languages.language import RESERVED_WORDS


class Token(NamedTuple):
    """One word of a script. `kind` is name, keyword, number, string, op, foreign, bad or eof."""

    kind: str
    text: str
    line: int
    column: int
    start: int
    end: int
    last_line: int


class Words:
    """The words of a script as its parser looks at them, and as tokens where their places are asked for.

    Reads at most so many words, in one pass. Linear in the length of the source.
    """

    def __init__(self, source: str, most: int = 1_000_000) -> None:
        read: list[tuple[str, str, str, str]] = _WORD.findall(source)
        if len(read) > 1 and not read[-2][2]:  # the end is found again behind blanks
            read.pop()
        if len(read) > most + 1:
            read[most:] = [("", "", "", "")]
        self._read = read
        self.texts = [each[2] for each in read]
        """The words, "<eof>" last."""
        self.texts[-1] = _END
        kinds = dict(_SPELLED)
        for text in set(self.texts).difference(kinds):
            kinds[text] = _kind(text)
        self.kinds = [kinds[text] for text in self.texts]
        """Keywords and operators as they are written; of other words name, number, string, foreign or bad."""

    @cached_property
    def tokens(self) -> list[Token]:
        """The words with their places, an eof token last."""
        tokens: list[Token] = []
        at, line, line_start = 0, 1, 0
        for (gap, *_), text, spelled in zip(self._read, self.texts, self.kinds, strict=True):
            if newlines := _newlines(gap):
                line, line_start = line + newlines, at + _last_line(gap)
            at += len(gap)
            kind = "keyword" if spelled in RESERVED_WORDS else "op" if spelled in _SPELLED else spelled
            if spelled == _END:
                tokens.append(Token("eof", text, line, at - line_start + 1, at, at, line))
                break
            within = _newlines(text) if kind in ("string", "bad") else 0
            end = at + len(text)
            tokens.append(Token(kind, text, line, at - line_start + 1, at, end, line + within))
            if within:
                line, line_start = line + within, at + _last_line(text)
            at = end
        return tokens


def _newlines(text: str) -> int:
    return len(_NEWLINE.findall(text)) if "\n" in text or "\r" in text else 0


def _last_line(text: str) -> int:
    """Where the last line of a text begins."""
    return max(text.rfind("\n"), text.rfind("\r")) + 1


def _kind(text: str) -> str:
    """What a word is that is no keyword and no operator."""
    first = text[0]
    if first in _LETTERS:
        return "name"
    if first in _DIGITS or first == ".":
        return "number" if _NUMBER.fullmatch(text) else "bad"
    if first in _QUOTES or first == "[":
        return "bad" if problem_of(text) else "string"
    return "bad" if first == "-" else "foreign"


def problem_of(text: str) -> str:
    """What Lua's own reader says of a word; "" where it is good."""
    match text[0]:
        case '"' | "'":
            return _string_problem(text)
        case "[":
            level = text.find("[", 1)
            if level < 0:
                return "invalid long string delimiter"
            return "" if text.endswith(f"]{text[1:level]}]") else "unfinished long string"
        case "-":
            return "unfinished long comment"
    return "malformed number"


def bad_escape(text: str) -> str:
    """The first escape in a string that Lua does not know, such as `\\d`."""
    if "\\" in text:
        for escape in _ESCAPE.finditer(text):
            if escape.lastgroup is None:
                return escape.group()
    return ""


def string_value(text: str) -> str:
    """What a string literal stands for."""
    if text[0] == "[":
        level = text.index("[", 1) + 1
        inner = text[level:-level]
        return inner[1:] if inner.startswith("\n") else inner
    inner = text[1:-1]
    return _ESCAPE.sub(_unescaped, inner) if "\\" in inner else inner


def _unescaped(escape: re.Match[str]) -> str:
    text = escape.group()[1:]
    match escape.lastgroup:
        case "hex":
            return chr(int(text[1:], 16))
        case "code":
            return chr(min(int(text), 255))
        case "unicode":
            number = int(text[2:-1], 16)
            return chr(number) if number <= _LAST_CODE_POINT and not 0xD800 <= number < 0xE000 else "\ufffd"
        case "skip":
            return ""
    return _PLAIN_ESCAPES.get(text, text)


def number_value(text: str) -> int | float:
    """What a number literal stands for."""
    try:
        if text[:2] in ("0x", "0X"):
            whole = int(text, 16)
            return (whole + 2**63) % 2**64 - 2**63
        if text.isdigit():
            whole = int(text) if len(text) < 30 else 2**63  # longer ones are floats
            return whole if whole < 2**63 else float(text)
        return float(text)
    except ValueError:
        try:
            return float.fromhex(text)
        except OverflowError:
            return float("inf")


def _string_problem(text: str) -> str:
    if bad_escape(text):
        return "invalid escape sequence"
    inside = text[:-1]
    if not inside or text[-1] != text[0] or (len(inside) - len(inside.rstrip("\\"))) % 2:
        return "unfinished string"
    return ""


_END = "<eof>"
_OPERATORS = "+ * % ^ & | ( ) { } [ ] ; , # : :: = == ~ ~= < << <= > >> >= / // - . .. ..."
_SPELLED = {text: text for text in [*RESERVED_WORDS, *_OPERATORS.split(), _END]}
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_DIGITS = frozenset("0123456789")
_QUOTES = frozenset("\"'")
_NEWLINE = re.compile(r"\r\n|\n\r|\n|\r")
_WORD = re.compile(
    r"""
    ( [ \t\v\f\r\n]*+ (?:
        --(?: \[(=*+)\[[\s\S]*?\]\2\] | (?!\[=*+\[)[^\n\r]*+ ) [ \t\v\f\r\n]*+
    )* )
    ( [A-Za-z_][A-Za-z0-9_]*+
    | [+*%^&|(){}\];,\#]|::?|==?|~=?|<[=<]?|>[=>]?|//?|-(?!-)|\[(?![=\[])|\.(?!\.|[0-9])|\.\.\.?
    | 0[xX](?:[pP][+-]?|[0-9a-fA-F.])*+[A-Za-z_]?|\.?[0-9](?:[eE][+-]?|[0-9a-fA-F.])*+[A-Za-z_]?
    | "(?:[^"\\\n\r]++|\\(?:z\s*+|\r\n|\n\r|[\s\S]))*+"?|'(?:[^'\\\n\r]++|\\(?:z\s*+|\r\n|\n\r|[\s\S]))*+'?
    | \[(=*+)\[[\s\S]*?\]\4\] | (?:--)?\[=*+\[[\s\S]*+
    | \[=++ | \Z | [\s\S]
    )""",
    re.VERBOSE,
)
"""Blanks and comments, and the word behind them; the last finds nothing."""
_NUMBER = re.compile(
    r"0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?"
    r"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
)
_ESCAPE = re.compile(
    r"\\(?:(?P<plain>[abfnrtv\\'\"\n\r])|(?P<skip>z\s*+)|(?P<hex>x[0-9a-fA-F]{2})|(?P<code>[0-9]{1,3})"
    r"|(?P<unicode>u\{[0-9a-fA-F]{1,8}\})|[\s\S])"
)
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_LAST_CODE_POINT = 0x10FFFF
