"""What the checker knows of values and of variables.

Of a value: nothing (None), or one of these. A variable's value is known where it is declared with it and never assigned
to again, or assigned to exactly once; anything else is unknown, and of the unknown nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from moonbox.languages import program as p

if TYPE_CHECKING:
    from moonbox.languages.program import Record
    from moonbox.schema.tree import Kinds, SchemaNode
    from moonbox.tools.tool import Tool

LIST, OBJECT, TEXT, TRUTH, NULL = (frozenset({kind}) for kind in ("array", "object", "string", "boolean", "null"))
TABLES = LIST | OBJECT
NUMBERS = frozenset({"integer", "number"})
_KINDS = {"string": TEXT, "boolean": TRUTH, "number": frozenset({"number"})}
_CATCHING = (["pcall"], ["xpcall"])


class Data(Struct, frozen=True, gc=False):
    """What a tool returned, or a part of it."""

    node: SchemaNode
    tool: str
    """As scripts write it."""
    learned: bool
    """The schema is what was seen so far, not what the tool promises."""
    known: dict[int, Facts]
    """The facts of the schema's parts, by identity: each is worked out once."""

    def part(self, node: SchemaNode | None) -> Data | None:
        return None if node is None or node.schema is True else Data(node, self.tool, self.learned, self.known)

    @property
    def facts(self) -> Facts:
        facts = self.known.get(id(self.node))
        if facts is None:
            facts = self.known[id(self.node)] = Facts.of(self.node)
        return facts

    @property
    def lists(self) -> list[str]:
        """The names of its fields that are lists."""
        return [name for name, part in self.facts.properties.items() if part is not None and part.kinds == LIST]


class ToolValue(Struct, frozen=True, gc=False):
    """A tool that is not called yet."""

    tool: Tool
    name: str
    """As scripts write it."""


class ToolSpace(Struct, frozen=True, gc=False):
    """`tools`, or a namespace in it."""

    members: Mapping[str, Any]
    path: str


class Library(Struct, frozen=True, gc=False):
    """A table of functions that scripts find, or one of its functions."""

    name: str


class ScriptFunction(Struct, frozen=True, gc=False):
    """A function of the script."""

    returns: Value


class Made(Struct, frozen=True, gc=False):
    """A table that the script wrote."""

    record: Record


class Results(Struct, frozen=True, gc=False):
    """A list with known elements, as `parallel` returns it: one by one, or all alike."""

    values: tuple[Value, ...]
    each: Value
    is_list: bool = True
    """False where it is filled under numbers that only the run knows, 0 perhaps among them."""


class Mapped(Struct, frozen=True, gc=False):
    """A table that the script has filled under keys that are text."""

    each: Value


class Scalar(Struct, frozen=True, gc=False):
    """A text, number or truth value."""

    kind: str
    what: str = ""
    """Where it comes from, for messages."""


STRING, NUMBER, BOOLEAN = Scalar("string"), Scalar("number"), Scalar("boolean")
Value: TypeAlias = Data | ToolValue | ToolSpace | Library | ScriptFunction | Made | Mapped | Results | Scalar | None


class Facts(Struct, frozen=True):
    """What a schema says of its value's outermost level."""

    kinds: Kinds
    """Without null; None where nothing else is known."""
    properties: Mapping[str, SchemaNode | None]
    """The fields by name; None where two alternatives differ."""
    listed: bool
    """It names its fields and does not speak of others."""
    closed: bool
    """It says that it has no other fields."""
    rest: SchemaNode | None
    """The schema of other fields; None where nothing is known."""
    items: SchemaNode | None
    """The schema of a list's elements; None where nothing is known."""
    options: tuple[Any, ...]
    """The only values that are possible; none where there is no such list."""

    @classmethod
    def of(cls, node: SchemaNode) -> Facts:
        branches = node.alternatives
        objects = [branch for branch in branches if branch.kinds is None or "object" in branch.kinds]
        lists = [branch for branch in branches if branch.kinds is None or "array" in branch.kinds]
        properties: dict[str, SchemaNode | None] = {}
        for branch in objects:
            for name, part in branch.fields.items():
                other = properties.get(name, part)
                properties[name] = part if other is not None and other.schema == part.schema else None
        listed = bool(objects) and all(map(_names_all, objects))
        alone, every = lists[0] if len(lists) == 1 else None, [branch.listed for branch in branches]
        return cls(
            kinds=None if node.kinds is None else node.kinds - {"null"} or None,
            properties=properties,
            listed=listed,
            closed=listed and all(branch.rest.schema is False for branch in objects),
            rest=objects[0].rest if len(objects) == 1 and isinstance(objects[0].rest.schema, dict) else None,
            items=alone.items if alone and not alone.heads and isinstance(alone.items.schema, dict) else None,
            options=() if None in every else tuple(option for options in every for option in options or ()),
        )


def kinds_of(value: Value) -> Kinds:
    """The JSON types that a value can have, null aside; None where that is not known."""
    kind = type(value)
    if value is None or kind is Library:
        return None
    if kind is Data:
        return value.facts.kinds  # type: ignore[union-attr]  # it is what its type says
    if isinstance(value, Scalar):
        return _KINDS[value.kind]
    if isinstance(value, Results):
        return LIST
    if isinstance(value, Made) and value.record.entries:
        return LIST if value.record.is_list else OBJECT if value.record.exact else None
    return None


def is_list(value: Value) -> bool:
    """Whether its elements are in a row: of what a tool returned, or of a table that is not filled in another way."""
    return isinstance(value, Data) or (isinstance(value, Results) and value.is_list)


def is_empty(node: p.Expression | None) -> bool:
    """Whether it is written as nothing or as an empty table."""
    return (type(node) is p.Constant and node.value is None) or (type(node) is p.Record and not node.entries)


def is_next(target: p.Index) -> bool:
    """`t[#t + 1]`."""
    key = target.key
    if type(key) is not p.Operation or key.operator != "+" or type(key.left) is not p.Length:
        return False
    by_one = type(key.right) is p.Constant and key.right.value == 1
    return by_one and p.path(key.left.value) == p.path(target.value) != []


def element(value: Value, index: int | None = None) -> Value:
    """What a list's elements are; with `index`, counted from 0, the one there."""
    if isinstance(value, Data):
        facts = value.facts
        return value.part(facts.items) if facts.kinds == LIST else None
    if isinstance(value, Results):
        return value.values[index] if index is not None and 0 <= index < len(value.values) else value.each
    return None


def _names_all(node: SchemaNode) -> bool:
    """Like parameters: a schema that names properties and does not say otherwise names them all."""
    if any(keyword in node.says for keyword in _OPENING):
        return False
    return node.rest.schema is False or (bool(node.named) and "additionalProperties" not in node.says)


_OPENING = (
    *("$dynamicRef", "allOf", "anyOf", "dependentSchemas", "if", "oneOf", "patternProperties"),
    "unevaluatedProperties",
)


class Variable(Struct, eq=False, gc=False):
    """A local variable, or a global that the script assigns to."""

    value: Value
    at: int
    depth: int
    replaces: bool = False
    """It hides the one that its value is computed from."""
    is_read: bool = False
    is_empty: bool = False
    """It is declared without a value, or with an empty one: its only assignment says what it is."""
    declared: Value = None
    """What it is declared with, also where the script assigns to it later."""
    is_joined: bool = False
    """Text is added to its end."""
    starts_at: Any = None
    """The constant that it is declared with."""
    hides: Variable | None = None
    """The one of that name in a scope around its own."""


def caught_functions(body: p.Block) -> frozenset[str]:
    """The script's own functions that it calls where errors are caught, and those that they call."""
    caught: set[str] = set()
    mentions: dict[str, set[str]] = {}
    waiting: list[tuple[p.Node, set[str]]] = [(body, set())]
    while waiting:
        node, names = waiting.pop()
        if type(node) is p.Name:
            names.add(node.name)
        elif type(node) is p.Guarded or (type(node) is p.FunctionCall and p.path(node.function) in _CATCHING):
            names = caught
        elif type(node) is p.Define and type(node.target) is p.Name:
            names = mentions.setdefault(node.target.name, set())
        elif type(node) is p.Declare and len(node.names) == 1:
            names = mentions.setdefault(node.names[0], set())
        waiting.extend((part, names) for part in p.children(node))
    reached = list(caught)
    while reached:
        for name in mentions.get(reached.pop(), ()):
            if name not in caught:
                caught.add(name)
                reached.append(name)
    return frozenset(caught)
