"""Runtime errors: which value could not do what was asked of it, and the Lua form of what was probably meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from moonbox.languages.facts import FACTS
from moonbox.languages.lua.explain import names
from moonbox.languages.lua.explain.messages import hint_for_message
from moonbox.languages.lua.explain.slips import with_line
from moonbox.languages.lua.vocabulary import BASE, LIBRARIES, tool_name

if TYPE_CHECKING:
    from moonbox.languages.lua.explain.values import RuntimeFailure

_FEW = 8
_BAD_ARGUMENT = r"bad argument #\d{1,3} to '(\w{1,40})'"
_OPERATORS = {
    "compare": ("<", "<=", ">", ">="),
    "add": ("+",),
    "sub": ("-",),
    "mul": ("*",),
    "div": ("/",),
    "mod": ("%",),
    "concatenate": ("..",),
    "divide": ("//",),
}
"""What stands behind "attempt to" in messages, and the operators that it is about."""

_REFUSED = {
    ("concatenate", "nil"): '{value} is nil; where it may be missing write: ({value} or "")',
    ("concatenate", "boolean"): "{value} must be converted to a string first: tostring({value})",
    ("concatenate", "table"): (
        'convert a table to a string with json.encode({value}), a list with table.concat({value}, ", ")'
    ),
    ("perform arithmetic on", "nil"): "{value} is nil; where it may be missing write: ({value} or 0)",
    ("get length of", "nil"): "{value} is nil, so it has no length: check it first",
}
_ALWAYS_REFUSED = {
    "null": "{value} is json.null, which is only for sending a null: write nil for a missing value",
    "function": "{value} is a function: call it with {value}(…)",
}
"""Hints for values that an operator refuses: one, and any."""
_UNKNOWN = {"boolean": "x", "table": "x", "null": "the value"}
"""What a hint calls a value whose text is not known; a type that is not here gets no hint."""


def tidied(message: str) -> str:
    """Lua's message without the names of our own functions behind its library, and with null called null."""
    message = re.sub(r"\bto 'raw_(\w{1,20})'", r"to '\1'", message)
    message = message.replace(" (for iterator 'for iterator')", " (for iterator)")
    message = message.replace("(field 'integer index')", "(field '?')")
    if message.startswith(("attempt to ", "invalid value (")):
        message = message.replace("userdata", "null")
    return message


def column_of(failure: RuntimeFailure) -> int | None:
    """The column of the word that the error is about, where there is only one that it can be."""
    listing, message, complaint = failure.listing, failure.message, failure.complaint
    if failure.line is None:
        return None
    if (complaint.action, complaint.type) == ("index", "null"):  # the message names the key
        found = [field.index - 2 for field in failure.fields_of(complaint.name)]
    elif failure.value is not None:
        found = [failure.value.index]
    elif match := re.match(_BAD_ARGUMENT, message):
        found = [call.index for call in failure.calls_of(match[1])]
    elif "for iterator" in message:
        found = [index for index in listing.span(failure.line) if listing.tokens[index].text == "in"]
    else:
        operators = _OPERATORS.get(message.split(" ", 3)[2], ()) if message.startswith("attempt to ") else ()
        found = [node.at for node in failure.operations if node.operator in operators]
    return listing.place(found[0])[1] if len(found) == 1 else None


def runtime_hint(failure: RuntimeFailure) -> str | None:
    """What to write instead; None where nothing is known for sure."""
    match failure.complaint.action:
        case "":
            return hint_for_message(failure)
        case "call":
            return _not_callable(failure)
        case "index":
            return _not_indexable(failure)
    unnamed = names.given_to_library(failure) if not failure.complaint.role else None
    return _nil(failure) or _refused(failure) or unnamed


def _nil(failure: RuntimeFailure) -> str | None:
    value = failure.value if failure.complaint.type == "nil" else None
    return names.nil_name(failure, value) if value is not None else None


def _not_callable(failure: RuntimeFailure) -> str | None:
    complaint, value = failure.complaint, failure.value
    match complaint.type, complaint.role:
        case "table", "for iterator":
            return with_line(FACTS["loop"], names.loop_of(failure) or "for _, item in ipairs(list) do")
        case _, "local" | "upvalue" if complaint.name in BASE or complaint.name in LIBRARIES:
            return f"the local '{complaint.name}' hides the function of that name: rename it"
        case "nil", "global" | "field" | "method" as role if value is not None:
            return _UNKNOWN_FUNCTIONS[role](failure, value)
    return _namespace(failure, complaint.type.removeprefix("library tools."))


_UNKNOWN_FUNCTIONS = {"global": names.unknown_global, "field": names.unknown_field, "method": names.unknown_method}


def _namespace(failure: RuntimeFailure, space: str) -> str | None:
    members = sorted(path for path in failure.tools if path.startswith(f"{space}."))
    if not members:
        return None
    more = f" and {len(members) - _FEW} more" if len(members) > _FEW else ""
    return f"tools.{space} holds several tools; call one of them: {', '.join(map(tool_name, members[:_FEW]))}{more}"


def _not_indexable(failure: RuntimeFailure) -> str | None:
    complaint, value = failure.complaint, failure.value
    match complaint.type:
        case "nil" if value is not None:
            return _nil(failure) or names.nil_parent(value)
        case "null":
            return names.null_parent(failure)
        case "function" if value is not None:
            return f"{value.text} is a function: call it before reading fields"
        case "boolean":
            return names.pcall_result(failure)
        case "number" if not complaint.role:
            return names.given_to_library(failure)
        case "string" if value is not None and value.part is not None and value.part.is_assigned:
            return "strings cannot be changed: make a new one with .. or string.gsub"
    return None


def _refused(failure: RuntimeFailure) -> str | None:
    """Arithmetic, .. and # on a value of the wrong type."""
    complaint, value = failure.complaint, failure.value
    if complaint.action == "perform arithmetic on" and complaint.type == "nil" and complaint.role != "field":
        is_number = not complaint.role and failure.call_of("tonumber") is not None
        return "tonumber returned nil: its argument is not a number" if is_number else None
    text = value.text if value is not None and value.text != "…" else _UNKNOWN.get(complaint.type)
    hint = _REFUSED.get((complaint.action, complaint.type)) or _ALWAYS_REFUSED.get(complaint.type)
    return hint.format(value=text) if hint is not None and text is not None else None
