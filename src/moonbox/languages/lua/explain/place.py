"""Where a run failed: from the message's prefix, the frames, or what the source shows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from moonbox.languages.lua.explain.grammar import expression_end
from moonbox.languages.lua.explain.traceback import run_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moonbox.languages.language import EngineError
    from moonbox.languages.lua.explain.listing import Listing

__all__ = ["Place", "place_of", "split_prefix"]

_PREFIX = re.compile(r"(?P<chunk>script(?:#\d{1,9})?|moonbox/\w{1,30}):(?P<line>\d{1,9}): ?")
_FUNCTION = re.compile(
    r"bad argument #\d+ to '(?P<bad>\w{1,40})'|(?:in table for|to) '(?P<for>\w{1,40})'"
    r"|(?P<named>[\w.]{1,120})(?:: | expects)"
)
_GONE = "gone"  # in the place of a chunk: the frame that was here is not there any more
_BRACKETS = frozenset({"(", "[", "{"})
_LITERALS = frozenset({"nil", "true", "false"})
_ENDS = frozenset({"end", "else", "elseif", "until", ";", "<eof>"})
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
    ending: EngineError, said: str, prefix: list[tuple[str, int]], listings: Mapping[str, Listing], current: str
) -> Place:
    """Where the run failed. `said` is the message without its prefix."""
    gone = bool(ending.frames) and ending.frames[0][0] == _GONE
    frames = tuple(frame for frame in ending.frames if frame[0] != _GONE)
    found = _returned(ending, said, listings) if gone else None
    if found is not None:
        frames = ((*found, "a function"), *frames)
    if found is None and prefix:
        chunk, at = prefix[0]
        frames = _from(frames, chunk, at)
    elif frames:
        chunk, at = frames[0][0], frames[0][1]
    else:
        guessed = _guess(listings.get(current), ending, said)
        return Place(current, guessed, guessed, ())
    line = at if chunk == current else next((line for name, line, _ in frames if name == current), None)
    return Place(chunk, at if at > 0 else None, line if line is not None and line > 0 else None, frames)


def _from(frames: tuple[tuple[str, int, str], ...], chunk: str, line: int) -> tuple[tuple[str, int, str], ...]:
    """The frames from the one that the message names on: `error(text, 2)` names the caller."""
    for position, frame in enumerate(frames):
        if frame[:2] == (chunk, line):
            return frames[position:]
    return frames


def _returned(ending: EngineError, said: str, listings: Mapping[str, Listing]) -> tuple[str, int] | None:
    """The only `return f(…)` in a function that can be the call that failed: that function left no frame."""
    if ending.kind == "stop":
        return None
    names = _names(ending, said)
    found = {(chunk, line) for chunk, listing in listings.items() for line in _last_calls(listing, names)}
    return found.pop() if len(found) == 1 else None


def _last_calls(listing: Listing, names: tuple[str, ...]) -> Iterator[int]:
    """Lines in functions with `return` and a call of one of these names, or of a field by a computed one."""
    reading, tokens = listing.reading, listing.tokens
    outermost = frozenset(reading.returns if reading else ())  # those keep their frame
    for index, token in enumerate(tokens[:-1]):
        if token.text != "return" or token.kind != "keyword" or index in outermost:
            continue
        stop = expression_end(tokens, index + 1)
        if stop is not None and tokens[stop].text != "," and _is_call(listing, index + 1, stop, names):
            yield token.line


def _is_call(listing: Listing, start: int, stop: int, names: tuple[str, ...]) -> bool:
    tokens = listing.tokens
    at = start
    while at < stop:
        if tokens[at].text in ("(", "{") or tokens[at].kind == "string":
            end = at if tokens[at].kind == "string" else listing.closing(at)
            if end == stop - 1:
                return at > start and (tokens[at - 1].text in names or tokens[at - 1].text == "]")
        if tokens[at].text in _BRACKETS:
            at = listing.closing(at) or stop
        elif tokens[at].kind not in ("name", "string") and tokens[at].text not in (".", ":"):
            return False
        at += 1
    return False


def _guess(listing: Listing | None, ending: EngineError, said: str) -> int | None:
    """The line of a value that the script returned and that cannot leave it: no frame is left of that."""
    if listing is None or not listing.whole or (ending.kind == "stop" and not said.startswith("value")):
        return None
    lines = {token.line for token in listing.tokens[:-1]}
    places = lines if len(lines) == 1 else set(_returns(listing))
    return places.pop() if len(places) == 1 else None


def _names(ending: EngineError, said: str) -> tuple[str, ...]:
    """What the function or tool that the error is about is called."""
    if ending.kind == "tool":
        tool = ending.data.get("tool") if isinstance(ending.data, dict) else None
        return (tool.rpartition(".")[2],) if isinstance(tool, str) else ()
    match = _FUNCTION.search(said)
    if match is None:
        return ()
    full = match["bad"] or match["for"] or match["named"]
    return _ALIASES.get(full, (full.rpartition(".")[2],))


def _returns(listing: Listing) -> Iterator[int]:
    """Lines where the script returns a value that may be one that cannot leave it."""
    reading, tokens = listing.reading, listing.tokens
    for index in reading.returns if reading else ():
        first, after = tokens[index + 1], tokens[index + 2] if index + 2 < len(tokens) else tokens[-1]
        literal = first.kind in ("number", "string") or first.text in _LITERALS
        if first.text not in _ENDS and not (literal and after.text in _ENDS):
            yield tokens[index].line
