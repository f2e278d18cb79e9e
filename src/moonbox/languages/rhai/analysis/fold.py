"""Constant folding of expressions."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from moonbox.languages.rhai.analysis.arithmetic import NO_VALUE, combine
from moonbox.languages.rhai.analysis.purity import is_pure
from moonbox.languages.rhai.syntax.names import Names
from moonbox.languages.rhai.syntax.nodes import (
    Array,
    Binary,
    Block,
    BlockExpr,
    Call,
    Chain,
    Char,
    Closure,
    Expr,
    ExprStmt,
    Function,
    Interpolated,
    Literal,
    Logic,
    Map,
    Range,
    Step,
    Unary,
    Variable,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Folder"]

_DEEPEST = 3  # functions in the scope of each other
_TYPES = {bool: "bool", int: "i64", float: "f64", str: "string", Char: "char", type(None): "()"}


class Folder:
    """Folds expressions; blocks within them are handed to the statement optimizer."""

    def __init__(
        self,
        blocks: Callable[[Block], None],
        closures: Callable[[Closure], None],
        functions: dict[tuple[str, int], Function],
    ) -> None:
        self._blocks, self._closures, self._functions = blocks, closures, functions
        self._expanding = 0
        self.constants: Names[Literal | None] = Names()

    def fold(self, expr: Expr) -> Expr:
        """The expression, or a simpler one of the same value."""
        match expr:
            case Literal() | Closure():
                if isinstance(expr, Closure):
                    self._closures(expr)
            case Variable():
                return self._variable(expr)
            case Binary():
                return self._binary(expr)
            case Logic():
                return self._logic(expr)
            case Unary():
                expr.operand = self.fold(expr.operand)
                if expr.op == "!" and isinstance(expr.operand, Literal) and type(expr.operand.value) is bool:
                    return Literal(not expr.operand.value, expr.operand.pos)
            case Range():
                expr.left, expr.right = self.fold(expr.left), self.fold(expr.right)
            case Interpolated():
                return self._interpolated(expr)
            case Array():
                expr.items = [self.fold(item) for item in expr.items]
            case Map():
                expr.items = [(name, self.fold(item)) for name, item in expr.items]
            case Call():
                return self._call(expr)
            case Chain():
                return self._chain(expr)
            case BlockExpr():
                return self._block(expr)
        return expr

    def _variable(self, expr: Variable) -> Expr:
        if expr.path:
            return expr
        at = self.constants.find(expr.name)
        value = self.constants.value(at) if at >= 0 else None
        return Literal(value.value, expr.pos) if value is not None else expr

    def _binary(self, expr: Binary) -> Expr:
        expr.left, expr.right = self.fold(expr.left), self.fold(expr.right)
        if isinstance(expr.left, Literal) and isinstance(expr.right, Literal):
            value = combine(expr.op, expr.left.value, expr.right.value)
            if value is not NO_VALUE:
                return Literal(value, expr.pos)
        return expr

    def _logic(self, expr: Logic) -> Expr:
        items: list[Expr] = []
        start = expr.items[0].pos
        stops = expr.op == "||"
        for item in expr.items:
            item = self.fold(item)
            if isinstance(item, Literal):
                if expr.op == "??":
                    if item.value is None:
                        continue
                    items.append(item)
                    break
                if type(item.value) is bool:
                    if item.value is not stops:
                        continue
                    if all(is_pure(each) for each in items):
                        return item
                    items.append(item)
                    break
            items.append(item)
        if not items:
            return Literal(None if expr.op == "??" else not stops, start)
        if len(items) == 1:
            return items[0]
        expr.items = items
        return expr

    def _interpolated(self, expr: Interpolated) -> Expr:
        parts: list[Expr] = []
        for part in expr.parts:
            part = self.fold(part)
            if isinstance(part, Literal):
                text = _text(part.value)
                if text == "":
                    continue
                last = parts[-1] if parts else None
                if text is not None and isinstance(last, Literal) and type(last.value) is str:
                    parts[-1] = Literal(last.value + text, last.pos)
                    continue
                if text is not None:
                    part = Literal(text, part.pos)
            parts.append(part)
        if not parts:
            return Literal("", expr.pos)
        if len(parts) == 1 and isinstance(parts[0], Literal) and type(parts[0].value) is str:
            return Literal(parts[0].value, expr.pos)
        expr.parts = parts
        return expr

    def _call(self, expr: Call) -> Expr:
        # The first argument stays a variable where it is one: it is passed by reference, and constants by value.
        expr.args = [self.fold(arg) for arg in expr.args]
        if expr.in_scope:
            return self._in_scope(expr)
        if not expr.path and len(expr.args) == 1 and isinstance(expr.args[0], Literal):
            if expr.name == "type_of":
                return Literal(_TYPES[type(expr.args[0].value)], expr.pos)
            if expr.name == "is_shared":
                return Literal(False, expr.pos)
        first = expr.args[0] if len(expr.args) == 1 else None
        if expr.name == "type_of" and isinstance(first, Array | Map) and is_pure(first):
            return Literal("array" if isinstance(first, Array) else "map", expr.pos)
        return expr

    def _in_scope(self, expr: Call) -> Expr:
        """f!(...): the body of the function as a closure, which sees the variables around it."""
        function = self._functions.get((expr.name, len(expr.args)))
        if function is None or self._expanding >= _DEEPEST:
            return expr
        self._expanding += 1
        closure = Closure(list(function.params), copy.deepcopy(function.body), expr.pos)
        self._closures(closure)
        self._expanding -= 1
        return Chain(closure, [Step("method", "call", expr.args, expr.pos, expr.pos)])

    def _chain(self, expr: Chain) -> Expr:
        if not isinstance(expr.root, Variable):
            expr.root = self.fold(expr.root)
        for step in expr.steps:
            step.args = [self.fold(arg) for arg in step.args]
        if len(expr.steps) == 1:
            return self._first_step(expr.root, expr.steps[0]) or expr
        return expr

    def _first_step(self, root: Expr, step: Step) -> Expr | None:
        if isinstance(root, Literal) and root.value is None and step.optional:
            return root
        index = step.args[0] if step.kind == "index" else None
        at = index.value if isinstance(index, Literal) else None
        if isinstance(root, Map) and all(is_pure(item) for _, item in root.items):
            name = step.name if step.kind == "property" else at
            if type(name) is str:
                return dict(root.items).get(name, Literal(None, root.pos))
        if type(at) is int and isinstance(root, Array) and -len(root.items) <= at < len(root.items):
            return root.items[at] if all(is_pure(item) for item in root.items) else None
        if type(at) is int and isinstance(root, Literal) and type(root.value) is str:
            return Literal(Char(root.value[at]), root.pos) if -len(root.value) <= at < len(root.value) else None
        return None

    def _block(self, expr: BlockExpr) -> Expr:
        self._blocks(expr.block)
        body = expr.block.body
        if not body:
            return Literal(None, expr.pos)
        if len(body) == 1 and isinstance(body[0], ExprStmt):
            return body[0].expr
        return expr


def _text(value: object) -> str | None:
    """A literal as interpolation shows it, where that is beyond doubt."""
    if value is None:
        return ""
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) in (int, str, Char):
        return str(value)
    return None
