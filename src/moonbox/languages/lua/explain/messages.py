"""Hints for the messages of operators and of the library, each by its pattern."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from moonbox.languages import program as p
from moonbox.languages.facts import LENGTHS
from moonbox.languages.lua.explain.names import foreign_constant
from moonbox.languages.lua.explain.slips import LONGEST_LINE, is_lua
from moonbox.languages.lua.vocabulary import LIBRARIES, lua_vocabulary, message_hint

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.languages.lua.explain.values import RuntimeFailure

_PATH = r"[A-Za-z_][\w.\[\]]{0,60}"
_METHODS = LIBRARIES["string"] - {"format"}
_WRAPPED = frozenset({"rep", "gsub", "format"})
_WRAPPERS = frozenset(
    {"content", "data", "entries", "items", "list", "records", "result", "results", "rows", "value", "values"}
)


def hint_for_message(failure: RuntimeFailure) -> str | None:
    """What to write instead; None where nothing is known for sure."""
    for pattern, handler in _RULES:
        match = re.match(pattern, failure.message)
        if match is not None and (hint := handler(failure, *match.groups())) is not None:
            return hint
    return message_hint(failure.message)


# Operators


def _added_text(failure: RuntimeFailure) -> str | None:
    """`"a" + "b"`: the line with its only + as .. instead."""
    text = failure.listing.line(failure.line)
    signs = [node for node in failure.operations if node.operator == "+"]
    if text is None or len(text) > LONGEST_LINE or len(signs) != 1:
        return None
    _, column = failure.listing.place(signs[0].at)
    line = f"{text[: column - 1]}..{text[column:]}".strip()
    return f"+ works on numbers only, strings are joined with ..; write: {line}" if is_lua(line) else None


def _compared(failure: RuntimeFailure, *kinds: str | None) -> str | None:
    """`<` and its like between values of different types."""
    what = _compared_with_literal(failure)
    if "nil" in kinds:
        if what:
            return f"{what} is nil; where it may be missing write: ({what} or 0)"
        return "one side of the comparison is nil: check it first, or give it a default such as (x or 0)"
    if "null" in kinds:
        what = what or "one side of the comparison"
        return f"{what} is json.null, which is only for sending a null: write nil for a missing value"
    return None


def _compared_with_literal(failure: RuntimeFailure) -> str:
    """The value that the line's only comparison sets against a number."""
    match [node for node in failure.operations if node.operator in ("<", "<=", ">", ">=")]:
        case [p.Operation(left=p.Name() | p.Field() | p.Item() as left, right=p.Constant(value=int() | float()))]:
            return failure.listing.text_of(left).replace("…", "")
    return ""


# What functions are given


def _bad_argument(failure: RuntimeFailure, number: str, function: str, wanted: str, got: str) -> str | None:
    call = failure.call_of(function)
    if call is None:
        return None
    arguments = call.arguments()
    if got == "no value" and type(call.node) is p.Field and call.root not in LIBRARIES and function in _METHODS:
        return f"methods are called with a colon; write: {call.receiver}:{function}({', '.join(arguments)})"
    # Functions that the sandbox wraps count the value before the colon, as Lua itself does not.
    position = int(number) - (2 if type(call.node) is p.Method and function in _WRAPPED else 1)
    if got not in ("nil", "null") or not 0 <= position < len(arguments) or arguments[position] in ("…", "nil", "null"):
        return None
    kind = "nil" if got == "nil" else "json.null"
    return f"{arguments[position]} is {kind}, but {call.text} needs a {wanted} there: check it first"


def _bad_self(failure: RuntimeFailure, function: str) -> str | None:
    """`string:upper(x)` for `string.upper(x)`."""
    call = failure.call_of(function)
    if call is None or call.root not in LIBRARIES:
        return None
    return f"library functions are called with a dot; write: {call.root}.{function}({', '.join(call.arguments())})"


def _colon_call(failure: RuntimeFailure, function: str) -> str | None:
    """`tools:echo{…}`, `json:encode(x)`."""
    calls = failure.calls_of(function.rpartition(".")[2])
    with_colon = any(type(call.node) is p.Method for call in calls)
    return str(lua_vocabulary().fact("colon_call", tool=function)) if with_colon else None


def _loop_bound(failure: RuntimeFailure, part: str) -> str:
    listing, position = failure.listing, ("initial value", "limit", "step").index(part)
    if lengths := failure.fields_of("length"):
        return f"write: {lua_vocabulary().form('length', value=lengths[0].receiver)}"
    loops = (node for node in listing.all(p.Count) if listing.place(node.at)[0] == failure.line)
    bounds = [listing.text_of(node.bounds[position]) for node in loops if position < len(node.bounds)]
    known = bounds and bounds[0] not in ("…", "nil")
    return f"{bounds[0] if known else 'one of the bounds of the loop'} is nil, but loop bounds must be numbers"


def _returned_function(failure: RuntimeFailure) -> str | None:
    """`return f`, where that is all that the script returns."""
    outline = failure.listing.outline
    match outline.body.statements[-1:] if outline is not None else ():
        case (p.Return(values=(p.Name(name=name),)),):
            return f"{name} is a function; to return its result write: return {name}()"
    return None


# What lists and strings do not have


def _no_such_field(failure: RuntimeFailure, kind: str, name: str) -> str:
    """`list.length`, `list.items`, `text.value`."""
    receivers = {value.receiver for value in failure.fields_of(name)}
    receiver = receivers.pop() if len(receivers) == 1 else ""
    written = receiver if re.fullmatch(_PATH, receiver) else "list" if kind == "list" else "text"
    if name in LENGTHS:
        return f"write: {lua_vocabulary().form('length', value=written)}"
    if kind == "string":
        return f"{written} is text; if it is JSON, write: json.decode({written}).{name}"
    if name in _WRAPPERS:
        return f"{written} is the list itself: for _, item in ipairs({written}) do … end"
    loop = f"for _, item in ipairs({written}) do … item.{name} … end"
    return f"read it from an element, such as {written}[1].{name}, or loop: {loop}"


def _no_character(failure: RuntimeFailure, position: str) -> str:
    """`text[1]`, and `text[0]` as other languages count."""
    reads = {(value.receiver, value.text) for value in failure.fields_of("?")}
    receiver, text = reads.pop() if len(reads) == 1 else ("", "")
    key = text[len(receiver) + 1 : -1]
    if not re.fullmatch(_PATH, receiver) or not re.fullmatch(_PATH, key):
        receiver, key = receiver if re.fullmatch(_PATH, receiver) else "text", position
    if key == "0":
        return f"characters are counted from 1; write: {receiver}:sub(1, 1)"
    return f"strings cannot be indexed; write: {receiver}:sub({key}, {key})"


def _endless(failure: RuntimeFailure) -> str:
    name = next((function for function in failure.functions if function != "main chunk"), "")
    who = f"the {name}" if name else "a function"
    return f"{who} calls itself endlessly: add a case that returns without another call"


_RULES: tuple[tuple[str, Callable[..., str | None]], ...] = (
    (r"attempt to add a '(?:string|number)' with a '(?:string|number)'$", _added_text),
    (r"attempt to compare (?:two ([\w. ]{1,80}) values|([\w. ]{1,80}) with ([\w. ]{1,80}))$", _compared),
    (r"bad argument #(\d{1,3}) to '([\w ]{1,40})' \(([\w ]{1,40}) expected, got ([\w ]{1,40})\)$", _bad_argument),
    (r"calling '(\w{1,40})' on bad self", _bad_self),
    (r"([\w.]{1,120}): argument(?:\[1\])? is a library", _colon_call),
    (r"bad 'for' (limit|initial value|step) \(number expected, got nil\)$", _loop_bound),
    (r"value is a function", _returned_function),
    (r"'(\w{1,40})' is not defined$", foreign_constant),
    (r"a (list|string) has no field '(\w{1,100})'$", _no_such_field),
    (r"a string has no element (-?[\w.]{1,30})$", _no_character),
    (r"[\s\S]*stack overflow", _endless),
    (r"invalid order function for sorting", lambda _: lua_vocabulary().fact("comparator", sign="<").message),
    (
        r"json\.decode expects a string, got table$",
        lambda _: lua_vocabulary().fact("decoded", what="the value", function="json.decode").message,
    ),
)
"""How a message begins, and what looks for a hint, given what the groups have caught."""
