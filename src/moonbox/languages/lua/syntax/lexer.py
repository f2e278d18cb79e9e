"""A tolerant reader of Lua's words: what Lua would refuse becomes a token too, so that hints can name it."""

from __future__ import annotations

import re
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
    problem: str = ""
    """What Lua's own reader says of a bad token."""


def tokenize(source: str, line: int = 1, most: int = 1_000_000) -> list[Token]:
    """The first words of a script in one pass, an eof token last. Linear in the length of the source."""
    tokens: list[Token] = []
    append, make, reserved = tokens.append, tuple.__new__, RESERVED_WORDS
    at, line_start, size = 0, 0, len(source)
    words = _WORD.finditer(source)
    while at < size and len(tokens) < most:
        match = next(words)  # the last alternative takes any character
        index = match.lastindex
        if index == 1 or index == 2:  # nearly all words: made without the detour over their class
            start, at = match.span(index)
            text = source[start:at]
            kind = "op" if index == 2 else "keyword" if text in reserved else "name"
            append(make(Token, (kind, text, line, start - line_start + 1, start, at, line, "")))
            continue
        group = match.lastgroup or ""
        start, at = match.span(group)
        if group == "newline":
            line, line_start = line + 1, at
        elif group not in _SKIPPED:
            read = _long if group == "long" else _word
            token = read(source, match, line, start - line_start + 1)
            if token.kind != "comment":
                append(token)
            if token.last_line != line:
                line = token.last_line
                line_start = max(source.rfind("\n", 0, token.end), source.rfind("\r", 0, token.end)) + 1
            if token.end != at:  # a long one, whose end the pattern does not look for
                at = token.end
                words = _WORD.finditer(source, at)
    append(Token("eof", "<eof>", line, at - line_start + 1, at, at, line))
    return tokens


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


def _word(source: str, match: re.Match[str], line: int, column: int) -> Token:
    group = match.lastgroup or ""
    text, (start, end) = match[group], match.span(group)
    kind, problem, last = group, "", line
    if group == "number":
        if not _NUMBER.fullmatch(text):
            kind, problem = "bad", "malformed number"
    elif group == "delimiter":
        kind, problem = "bad", "invalid long string delimiter"
    elif group == "string":
        last += len(_NEWLINE.findall(text)) if "\\" in text else 0
        problem = _string_problem(text)
        kind = "bad" if problem else "string"
    return Token(kind, text, line, column, start, end, last, problem)


def _long(source: str, match: re.Match[str], line: int, column: int) -> Token:
    """A long string, or a long comment (as kind "comment")."""
    start = match.start("long")
    comment = match["long"].startswith("--")
    close = source.find(f"]{match['level']}]", match.end())
    end = len(source) if close < 0 else close + len(match["level"]) + 2
    text = source[start:end]
    last = line + len(_NEWLINE.findall(text))
    if close < 0:
        what = "comment" if comment else "string"
        return Token("bad", text, line, column, start, end, last, f"unfinished long {what}")
    return Token("comment" if comment else "string", text, line, column, start, end, last)


def _string_problem(text: str) -> str:
    if bad_escape(text):
        return "invalid escape sequence"
    inside = text[:-1]
    if not inside or text[-1] != text[0] or (len(inside) - len(inside.rstrip("\\"))) % 2:
        return "unfinished string"
    return ""


_SKIPPED = frozenset({"end", "comment"})
_NEWLINE = re.compile(r"\r\n|\n\r|\n|\r")
_WORD = re.compile(
    r"""
    [ \t\v\f]*+(?:
      (?P<name>[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<op>[+*%^&|(){}\];,#]|::?|==?|~=?|<[=<]?|>[=>]?|//?|-(?!-)|\[(?![=\[])|\.(?!\.|[0-9])|\.\.\.?)
    | (?P<newline>\r\n|\n\r|\n|\r)
    | (?P<long>(?:--)?\[(?P<level>=*+)\[)
    | (?P<delimiter>\[=++)
    | (?P<comment>--[^\n\r]*+)
    | (?P<number>0[xX](?:[pP][+-]?|[0-9a-fA-F.])*+[A-Za-z_]?|\.?[0-9](?:[eE][+-]?|[0-9a-fA-F.])*+[A-Za-z_]?)
    | (?P<string>"(?:[^"\\\n\r]++|\\(?:z\s*+|\r\n|\n\r|[\s\S]))*+"?|'(?:[^'\\\n\r]++|\\(?:z\s*+|\r\n|\n\r|[\s\S]))*+'?)
    | (?P<end>\Z)
    | (?P<foreign>[\s\S])
    )""",
    re.VERBOSE,
)
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
