"""Reading words one by one, and the expressions of Lua's grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.lua.syntax.tree import (
    Call,
    Index,
    Literal,
    Name,
    Operation,
    Parentheses,
    Table,
    TableField,
    Unary,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moonbox.languages.lua.syntax.lexer import Token
    from moonbox.languages.lua.syntax.tree import Expression, Function

__all__ = ["ExpressionParser", "NotLua", "TooDeep"]

_DEEPEST = 60  # levels of nesting; each costs a few Python frames
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "^", "//", "&", "|", "~", "<<", ">>"})
_BINARY = _ARITHMETIC | {"..", "==", "~=", "<", "<=", ">", ">=", "and", "or"}
_UNARY = frozenset({"not", "-", "~", "#"})
_SUFFIXES = frozenset({".", "[", ":", "(", "string", "{"})
_SPELLED = frozenset({"keyword", "op", "eof"})
_CONSTANTS = frozenset({"number", "string", "nil", "true", "false", "..."})


class NotLua(Exception):
    """The grammar does not allow the current word; `text` is what Lua says, without the "near" part."""

    def __init__(self, text: str) -> None:
        self.text = text


class TooDeep(Exception):
    """The script is nested deeper than we follow."""


class ExpressionParser:
    """Moves over words and reads expressions; what functions consist of is read by a subclass."""

    def __init__(self, tokens: Sequence[Token], at: int = 0) -> None:
        self.tokens = tokens
        self.at = at
        self.text = ""
        self.brackets: list[int] = []
        self._depth = 0

    def function_value(self) -> Function:
        """A function as a value, from `function` on."""
        raise NotImplementedError

    # Moving over the tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def look(self) -> None:
        """See the current word: `text` is its text, or its kind where there are many of that kind."""
        self.at -= 1
        self.next()

    def next(self) -> None:
        self.at = at = self.at + 1
        token = self.tokens[at]
        kind = token[0]  # by position: this is the parser's innermost step
        self.text = token[1] if kind in _SPELLED else kind
        if kind == "bad":
            raise NotLua(token.problem)

    def accept(self, text: str) -> bool:
        if self.text != text:
            return False
        self.next()
        return True

    def expect(self, text: str) -> None:
        if self.text != text:
            raise NotLua(f"'{text}' expected")
        self.next()

    def name(self) -> int:
        if self.text != "name":
            raise NotLua("<name> expected")
        self.next()
        return self.at - 1

    def close(self, text: str, opener: int) -> None:
        """The end of what `opener` began."""
        if self.text != text:
            began = self.tokens[opener]
            far = f" (to close '{began.text}' at line {began.line})" if began.line != self.token.last_line else ""
            raise NotLua(f"'{text}' expected{far}")
        self.next()

    def enter(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise TooDeep

    def leave(self) -> None:
        self._depth -= 1

    # Expressions

    def expressions(self) -> tuple[Expression, ...]:
        """A list of at least one."""
        values = [self.expression()]
        while self.accept(","):
            values.append(self.expression())
        return tuple(values)

    def expression(self) -> Expression:
        self.enter()
        first = self.at
        value = self._operand()
        if self.text in _BINARY:
            operands, operators = [value], []
            while self.text in _BINARY:
                operators.append(self.at)
                self.next()
                operands.append(self._operand())
            value = Operation(first, tuple(operands), tuple(operators))
        self._depth -= 1
        return value

    def _operand(self) -> Expression:
        if self.text not in _UNARY:
            return self._simple()
        unary: list[int] = []
        while self.text in _UNARY:
            unary.append(self.at)
            self.next()
        value = self._simple()
        for operator in reversed(unary):
            value = Unary(operator, value)
        return value

    def _simple(self) -> Expression:
        if self.text == "name":
            return self.suffixed()
        if self.text in _CONSTANTS:
            self.next()
            return Literal(self.at - 1)
        if self.text == "{":
            return self._table()
        if self.text == "function":
            return self.function_value()
        return self.suffixed()

    def suffixed(self) -> Expression:
        """A name or a value in parentheses, with all the fields, indexes and calls behind it."""
        first = self.at
        value: Expression
        if self.text == "name":
            self.next()
            value = Name(first)
        elif self.text == "(":
            self._open()
            inner = self.expression()
            self._shut(")", first)
            value = Parentheses(first, inner, self.at)
        else:
            raise NotLua("unexpected symbol")
        while self.text in _SUFFIXES:
            match self.text:
                case ".":
                    self.next()
                    value = Index(first, value, Literal(self.name()), True, self.at)
                case "[":
                    key = self._key()
                    value = Index(first, value, key, False, self.at)
                case ":":
                    self.next()
                    method = self.name()
                    arguments = self._arguments()
                    value = Call(first, value, method, arguments, self.at)
                case _:
                    arguments = self._arguments()
                    value = Call(first, value, None, arguments, self.at)
        return value

    def _arguments(self) -> tuple[Expression, ...]:
        if self.text == "string":
            self.next()
            return (Literal(self.at - 1),)
        if self.text == "{":
            return (self._table(),)
        if self.text != "(":
            raise NotLua("function arguments expected")
        opener = self._open()
        arguments = self.expressions() if self.text != ")" else ()
        self._shut(")", opener)
        return arguments

    def _table(self) -> Table:
        self.enter()
        opener = self._open()
        fields: list[TableField] = []
        while self.text != "}":
            first = self.at
            key: Expression | None = None
            if self.text == "name" and self.tokens[self.at + 1].text == "=":
                key = Literal(first)
                self.next()
                self.next()
            elif self.text == "[":
                key = self._key()
                self.expect("=")
            fields.append(TableField(first, key, self.expression()))
            if not (self.accept(",") or self.accept(";")):
                break
        self._shut("}", opener)
        self.leave()
        return Table(opener, tuple(fields), self.at)

    def _key(self) -> Expression:
        """`[expression]`."""
        self._open()
        key = self.expression()
        self.expect("]")
        self.brackets.pop()
        return key

    def _open(self) -> int:
        opener = self.at
        self.brackets.append(opener)
        self.next()
        return opener

    def _shut(self, text: str, opener: int) -> None:
        self.close(text, opener)
        self.brackets.pop()
