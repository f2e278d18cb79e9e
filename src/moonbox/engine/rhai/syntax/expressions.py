"""The expression parser: operators by precedence, operands, and what may follow them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from moonbox.engine.rhai.syntax.checks import boolean, check_index
from moonbox.engine.rhai.syntax.nodes import (
    Array,
    Binary,
    Block,
    BlockExpr,
    Call,
    Chain,
    Char,
    Closure,
    Expr,
    Interpolated,
    Literal,
    Logic,
    Map,
    Range,
    Step,
    Stmt,
    This,
    Unary,
    Variable,
    start_of,
)
from moonbox.engine.rhai.syntax.state import Scope, Settings, Stream
from moonbox.engine.rhai.syntax.tokens import KEYWORD_FOR_PARAMETER, PRECEDENCE, RESERVED, Pos, Token, is_identifier

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.engine.rhai.errors import RhaiSyntaxError

__all__ = ["ExpressionParser"]

_SIGNS = ("-", "-u", "+", "+u")
_ENDS_A_RANGE = ("]", ")", "}", ",", ";", "=>")
_STATEMENTS = ("if", "while", "loop", "do", "for", "switch")
_BIGGEST = 2**63
_LONGEST_PATH = 8
MAX_PARAMETERS = 50


class ExpressionParser(ABC):
    """Parses expressions; statements within them come from the subclass."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    @abstractmethod
    def statement(self, settings: Settings) -> Stmt: ...

    @abstractmethod
    def block(self, settings: Settings) -> Block: ...

    @abstractmethod
    def compound(self, settings: Settings) -> Stmt:
        """An if, switch or loop."""

    def expression(self, settings: Settings) -> Expr:
        settings = settings.at(self._stream.peek().pos).up()
        return self._operators(settings, 1, self._unary(settings))

    def variable_name(self) -> tuple[str, Pos]:
        token = self._stream.next()
        if token.kind == "name" and token.pos:
            return str(token.value), token.pos
        if token.kind == "reserved" and is_identifier(str(token.value)):
            raise self._reserved(token)
        if token.kind == "error":
            self._stream.fail_on(token)
        raise self._stream.error("Expecting name of a variable", token.pos)

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
            raise self._unexpected(token)
        settings = settings.at(token.pos)
        if token.kind in _SIGNS:
            self._stream.next()
            return _signed(token.kind[0], self._unary(settings.up()), token.pos)
        if token.kind == "!":
            self._stream.next()
            return Unary("!", self._unary(settings.up()), token.pos)
        if token.kind == "end":
            self._stream.fail("Script is incomplete", token.pos)
        return self._primary(settings)

    # Operands

    def _primary(self, settings: Settings) -> Expr:
        token = self._stream.peek()
        settings = settings.at(token.pos)
        root = self._operand(token, settings)
        if self._stream.no_pipe and self._stream.peek().kind == "|":
            return root
        return self._postfix(settings, root)

    def _operand(self, token: Token, settings: Settings) -> Expr:
        stream, kind = self._stream, token.kind
        if kind in ("..", "..="):
            return Literal(0, token.pos)
        if kind in ("name", "reserved"):
            return self._name(settings)
        if kind in _LITERALS:
            stream.next()
            return Literal(_LITERALS[kind](token), token.pos)
        if kind == "interpolated":
            return self._interpolated(settings.up())
        if kind == "(":
            stream.next()
            inner = self.expression(settings.up())
            stream.expect(")", "for a matching ( in this expression")
            return inner
        if kind == "[":
            return self._array(settings.up())
        if kind == "#{":
            return self._map(settings.up())
        if kind == "{" and not settings.expression_only:
            return BlockExpr(self.block(settings.up()))
        if kind in ("if", "switch") or (kind in _STATEMENTS and not settings.expression_only):
            return BlockExpr(as_block(self.compound(settings.up())))
        if kind in ("|", "||"):
            return self._closure(settings)
        if kind == "error":
            stream.next()
            stream.fail_on(token)
        if kind == "end":
            stream.fail("Script is incomplete", token.pos)
        raise self._unexpected(token)

    def _name(self, settings: Settings) -> Expr:
        token = self._stream.next()
        name, following = str(token.value), self._stream.peek()
        if token.kind == "name":
            return Variable(name, token.pos)
        if following.kind in ("(", "!", "()") and RESERVED.get(name):
            return Variable(name, token.pos)
        if name == "this":
            if settings.in_function:
                return This(token.pos)
            self._stream.fail("'this' can only be used in functions", token.pos)
        raise self._reserved(token)

    def _interpolated(self, settings: Settings) -> Expr:
        stream = self._stream
        token = stream.next()
        start = token.pos
        parts: list[Expr] = []
        while True:
            if token.value != "":
                parts.append(Literal(token.value, token.pos))
            if token.kind != "interpolated":
                break
            inner = self.block(settings)
            if inner.body or not settings.expression_only:
                parts.append(BlockExpr(inner))
            token = stream.next_text()
            if token.kind == "error":
                stream.fail_on(token)
        return Interpolated(parts, start) if parts else Literal("", start)

    def _array(self, settings: Settings) -> Expr:
        stream = self._stream
        settings = settings.at(stream.next().pos)
        items: list[Expr] = []
        most = stream.limits.max_array
        while True:
            if most is not None and len(items) >= most:
                stream.fail(f"Size of array literal exceeds the maximum limit ({most})", stream.peek().pos)
            if stream.take("]"):
                break
            if stream.peek().kind == "end":
                stream.missing("]", "to end this array literal", stream.peek())
            items.append(self.expression(settings.up()))
            following = stream.peek()
            if following.kind == "end":
                stream.missing("]", "to end this array literal", following)
            if following.kind != "]" and not stream.take(","):
                stream.missing(",", "to separate the items of this array literal", following)
        return Array(items, settings.pos)

    def _map(self, settings: Settings) -> Expr:
        stream = self._stream
        settings = settings.at(stream.next().pos)
        items: dict[str, Expr] = {}
        most = stream.limits.max_map
        while not stream.take("}"):
            name = self._map_key(items)
            stream.expect(":", f"to follow the property '{name}' in this object map literal")
            if most is not None and len(items) >= most:
                message = f"Number of properties in object map literal exceeds the maximum limit ({most})"
                stream.fail(message, stream.peek().pos)
            items[name] = self.expression(settings.up())
            following = stream.peek()
            if following.kind == "name":
                stream.missing(",", "to separate the items of this object map literal", following)
            if following.kind != "}" and not stream.take(","):
                stream.missing("}", "to end this object map literal", following)
        return Map(list(items.items()), settings.pos)

    def _map_key(self, items: dict[str, Expr]) -> str:
        stream = self._stream
        token = stream.next()
        if token.kind in ("name", "string"):
            name = str(token.value)
            if name in items:
                stream.fail(f"Duplicated property for object map literal: {name}", token.pos)
            return name
        if token.kind == "reserved" and is_identifier(str(token.value)):
            raise self._reserved(token)
        if token.kind == "error":
            stream.fail_on(token)
        if token.kind == "end" or (not items and token.kind != "interpolated"):
            stream.missing("}", "to end this object map literal", token)
        raise stream.error("Expecting name of a property", token.pos)

    def _closure(self, settings: Settings) -> Expr:
        stream = self._stream
        stream.count_function(settings.pos)
        outer, stream.scope = stream.scope, Scope()
        outer_filter, stream.no_pipe = stream.no_pipe, False
        params: list[str] = []
        if stream.next().kind == "|" and not stream.take("|"):
            params = self.parameters("|", "anonymous function", "anonymous function or closure", "")
        body = self.statement(settings.closure().up())
        stream.scope, stream.no_pipe = outer, outer_filter
        stream.closures += 1
        return Closure(params, body, settings.pos)

    def parameters(self, closing: str, separated: str, closed: str, name: str) -> list[str]:
        """The parameters of a function, up to the token that closes them."""
        stream = self._stream
        params: list[str] = []
        while True:
            token = stream.next()
            if token.kind == closing:
                break
            if token.kind == "reserved":
                raise self._reserved(token)
            if token.kind in KEYWORD_FOR_PARAMETER:
                stream.fail("Expecting name of a variable", token.pos)
            if token.kind != "name":
                stream.missing(closing, f"to close the parameters list of {closed}", token)
            param = str(token.value)
            if param in params:
                stream.fail(f"Duplicated parameter {param} for function {name}", token.pos)
            params.append(param)
            if len(params) > MAX_PARAMETERS:
                stream.fail(f"Too many parameters: a function takes at most {MAX_PARAMETERS}", token.pos)
            stream.scope.names.push(param, False)
            token = stream.next()
            if token.kind == closing:
                break
            if token.kind != ",":
                stream.missing(",", f"to separate the parameters of {separated}", token)
        return params

    # What may follow an operand

    def _postfix(self, settings: Settings, left: Expr) -> Expr:
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
                    raise self._unexpected(token)
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
            raise self._reserved(token)
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
            raise self._reserved(token)
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

    def _reserved(self, token: Token) -> RhaiSyntaxError:
        what = "keyword" if is_identifier(str(token.value)) else "symbol"
        return self._stream.error(f"'{token.value}' is a reserved {what}", token.pos)

    def _unexpected(self, token: Token) -> RhaiSyntaxError:
        return self._stream.error(f"Unexpected '{token}'", token.pos)


_LITERALS: dict[str, Callable[[Token], object]] = {
    "()": lambda token: None,
    "true": lambda token: True,
    "false": lambda token: False,
    "int": lambda token: token.value,
    "float": lambda token: token.value,
    "string": lambda token: token.value,
    "char": lambda token: Char(token.value),
}


def as_block(stmt: Stmt) -> Block:
    """A statement as a block of its own."""
    return stmt if isinstance(stmt, Block) else Block([stmt], stmt.pos)


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
