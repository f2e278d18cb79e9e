"""Hints for operators and library functions that refuse the values they are given."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from moonbox.languages import program as p
from moonbox.languages.lua.explain.slips import LONGEST_LINE, is_lua
from moonbox.languages.lua.vocabulary import LIBRARIES, lua_vocabulary

if TYPE_CHECKING:
    from moonbox.languages.lua.explain.values import RuntimeFailure, ScriptValue

_ADDED = re.compile(r"attempt to add a '(?:string|number)' with a '(?:string|number)'")
_COMPARE = re.compile(
    r"attempt to compare (?:two (?P<both>[\w. ]{1,80}) values|(?P<left>[\w. ]{1,80}) with (?P<right>[\w. ]{1,80}))"
)


def operation_hint(failure: RuntimeFailure) -> str | None:
    """Arithmetic, .. and # on a value of the wrong type."""
    complaint, value = failure.complaint, failure.value
    what = value.text if value is not None and value.text != "…" else ""
    if complaint.type == "null":
        return f"{what or 'the value'} is json.null, which is only for sending a null: write nil for a missing value"
    if complaint.type == "function":
        return f"{what} is a function: call it with {what}(…)" if what else None
    match complaint.action:
        case "concatenate":
            return _joined(complaint.type, what)
        case "perform arithmetic on":
            return _calculated(failure, what)
        case "get length of" if complaint.type == "nil" and what:
            return f"{what} is nil, so it has no length: check it first"
    return None


def _joined(kind: str, what: str) -> str | None:
    match kind:
        case "nil" if what:
            return f'{what} is nil; where it may be missing write: ({what} or "")'
        case "boolean":
            return f"{what or 'a boolean'} must be converted to a string first: tostring({what or 'x'})"
        case "table":
            name = what or "x"
            return f'convert a table to a string with json.encode({name}), a list with table.concat({name}, ", ")'
    return None


def _calculated(failure: RuntimeFailure, what: str) -> str | None:
    complaint = failure.complaint
    if (complaint.type, complaint.role) == ("nil", "") and len(failure.calls_of("tonumber")) == 1:
        return "tonumber returned nil: its argument is not a number"
    if (complaint.type, complaint.role) == ("nil", "field") and what:
        return f"{what} is nil; where it may be missing write: ({what} or 0)"
    return None


def text_arithmetic_hint(failure: RuntimeFailure) -> str | None:
    """`"a" + "b"`."""
    line = _with_dots(failure) if _ADDED.fullmatch(failure.message) else None
    return f"+ works on numbers only, strings are joined with ..; write: {line}" if line else None


def _with_dots(failure: RuntimeFailure) -> str | None:
    """The line with its only + as .. instead."""
    text = failure.listing.line(failure.line) if failure.line is not None else None
    signs = [token for token in failure.line_words() if token.text == "+" and token.kind == "op"]
    if text is None or len(text) > LONGEST_LINE or len(signs) != 1:
        return None
    column = signs[0].column
    line = f"{text[: column - 1]}..{text[column:]}".strip()
    return line if is_lua(line) else None


def comparison_hint(failure: RuntimeFailure) -> str | None:
    """`<` and its like between values of different types."""
    match = _COMPARE.fullmatch(failure.message)
    if match is None:
        return None
    kinds = {match["both"]} if match["both"] else {match["left"], match["right"]}
    if "nil" in kinds:
        what = _compared_with_literal(failure)
        if what:
            return f"{what} is nil; where it may be missing write: ({what} or 0)"
        return "one side of the comparison is nil: check it first, or give it a default such as (x or 0)"
    if "null" in kinds:
        what = _compared_with_literal(failure) or "one side of the comparison"
        return f"{what} is json.null, which is only for sending a null: write nil for a missing value"
    return None


def _compared_with_literal(failure: RuntimeFailure) -> str:
    """The value that the line's only comparison sets against a number."""
    comparisons = [node for node in failure.operations if node.operator in ("<", "<=", ">", ">=")]
    left, right = (comparisons[0].left, comparisons[0].right) if len(comparisons) == 1 else (None, None)
    if not isinstance(left, p.Name | p.Field | p.Item) or type(right) is not p.Constant or right.value is None:
        return ""
    text = failure.listing.text_of(left)
    return "" if text == "…" else text


_BAD = re.compile(r"bad argument #(?P<number>\d{1,3}) to '(?P<function>[\w ]{1,40})' \((?P<why>[^\n]{1,200})\)")
_SELF = re.compile(r"calling '(?P<function>\w{1,40})' on bad self")
_LOOP = re.compile(r"bad 'for' (?P<part>limit|initial value|step) \(number expected, got nil\)")
_GOT = re.compile(r"(?P<wanted>[\w ]{1,40}) expected, got (?P<got>[\w ]{1,40})")


def argument_hint(failure: RuntimeFailure) -> str | None:
    message = failure.message
    if match := _BAD.fullmatch(message):
        return _bad_argument(failure, match["function"], int(match["number"]), match["why"])
    if match := _SELF.match(message):
        return _bad_self(failure, match["function"])
    if match := _LOOP.fullmatch(message):
        return _loop_bound(failure, match["part"])
    if message.startswith("invalid order function for sorting"):
        return lua_vocabulary().fact("comparator", sign="<").message
    name = _returned_name(failure) if message.startswith("value is a function") else ""
    return f"{name} is a function; to return its result write: return {name}()" if name else None


def _bad_argument(failure: RuntimeFailure, function: str, number: int, why: str) -> str | None:
    got = _GOT.fullmatch(why)
    calls = failure.calls_of(function)
    if got is None or len(calls) != 1:
        return None
    if got["got"] == "no value" and function != "format":
        return _dot_for_colon(calls[0])
    return _missing_argument(calls[0], number, got["got"], got["wanted"]) if got["got"] in ("nil", "null") else None


def _dot_for_colon(call: ScriptValue) -> str | None:
    """`name.upper()` for `name:upper()`."""
    if type(call.node) is not p.Field or call.root in LIBRARIES or call.name not in LIBRARIES["string"]:
        return None
    return f"methods are called with a colon; write: {call.receiver}:{call.name}({', '.join(call.arguments())})"


def _missing_argument(call: ScriptValue, number: int, got: str, wanted: str) -> str | None:
    arguments = call.arguments()
    # Functions that the sandbox wraps count the value before the colon, as Lua itself does not.
    position = number - 2 if type(call.node) is p.Method and call.name in _WRAPPED else number - 1
    if not 0 <= position < len(arguments) or arguments[position] in ("…", "nil", "null"):
        return None
    kind = "nil" if got == "nil" else "json.null"
    return f"{arguments[position]} is {kind}, but {call.text} needs a {wanted} there: check it first"


_WRAPPED = frozenset({"rep", "gsub", "format"})


def _bad_self(failure: RuntimeFailure, function: str) -> str | None:
    """`string:upper(x)` for `string.upper(x)`."""
    calls = failure.calls_of(function)
    if len(calls) != 1 or calls[0].root not in LIBRARIES:
        return None
    call = calls[0]
    return f"library functions are called with a dot; write: {call.root}.{function}({', '.join(call.arguments())})"


def _loop_bound(failure: RuntimeFailure, part: str) -> str:
    lengths = failure.fields_of("length")
    if lengths:
        return f"write: {lua_vocabulary().form('length', value=lengths[0].receiver)}"
    return f"{_bound(failure, part) or 'one of the bounds of the loop'} is nil, but loop bounds must be numbers"


def _bound(failure: RuntimeFailure, part: str) -> str:
    """The text of a bound in the loop's header."""
    listing = failure.listing
    for node in listing.all(p.Count):
        if listing.place(node.at)[0] == failure.line:
            bound = dict(zip(("initial value", "limit", "step"), node.bounds, strict=False)).get(part)
            text = listing.text_of(bound) if bound is not None else ""
            return text if text not in ("…", "nil") else ""
    return ""


def _returned_name(failure: RuntimeFailure) -> str:
    """The name that the script returns, if it returns just that."""
    outline = failure.listing.outline
    last = outline.body.statements[-1] if outline is not None and outline.body.statements else None
    value = last.values[0] if type(last) is p.Return and len(last.values) == 1 else None
    return value.name if type(value) is p.Name else ""
