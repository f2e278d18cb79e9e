"""What all parts of the emitter share: operands, helpers of the runtime, variables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moonbox.languages.rhai.analysis.scopes import CALLS, Scopes
from moonbox.languages.rhai.analysis.types import SCALARS, type_of
from moonbox.languages.rhai.emit.function import MAX_LOCALS, MAX_STATES, MAX_UPVALUES, LuaFunction
from moonbox.languages.rhai.emit.text import number, place, quote
from moonbox.languages.rhai.syntax.nodes import Block, Char, Expr, Literal, Stmt, This, Variable
from moonbox.languages.rhai.syntax.state import fail

if TYPE_CHECKING:
    from moonbox.languages.rhai.analysis.variables import Unit, Var
    from moonbox.languages.rhai.syntax.state import ParseLimits
    from moonbox.languages.rhai.syntax.tokens import Pos

__all__ = ["Emitter", "Operand"]


@dataclass(slots=True)
class Operand:
    """A value in the Lua text: something that can be read more than once without effect."""

    text: str
    type: str = "any"
    owned: bool = True
    """Whether nobody else holds it: a value that is not owned is copied before it is stored."""
    var: Var | None = None
    """The variable, where the text reads one."""
    literal: int | None = None


class Emitter(ABC):
    """State of the emitter, and the parts that every other part needs."""

    def __init__(self, scopes: Scopes, lenders: set[tuple[str, int]], limits: ParseLimits) -> None:
        self.scopes, self.lenders, self.limits = scopes, lenders, limits
        self.unit: Unit = scopes.main
        self.fn = LuaFunction(0, None)
        self.helpers: dict[str, None] = {"over": None, "deep": None}
        self.chars: dict[str, int] = {}
        self.states: dict[str, str] = {}
        self.catching: str | None = None
        self.variables = 0  # of the function being written, for max_variables
        self.loops: list[Loop] = []
        self._functions = 0
        self._vars = 0
        self._labels = 0
        self._homes: dict[str, LuaFunction] = {}

    @abstractmethod
    def expr(self, expr: Expr) -> Operand: ...

    @abstractmethod
    def untold(self, expr: Expr) -> Operand:
        """An expression whose own operation is counted elsewhere."""

    @abstractmethod
    def statement(self, stmt: Stmt, dest: str | None) -> None: ...

    @abstractmethod
    def block(self, block: Block, dest: str | None) -> None: ...

    @abstractmethod
    def tail(self, body: list[Stmt]) -> None:
        """Statements that end a function: the value of the last is returned."""

    @abstractmethod
    def condition(self, expr: Expr) -> str: ...

    # Text

    def emit(self, line: str) -> None:
        self.fn.emit(line)

    def tick(self, pos: Pos | None) -> None:
        self.fn.tick(pos)

    def use(self, name: str) -> str:
        """A helper of the runtime, by name."""
        self.helpers[name] = None
        return name

    def call(self, name: str, *args: str) -> str:
        return f"{self.use(name)}({','.join(args)})"

    def at(self, pos: Pos | None) -> str:
        return str(place(pos))

    def label(self, prefix: str) -> str:
        self._labels += 1
        return f"{prefix}{self._labels}"

    def new_function(self) -> LuaFunction:
        self._functions += 1
        return LuaFunction(self._functions, self.fn)

    # Literals

    def literal(self, value: object) -> Operand:
        if value is None:
            return Operand("U", "unit")
        if isinstance(value, bool):
            return Operand("true" if value else "false", "bool")
        if isinstance(value, int):
            return Operand(number(value), "int", literal=value)
        if isinstance(value, float):
            return Operand(number(value), "float")
        if isinstance(value, Char):
            at = self.chars.setdefault(value, len(self.chars) + 1)
            return Operand(f"C[{at}]", "char")
        assert isinstance(value, str)
        return Operand(quote(value), "str")

    # Variables

    def place(self, var: Var, *, fixed: bool = False) -> bool:
        """Find a place for a variable. True if that is a Lua local that is still to be declared."""
        old = var.replaces
        if old is not None and old.lua and not old.captured and not var.captured and old.cell == var.cell:
            var.lua = old.lua
            return False
        fn = self.fn
        if fn.locals >= MAX_LOCALS and not fixed:
            if var.captured and not var.top:
                fail(
                    "Too many variables in use at the same time", self.fn.here, "put the code into functions of its own"
                )
            var.lua = fn.spill()
            self._homes[var.lua] = fn
            return False
        fn.locals += 1
        self._vars += 1
        var.lua = f"v{self._vars}"
        self._homes[var.lua] = fn
        return True

    def define(self, var: Var, value: str) -> None:
        """Declare a variable with its first value."""
        if var.cell:
            value = f"{{{value}}}"
        if var.top and var.lua:
            self.emit(f"{var.lua}={value}")
        elif self.place(var):
            self.emit(f"local {var.lua}={value}")
        else:
            self.emit(f"{var.lua}={value}")

    def read(self, var: Var) -> str:
        """The text that stands for a variable's value."""
        self._outside(var.lua)
        return f"{var.lua}[1]" if var.cell else var.lua

    def _outside(self, name: str) -> None:
        """Count what a Lua function takes from those around it: Lua has a limit for that."""
        home = self._homes.get(name)
        fn: LuaFunction | None = self.fn
        while fn is not None and home is not None and fn is not home:
            fn.outside.add(name.partition("[")[0])
            if len(fn.outside) > MAX_UPVALUES:
                fail("Too many variables captured by one closure", self.fn.here, "pass them in an object map")
            fn = fn.parent

    def state_cell(self, name: str) -> str:
        """The cell of a variable that an earlier run left behind, if it did."""
        if name not in self.states:
            near = len(self.states) < MAX_STATES
            self.states[name] = f"S{len(self.states) + 1}" if near else self.call("cellof", quote(name))
        return self.states[name]

    # Values

    def type(self, expr: Expr) -> str:
        return type_of(expr, self.scopes)

    def value(self, expr: Expr) -> Operand:
        """An operand that can be stored: owned, or without parts that could be changed."""
        return self.own(self.expr(expr))

    def own(self, operand: Operand) -> Operand:
        if operand.owned or operand.type in SCALARS:
            return operand
        temp = self.fn.temp()
        self.emit(f"{temp}={self.call('copy', operand.text)}")
        return Operand(temp, operand.type)

    def held(self, operand: Operand, at: int, last_writes: dict[Var | str, int]) -> Operand:
        """The operand, safe from what those after it write; it is number `at` of the expressions."""
        var = operand.var
        if var is not None and (last_writes.get(var, -1) > at or (var.captured and last_writes.get(CALLS, -1) > at)):
            temp = self.fn.temp()
            scalar = operand.type in SCALARS
            self.emit(f"{temp}={operand.text if scalar else self.call('copy', operand.text)}")
            return Operand(temp, operand.type)
        return operand

    def is_simple(self, expr: Expr) -> bool:
        return isinstance(expr, Literal | Variable | This)


@dataclass(slots=True)
class Loop:
    """A loop being written."""

    fn: LuaFunction
    dest: str | None
    label: str
    continued: bool = False
