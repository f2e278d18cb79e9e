"""Errors that teach: what the engine reports of a failed run, in words for the model that must correct its script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from moonbox.errors import ERROR_KINDS, LIMIT_NAMES, ErrorKind, ScriptError, is_denial
from moonbox.languages import program as p
from moonbox.languages.explanations import LONGEST_MESSAGE, failed_call, limit_hint, limit_message, name_in
from moonbox.languages.lua.explain.location import Location, frames_of, locate, render, split_prefix
from moonbox.languages.lua.explain.runtime import column_of, runtime_hint, tidied
from moonbox.languages.lua.explain.syntax_errors import explain_syntax
from moonbox.languages.lua.explain.values import RuntimeFailure, last_name
from moonbox.languages.lua.syntax.listing import Listing
from moonbox.languages.lua.vocabulary import lua_vocabulary, tool_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from moonbox.errors import LimitName
    from moonbox.languages.language import EngineError
    from moonbox.limits import Limits


def explain(error: EngineError, *, sources: Mapping[str, str], tools: Collection[str], limits: Limits) -> ScriptError:
    """Say what went wrong, where, and what to write instead.

    `sources` maps the chunks of a Repl's runs (`script`, `script#2`, …) to their text, as far as they are kept; the run
    that failed is the last of them. `tools` are the paths of the tools that the script can call.
    """
    try:
        return compose(error, sources=sources, tools=tools, limits=limits)
    except Exception:  # noqa: BLE001 - a flaw in a hint must never cost the error that it is about
        return _bare(error)


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


def _bare(error: EngineError) -> ScriptError:
    """The error in the engine's own words alone."""
    limit = error.limit if error.limit in LIMIT_NAMES else None
    kind = {"stop": "limit" if limit else "cancelled"}.get(error.kind, error.kind)
    known = kind if kind in ERROR_KINDS else "runtime"
    return ScriptError(cast("ErrorKind", known), error.message[:LONGEST_MESSAGE], limit=limit)


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
        calls = (inner for inner in p.inside(node.function) if isinstance(inner, p.Call | p.Method))
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
    for node in listing.all(p.Call):
        match p.path(node.function), node.arguments:
            case ["pcall"], (p.Call(function=function), *_) if listing.place(node.at)[0] == line:
                return p.path(function)[:1] == ["tools"]
    return False
