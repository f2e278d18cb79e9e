"""Limits that ended a run: what was exceeded, by the number, and what to do about it in any language."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moonbox.limits import Limits

__all__ = ["limit_hint", "limit_message"]

_LONG_PATH = r"^(\S{60})\S{20,}(\S{20} (?:is|has) )"


def limit_message(limit: str, reported: str, limits: Limits) -> str:
    """The message of a stop: the engine's own where it has one."""
    if reported and not reported.startswith("the script needed more memory"):
        return re.sub(_LONG_PATH, r"\1…\2", reported)
    match limit:
        case "time" if limits.timeout is not None:
            return f"the script ran longer than timeout = {limits.timeout:g} seconds"
        case "time":
            return "the script ran out of time"
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
            return f"an array has more than max_array = {limits.max_array} elements"
        case "depth":
            return f"a value is nested deeper than max_depth = {limits.max_depth}"
        case "source":
            return f"the script is longer than max_source = {limits.max_source} bytes"
        case "cancelled":
            return "the run was cancelled"
    return "the run was stopped"


def limit_hint(limit: str, limits: Limits, message: str) -> str | None:
    """What to change in the script."""
    match limit:
        case "time":
            return "do less in one run, or split the work over several runs"
        case "operations":
            return (
                "do less in one run: filter in the tool calls, work on fewer items, or split the work over several runs"
            )
        case "calls":
            return (
                f"a run may make {_calls(limits)} (max_tool_calls): "
                "ask for more with each call, or split the work over several runs"
            )
        case "memory":
            return "process the data in parts and keep only what is needed"
        case "output":
            return "print less: return the result as a value and print only a summary"
        case "string":
            return "make shorter strings: work on parts, or keep the parts in a list"
        case "array" if message.startswith("value"):
            return "return less: filter or summarise the data in the script, and return the result"
        case "array":
            return "send less in one call: pass the data in parts"
        case "depth":
            return "return a flatter value: only the fields that are needed"
        case "source":
            return "write a shorter script: loop instead of repeating, and get data from tools"
    return None


def _calls(limits: Limits) -> str:
    most = limits.max_tool_calls
    return "no tool calls" if most == 0 else f"{most} tool call{'s' * (most != 1)}"
