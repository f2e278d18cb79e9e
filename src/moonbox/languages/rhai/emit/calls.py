"""Calls and closures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.rhai.analysis.builtins import PURE
from moonbox.languages.rhai.analysis.types import SCALARS
from moonbox.languages.rhai.emit.base import Loop, Operand
from moonbox.languages.rhai.emit.function import MAX_ARGUMENTS
from moonbox.languages.rhai.emit.operators import OperatorEmitter
from moonbox.languages.rhai.emit.text import place_text, quote
from moonbox.languages.rhai.syntax.nodes import Block, Call, Closure, Expr, Function, Stmt, This, Variable
from moonbox.languages.rhai.syntax.state import fail

if TYPE_CHECKING:
    from moonbox.languages.rhai.analysis.variables import Unit, Var

__all__ = ["MAX_CALL_LEVELS", "CallEmitter"]

MAX_CALL_LEVELS = 64
_FIRST_LEVEL = 2  # the script itself runs at this index of the context


class CallEmitter(OperatorEmitter):
    """Functions: calling them and writing them."""

    def function_call(self, expr: Call) -> Operand:
        if len(expr.args) > MAX_ARGUMENTS:
            fail(f"Too many arguments: a function takes at most {MAX_ARGUMENTS}", expr.pos)
        if expr.path:
            return self._qualified(expr)
        if expr.in_scope:
            return self._raise_call(expr, "in_scope", quote(expr.name))
        special = _SPECIAL.get(expr.name)
        if special is not None:
            found = special(self, expr)
            if found is not None:
                return found
        if (expr.name, len(expr.args)) in self.scopes.functions:
            return self._own_function(expr)
        return self._any_function(expr)

    def arguments(self, args: list[Expr]) -> list[Operand]:
        """Arguments that the callee may keep."""
        writes = self.scopes.last_writes(args)
        return [self.held(self.value(arg), at, writes) for at, arg in enumerate(args)]

    def key(self, name: str, count: int) -> str:
        """The name of a function among all of them: with its number of parameters."""
        return f"{name}_{count}"

    def _own_function(self, expr: Call) -> Operand:
        dest = self.fn.temp()
        mark = self.fn.top
        args = []
        writes = self.scopes.last_writes(expr.args)
        for at, arg in enumerate(expr.args):
            operand = self.expr(arg)
            if isinstance(arg, This) or (operand.var is not None and operand.var.captured):
                operand = self.own(operand)  # others can change it while the function runs
            args.append(self.held(operand, at, writes).text)
        self.tick(expr.pos)
        name = self.key(expr.name, len(args))
        site = f"{expr.name}@{place_text(expr.pos)}"
        self.emit(f'K[d]="{site}" {dest}=F.{name}({",".join(["K", "d+1", "nil", *args])}) K[d]=0')
        self.fn.cut()
        self.fn.top = mark
        return Operand(dest, owned=(expr.name, len(args)) not in self.lenders)

    def _any_function(self, expr: Call) -> Operand:
        """A function of the runtime, a tool, or one that an earlier run defined."""
        dest = self.fn.temp()
        mark = self.fn.top
        first = expr.args[0] if expr.args else None
        by_reference = isinstance(first, This) or (isinstance(first, Variable) and not first.path)
        if isinstance(first, Variable) and (self.scopes.is_shared(first) or self._is_constant(first)):
            by_reference = False
        pure = expr.name in PURE
        args: list[Operand] = []
        if by_reference and first is not None:
            rest = self.arguments(expr.args[1:])  # the reference looks the variable up last
            args = [self.expr(first), *rest]
        elif pure and expr.args:
            target = self.held(self.expr(expr.args[0]), 0, self.scopes.last_writes(expr.args))
            args = [target, *self.arguments(expr.args[1:])]
        else:
            args = self.arguments(expr.args)
        self.tick(expr.pos)
        visible = self._find_visible(expr.name)
        helper = "callf" if visible is None else "callv"
        texts = [quote(expr.name), quote(self.key(expr.name, len(args))), *(arg.text for arg in args)]
        called = self.call(helper, "K", "d", self.at(expr.pos), *texts)
        if by_reference and not pure and first is not None:
            changed = self.fn.temp()
            self.emit(f"{dest},{changed}={called}")
            self.emit(f"if {changed}~=nil then {self.write(first, changed)} end")
        else:
            self.emit(f"{dest}={called}")
        self.fn.cut()
        self.fn.top = mark
        return Operand(dest)

    def write(self, target: Expr, text: str) -> str:
        """The statement that stores a value in a variable or in `this`."""
        if isinstance(target, This):
            return f"this={text}"
        assert isinstance(target, Variable)
        var = self.scopes.variable(target)
        if var is not None:
            return f"{self.read(var)}={text}"
        if self.unit.parent is None and self.unit is not self.scopes.main:
            return ""
        return f"{self.state_cell(target.name)}[1]={text}"

    def _is_constant(self, node: Variable) -> bool:
        var = self.scopes.variable(node)
        return var is not None and var.const

    def _find_visible(self, name: str) -> Var | None:
        """A variable that has the name of the function that is called: a closure, most likely."""
        return next((var for var in self.scopes.vars if var.name == name and var.lua), None)

    def _qualified(self, expr: Call) -> Operand:
        dest = self.fn.temp()
        mark = self.fn.top
        args = self.arguments(expr.args)
        self.tick(expr.pos)
        path = [self.at(expr.path_pos), quote("::".join(expr.path)), quote(expr.name)]
        self.emit(f"{dest}={self.call('callq', 'K', 'd', self.at(expr.pos), *path, *(arg.text for arg in args))}")
        self.fn.cut()
        self.fn.top = mark
        return Operand(dest)

    def _raise_call(self, expr: Call, helper: str, *args: str) -> Operand:
        dest = self.fn.temp()
        self.emit(f"{dest}={self.call(helper, *args, self.at(expr.pos))}")
        return Operand(dest)

    # Functions that the language itself defines

    def _type_of(self, expr: Call) -> Operand | None:
        if len(expr.args) != 1:
            return None
        dest = self.fn.temp()
        mark = self.fn.top
        self.emit(f"{dest}={self.call('type_of', self.expr(expr.args[0]).text)}")
        self.fn.top = mark
        return Operand(dest, "str")

    def _is_shared(self, expr: Call) -> Operand | None:
        if len(expr.args) != 1:
            return None
        arg = expr.args[0]
        shared = isinstance(arg, Variable) and not arg.path and self.scopes.is_shared(arg)
        self.expr(arg)
        return self.literal(shared)

    def _is_def_var(self, expr: Call) -> Operand | None:
        if len(expr.args) != 1:
            return None
        dest = self.fn.temp()
        mark = self.fn.top
        name = self.expr(expr.args[0]).text
        known = sorted({var.name for var in self.scopes.vars if var.lua and var.unit is self.unit})
        table = "{" + ",".join(f"[{quote(each)}]=true" for each in known) + "}"
        at_top = "true" if self.unit is self.scopes.main else "false"
        self.emit(f"{dest}={self.call('is_def_var', name, table, at_top, self.at(expr.args[0].pos))}")
        self.fn.top = mark
        return Operand(dest, "bool")

    def _with_callback(self, expr: Call) -> Operand | None:
        """call(f, ...), curry(f, ...), Fn(name), is_def_fn(...), print, debug, eval: the runtime has them apart."""
        counts = {"Fn": (1, 1), "is_def_fn": (2, 3), "call": (1, 99), "curry": (2, 99), "eval": (1, 1)}
        low, high = counts.get(expr.name, (0, 1))
        if not low <= len(expr.args) <= high:
            return None
        dest = self.fn.temp()
        mark = self.fn.top
        args = [arg.text for arg in self.arguments(expr.args)]
        if expr.name in ("print", "debug", "call"):
            self.tick(expr.pos)
        first = self.at(expr.args[0].pos if expr.args else None)
        self.emit(f"{dest}={self.call('do_' + expr.name, 'K', 'd', self.at(expr.pos), first, *args)}")
        self.fn.cut()
        self.fn.top = mark
        return Operand(dest)

    # Writing functions

    def closure(self, expr: Closure) -> Operand:
        unit = self.scopes.unit(expr)
        if unit.free:
            for pos in (expr.pos, expr.pos, expr.pos, *unit.free.values()):
                self.tick(pos)
        known = {var.name for var in unit.captured}
        for name, pos in unit.free.items():
            if name not in known:
                self._check_outside(name, self.at(pos))
        dest = self.fn.temp()
        line, column = (expr.pos.line, expr.pos.column) if expr.pos else (0, 0)
        name = f"anon${line:08x}{column:08x}"
        lines = self.function_text(unit, expr.body)
        self.emit(f'{dest}={self.use("fnptr")}("{name}",{len(unit.params)},{lines[0]}')
        for text in lines[1:-1]:
            self.emit(text)
        self.emit(lines[-1] + ")")
        return Operand(dest, "fn")

    def _check_outside(self, name: str, pos: str) -> None:
        outer: Unit | None = self.unit
        while outer is not None and outer.is_closure:
            outer = outer.parent
        if outer is self.scopes.main:
            self.emit(self.call("need", self.state_cell(name), quote(name), pos))
        else:
            self.emit(f"do {self.call('novar', quote(name), pos)} end")

    def function_text(self, unit: Unit, body: Stmt | Block) -> list[str]:
        """The Lua function, one line each."""
        outer = self.fn, self.unit, self.loops, self.catching, self.variables
        self.fn, self.unit, self.loops, self.catching = self.new_function(), unit, [], None
        fn = self.fn
        self.variables = len(unit.params)
        for param in unit.params:
            self.place(param, fixed=True)
        names = [param.lua for param in unit.params]
        for param in unit.params:
            if param.changed or param.captured:
                self.emit(f"{param.lua}={self.call('copy', param.lua)}")
        self.tail(body.body if isinstance(body, Block) else [body])
        self.fn, self.unit, self.loops, self.catching, self.variables = outer
        deepest = MAX_CALL_LEVELS + _FIRST_LEVEL
        head = f"function({','.join(['K', 'd', 'this', *names])})if d>{deepest} then deep(K,d)end"
        return [head, *fn.text(), "end"]

    def definition(self, function: Function) -> list[str]:
        """The lines that define a function of the script."""
        unit = self.scopes.unit(function)
        lines = self.function_text(unit, function.body)
        type_name = quote(function.this_type) if function.this_type is not None else "nil"
        start = f"{self.use('def')}(S,{quote(function.name)},{len(unit.params)},{type_name},"
        return [start + lines[0], *lines[1:-1], lines[-1] + ")"]

    def enter_loop(self, dest: str | None) -> Loop:
        loop = Loop(self.fn, dest, self.label("L"))
        self.loops.append(loop)
        return loop

    def scalar(self, expr: Expr) -> bool:
        return self.type(expr) in SCALARS


_SPECIAL = {
    "type_of": CallEmitter._type_of,
    "is_shared": CallEmitter._is_shared,
    "is_def_var": CallEmitter._is_def_var,
    "is_def_fn": CallEmitter._with_callback,
    "Fn": CallEmitter._with_callback,
    "call": CallEmitter._with_callback,
    "curry": CallEmitter._with_callback,
    "eval": CallEmitter._with_callback,
    "print": CallEmitter._with_callback,
    "debug": CallEmitter._with_callback,
}
