"""Branches and protected blocks: if, switch, try."""

from __future__ import annotations

from abc import abstractmethod

from moonbox.languages.rhai.emit.loops import LoopEmitter
from moonbox.languages.rhai.syntax.nodes import (
    Block,
    Case,
    Expr,
    If,
    Literal,
    Range,
    Stmt,
    Switch,
    Try,
)

__all__ = ["BranchEmitter"]


class BranchEmitter(LoopEmitter):
    """Writes what chooses between blocks."""

    @abstractmethod
    def statements(self, body: list[Stmt], dest: str | None) -> None: ...

    def returned(self, value: str) -> str:
        """The Lua statement that returns a value from the script's function."""
        if self.fn.in_try:
            return f"do return 1,{value} end"
        return f"do return {value},this end" if self.unit.changes_this else f"do return {value} end"

    def _if(self, stmt: If, dest: str | None) -> None:
        ends = 1
        mark = self.fn.top
        self.emit(f"if {self.condition(stmt.condition)} then")
        self.fn.top = mark
        while True:
            self.fn.cut()
            self._branch(stmt.then, dest)
            other = stmt.other
            if other is None:
                if dest is not None:
                    self.emit(f"else {dest}=U")
                break
            following = other.body[0] if len(other.body) == 1 else None
            if not isinstance(following, If):
                self.emit("else")
                self.fn.cut()
                self._branch(other, dest)
                break
            inline = self.inline(following.condition)
            if inline is not None and inline.type == "bool":
                self.emit(f"elseif {inline.text} then")
                self.fn.cut()
                self.tick(following.pos)
                self.tick_inline(following.condition)
            else:
                self.emit("else")
                self.fn.cut()
                self.tick(following.pos)
                self.emit(f"if {self.condition(following.condition)} then")
                self.fn.top = mark
                ends += 1
            stmt = following
        self.emit("end " * ends)
        self.fn.cut()

    def _branch(self, block: Block, dest: str | None) -> None:
        before = self.fn.locals, self.variables
        self.statements(block.body, dest)
        self.fn.locals, self.variables = before

    def _switch(self, stmt: Switch, dest: str | None) -> None:
        value = self.fn.temp()
        mark = self.fn.top
        self.emit(f"{value}={self.expr(stmt.value).text}")
        self.fn.top = mark
        end = self.label("W")
        self.emit("do")
        for case in stmt.cases:  # values first, wherever they stand; then the ranges; then the default
            self._case(case, [each for each in case.values if not isinstance(each, Range)], value, dest, end)
        for case in stmt.cases:
            self._case(case, [each for each in case.values if isinstance(each, Range)], value, dest, end)
        default = next((case for case in stmt.cases if not case.values), None)
        if default is not None:
            self._case_body(default, dest)
        elif dest is not None:
            self.emit(f"{dest}=U")
        self.fn.cut()
        self.emit(f"::{end}:: end")
        self.fn.cut()

    def _case(self, case: Case, values: list[Expr], value: str, dest: str | None, end: str) -> None:
        if not values:
            return
        mark = self.fn.top
        tests = [self._matches(each, value) for each in values]
        self.emit(f"if {' or '.join(tests)} then")
        self.fn.cut()
        if case.guard is not None:
            self.emit(f"if {self.condition(case.guard)} then")
            self.fn.cut()
        self._case_body(case, dest)
        self.fn.finish_ticks()
        self.emit(f"goto {end} end" + (" end" if case.guard is not None else ""))
        self.fn.cut()
        self.fn.top = mark

    def _case_body(self, case: Case, dest: str | None) -> None:
        operand = self.expr(case.body)
        if dest is not None:
            self.emit(f"{dest}={self.own(operand).text}")

    def _matches(self, literal: Expr, value: str) -> str:
        if isinstance(literal, Literal):
            text = self.literal(literal.value).text
            if type(literal.value) in (int, float):
                kind = '"integer"' if type(literal.value) is int else '"float"'
                return f"({value}=={text} and {self.call('number_type', value)}=={kind})"
            return f"{value}=={text}"
        before = self.fn.lines
        operand = self.untold(literal)
        assert self.fn.lines is before
        helper = "in_range" if isinstance(literal, Range) else "same"
        return self.call(helper, value, operand.text)

    # Errors

    def _try(self, stmt: Try, dest: str | None) -> None:
        state, value = self.fn.temp(), self.fn.temp()
        fine = self.fn.temp()
        outer, catching = self.fn, self.catching
        self.fn, self.catching = self.new_function(), None
        self.fn.in_try = True
        self.block(stmt.body, dest)
        inner, self.fn, self.catching = self.fn, outer, catching
        self.emit(f"{fine},{state},{value}={self.use('pcall')}(function()")
        for line in inner.text():
            self.emit(line)
        self.emit("end)")
        self.emit(f"if not {fine} then")
        before = self.fn.locals, self.variables
        error = self.fn.temp()
        declared = self.scopes.declared(stmt)
        wanted = "true" if declared else "false"
        self.emit(f"{value},{error}={self.call('catch', 'K', 'd', state, wanted)}")
        self.fn.cut()
        for var in declared:
            if self.limits.max_variables is not None:
                if self.variables >= self.limits.max_variables:
                    self.emit(self.call("too_many_variables", self.at(stmt.name_pos)))
                self.variables += 1
            self.define(var, value)
        self.catching = error
        self.block(stmt.handler, None)
        self.catching = catching
        self.fn.locals, self.variables = before
        if dest is not None:
            self.emit(f"{dest}=U")
        self._after_try(state, value)

    def _after_try(self, state: str, value: str) -> None:
        """What the protected body wanted: to return, to break or to continue."""
        self.emit(f"elseif {state}==1 then {self.returned(value)}")
        if self.loops and self.loops[-1].fn is self.fn:
            self.emit(f"elseif {state}==2 then break elseif {state} then goto {self.loops[-1].label}")
            self.loops[-1].continued = True
        elif self.loops:
            self.emit(f"elseif {state} then return {state}")
        self.emit("end")
        self.fn.cut()
