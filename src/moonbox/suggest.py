"""Suggestions: which known name was probably meant by an unknown one, and the message that says so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["did_you_mean", "nearest", "suggestion", "unknown"]

_MOST_COMPARED = 5_000
_LONGEST = 64
_MOST_LISTED = 20
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def nearest(name: str, options: Iterable[str], *, parts: bool = False, count: int = 1) -> list[str]:
    """The options close enough to `name`, best first; with `parts` also those that share its words."""
    if not name or len(name) > _LONGEST:
        return []
    ranked: list[tuple[int, int, str]] = []
    for option in sorted(set(options))[:_MOST_COMPARED]:
        rank = _rank(name, option, parts)
        if rank is not None:
            ranked.append((rank, abs(len(option) - len(name)), option))
    ranked.sort()
    best = [option for rank, _, option in ranked if rank <= ranked[0][0] + 1]
    return best[:count]


def did_you_mean(found: list[str]) -> str | None:
    """`did you mean a, b or c?`."""
    if not found:
        return None
    return f"did you mean {', '.join(found[:-1])}{' or ' if len(found) > 1 else ''}{found[-1]}?"


def suggestion(name: str, options: Iterable[str]) -> str:
    """`; did you mean 'y'?` for the end of a message, or nothing."""
    close = nearest(name, options)
    return f"; did you mean '{close[0]}'?" if close else ""


def unknown(what: str, name: str, options: Iterable[str]) -> str:
    """`unknown source 'x'; did you mean 'y'?`, or the known ones where none is close."""
    options = sorted(set(options))
    shown = name if len(name) <= _LONGEST else name[:_LONGEST] + "…"
    close = nearest(name, options)
    if close:
        return f"unknown {what} '{shown}'; did you mean '{close[0]}'?"
    if not options:
        return f"unknown {what} '{shown}'; there are none"
    more = f" and {len(options) - _MOST_LISTED} more" if len(options) > _MOST_LISTED else ""
    return f"unknown {what} '{shown}'; known: {', '.join(options[:_MOST_LISTED])}{more}"


def _rank(name: str, option: str, parts: bool) -> int | None:
    """How far apart the two are, 0 being the same but for case and underscores; None when too far."""
    if not option or len(option) > _LONGEST:
        return None
    ours, theirs = _folded(name), _folded(option)
    if ours == theirs and ours:
        return 0
    our_words, their_words = _words(name), _words(option)
    if our_words and sorted(our_words) == sorted(their_words):
        return 1
    allowed = _allowed(min(len(ours), len(theirs)))
    if allowed < 2 and ours[:1] != theirs[:1]:
        allowed = 0  # in short names a changed first letter makes another word
    distance = _distance(ours, theirs, allowed)
    if distance <= allowed:
        return 1 + distance
    if parts and _shares(our_words, their_words):
        return 5 + abs(len(our_words) - len(their_words))
    return None


def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()


def _words(name: str) -> list[str]:
    return [_singular(word.lower()) for word in _WORDS.findall(name)]


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _shares(ours: list[str], theirs: list[str]) -> bool:
    """Whether all words of one are among the other's, and they say enough."""
    fewer, more = (ours, theirs) if len(ours) <= len(theirs) else (theirs, ours)
    return bool(fewer) and set(fewer) <= set(more) and sum(map(len, fewer)) >= 4


def _allowed(length: int) -> int:
    return 0 if length < 3 else 1 if length < 6 else 2


def _distance(a: str, b: str, most: int) -> int:
    """Insertions, deletions, changes and swaps of neighbours between two names; anything past `most` is `most` + 1."""
    if abs(len(a) - len(b)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        previous, row, older = row, [i], before
        for j, right in enumerate(b, 1):
            cost = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (left != right))
            if older and j > 1 and left == b[j - 2] and a[i - 2] == right:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
        before = previous
    return row[-1]
