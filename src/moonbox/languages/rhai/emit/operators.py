"""Operators: numbers are computed in place, everything else goes to the runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.rhai.analysis.types import NUMBERS
from moonbox.languages.rhai.emit.base import Emitter, Operand
from moonbox.languages.rhai.emit.text import number, quote
from moonbox.languages.rhai.syntax.nodes import Binary, Expr, Literal, Logic, Unary, Variable

if TYPE_CHECKING:
    from moonbox.languages.rhai.syntax.tokens import Pos

__all__ = ["OperatorEmitter"]

_ORDER = frozenset(("<", "<=", ">", ">="))
_NAMES = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "%": "mod",
    "**": "pow",
    "<<": "shl",
    ">>": "shr",
    "&": "band",
    "|": "bor",
    "^": "bxor",
}
_BITS = {"&": "&", "|": "|", "^": "~"}
_LEAST, _MOST = -(2**63), 2**63 - 1
_HALF = 2**31 - 1


class OperatorEmitter(Emitter):
    """Unary, binary and logical operators."""

    def binary(self, expr: Binary) -> Operand:
        dest = self.fn.temp()
        mark = self.fn.top
        if expr.op in _ORDER or expr.op in ("==", "!="):
            self.emit(f"{dest}={self.comparison(expr)}")
            self.fn.top = mark
            return Operand(dest, "bool")
        left, right = self.pair(expr.left, expr.right)
        self.arithmetic(expr.op, dest, left, right, expr.pos)
        self.fn.top = mark
        return Operand(dest, self.type(expr))

    def pair(self, left: Expr, right: Expr) -> tuple[Operand, Operand]:
        first = self.held(self.expr(left), -1, self.scopes.last_writes([right]))
        return first, self.expr(right)

    def arithmetic(
        self, op: str, dest: str, left: Operand, right: Operand, pos: Pos | None, *, assign: bool = False
    ) -> None:
        """Write `dest = left op right`; with `assign` for an assignment with an operator."""
        helper = _NAMES[op] + ("_set" if assign else "")
        slow = f"{dest}={self.call(helper, left.text, right.text, self.at(pos))}"
        a, b = left.text, right.text
        numbers = left.type in NUMBERS and right.type in NUMBERS
        integers = left.type == right.type == "int"
        if op in "+-*":
            self._checked(op, dest, left, right, slow)
        elif op == "/" and numbers and "float" in (left.type, right.type):
            self.emit(f"{dest}={a}/{b}")
        elif op == "%" or (op == "/" and integers):
            conditions = [] if left.literal is not None and left.literal >= 0 else [f"{a}>=0"]
            if right.literal is None or right.literal <= 0:
                conditions.append(f"{b}>0")
            lua = "%" if op == "%" else "//"
            if conditions:
                self.emit(f"if {' and '.join(conditions)} then {dest}={a}{lua}{b} else {slow} end")
            else:
                self.emit(f"{dest}={a}{lua}{b}")
        elif op in _BITS and integers:
            self.emit(f"{dest}={a}{_BITS[op]}{b}")
        else:
            self.emit(slow)

    def _checked(self, op: str, dest: str, left: Operand, right: Operand, slow: str) -> None:
        """Lua's own operator, and the slow way where it overflows or does not apply."""
        a, b = left.text, right.text
        self.emit(f"{dest}={a} {op} {b}")
        numbers = left.type in NUMBERS and right.type in NUMBERS
        if numbers and "float" in (left.type, right.type):
            return
        # Lua's operator gives nil for all that are not numbers: the runtime's metatables see to that.
        unless = "" if numbers else f"not {dest}"
        overflow = _overflow(op, left, right)
        if overflow is None:
            apart, same = ("<0", ">=0") if op == "+" else (">=0", "<0")
            first = f"if {unless} then {slow} elseif" if unless else "if"
            self.emit(
                f"{first} {a}>=0 then if {b}{same} and {dest}<0 then {slow} end "
                f"elseif {b}{apart} and {dest}>=0 then {slow} end"
            )
            return
        checks = [each for each in (unless, overflow) if each]
        if checks:
            self.emit(f"if {' or '.join(checks)} then {slow} end")

    def comparison(self, expr: Binary) -> str:
        """The Lua expression of a comparison; what it needs before it is written."""
        left, right = self.pair(expr.left, expr.right)
        return self.compared(expr, left, right)

    def compared(self, expr: Binary, left: Operand, right: Operand) -> str:
        op, a, b = expr.op, left.text, right.text
        if op in ("==", "!="):
            native = _equal_natively(expr.left, left) or _equal_natively(expr.right, right)
            if native and "float" not in (left.type, right.type):
                return f"{a}=={b}" if op == "==" else f"{a}~={b}"
            equal = f"({a}=={b} or {self.call('eq', a, b, self.at(expr.pos))})"
            return equal if op == "==" else f"not {equal}"
        if "float" in (left.type, right.type):
            if op in ("<", ">"):
                return f"({a}{op}{b} and {self.call('apart', a, b)})"
            return f"({a}{op}{b} or {self.call('not_apart', a, b)})"
        if left.type in NUMBERS or right.type in NUMBERS or left.type == right.type == "str":
            return f"{a}{op}{b}"
        temp = self.fn.temp()
        failed = self.call("uncomparable", quote(op), a, b, self.at(expr.pos))
        self.emit(f"{temp}={a}{op}{b}")
        if op in ("<=", ">="):
            self.emit(f"if not {temp} then if E[1] then {failed} end {temp}={self.call('not_apart', a, b)} end")
        else:  # only floats differ by less than 1
            apart = f"{b}-{a}" if op == "<" else f"{a}-{b}"
            near = f"if ({apart} or 1)<1 then {temp}={self.call('apart', a, b)} end"
            self.emit(f"if {temp} then {near} elseif E[1] then {failed} end")
        return temp

    def unary(self, expr: Unary) -> Operand:
        dest = self.fn.temp()
        mark = self.fn.top
        if expr.op == "!":
            if self.type(expr.operand) == "bool":
                self.emit(f"{dest}=not ({self.condition(expr.operand)})")
            else:
                inner = self.expr(expr.operand).text
                slow = self.call("bang", inner, self.at(expr.pos))
                self.emit(
                    f"if {inner}==true then {dest}=false elseif {inner}==false then {dest}=true else {dest}={slow} end"
                )
        else:
            inner = self.expr(expr.operand).text
            self.tick(expr.pos)
            self.emit(f"{dest}={self.call('neg' if expr.op == '-' else 'plus', inner, self.at(expr.pos))}")
        self.fn.top = mark
        return Operand(dest, self.type(expr))

    def logic(self, expr: Logic) -> Operand:
        dest = self.fn.temp()
        mark = self.fn.top
        if expr.op == "??":
            self._coalesce(expr, dest)
            self.fn.top = mark
            return Operand(dest)
        test = dest if expr.op == "&&" else f"not {dest}"
        for at, item in enumerate(expr.items):
            if at:
                self.emit(f"if {test} then")
                self.fn.cut()
            self.emit(f"{dest}={self.condition(item)}")
            self.fn.top = mark
        self.emit("end " * (len(expr.items) - 1))
        self.fn.cut()
        return Operand(dest, "bool")

    def _coalesce(self, expr: Logic, dest: str) -> None:
        for at, item in enumerate(expr.items):
            if at:
                self.emit(f"if {dest}==U then")
                self.fn.cut()
            self.emit(f"{dest}={self.value(item).text}")
        self.emit("end " * (len(expr.items) - 1))
        self.fn.cut()

    def inline(self, expr: Expr) -> Operand | None:
        """The expression as one piece of Lua without anything before it, or None."""
        match expr:
            case Literal():
                return self.literal(expr.value)
            case Variable() if not expr.path:
                var = self.scopes.variable(expr)
                if var is None or var.cell:
                    return None
                return Operand(self.read(var), var.type, owned=False, var=var)
            case Binary() if expr.op in _ORDER or expr.op in ("==", "!="):
                return self._inline_comparison(expr)
            case Logic() if expr.op != "??":
                items = [self.inline(item) for item in expr.items]
                if any(item is None or item.type != "bool" for item in items):
                    return None
                word = " and " if expr.op == "&&" else " or "
                return Operand("(" + word.join(item.text for item in items if item) + ")", "bool")
            case Unary(op="!"):
                inner = self.inline(expr.operand)
                return Operand(f"not ({inner.text})", "bool") if inner and inner.type == "bool" else None
        return None

    def _inline_comparison(self, expr: Binary) -> Operand | None:
        left, right = self.inline(expr.left), self.inline(expr.right)
        if left is None or right is None or "bool" in (left.type, right.type):
            return None
        ordered = left.type in NUMBERS or right.type in NUMBERS or left.type == right.type == "str"
        if expr.op in _ORDER and not ordered:
            return None
        return Operand(self.compared(expr, left, right), "bool")

    def tick_inline(self, expr: Expr) -> None:
        """Count the operations of an expression that was written inline."""
        self.tick(expr.pos)
        match expr:
            case Binary():
                self.tick_inline(expr.left)
                self.tick_inline(expr.right)
            case Logic():
                for item in expr.items:
                    self.tick_inline(item)
            case Unary():
                self.tick_inline(expr.operand)


def _equal_natively(expr: Expr, operand: Operand) -> bool:
    """Whether Lua's equality with this operand is Rhai's: a character also equals a string of that character."""
    if operand.type in NUMBERS or operand.type in ("bool", "unit"):
        return True
    return isinstance(expr, Literal) and type(expr.value) is str and len(expr.value) != 1


def _overflow(op: str, left: Operand, right: Operand) -> str | None:
    """The condition under which 64 bits are not enough; None where only the signs tell."""
    if op == "*":
        return _product_overflow(left, right)
    known, other = (right, left) if right.literal is not None else (left, right)
    if known.literal is None or (op == "-" and known is left):
        return None
    step = known.literal if op == "+" else -known.literal
    if step == 0:
        return ""
    return f"{other.text}>{number(_MOST - step)}" if step > 0 else f"{other.text}<{number(_LEAST - step)}"


def _product_overflow(left: Operand, right: Operand) -> str:
    known, other = (right, left) if right.literal is not None else (left, right)
    if known.literal is not None:
        amount = abs(known.literal)
        if amount <= 1:
            return "" if known.literal >= 0 else f"{other.text}=={number(_LEAST)}"
        bound = _MOST // amount
        return f"{other.text}>{bound} or {other.text}<{number(-bound)}"
    return " or ".join(f"{each.text}>{_HALF} or {each.text}<{number(-_HALF)}" for each in (left, right))
