"""Branches and loops: if, while, do, for, switch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.rhai.errors import RhaiSyntaxError
from moonbox.languages.rhai.syntax.checks import boolean, is_literal, iterable, no_assignment, no_block
from moonbox.languages.rhai.syntax.expressions import ExpressionParser
from moonbox.languages.rhai.syntax.nodes import (
    Block,
    BlockExpr,
    Case,
    Do,
    Expr,
    ExprStmt,
    For,
    If,
    Literal,
    Noop,
    Range,
    Stmt,
    Switch,
    Try,
    While,
    start_of,
)
from moonbox.languages.rhai.syntax.operands import as_block

if TYPE_CHECKING:
    from moonbox.languages.rhai.syntax.state import Settings, Stream
    from moonbox.languages.rhai.syntax.tokens import Pos

__all__ = ["SELF_TERMINATED", "BranchParser"]

# Statements that need no semicolon after them.
SELF_TERMINATED = (If, Switch, While, For, Block, Try)


class BranchParser(ExpressionParser):
    """Parses compound statements; blocks come from the subclass."""

    def _if(self, settings: Settings) -> Stmt:
        stream = self._stream
        settings = settings.up(stream.next().pos)
        condition = self._condition(settings)
        then = self.block(settings)
        other = None
        if stream.take("else"):
            other = as_block(self._if(settings)) if stream.peek().kind == "if" else self.block(settings)
        return If(condition, then, other, settings.pos)

    def _condition(self, settings: Settings) -> Expr:
        no_block(self._stream, "a boolean")
        condition = boolean(self.expression(settings))
        no_assignment(self._stream)
        return condition

    def _while(self, settings: Settings) -> Stmt:
        settings = settings.up()
        token = self._stream.next()
        condition = self._condition(settings) if token.kind == "while" else None
        settings = settings.at(token.pos).inside(breakable=True)
        return While(condition, self.block(settings), token.pos)

    def _do(self, settings: Settings) -> Stmt:
        stream = self._stream
        settings = settings.up(stream.next().pos)
        body = self.block(settings.inside(breakable=True))
        token = stream.next()
        if token.kind not in ("while", "until"):
            stream.fail("Expecting 'while' for the do statement", token.pos)
        return Do(body, self._condition(settings), token.kind == "until", settings.pos)

    def _for(self, settings: Settings) -> Stmt:
        stream = self._stream
        settings = settings.up(stream.next().pos)
        counter: str | None = None
        counter_pos: Pos | None = None
        pair = stream.take("(")
        name, name_pos = self.variable_name()
        if pair:
            if not stream.take(","):
                stream.fail("Expecting ',' after the iteration variable name", stream.peek().pos)
            counter, counter_pos = self.variable_name()
            if counter == name:
                stream.fail(f"Duplicated variable name: {counter}", counter_pos)
            if not stream.take(")"):
                stream.fail("Expecting ')' to close the iteration variable", stream.peek().pos)
        stream.expect("in", "after the iteration variable")
        no_block(stream, "a boolean")
        items = iterable(self.expression(settings))
        before = len(stream.scope.names)
        for each in (counter, name):
            if each is not None:
                stream.scope.names.push(each, False)
        body = self.block(settings.inside(breakable=True))
        stream.scope.names.cut(before)
        return For(name, name_pos, counter, counter_pos, items, body, settings.pos)

    def _switch(self, settings: Settings) -> Stmt:
        stream = self._stream
        settings = settings.up(stream.next().pos)
        value = self.expression(settings)
        stream.expect("{", "to start a switch block")
        cases: list[Case] = []
        default: Pos | None = None
        ranges = False
        closing = "to end this switch block"
        while not stream.take("}"):
            token = stream.peek()
            if token.kind == "end":
                stream.missing("}", closing, token)
            if default is not None:
                stream.fail("Default switch case must be the last", default)
            values: list[Expr] = []
            guard = None
            if token.kind == "_":
                stream.next()
                default = token.pos
                if stream.peek().kind == "if":
                    stream.fail("This switch case cannot have a condition", stream.peek().pos)
            else:
                values = self._case_values(settings)
                if stream.take("if"):
                    guard = self._condition(settings)
            stream.expect("=>", "in this switch case")
            stmt = self._case_body(settings)
            ranges = _check_values(stream, values, ranges)
            cases.append(Case(values, guard, BlockExpr(as_block(stmt))))
            following = stream.peek()
            if following.kind == "end":
                stream.missing(")", closing, following)
            needs_comma = following.kind == "error" or not isinstance(stmt, SELF_TERMINATED)
            if following.kind != "}" and not stream.take(",") and needs_comma:
                stream.missing(",", "to separate the items in this switch block", following)
        return Switch(value, cases, settings.pos)

    def _case_body(self, settings: Settings) -> Stmt:
        if settings.expression_only:
            return ExprStmt(self.expression(settings))
        stmt = self.statement(settings)
        return Block([], stmt.pos) if isinstance(stmt, Noop) else stmt

    def _case_values(self, settings: Settings) -> list[Expr]:
        stream = self._stream
        values: list[Expr] = []
        while True:
            outer, stream.no_pipe = stream.no_pipe, True
            try:
                values.append(self.expression(settings))
            except RhaiSyntaxError as error:
                raise RhaiSyntaxError("Expecting literal expression", error.line, error.position, error.hint) from None
            finally:
                stream.no_pipe = outer
            if not stream.take("|"):
                return values


def _check_values(stream: Stream, values: list[Expr], ranges: bool) -> bool:
    for value in values:
        if not is_literal(value):
            stream.fail("Expecting a literal expression", start_of(value))
        if isinstance(value, Range):
            ranges = ranges or not _is_empty(value)
        elif ranges and isinstance(value, Literal) and type(value.value) in (int, float):
            stream.fail("Numeric switch case cannot follow a range case", start_of(value))
    return ranges


def _is_empty(case: Range) -> bool:
    start = case.left.value if isinstance(case.left, Literal) else 0
    end = case.right.value if isinstance(case.right, Literal) else None
    low = start if isinstance(start, int) else 0
    if not isinstance(end, int):
        return False
    return low > end if case.inclusive else low >= end
