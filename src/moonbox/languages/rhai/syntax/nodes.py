"""The syntax tree. Positions are those that the reference's messages name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moonbox.languages.rhai.syntax.tokens import Pos

__all__ = [
    "Array",
    "Assign",
    "Binary",
    "Block",
    "BlockExpr",
    "Break",
    "Call",
    "Case",
    "Chain",
    "Char",
    "Closure",
    "Do",
    "Export",
    "Expr",
    "ExprStmt",
    "For",
    "Function",
    "If",
    "Import",
    "Interpolated",
    "Let",
    "Literal",
    "Logic",
    "Map",
    "Noop",
    "Range",
    "Return",
    "Script",
    "Step",
    "Stmt",
    "Switch",
    "This",
    "Throw",
    "Try",
    "Unary",
    "Variable",
    "While",
]


class Char(str):
    """A character literal, apart from a string of one character."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Literal:
    """A constant: None for (), bool, int, float, str, Char; also folded arrays (list) and maps (dict)."""

    value: object
    pos: Pos | None


@dataclass(slots=True, eq=False)
class Interpolated:
    parts: list[Expr]
    pos: Pos | None


@dataclass(slots=True, eq=False)
class Array:
    items: list[Expr]
    pos: Pos | None


@dataclass(slots=True, eq=False)
class Map:
    items: list[tuple[str, Expr]]
    pos: Pos | None


@dataclass(slots=True, eq=False)
class Variable:
    name: str
    pos: Pos | None
    path: tuple[str, ...] = ()
    path_pos: Pos | None = None


@dataclass(slots=True, eq=False)
class This:
    pos: Pos | None


@dataclass(slots=True, eq=False)
class Unary:
    op: str
    operand: Expr
    pos: Pos | None


@dataclass(slots=True, eq=False)
class Binary:
    op: str
    left: Expr
    right: Expr
    pos: Pos | None


@dataclass(slots=True, eq=False)
class Range:
    """A range; an end that is missing is a () literal."""

    left: Expr
    right: Expr
    inclusive: bool
    pos: Pos | None


@dataclass(slots=True, eq=False)
class Logic:
    """&&, || or ?? over two or more operands."""

    op: str
    items: list[Expr]
    pos: Pos | None


@dataclass(slots=True, eq=False)
class Call:
    name: str
    args: list[Expr]
    pos: Pos | None
    path: tuple[str, ...] = ()
    path_pos: Pos | None = None
    in_scope: bool = False
    """Whether the function runs within the caller's scope: f!(...)."""


@dataclass(slots=True, eq=False)
class Step:
    """One link of a chain: a property, a method call or an index."""

    kind: str
    """"property", "method" or "index"."""
    name: str
    args: list[Expr]
    pos: Pos | None
    """Of the property's or method's name, or where the index starts."""
    op_pos: Pos | None
    """Of the period or bracket."""
    optional: bool = False


@dataclass(slots=True, eq=False)
class Chain:
    root: Expr
    steps: list[Step]

    @property
    def pos(self) -> Pos | None:
        return self.steps[0].op_pos


@dataclass(slots=True, eq=False)
class Closure:
    params: list[str]
    body: Stmt
    pos: Pos | None


@dataclass(slots=True, eq=False)
class BlockExpr:
    """A statement used as an expression."""

    block: Block

    @property
    def pos(self) -> Pos | None:
        return self.block.pos


Expr = (
    Literal
    | Interpolated
    | Array
    | Map
    | Variable
    | This
    | Unary
    | Binary
    | Range
    | Logic
    | Call
    | Chain
    | Closure
    | BlockExpr
)


@dataclass(slots=True, eq=False)
class Noop:
    pos: Pos | None


@dataclass(slots=True, eq=False)
class Let:
    name: str
    name_pos: Pos
    value: Expr | None
    const: bool
    pos: Pos | None
    fresh: bool = True
    """False when it takes the place of a variable of that name in the same block."""


@dataclass(slots=True, eq=False)
class Assign:
    """An assignment; `op` is "" or the operator before the equals sign."""

    target: Expr
    op: str
    value: Expr
    op_pos: Pos | None

    @property
    def pos(self) -> Pos | None:
        return self.op_pos


@dataclass(slots=True, eq=False)
class ExprStmt:
    expr: Expr

    @property
    def pos(self) -> Pos | None:
        return self.expr.pos


@dataclass(slots=True, eq=False)
class Block:
    body: list[Stmt]
    pos: Pos | None


@dataclass(slots=True, eq=False)
class If:
    condition: Expr
    then: Block
    other: Block | None
    pos: Pos | None


@dataclass(slots=True, eq=False)
class Case:
    """One arm of a switch; no values for the default."""

    values: list[Expr]
    guard: Expr | None
    body: Expr


@dataclass(slots=True, eq=False)
class Switch:
    value: Expr
    cases: list[Case]
    pos: Pos | None


@dataclass(slots=True, eq=False)
class While:
    """while, or loop when there is no condition."""

    condition: Expr | None
    body: Block
    pos: Pos | None


@dataclass(slots=True, eq=False)
class Do:
    body: Block
    condition: Expr
    until: bool
    pos: Pos | None


@dataclass(slots=True, eq=False)
class For:
    name: str
    name_pos: Pos
    counter: str | None
    counter_pos: Pos | None
    items: Expr
    body: Block
    pos: Pos | None


@dataclass(slots=True, eq=False)
class Break:
    """break with its value, or continue."""

    value: Expr | None
    is_continue: bool
    pos: Pos | None


@dataclass(slots=True, eq=False)
class Return:
    value: Expr | None
    pos: Pos | None


@dataclass(slots=True, eq=False)
class Throw:
    value: Expr | None
    pos: Pos | None


@dataclass(slots=True, eq=False)
class Try:
    body: Block
    name: str | None
    name_pos: Pos | None
    handler: Block
    pos: Pos | None


@dataclass(slots=True, eq=False)
class Import:
    path: Expr
    pos: Pos | None


@dataclass(slots=True, eq=False)
class Export:
    pos: Pos | None


Stmt = (
    Noop
    | Let
    | Assign
    | ExprStmt
    | Block
    | If
    | Switch
    | While
    | Do
    | For
    | Break
    | Return
    | Throw
    | Try
    | Import
    | Export
)


@dataclass(slots=True, eq=False)
class Function:
    name: str
    params: list[str]
    body: Block
    this_type: str | None
    pos: Pos | None


@dataclass(slots=True, eq=False)
class Script:
    """A parsed script: its statements and the functions it defines."""

    body: list[Stmt]
    functions: list[Function] = field(default_factory=list)
    runs_in_scope: bool = False
    """Whether a function is called within the caller's scope anywhere."""


def start_of(expr: Expr) -> Pos | None:
    """Where an expression starts: of a chain or a logical operator that is its leftmost operand."""
    while True:
        if isinstance(expr, Chain):
            expr = expr.root
        elif isinstance(expr, Logic):
            expr = expr.items[0]
        elif isinstance(expr, Variable) and expr.path:
            return expr.path_pos
        else:
            return expr.pos
