"""Statements: blocks, branches, loops, errors."""

from __future__ import annotations

from moonbox.languages.rhai.emit.base import Operand
from moonbox.languages.rhai.emit.branches import BranchEmitter
from moonbox.languages.rhai.emit.text import quote
from moonbox.languages.rhai.syntax.nodes import (
    Assign,
    Binary,
    Block,
    Break,
    Call,
    Chain,
    Do,
    Export,
    Expr,
    ExprStmt,
    For,
    If,
    Import,
    Let,
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


class StatementEmitter(BranchEmitter):
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
            self.emit(self.returned("U"))
            return
        stmt = body[-1]
        match stmt:
            case ExprStmt():
                mark = self.fn.top
                self.tick(stmt.pos)
                operand = self._operand(stmt.expr)
                self.emit(self.returned(operand.text))
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
                self.emit(self.returned(dest))

    def _tail_branch(self, block: Block) -> None:
        before = self.fn.locals, self.variables
        self.fn.cut()
        self.tail(block.body)
        self.fn.finish_ticks()
        self.fn.locals, self.variables = before

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
        self.emit(self.returned(value))

    def _throw(self, stmt: Throw) -> None:
        value = self.value(stmt.value).text if stmt.value is not None else "U"
        self.emit(self.call("throw", value, self.at(stmt.pos), self.catching or "nil"))
