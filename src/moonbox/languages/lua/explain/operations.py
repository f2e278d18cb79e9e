"""Hints for arithmetic, joining, lengths and comparisons of values that cannot do it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from moonbox.languages.lua.explain.mend import LONGEST_LINE, is_lua
from moonbox.languages.lua.explain.site import calls_of, operand_before

if TYPE_CHECKING:
    from moonbox.languages.lua.explain.case import Case

__all__ = ["comparison_hint", "operation_hint", "text_arithmetic_hint"]

_TEXT = re.compile(r"attempt to (add|sub|mul|div|mod|pow|unm|idiv) a '(\w{1,40})' with a '(\w{1,40})'")
_COMPARE = re.compile(
    r"attempt to compare (?:two (?P<both>[\w. ]{1,80}) values|(?P<left>[\w. ]{1,80}) with (?P<right>[\w. ]{1,80}))"
)


def operation_hint(case: Case) -> str | None:
    """Arithmetic, .. and # on a value of the wrong type."""
    complaint, site = case.complaint, case.site
    assert complaint is not None
    what = site.text if site is not None and site.text != "…" else ""
    if complaint.type == "null":
        return f"{what or 'the value'} is JSON's null: test it first with ~= null"
    if complaint.type == "function":
        return f"{what} is a function: call it with {what}(…)" if what else None
    match complaint.action:
        case "concatenate":
            return _joined(complaint.type, what, case)
        case "perform arithmetic on":
            return _calculated(complaint.type, complaint.role, what, case)
        case "get length of" if complaint.type == "nil" and what:
            return f"{what} is nil, so it has no length: test it first"
    return None


def _joined(kind: str, what: str, case: Case) -> str | None:
    match kind:
        case "nil":
            if not what:
                return None
            return f'{what} is nil; where it may be missing write: ({what} or "")'
        case "boolean":
            return f"{what or 'a boolean'} must be made text first: tostring({what or 'x'})"
        case "table":
            return (
                f'a table is made text with json.encode({what or "x"}), a list with table.concat({what or "x"}, ", ")'
            )
    return None


def _calculated(kind: str, role: str, what: str, case: Case) -> str | None:
    if kind != "nil":
        return None
    if not role:
        if len(calls_of(case.listing, case.line, "tonumber")) == 1:
            return "tonumber gave nil: its argument is not a number"
        words = [token.text for token in case.line_words()[:1]]
        if words == ["print"] and case.line_words()[1:2] and case.line_words()[1].kind == "string":
            return "print needs parentheses around all of its argument: print(… + …)"
        return None
    if role == "field" and what:
        return f"{what} is nil; where it may be missing write: ({what} or 0)"
    return None


def text_arithmetic_hint(case: Case) -> str | None:
    """`"a" + "b"`, `"=" * 40`, `"%d" % 5`."""
    match = _TEXT.fullmatch(case.message)
    if match is None:
        return None
    action, left, right = match.groups()
    if "nil" in (left, right):
        return "one of the two is nil: test it first"
    if "table" in (left, right) or "boolean" in (left, right):
        return None
    match action:
        case "add":
            line = _with_dots(case)
            return f"+ only adds numbers, text is joined with ..{f'; write: {line}' if line else ''}"
        case "mul" if right == "number":
            return "* only multiplies numbers; text is repeated with string.rep(text, n)"
        case "mod":
            return "% only divides numbers; text is formatted with string.format(text, …)"
    return "text is no number here: convert it with tonumber(text)"


def _with_dots(case: Case) -> str | None:
    """The line with its only + as .. instead."""
    text = case.listing.line(case.line) if case.line is not None else None
    signs = [token for token in case.line_words() if token.text == "+" and token.kind == "op"]
    if text is None or len(text) > LONGEST_LINE or len(signs) != 1:
        return None
    column = signs[0].column
    line = f"{text[: column - 1]}..{text[column:]}".strip()
    return line if is_lua(line) else None


def comparison_hint(case: Case) -> str | None:
    """`<` and its like between values of different types."""
    match = _COMPARE.fullmatch(case.message)
    if match is None:
        return None
    kinds = {match["both"]} if match["both"] else {match["left"], match["right"]}
    if "nil" in kinds:
        what = _compared_with_literal(case)
        if what:
            return f"{what} is nil; where it may be missing write: ({what} or 0)"
        return "one side of the comparison is nil: test it first, or give it a default such as (x or 0)"
    if "null" in kinds:
        return (
            f"{_compared_with_literal(case) or 'one side of the comparison'} is JSON's null: test it first with ~= null"
        )
    if kinds == {"number", "string"}:
        return "text and numbers cannot be compared: convert the text with tonumber(text)"
    if kinds == {"table"}:
        return (
            "tables cannot be ordered; compare one of their fields, as in "
            "table.sort(list, function(a, b) return a.key < b.key end)"
        )
    if "function" in kinds:
        return "one side of the comparison is a function: call it"
    return None


def _compared_with_literal(case: Case) -> str:
    """The value that the line's only comparison sets against a number."""
    listing = case.listing
    span = listing.span(case.line) if case.line is not None and listing.whole else range(0)
    signs = [index for index in span if listing.tokens[index].text in ("<", "<=", ">", ">=")]
    if len(signs) != 1 or listing.tokens[signs[0] + 1].kind != "number":
        return ""
    what = operand_before(listing, signs[0])
    return "" if what == "…" else what
