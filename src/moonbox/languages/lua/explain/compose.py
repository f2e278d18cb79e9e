"""An ending turned into the error that the model reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from moonbox.errors import ERROR_KINDS, LIMIT_NAMES, ErrorKind, ScriptError, kind_of_code
from moonbox.languages.lua.explain.case import Case, Tools
from moonbox.languages.lua.explain.limits import limit_hint, limit_message
from moonbox.languages.lua.explain.listing import Listing
from moonbox.languages.lua.explain.place import Place, place_of, split_prefix
from moonbox.languages.lua.explain.runtime import column_of, locate, runtime_hint, tidied
from moonbox.languages.lua.explain.syntax import explain_syntax
from moonbox.languages.lua.explain.traceback import frames_of, render

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from moonbox.languages.lua.explain.ending import Ending
    from moonbox.limits import Limits

__all__ = ["bare", "compose"]

LONGEST_MESSAGE = 4_000
LONGEST_NAME = 200


def compose(
    ending: Ending,
    *,
    sources: Mapping[str, str],
    tools: Collection[str],
    limits: Limits,
    chunk: str | None = None,
) -> ScriptError:
    """The error with everything that can be said about it; see `moonbox.languages.lua.explain.explain`."""
    current = chunk or next(reversed(list(sources)), "script")
    listings = {name: Listing(source) for name, source in sources.items()}
    raw = ending.message[: LONGEST_MESSAGE + 200].partition("\nstack traceback:\n\t[C]")[0]
    said, prefix = split_prefix(raw, current)
    said = said if len(said) <= LONGEST_MESSAGE else f"{said[:LONGEST_MESSAGE]}…"
    if ending.kind == "syntax":
        return _syntax(said, prefix, listings, current)
    if ending.kind != "tool" and ending.data is None:
        said = tidied(said)
    place = place_of(ending, said, prefix, listings, current)
    if ending.kind == "stop":
        return _stopped(ending, said, place, listings, current, limits)
    if ending.kind == "tool":
        return _tool(ending, said, place, listings, current)
    return _runtime(ending, said, place, listings, current, Tools(tools))


def bare(ending: Ending) -> ScriptError:
    """The error in the engine's own words alone."""
    limit = ending.limit if ending.limit in LIMIT_NAMES else None
    kind = {"stop": "limit" if limit else "cancelled"}.get(ending.kind, ending.kind)
    known = kind if kind in ERROR_KINDS else "runtime"
    return ScriptError(cast(ErrorKind, known), ending.message[:LONGEST_MESSAGE], limit=limit)


def _syntax(said: str, prefix: list[tuple[str, int]], listings: Mapping[str, Listing], current: str) -> ScriptError:
    line = prefix[0][1] if prefix else None
    finding = explain_syntax(listings.get(current) or Listing(""), said, line)
    return ScriptError(
        "syntax",
        finding.message,
        line=finding.line,
        column=finding.column,
        hint=finding.hint,
        traceback=render((), listings, chunk=current, current=current, line=finding.line, column=finding.column),
    )


def _runtime(
    ending: Ending, said: str, place: Place, listings: Mapping[str, Listing], current: str, tools: Tools
) -> ScriptError:
    listing = listings.get(place.chunk) or Listing("")
    earlier = [other for name, other in reversed(list(listings.items())) if name not in (place.chunk, current)]
    case = Case(
        listing,
        place.at,
        said,
        tools,
        names=ending.names,
        earlier=earlier,
        functions=tuple(frame.function for frame in frames_of(place.frames, {})),
    )
    hint = column = None
    if ending.data is None:  # of a table that the script raised, the script knows best what it means
        case = locate(case)
        hint, column = runtime_hint(case), column_of(case)
    return _error(
        "runtime", said, place, listings, current, column=column, hint=hint, data=ending.data, code=_code(ending.data)
    )


def _tool(ending: Ending, said: str, place: Place, listings: Mapping[str, Listing], current: str) -> ScriptError:
    fields: dict[str, Any] = ending.data if isinstance(ending.data, dict) else {}
    code, tool = _text(fields.get("code")), _text(fields.get("tool"))
    retryable = fields.get("retryable") is True
    kind = kind_of_code(code)
    hint = None
    if kind == "denied":
        hint = "do not make this call again: go on without it, or ask for permission"
    elif _called_at_once(listings.get(place.chunk), place.at):
        name = Tools.written(tool) if tool else "tools.name"
        hint = f"pcall must make the call itself; write: pcall({name}, {{…}})"
    elif retryable:
        name = Tools.written(tool) if tool else "tools.name"
        hint = f"it may work when tried again; to go on without it write: local ok, result = pcall({name}, {{…}})"
    column = _tool_column(listings.get(place.chunk), place.at, tool)
    return _error(
        kind,
        said,
        place,
        listings,
        current,
        column=column,
        hint=hint,
        code=code,
        tool=tool,
        retryable=retryable,
        data=fields.get("data"),
    )


def _stopped(
    ending: Ending, said: str, place: Place, listings: Mapping[str, Listing], current: str, limits: Limits
) -> ScriptError:
    limit = ending.limit if ending.limit in LIMIT_NAMES else None
    message = limit_message(ending.limit, said, limits)
    if limit is None:
        return _error("cancelled", message, place, listings, current)
    listing = listings.get(current) or Listing("")
    hint = limit_hint(limit, limits, listing, place.line, message)
    return _error("limit", message, place, listings, current, limit=limit, hint=hint)


def _error(
    kind: str, message: str, place: Place, listings: Mapping[str, Listing], current: str, **more: Any
) -> ScriptError:
    column = more.pop("column", None)
    frames = frames_of(place.frames, listings)
    return ScriptError(
        cast(ErrorKind, kind),
        message,
        line=place.line,
        column=column if place.chunk == current else None,
        traceback=render(frames, listings, chunk=place.chunk, current=current, line=place.at, column=column),
        frames=frames,
        **more,
    )


def _tool_column(listing: Listing | None, line: int | None, tool: str | None) -> int | None:
    """Where the line names the tool, if it does so once."""
    if listing is None or line is None or tool is None:
        return None
    last = tool.rpartition(".")[2]
    found = [token.column for token in listing.words(line) if token.kind == "name" and token.text == last]
    return found[0] if len(found) == 1 else None


def _called_at_once(listing: Listing | None, line: int | None) -> bool:
    """`pcall(tools.x{…})`, which calls the tool before pcall begins."""
    words = listing.words(line) if listing is not None and line is not None else ()
    for index, word in enumerate(words):
        if word.text != "pcall" or [token.text for token in words[index + 1 : index + 3]] != ["(", "tools"]:
            continue
        end = index + 3
        while end + 1 < len(words) and words[end].text == ".":
            end += 2
        if end < len(words) and words[end].text in ("{", "("):
            return True
    return False


def _text(value: Any) -> str | None:
    """A name in an error that the script may have changed: no longer than names are."""
    return value[:LONGEST_NAME] if isinstance(value, str) else None


def _code(data: Any) -> str | None:
    return _text(data.get("code")) if isinstance(data, dict) else None
