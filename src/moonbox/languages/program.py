"""The tree of a script: one for every language, made by its parser and read by the checker.

`at` is where a node begins and `stop` where its text ends, in the numbers of `Program.place`; `stop` is 0 in nodes that
messages do not quote. What the checker does not follow is an `Other`, whose parts are checked in order.

A compiler that runs in Lua hands the same tree over as JSON arrays, which start with the node's name in lower case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from moonbox.languages.facts import FACTS, Fact, filled
from moonbox.languages.tables import table

_LONGEST_PATH = 50


class Node(Struct, array_like=True, tag=str.lower, eq=False, gc=False):
    """A part of a script."""


class Placed(Node):
    """One whose place is known."""

    at: int


class Name(Placed):
    """A variable or a function, by its name."""

    name: str
    stop: int = 0


class Constant(Placed):
    """Text, a number, a truth value, or nothing (None)."""

    value: Any
    stop: int = 0


class Field(Placed):
    """`value.name`; `key` is where the name stands."""

    value: Expression
    name: str
    key: int
    stop: int = 0


class Index(Placed):
    """`value[key]`."""

    value: Expression
    key: Expression
    stop: int = 0


class Length(Placed):
    """`#value` in Lua."""

    value: Expression
    stop: int = 0


class FunctionCall(Placed):
    """A call; `exact` is False where the last argument may stand for any number of them."""

    function: Expression
    arguments: tuple[Expression, ...]
    exact: bool
    stop: int = 0


class Method(Placed):
    """`value:name(…)` in Lua, `value.name(…)` in Rhai."""

    value: Expression
    name: str
    arguments: tuple[Expression, ...]
    key: int
    stop: int = 0


class Record(Placed):
    """A table, map or array as it is written: (name, value) pairs, elements without a name.

    `exact` is False where there are keys that only the run knows.
    """

    entries: tuple[tuple[str | None, Expression], ...]
    exact: bool
    is_list: bool
    stop: int = 0


class Function(Placed):
    """A function or closure."""

    parameters: tuple[str, ...]
    body: Block
    stop: int = 0


class Operation(Placed):
    """Two values and an operator."""

    operator: str
    left: Expression
    right: Expression
    stop: int = 0


class Other(Placed):
    """A value that the checker does not follow, made from these parts; `what` is "not", "text", "…" or an operator."""

    parts: tuple[Expression | Statement, ...]
    what: str = ""
    stop: int = 0


class Block(Node):
    """Statements that share a scope."""

    statements: tuple[Statement, ...]


class Guarded(Placed):
    """A block whose errors the script catches."""

    body: Block


class Declare(Placed):
    """New local variables."""

    names: tuple[str, ...]
    values: tuple[Expression, ...]


class Assign(Placed):
    """Assignments to what exists, or in Lua to globals."""

    targets: tuple[Expression, ...]
    values: tuple[Expression, ...]


class Define(Placed):
    """A function with a name of its own; `target` is its name, or the field that it goes to."""

    target: Expression
    function: Function
    is_local: bool


class Evaluate(Placed):
    """A value that is not used."""

    value: Expression


class Return(Placed):
    """`return`."""

    values: tuple[Expression, ...]


class Branches(Placed):
    """Conditions with their blocks; the last may have none."""

    branches: tuple[tuple[Expression | None, Block], ...]


class Loop(Placed):
    """A loop with a condition."""

    condition: Expression | None
    body: Block


class Count(Placed):
    """`for i = 1, 10`, `for i in 0..10`."""

    name: str
    bounds: tuple[Expression, ...]
    body: Block


class Each(Placed):
    """A loop over what these values give."""

    names: tuple[str, ...]
    values: tuple[Expression, ...]
    body: Block


Expression: TypeAlias = (
    Name | Constant | Field | Index | Length | FunctionCall | Method | Record | Function | Operation | Other
)
Statement: TypeAlias = Block | Guarded | Declare | Assign | Define | Evaluate | Return | Branches | Loop | Count | Each


def root(value: Expression) -> str:
    """The variable from which a value is read, such as `r` of `r.items[1].name`; "" where there is none."""
    while type(value) in (Field, Index, Method):
        value = value.value  # type: ignore[union-attr]  # the three have one
    return value.name if type(value) is Name else ""


def path(value: Node) -> list[str]:
    """The names of a variable and of the fields that follow it; none where there is something else, or too many."""
    names: list[str] = []
    while type(value) is Field and len(names) < _LONGEST_PATH:
        names.append(value.name)
        value = value.value
    return [value.name, *reversed(names)] if type(value) is Name else []


def children(node: Node) -> list[Node]:
    """The nodes that a node is made of, in the order of the source."""
    found: list[Node] = []
    waiting: list[Any] = [getattr(node, name) for name in reversed(node.__struct_fields__)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Node):
            found.append(part)
        elif isinstance(part, tuple):
            waiting.extend(reversed(part))
    return found


def inside(node: Node, *, functions: bool = True) -> Iterator[Node]:
    """A node and all nodes in it, in the order of the source; without `functions`, not those in functions."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        yield part
        if functions or type(part) is not Function:
            waiting.extend(reversed(children(part)))


class Outline(Struct, frozen=True):
    """A whole script, as its parser gives it."""

    body: Block
    assigned: dict[str, int]
    """How often the script assigns to each name, declarations aside."""
    fields: frozenset[str]
    """Names of all fields that it assigns to."""
    defines: frozenset[str]
    """Globals that exist once it has run."""
    filled: dict[str, int]
    """Variables in which it assigns to keys that only the run knows, or adds elements: in how many places."""


class Program(Struct, frozen=True):
    """A whole script, with the places and the text of its parts."""

    outline: Outline
    place: Callable[[int], tuple[int, int]]
    """The line and column of a number in `at`."""
    text: Callable[[Expression], str]
    """How the script writes a value, on one line; "…" where that is long."""


_LONGEST_QUOTE = 100


def packed_program(outline: Outline, source: str) -> Program:
    """The program of a script whose parser packs a line and a column into one number."""
    starts = [0, 0]
    for line in source.split("\n")[:-1]:
        starts.append(starts[-1] + len(line) + 1)

    def offset(position: int) -> int:
        line = min(position >> 16, len(starts) - 1)  # the lexer knows more line ends than this one
        return starts[line] + (position & 0xFFFF) - 1

    def text(value: Expression) -> str:
        if not value.stop:
            return "…"
        quoted = " ".join(source[offset(value.at) : offset(value.stop)].split())
        return quoted if len(quoted) <= _LONGEST_QUOTE else "…"

    return Program(outline, lambda at: (at >> 16, at & 0xFFFF), text)


class Vocabulary(Struct, frozen=True, kw_only=True):
    """The words of one language, for messages and for what is known without looking at the script."""

    language: str
    globals: frozenset[str]
    """What every script finds."""
    libraries: Mapping[str, frozenset[str]] = {}
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
    any_methods: frozenset[str] = frozenset()
    """Methods of every value, lists among them."""
    methods: Mapping[str, str] = {}
    """List methods that call a function with the elements: "map", "same", "one", "sort", "fold" or "each"."""
    no_value: Mapping[str, str] = {}
    """Dotted names of functions that return nothing, and what they do to the list that they are given."""
    only_truth_values: bool = False
    """Conditions take nothing else."""
    nothing: str = "nil"
    """What an unset variable is."""

    def fact(self, which: str, /, **texts: str) -> Fact:
        """One of the facts, about these texts of the script."""
        return Fact(filled(FACTS[which], texts), self.form(which, **texts))

    def form(self, which: str, /, **texts: str) -> str:
        """What to write for a fact, or how something else is written."""
        return filled(table("forms.toml")[self.language].get(which, ""), texts)
