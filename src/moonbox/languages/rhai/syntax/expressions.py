"""The expression parser: operators by precedence, and what may follow an operand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.rhai.syntax.checks import boolean, check_index
from moonbox.languages.rhai.syntax.nodes import (
    Binary,
    BlockExpr,
    Call,
    Chain,
    Expr,
    Literal,
    Logic,
    Range,
    Step,
    Unary,
    Variable,
    start_of,
)
from moonbox.languages.rhai.syntax.operands import OperandParser, as_block
from moonbox.languages.rhai.syntax.tokens import PRECEDENCE, RESERVED, Pos, Token, is_identifier

if TYPE_CHECKING:
    from moonbox.languages.rhai.syntax.state import Settings

__all__ = ["ExpressionParser"]

_SIGNS = ("-", "-u", "+", "+u")
_ENDS_A_RANGE = ("]", ")", "}", ",", ";", "=>")
_BIGGEST = 2**63
_LONGEST_PATH = 8


class ExpressionParser(OperandParser):
    """Parses expressions; statements within them come from the subclass."""

    def expression(self, settings: Settings) -> Expr:
        settings = settings.at(self._stream.peek().pos).up()
        return self._operators(settings, 1, self._unary(settings))

    # Operators

    def _operators(self, settings: Settings, parent: int, left: Expr) -> Expr:
        settings = settings.at(left.pos)
        while True:
            operator = self._stream.peek()
            if self._stream.no_pipe and operator.kind == "|":
                return left
            precedence = self._precedence(operator)
            if precedence < parent or (precedence == parent and operator.kind != "**"):
                return left
            self._stream.next()
            right = self._right_side(operator.kind, settings)
            following = self._precedence(self._stream.peek())
            if precedence < following or (precedence == following and operator.kind == "**"):
                right = self._operators(settings.up(), precedence, right)
            settings = settings.up().at(operator.pos)
            left = self._combine(operator, left, right)

    def _precedence(self, token: Token) -> int:
        if token.kind == "reserved" and not is_identifier(str(token.value)):
            self._stream.fail(f"Unknown operator: '{token.value}'", token.pos)
        return PRECEDENCE.get(token.kind, 0)

    def _right_side(self, operator: str, settings: Settings) -> Expr:
        following = self._stream.peek()
        if operator == "??" and following.kind in ("break", "continue", "return", "throw"):
            return BlockExpr(as_block(self.statement(settings)))
        if operator in ("..", "..=") and following.kind in _ENDS_A_RANGE:
            return Literal(None, following.pos)
        return self._unary(settings)

    def _combine(self, operator: Token, left: Expr, right: Expr) -> Expr:
        op, pos = operator.kind, operator.pos
        if op in ("&&", "||"):
            boolean(left)
            boolean(right)
        if op in ("&&", "||", "??"):
            return _logic(op, left, right, pos)
        if op in ("in", "!in"):
            contains = Call("contains", [right, left], pos)
            return contains if op == "in" else Unary("!", contains, pos)
        if op in ("..", "..="):
            return Range(left, right, op == "..=", pos)
        return Binary(op, left, right, pos)

    def _unary(self, settings: Settings) -> Expr:
        token = self._stream.peek()
        if self._stream.no_pipe and token.kind == "|":
            raise self.unexpected(token)
        settings = settings.at(token.pos)
        if token.kind in _SIGNS:
            self._stream.next()
            return _signed(token.kind[0], self._unary(settings.up()), token.pos)
        if token.kind == "!":
            self._stream.next()
            return Unary("!", self._unary(settings.up()), token.pos)
        if token.kind == "end":
            self._stream.fail("Script is incomplete", token.pos)
        return self.primary(settings)

    # What may follow an operand

    def postfix(self, settings: Settings, left: Expr) -> Expr:
        stream = self._stream
        while True:
            token = stream.peek()
            if token.kind in (".", "?."):
                stream.next()
                settings = settings.at(token.pos).up()
                step = self._member(settings, token)
            elif token.kind in ("[", "?["):
                stream.next()
                left = self._indexes(settings.at(token.pos).up(), left, token)
                continue
            elif isinstance(left, Variable) and token.kind in ("(", "()", "!", "::"):
                left = self._after_name(settings, left)
                continue
            else:
                return left
            left = _extended(left, step)

    def _after_name(self, settings: Settings, left: Variable) -> Expr:
        stream = self._stream
        token = stream.next()
        if token.kind == "::":
            name, pos = self.variable_name()
            if len(left.path) >= _LONGEST_PATH:
                stream.fail("Module path is too long", pos)
            return Variable(name, pos, (*left.path, left.name), left.path_pos or left.pos)
        in_scope = token.kind == "!"
        if in_scope:
            following = stream.peek()
            if left.path:
                if following.kind in ("(", "()"):
                    raise self.unexpected(token)
                stream.fail("'!' cannot be used to call module functions", token.pos)
            if following.kind not in ("(", "()"):
                stream.missing("(", "to start arguments list of function call", following)
            token = stream.next()
        stream.runs_in_scope |= in_scope
        args = [] if token.kind == "()" else self._arguments(settings.at(left.pos), left.name)
        return Call(left.name, args, left.pos, left.path, left.path_pos, in_scope)

    def _arguments(self, settings: Settings, name: str) -> list[Expr]:
        stream = self._stream
        args: list[Expr] = []
        closing = f"to close the arguments list of this function call '{name}'"
        if stream.peek().kind in ("end", "error"):
            stream.missing(")", closing, stream.peek())
        if stream.take(")"):
            return args
        settings = settings.up()
        while True:
            if stream.peek().kind != ")":
                args.append(self.expression(settings))
            token = stream.peek()
            if stream.take(")"):
                return args
            if token.kind == "end":
                stream.missing(")", closing, token)
            if not stream.take(","):
                stream.missing(",", f"to separate the arguments to function call '{name}'", token)

    def _member(self, settings: Settings, operator: Token) -> Step:
        stream = self._stream
        token = stream.peek()
        name = str(token.value)
        optional = operator.kind == "?."
        if token.kind == "reserved" and RESERVED.get(name) != "m":
            raise self.reserved(token)
        if token.kind not in ("name", "reserved"):
            stream.fail("Expecting name of a property", token.pos)
        stream.next()
        following = stream.peek()
        if following.kind == "::":
            stream.fail("Invalid symbol encountered: '::'", following.pos)
        if following.kind == "!":
            stream.next()
            if stream.peek().kind not in ("(", "()"):
                stream.missing("(", "to start arguments list of function call", stream.peek())
            message = "method-call style does not support running within the caller's scope"
            stream.fail(message, token.pos)
        if following.kind in ("(", "()"):
            stream.next()
            args = [] if following.kind == "()" else self._arguments(settings.at(token.pos), name)
            return Step("method", name, args, token.pos, operator.pos, optional)
        if token.kind == "reserved":
            raise self.reserved(token)
        return Step("property", name, [], token.pos, operator.pos, optional)

    def _indexes(self, settings: Settings, left: Expr, operator: Token) -> Expr:
        stream = self._stream
        first = True
        while True:
            index = self.expression(settings.up())
            if first:
                check_index(left, index)
            token = stream.next()
            if token.kind != "]":
                stream.missing("]", "for a matching [ in this index expression", token)
            step = Step("index", "", [index], start_of(index), operator.pos, operator.kind == "?[")
            left = _extended(left, step)
            operator = stream.peek()
            if operator.kind not in ("[", "?["):
                return left
            stream.next()
            settings = settings.at(operator.pos).up()
            first = False


def _extended(left: Expr, step: Step) -> Chain:
    if isinstance(left, Chain):
        left.steps.append(step)
        return left
    return Chain(left, [step])


def _logic(op: str, left: Expr, right: Expr, pos: Pos | None) -> Logic:
    if isinstance(left, Logic) and left.op == op:
        left.items.extend(right.items if isinstance(right, Logic) and right.op == op else [right])
        return left
    if isinstance(right, Logic) and right.op == op:
        right.items.insert(0, left)
        right.pos = pos
        return right
    return Logic(op, [left, right], pos)


def _signed(sign: str, operand: Expr, pos: Pos | None) -> Expr:
    if isinstance(operand, Literal) and type(operand.value) in (int, float):
        value = operand.value
        assert isinstance(value, int | float)
        if sign == "+":
            return operand
        return Literal(-float(value) if value == -_BIGGEST else -value, pos)
    return Unary(sign, operand, pos)
