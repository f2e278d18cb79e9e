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
_VALUE = re.compile(
    r"""\s{0,20}(?:
        "(?P<double>(?:[^"\\]|\\.)*+)" | '(?P<single>(?:[^'\\]|\\.)*+)' | `(?P<back>[^`]*+)`
        | (?P<bracket>[(\[{])
        | (?:(?i:bearer|basic)[ ]{1,3})?\\?["'`]?(?P<bare>[^\s,;&|(){}\[\]<>"'`\\]++)
    )""",
    re.VERBOSE | re.DOTALL,
)
_IN_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[()\[\]{}]', re.DOTALL)


def folded(name: str) -> str:
    """The name as names are compared: letter case, `_`, `-` and spaces do not count."""
    return name.casefold().replace("_", "").replace("-", "").replace(" ", "")


class LiteralRedaction:
    """Replaces the value after each name that `hides`, which gets it folded, says yes to: a word, a text in quotes, or
    all that is in brackets. The time grows with the text.
    """

    def __init__(self, hides: Callable[[str], bool], replacement: str) -> None:
        self._hides, self.replacement = cache(hides), replacement

    def text(self, text: str) -> str:
        parts: list[str] = []
        done = 0
        for separator in _SEPARATOR.finditer(text):
            if separator.start() < done:
                continue
            if not self.ends_with_hidden(text[max(0, separator.start() - _LONGEST_NAME) : separator.start()]):
                continue
            found = _VALUE.match(text, separator.end())
            if found is None or not found[kind := found.lastgroup or "bare"]:
                continue
            start, end = found.span(kind)
            if kind == "bracket":
                start, end = end, _closed(text, end)
            if end > start:
                parts += (text[done:start], self.replacement)
                done = end
        return "".join((*parts, text[done:])) if parts else text

    def ends_with_hidden(self, before: str) -> bool:
        """Whether this text ends with a hidden name, of up to three words."""
        name = _NAME_BACKWARDS.match(before.rstrip(_AROUND_NAME)[::-1])
        if name is None:
            return False
        words = name[0][::-1].split(" ")
        return any(self._hides(folded(" ".join(words[start:]))) for start in range(len(words)))


def _closed(text: str, start: int) -> int:
    """Where a bracket that begins before `start` is closed; where it never is, the end of the text."""
    depth = 1
    for mark in _IN_BRACKETS.finditer(text, start):
        if mark[0][0] != '"':
            depth += 1 if mark[0] in "([{" else -1
            if not depth:
                return mark.start()
    return len(text)
