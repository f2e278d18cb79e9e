"""Types: what is known of a variable's value before the script runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.rhai.syntax.nodes import (
    Array,
    Binary,
    BlockExpr,
    Call,
    Chain,
    Char,
    Closure,
    Expr,
    Interpolated,
    Literal,
    Logic,
    Map,
    Range,
    Unary,
    Variable,
)

if TYPE_CHECKING:
    from moonbox.languages.rhai.analysis.scopes import Scopes
    from moonbox.languages.rhai.analysis.variables import Var

__all__ = ["NUMBERS", "SCALARS", "infer", "type_of"]

NUMBERS = frozenset(("int", "float", "num"))
SCALARS = NUMBERS | {"bool", "str", "char", "unit", "fn", "range"}
_OF_LITERAL = {bool: "bool", int: "int", float: "float", str: "str", Char: "char", type(None): "unit"}
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_ARITHMETIC = frozenset(("+", "-", "*", "/", "%", "**"))
_BITS = frozenset(("<<", ">>", "&", "|", "^"))
_ROUNDS = 12


def infer(scopes: Scopes) -> None:
    """Give each variable its type: what all its values have in common, or "any"."""
    pending = [var for var in scopes.vars if "any" not in var.values]
    for var in pending:
        var.type = "none"
    for _ in range(_ROUNDS):
        changed = False
        for var in pending:
            found = var.type
            for value in var.values:
                found = _join(found, value if isinstance(value, str) else type_of(value, scopes))
            if found != var.type:
                var.type, changed = found, True
        if not changed:
            break
    else:
        changed = True
    if changed or any(var.type == "none" for var in pending):
        for var in pending:
            var.type = "any"


def _join(left: str, right: str) -> str:
    if left == right or right == "none":
        return left
    if left == "none":
        return right
    return "num" if left in NUMBERS and right in NUMBERS else "any"


def type_of(expr: Expr, scopes: Scopes) -> str:
    """The type of an expression, as far as it is certain."""
    match expr:
        case Literal():
            return _OF_LITERAL[type(expr.value)]
        case Variable():
            var = scopes.variable(expr) if not expr.path else None
            return _var(var)
        case Binary():
            return _binary(expr, scopes)
        case Interpolated():
            return "str"
        case Array():
            return "arr"
        case Map():
            return "map"
        case Closure():
            return "fn"
        case Range():
            return "range"
        case Unary():
            if expr.op == "!":
                return "bool"
            inner = type_of(expr.operand, scopes)
            return inner if inner in NUMBERS else "any"
        case Logic():
            return "any" if expr.op == "??" else "bool"
        case Chain():
            return _chain(expr, scopes)
        case Call():
            if expr.name == "contains" and len(expr.args) == 2 and ("contains", 2) not in scopes.functions:
                return "bool"
        case BlockExpr():
            return "any"
    return "any"


def _var(var: Var | None) -> str:
    return "any" if var is None else var.type


def _chain(expr: Chain, scopes: Scopes) -> str:
    """The length of something known to be an array is an integer."""
    if len(expr.steps) == 1 and type_of(expr.root, scopes) in ("arr", "none"):
        step = expr.steps[0]
        own = (step.name, len(step.args)) in scopes.methods
        if step.name == "len" and not step.args and step.kind != "index" and not (own and step.kind == "method"):
            return "int"
    return "any"


def _binary(expr: Binary, scopes: Scopes) -> str:
    if expr.op in _COMPARISONS:
        return "bool"
    left, right = type_of(expr.left, scopes), type_of(expr.right, scopes)
    op = expr.op
    if op[0] == "=":  # an assignment with an operator
        op = op[1:]
        if (left in ("arr", "map") and op == "+") or (left == "str" and op in "+-"):
            return left
    return _operator(op, left, right)


def _operator(op: str, left: str, right: str) -> str:
    if "none" in (left, right):
        return "none"
    if op in _ARITHMETIC and left in NUMBERS and right in NUMBERS:
        if "float" in (left, right):
            return "float"
        return "int" if left == right == "int" else "num"
    if op in _BITS:
        if left == right == "int":
            return "int"
        return "bool" if left == right == "bool" else "any"
    if op == "+" and "str" in (left, right) and {left, right} <= SCALARS:
        return "str"
    if op == "+" and left == right == "arr":
        return "arr"
    return "any"
