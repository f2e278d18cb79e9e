"""A script as the checker sees it: one small tree for every language.

A language turns its scripts into a `Program`; `at` is the index of the word at which a node begins. What the checker
need not understand is `Other`, whose parts are looked at in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "Assign",
    "Block",
    "Branches",
    "Call",
    "Constant",
    "Count",
    "Declare",
    "Define",
    "Each",
    "Evaluate",
    "Expression",
    "Field",
    "Function",
    "Give",
    "Guarded",
    "Item",
    "Length",
    "Loop",
    "Method",
    "Name",
    "Operation",
    "Other",
    "Program",
    "Record",
    "Statement",
    "Vocabulary",
    "root",
]


@dataclass(slots=True, eq=False)
class Name:
    """A variable or a function, by its name."""

    at: int
    name: str


@dataclass(slots=True, eq=False)
class Constant:
    """Text, a number, a truth value, or nothing (None)."""

    at: int
    value: Any


@dataclass(slots=True, eq=False)
class Field:
    """`value.name`; `key` is where the name stands."""

    at: int
    value: Expression
    name: str
    key: int


@dataclass(slots=True, eq=False)
class Item:
    """`value[key]`."""

    at: int
    value: Expression
    key: Expression


@dataclass(slots=True, eq=False)
class Length:
    """`#value` in Lua."""

    at: int
    value: Expression


@dataclass(slots=True, eq=False)
class Call:
    """A call; `exact` is False where the last argument may stand for any number of them."""

    at: int
    function: Expression
    arguments: tuple[Expression, ...]
    exact: bool


@dataclass(slots=True, eq=False)
class Method:
    """`value:name(…)` in Lua, `value.name(…)` in Rhai."""

    at: int
    value: Expression
    name: str
    arguments: tuple[Expression, ...]
    key: int


@dataclass(slots=True, eq=False)
class Record:
    """A table, map or array as it is written: (name, value) pairs, elements without a name.

    `exact` is False where there are keys that only the run knows.
    """

    at: int
    entries: tuple[tuple[str | None, Expression], ...]
    exact: bool
    is_list: bool


@dataclass(slots=True, eq=False)
class Function:
    """A function or closure."""

    at: int
    parameters: tuple[str, ...]
    body: Block


@dataclass(slots=True, eq=False)
class Operation:
    """Two values and an operator."""

    at: int
    operator: str
    left: Expression
    right: Expression


@dataclass(slots=True, eq=False)
class Other:
    """A value that the checker does not follow, made from these parts."""

    at: int
    parts: tuple[Expression | Statement, ...]
    what: str = ""
    """"not" where it is one; else nothing."""


@dataclass(slots=True, eq=False)
class Block:
    """Statements that share a scope."""

    statements: tuple[Statement, ...]


@dataclass(slots=True, eq=False)
class Guarded:
    """A block whose errors the script catches."""

    at: int
    body: Block


@dataclass(slots=True, eq=False)
class Declare:
    """New local variables."""

    at: int
    names: tuple[str, ...]
    values: tuple[Expression, ...]


@dataclass(slots=True, eq=False)
class Assign:
    """Assignments to what exists, or in Lua to globals."""

    at: int
    targets: tuple[Expression, ...]
    values: tuple[Expression, ...]


@dataclass(slots=True, eq=False)
class Define:
    """A function with a name of its own; `target` is its name, or the field that it goes to."""

    at: int
    target: Expression
    function: Function
    is_local: bool


@dataclass(slots=True, eq=False)
class Evaluate:
    """A value that is not used."""

    at: int
    value: Expression


@dataclass(slots=True, eq=False)
class Give:
    """`return`."""

    at: int
    values: tuple[Expression, ...]


@dataclass(slots=True, eq=False)
class Branches:
    """Conditions with their blocks; the last may have none."""

    at: int
    branches: tuple[tuple[Expression | None, Block], ...]


@dataclass(slots=True, eq=False)
class Loop:
    """A loop with a condition."""

    at: int
    condition: Expression | None
    body: Block


@dataclass(slots=True, eq=False)
class Count:
    """`for i = 1, 10`, `for i in 0..10`."""

    at: int
    name: str
    bounds: tuple[Expression, ...]
    body: Block


@dataclass(slots=True, eq=False)
class Each:
    """A loop over what these values give."""

    at: int
    names: tuple[str, ...]
    values: tuple[Expression, ...]
    body: Block


Expression: TypeAlias = Name | Constant | Field | Item | Length | Call | Method | Record | Function | Operation | Other
Statement: TypeAlias = Block | Guarded | Declare | Assign | Define | Evaluate | Give | Branches | Loop | Count | Each


def root(value: Expression) -> str:
    """The variable from which a value is read, such as `r` of `r.items[1].name`; nothing where there is none."""
    while type(value) in (Field, Item, Method):
        value = value.value  # type: ignore[union-attr]  # the three have one
    return value.name if type(value) is Name else ""


@dataclass(frozen=True, slots=True)
class Program:
    """A whole script."""

    body: Block
    place: Callable[[int], tuple[int, int]]
    """The line and column of a word."""
    text: Callable[[Expression], str]
    """How the script writes a value, on one line; "…" where that is long."""
    assigned: Mapping[str, int]
    """How often the script assigns to each name, declarations aside."""
    fields: frozenset[str]
    """Names of all fields that it assigns to."""
    defines: frozenset[str]
    """Globals that exist once it has run."""
    filled: Mapping[str, int]
    """Variables in which it assigns to keys that only the run knows, or adds elements: in how many places."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of one language, for messages and for what is known without looking at the script."""

    globals: frozenset[str]
    """What every script finds."""
    libraries: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Tables of functions among them, with their members."""
    constant: Callable[[str], str | None] = lambda name: None
    """What to write for a constant of another language; None if unknown."""
    advice: Callable[[str, bool, tuple[str, ...]], str | None] = lambda name, called, arguments: None
    """What to write for a name of another language that is called with these arguments, or indexed; None if unknown."""
    method_advice: Callable[[str, str, tuple[str, ...]], str | None] = lambda name, receiver, arguments: None
    """The same for a method or a field: its name, what it is read from, the arguments."""
    member_advice: Callable[[str, str, tuple[str, ...]], str | None] = lambda library, name, arguments: None
    """The same for a member that a library does not have."""
    string_methods: frozenset[str] = frozenset()
    list_methods: frozenset[str] = frozenset()
    """Methods of lists, in languages that have any."""
    any_methods: frozenset[str] = frozenset()
    """Methods of every value."""
    methods: Mapping[str, str] = field(default_factory=dict)
    """List methods that call a function with the elements: "map", "same", "one", "sort", "fold" or "each"."""
    no_value: frozenset[str] = frozenset()
    """Dotted names of functions that return nothing."""
    only_truth_values: bool = False
    """Conditions take nothing else."""
    nothing: str = "nil"
    """What an unset variable is."""
    forms: Mapping[str, str] = field(default_factory=dict)
    """How things are written, with {} for the script's own text."""

    def form(self, name: str, text: str) -> str:
        return self.forms[name].replace("{}", text)
