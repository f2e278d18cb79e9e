"""The syntax tree of a script that is Lua. All numbers are indexes of words, from which positions follow."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

__all__ = [
    "Assignment",
    "Block",
    "Call",
    "CallStatement",
    "Do",
    "Expression",
    "Function",
    "FunctionStatement",
    "GenericFor",
    "If",
    "Index",
    "Jump",
    "Literal",
    "Local",
    "LocalFunction",
    "Name",
    "NumericFor",
    "Operation",
    "Parentheses",
    "Repeat",
    "Return",
    "Statement",
    "Table",
    "TableField",
    "Unary",
    "While",
]


class Name(NamedTuple):
    """A variable."""

    first: int


class Literal(NamedTuple):
    """nil, true, false, a number, a string, or `...`."""

    first: int


class Index(NamedTuple):
    """`value.name` (the key is a Literal of that name) and `value[key]`."""

    first: int
    value: Expression
    key: Expression
    dotted: bool
    stop: int


class Call(NamedTuple):
    """`function(…)`, `function{…}`, `function"…"`, and with a method's name `function:method(…)`."""

    first: int
    function: Expression
    method: int | None
    arguments: tuple[Expression, ...]
    stop: int


class Function(NamedTuple):
    """A function's parameters and body; the vararg `...` is not among the parameters."""

    first: int
    parameters: tuple[int, ...]
    body: Block
    stop: int


class TableField(NamedTuple):
    """`name = value` (the key is a Literal of that name), `[key] = value`, or a value alone."""

    first: int
    key: Expression | None
    value: Expression


class Table(NamedTuple):
    """A table constructor."""

    first: int
    fields: tuple[TableField, ...]
    stop: int


class Unary(NamedTuple):
    """An operator before the value that follows it."""

    first: int
    operand: Expression


class Operation(NamedTuple):
    """Values joined by operators, in the order in which they are written: precedence is not applied."""

    first: int
    operands: tuple[Expression, ...]
    operators: tuple[int, ...]


class Parentheses(NamedTuple):
    """`(value)`."""

    first: int
    value: Expression
    stop: int


Expression: TypeAlias = Name | Literal | Index | Call | Function | Table | Unary | Operation | Parentheses


class Block(NamedTuple):
    """Statements that share a scope."""

    first: int
    statements: tuple[Statement, ...]
    stop: int


class Local(NamedTuple):
    """`local a, b = …`."""

    first: int
    names: tuple[int, ...]
    values: tuple[Expression, ...]


class Assignment(NamedTuple):
    """`a, b.c = …`."""

    first: int
    targets: tuple[Expression, ...]
    values: tuple[Expression, ...]


class CallStatement(NamedTuple):
    """A call whose values are not used."""

    first: int
    call: Expression


class LocalFunction(NamedTuple):
    """`local function name(…) … end`."""

    first: int
    name: int
    function: Function


class FunctionStatement(NamedTuple):
    """`function a.b(…) … end`; `method` is the name behind a colon, whose function has `self`."""

    first: int
    target: Expression
    method: int | None
    function: Function


class If(NamedTuple):
    """Conditions with their blocks; that of `else` has none."""

    first: int
    branches: tuple[tuple[Expression | None, Block], ...]


class While(NamedTuple):
    """`while condition do … end`."""

    first: int
    condition: Expression
    body: Block


class Repeat(NamedTuple):
    """`repeat … until condition`; the condition sees the block's locals."""

    first: int
    body: Block
    condition: Expression


class NumericFor(NamedTuple):
    """`for name = start, limit, step do … end`."""

    first: int
    name: int
    bounds: tuple[Expression, ...]
    body: Block


class GenericFor(NamedTuple):
    """`for a, b in … do … end`."""

    first: int
    names: tuple[int, ...]
    values: tuple[Expression, ...]
    body: Block


class Do(NamedTuple):
    """`do … end`."""

    first: int
    body: Block


class Return(NamedTuple):
    """`return …`."""

    first: int
    values: tuple[Expression, ...]


class Jump(NamedTuple):
    """`break`, `goto name` and `::name::`."""

    first: int


Statement: TypeAlias = (
    Local
    | Assignment
    | CallStatement
    | LocalFunction
    | FunctionStatement
    | If
    | While
    | Repeat
    | NumericFor
    | GenericFor
    | Do
    | Return
    | Jump
)
