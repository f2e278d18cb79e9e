"""Scopes: the variables of a script, and what is known of each.

A variable's value is known where it is declared with it and never assigned to again, or assigned to exactly once;
anything else is unknown, and of the unknown nothing is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moonbox.check.values import NUMBERS, TEXT, Made, Mapped, Results
from moonbox.dataclass import fields, is_dataclass, replace
from moonbox.languages import program as p

if TYPE_CHECKING:
    from moonbox.check.values import Value
    from moonbox.tools.document import Kinds

__all__ = ["Scopes", "Variable", "caught_functions"]

_CATCHING = frozenset({"pcall", "xpcall"})


class Variable:
    """A local variable, or a global that the script assigns to."""

    __slots__ = ("at", "depth", "is_joined", "is_read", "replaces", "starts_at", "value")

    def __init__(self, value: Value, at: int, depth: int, replaces: bool = False) -> None:
        self.value, self.at, self.depth = value, at, depth
        self.replaces = replaces
        """It hides the one that its value is computed from."""
        self.is_read = False
        self.is_joined = False
        """Text is added to its end."""
        self.starts_at: Any = None
        """The constant that it is declared with."""


class Scopes:
    """The scopes that are open at one place of a script, innermost last."""

    def __init__(self, program: p.Program) -> None:
        self.program = program
        self.loops = 0
        self.scopes: list[dict[str, Variable]] = [{}]
        self._globals: dict[str, Variable] = {}

    def lookup(self, name: str) -> Variable | None:
        """The variable of that name; None for one that the script does not set before."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return self._globals.get(name)

    def is_local(self, name: str) -> bool:
        return any(name in scope for scope in self.scopes)

    def declare(self, name: str, value: Value, at: int, *, replaces: bool = False) -> None:
        assigned = self.program.assigned.get(name, 0)
        known = None if assigned else value
        if name in self.program.filled:
            known = Made(replace(value.record, exact=False)) if isinstance(value, Made) and not assigned else None
        self.scopes[-1][name] = Variable(known, at, self.loops, replaces)

    def assign(self, target: p.Name, value: Value) -> None:
        once = self.program.assigned.get(target.name) == 1 and target.name not in self.program.filled
        variable = self.lookup(target.name)
        if variable is None:
            self._globals[target.name] = Variable(value if once else None, target.at, self.loops)
        elif once and variable.value is None:
            variable.value = value

    def is_replaced(self, name: str, value: p.Expression) -> bool:
        """`local total = total + x` in a loop, where `total` is a local outside of it."""
        outer = self.lookup(name) if self.loops and name not in self.scopes[-1] else None
        return outer is not None and outer.depth < self.loops and type(value) is p.Operation and _mentions(value, name)

    def fill(self, target: p.Expression, keys: Kinds, value: Value) -> None:
        """A table gets an element. Where that happens in one place only, its elements are known from there on."""
        variable = self.lookup(target.name) if type(target) is p.Name else None
        if variable is None or not isinstance(variable.value, Made) or variable.value.record.entries:
            return
        if self.program.filled.get(target.name) == 1:  # type: ignore[union-attr]  # a Name
            numbered = keys is not None and keys <= NUMBERS
            variable.value = Results((), value) if numbered else Mapped(value) if keys == TEXT else variable.value

    def hand_over(self, node: p.Expression) -> None:
        """A table is given to a function, which may do anything to it."""
        variable = self.lookup(node.name) if type(node) is p.Name else None
        if variable is not None and isinstance(variable.value, Made | Mapped | Results):
            variable.value = None


def caught_functions(body: p.Block) -> frozenset[str]:
    """The script's own functions that it calls where errors are caught, and those that they call."""
    caught: set[str] = set()
    mentions: dict[str, set[str]] = {}
    waiting: list[tuple[Any, set[str]]] = [(body, set())]
    while waiting:
        node, names = waiting.pop()
        if isinstance(node, tuple):
            waiting.extend((part, names) for part in node)
        elif type(node) is p.Name:
            names.add(node.name)
        elif type(node) is p.Guarded:
            waiting.append((node.body, caught))
        elif type(node) is p.Call and type(node.function) is p.Name and node.function.name in _CATCHING:
            waiting.append((node.arguments, caught))
        elif type(node) is p.Define and type(node.target) is p.Name:
            waiting.append((node.function, mentions.setdefault(node.target.name, set())))
        elif type(node) is p.Declare and len(node.names) == 1:
            waiting.append((node.values, mentions.setdefault(node.names[0], set())))
        elif is_dataclass(node):
            waiting.extend((getattr(node, field.name), names) for field in fields(node))
    reached = list(caught)
    while reached:
        for name in mentions.get(reached.pop(), ()):
            if name not in caught:
                caught.add(name)
                reached.append(name)
    return frozenset(caught)


def _mentions(value: Any, name: str) -> bool:
    if type(value) is p.Name:
        return bool(value.name == name)
    if type(value) is p.Operation:
        return _mentions(value.left, name) or _mentions(value.right, name)
    return False
