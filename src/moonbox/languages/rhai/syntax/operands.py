"""Operands: names, literals, arrays, maps, text with values in it, closures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from moonbox.languages.rhai.syntax.nodes import (
    Array,
    Block,
    BlockExpr,
    Char,
    Closure,
    Expr,
    Interpolated,
    Literal,
    Map,
    Stmt,
    This,
    Variable,
)
from moonbox.languages.rhai.syntax.state import Scope, Settings, Stream
from moonbox.languages.rhai.syntax.tokens import KEYWORD_FOR_PARAMETER, RESERVED, Pos, Token, is_identifier

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.languages.rhai.errors import RhaiSyntaxError

__all__ = ["OperandParser", "as_block"]

_STATEMENTS = ("if", "while", "loop", "do", "for", "switch")
_MAX_PARAMETERS = 50


class OperandParser(ABC):
    """Parses operands; what they are made of comes from the subclasses."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    @abstractmethod
    def statement(self, settings: Settings) -> Stmt: ...

    @abstractmethod
    def block(self, settings: Settings) -> Block: ...

    @abstractmethod
    def compound(self, settings: Settings) -> Stmt:
        """An if, switch or loop."""

    @abstractmethod
    def expression(self, settings: Settings) -> Expr: ...

    @abstractmethod
    def postfix(self, settings: Settings, left: Expr) -> Expr:
        """An operand with what follows it."""

    def variable_name(self) -> tuple[str, Pos]:
        token = self._stream.next()
        if token.kind == "name" and token.pos:
            return str(token.value), token.pos
        if token.kind == "reserved" and is_identifier(str(token.value)):
            raise self.reserved(token)
        if token.kind == "error":
            self._stream.fail_on(token)
        raise self._stream.error("Expecting name of a variable", token.pos)

    # Operands

    def primary(self, settings: Settings) -> Expr:
        token = self._stream.peek()
        settings = settings.at(token.pos)
        root = self._operand(token, settings)
        if self._stream.no_pipe and self._stream.peek().kind == "|":
            return root
        return self.postfix(settings, root)

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
        raise self.unexpected(token)

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
        raise self.reserved(token)

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
            raise self.reserved(token)
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
                raise self.reserved(token)
            if token.kind in KEYWORD_FOR_PARAMETER:
                stream.fail("Expecting name of a variable", token.pos)
            if token.kind != "name":
                stream.missing(closing, f"to close the parameters list of {closed}", token)
            param = str(token.value)
            if param in params:
                stream.fail(f"Duplicated parameter {param} for function {name}", token.pos)
            params.append(param)
            if len(params) > _MAX_PARAMETERS:
                stream.fail(f"Too many parameters: a function takes at most {_MAX_PARAMETERS}", token.pos)
            stream.scope.names.push(param, False)
            token = stream.next()
            if token.kind == closing:
                break
            if token.kind != ",":
                stream.missing(",", f"to separate the parameters of {separated}", token)
        return params

    def reserved(self, token: Token) -> RhaiSyntaxError:
        what = "keyword" if is_identifier(str(token.value)) else "symbol"
        return self._stream.error(f"'{token.value}' is a reserved {what}", token.pos)

    def unexpected(self, token: Token) -> RhaiSyntaxError:
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
