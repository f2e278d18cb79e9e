"""A Lua script as the checker sees it, made from its syntax tree."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from moonbox.languages import program as p
from moonbox.languages.lua.syntax import tree
from moonbox.languages.lua.syntax.listing import Listing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moonbox.languages.lua.syntax.lexer import Token

__all__ = ["lua_program"]

_PRECEDENCE = {
    "or": 1, "and": 2, "<": 3, ">": 3, "<=": 3, ">=": 3, "~=": 3, "==": 3, "|": 4, "~": 5, "&": 6, "<<": 7, ">>": 7,
    "..": 8, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10, "^": 12,
}  # fmt: skip
_RIGHT = frozenset({"..", "^"})
_ESCAPE = r"\\(?:x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]{1,8})\}|([0-9]{1,3})|z\s*|(\r\n|\n\r|[\s\S]))"
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_WORDS = {"nil": None, "true": True, "false": False}
_MOST_CODE = 0x10FFFF


def lua_program(source: str) -> p.Program | None:
    """The script's program; None where it is not Lua, or too long or too deep to follow."""
    listing = Listing(source)
    parsed = listing.parsed
    if parsed is not None and parsed.tree is None:
        parsed = listing.parsed_as_value
    if parsed is None or parsed.tree is None:
        return None
    tokens = listing.tokens
    reader = _Reader(tokens)

    def place(at: int) -> tuple[int, int]:
        token = tokens[min(at, len(tokens) - 1)]
        return token.line, token.column

    def text(value: p.Expression) -> str:
        entry = reader.stops.get(id(value))
        return listing.text(value.at, entry[0]) if entry is not None else "…"

    body = reader.block(parsed.tree)
    return p.Program(
        body,
        place,
        text,
        reader.assigned,
        frozenset(reader.fields),
        frozenset(reader.globals),
        reader.filled,
    )


class _Reader:
    """Turns the syntax tree into the checker's; one pass, no look back."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.assigned: dict[str, int] = {}
        self.globals: set[str] = set()
        """What it assigns to, except for locals of the whole script; locals of inner blocks are counted."""
        self.fields: set[str] = set()
        self.filled: dict[str, int] = {}
        self.stops: dict[int, tuple[int, p.Expression]] = {}
        """Where values end, of those whose text a message may quote; with them, so that they live as long."""
        self._depth = 0
        self._locals: set[str] = set()  # of the whole script, declared so far

    def block(self, node: tree.Block) -> p.Block:
        self._depth += 1
        statements = [_STATEMENTS[type(statement)](self, statement) for statement in node.statements]
        self._depth -= 1
        return p.Block(tuple([statement for statement in statements if statement is not None]))

    def values(self, nodes: Sequence[tree.Expression]) -> tuple[p.Expression, ...]:
        return tuple([_EXPRESSIONS[type(node)](self, node) for node in nodes])

    def value(self, node: tree.Expression) -> p.Expression:
        return _EXPRESSIONS[type(node)](self, node)

    def function(self, node: tree.Function, first: tuple[str, ...] = ()) -> p.Function:
        return p.Function(node.first, first + self._names(node.parameters), self.block(node.body))

    def _gives_several(self, nodes: Sequence[tree.Expression]) -> bool:
        """Whether the last of these may be more or fewer values than one: a call, or `...`."""
        if not nodes:
            return False
        last = nodes[-1]
        return type(last) is tree.Call or (type(last) is tree.Literal and self.tokens[last.first].text == "...")

    def _names(self, indexes: Sequence[int]) -> tuple[str, ...]:
        tokens = self.tokens
        return tuple([tokens[index].text for index in indexes])

    def _name(self, node: tree.Name) -> p.Expression:
        first = node.first
        result = p.Name(first, self.tokens[first].text)
        self.stops[id(result)] = first + 1, result
        return result

    def _literal(self, node: tree.Literal) -> p.Expression:
        token = self.tokens[node.first]
        result: p.Expression
        if token.kind == "string":
            result = p.Constant(node.first, string_value(token.text))
        elif token.kind == "number":
            result = p.Constant(node.first, _number(token.text))
        elif token.text in _WORDS:
            result = p.Constant(node.first, _WORDS[token.text])
        else:
            result = p.Other(node.first, (), "...")
        self.stops[id(result)] = node.first + 1, result
        return result

    def _index(self, node: tree.Index) -> p.Expression:
        value = self.value(node.value)
        result: p.Expression
        if node.dotted:
            key = node.key.first
            result = p.Field(node.first, value, self.tokens[key].text, key)
        else:
            inner = self.value(node.key)
            if type(inner) is p.Constant and isinstance(inner.value, str):
                result = p.Field(node.first, value, inner.value, inner.at)
            else:
                result = p.Item(node.first, value, inner)
        self.stops[id(result)] = node.stop, result
        return result

    def _call(self, node: tree.Call) -> p.Expression:
        function = self.value(node.function)
        arguments = self.values(node.arguments)
        result: p.Expression
        if node.method is not None:
            result = p.Method(node.first, function, self.tokens[node.method].text, arguments, node.method)
        else:
            result = p.Call(node.first, function, arguments, not self._gives_several(node.arguments))
            if type(function) is p.Field and function.name == "insert" and arguments:
                self._fill(p.root(arguments[0]))
        self.stops[id(result)] = node.stop, result
        return result

    def _table(self, node: tree.Table) -> p.Expression:
        entries: list[tuple[str | None, p.Expression]] = []
        exact = True
        for item in node.fields:
            value = self.value(item.value)
            if item.key is None:
                entries.append((None, value))
                continue
            token = self.tokens[item.key.first]
            if type(item.key) is tree.Literal and token.kind == "name":
                entries.append((token.text, value))
            elif type(item.key) is tree.Literal and token.kind == "string":
                entries.append((string_value(token.text), value))
            else:
                exact = False
                entries.append(("", p.Other(item.first, (self.value(item.key), value))))
        if node.fields and node.fields[-1].key is None and self._gives_several([node.fields[-1].value]):
            exact = False
        is_list = bool(entries) and all(name is None for name, _ in entries)
        result = p.Record(node.first, tuple(entries), exact, is_list)
        self.stops[id(result)] = node.stop, result
        return result

    def _unary(self, node: tree.Unary) -> p.Expression:
        operator = self.tokens[node.first].text
        operand = self.value(node.operand)
        if operator == "#":
            return p.Length(node.first, operand)
        if operator == "-" and type(operand) is p.Constant and type(operand.value) in (int, float):
            return p.Constant(node.first, -operand.value)
        return p.Other(node.first, (operand,), operator)

    def _operation(self, node: tree.Operation) -> p.Expression:
        operands = self.values(node.operands)
        operators = [self.tokens[index].text for index in node.operators]
        if len(operators) == 1:
            return p.Operation(node.operators[0], operators[0], operands[0], operands[1])
        values, waiting = [operands[0]], list[tuple[int, int, str]]()
        for index, operator, operand in zip(node.operators, operators, operands[1:], strict=True):
            rank = _PRECEDENCE[operator]
            while waiting and (waiting[-1][0] > rank or (waiting[-1][0] == rank and operator not in _RIGHT)):
                _join(values, waiting)
            waiting.append((rank, index, operator))
            values.append(operand)
        while waiting:
            _join(values, waiting)
        return values[0]

    def _assignment(self, node: tree.Assignment) -> p.Statement:
        targets = self.values(node.targets)
        for target in targets:
            self._note_target(target)
        return p.Assign(node.first, targets, self.values(node.values))

    def _note_target(self, target: p.Expression) -> None:
        if type(target) is p.Name:
            self.assigned[target.name] = self.assigned.get(target.name, 0) + 1
            if target.name not in self._locals:
                self.globals.add(target.name)
        elif type(target) is p.Field:
            self.fields.add(target.name)
        elif type(target) is p.Item and type(target.key) is not p.Constant:
            self._fill(p.root(target))

    def _fill(self, name: str) -> None:
        self.filled[name] = self.filled.get(name, 0) + 1

    def _local_function(self, node: tree.LocalFunction) -> p.Statement:
        name = p.Name(node.name, self.tokens[node.name].text)
        definition = p.Define(node.first, name, self.function(node.function), True)
        self._declare((name.name,))
        return definition

    def _declare(self, names: tuple[str, ...]) -> None:
        """From here on these are locals: to the end of the script, if they are not of an inner block."""
        if self._depth == 1:
            self._locals.update(names)

    def _function_statement(self, node: tree.FunctionStatement) -> p.Statement:
        target = self.value(node.target)
        if node.method is None:
            self._note_target(target)
            return p.Define(node.first, target, self.function(node.function), False)
        target = p.Field(node.first, target, self.tokens[node.method].text, node.method)
        self._note_target(target)
        return p.Define(node.first, target, self.function(node.function, ("self",)), False)

    def _parentheses(self, node: tree.Parentheses) -> p.Expression:
        return self.value(node.value)

    def _local(self, node: tree.Local) -> p.Statement:
        declaration = p.Declare(node.first, self._names(node.names), self.values(node.values))
        self._declare(declaration.names)
        return declaration

    def _call_statement(self, node: tree.CallStatement) -> p.Statement:
        return p.Evaluate(node.first, self.value(node.call))

    def _while(self, node: tree.While) -> p.Statement:
        return p.Loop(node.first, self.value(node.condition), self.block(node.body))

    def _repeat(self, node: tree.Repeat) -> p.Statement:
        body = self.block(node.body)
        return p.Loop(node.first, None, p.Block((*body.statements, p.Evaluate(node.first, self.value(node.condition)))))

    def _numeric_for(self, node: tree.NumericFor) -> p.Statement:
        return p.Count(node.first, self.tokens[node.name].text, self.values(node.bounds), self.block(node.body))

    def _generic_for(self, node: tree.GenericFor) -> p.Statement:
        return p.Each(node.first, self._names(node.names), self.values(node.values), self.block(node.body))

    def _do(self, node: tree.Do) -> p.Statement:
        return self.block(node.body)

    def _return(self, node: tree.Return) -> p.Statement:
        return p.Give(node.first, self.values(node.values))

    def _jump(self, node: tree.Jump) -> None:
        return None

    def _if(self, node: tree.If) -> p.Statement:
        return p.Branches(
            node.first,
            tuple(
                [
                    (None if condition is None else self.value(condition), self.block(body))
                    for condition, body in node.branches
                ]
            ),
        )


_EXPRESSIONS: dict[type, Callable[[_Reader, Any], p.Expression]] = {
    tree.Name: _Reader._name,
    tree.Literal: _Reader._literal,
    tree.Index: _Reader._index,
    tree.Call: _Reader._call,
    tree.Function: _Reader.function,
    tree.Table: _Reader._table,
    tree.Unary: _Reader._unary,
    tree.Operation: _Reader._operation,
    tree.Parentheses: _Reader._parentheses,
}
_STATEMENTS: dict[type, Callable[[_Reader, Any], p.Statement | None]] = {
    tree.Local: _Reader._local,
    tree.Assignment: _Reader._assignment,
    tree.CallStatement: _Reader._call_statement,
    tree.LocalFunction: _Reader._local_function,
    tree.FunctionStatement: _Reader._function_statement,
    tree.If: _Reader._if,
    tree.While: _Reader._while,
    tree.Repeat: _Reader._repeat,
    tree.NumericFor: _Reader._numeric_for,
    tree.GenericFor: _Reader._generic_for,
    tree.Do: _Reader._do,
    tree.Return: _Reader._return,
    tree.Jump: _Reader._jump,
}


def _join(values: list[p.Expression], waiting: list[tuple[int, int, str]]) -> None:
    _, index, operator = waiting.pop()
    right, left = values.pop(), values.pop()
    values.append(p.Operation(index, operator, left, right))


def string_value(text: str) -> str:
    """What a string literal stands for."""
    if text[0] == "[":
        level = text.index("[", 1) + 1
        inner = text[level:-level]
        return inner[1:] if inner.startswith("\n") else inner
    inner = text[1:-1]
    return re.sub(_ESCAPE, _unescaped, inner) if "\\" in inner else inner


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    if code is not None:
        number = int(code, 16)
        return chr(number) if number <= _MOST_CODE and not 0xD800 <= number < 0xE000 else "\ufffd"
    if match[3] is not None:
        return chr(min(int(match[3]), 255))
    return _PLAIN_ESCAPES.get(match[4], match[4]) if match[4] is not None else ""


def _number(text: str) -> int | float:
    try:
        if text[:2] in ("0x", "0X"):
            whole = int(text, 16)
            return (whole + 2**63) % 2**64 - 2**63
        if text.isdigit():
            whole = int(text) if len(text) < 30 else 2**63  # longer ones are floats
            return whole if whole < 2**63 else float(text)
        return float(text)
    except ValueError:  # a hexadecimal float
        return float.fromhex(text)
