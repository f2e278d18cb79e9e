"""Errors that teach: what the engine reports of a failed run, in words for the model that must correct its script."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from moonbox.errors import LIMIT_NAMES, ErrorKind, Frame, LimitName, ScriptError, is_denial
from moonbox.languages import program as p
from moonbox.languages.explanations import (
    LONGEST_MESSAGE,
    WIDEST,
    explain_translated,
    failed_call,
    limit_hint,
    limit_message,
    name_in,
    pointed_line,
    visible,
)
from moonbox.languages.lua.explain.runtime import column_of, runtime_hint, tidied
from moonbox.languages.lua.explain.syntax_errors import explain_syntax
from moonbox.languages.lua.explain.values import RuntimeFailure, last_name
from moonbox.languages.lua.syntax.listing import Listing
from moonbox.languages.lua.vocabulary import lua_vocabulary, tool_name

if TYPE_CHECKING:
    from moonbox.languages.language import EngineError
    from moonbox.limits import Limits

_PREFIX = re.compile(r"(?P<chunk>script(?:#\d{1,9})?|moonbox/\w{1,30}):(?P<line>\d{1,9}): ?")
_FUNCTION = re.compile(
    r"bad argument #\d+ to '(?P<bad>\w{1,40})'|(?:in table for|to) '(?P<for>\w{1,40})'"
    r"|(?P<named>[\w.]{1,120})(?:: | expects)"
)
_GONE = "gone"  # in the place of a chunk: the frame that was here is not there any more
_ALIASES = {"json.decode": ("decode", "parse"), "json.encode": ("encode", "stringify")}
_MOST_SHOWN = 10
_LONGEST_NAME = 80
_MAIN = "main chunk"
_NAMED = re.compile(r"^(?:global|local|method|field|upvalue)(?= ')")


def explain(error: EngineError, *, sources: Mapping[str, str], tools: Collection[str], limits: Limits) -> ScriptError:
    """Say what went wrong, where, and what to write instead.

    `sources` maps the chunks of a Repl's runs (`script`, `script#2`, …) to their text, as far as they are kept; the run
    that failed is the last of them. `tools` are the paths of the tools that the script can call.
    """
    try:
        return compose(error, sources=sources, tools=tools, limits=limits)
    except Exception:  # noqa: BLE001 - a flaw in a hint must never cost the error that it is about
        return explain_translated(error, sources={}, limits=limits)


def compose(error: EngineError, *, sources: Mapping[str, str], tools: Collection[str], limits: Limits) -> ScriptError:
    """The error with everything that can be said about it."""
    current = next(reversed(list(sources)), "script")
    listings = {name: Listing(source) for name, source in sources.items()}
    raw = error.message[: LONGEST_MESSAGE + 200].partition("\nstack traceback:\n\t[C]")[0]
    message, prefix = split_prefix(raw, current)
    message = message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}…"
    if error.kind == "syntax":
        finding = explain_syntax(listings.get(current) or Listing(""), message, prefix[0][1] if prefix else None)
        report = _Report(error, message, Location(current, finding.line, finding.line, ()), listings, current)
        return report.explained("syntax", finding.message, finding.column, hint=finding.hint)
    if error.kind != "tool" and error.data is None:
        message = tidied(message)
    report = _Report(error, message, locate(error, message, prefix, listings, current), listings, current)
    if error.kind == "stop":
        return _stopped(report, limits)
    if error.kind == "tool":
        return _tool(report)
    return _runtime(report, frozenset(path.replace("\x1f", ".") for path in tools))


class Location(NamedTuple):
    """Where it happened: `chunk` and `at` name the line itself, `line` the one in the script of this run."""

    chunk: str
    at: int | None
    line: int | None
    frames: tuple[tuple[str, int, str], ...]


class _Report(NamedTuple):
    """An engine's error, and where it happened."""

    error: EngineError
    message: str
    location: Location
    listings: Mapping[str, Listing]
    current: str
    """The chunk of the run that failed."""

    @property
    def listing(self) -> Listing:
        """The script in whose line it happened."""
        return self.listings.get(self.location.chunk) or Listing("")

    def explained(self, kind: ErrorKind, message: str, column: int | None = None, **more: Any) -> ScriptError:
        location = self.location
        frames = frames_of(location.frames, self.listings)
        return ScriptError(
            kind,
            message,
            line=location.line,
            column=column if location.chunk == self.current else None,
            traceback=render(frames, self.listings, location, self.current, column),
            frames=frames,
            **more,
        )


def _runtime(report: _Report, tools: Collection[str]) -> ScriptError:
    error, location, listings = report.error, report.location, report.listings
    own = (location.chunk, report.current)
    failure = RuntimeFailure(
        report.listing,
        location.at,
        report.message,
        tools,
        names=error.names,
        earlier=[other for name, other in reversed(list(listings.items())) if name not in own],
        functions=tuple(frame.function for frame in frames_of(location.frames, {})),
    )
    hint = column = None
    if error.data is None:  # of a table that the script raised, the script knows best what it means
        hint, column = runtime_hint(failure), column_of(failure)
    code = name_in(error.data.get("code")) if isinstance(error.data, dict) else None
    return report.explained("runtime", report.message, column, hint=hint, data=error.data, code=code)


def _tool(report: _Report) -> ScriptError:
    failed = failed_call(report.error)
    tool, denied = failed["tool"], is_denial(failed["code"])
    name = tool_name(tool) if tool else "tools.name"
    hint = None
    if denied:
        hint = "do not repeat this call: continue without it, or ask for permission"
    elif _called_at_once(report.listing, report.location.at):
        hint = str(lua_vocabulary().fact("called_too_early", function="pcall", tool=name, arguments="{…}"))
    elif failed["retryable"]:
        hint = f"a retry may succeed; to continue without it write: local ok, result = pcall({name}, {{…}})"
    # The column is where the line names the tool, if it does so once.
    last = tool.rpartition(".")[2] if tool else ""
    words = report.listing.words(report.location.at)
    columns = [word.column for word in words if word.kind == "name" and word.text == last]
    column = columns[0] if len(columns) == 1 else None
    return report.explained("denied" if denied else "tool", report.message, column, hint=hint, **failed)


def _stopped(report: _Report, limits: Limits) -> ScriptError:
    limit = cast("LimitName", report.error.limit) if report.error.limit in LIMIT_NAMES else None
    message = limit_message(report.error.limit, report.message, limits)
    if limit is None:
        return report.explained("cancelled", message)
    listing = report.listings.get(report.current) or Listing("")
    hint = _limit_hint(limit, limits, listing, report.location.line, message)
    return report.explained("limit", message, limit=limit, hint=hint)


def _limit_hint(limit: str, limits: Limits, listing: Listing, line: int | None, message: str) -> str | None:
    """What to change in the script."""
    general = limit_hint(limit, limits, message)
    if limit == "memory":
        return f"{general}; build long strings with table.concat, not with .. in a loop{_recursion(listing)}"
    if limit == "time" and line is not None:
        return f"it was at line {line}; {_time(listing, line) or general}"
    return general


def _recursion(listing: Listing) -> str:
    """A function that calls itself, which uses up memory when it does not end."""
    for node in listing.all(p.Define):
        name = last_name(node.target)
        calls = (inner for inner in p.inside(node.function) if isinstance(inner, p.FunctionCall | p.Method))
        if any(last_name(call) == name for call in calls):
            return f"; make sure that {name}, which calls itself, ends"
    return ""


def _time(listing: Listing, line: int) -> str:
    """What the line shows that took the time: tool calls, an endless loop, or neither."""
    if any(word.text == "tools" and word.kind == "name" for word in listing.words(line)):
        return "tool calls count too: make fewer of them, or run them at the same time with parallel"
    tokens = listing.tokens
    for opener, closing in listing.parsed.pairs if listing.parsed else ():
        endless = tokens[opener].text == "while" and tokens[opener + 1].text == "true"
        inside = tokens[opener].line <= line <= tokens[closing].line
        leaves = any(tokens[index].text in ("break", "return") for index in range(opener, closing))
        if endless and inside and not leaves:
            return f"the loop of line {tokens[opener].line} never ends: add a break or a condition"
    return ""


def _called_at_once(listing: Listing, line: int | None) -> bool:
    """`pcall(tools.x{…})`, which calls the tool before pcall begins."""
    for node in listing.all(p.FunctionCall):
        match p.path(node.function), node.arguments:
            case ["pcall"], (p.FunctionCall(function=function), *_) if listing.place(node.at)[0] == line:
                return p.path(function)[:1] == ["tools"]
    return False


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
        # From the one that the message names on: `error(text, 2)` names the caller.
        frames = next((frames[first:] for first, frame in enumerate(frames) if frame[:2] == (chunk, at)), frames)
    elif frames:
        chunk, at = frames[0][0], frames[0][1]
    else:
        guessed = _guess(listings.get(current), error, message_text)
        return Location(current, guessed, guessed, ())
    line = at if chunk == current else next((line for name, line, _ in frames if name == current), None)
    return Location(chunk, at if at > 0 else None, line if line is not None and line > 0 else None, frames)


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
            case (p.FunctionCall() | p.Method() as call,) if id(node) not in outermost and call.at == node.at + 1:
                # One in parentheses keeps its frame too.
                if last_name(call) in names or (type(call) is p.FunctionCall and type(call.function) is p.Index):
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
