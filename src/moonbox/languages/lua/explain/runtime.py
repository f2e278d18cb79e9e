"""Runtime errors: which value could not do what was asked of it, and the Lua form of what was probably meant."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from moonbox.languages.lua.explain.arguments import argument_hint
from moonbox.languages.lua.explain.known import BASE, LIBRARIES
from moonbox.languages.lua.explain.loops import lua_loop
from moonbox.languages.lua.explain.missing import (
    given_to_library,
    is_assigned,
    nil_name,
    nil_parent,
    null_parent,
    pcall_result,
)
from moonbox.languages.lua.explain.names import unknown_field, unknown_global, unknown_method
from moonbox.languages.lua.explain.operations import comparison_hint, operation_hint, text_arithmetic_hint
from moonbox.languages.lua.explain.site import calls_of, complaint_of, fields_of, sites_of

if TYPE_CHECKING:
    from moonbox.languages.lua.explain.case import Case

__all__ = ["column_of", "locate", "runtime_hint", "tidied"]

_BAD_ARGUMENT = re.compile(r"bad argument #\d{1,3} to '(\w{1,40})'")
_SIGNS = {
    "compare": frozenset({"<", "<=", ">", ">="}),
    "add": frozenset({"+"}),
    "sub": frozenset({"-"}),
    "mul": frozenset({"*"}),
    "div": frozenset({"/"}),
    "mod": frozenset({"%"}),
    "concatenate": frozenset({".."}),
    "divide": frozenset({"//"}),
}
_LIBRARY_VALUE = re.compile(r"(?P<call>[\w.]{1,120}): argument(?:\[1\])? is a library")


def tidied(message: str) -> str:
    """Lua's message without the names of our own functions behind its library, and with null called null."""
    message = re.sub(r"\bto 'raw_(\w{1,20})'", r"to '\1'", message)
    message = message.replace(" (for iterator 'for iterator')", " (for iterator)")
    message = message.replace("(field 'integer index')", "(field '?')")
    if message.startswith(("attempt to ", "invalid value (")):
        message = message.replace("userdata", "null")
    return message


def locate(case: Case) -> Case:
    """The case with the value that the message complains of, where it can be told."""
    complaint = complaint_of(case.message.replace(" (for iterator)", " (for iterator 'for iterator')"))
    if complaint is None:
        return case
    sites = sites_of(case.listing, case.line, complaint)
    if sites is None:
        return replace(case, complaint=complaint)
    if not sites and complaint.type != "null":
        return case  # the line has nothing of that name: the script wrote the message itself, or the line is another
    same = len({site.text for site in sites}) == 1
    return replace(case, complaint=complaint, site=sites[0] if same else None)


def column_of(case: Case) -> int | None:
    """The column of the word that the error is about, where there is only one that it can be."""
    named_key = case.complaint is not None and case.complaint.type == "null" and case.complaint.action == "index"
    if case.site is not None and not named_key:
        return case.site.token.column
    if named_key and case.complaint is not None:
        fields = fields_of(case.listing, case.line, case.complaint.name)
        return case.listing.tokens[fields[0].index - 2].column if len(fields) == 1 else None
    if match := _BAD_ARGUMENT.match(case.message):
        calls = calls_of(case.listing, case.line, match[1])
        return calls[0].token.column if len(calls) == 1 else None
    signs = _SIGNS.get(case.message.split(" ", 3)[2]) if case.message.startswith("attempt to ") else None
    if signs is None and "for iterator" in case.message:
        signs = frozenset({"in"})
    found = [token.column for token in case.line_words() if token.kind != "string" and signs and token.text in signs]
    return found[0] if len(found) == 1 else None


def runtime_hint(case: Case) -> str | None:
    """What to write instead; None where nothing is known for sure."""
    if case.complaint is None:
        return (
            text_arithmetic_hint(case)
            or comparison_hint(case)
            or argument_hint(case)
            or _colon_call(case)
            or _other(case)
        )
    match case.complaint.action:
        case "call":
            return _not_callable(case)
        case "index":
            return _not_indexable(case)
        case _:
            return nil_name(case) or operation_hint(case) or (None if case.complaint.role else given_to_library(case))


def _not_callable(case: Case) -> str | None:
    complaint = case.complaint
    assert complaint is not None
    if complaint.role == "for iterator":
        return _loop_over(case)
    if complaint.type.startswith("library tools."):
        return _namespace(case, complaint.type.removeprefix("library tools."))
    shadowed = _shadowed(case)
    if shadowed:
        return shadowed
    if complaint.type != "nil":
        return None
    match complaint.role:
        case "global":
            return unknown_global(case, complaint.name, called=True)
        case "field":
            return unknown_field(case, called=True)
        case "method":
            return unknown_method(case)
    return None


def _loop_over(case: Case) -> str | None:
    """`for x in list do`."""
    complaint = case.complaint
    assert complaint is not None
    if complaint.type not in ("table", "nil"):
        return None
    listing, line = case.listing, case.line
    fallback = "a loop goes over a list with ipairs: for _, item in ipairs(list) do … end"
    if line is None or not listing.whole:
        return fallback if complaint.type == "table" else None
    span = listing.span(line)
    keyword = next((index for index in span if listing.tokens[index].text == "for"), None)
    stop = next((index for index in span if listing.tokens[index].text == "do"), None)
    loop = lua_loop(listing, keyword, stop) if keyword is not None and stop is not None and stop > keyword else None
    if complaint.type == "nil":
        return None
    return f"a loop goes over a list with ipairs, over a map with pairs; write: {loop}" if loop else fallback


def _namespace(case: Case, space: str) -> str | None:
    members = case.tools.within(space)
    if not members:
        return None
    shown = [case.tools.written(path) for path in members[:8]]
    more = f" and {len(members) - 8} more" if len(members) > 8 else ""
    return f"tools.{space} holds several tools; call one of them: {', '.join(shown)}{more}"


def _shadowed(case: Case) -> str | None:
    """A function's name that was given another value."""
    complaint = case.complaint
    assert complaint is not None
    if complaint.name not in BASE and complaint.name not in LIBRARIES:
        return None
    if complaint.role in ("local", "upvalue"):
        return f"the local '{complaint.name}' hides the function of that name: give the variable another name"
    if complaint.role == "global" and complaint.type != "nil" and complaint.name not in ("null", "docs", "tools"):
        return (
            f"the script gave '{complaint.name}' another value: use another name for that"
            if case.listing.whole
            else None
        )
    return None


def _not_indexable(case: Case) -> str | None:
    complaint = case.complaint
    assert complaint is not None
    match complaint.type:
        case "nil":
            return nil_name(case) or nil_parent(case)
        case "null":
            return null_parent(case)
        case "function":
            site = case.site
            return f"{site.text} is a function: call it before its fields are read" if site else None
        case "boolean":
            return pcall_result(case)
        case "number" if not complaint.role:
            return given_to_library(case)
        case "string":
            return "strings cannot be changed: make a new one with .. or string.gsub" if is_assigned(case) else None
    return None


def _colon_call(case: Case) -> str | None:
    """`tools:echo{…}`, `json:encode(x)`."""
    match = _LIBRARY_VALUE.match(case.message)
    if match is None:
        return None
    name = match["call"]
    if ":" + name.rpartition(".")[2] not in "".join(token.text for token in case.line_words()):
        return None
    return f"tools are called with a dot, not with a colon; write: {name}{{…}}"


def _other(case: Case) -> str | None:
    message = case.message
    if "stack overflow" in message:
        name = next((function for function in case.functions if function != "main chunk"), "")
        who = f"the {name}" if name else "a function"
        return f"{who} calls itself without end: give it a case in which it returns without calling itself"
    if message == "json.decode expects a string, got table":
        return "the value is a table already: use it without json.decode"
    if message.startswith("attempt to yield"):
        return "coroutine.yield works only inside a function that coroutine.wrap or coroutine.create runs"
    if message == "error object is a nil value: nil":
        return 'give error a message: error("what went wrong")'
    if message in (
        "attempt to divide by zero",
        "attempt to perform 'n//0'",
        "attempt to perform 'n%%0'",
        "attempt to perform 'n%0'",
    ):
        return "whole numbers cannot be divided by 0: test the divisor first"
    if message.startswith("number has no integer representation"):
        return "a whole number is needed: use math.floor(x) or x // 1"
    if message.startswith("table index is nil"):
        return "a key must not be nil: test it before t[key] = value"
    if message.startswith("table index is NaN"):
        return "a key must not be NaN, the result of 0/0: test it before"
    if message.startswith("invalid key to 'next'"):
        return "do not add fields to a table while pairs goes over it: collect the keys in a list first"
    return None
