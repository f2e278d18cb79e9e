"""Expressions: each becomes an operand, with the statements it needs before it."""

from __future__ import annotations

from moonbox.languages.rhai.analysis.types import SCALARS
from moonbox.languages.rhai.emit.base import Operand
from moonbox.languages.rhai.emit.chains import ChainEmitter
from moonbox.languages.rhai.emit.text import quote
from moonbox.languages.rhai.syntax.checks import is_constant
from moonbox.languages.rhai.syntax.nodes import (
    Array,
    Binary,
    BlockExpr,
    Call,
    Chain,
    Closure,
    Expr,
    Interpolated,
    Literal,
    Logic,
    Map,
    Range,
    This,
    Unary,
    Variable,
)

__all__ = ["ExpressionEmitter"]

_PIECES = 30  # arguments of one helper call
_AT_ONCE = 12  # items of a literal that are held in temporaries
_FEW = 32  # items of a literal that no limit is below


class ExpressionEmitter(ChainEmitter):
    """The one place that knows every kind of expression."""

    def expr(self, expr: Expr) -> Operand:
        self.tick(expr.pos)
        return self.untold(expr)

    def untold(self, expr: Expr) -> Operand:
        match expr:
            case Literal():
                return self.literal(expr.value)
            case Variable():
                return self._variable(expr)
            case Binary():
                return self.binary(expr)
            case Unary():
                return self.unary(expr)
            case Logic():
                return self.logic(expr)
            case Call():
                return self.function_call(expr)
            case Chain():
                return self.chain(expr)
            case Closure():
                return self.closure(expr)
            case Range():
                return self._range(expr)
            case Array():
                return self._array(expr)
            case Map():
                return self._map(expr)
            case Interpolated():
                return self._interpolated(expr)
            case This():
                self.emit(f"if this==nil then {self.call('unbound', self.at(expr.pos))} end")
                return Operand("this", owned=False)
            case BlockExpr():
                dest = self.fn.temp()
                mark = self.fn.top
                self.block(expr.block, dest)
                self.fn.top = mark
                return Operand(dest)

    def condition(self, expr: Expr) -> str:
        """A Lua expression that is true or false, and nothing else."""
        inline = self.inline(expr)
        if inline is not None and inline.type == "bool":
            self.tick_inline(expr)
            return inline.text
        if isinstance(expr, Binary) and self.type(expr) == "bool" and expr.op not in ("&", "|", "^"):
            self.tick(expr.pos)
            return self.comparison(expr)
        operand = self.expr(expr)
        if operand.type != "bool":
            text = operand.text
            if not text.startswith("t"):
                text = self.fn.temp()
                self.emit(f"{text}={operand.text}")
            wrong = self.call("not_bool", text, self.at(expr.pos))
            self.emit(f"if {text}~=true and {text}~=false then {wrong} end")
            return text
        return operand.text

    def _variable(self, expr: Variable) -> Operand:
        if expr.path:
            return self._qualified_variable(expr)
        var = self.scopes.variable(expr)
        if var is not None:
            if not var.cell:
                return Operand(self.read(var), var.type, owned=False, var=var)
            temp = self.fn.temp()
            self.emit(f"{temp}={self.read(var)}")
            return Operand(temp, var.type, owned=False)
        temp = self.fn.temp()
        pos = self.at(expr.pos)
        if expr.name in self.scopes.names:
            self.emit(f"{temp}={self.call('fn_of', quote(expr.name), pos)}")
        elif self._in_function():
            known = "true" if expr.name in self.scopes.top_names else "false"
            self.emit(f"{temp}={self.call('novar', quote(expr.name), pos, known)}")
        else:
            missing = self.call("novar", quote(expr.name), pos)
            self.emit(f"{temp}={self.state_cell(expr.name)}[1] if {temp}==nil then {temp}={missing} end")
        return Operand(temp, owned=False)

    def _qualified_variable(self, expr: Variable) -> Operand:
        temp = self.fn.temp()
        path = quote("::".join(expr.path))
        self.emit(f"{temp}={self.call('qualified', path, quote(expr.name), self.at(expr.path_pos))}")
        return Operand(temp, owned=False)

    def _range(self, expr: Range) -> Operand:
        dest = self.fn.temp()
        mark = self.fn.top
        if isinstance(expr.left, Literal) and isinstance(expr.right, Literal):
            left, right = self.literal(expr.left.value), self.literal(expr.right.value)
        else:
            left, right = self.pair(expr.left, expr.right)
        inclusive = "true" if expr.inclusive else "false"
        self.emit(f"{dest}={self.call('range', left.text, right.text, inclusive, self.at(expr.pos))}")
        self.fn.top = mark
        return Operand(dest, "range")

    def _array(self, expr: Array) -> Operand:
        dest = self.fn.temp()
        mark = self.fn.top
        if is_constant(expr):
            self.emit(f"{dest}={self._constant(expr)}")
            return Operand(dest, "arr")
        if len(expr.items) <= _AT_ONCE:
            self.emit(f"{dest}={self.call('array', '{' + ','.join(self._items_of(expr.items)) + '}')}")
            self.fn.top = mark
        else:
            self.emit(f"{dest}={self.call('array', '{}')}")
            for at, item in enumerate(expr.items):
                self.emit(f"{dest}[{at + 1}]={self.value(item).text}")
                self.fn.top = mark
        self._check_size(dest, [self.at(item.pos) for item in expr.items], expr.items)
        return Operand(dest, "arr")

    def _map(self, expr: Map) -> Operand:
        dest = self.fn.temp()
        mark = self.fn.top
        if is_constant(expr):
            self.emit(f"{dest}={self._constant(expr)}")
            return Operand(dest, "map")
        names, items = [quote(name) for name, _ in expr.items], [item for _, item in expr.items]
        head = f"[true]={len(items)}"
        if len(items) <= _AT_ONCE:
            pairs = [f"[{name}]={value}" for name, value in zip(names, self._items_of(items), strict=True)]
            self.emit(f"{dest}={self.call('map', '{' + ','.join([head, *pairs]) + '}')}")
            self.fn.top = mark
        else:
            self.emit(f"{dest}={self.call('map', '{' + head + '}')}")
            for name, item in zip(names, items, strict=True):
                self.emit(f"{dest}[{name}]={self.value(item).text}")
                self.fn.top = mark
        places = [f"{name},{self.at(item.pos)}" for name, item in zip(names, items, strict=True)]
        self._check_size(dest, places, items)
        return Operand(dest, "map")

    def _items_of(self, items: list[Expr]) -> list[str]:
        writes = self.scopes.last_writes(items)
        return [self.held(self.value(item), at, writes).text for at, item in enumerate(items)]

    def _check_size(self, dest: str, places: list[str], items: list[Expr]) -> None:
        """Items that are arrays or maps themselves count with all they hold."""
        if len(items) > _FEW or any(self.type(item) not in SCALARS for item in items):
            table = "function() return {" + ",".join(places) + "} end"
            self.emit(f"if {self.use('limited')} then {self.call('check_literal', dest, table)} end")

    def _constant(self, expr: Expr) -> str:
        """A literal made of literals, as one Lua expression."""
        match expr:
            case Literal():
                return self.literal(expr.value).text
            case Array():
                return self.call("array", "{" + ",".join(self._constant(item) for item in expr.items) + "}")
            case Map():
                items = "".join(f",[{quote(name)}]={self._constant(item)}" for name, item in expr.items)
                return self.call("map", f"{{[true]={len(expr.items)}{items}}}")
            case Interpolated():
                return self.call("text", "0", *(self._constant(part) for part in expr.parts))
        raise AssertionError(type(expr))

    def _interpolated(self, expr: Interpolated) -> Operand:
        dest = self.fn.temp()
        mark = self.fn.top
        pieces: list[str] = []
        writes = self.scopes.last_writes(expr.parts)
        for at, part in enumerate(expr.parts):
            operand = self.held(self.expr(part), at, writes)
            pieces.append(operand.text)
            if len(pieces) == _PIECES:
                self.emit(f"{dest}={self.call('text', self.at(part.pos), *pieces)}")
                self.fn.top = mark
                pieces = [dest]
        last = expr.parts[-1].pos
        self.emit(f"{dest}={self.call('text', self.at(last), *pieces)}")
        self.fn.top = mark
        return Operand(dest, "str")
