"""Suggestions: which known name was probably meant by an unknown one, and the message that says so.

rapidfuzz computes such distances 30 times faster, but it takes 12 MB and five times as long to import as this module,
and suggestions are needed for messages about errors only: about 10 ms for 1,000 names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import islice

_MOST_COMPARED = 5_000
_LONGEST = 128
_LONGEST_SHOWN = 64
_MOST_LISTED = 20
_WORDS = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+"
_SEPARATORS = dict.fromkeys(map(ord, " _-./:"))
_MOST_EDITS = 3


def nearest(name: str, options: Iterable[str], *, parts: bool = False, count: int = 1) -> list[str]:
    """The options close enough to `name`, best first; with `parts` also those that share its words.

    The cost is bounded: only the first few thousand options are compared, and no name longer than 128 characters.
    """
    if not name or len(name) > _LONGEST:
        return []
    ours = _Name(name)
    others = [_Name(option) for option in dict.fromkeys(islice(options, _MOST_COMPARED)) if len(option) <= _LONGEST]
    ranked = [(rank, other) for other in others if (rank := _spelling(ours, other, parts)) is not None]
    best = min((rank for rank, _ in ranked), default=0)
    close = [(rank, other) for rank, other in ranked if rank <= best + 1]
    if not close and parts:
        close = [(0, other) for other in others if _shares(ours, other)]
    close.sort(key=lambda item: (item[0], abs(len(item[1].text) - len(name)), item[1].text))
    return [other.text for _, other in close[:count]]


def did_you_mean(names: list[str]) -> str | None:
    """`did you mean a, b or c?`; None without names."""
    if not names:
        return None
    return f"did you mean {', '.join(names[:-1])}{' or ' if len(names) > 1 else ''}{names[-1]}?"


def suggestion(name: str, options: Iterable[str]) -> str:
    """`; did you mean 'x'?`, for the end of a message; empty where no option is close."""
    close = nearest(name, options, parts=True)
    return f"; did you mean '{close[0]}'?" if close else ""


def unknown(what: str, name: str, options: Iterable[str], *, count: int = 1) -> str:
    """`unknown source 'x'; did you mean 'y'?`, or `unknown source 'x'; known sources: a, b` where none is close."""
    options = list(dict.fromkeys(options))
    shown = name if len(name) <= _LONGEST_SHOWN else name[:_LONGEST_SHOWN] + "…"
    shown = shown if shown.isprintable() else repr(shown)[1:-1]
    close = did_you_mean([f"'{option}'" for option in nearest(name, options, parts=True, count=count)])
    if close:
        return f"unknown {what} '{shown}'; {close}"
    if not options:
        return f"unknown {what} '{shown}'; there are no {_plural(what)}"
    more = f" and {len(options) - _MOST_LISTED} more" if len(options) > _MOST_LISTED else ""
    return f"unknown {what} '{shown}'; known {_plural(what)}: {', '.join(options[:_MOST_LISTED])}{more}"


class _Name:
    """A name in the forms in which names are compared."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.folded = text.translate(_SEPARATORS).casefold()

    @cached_property
    def letters(self) -> frozenset[str]:
        return frozenset(self.folded)

    @cached_property
    def words(self) -> list[str]:
        return sorted(_singular(word.lower()) for word in re.findall(_WORDS, self.text))


def _spelling(ours: _Name, theirs: _Name, parts: bool) -> int | None:
    """How far apart the spellings are, 0 being the same but for case and separators; None when too far."""
    if ours.folded == theirs.folded:
        return 0 if ours.folded else None
    shorter, longer = sorted((len(ours.folded), len(theirs.folded)))
    # Most options end here: the rest is for names that are about as long and have about the same letters.
    if longer - shorter > _MOST_EDITS or len(ours.letters ^ theirs.letters) > 2 * _MOST_EDITS:
        return None
    if ours.words and ours.words == theirs.words:
        return 1
    allowed = _allowed(shorter)
    if parts and len(ours.folded) == 2 and longer == 3:
        allowed = 1  # `ad` for `add`
    if allowed < 2 and ours.folded[:1] != theirs.folded[:1]:
        allowed = 0  # in short names a changed first letter makes another word
    distance = _distance(ours.folded, theirs.folded, allowed)
    return 1 + distance if distance <= allowed else None


def _shares(ours: _Name, theirs: _Name) -> bool:
    """Whether one is within the other, or all words of one are among the other's, and that is enough text."""
    fewer, more = (ours, theirs) if len(ours.folded) <= len(theirs.folded) else (theirs, ours)
    if len(fewer.folded) < 4:
        return False
    if fewer.folded in more.folded:
        return True
    if not fewer.letters <= more.letters:
        return False
    return bool(fewer.words) and set(fewer.words) <= set(more.words)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _allowed(length: int) -> int:
    return 0 if length < 3 else 1 if length < 6 else 2 if length < 14 else _MOST_EDITS


def _distance(a: str, b: str, most: int) -> int:
    """Insertions, deletions, changes and swaps of neighbours between two names; anything past `most` is `most` + 1.

    Only cells within `most` of the diagonal are computed, so that the cost is linear in the names' length.
    """
    far = most + 1
    if abs(len(a) - len(b)) > most:
        return far
    older: dict[int, int] = {}
    previous = {j: j for j in range(min(most, len(b)) + 1)}
    for i, left in enumerate(a, 1):
        row: dict[int, int] = {0: i} if i <= most else {}
        for j in range(max(1, i - most), min(len(b), i + most) + 1):
            right = b[j - 1]
            cost = min(
                previous.get(j, far) + 1, row.get(j - 1, far) + 1, previous.get(j - 1, far) + (left != right), far
            )
            if i > 1 and j > 1 and left == b[j - 2] and a[i - 2] == right:
                cost = min(cost, older.get(j - 2, far) + 1)
            row[j] = cost
        if min(row.values(), default=far) > most:
            return far
        older, previous = previous, row
    return previous.get(len(b), far)


def _plural(what: str) -> str:
    if what.endswith("y") and what[-2:-1] not in "aeiou":
        return what[:-1] + "ies"
    return what + ("es" if what.endswith(("s", "x", "ch", "sh")) else "s")
