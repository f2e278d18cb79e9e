"""The statement parser, and with it the whole of a script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.rhai.errors import RhaiSyntaxError
from moonbox.languages.rhai.syntax.branches import SELF_TERMINATED, BranchParser
from moonbox.languages.rhai.syntax.checks import is_literal
from moonbox.languages.rhai.syntax.nodes import (
    Array,
    Assign,
    Block,
    Break,
    Chain,
    Export,
    Expr,
    ExprStmt,
    Function,
    Import,
    Let,
    Literal,
    Logic,
    Map,
    Noop,
    Return,
    Script,
    Stmt,
    This,
    Throw,
    Try,
    Variable,
    start_of,
)
from moonbox.languages.rhai.syntax.state import ParseLimits, Scope, Settings, Stream
from moonbox.languages.rhai.syntax.tokens import ASSIGNMENTS, Token, is_name

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["parse", "parse_expression"]

_TYPES = {"int": "i64", "float": "f64"}


def parse(text: str, limits: ParseLimits | None = None) -> Script:
    """The syntax tree of a script; raises RhaiSyntaxError."""
    limits = limits or ParseLimits()
    return Parser(Stream(text, limits)).script(Settings(limits.expr_depth, at_top=True))


def parse_expression(text: str, limits: ParseLimits | None = None) -> Script:
    """The same for a text that must be a single expression."""
    limits = limits or ParseLimits()
    stream = Stream(text, limits)
    expr = Parser(stream).expression(Settings(limits.expr_depth, expression_only=True))
    token = stream.peek()
    if token.kind == "error":
        stream.fail_on(token)
    if token.kind != "end":
        stream.fail(f"Unexpected '{token}'", token.pos)
    return Script([ExprStmt(expr)], list(stream.functions.values()))


class Parser(BranchParser):
    """Statements, blocks and functions."""

    def script(self, settings: Settings) -> Script:
        stream = self._stream
        body: list[Stmt] = []
        while stream.peek().kind != "end":
            stmt = self.statement(settings)
            if isinstance(stmt, Noop):
                continue
            body.append(stmt)
            self._terminator(stmt, "end")
        return Script(body, list(stream.functions.values()), stream.runs_in_scope)

    def block(self, settings: Settings) -> Block:
        stream = self._stream
        start = stream.expect("{", "to start a statement block").pos
        settings = settings.up(start)
        if settings.expression_only:
            only = ExprStmt(self.expression(settings))
            stream.expect("{" if stream.peek().kind != "}" else "}", "to start a statement block")
            return Block([only], start)
        frame, stream.scope.frame = stream.scope.frame, len(stream.scope.names)
        inside = settings.inside(breakable=settings.breakable)
        body: list[Stmt] = []
        while True:
            token = stream.peek()
            if stream.take("}"):
                break
            if token.kind == "end":
                stream.missing("}", "to terminate this block", token)
            stmt = self.statement(inside)
            if isinstance(stmt, Noop):
                continue
            body.append(stmt)
            self._terminator(stmt, "}")
        stream.scope.names.cut(stream.scope.frame)
        stream.scope.frame = frame
        return Block(body, start)

    def _terminator(self, stmt: Stmt, closing: str) -> None:
        token = self._stream.peek()
        if token.kind == closing or self._stream.take(";") or isinstance(stmt, SELF_TERMINATED):
            return
        self._stream.missing(";", "to terminate this statement", token)

    def statement(self, settings: Settings) -> Stmt:
        stream = self._stream
        token = stream.peek()
        kind = token.kind
        settings = settings.at(token.pos)
        if kind == "end":
            return Noop(token.pos)
        if kind == ";":
            stream.next()
            return Noop(token.pos)
        if kind in ("fn", "private"):
            return self._definition(settings)
        simple = _SIMPLE.get(kind)
        if simple:
            return simple(self, settings)
        if kind == "{":
            return self.block(settings.up())
        if kind in ("if", "switch", "while", "loop", "do", "for"):
            return self.compound(settings.up())
        return self._expression_statement(settings.up())

    def compound(self, settings: Settings) -> Stmt:
        return _COMPOUND[self._stream.peek().kind](self, settings)

    # Simple statements

    def _expression_statement(self, settings: Settings) -> Stmt:
        stream = self._stream
        expr = self.expression(settings)
        operator = stream.peek()
        if operator.kind != "=" and operator.kind not in ASSIGNMENTS:
            return ExprStmt(expr)
        stream.next()
        value = self.expression(settings.at(operator.pos))
        self._check_target(expr, operator)
        return Assign(expr, operator.kind[:-1], value, operator.pos)

    def _check_target(self, target: Expr, operator: Token) -> None:
        stream = self._stream
        if isinstance(target, This):
            return
        if isinstance(target, Variable):
            if not target.path and stream.scope.is_constant(target.name):
                stream.fail(f"Cannot assign to constant {target.name}", target.pos)
            return
        if isinstance(target, Chain):
            method = next((step for step in target.steps if step.kind == "method"), None)
            if method is None and isinstance(target.root, Variable | This):
                return
            stream.fail("Expression cannot be assigned to", method.pos if method else target.root.pos)
        if isinstance(target, Literal | Array | Map) and is_literal(target):
            stream.fail("Cannot assign to a constant value", start_of(target))
        if isinstance(target, Logic) and operator.kind == "=":
            stream.fail("Possibly a typo of '=='?", operator.pos)
        stream.fail("Expression cannot be assigned to", target.pos)

    def _let(self, settings: Settings) -> Stmt:
        stream = self._stream
        settings = settings.up()
        keyword = stream.next()
        settings = settings.at(keyword.pos)
        name, name_pos = self.variable_name()
        value = self.expression(settings.up()) if stream.take("=") else None
        constant = keyword.kind == "const"
        fresh = stream.scope.declare(name, constant)
        return Let(name, name_pos, value, constant, keyword.pos, fresh)

    def _jump(self, settings: Settings) -> Stmt:
        stream = self._stream
        token = stream.peek()
        if token.kind in ("break", "continue") and not settings.breakable:
            stream.fail("Break statement should only be used inside a loop", token.pos)
        stream.next()
        if token.kind == "continue":
            return Break(None, True, token.pos)
        value = self._optional_value(settings)
        if token.kind == "break":
            return Break(value, False, token.pos)
        return Return(value, token.pos) if token.kind == "return" else Throw(value, token.pos)

    def _optional_value(self, settings: Settings) -> Expr | None:
        """An expression, or nothing where none can start."""
        following = self._stream.peek()
        try:
            return self.expression(settings.up())
        except RhaiSyntaxError:
            if self._stream.peek() is following:
                return None
            raise

    def _import(self, settings: Settings) -> Stmt:
        settings = settings.up()
        settings = settings.up(self._stream.next().pos)
        path = self.expression(settings)
        if self._stream.take("as"):
            self.variable_name()
        return Import(path, settings.pos)

    def _export(self, settings: Settings) -> Stmt:
        stream = self._stream
        token = stream.peek()
        if not settings.at_top:
            stream.fail("Export statement can only appear at global level", token.pos)
        settings = settings.up()
        stream.next()
        if stream.peek().kind in ("let", "const"):
            return self._let(settings)
        self.variable_name()
        if stream.take("as"):
            self.variable_name()
        return Export(token.pos)

    def _try(self, settings: Settings) -> Stmt:
        stream = self._stream
        settings = settings.up().up(stream.next().pos)
        body = self.block(settings)
        if not stream.take("catch"):
            stream.fail("Expecting 'catch' for the 'try' statement", stream.peek().pos)
        name, name_pos = None, None
        if stream.take("("):
            name, name_pos = self.variable_name()
            if not stream.take(")"):
                stream.fail("Expecting ')' to enclose the catch variable", stream.peek().pos)
            stream.scope.names.push(name, False)
        handler = self.block(settings)
        if name is not None:
            stream.scope.names.cut(len(stream.scope.names) - 1)
        return Try(body, name, name_pos, handler, settings.pos)

    # Functions

    def _definition(self, settings: Settings) -> Stmt:
        stream = self._stream
        first = stream.next()
        keyword = first
        if first.kind == "private":
            keyword = stream.next()
            if keyword.kind != "fn":
                stream.fail("Expecting 'fn' following 'private'", keyword.pos)
        if not settings.at_top:
            stream.fail(
                "Function definitions must be at global level and cannot be inside a block or another function",
                first.pos,
            )
        stream.count_function(keyword.pos)
        outer, stream.scope = stream.scope, Scope()
        limits = stream.limits
        function = self._function(Settings(limits.function_expr_depth, pos=keyword.pos, in_function=True).up())
        stream.scope = outer
        key = (function.name, len(function.params), function.this_type)
        if key in stream.functions:
            count = len(function.params)
            words = {0: "no parameters", 1: "1 parameter"}.get(count, f"{count} parameters")
            stream.fail(f"Function {function.name} with {words} already exists", keyword.pos)
        stream.functions[key] = function
        return Noop(keyword.pos)

    def _function(self, settings: Settings) -> Function:
        stream = self._stream
        token = stream.next()
        this_type = None
        if token.kind in ("string", "name"):
            if stream.peek().kind == ".":
                stream.next()
                this_type = _TYPES.get(str(token.value), str(token.value))
                token = stream.next()
            elif token.kind == "string":
                stream.fail("Expecting '.' after the type name for 'this'", stream.peek().pos)
        name = str(token.value)
        if token.kind == "reserved":
            raise self.reserved(token)
        if token.kind != "name" or not is_name(name):
            stream.fail("Expecting function name in function declaration", token.pos)
        following = stream.peek()
        if following.kind not in ("(", "()"):
            stream.fail(f"Expecting parameters for function {name}", following.pos)
        stream.next()
        params: list[str] = []
        if following.kind == "(" and not stream.take(")"):
            params = self.parameters(")", f"function '{name}'", f"function '{name}'", name)
        if stream.peek().kind != "{":
            stream.fail(f"Expecting body statement block for function {name}", stream.peek().pos)
        return Function(name, params, self.block(settings), this_type, settings.pos)


_SIMPLE: dict[str, Callable[[Parser, Settings], Stmt]] = {
    "let": Parser._let,
    "const": Parser._let,
    "break": Parser._jump,
    "continue": Parser._jump,
    "return": Parser._jump,
    "throw": Parser._jump,
    "try": Parser._try,
    "import": Parser._import,
    "export": Parser._export,
}
_COMPOUND: dict[str, Callable[[Parser, Settings], Stmt]] = {
    "if": Parser._if,
    "switch": Parser._switch,
    "while": Parser._while,
    "loop": Parser._while,
    "do": Parser._do,
    "for": Parser._for,
}
