"""Runtime errors: which value could not do what was asked of it, and the Lua form of what was probably meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from moonbox.languages.facts import FACTS, LENGTHS
from moonbox.languages.lua.explain import names
from moonbox.languages.lua.explain.operands import argument_hint, comparison_hint, operation_hint, text_arithmetic_hint
from moonbox.languages.lua.explain.slips import with_line
from moonbox.languages.lua.vocabulary import BASE, LIBRARIES, lua_vocabulary, message_hint, tool_name
from moonbox.languages.program import Method

if TYPE_CHECKING:
    from moonbox.languages.lua.explain.values import RuntimeFailure

_BAD_ARGUMENT = re.compile(r"bad argument #\d{1,3} to '(\w{1,40})'")
_NO_FIELD = re.compile(r"a (list|string) has no field '(\w{1,100})'")
_NO_ELEMENT = re.compile(r"a string has no element (-?[\w.]{1,30})")
_PATH = re.compile(r"[A-Za-z_][\w.\[\]]{0,60}")
_WRAPPERS = frozenset(
    {"content", "data", "entries", "items", "list", "records", "result", "results", "rows", "value", "values"}
)

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


def column_of(failure: RuntimeFailure) -> int | None:
    """The column of the word that the error is about, where there is only one that it can be."""
    named_key = (failure.complaint.action, failure.complaint.type) == ("index", "null")
    if failure.value is not None and not named_key:
        return failure.value.token.column
    if named_key:
        fields = failure.fields_of(failure.complaint.name)
        return failure.listing.tokens[fields[0].index - 2].column if len(fields) == 1 else None
    if match := _BAD_ARGUMENT.match(failure.message):
        calls = failure.calls_of(match[1])
        return calls[0].token.column if len(calls) == 1 else None
    signs = _SIGNS.get(failure.message.split(" ", 3)[2]) if failure.message.startswith("attempt to ") else None
    if signs is None and "for iterator" in failure.message:
        signs = frozenset({"in"})
    columns = [
        token.column for token in failure.line_words() if token.kind != "string" and signs and token.text in signs
    ]
    return columns[0] if len(columns) == 1 else None


def runtime_hint(failure: RuntimeFailure) -> str | None:
    """What to write instead; None where nothing is known for sure."""
    if not failure.complaint.action:
        return (
            text_arithmetic_hint(failure)
            or comparison_hint(failure)
            or argument_hint(failure)
            or names.foreign_constant(failure)
            or _colon_call(failure)
            or _no_such_field(failure)
            or _no_character(failure)
            or _other(failure)
        )
    match failure.complaint.action:
        case "call":
            return _not_callable(failure)
        case "index":
            return _not_indexable(failure)
        case _:
            return (
                names.nil_name(failure)
                or operation_hint(failure)
                or (None if failure.complaint.role else names.given_to_library(failure))
            )


def _not_callable(failure: RuntimeFailure) -> str | None:
    complaint = failure.complaint
    if complaint.role == "for iterator":
        return _loop_over(failure)
    if complaint.type.startswith("library tools."):
        return _namespace(failure, complaint.type.removeprefix("library tools."))
    shadowed = _shadowed(failure)
    if shadowed:
        return shadowed
    if complaint.type != "nil":
        return None
    match complaint.role:
        case "global":
            return names.unknown_global(failure, complaint.name, called=True)
        case "field":
            return names.unknown_field(failure, called=True)
        case "method":
            return names.unknown_method(failure)
    return None


def _loop_over(failure: RuntimeFailure) -> str | None:
    """`for x in list do`."""
    if failure.complaint.type != "table":
        return None
    return with_line(FACTS["loop"], names.loop_of(failure) or "for _, item in ipairs(list) do")


def _namespace(failure: RuntimeFailure, space: str) -> str | None:
    members = sorted(path for path in failure.tools if path.startswith(f"{space}."))
    if not members:
        return None
    shown = [tool_name(path) for path in members[:8]]
    more = f" and {len(members) - 8} more" if len(members) > 8 else ""
    return f"tools.{space} holds several tools; call one of them: {', '.join(shown)}{more}"


def _shadowed(failure: RuntimeFailure) -> str | None:
    """A local with the name of a function."""
    complaint = failure.complaint
    if complaint.name not in BASE and complaint.name not in LIBRARIES:
        return None
    if complaint.role in ("local", "upvalue"):
        return f"the local '{complaint.name}' hides the function of that name: rename it"
    return None


def _not_indexable(failure: RuntimeFailure) -> str | None:
    complaint = failure.complaint
    match complaint.type:
        case "nil":
            return names.nil_name(failure) or names.nil_parent(failure)
        case "null":
            return names.null_parent(failure)
        case "function":
            value = failure.value
            return f"{value.text} is a function: call it before reading fields" if value else None
        case "boolean":
            return names.pcall_result(failure)
        case "number" if not complaint.role:
            return names.given_to_library(failure)
        case "string":
            return (
                "strings cannot be changed: make a new one with .. or string.gsub"
                if failure.value and failure.value.part and failure.value.part.is_assigned
                else None
            )
    return None


def _colon_call(failure: RuntimeFailure) -> str | None:
    """`tools:echo{…}`, `json:encode(x)`."""
    match = _LIBRARY_VALUE.match(failure.message)
    if match is None:
        return None
    calls = failure.calls_of(match["call"].rpartition(".")[2])
    with_colon = any(type(call.node) is Method for call in calls)
    return str(lua_vocabulary().fact("colon_call", tool=match["call"])) if with_colon else None


def _no_such_field(failure: RuntimeFailure) -> str | None:
    """`list.length`, `list.items`, `text.value`."""
    match = _NO_FIELD.fullmatch(failure.message)
    if match is None:
        return None
    kind, name = match.groups()
    receivers = {value.receiver for value in failure.fields_of(name)}
    receiver = receivers.pop() if len(receivers) == 1 else ""
    written = receiver if _PATH.fullmatch(receiver) else "list" if kind == "list" else "text"
    if name in LENGTHS:
        return f"write: {lua_vocabulary().form('length', value=written)}"
    if kind == "string":
        return f"{written} is text; if it is JSON, write: json.decode({written}).{name}"
    if name in _WRAPPERS:
        return f"{written} is the list itself: for _, item in ipairs({written}) do … end"
    loop = f"for _, item in ipairs({written}) do … item.{name} … end"
    return f"read it from an element, such as {written}[1].{name}, or loop: {loop}"


def _no_character(failure: RuntimeFailure) -> str | None:
    """`text[1]`, and `text[0]` as other languages count."""
    match = _NO_ELEMENT.fullmatch(failure.message)
    if match is None:
        return None
    reads = {(value.receiver, value.text) for value in failure.fields_of("?")}
    receiver, text = reads.pop() if len(reads) == 1 else ("", "")
    key = text[len(receiver) + 1 : -1]
    if not _PATH.fullmatch(receiver) or not _PATH.fullmatch(key):
        receiver, key = receiver if _PATH.fullmatch(receiver) else "text", match[1]
    if key == "0":
        return f"characters are counted from 1; write: {receiver}:sub(1, 1)"
    return f"strings cannot be indexed; write: {receiver}:sub({key}, {key})"


def _other(failure: RuntimeFailure) -> str | None:
    message = failure.message
    if "stack overflow" in message:
        name = next((function for function in failure.functions if function != "main chunk"), "")
        who = f"the {name}" if name else "a function"
        return f"{who} calls itself endlessly: add a case that returns without another call"
    if message == "json.decode expects a string, got table":
        return lua_vocabulary().fact("decoded", what="the value", function="json.decode").message
    return message_hint(message)
