"""The reader of a Rhai script: words in, the checker's program out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from moonbox.languages import program as p
from moonbox.languages.rhai.constructs import CONSTRUCTS
from moonbox.languages.rhai.scanner import UNIT, Token, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Reader"]

_DEEPEST = 60
_PRECEDENCE = {
    "||": 30, "^": 30, "|": 30, "&&": 60, "&": 60, "==": 90, "!=": 90, "in": 110, "!in": 110, "<": 130, "<=": 130,
    ">": 130, ">=": 130, "??": 135, "..": 140, "..=": 140, "+": 150, "-": 150, "*": 180, "/": 180, "%": 180,
    "**": 190, "<<": 210, ">>": 210,
}  # fmt: skip
_ASSIGNMENTS = frozenset({"=", "+=", "-=", "*=", "/=", "<<=", ">>=", "%=", "**=", "&=", "|=", "^="})
_WITHOUT_TAIL = frozenset({"if", "switch", "{", "loop", "while", "do", "for", "try"})
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class Reader:
    """Reads words one by one; operators by precedence."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.at, self.depth = tokens, 0, 0
        self.assigned: dict[str, int] = {}
        self.fields: set[str] = set()
        self.filled: dict[str, int] = {}
        self.stops: dict[int, int] = {}
        self._kept: list[p.Expression] = []  # what `stops` knows by identity must stay alive

    @property
    def text(self) -> str:
        token = self.tokens[self.at]
        return token.text if token.kind in ("op", "keyword", "close", "open") else ""

    @property
    def kind(self) -> str:
        return self.tokens[self.at].kind

    def accept(self, text: str) -> bool:
        if self.text != text:
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise Unreadable

    def name(self) -> str:
        if self.kind != "name":
            raise Unreadable
        self.at += 1
        return self.tokens[self.at - 1].text

    def enter(self) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise Unreadable

    # Statements

    def program(self) -> p.Block:
        body = self._statements("<eof>")
        if self.kind != "eof":
            raise Unreadable
        return body

    def _statements(self, end: str) -> p.Block:
        statements: list[p.Statement] = []
        while self.kind != "eof" and self.text != end:
            if not self.accept(";"):
                statement = self.statement()
                last = self.text == end or self.kind == "eof"
                if last and end == "}" and type(statement) is p.Evaluate:
                    statement = p.Give(statement.at, (statement.value,))
                statements.append(statement)
        return p.Block(tuple(statements))

    def statement(self) -> p.Statement:
        at = self.at
        if self.text in ("let", "const"):
            self.at += 1
            name = self.name()
            values = (self.expression(),) if self.accept("=") else ()
            return p.Declare(at, (name,), values)
        if self.text in ("fn", "private"):
            return self._fn()
        if self.text in ("import", "export"):
            raise Unreadable
        if self.text in _WITHOUT_TAIL:  # nothing behind its end belongs to it
            return p.Evaluate(at, self._primary())
        value = self.expression()
        if self.text in _ASSIGNMENTS:
            return self._assignment(at, value)
        return p.Evaluate(at, value)

    def _assignment(self, at: int, target: p.Expression) -> p.Statement:
        operator = self.text[:-1]
        where = self.at
        self.at += 1
        value = self.expression()
        if operator:
            value = p.Operation(where, operator, target, value)
        if type(target) is p.Name:
            self.assigned[target.name] = self.assigned.get(target.name, 0) + 1
        elif type(target) is p.Field:
            self.fields.add(target.name)
        elif type(target) is p.Item and type(target.key) is not p.Constant:
            self._fill(p.root(target))
        return p.Assign(at, (target,), (value,))

    def _fn(self) -> p.Statement:
        at = self.at
        self.accept("private")
        self.expect("fn")
        name = self.name()
        where = self.at - 1
        self.assigned[name] = self.assigned.get(name, 0) + 1
        parameters = self._parameters()
        return p.Define(at, p.Name(where, name), p.Function(at, parameters, self.block()), False)

    def _parameters(self) -> tuple[str, ...]:
        if self.accept(UNIT):
            return ()
        self.expect("(")
        names: list[str] = []
        while not self.accept(")"):
            names.append(self.name())
            if not self.accept(",") and self.text != ")":
                raise Unreadable
        return tuple(names)

    def block(self) -> p.Block:
        self.enter()
        self.expect("{")
        block = self._statements("}")
        self.expect("}")
        self.depth -= 1
        return block

    # Values

    def expression(self, least: int = 0) -> p.Expression:
        self.enter()
        left = self._postfix(self._primary())
        while (rank := _PRECEDENCE.get(self.text, -1)) > least:
            at, operator = self.at, self.text
            self.at += 1
            if operator in ("..", "..=") and (self.text in (")", "]", "{", ";", ",") or self.kind == "eof"):
                left = p.Other(at, (left,), "range")
                continue
            right = self.expression(rank)
            if operator in ("..", "..="):
                left = p.Other(at, (left, right), "range")
            elif operator == "??":
                left = p.Operation(at, "or", left, right)
            else:
                left = p.Operation(at, operator, left, right)
        self.depth -= 1
        return left

    def _primary(self) -> p.Expression:
        token = self.tokens[self.at]
        if token.kind == "name":
            return self._path()
        if token.kind in ("number", "string", "char"):
            self.at += 1
            return self._quotable(p.Constant(self.at - 1, _constant(token)))
        if token.kind == "text":
            return self._interpolated()
        if token.text in ("true", "false") and token.kind == "keyword":
            self.at += 1
            return self._quotable(p.Constant(self.at - 1, token.text == "true"))
        primary = _BEGINNINGS.get(self.text)
        if primary is None:
            raise Unreadable
        return primary(self)

    def _quotable(self, value: p.Expression) -> p.Expression:
        """It ends here, so that its text can be shown."""
        self.stops[id(value)] = self.at
        self._kept.append(value)
        return value

    def _path(self) -> p.Expression:
        """A variable, a function, or `space::name`, which is a tool in a namespace."""
        at = self.at
        names = [self.name()]
        while self.accept("::"):
            names.append(self.name())
        if len(names) == 2 and names[0] == "global":
            return self._quotable(p.Name(at, names[1]))
        if len(names) == 1:
            return self._quotable(p.Name(at, names[0]))
        value: p.Expression = p.Name(at, "tools")
        for index, name in enumerate(names):
            value = p.Field(at, value, name, at + 2 * index)
        return self._quotable(value)

    def _interpolated(self) -> p.Expression:
        at = self.at
        self.at += 1
        parts: list[p.Expression | p.Statement] = []
        while self.tokens[self.at].kind == "open":
            self.at += 1
            parts.append(self._statements("}"))
            if self.tokens[self.at].kind != "close":
                raise Unreadable
            self.at += 1
        if self.tokens[self.at].kind != "end":
            raise Unreadable
        self.at += 1
        if not parts:
            return self._quotable(p.Other(at, (), "text"))
        return p.Other(at, tuple(parts), "text")

    def _postfix(self, value: p.Expression) -> p.Expression:
        at = value.at
        while True:
            text = self.text
            if text in (".", "?."):
                self.at += 1
                key, name = self.at, self._property()
                if self.text in ("(", UNIT):
                    if name in ("push", "insert", "append", "set"):
                        self._fill(p.root(value))
                    value = self._quotable(p.Method(at, value, name, self._arguments(), key))
                else:
                    value = self._quotable(p.Field(at, value, name, key))
            elif text in ("[", "?["):
                self.at += 1
                inner = self.expression()
                self.expect("]")
                if type(inner) is p.Constant and isinstance(inner.value, str):
                    value = self._quotable(p.Field(at, value, inner.value, inner.at))
                else:
                    value = self._quotable(p.Item(at, value, inner))
            elif text in ("(", UNIT) and type(value) in (p.Name, p.Field):
                value = self._quotable(p.Call(at, value, self._arguments(), True))
            elif text == "!" and type(value) is p.Name and self.tokens[self.at + 1].text in ("(", UNIT):
                self.at += 1
            else:
                return value

    def _fill(self, name: str) -> None:
        self.filled[name] = self.filled.get(name, 0) + 1

    def _property(self) -> str:
        token = self.tokens[self.at]
        if token.kind not in ("name", "keyword"):
            raise Unreadable
        self.at += 1
        return token.text

    def _arguments(self) -> tuple[p.Expression, ...]:
        if self.accept(UNIT):
            return ()
        self.expect("(")
        return self._list(")")

    def _list(self, end: str) -> tuple[p.Expression, ...]:
        values: list[p.Expression] = []
        while not self.accept(end):
            values.append(self.expression())
            if not self.accept(",") and self.text != end:
                raise Unreadable
        return tuple(values)

    def _parentheses(self) -> p.Expression:
        self.at += 1
        value = self.expression()
        if self.text in _ASSIGNMENTS:
            raise Unreadable
        self.expect(")")
        return value

    def _array(self) -> p.Expression:
        at = self.at
        self.at += 1
        values = self._list("]")
        return self._quotable(p.Record(at, tuple([(None, value) for value in values]), True, True))

    def _map(self) -> p.Expression:
        at = self.at
        self.at += 1
        entries: list[tuple[str | None, p.Expression]] = []
        while not self.accept("}"):
            token = self.tokens[self.at]
            if token.kind not in ("name", "string", "keyword"):
                raise Unreadable
            self.at += 1
            self.expect(":")
            name = token.text if token.kind != "string" else str(_constant(token))
            entries.append((name, self.expression()))
            if not self.accept(",") and self.text != "}":
                raise Unreadable
        return self._quotable(p.Record(at, tuple(entries), True, False))

    def _closure(self) -> p.Expression:
        at = self.at
        names: list[str] = []
        if not self.accept("||"):
            self.expect("|")
            while not self.accept("|"):
                names.append(self.name())
                if not self.accept(",") and self.text != "|":
                    raise Unreadable
        if self.text == "{":
            return p.Function(at, tuple(names), self.block())
        value = self.expression()
        if self.text in _ASSIGNMENTS:
            return p.Function(at, tuple(names), p.Block((self._assignment(at, value),)))
        return p.Function(at, tuple(names), p.Block((p.Give(at, (value,)),)))

    def _range(self) -> p.Expression:
        at = self.at
        self.at += 1
        parts = () if self.text in (")", "]", ";") else (self.expression(140),)
        return p.Other(at, parts, "range")

    def _unit(self) -> p.Expression:
        self.at += 1
        return p.Constant(self.at - 1, None)

    def _unary(self) -> p.Expression:
        at, operator = self.at, self.text
        self.at += 1
        value = self._postfix(self._primary())
        if operator == "-" and type(value) is p.Constant and isinstance(value.value, int | float):
            return p.Constant(at, -value.value)
        return p.Other(at, (value,), "not" if operator == "!" else operator)


_BEGINNINGS: dict[str, Callable[[Reader], p.Expression]] = {
    **CONSTRUCTS,
    "(": Reader._parentheses,
    "[": Reader._array,
    "#{": Reader._map,
    "|": Reader._closure,
    "||": Reader._closure,
    UNIT: Reader._unit,
    "!": Reader._unary,
    "-": Reader._unary,
    "+": Reader._unary,
    "..": Reader._range,
    "..=": Reader._range,
}


def _constant(token: Token) -> Any:
    text = token.text
    if token.kind == "number":
        digits = text.replace("_", "")
        try:
            return int(digits, 0) if digits[:2].lower() in ("0x", "0o", "0b") else int(digits)
        except ValueError:
            return float(digits)
    inner = text[1:-1]
    if "\\" not in inner:
        return inner
    return re.sub(r"\\([\s\S])", lambda match: _ESCAPES.get(match[1], match[1]), inner)
