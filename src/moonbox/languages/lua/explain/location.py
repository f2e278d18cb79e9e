"""Where a run failed, from the message's prefix, the frames or the source; and the traceback that shows it."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from moonbox.errors import Frame
from moonbox.languages import program as p
from moonbox.languages.explanations import WIDEST, pointed_line, visible
from moonbox.languages.lua.explain.values import last_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moonbox.languages.language import EngineError
    from moonbox.languages.lua.syntax.listing import Listing

_PREFIX = re.compile(r"(?P<chunk>script(?:#\d{1,9})?|moonbox/\w{1,30}):(?P<line>\d{1,9}): ?")
_FUNCTION = re.compile(
    r"bad argument #\d+ to '(?P<bad>\w{1,40})'|(?:in table for|to) '(?P<for>\w{1,40})'"
    r"|(?P<named>[\w.]{1,120})(?:: | expects)"
)
_GONE = "gone"  # in the place of a chunk: the frame that was here is not there any more
_ALIASES = {"json.decode": ("decode", "parse"), "json.encode": ("encode", "stringify")}


class Location(NamedTuple):
    """Where it happened: `chunk` and `at` name the line itself, `line` the one in the script of this run."""

    chunk: str
    at: int | None
    line: int | None
    frames: tuple[tuple[str, int, str], ...]


def split_prefix(message: str, current: str) -> tuple[str, list[tuple[str, int]]]:
    """The message without the places that Lua puts in front, and those places."""
    locations: list[tuple[str, int]] = []
    while len(locations) < 8 and (match := _PREFIX.match(message)):
        message = message[match.end() :]
        locations.append((match["chunk"], int(match["line"])))
    own = [(chunk, line) for chunk, line in locations if chunk.startswith("script")]
    for chunk, line in reversed(own[1:]):  # an error that was caught and raised again as text
        message = f"line {line}: {message}" if chunk == current else f"line {line} of {run_name(chunk)}: {message}"
    return message, own[:1]


def locate(
    error: EngineError, message_text: str, prefix: list[tuple[str, int]], listings: Mapping[str, Listing], current: str
) -> Location:
    """Where the run failed. `said` is the message without its prefix."""
    gone = bool(error.frames) and error.frames[0][0] == _GONE
    frames = tuple(frame for frame in error.frames if frame[0] != _GONE)
    returned = _returned(error, message_text, listings) if gone else None
    if returned is not None:
        frames = ((*returned, "a function"), *frames)
    if returned is None and prefix:
        chunk, at = prefix[0]
        frames = _from(frames, chunk, at)
    elif frames:
        chunk, at = frames[0][0], frames[0][1]
    else:
        guessed = _guess(listings.get(current), error, message_text)
        return Location(current, guessed, guessed, ())
    line = at if chunk == current else next((line for name, line, _ in frames if name == current), None)
    return Location(chunk, at if at > 0 else None, line if line is not None and line > 0 else None, frames)


def _from(frames: tuple[tuple[str, int, str], ...], chunk: str, line: int) -> tuple[tuple[str, int, str], ...]:
    """The frames from the one that the message names on: `error(text, 2)` names the caller."""
    return next((frames[at:] for at, frame in enumerate(frames) if frame[:2] == (chunk, line)), frames)


def _returned(error: EngineError, message_text: str, listings: Mapping[str, Listing]) -> tuple[str, int] | None:
    """The only `return f(…)` in a function that can be the call that failed: that function left no frame."""
    if error.kind == "stop":
        return None
    names = _names(error, message_text)
    candidates = {(chunk, line) for chunk, listing in listings.items() for line in _last_calls(listing, names)}
    return candidates.pop() if len(candidates) == 1 else None


def _last_calls(listing: Listing, names: tuple[str, ...]) -> Iterator[int]:
    """Lines in functions with `return` and a call of one of these names, or of a field by a computed one."""
    outermost = set(map(id, _main_returns(listing)))  # those keep their frame
    for node in listing.all(p.Return):
        match node.values:
            case (p.Call() | p.Method() as call,) if id(node) not in outermost and call.at == node.at + 1:
                # One in parentheses keeps its frame too.
                if last_name(call) in names or (type(call) is p.Call and type(call.function) is p.Item):
                    yield listing.place(node.at)[0]


def _main_returns(listing: Listing) -> list[p.Return]:
    """The `return`s of the main chunk itself."""
    nodes = p.inside(listing.outline.body, functions=False) if listing.outline is not None else ()
    return [node for node in nodes if type(node) is p.Return]


def _guess(listing: Listing | None, error: EngineError, message_text: str) -> int | None:
    """The line of a value that the script returned and that cannot leave it: no frame is left of that."""
    if listing is None or not listing.whole or (error.kind == "stop" and not message_text.startswith("value")):
        return None
    lines = {token.line for token in listing.tokens[:-1]}
    if len(lines) > 1:
        returned = (
            node for node in _main_returns(listing) if any(type(each) is not p.Constant for each in node.values)
        )
        lines = {listing.place(node.at)[0] for node in returned}
    return lines.pop() if len(lines) == 1 else None


def _names(error: EngineError, message_text: str) -> tuple[str, ...]:
    """What the function or tool that the error is about is called."""
    if error.kind == "tool":
        tool = error.data.get("tool") if isinstance(error.data, dict) else None
        return (tool.rpartition(".")[2],) if isinstance(tool, str) else ()
    match = _FUNCTION.search(message_text)
    if match is None:
        return ()
    full = match["bad"] or match["for"] or match["named"]
    return _ALIASES.get(full, (full.rpartition(".")[2],))


_MOST_SHOWN = 10
_LONGEST_NAME = 80
_MAIN = "main chunk"
_NAMED = re.compile(r"^(?:global|local|method|field|upvalue)(?= ')")


def frames_of(frames: Sequence[tuple[str, int, str]], listings: Mapping[str, Listing]) -> tuple[Frame, ...]:
    """The engine's frames with their source lines."""
    shown_frames = []
    for chunk, line, function in frames:
        listing = listings.get(chunk)
        source = listing.line(line) if listing is not None else None
        shown = None if source is None else visible(source.strip())[:WIDEST]
        name = _NAMED.sub("function", function[:_LONGEST_NAME])
        shown_frames.append(Frame(line if line > 0 else None, name, shown, chunk[:_LONGEST_NAME]))
    return tuple(shown_frames)


def render(
    frames: Sequence[Frame], listings: Mapping[str, Listing], location: Location, current: str, column: int | None
) -> str:
    """The line where it happened, then the calls, innermost first; `current` is the chunk of this run."""
    parts: list[str] = []
    listing = listings.get(location.chunk)
    text = listing.line(location.at) if listing is not None else None
    if listing is not None and location.at is not None and text is not None:
        if location.chunk != current:
            parts.append(f"in {run_name(location.chunk)}, an earlier one:")
        if not text.strip():
            text, column = "(end of the script)" if location.at >= len(listing.lines) else "", 1
        parts.append(pointed_line(text, location.at, column))
    return "\n".join(filter(None, [*parts, *_calls(frames, current)]))


def run_name(chunk: str) -> str:
    """`run 4` for the chunk `script#4`."""
    return f"run {chunk.partition('#')[2] or 1}"


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
    return where if frame.function == _MAIN else f"{visible(frame.function)} ({where})"
