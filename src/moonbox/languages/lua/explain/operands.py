"""Hints for operators and library functions that refuse the values they are given."""

from __future__ import annotations

import re

from moonbox.languages.lua.explain.slips import LONGEST_LINE, is_lua
from moonbox.languages.lua.explain.values import RuntimeFailure, ScriptValue, operand_before
from moonbox.languages.lua.syntax.parser import expression_end
from moonbox.languages.lua.vocabulary import LIBRARIES, lua_vocabulary

_TEXT = re.compile(r"attempt to (add|sub|mul|div|mod|pow|unm|idiv) a '(\w{1,40})' with a '(\w{1,40})'")
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
            return _joined(complaint.type, what, failure)
        case "perform arithmetic on":
            return _calculated(complaint.type, complaint.role, what, failure)
        case "get length of" if complaint.type == "nil" and what:
            return f"{what} is nil, so it has no length: check it first"
    return None


def _joined(kind: str, what: str, failure: RuntimeFailure) -> str | None:
    match kind:
        case "nil":
            if not what:
                return None
            return f'{what} is nil; where it may be missing write: ({what} or "")'
        case "boolean":
            return f"{what or 'a boolean'} must be converted to a string first: tostring({what or 'x'})"
        case "table":
            name = what or "x"
            return f'convert a table to a string with json.encode({name}), a list with table.concat({name}, ", ")'
    return None


def _calculated(kind: str, role: str, what: str, failure: RuntimeFailure) -> str | None:
    if kind != "nil":
        return None
    if not role:
        if len(failure.calls_of("tonumber")) == 1:
            return "tonumber returned nil: its argument is not a number"
        words = [token.text for token in failure.line_words()[:1]]
        if words == ["print"] and failure.line_words()[1:2] and failure.line_words()[1].kind == "string":
            return "print needs parentheses around all of its argument: print(… + …)"
        return None
    if role == "field" and what:
        return f"{what} is nil; where it may be missing write: ({what} or 0)"
    return None


def text_arithmetic_hint(failure: RuntimeFailure) -> str | None:
    """`"a" + "b"`, `"=" * 40`, `"%d" % 5`."""
    match = _TEXT.fullmatch(failure.message)
    if match is None:
        return None
    action, left, right = match.groups()
    if "nil" in (left, right):
        return "one of the two is nil: check it first"
    if "table" in (left, right) or "boolean" in (left, right):
        return None
    match action:
        case "add":
            line = _with_dots(failure)
            return f"+ works on numbers only, strings are joined with ..{f'; write: {line}' if line else ''}"
        case "mul" if right == "number":
            return "* works on numbers only; repeat a string with string.rep(s, n)"
        case "mod":
            return "% works on numbers only; format strings with string.format(format, …)"
    return "arithmetic needs numbers: convert the string with tonumber(s)"


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
    if kinds == {"number", "string"}:
        return "strings and numbers cannot be compared: convert the string with tonumber(s)"
    if kinds == {"table"}:
        return (
            "tables cannot be ordered; compare one of their fields, as in "
            "table.sort(list, function(a, b) return a.key < b.key end)"
        )
    if "function" in kinds:
        return "one side of the comparison is a function: call it"
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
_INVALID = re.compile(r"invalid value \((?P<type>\w+)\) at index (?P<index>\d+) in table for 'concat'")
_LOOP = re.compile(
    r"(?:bad 'for' (?P<part>limit|initial value|step) \(number expected, got (?P<got>\w+)\)|'for' step is zero)"
)
_LEAVES = re.compile(r"(?P<path>(?:value|argument|[\w.]+: argument|json\.encode: value)[^\s]*) is (?P<what>.+)")
_GOT = re.compile(r"(?P<wanted>[\w ]{1,40}) expected, got (?P<got>[\w ]{1,40})")
_INSERT = "write table.insert(list, value) to append, table.insert(list, position, value) to insert"


def argument_hint(failure: RuntimeFailure) -> str | None:
    message = failure.message
    if match := _BAD.fullmatch(message):
        return _bad_argument(failure, match["function"], int(match["number"]), match["why"])
    if match := _SELF.match(message):
        return _bad_self(failure, match["function"])
    if match := _INVALID.fullmatch(message):
        return _not_joined(match["type"], match["index"])
    if match := _LOOP.fullmatch(message):
        return _loop_bound(failure, match["part"] or "", match["got"] or "")
    if message.startswith("invalid order function for sorting"):
        return lua_vocabulary().fact("comparator", sign="<").message
    if match := _LEAVES.match(message):
        return _cannot_leave(failure, match["path"], match["what"])
    return None


def _bad_argument(failure: RuntimeFailure, function: str, number: int, why: str) -> str | None:
    got = _GOT.fullmatch(why)
    calls = failure.calls_of(function)
    call = calls[0] if len(calls) == 1 else None
    if function == "for iterator" and got is not None:
        return f"pairs needs a table, but this is a {got['got']}" if got["got"] != "nil" else None
    if function == "insert" and "position out of bounds" in why:
        return f"{_INSERT}; a position is from 1 to #list + 1"
    if function == "format":
        return _format(why, call, number)
    if got is not None and got["got"] == "no value" and call is not None and (hint := _dot_for_colon(failure, call)):
        return hint
    if "number has no integer representation" in why:
        return "an integer is needed: use math.floor(x) or x // 1"
    if got is None or call is None or got["got"] not in ("nil", "null"):
        return None
    return _missing_argument(call, number, got["got"], got["wanted"])


def _format(why: str, call: ScriptValue | None, number: int) -> str | None:
    if "number has no integer representation" in why:
        return "%d takes integers only: use %.2f for others, or math.floor(x)"
    if why.startswith("number expected, got string"):
        return "%d and %f take numbers: use %s for strings, or tonumber(s)"
    if why in ("no value", "bad argument") or "got no value" in why:
        return "there are more % options than values: give one value for each, and write %% for a percent sign"
    if why.startswith("number expected, got nil"):
        return _missing_argument(call, number, "nil", "number") if call is not None else None
    return None


def _dot_for_colon(failure: RuntimeFailure, call: ScriptValue) -> str | None:
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
    name = f"{call.text}"
    kind = "nil" if got == "nil" else "json.null"
    return f"{arguments[position]} is {kind}, but {name} needs a {wanted} there: check it first"


_WRAPPED = frozenset({"rep", "gsub", "format"})


def _bad_self(failure: RuntimeFailure, function: str) -> str | None:
    """`string:upper(x)` for `string.upper(x)`."""
    calls = failure.calls_of(function)
    if len(calls) != 1 or calls[0].root not in LIBRARIES:
        return None
    call = calls[0]
    return f"library functions are called with a dot; write: {call.root}.{function}({', '.join(call.arguments())})"


def _not_joined(kind: str, index: str) -> str | None:
    if kind == "nil":
        return f"the list has no element {index}: table.concat needs all of 1 to #list"
    if kind == "table":
        return "table.concat joins only strings and numbers: build a list of strings first"
    return "table.concat joins only strings and numbers: use tostring on each element first"


def _loop_bound(failure: RuntimeFailure, part: str, got: str) -> str | None:
    if not part:
        return "the step of a loop must not be 0"
    words = failure.line_words()
    for index, token in enumerate(words):
        if token.text == "length" and index > 1 and words[index - 1].text == "." and got == "nil":
            return f"write: {lua_vocabulary().form('length', value=words[index - 2].text)}"
    match got:
        case "string":
            return "loop bounds must be numbers: convert the string with tonumber(s)"
        case "table" if part == "limit":
            return "loop bounds must be numbers: the length of a list is #list"
        case "nil":
            return f"{_bound(failure, part) or 'one of the bounds of the loop'} is nil, but loop bounds must be numbers"
    return None


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


def _cannot_leave(failure: RuntimeFailure, path: str, what: str) -> str | None:
    if what.startswith("a function"):
        name = _returned_name(failure) if path == "value" else ""
        if name:
            return f"{name} is a function; to return its result write: return {name}()"
        return "only data can leave the script: call the function, or remove the field"
    if what.startswith(("NaN", "infinity", "-infinity")):
        return "it usually comes from a division by 0: check the divisor first"
    if what.endswith("cannot leave the script") and "again" in what:
        return "remove the field that refers back to the table"
    return None


def _returned_name(failure: RuntimeFailure) -> str:
    """The name that the script returns, if it returns just that."""
    parsed = failure.listing.parsed
    tokens = failure.listing.tokens
    for index in parsed.returns if parsed else ():
        if tokens[index + 1].kind == "name" and tokens[index + 2].kind == "eof":
            return tokens[index + 1].text
    if len(tokens) == 2 and tokens[0].kind == "name":
        return tokens[0].text
    return ""
