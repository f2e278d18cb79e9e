"""Where a run failed: from the message's prefix, the frames, or what the source shows."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from moonbox.sandbox.explain.traceback import run_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moonbox.sandbox.explain.ending import Ending
    from moonbox.sandbox.explain.listing import Listing

__all__ = ["Place", "place_of", "split_prefix"]

_PREFIX = re.compile(r"(?P<chunk>script(?:#\d{1,9})?|moonbox/\w{1,30}):(?P<line>\d{1,9}): ?")
_FUNCTION = re.compile(
    r"bad argument #\d+ to '(?P<bad>\w{1,40})'|(?:in table for|to) '(?P<for>\w{1,40})'"
    r"|(?P<named>[\w.]{1,120})(?:: | expects)"
)
_ALIASES = {"json.decode": ("decode", "parse"), "json.encode": ("encode", "stringify")}


class Place(NamedTuple):
    """Where it happened: `chunk` and `at` name the line itself, `line` the one in the script of this run."""

    chunk: str
    at: int | None
    line: int | None
    frames: tuple[tuple[str, int, str], ...]


def split_prefix(message: str, current: str) -> tuple[str, list[tuple[str, int]]]:
    """The message without the places that Lua puts in front, and those places."""
    places: list[tuple[str, int]] = []
    while len(places) < 8 and (match := _PREFIX.match(message)):
        message = message[match.end() :]
        places.append((match["chunk"], int(match["line"])))
    own = [(chunk, line) for chunk, line in places if chunk.startswith("script")]
    for chunk, line in reversed(own[1:]):  # an error that was caught and raised again as text
        message = f"line {line}: {message}" if chunk == current else f"line {line} of {run_name(chunk)}: {message}"
    return message, own[:1]


def place_of(
    ending: Ending, said: str, prefix: list[tuple[str, int]], listings: Mapping[str, Listing], current: str
) -> Place:
    """Where the run failed. `said` is the message without its prefix."""
    frames = ending.frames
    if prefix:
        chunk, at = prefix[0]
        frames = _from(frames, chunk, at)
    elif frames:
        chunk, at = frames[0][0], frames[0][1]
    else:
        guessed = _guess(listings.get(current), ending, said)
        return Place(current, guessed, guessed, ())
    if ending.kind == "tool" and chunk == current:
        at = _nearer(listings.get(current), ending, at)
    line = at if chunk == current else next((line for name, line, _ in frames if name == current), None)
    return Place(chunk, at if at > 0 else None, line if line is not None and line > 0 else None, frames)


def _from(frames: tuple[tuple[str, int, str], ...], chunk: str, line: int) -> tuple[tuple[str, int, str], ...]:
    """The frames from the one that the message names on: `error(text, 2)` names the caller."""
    for position, frame in enumerate(frames):
        if frame[:2] == (chunk, line):
            return frames[position:]
    return frames


def _nearer(listing: Listing | None, ending: Ending, at: int) -> int:
    """The only line that names the tool, where the engine's line does not: a `return tools.x{}` leaves no frame."""
    if listing is None or not listing.whole:
        return at
    words = listing.words(at)
    dynamic = any(word.text == "tools" and after.text == "[" for word, after in pairwise(words))
    named = set(_mentions(listing, ending, "", followed_by=("(", "{")))
    return named.pop() if len(named) == 1 and not dynamic else at


def _guess(listing: Listing | None, ending: Ending, said: str) -> int | None:
    """The line of a call that left no frame, because the script returned what it returns."""
    if listing is None or not listing.whole or (ending.kind == "stop" and not said.startswith("value")):
        return None
    lines = {token.line for token in listing.tokens[:-1]}
    if len(lines) == 1:
        return lines.pop()
    for found in (_mentions(listing, ending, said), _returns(listing)):
        places = set(found)
        if len(places) == 1:
            return places.pop()
        if places:
            return None
    return None


def _mentions(
    listing: Listing, ending: Ending, said: str, followed_by: tuple[str, ...] = ("(", "{", ",", ")")
) -> Iterator[int]:
    """Lines that call the function or tool that the error is about."""
    names: tuple[str, ...] = ()
    if ending.kind == "tool":
        tool = ending.data.get("tool") if isinstance(ending.data, dict) else None
        names = (tool.rpartition(".")[2],) if isinstance(tool, str) else ()
    elif match := _FUNCTION.search(said):
        full = match["bad"] or match["for"] or match["named"]
        names = _ALIASES.get(full, (full.rpartition(".")[2],))
    tokens = listing.tokens
    for index, token in enumerate(tokens[:-1]):
        named = token.kind == "name" and token.text in names and tokens[index + 1].text in followed_by
        quoted = token.kind == "string" and token.text[1:-1] in names and tokens[index - 1].text == "["
        if named or quoted:
            yield token.line


def _returns(listing: Listing) -> Iterator[int]:
    reading = listing.reading
    for index in reading.returns if reading else ():
        yield listing.tokens[index].line
