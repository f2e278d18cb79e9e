"""What can be refused while parsing: conditions that are never boolean, indexes that never fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.rhai.syntax.nodes import (
    Array,
    Call,
    Char,
    Expr,
    Interpolated,
    Literal,
    Logic,
    Map,
    Range,
    start_of,
)
from moonbox.languages.rhai.syntax.state import fail

if TYPE_CHECKING:
    from moonbox.languages.rhai.syntax.state import Stream

__all__ = ["boolean", "check_index", "is_literal", "iterable", "no_assignment", "no_block"]

_HINT_MAP = "iterate over the keys of a map: for key in map.keys() { ... }"


def boolean(expr: Expr) -> Expr:
    """Fail if the expression can never be a boolean."""
    what = _kind(expr)
    if what is not None and what != "a boolean":
        fail(f"Expecting a boolean expression, not {what}", start_of(expr))
    return expr


def iterable(expr: Expr) -> Expr:
    """Fail if the expression can never be iterated over."""
    what = _kind(expr)
    if what is not None and what not in ("a string", "an array"):
        hint = _HINT_MAP if what == "an object map" else None
        fail(f"Expecting an iterable value, not {what}", start_of(expr), hint)
    return expr


def _kind(expr: Expr) -> str | None:
    if isinstance(expr, Literal):
        value = expr.value
        if value is None:
            return "()"
        names = {bool: "a boolean", int: "a number", float: "a floating-point number", Char: "a character"}
        return names.get(type(value), "a string")
    if isinstance(expr, Interpolated):
        return "a string"
    if isinstance(expr, Array):
        return "an array"
    return "an object map" if isinstance(expr, Map) else None


def check_index(base: Expr, index: Expr) -> None:
    """Fail if a literal can never be indexed like this."""
    is_map = isinstance(base, Map)
    listed = isinstance(base, Array | Interpolated) or (isinstance(base, Literal) and type(base.value) in (int, str))
    if not is_map and not listed:
        return
    if isinstance(index, Logic) and index.op in ("&&", "||"):
        what = "a boolean"
    elif isinstance(index, Interpolated):
        what = "a string"
    elif isinstance(index, Literal):
        value = index.value
        names = {bool: "a boolean", int: "a number", float: "a float", Char: "a character", type(None): "()"}
        what = names.get(type(value), "a string")
    else:
        return
    if is_map:
        if what != "a string":
            fail(f"Object map expects string index, not {what}", start_of(index))
    elif what == "a string":
        fail("Array, string or bit-field expects numeric index, not a string", start_of(index))
    elif what != "a number":
        fail(f"Array, string or bit-field expects integer index, not {what}", start_of(index))


def no_block(stream: Stream, what: str) -> None:
    """Fail if a block comes where an expression must."""
    if stream.peek().kind == "{":
        stream.fail(f"Expecting {what} expression", stream.peek().pos)


def no_assignment(stream: Stream) -> None:
    """Fail on = where == was meant."""
    if stream.peek().kind == "=":
        stream.fail("Possibly a typo of '=='?", stream.peek().pos)


def is_literal(expr: Expr) -> bool:
    """Whether a switch case may have this value."""
    if isinstance(expr, Literal):
        return True
    if isinstance(expr, Array):
        return all(is_constant(item) for item in expr.items)
    if isinstance(expr, Map):
        return all(is_constant(item) for _, item in expr.items)
    if isinstance(expr, Interpolated):
        return all(is_constant(item) for item in expr.parts)
    if isinstance(expr, Range):
        ends = (expr.left, expr.right)
        return all(isinstance(end, Literal) and (end.value is None or type(end.value) is int) for end in ends)
    return isinstance(expr, Call) and expr.name == "Fn" and not expr.path and len(expr.args) == 1


def is_constant(expr: Expr) -> bool:
    """Whether an expression is made of literals only."""
    if isinstance(expr, Literal):
        return True
    if isinstance(expr, Array):
        return all(is_constant(item) for item in expr.items)
    if isinstance(expr, Map):
        return all(is_constant(item) for _, item in expr.items)
    return isinstance(expr, Interpolated) and all(is_constant(item) for item in expr.parts)
