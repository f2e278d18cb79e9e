"""The syntax tree of a script that is Lua. All numbers are indexes of words, from which positions follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

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


@dataclass(slots=True, eq=False)
class Name:
    """A variable."""

    first: int


@dataclass(slots=True, eq=False)
class Literal:
    """nil, true, false, a number, a string, or `...`."""

    first: int


@dataclass(slots=True, eq=False)
class Index:
    """`value.name` (the key is a Literal of that name) and `value[key]`."""

    first: int
    value: Expression
    key: Expression
    dotted: bool
    stop: int


@dataclass(slots=True, eq=False)
class Call:
    """`function(…)`, `function{…}`, `function"…"`, and with a method's name `function:method(…)`."""

    first: int
    function: Expression
    method: int | None
    arguments: tuple[Expression, ...]
    stop: int


@dataclass(slots=True, eq=False)
class Function:
    """A function's parameters and body; the vararg `...` is not among the parameters."""

    first: int
    parameters: tuple[int, ...]
    body: Block
    stop: int


@dataclass(slots=True, eq=False)
class TableField:
    """`name = value` (the key is a Literal of that name), `[key] = value`, or a value alone."""

    first: int
    key: Expression | None
    value: Expression


@dataclass(slots=True, eq=False)
class Table:
    """A table constructor."""

    first: int
    fields: tuple[TableField, ...]
    stop: int


@dataclass(slots=True, eq=False)
class Unary:
    """An operator before the value that follows it."""

    first: int
    operand: Expression


@dataclass(slots=True, eq=False)
class Operation:
    """Values joined by operators, in the order in which they are written: precedence is not applied."""

    first: int
    operands: tuple[Expression, ...]
    operators: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Parentheses:
    """`(value)`."""

    first: int
    value: Expression
    stop: int


Expression: TypeAlias = Name | Literal | Index | Call | Function | Table | Unary | Operation | Parentheses


@dataclass(slots=True, eq=False)
class Block:
    """Statements that share a scope."""

    first: int
    statements: tuple[Statement, ...]
    stop: int


@dataclass(slots=True, eq=False)
class Local:
    """`local a, b = …`."""

    first: int
    names: tuple[int, ...]
    values: tuple[Expression, ...]


@dataclass(slots=True, eq=False)
class Assignment:
    """`a, b.c = …`."""

    first: int
    targets: tuple[Expression, ...]
    values: tuple[Expression, ...]


@dataclass(slots=True, eq=False)
class CallStatement:
    """A call whose values are not used."""

    first: int
    call: Expression


@dataclass(slots=True, eq=False)
class LocalFunction:
    """`local function name(…) … end`."""

    first: int
    name: int
    function: Function


@dataclass(slots=True, eq=False)
class FunctionStatement:
    """`function a.b(…) … end`; `method` is the name behind a colon, whose function has `self`."""

    first: int
    target: Expression
    method: int | None
    function: Function


@dataclass(slots=True, eq=False)
class If:
    """Conditions with their blocks; that of `else` has none."""

    first: int
    branches: tuple[tuple[Expression | None, Block], ...]


@dataclass(slots=True, eq=False)
class While:
    """`while condition do … end`."""

    first: int
    condition: Expression
    body: Block


@dataclass(slots=True, eq=False)
class Repeat:
    """`repeat … until condition`; the condition sees the block's locals."""

    first: int
    body: Block
    condition: Expression


@dataclass(slots=True, eq=False)
class NumericFor:
    """`for name = start, limit, step do … end`."""

    first: int
    name: int
    bounds: tuple[Expression, ...]
    body: Block


@dataclass(slots=True, eq=False)
class GenericFor:
    """`for a, b in … do … end`."""

    first: int
    names: tuple[int, ...]
    values: tuple[Expression, ...]
    body: Block


@dataclass(slots=True, eq=False)
class Do:
    """`do … end`."""

    first: int
    body: Block


@dataclass(slots=True, eq=False)
class Return:
    """`return …`."""

    first: int
    values: tuple[Expression, ...]


@dataclass(slots=True, eq=False)
class Jump:
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
