"""Hints for operators and library functions that refuse the values they are given."""

from __future__ import annotations

import re

from moonbox.languages.lua.explain.slips import LONGEST_LINE, is_lua
from moonbox.languages.lua.explain.values import RuntimeFailure, ScriptValue, operand_before
from moonbox.languages.lua.syntax.parser import expression_end
from moonbox.languages.lua.vocabulary import LIBRARIES, lua_vocabulary

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
    listing = failure.listing
    signs = [index for index in failure.span if listing.tokens[index].text in ("<", "<=", ">", ">=")]
    if len(signs) != 1 or listing.tokens[signs[0] + 1].kind != "number":
        return ""
    what = operand_before(listing, signs[0])
    return "" if what == "…" else what


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
    dotted = call.index > call.start and call.listing.tokens[call.index - 1].text == "."
    if not dotted or call.root in LIBRARIES or call.token.text not in LIBRARIES["string"]:
        return None
    return f"methods are called with a colon; write: {call.receiver}:{call.token.text}({', '.join(call.arguments())})"


def _missing_argument(call: ScriptValue, number: int, got: str, wanted: str) -> str | None:
    arguments = call.arguments()
    method = call.index > call.start and call.listing.tokens[call.index - 1].text == ":"
    # Functions that the sandbox wraps count the value before the colon, as Lua itself does not.
    position = number - 1
    if method and call.token.text in _WRAPPED:
        position -= 1
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
    words = failure.line_words()
    for index, token in enumerate(words):
        if token.text == "length" and index > 1 and words[index - 1].text == ".":
            return f"write: {lua_vocabulary().form('length', value=words[index - 2].text)}"
    return f"{_bound(failure, part) or 'one of the bounds of the loop'} is nil, but loop bounds must be numbers"


def _bound(failure: RuntimeFailure, part: str) -> str:
    """The text of a bound in the loop's header."""
    tokens = failure.listing.tokens
    header = next((index for index in failure.span if tokens[index].text == "for"), None)
    if header is None or tokens[header + 2].text != "=":
        return ""
    first = header + 3
    for name in ("initial value", "limit", "step"):
        stop = expression_end(tokens, first)
        if stop is None or name == part:
            text = failure.listing.text(first, stop) if stop else ""
            return text if text not in ("…", "nil") else ""
        first = stop + 1
    return ""


def _returned_name(failure: RuntimeFailure) -> str:
    """The name that the script returns, if it returns just that."""
    parsed = failure.listing.parsed
    tokens = failure.listing.tokens
    for index in parsed.returns if parsed else ():
        if tokens[index + 1].kind == "name" and tokens[index + 2].kind == "eof":
            return tokens[index + 1].text
    return ""
