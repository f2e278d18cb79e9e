"""A failed run's traceback: the source line with a caret, and the calls that led there."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

from moonbox.errors import Frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moonbox.languages.lua.explain.listing import Listing

__all__ = ["frames_of", "render", "run_name"]

WIDEST = 100
_MOST_SHOWN = 10
_LONGEST_NAME = 80
_MAIN = "main chunk"
_NAMED = re.compile(r"^(?:global|local|method|field|upvalue)(?= ')")


def frames_of(frames: Sequence[tuple[str, int, str]], listings: Mapping[str, Listing]) -> tuple[Frame, ...]:
    """The engine's frames with their source lines."""
    made = []
    for chunk, line, function in frames:
        listing = listings.get(chunk)
        source = listing.line(line) if listing is not None and line > 0 else None
        shown = None if source is None else _visible(source.strip())[:WIDEST]
        name = _NAMED.sub("function", function[:_LONGEST_NAME])
        made.append(Frame(line if line > 0 else None, name, shown, chunk[:_LONGEST_NAME]))
    return tuple(made)


def render(
    frames: Sequence[Frame],
    listings: Mapping[str, Listing],
    *,
    chunk: str,
    current: str,
    line: int | None,
    column: int | None,
) -> str:
    """The line where it happened (in `chunk`), then the calls, innermost first; `current` is the script of this run."""
    parts = []
    listing = listings.get(chunk)
    if line is not None and listing is not None:
        if chunk != current:
            parts.append(f"in {run_name(chunk)}, an earlier one:")
        parts += _source(listing, line, column)
    calls = _calls(frames, current)
    return "\n".join([*parts, *calls])


def run_name(chunk: str) -> str:
    """`run 4` for the chunk `script#4`."""
    return f"run {chunk.partition('#')[2] or 1}"


def _source(listing: Listing, line: int, column: int | None) -> list[str]:
    text = listing.line(line)
    if text is None:
        return []
    if not text.strip():
        text, column = "(end of the script)" if line >= listing.line_count else "", 1
    text = _visible(text.expandtabs(1))
    at = (column - 1) if column is not None else len(text) - len(text.lstrip())
    text, at = _clipped(text, min(at, len(text)))
    number = f"{line} | "
    return [number + text, f"{' ' * (len(number) - 2)}| {' ' * at}^"]


def _clipped(text: str, at: int) -> tuple[str, int]:
    """A window of a long line around the column."""
    if len(text) <= WIDEST:
        return text, at
    start = max(0, min(at - WIDEST // 2, len(text) - WIDEST))
    window = text[start : start + WIDEST]
    before, after = "…" * (start > 0), "…" * (start + WIDEST < len(text))
    return f"{before}{window}{after}", at - start + len(before)


def _calls(frames: Sequence[Frame], current: str) -> list[str]:
    """`in function 'total' (line 3), called from line 9`; a line for each call where there are more."""
    if not frames or (len(frames) == 1 and frames[0].function == _MAIN):
        return []
    steps: list[str] = []
    for frame, same in groupby(frames):
        times = len(list(same))
        steps.append(_frame(frame, current) + (f" {times} times" if times > 1 else ""))
    left_out = len(steps) - _MOST_SHOWN
    if left_out > 1:
        steps[_MOST_SHOWN - 3 : -3] = [f"… {left_out} more …"]
    separator = ", called from " if len(steps) <= 2 else ",\ncalled from "
    return f"in {separator.join(steps)}".split("\n")


def _frame(frame: Frame, current: str) -> str:
    where = f"line {frame.line}" if frame.line is not None else "an unknown line"
    if frame.chunk != current:
        source = f": {frame.source}" if frame.source else ""
        where = f"{where} of {run_name(frame.chunk)}{source}"
    return where if frame.function == _MAIN else f"{_visible(frame.function)} ({where})"


def _visible(text: str) -> str:
    """The text without characters that would change how a terminal shows what follows."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "·" for char in text)
