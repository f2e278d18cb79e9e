"""Runtime errors: which value could not do what was asked of it, and the Lua form of what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from moonbox.languages import program as p
from moonbox.languages.facts import FACTS, LENGTHS
from moonbox.languages.lua.explain import names
from moonbox.languages.lua.explain.slips import LONGEST_LINE, is_lua, with_line
from moonbox.languages.lua.vocabulary import BASE, LIBRARIES, lua_vocabulary, message_hint, tool_name

if TYPE_CHECKING:
    from moonbox.languages.lua.explain.values import RuntimeFailure

_FEW = 8
_PATH = r"[A-Za-z_][\w.\[\]]{0,60}"
_METHODS = LIBRARIES["string"] - {"format"}
_WRAPPED = frozenset({"rep", "gsub", "format"})
_WRAPPERS = frozenset(
    {"content", "data", "entries", "items", "list", "records", "result", "results", "rows", "value", "values"}
)
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
            return _of_message(failure)
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


def _of_message(failure: RuntimeFailure) -> str | None:
    """What to write instead; None where nothing is known for sure."""
    for pattern, handler in _RULES:
        match = re.match(pattern, failure.message)
        if match is not None and (hint := handler(failure, *match.groups())) is not None:
            return hint
    return message_hint(failure.message)


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
        case [p.Operation(left=p.Name() | p.Field() | p.Index() as left, right=p.Constant(value=int() | float()))]:
            return failure.listing.text_of(left).replace("…", "")
    return ""


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
    (r"'(\w{1,40})' is not defined$", names.foreign_constant),
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
