"""Operators: values that cannot be added, joined or compared, and comparisons that are always false."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from moonbox.check import reads, slips
from moonbox.check import values as v
from moonbox.compact import short
from moonbox.languages import program as p
from moonbox.schema.tree import kind_of
from moonbox.suggest import nearest

if TYPE_CHECKING:
    from moonbox.check.walk import Walk

_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "^", "**"})
_ORDER = frozenset({"<", "<=", ">", ">="})
_JUNCTIONS = {"or": "==", "||": "==", "and": "~=", "&&": "!="}
"""With the comparison that asks for one of several values there."""
_EQUALITY = frozenset({"==", "~=", "!="})
_NUMERAL = r"\s*[-+]?(?:0[xX][0-9a-fA-F.]+|\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*"
_quoted = partial(short, limit=60)
_TYPES = frozenset({"nil", "boolean", "number", "string", "table", "function", "thread", "userdata"})


def operation(walk: Walk, node: p.Operation) -> v.Value:
    """What an operator makes of two values."""
    operator = node.operator
    if operator in _JUNCTIONS:
        return _junction(walk, node)
    if operator in _EQUALITY and _is_nothing(node.right):
        walk.test(node.left)
        walk.lenient += 1  # the script asks whether it is there
        walk.value(node.left)
        walk.lenient -= 1
        return v.BOOLEAN
    left, right = walk.value(node.left), walk.value(node.right)
    if operator in _EQUALITY:
        if walk.language.runtime is None:
            _explicit_null(walk, node)
        _equality(walk, node, left, right)
        return v.BOOLEAN
    if operator in _ORDER:
        if isinstance(left, v.Data) or isinstance(right, v.Data):
            _order(walk, node, left, right)
        return v.BOOLEAN
    if operator == "..":
        _no_table(walk, node.left.at, node.left, left, "cannot be joined to a string")
        _no_table(walk, node.right.at, node.right, right, "cannot be joined to a string")
        return v.STRING
    if operator in _ARITHMETIC and walk.language.runtime is None:  # Lua makes numbers of text
        _summand(walk, node, node.left, left)
        _summand(walk, node, node.right, right)
        return v.NUMBER
    return None


def _junction(walk: Walk, node: p.Operation) -> v.Value:
    """`a or b`, `a and b`: what is only tried, beside another way to the same value, need not be there."""
    parts = [node.left, node.right]
    while isinstance(first := parts[0], p.Operation) and first.operator == node.operator:
        parts[:1] = [first.left, first.right]
    bases = [_tried(part, node.operator) for part in parts]
    values = []
    for part, base in zip(parts, bases, strict=True):
        tries = bool(base) and bases.count(base) > 1
        walk.test(part if part is not parts[-1] else None)
        walk.lenient += tries
        values.append(walk.value(part))
        walk.lenient -= tries
    plain = type(parts[-1]) is p.Constant or (type(parts[-1]) is p.Record and not parts[-1].entries)
    is_default = node.operator in ("or", "||") and len(values) == 2 and plain
    return values[0] if is_default and isinstance(values[0], v.Data) else None


def _tried(part: p.Expression, junction: str) -> str:
    """The variable that a part of `a or b` reads, or that a part of either compares; "" for anything else."""
    if type(part) is p.Operation and part.operator == _JUNCTIONS[junction]:
        compared = part.left
        return p.root(compared.arguments[0] if type(compared) is p.FunctionCall and compared.arguments else compared)
    return p.root(part) if junction in ("or", "||") else ""


def _explicit_null(walk: Walk, node: p.Operation) -> None:
    """`r.manager == json.null`: what came in as null reads as nil."""
    for side, other in ((node.left, node.right), (node.right, node.left)):
        if type(side) is p.Field and p.path(side) == ["json", "null"] and type(other) in (p.Name, p.Field, p.Index):
            always = "always false" if node.operator == "==" else "always true"
            walk.note(
                node.at,
                f"null in a result reads as nil, so that this comparison is {always}; json.null is for sending one",
                f"write: {walk.text(other)} {node.operator} nil",
            )
            return


def _is_nothing(node: p.Expression) -> bool:
    return (type(node) is p.Constant and node.value is None) or (type(node) is p.Name and node.name == "null")


def _summand(walk: Walk, node: p.Operation, side: p.Expression, value: v.Value) -> None:
    if type(side) is p.Constant:
        if not isinstance(side.value, str) or re.fullmatch(_NUMERAL, side.value):
            return
        hint = "join strings with .." if node.operator == "+" else None
        walk.error(node.at, f"'{node.operator}' cannot calculate with the string {_quoted(side.value)}", hint)
        return
    _no_table(walk, node.at, side, value, "cannot be calculated with")


def _no_table(walk: Walk, at: int, side: p.Expression, value: v.Value, cannot: str) -> None:
    if isinstance(value, v.Data) and (kinds := value.facts.kinds) and kinds <= v.TABLES:
        hint = f"write: json.encode({walk.text(side)})" if "joined" in cannot else reads.lists_within(value)
        walk.about_result(value, side, at, f"is {_table(kinds)}: it {cannot}", hint)


def _table(kinds: frozenset[str]) -> str:
    return "a list" if kinds == v.LIST else "an object" if kinds == v.OBJECT else "a table"


def _order(walk: Walk, node: p.Operation, left: v.Value, right: v.Value) -> None:
    for side, value, other in ((node.left, left, right), (node.right, right, left)):
        if not isinstance(value, v.Data) or not (kinds := value.facts.kinds):
            continue
        others, problem, hint = v.kinds_of(other) or frozenset(), "", None
        if kinds <= v.TABLES:
            problem = f"is {_table(kinds)}: it cannot be compared with {node.operator}"
        elif kinds == v.TEXT and others and others <= v.NUMBERS:
            problem = "is a string: it cannot be compared with a number"
            hint = f"write: {walk.words.form('number', value=walk.text(side))}"
        elif kinds <= v.NUMBERS and others == v.TEXT:
            problem = "is a number: it cannot be compared with a string"
        if problem:
            walk.about_result(value, side, node.at, problem, hint)
            return


def _equality(walk: Walk, node: p.Operation, left: v.Value, right: v.Value) -> None:
    for side, value, other in ((node.left, left, node.right), (node.right, right, node.left)):
        if type(other) is not p.Constant or other.value is None:
            continue
        if type(side) is p.Other and side.what == "not" and not isinstance(other.value, bool):
            inner = walk.text(part) if isinstance(part := side.parts[0], slips.QUOTABLE) else "a"
            walk.error(
                node.at,
                f"'not' applies to {inner} alone: the comparison with {_quoted(other.value)} is always false",
                f"write: {inner} {'~=' if node.operator == '==' else '=='} {_quoted(other.value)}",
            )
            return
        if _is_type_call(walk, side) and isinstance(other.value, str) and other.value not in _TYPES:
            walk.error(
                node.at,
                f"type never returns {_quoted(other.value)}",
                'lists and objects are "table"; the others are "nil", "boolean", "number", "string" and "function"',
            )
            return
        if isinstance(value, v.Data):
            _compared(walk, node, side, value, other.value)
            if node.operator != "==" and isinstance(other.value, bool):
                slips.negation(walk, node.at, side, value)


def _compared(walk: Walk, node: p.Operation, side: p.Expression, value: v.Data, constant: Any) -> None:
    facts = value.facts
    kinds = facts.kinds
    walk.lenient += not constant  # "", 0 and false: the script asks whether it is there
    outcome = "always false" if node.operator == "==" else "always true"
    if facts.options and not any(type(option) is type(constant) and option == constant for option in facts.options):
        texts = [option for option in facts.options if isinstance(option, str)]
        close = nearest(constant, texts, parts=True) if isinstance(constant, str) else []
        listed = ", ".join(_quoted(option) for option in facts.options[:20])
        hint = f"did you mean {_quoted(close[0])}? it is one of: {listed}" if close else f"it is one of: {listed}"
        walk.about_result(value, side, node.at, f"is never {_quoted(constant)}: the comparison is {outcome}", hint)
    elif kinds and kind_of(constant) not in kinds and not (kind_of(constant) in v.NUMBERS and kinds & v.NUMBERS):
        wanted = " or ".join(sorted(kinds))
        problem = f"is of type {wanted}, never {_quoted(constant)}: the comparison is {outcome}"
        walk.about_result(value, side, node.at, problem)
    walk.lenient -= not constant


def _is_type_call(walk: Walk, node: p.Expression) -> bool:
    is_call = type(node) is p.FunctionCall and p.path(node.function) == ["type"] and walk.language.runtime is None
    return is_call and walk.quiet(node.function) == v.Library("type")  # type: ignore[union-attr]  # a FunctionCall
