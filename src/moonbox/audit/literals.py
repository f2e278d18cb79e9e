"""Literals after names: in texts, what stands after the name of a hidden field, as in `cvv = 123` or `"cvv": "123"`."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SEPARATOR = re.compile(r"=>|[~!]=|={1,3}|:=?|\t")
_AROUND_NAME = " \t\r\n\"'`]\\"
_LONGEST_NAME = 120
_NAME_BACKWARDS = re.compile(r"[\w-]+(?: [\w-]+){0,2}")
_SPACE = r"\s{0,20}"
_QUOTED = r"""
    "(?P<double>(?:[^"\\]|\\.)*+)" | '(?P<single>(?:[^'\\]|\\.)*+)' | `(?P<back>[^`]*+)`
"""
_IN_SOURCE = re.compile(rf"{_SPACE}(?:{_QUOTED}|(?P<bare>[-+]?\.?\d[\w.]*+|(?:true|false)\b))", re.VERBOSE | re.DOTALL)
_IN_TEXT = re.compile(
    rf"""{_SPACE}(?:{_QUOTED}|(?:(?i:bearer|basic)[ ]{{1,3}})?\\?["'`]?(?P<bare>[^\s,;&|(){{}}\[\]<>"'`\\]++))""",
    re.VERBOSE | re.DOTALL,
)
_LONG_STRING = re.compile(rf"{_SPACE}\[(=*)\[")


def folded(name: str) -> str:
    """The name as names are compared: letter case, `_`, `-` and spaces do not count."""
    return name.casefold().replace("_", "").replace("-", "").replace(" ", "")


class LiteralRedaction:
    """Replaces the literal after each name that `hides`, which gets it folded, says yes to.

    In a script only literals are replaced, not variables; in other texts also words. The time grows with the text.
    """

    def __init__(self, hides: Callable[[str], bool], replacement: str) -> None:
        self._hides, self._replacement = cache(hides), replacement

    def text(self, text: str, *, is_source: bool = False) -> str:
        parts: list[str] = []
        done = 0
        unclosed: set[str] = set()
        for separator in _SEPARATOR.finditer(text):
            if separator.start() < done or (is_source and separator[0] == "\t"):
                continue
            if not self._is_hidden(text[max(0, separator.start() - _LONGEST_NAME) : separator.start()]):
                continue
            found = _literal(text, separator.end(), _IN_SOURCE if is_source else _IN_TEXT, unclosed)
            if found is not None:
                parts += (text[done : found[0]], self._replacement)
                done = found[1]
        return "".join((*parts, text[done:])) if parts else text

    def _is_hidden(self, before: str) -> bool:
        """Whether this text ends with a hidden name, of up to three words."""
        name = _NAME_BACKWARDS.match(before.rstrip(_AROUND_NAME)[::-1])
        if name is None:
            return False
        words = name[0][::-1].split(" ")
        return any(self._hides(folded(" ".join(words[start:]))) for start in range(len(words)))


def _literal(text: str, start: int, pattern: re.Pattern[str], unclosed: set[str]) -> tuple[int, int] | None:
    """Where the literal at that place begins and ends, without its quotes; None where there is none."""
    if found := pattern.match(text, start):
        kind = found.lastgroup or "bare"
        return found.span(kind) if found[kind] else None
    long = _LONG_STRING.match(text, start)
    if long is None or (closing := f"]{long[1]}]") in unclosed:
        return None
    end = text.find(closing, long.end())
    if end < 0:
        unclosed.add(closing)
        return None
    return long.end(), end
