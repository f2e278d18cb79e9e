"""Variables, and the functions that they belong to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moonbox.languages.rhai.syntax.nodes import Expr
    from moonbox.languages.rhai.syntax.tokens import Pos

__all__ = ["Unit", "Var"]


@dataclass(slots=True, eq=False)
class Var:
    """One variable of the script."""

    name: str
    unit: Unit
    const: bool = False
    borrowed: bool = False
    """Whether it may share its value with a variable of someone else: a parameter or what a loop goes through."""
    top: bool = False
    """Whether it lives on between runs."""
    replaces: Var | None = None
    """The variable of that name in the same block, whose place it takes."""
    captured: bool = False
    shared_from: int | None = None
    changed: bool = False
    """Whether an array or map in it may be changed in place through it."""
    values: list[Expr | str] = field(default_factory=list)
    """What is assigned to it: expressions, or names of types."""
    type: str = "any"
    lua: str = ""
    """Where it lives: set when the text is written."""
    cell: bool = False


@dataclass(slots=True, eq=False)
class Unit:
    """A function, a closure, or the script itself."""

    parent: Unit | None = None
    is_closure: bool = False
    changes_this: bool = False
    params: list[Var] = field(default_factory=list)
    free: dict[str, Pos | None] = field(default_factory=dict)
    """Names of a closure that come from outside, in order of their use."""
    captured: set[Var] = field(default_factory=set)
