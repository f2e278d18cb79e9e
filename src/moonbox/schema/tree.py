"""The tree of a JSON Schema: each part is read once, when it is asked for. All that reads schemas visits this tree.

A reference leads to the node that it names, so that a tree may have circles. A schema may be a stranger's: keywords
with invalid values are ignored, and what is nested too deeply, or depends on itself, is unknown.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from typing import Any, Generic, TypeVar

Schema = Any
"""A JSON Schema: a dict, or True or False."""

Kinds = frozenset[str] | None
"""JSON types; None stands for all of them."""

NARRATION = "human_intent"
"""A parameter in which some models explain themselves; it is never shown, and filled in when it is required."""

DEFINITIONS = frozenset({"$defs", "definitions"})
WORDS = frozenset({"$comment", "$schema", "default", "deprecated", "description", "examples", "title"}) | DEFINITIONS
"""Keywords that no value has to fit."""
UNIONS = ("anyOf", "oneOf")
ROLES = {
    **dict.fromkeys(("allOf", *UNIONS, "then", "else", "dependencies", "dependentSchemas"), "same"),
    **dict.fromkeys(("contains", "if", "not", "propertyNames"), "condition"),
    **dict.fromkeys(("additionalItems", "items", "prefixItems", "unevaluatedItems"), "inside"),
    **dict.fromkeys(("additionalProperties", "patternProperties", "properties", "unevaluatedProperties"), "inside"),
    **dict.fromkeys(DEFINITIONS, "definition"),
}
"""What the schemas under a keyword judge: the same value, something inside it, or whether a condition holds."""
_NAMED_PARTS = DEFINITIONS | {"dependencies", "dependentSchemas", "patternProperties", "properties"}
_DEEPEST = 60  # what one answer about a schema may rest on, one within the other
_MOST_NESTED_OPTIONS = 20
_MOST_ALTERNATIVES = 50
_MOST_NAMES = 300_000  # that all schemas of a tree have taken over from their parts

T = TypeVar("T")
Names = TypeVar("Names", list[str], "dict[str, SchemaNode]")


class _Tree:
    """What the nodes of one schema share."""

    def __init__(self, root: SchemaNode) -> None:
        self.root = root
        self.nodes: dict[int, SchemaNode] = {}
        self.open: set[tuple[int, str]] = set()
        self.names_left = _MOST_NAMES
        self.lock = threading.RLock()  # one thread at a time works something out: `open` is what it is at

    def node(self, schema: Schema) -> SchemaNode:
        node = self.nodes.get(id(schema))  # the node keeps the schema alive
        return node if node is not None else self.nodes.setdefault(id(schema), SchemaNode(schema, self))


class _Read(Generic[T]):
    """A property of a node, computed when it is first read; a `rule`, by the node that a reference leads to."""

    def __init__(self, work: Callable[[Any], T], *, rule: bool = False) -> None:
        self.work, self.rule = work, rule
        self.name, self.__doc__ = work.__name__, work.__doc__

    def __get__(self, node: SchemaNode, owner: type) -> T:
        tree, key = node.tree, (id(node), self.name)
        with tree.lock:
            if key in tree.open or len(tree.open) >= _DEEPEST:
                return self.work(SchemaNode(True))  # as if it said nothing
            tree.open.add(key)
            try:
                other = node.target if self.rule else node
                value: T = self.work(node) if other is node else getattr(other, self.name)
            finally:
                tree.open.discard(key)
            node.__dict__[self.name] = value  # where Python looks first
        return value


def _rule(work: Callable[[Any], T]) -> _Read[T]:
    return _Read(work, rule=True)


class SchemaNode:
    """One schema of a tree."""

    def __init__(self, schema: Schema, tree: _Tree | None = None) -> None:
        self.schema = schema
        self.tree = tree if tree is not None else _Tree(self)
        if tree is None:
            self.tree.nodes[id(schema)] = self

    @property
    def root(self) -> SchemaNode:
        """The whole schema."""
        return self.tree.root

    def at(self, ref: str, base: Schema = None) -> SchemaNode:
        """What `#/a/b` points at in the schema, or in a part of it; a node that says nothing where that is nothing."""
        return self.tree.node(pointed(self.root.schema if base is None else base, ref))

    @_Read
    def target(self) -> SchemaNode:
        """The node with the rules: the one that a reference leads to, unless there are rules beside the reference."""
        if not isinstance(self.schema, dict) or self.reference is None or self.schema.keys() - WORDS != {"$ref"}:
            return self
        return self.at(self.reference).target

    @property
    def reference(self) -> str | None:
        """Its own `$ref`."""
        ref = self.schema.get("$ref") if isinstance(self.schema, dict) else None
        return ref if isinstance(ref, str) else None

    @_Read
    def says(self) -> dict[str, Any]:
        """The keywords that hold. Words beside a reference come first; rules beside it hold as well as its target."""
        if not isinstance(self.schema, dict):
            return {}
        if self.reference is None:
            return self.schema
        beside = {key: value for key, value in self.schema.items() if key != "$ref"}
        if self.target is not self:
            return {**self.at(self.reference).says, **beside}
        return {**beside, "allOf": [*_list(beside.get("allOf")), {"$ref": self.reference}]}

    def word(self, keyword: str) -> str:
        """The text under a keyword."""
        text = self.says.get(keyword)
        return text if isinstance(text, str) else ""

    @property
    def is_false(self) -> bool:
        """Whether no value fits."""
        return self.target.schema is False

    @_rule
    def kinds(self) -> Kinds:
        """The JSON types that a value can have."""
        if self.schema is False:
            return frozenset()
        says, kinds = self.says, None
        declared = says.get("type")
        if isinstance(declared, str | list):
            listed = [declared] if isinstance(declared, str) else declared
            kinds = frozenset(kind for kind in listed if isinstance(kind, str))
        if self.listed is not None:
            kinds = _both(kinds, frozenset(map(kind_of, self.listed)))
        for choices in self.unions.values():
            kinds = _both(kinds, _any([choice.kinds for choice in choices]))
        for part in self.parts:
            kinds = _both(kinds, part.kinds)
        if kinds is None and ("properties" in says or "additionalProperties" in says):
            return frozenset({"object"})
        return frozenset({"array"}) if kinds is None and ("items" in says or "prefixItems" in says) else kinds

    @_rule
    def listed(self) -> list[Any] | None:
        """The only values that fit; None where the schema does not list them."""
        options = [self.says["const"]] if "const" in self.says else self.says.get("enum")
        return options if isinstance(options, list) else None

    @_rule
    def _plain_options(self) -> frozenset[Any]:
        return frozenset(option for option in self.listed or () if not isinstance(option, list | dict))

    def lists(self, value: Any) -> bool | None:
        """Whether the value is one of those listed; None where the schema lists none."""
        if self.listed is None:
            return None
        if isinstance(value, list | dict):
            return value in self.listed[:_MOST_NESTED_OPTIONS]
        return value in self._plain_options

    @_rule
    def named(self) -> dict[str, SchemaNode]:
        """The properties that it names itself."""
        named = self.says.get("properties")
        return {name: self.tree.node(part) for name, part in named.items()} if isinstance(named, dict) else {}

    @_rule
    def needed(self) -> list[str]:
        """The names of the properties that it requires itself."""
        return list(dict.fromkeys(name for name in _list(self.says.get("required")) if isinstance(name, str)))

    @_rule
    def fields(self) -> dict[str, SchemaNode]:
        """The properties that it or one of its `allOf` parts names."""
        fields = dict(self.named)
        for part in self.parts:
            for name, field in self._taken(part.fields).items():
                fields.setdefault(name, field)
        return fields

    @_rule
    def required(self) -> list[str]:
        """The names of the properties that it or one of its `allOf` parts requires."""
        return list(
            dict.fromkeys([*self.needed, *(name for part in self.parts for name in self._taken(part.required))])
        )

    def _taken(self, names: Names) -> Names:
        """The names of a part; none once the schemas of the tree have taken over too many names together."""
        self.tree.names_left -= len(names)
        return names if self.tree.names_left >= 0 else type(names)()

    @_rule
    def rest(self) -> SchemaNode:
        """What properties without a name have to fit, as far as no pattern decides."""
        return self.tree.node(True if self.says.get("patternProperties") else self._inner("additionalProperties"))

    @_rule
    def heads(self) -> list[SchemaNode]:
        """The first elements of an array."""
        first = self.says.get("items" if self._is_old else "prefixItems")
        return [self.tree.node(part) for part in _list(first)]

    @_rule
    def items(self) -> SchemaNode:
        """The other elements of an array."""
        return self.tree.node(self._inner("additionalItems" if self._is_old else "items"))

    @_rule
    def unions(self) -> dict[str, list[SchemaNode]]:
        """The branches of `anyOf` and of `oneOf`, as far as there are some."""
        branches = {keyword: _list(self.says.get(keyword)) for keyword in UNIONS}
        return {keyword: [self.tree.node(part) for part in parts] for keyword, parts in branches.items() if parts}

    @_rule
    def parts(self) -> list[SchemaNode]:
        """The parts of `allOf`."""
        return [self.tree.node(part) for part in _list(self.says.get("allOf"))]

    @_rule
    def alternatives(self) -> list[SchemaNode]:
        """The branches of its unions, and theirs, or the node alone; without those for null alone."""
        flat: list[SchemaNode] = []
        seen: set[int] = set()
        waiting = [self]
        while waiting and len(flat) < _MOST_ALTERNATIVES:
            node = waiting.pop(0).target
            inner = [branch for branches in node.unions.values() for branch in branches]
            if id(node) in seen or not isinstance(node.schema, dict):
                continue
            if inner and "properties" not in node.says and len(flat) + len(waiting) < _MOST_ALTERNATIVES:
                seen.add(id(node))
                waiting += inner
            elif node.kinds != frozenset({"null"}):
                flat.append(node)
        return flat

    def positional_order(self) -> tuple[str, ...]:
        """Parameter names in the order in which they are shown and filled: required ones first, narration last."""
        must = set(self.required)
        return tuple(sorted(self.fields, key=lambda name: (name == NARRATION, name not in must)))

    @property
    def _is_old(self) -> bool:
        """Whether its elements are written as in drafts before 2020-12."""
        return isinstance(self.says.get("items"), list)

    def _inner(self, keyword: str) -> Schema:
        part = self.says.get(keyword, True)
        return part if isinstance(part, dict | bool) else True

    def likeness(self, value: Any) -> int:
        """How well a value fits at its outermost level; a large one costs no more than a small one."""
        if isinstance(value, dict):
            score = shared = 0
            for name in self.required:
                if name not in value:
                    score -= 2
            for name, part in self.fields.items():
                if name in value:
                    listed = part.lists(value[name])
                    score += 1 if listed is None else 8 if listed else -8
                    shared += 1
            return score - len(value) + shared if self.says.get("additionalProperties") is False else score
        if isinstance(value, list) and value:
            return 0 if self.heads or accepts(self.items.kinds, kind_of(value[0])) else -4
        return {None: 0, True: 4, False: -4}[self.lists(value)]


def best_branch(branches: list[SchemaNode], value: Any) -> int | None:
    """The branch of a union that the value was most likely meant for, judged by its outermost level."""
    kind = kind_of(value)
    fitting = [at for at, branch in enumerate(branches) if accepts(branch.kinds, kind)]
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    return max(fitting, key=lambda at: branches[at].likeness(value))


def pointed(node: Any, ref: str, otherwise: Any = True) -> Schema:
    """What `#/a/b` points at; `otherwise`, by default True, which says nothing, where that is no schema."""
    if not ref.startswith("#"):
        return otherwise
    if "%" in ref:
        from urllib.parse import unquote

        ref = unquote(ref)
    for token in ref[1:].split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and token in node:
            node = node[token]
        elif isinstance(node, list) and token.isdecimal() and len(token) < 10 and int(token) < len(node):
            node = node[int(token)]
        else:
            return otherwise
    return node if isinstance(node, dict | bool) else otherwise


def is_pointer(ref: Any) -> bool:
    """Whether a reference is a path from the root of the schema."""
    return isinstance(ref, str) and (ref == "#" or ref.startswith("#/"))


def with_parts(schema: dict[str, Any], change: Callable[[Schema, str], Schema]) -> dict[str, Any]:
    """A copy of a schema in which `change(part, role)` replaces each schema directly within it; see `ROLES`."""
    changed = dict(schema)
    for keyword, value in schema.items():
        role = ROLES.get(keyword)
        if role is None:
            continue
        if isinstance(value, list):
            changed[keyword] = [change(part, role) for part in value]
        elif keyword not in _NAMED_PARTS:
            changed[keyword] = change(value, role)
        elif isinstance(value, dict):
            changed[keyword] = {
                name: part if isinstance(part, list) else change(part, role) for name, part in value.items()
            }
    return changed


def without_properties(schema: dict[str, Any], names: Collection[Any]) -> dict[str, Any]:
    """A schema without these properties at its outermost level."""
    named, required = schema.get("properties"), schema.get("required")
    changed = dict(schema)
    if isinstance(named, dict):
        changed["properties"] = {name: part for name, part in named.items() if name not in names}
    if isinstance(required, list):
        changed["required"] = [name for name in required if name not in names]
    return changed


def roles(schema: dict[str, Any]) -> Iterator[tuple[str, Schema]]:
    """Each schema directly within a schema, with the keyword that it stands under."""
    for keyword, parts in schema.items():
        if keyword in _NAMED_PARTS:
            parts = list(parts.values()) if isinstance(parts, dict) else []
        if keyword in ROLES:
            yield from ((keyword, part) for part in (parts if isinstance(parts, list) else [parts]))


def kind_of(value: Any) -> str:
    """The JSON type of a plain value; a whole number is an integer, bytes are a string."""
    return KINDS.get(type(value), "object")


def accepts(wanted: Kinds, kind: str) -> bool:
    """Whether a value of that JSON type can fit."""
    return wanted is None or kind in wanted or (kind == "integer" and "number" in wanted)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _both(left: Kinds, right: Kinds) -> Kinds:
    if left is None or right is None:
        return right if left is None else left
    common = left & right
    if "number" in left or "number" in right:
        common |= (left | right) & {"integer"}
    return common


def _any(branches: list[Kinds]) -> Kinds:
    known = [branch for branch in branches if branch is not None]
    return frozenset().union(*known) if len(known) == len(branches) else None


KINDS = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    bytes: "string",
    list: "array",
    tuple: "array",
    dict: "object",
}
