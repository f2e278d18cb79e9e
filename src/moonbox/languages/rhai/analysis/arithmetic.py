"""Operators on constants, with the reference's results or none at all."""

from __future__ import annotations

import math
import operator
import sys
from typing import TYPE_CHECKING, Any

from moonbox.languages.rhai.syntax.nodes import Char

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NO_VALUE", "combine"]

NO_VALUE = object()
"""What `combine` returns where the operation must be left to the run: it fails there, or calls a function."""

_LEAST, _MOST = -(2**63), 2**63 - 1
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_LONGEST = 200  # characters of a folded string


def combine(op: str, left: object, right: object) -> object:
    """The value of a binary operation on two literals, or NO_VALUE."""
    kinds = type(left), type(right)
    if kinds == (int, int):
        return _integers(op, left, right)
    if set(kinds) <= {int, float}:
        return _floats(op, left, right)
    if kinds == (bool, bool):
        return _booleans(op, left, right)
    if set(kinds) <= {str, Char}:
        return _texts(op, str(left), str(right), kinds)
    if op not in _COMPARE:
        return NO_VALUE
    if kinds[0] is kinds[1]:
        return op == "==" if left is None else NO_VALUE
    return op == "!="


def _integers(op: str, left: Any, right: Any) -> object:
    if op in _COMPARE:
        return _COMPARE[op](left, right)
    value: int
    match op:
        case "+":
            value = left + right
        case "-":
            value = left - right
        case "*":
            value = left * right
        case "/" | "%":
            if right == 0 or (left == _LEAST and right == -1):
                return NO_VALUE
            quotient = abs(left) // abs(right)
            quotient = quotient if (left < 0) == (right < 0) else -quotient
            value = quotient if op == "/" else left - quotient * right
        case "**":
            if right < 0 or (right > 64 and abs(left) > 1):
                return NO_VALUE
            value = int(left**right) if abs(left) > 1 or right < 2 else left ** (right % 2 or 2)
        case "<<" | ">>":
            return _shift(left, right if op == "<<" else -right)
        case "&":
            return left & right
        case "|":
            return left | right
        case "^":
            return left ^ right
        case _:
            return NO_VALUE
    return value if _LEAST <= value <= _MOST else NO_VALUE


def _shift(value: int, by: int) -> int:
    if by < 0:
        return value >> min(-by, 63)
    if by >= 64:
        return 0
    shifted = (value << by) & (2**64 - 1)
    return shifted - 2**64 if shifted > _MOST else shifted


def _floats(op: str, left: Any, right: Any) -> object:
    left, right = float(left), float(right)
    if op in _COMPARE:
        return _compare_floats(op, left, right)
    try:
        match op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/":
                return left / right
            case "%":
                return math.fmod(left, right)
            case "**":
                return math.pow(left, right)
    except (ArithmeticError, ValueError):
        return NO_VALUE
    return NO_VALUE


def _compare_floats(op: str, left: float, right: float) -> bool:
    """Numbers that differ by no more than their last digit are equal."""
    near = sys.float_info.epsilon * (1.0 if 0.0 in (left, right) else max(abs(left), abs(right)))
    if math.isfinite(left) and math.isfinite(right) and abs(left - right) <= near:
        return op in ("==", "<=", ">=")
    return _COMPARE[op](left, right)


def _booleans(op: str, left: Any, right: Any) -> object:
    if op in _COMPARE:
        return _COMPARE[op](left, right)
    match op:
        case "&":
            return left and right
        case "|":
            return left or right
        case "^":
            return left != right
    return NO_VALUE


def _texts(op: str, left: str, right: str, kinds: tuple[type, type]) -> object:
    if op in _COMPARE:
        if Char in kinds:  # a character is compared with the first two of a string
            left, right = left[:2], right[:2]
        return _COMPARE[op](left, right)
    if op == "+" and len(left) + len(right) <= _LONGEST:
        return left + right
    return NO_VALUE
