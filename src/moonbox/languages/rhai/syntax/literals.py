"""Literals: numbers, and strings with their escapes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from moonbox.languages.rhai.syntax.tokens import Pos, Token

if TYPE_CHECKING:
    from moonbox.languages.rhai.syntax.lexer import Lexer

__all__ = ["number", "quoted", "raw"]

_RADIX = re.compile(r"0_*([xX])([0-9a-fA-F_]*)|0_*([oO])([0-7_]*)|0_*([bB])([01_]*)")
# A period belongs to the number when a digit follows, or something that cannot start a property and is not "_" or "..".
_DECIMAL = re.compile(r"[0-9][0-9_]*(?:\.(?:(?=[0-9])[0-9][0-9_]*|(?![A-Za-z_.])(?=.|\n)))?", re.DOTALL)
_EXPONENT = re.compile(r"[eE](?:[0-9][0-9_]*|[+-][0-9_]*)")
_HASHES = re.compile(r"#+")
_PLAIN = {'"': re.compile(r'[^"\\\r\n]+'), "'": re.compile(r"[^'\\\r\n]+"), "`": re.compile(r"[^`\\$\r\n]+")}
_ESCAPES = {"r": "\r", "n": "\n", "t": "\t", "\\": "\\"}
_HEX_LENGTH = {"x": 2, "u": 4, "U": 8}
_BIGGEST = 2**63


class _Bad(Exception):
    def __init__(self, message: str, pos: Pos) -> None:
        self.message, self.pos = message, pos
        super().__init__(message)


def number(lexer: Lexer, start: Pos, *, negative: bool) -> Token:
    """A number; the lexer stands on its first digit."""
    sign = "-" if negative else ""
    radix = _RADIX.match(lexer.text, lexer.at)
    if radix:
        lexer.at = radix.end()
        return _with_radix(radix, sign, start)
    whole = _DECIMAL.match(lexer.text, lexer.at)
    text = whole.group() if whole else "0"
    lexer.at += len(text)
    exponent = _EXPONENT.match(lexer.text, lexer.at)
    if exponent:
        text += ("0" if text.endswith(".") else "") + exponent.group()
        lexer.at = exponent.end()
    text = sign + text.replace("_", "")
    if text.lstrip("-").isdigit():
        # Digits are many only in hostile text: a short cut keeps Python's integer parser out of it.
        if len(text) < 25 and -_BIGGEST <= int(text) < _BIGGEST:
            return Token("int", start, int(text))
        return Token("float", start, float(text))
    try:
        return Token("float", start, float(text))
    except ValueError:
        return Token("error", start, f"Invalid number: '{text}'")


def _with_radix(found: re.Match[str], sign: str, start: Pos) -> Token:
    letter = next(group for group in found.groups()[::2] if group)
    digits = next(group for group in found.groups()[1::2] if group is not None).replace("_", "")
    base = {"x": 16, "o": 8, "b": 2}[letter.lower()]
    if sign:
        return Token("error", start, f"Invalid number: '{letter}{digits}'")
    if not digits or len(digits.lstrip("0")) > 64 or int(digits, base) >= 2 * _BIGGEST:
        return Token("error", start, f"Invalid number: '{digits}'")
    value = int(digits, base)
    return Token("int", start, value - 2 * _BIGGEST if value >= _BIGGEST else value)


def raw(lexer: Lexer, start: Pos) -> Token:
    """A raw string, between as many # as the script likes."""
    text = lexer.text
    found = _HASHES.match(text, lexer.at)
    hashes = len(found.group()) if found else 0
    opening = lexer.at + hashes
    if text[opening : opening + 1] != '"':
        lexer.at = min(opening + 1, len(text))
        if opening >= len(text):
            return Token("error", start, "Open string is not terminated")
        return Token("error", start, f"Unexpected '{text[opening]}'")
    end = text.find('"' + "#" * hashes, opening + 1)
    content = text[opening + 1 : end if end >= 0 else len(text)]
    lexer.at = end + 1 + hashes if end >= 0 else len(text)
    _count_lines(lexer, content, opening + 1)
    if lexer.max_string is not None and len(content.encode("utf-8", "replace")) > lexer.max_string:
        return Token("error", start, _too_long(lexer.max_string))
    return Token("string", start, content) if end >= 0 else Token("error", start, "Open string is not terminated")


def _count_lines(lexer: Lexer, content: str, at: int) -> None:
    lines = content.count("\n")
    if lines:
        lexer.line += lines
        lexer.line_start = at + content.rindex("\n") + 1


def quoted(lexer: Lexer, quote: str, start: Pos | None) -> Token:
    """The rest of a string after its quote; `start` is None in the text that follows an interpolation."""
    reader = _Quoted(lexer, quote)
    try:
        content, interpolated = reader.read()
    except _Bad as problem:
        return Token("error", problem.pos, problem.message)
    if not reader.terminated:
        return Token("error", start or reader.first, "Open string is not terminated")
    return Token("interpolated" if interpolated else "string", start or reader.first, content)


class _Quoted:
    def __init__(self, lexer: Lexer, quote: str) -> None:
        self._lexer, self._quote = lexer, quote
        self._verbatim = quote == "`"
        self._opening = Pos(lexer.line, lexer.at - lexer.line_start)
        self._parts: list[str] = []
        self._bytes = 0
        self._skip_before = 0  # after a line continuation: blanks before this column are dropped
        self.first: Pos | None = None
        self.terminated = True

    def read(self) -> tuple[str, bool]:
        lexer, text, plain = self._lexer, self._lexer.text, _PLAIN[self._quote]
        while True:
            found = plain.match(text, lexer.at)
            if found:
                self._append_plain(found.group())
                continue
            char = text[lexer.at : lexer.at + 1]
            if char == "":
                self._at_end()
                return "".join(self._parts), False
            if self.first is None and char != self._quote:
                self.first = lexer.here()
            if char == self._quote:
                if not text.startswith(self._quote * 2, lexer.at):
                    lexer.at += 1
                    return "".join(self._parts), False
                self._append(self._quote, 2)
            elif char == "$":
                if text.startswith("${", lexer.at):
                    lexer.at += 1
                    return "".join(self._parts), True
                self._append("$", 1)
            elif char == "\\":
                self._backslash()
            elif char == "\r":
                if text.startswith("\r\n", lexer.at):
                    lexer.at += 1
                else:
                    self._append("\r", 1)
            else:
                self._line_feed()

    def _append_plain(self, piece: str) -> None:
        if self.first is None:
            self.first = self._lexer.here()
        size = len(piece)
        if self._skip_before:
            room = self._skip_before - self._lexer.here().column
            blanks = min(len(piece) - len(piece.lstrip()), max(room, 0))
            piece = piece[blanks:]
            if piece:
                self._skip_before = 0
        self._append(piece, size)

    def _append(self, piece: str, size: int) -> None:
        if self._lexer.max_string is not None:
            self._bytes += len(piece.encode("utf-8", "replace"))
            if self._bytes > self._lexer.max_string:
                raise _Bad(_too_long(self._lexer.max_string), self._opening)
        self._parts.append(piece)
        self._lexer.at += size

    def _at_end(self) -> None:
        if not self._verbatim:
            raise _Bad("Open string is not terminated", self._opening)
        self.terminated = False

    def _line_feed(self) -> None:
        if not self._verbatim:
            raise _Bad("Open string is not terminated", self._opening)
        self._append("\n", 1)
        self._lexer.new_line(self._lexer.at)

    def _backslash(self) -> None:
        lexer, text = self._lexer, self._lexer.text
        if self._verbatim:
            if text.startswith("\\${", lexer.at):
                self._append("$", 2)
            else:
                self._append("\\", 1)
            return
        self._skip_before = 0
        char = text[lexer.at + 1 : lexer.at + 2]
        if char == "\r" and text.startswith("\n", lexer.at + 2):
            lexer.at += 1
            char = "\n"
        if char == "\n" and self._quote == '"':
            lexer.at += 2
            lexer.new_line(lexer.at)
            self._skip_before = self._opening.column + 1
        elif char == "" or char == "\n":
            raise _Bad("Open string is not terminated", self._opening)
        elif char in _ESCAPES:
            self._append(_ESCAPES[char], 2)
        elif char in _HEX_LENGTH:
            self._append(self._hex(char), 2 + _HEX_LENGTH[char])
        elif char == self._quote:
            self._append(char, 2)
        else:
            raise _Bad(f"Invalid escape sequence: '\\{char}'", lexer.here(lexer.at + 1))

    def _hex(self, letter: str) -> str:
        lexer = self._lexer
        first = lexer.at + 2
        value = 0
        for at in range(first, first + _HEX_LENGTH[letter]):
            digit = lexer.text[at : at + 1]
            sequence = lexer.text[lexer.at : at + 1]
            if digit == "" or digit not in "0123456789abcdefABCDEF":
                raise _Bad(f"Invalid escape sequence: '{sequence}'", lexer.here(at if digit else at - 1))
            value = value * 16 + int(digit, 16)
        if value > 0x10FFFF or 0xD800 <= value <= 0xDFFF:
            sequence = lexer.text[lexer.at : first + _HEX_LENGTH[letter]]
            raise _Bad(f"Invalid escape sequence: '{sequence}'", lexer.here(first + _HEX_LENGTH[letter] - 1))
        return chr(value)


def _too_long(limit: int) -> str:
    return f"Length of string exceeds the maximum limit ({limit})"
