"""Limits that ended a run: what was exceeded, by the number, and what to do about it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moonbox.languages.lua.explain.listing import Listing
    from moonbox.limits import Limits

__all__ = ["limit_hint", "limit_message"]

_LONG_PATH = re.compile(r"^(\S{60})\S{20,}(\S{20} (?:is|has) )")


def limit_message(limit: str, said: str, limits: Limits) -> str:
    """The message of a stop; what the engine said, if it said something."""
    if said and not said.startswith("the script needed more memory"):
        return _LONG_PATH.sub(r"\1…\2", said)
    match limit:
        case "time":
            return (
                "the script ran out of time"
                if limits.timeout is None
                else f"the script ran longer than timeout = {limits.timeout:g} seconds"
            )
        case "calls":
            return f"the script made more than max_tool_calls = {limits.max_tool_calls} tool calls"
        case "memory":
            return f"the script needed more memory than max_memory = {limits.max_memory} bytes"
        case "operations":
            return f"the script used more than max_operations = {limits.max_operations} operations"
        case "output":
            return f"the script printed more than max_output = {limits.max_output} bytes"
        case "string":
            return f"a string is longer than max_string = {limits.max_string} bytes"
        case "array":
            return f"a table has more than max_array = {limits.max_array} elements"
        case "depth":
            return f"a value is nested deeper than max_depth = {limits.max_depth}"
        case "cancelled":
            return "the run was cancelled"
    return "the run was stopped"


def limit_hint(limit: str, limits: Limits, listing: Listing, line: int | None, message: str) -> str | None:
    """What to change in the script."""
    match limit:
        case "time":
            return _time(listing, line)
        case "operations":
            return (
                "do less in one run: filter in the tool calls, work on fewer items, or split the work over several runs"
            )
        case "calls":
            return f"a run may make {_calls(limits)}: ask for more with each call, or split the work over several runs"
        case "memory":
            return _MEMORY + _recursion(listing)
        case "output":
            return "print less: return the result as a value and print only a summary"
        case "string":
            return "make shorter texts: work on parts, or keep the parts in a list"
        case "array":
            return _array(message)
        case "depth":
            return "return a flatter value: only the fields that are needed"
    return None


_MEMORY = (
    "process the data in parts and keep only what is needed; build long texts with table.concat, not with .. in a loop"
)


def _recursion(listing: Listing) -> str:
    """A function that calls itself, which uses up memory when it does not end."""
    reading, tokens = listing.reading, listing.tokens
    bodies = dict(reading.pairs) if reading else {}
    for name in reading.functions if reading else ():
        opener = next((index for index in range(name, max(-1, name - 8), -1) if tokens[index].text == "function"), name)
        called = (
            tokens[index].text == tokens[name].text and tokens[index + 1].text == "("
            for index in range(name + 1, bodies.get(opener, name))
        )
        if any(called):
            return f"; make sure that {tokens[name].text}, which calls itself, comes to an end"
    return ""


def _calls(limits: Limits) -> str:
    most = limits.max_tool_calls
    return "no tool calls" if most == 0 else f"{most} tool call{'s' * (most != 1)}"


def _array(message: str) -> str:
    if message.startswith("value"):
        return "return less: filter or summarise the data in the script, and return the result"
    return "send less in one call: pass the data in parts"


def _time(listing: Listing, line: int | None) -> str:
    """What the line shows that was under way: tool calls, an endless loop, or neither."""
    words = listing.words(line) if line is not None else ()
    where = f"it was at line {line}; " if line is not None else ""
    if any(word.text == "tools" and word.kind == "name" for word in words):
        return f"{where}tool calls count too: make fewer of them, or run them at the same time with parallel"
    reading = listing.reading
    tokens = listing.tokens
    for opener, closing in reading.pairs if reading and line is not None else ():
        endless = tokens[opener].text == "while" and tokens[opener + 1].text == "true"
        inside = line is not None and tokens[opener].line <= line <= tokens[closing].line
        if (
            endless
            and inside
            and not any(tokens[index].text in ("break", "return") for index in range(opener, closing))
        ):
            return f"{where}the loop of line {tokens[opener].line} never ends: give it a break or a condition"
    return f"{where}do less in one run, or split the work over several runs"
