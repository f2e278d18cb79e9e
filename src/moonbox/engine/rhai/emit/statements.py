"""Statements: blocks, branches, loops, errors."""

from __future__ import annotations

from moonbox.engine.rhai.emit.base import Operand
from moonbox.engine.rhai.emit.loops import LoopEmitter
from moonbox.engine.rhai.emit.text import quote
from moonbox.engine.rhai.syntax.nodes import (
    Assign,
    Binary,
    Block,
    Break,
    Call,
    Case,
    Chain,
    Do,
    Export,
    Expr,
    ExprStmt,
    For,
    If,
    Import,
    Let,
    Literal,
    Noop,
    Range,
    Return,
    Stmt,
    Switch,
    This,
    Throw,
    Try,
    Unary,
    Variable,
    While,
)

__all__ = ["StatementEmitter"]


class StatementEmitter(LoopEmitter):
    """The one place that knows every kind of statement."""

    def block(self, block: Block, dest: str | None) -> None:
        """A block with a scope of its own; its value goes to `dest`."""
        before = self.fn.locals, self.variables
        self.emit("do")
        self.statements(block.body, dest)
        self.emit("end")
        self.fn.locals, self.variables = before

    def statements(self, body: list[Stmt], dest: str | None) -> None:
        for stmt in body[:-1]:
            self.statement(stmt, None)
        if body:
            self.statement(body[-1], dest)
        elif dest is not None:
            self.emit(f"{dest}=U")

    def statement(self, stmt: Stmt, dest: str | None) -> None:
        mark = self.fn.top
        self.tick(stmt.pos)
        match stmt:
            case ExprStmt():
                self._expression(stmt.expr, dest)
                self.fn.top = mark
                return
            case Block():
                self.block(stmt, dest)
                self.fn.top = mark
                return
            case If():
                self._if(stmt, dest)
            case Switch():
                self._switch(stmt, dest)
            case While() | Do() | For():
                self.loop(stmt, dest)
            case Try():
                self._try(stmt, dest)
            case _:
                self._simple(stmt)
                if dest is not None and not isinstance(stmt, Return | Throw | Break):
                    self.emit(f"{dest}=U")
        self.fn.top = mark

    def _simple(self, stmt: Stmt) -> None:
        match stmt:
            case Let():
                self._let(stmt)
            case Assign():
                self._assign(stmt)
            case Return():
                self._return(stmt)
            case Throw():
                self._throw(stmt)
            case Break():
                self.jump(stmt)
            case Import():
                path = self.expr(stmt.path).text
                self.emit(self.call("import_", path, self.at(stmt.path.pos)))
            case Export():
                self.emit(self.call("export_", self.at(stmt.pos)))
            case Noop():
                pass

    def _expression(self, expr: Expr, dest: str | None) -> None:
        operand = self._operand(expr, wanted=dest is not None)
        if dest is not None:
            self.emit(f"{dest}={self.own(operand).text}")

    def _operand(self, expr: Expr, *, wanted: bool = True) -> Operand:
        """An expression as a statement: a call or an operator then counts only once."""
        if isinstance(expr, Chain):
            self.tick(expr.pos)
            return self.chain(expr, wanted=wanted)
        return self.untold(expr) if isinstance(expr, Call | Binary | Unary | Range) else self.expr(expr)

    def tail(self, body: list[Stmt]) -> None:
        for stmt in body[:-1]:
            self.statement(stmt, None)
        if not body:
            self.emit(self._returned("U"))
            return
        stmt = body[-1]
        match stmt:
            case ExprStmt():
                mark = self.fn.top
                self.tick(stmt.pos)
                operand = self._operand(stmt.expr)
                self.emit(self._returned(operand.text))
                self.fn.top = mark
            case If():
                self.tick(stmt.pos)
                mark = self.fn.top
                self.emit(f"if {self.condition(stmt.condition)} then")
                self.fn.top = mark
                self._tail_branch(stmt.then)
                self.emit("else")
                self._tail_branch(stmt.other or Block([], None))
                self.emit("end")
            case Return() | Throw():
                self.statement(stmt, None)
            case _:
                dest = self.fn.temp()
                self.statement(stmt, dest)
                self.emit(self._returned(dest))

    def _tail_branch(self, block: Block) -> None:
        before = self.fn.locals, self.variables
        self.fn.cut()
        self.tail(block.body)
        self.fn.finish_ticks()
        self.fn.locals, self.variables = before

    def _returned(self, value: str) -> str:
        if self.fn.in_try:
            return f"do return 1,{value} end"
        return f"do return {value},this end" if self.unit.changes_this else f"do return {value} end"

    def _let(self, stmt: Let) -> None:
        if self.limits.max_variables is not None and stmt.fresh:
            if self.variables >= self.limits.max_variables:
                self.emit(self.call("too_many_variables", self.at(stmt.pos)))
            self.variables += 1
        (var,) = self.scopes.declared(stmt)
        if stmt.value is None:
            self.tick(None)
            value = "U"
        else:
            value = self.value(stmt.value).text
        self.define(var, value)
        if var.top and stmt.const:
            self.emit(self.call("set_constant", quote(var.name), self.read(var)))

    # Assignment

    def _assign(self, stmt: Assign) -> None:
        target = stmt.target
        if isinstance(target, Chain):
            self.assign_chain(stmt, target)
            return
        if isinstance(target, This):
            self._assign_this(stmt)
            return
        assert isinstance(target, Variable)
        if target.path:
            self.value(stmt.value)
            name = "::".join((*target.path, target.name))
            self.emit(self.call("constant", quote(name), self.at(target.pos)))
            return
        var = self.scopes.variable(target)
        if var is not None and var.const:
            self.value(stmt.value)
            self.tick(target.pos)
            self.emit(self.call("constant", quote(var.name), self.at(target.pos)))
        elif var is not None:
            self._assign_variable(stmt, self.read(var), var.type)
        elif target.name in self.scopes.names:
            self.value(stmt.value)
            self.emit(self.call("constant", quote(target.name), self.at(target.pos)))
        elif self._in_function():
            self.value(stmt.value)
            self.tick(target.pos)
            known = "true" if target.name in self.scopes.top_names else "false"
            self.emit(self.call("novar", quote(target.name), self.at(target.pos), known))
        else:
            self._assign_state(stmt, target)

    def _assign_variable(self, stmt: Assign, place: str, kind: str) -> None:
        value = self.expr(stmt.value) if stmt.op else self.value(stmt.value)
        self.tick(stmt.target.pos)
        if not stmt.op:
            self.emit(f"{place}={value.text}")
            return
        dest = self.fn.temp()
        old = Operand(place, kind, owned=False)
        if place.endswith("]"):
            old.text = self.fn.temp()
            self.emit(f"{old.text}={place}")
        self.arithmetic(stmt.op, dest, old, value, stmt.op_pos, assign=True)
        self.emit(f"{place}={dest}")

    def _assign_state(self, stmt: Assign, target: Variable) -> None:
        value = self.expr(stmt.value) if stmt.op else self.value(stmt.value)
        self.tick(target.pos)
        cell = self.state_cell(target.name)
        self.emit(self.call("assignable", cell, quote(target.name), self.at(target.pos)))
        if stmt.op:
            dest, old = self.fn.temp(), self.fn.temp()
            self.emit(f"{old}={cell}[1]")
            self.arithmetic(stmt.op, dest, Operand(old, owned=False), value, stmt.op_pos, assign=True)
            self.emit(f"{cell}[1]={dest}")
        else:
            self.emit(f"{cell}[1]={value.text}")

    def _assign_this(self, stmt: Assign) -> None:
        self.emit(f"if this==nil then {self.call('unbound', self.at(stmt.target.pos))} end")
        value = self.expr(stmt.value) if stmt.op else self.value(stmt.value)
        self.tick(stmt.target.pos)
        if stmt.op:
            dest = self.fn.temp()
            self.arithmetic(stmt.op, dest, Operand("this", owned=False), value, stmt.op_pos, assign=True)
            self.emit(f"this={dest}")
        else:
            self.emit(f"this={value.text}")

    # Leaving

    def _return(self, stmt: Return) -> None:
        value = "U"
        if stmt.value is not None:
            value = self.expr(stmt.value).text  # whoever keeps it copies it
        self.emit(self._returned(value))

    def _throw(self, stmt: Throw) -> None:
        value = self.value(stmt.value).text if stmt.value is not None else "U"
        self.emit(self.call("throw", value, self.at(stmt.pos), self.catching or "nil"))

    # Branches

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
        self.emit(f"elseif {state}==1 then {self._returned(value)}")
        if self.loops and self.loops[-1].fn is self.fn:
            self.emit(f"elseif {state}==2 then break elseif {state} then goto {self.loops[-1].label}")
            self.loops[-1].continued = True
        elif self.loops:
            self.emit(f"elseif {state} then return {state}")
        self.emit("end")
        self.fn.cut()
