"""JSON Schema documents: what a schema says about a value, read without validating anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from moonbox.errors import ToolDefinitionError

Schema = Any
"""A JSON Schema: a dict, or True or False."""

Kinds = frozenset[str] | None
"""JSON types; None stands for all of them."""

NARRATION = "human_intent"
"""A parameter in which some models explain themselves; it is never shown, and filled in when it is required."""

_LONGEST_CHAIN = 32
_DEEPEST_SCHEMA = 100
_MOST_NESTED_OPTIONS = 20
_ROLES = {
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "then", "else", "dependencies", "dependentSchemas"), "same"),
    **dict.fromkeys(("contains", "if", "not", "propertyNames"), "condition"),
    **dict.fromkeys(("additionalItems", "items", "prefixItems", "unevaluatedItems"), "inside"),
    **dict.fromkeys(("additionalProperties", "patternProperties", "properties", "unevaluatedProperties"), "inside"),
    **dict.fromkeys(("$defs", "definitions"), "definition"),
}
"""What the schemas under a keyword judge: the same value, whether a condition holds of it, something inside it."""
_NAMED_PARTS = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)


class SchemaDocument:
    """A schema together with what its `$ref`s lead to.

    What is worked out about a part is kept, so that a schema costs no more than its own size however often it is asked.
    """

    def __init__(self, root: Schema) -> None:
        self.root = root
        self._resolved: dict[int, Schema] = {}
        self._kinds: dict[int, Kinds] = {}
        self._properties: dict[tuple[int, int], dict[str, Schema]] = {}
        self._required: dict[tuple[int, int], list[str]] = {}
        self._options: dict[int, frozenset[Any]] = {}
        self._open: set[int] = set()

    def deref(self, schema: Schema) -> Schema:
        """The schema that a local `$ref` leads to; `{}` where it leads nowhere that can be read."""
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            return schema
        if id(schema) not in self._resolved:
            self._resolved[id(schema)] = self._follow(schema)
        return self._resolved[id(schema)]

    def pointer(self, ref: str, base: Schema = None) -> Schema:
        """What `#/a/b` points at in the document, or in a part of it."""
        if not ref.startswith("#"):
            return {}
        if "%" in ref:
            from urllib.parse import unquote

            ref = unquote(ref)
        node = self.root if base is None else base
        for token in ref[1:].split("/")[1:]:
            token = token.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and token in node:
                node = node[token]
            elif isinstance(node, list) and token.isdecimal() and int(token) < len(node):
                node = node[int(token)]
            else:
                return {}
        return node if isinstance(node, dict | bool) else {}

    def said(self, schema: Schema, keyword: str) -> Any:
        """What the schema, or the one that it refers to, says under a keyword; None where it says nothing."""
        part = self.deref(schema)
        return part.get(keyword) if isinstance(part, dict) else None

    def kinds(self, schema: Schema) -> Kinds:
        """The JSON types that the schema can accept; None where it does not say."""
        schema = self.deref(schema)
        if schema is False:
            return frozenset()
        if not isinstance(schema, dict) or id(schema) in self._open:
            return None
        key = id(schema)
        if key not in self._kinds:
            self._open.add(key)
            self._kinds[key] = self._read_kinds(schema)
            self._open.discard(key)
        return self._kinds[key]

    def properties(self, schema: Schema, depth: int = 4) -> dict[str, Schema]:
        """The properties an object schema names, those of its `allOf` parts included."""
        schema = self.deref(schema)
        if not isinstance(schema, dict) or depth <= 0:
            return {}
        key = (id(schema), depth)
        if key not in self._properties:
            named = schema.get("properties")
            collected = dict(named) if isinstance(named, dict) else {}
            for part in _parts(schema, "allOf"):
                for name, value in self.properties(part, depth - 1).items():
                    collected.setdefault(name, value)
            self._properties[key] = collected
        return self._properties[key]

    def required(self, schema: Schema, depth: int = 4) -> list[str]:
        """The names of the properties that must be there."""
        schema = self.deref(schema)
        if not isinstance(schema, dict) or depth <= 0:
            return []
        key = (id(schema), depth)
        if key not in self._required:
            names = dict.fromkeys(name for name in _parts(schema, "required") if isinstance(name, str))
            for part in _parts(schema, "allOf"):
                names.update(dict.fromkeys(self.required(part, depth - 1)))
            self._required[key] = list(names)
        return self._required[key]

    def positional_order(self) -> tuple[str, ...]:
        """Parameter names in the order in which they are shown and filled: required ones first, narration last."""
        must = set(self.required(self.root))
        return tuple(sorted(self.properties(self.root), key=lambda name: (name == NARRATION, name not in must)))

    def best_branch(self, branches: list[Schema], value: Any) -> int | None:
        """The branch of a union that the value was most likely meant for, judged by its outermost level."""
        kind = kind_of(value)
        fitting = [at for at, branch in enumerate(branches) if accepts(self.kinds(branch), kind)]
        if len(fitting) < 2:
            return fitting[0] if fitting else None
        return max(fitting, key=lambda at: (self._likeness(self.deref(branches[at]), value), -at))

    def _likeness(self, schema: Schema, value: Any) -> int:
        if not isinstance(schema, dict):
            return 0
        if isinstance(value, dict):
            return self._table_likeness(schema, value)
        if isinstance(value, list) and value:
            items = schema.get("items")
            return 0 if accepts(self.kinds(items if isinstance(items, dict) else True), kind_of(value[0])) else -4
        listed = self._lists(schema, value)
        return 0 if listed is None else 4 if listed else -4

    def _table_likeness(self, schema: dict[str, Any], value: dict[Any, Any]) -> int:
        """Judged by the schema's own properties, so that a large value costs no more than a small one."""
        shared = {name: part for name, part in self.properties(schema).items() if name in value}
        score = -2 * sum(name not in value for name in self.required(schema))
        if schema.get("additionalProperties") is False:
            score -= len(value) - len(shared)
        for name, part in shared.items():
            listed = self._lists(self.deref(part), value[name])
            score += 1 if listed is None else 8 if listed else -8
        return score

    def _lists(self, schema: Schema, value: Any) -> bool | None:
        """Whether the value is among those that the schema lists; None where it lists none."""
        options = listed(schema)
        if options is None:
            return None
        if id(schema) not in self._options:
            self._options[id(schema)] = frozenset(option for option in options if not isinstance(option, list | dict))
        if isinstance(value, list | dict):
            return value in options[:_MOST_NESTED_OPTIONS]
        return value in self._options[id(schema)]

    def _follow(self, schema: dict[str, Any]) -> Schema:
        reached: Schema = schema
        for _ in range(_LONGEST_CHAIN):
            if not isinstance(reached, dict) or not isinstance(reached.get("$ref"), str):
                return reached
            beside = {key: value for key, value in reached.items() if key != "$ref"}
            target = self.pointer(reached["$ref"])
            reached = {**target, **beside} if isinstance(target, dict) and beside else target
        return {}

    def _read_kinds(self, schema: dict[str, Any]) -> Kinds:
        kinds: Kinds = None
        declared = schema.get("type")
        if isinstance(declared, str):
            kinds = frozenset({declared})
        elif isinstance(declared, list):
            kinds = frozenset(kind for kind in declared if isinstance(kind, str))
        if (options := listed(schema)) is not None:
            kinds = _both(kinds, frozenset(map(kind_of, options)))
        for keyword in ("anyOf", "oneOf"):
            if branches := _parts(schema, keyword):
                kinds = _both(kinds, _any([self.kinds(branch) for branch in branches]))
        for part in _parts(schema, "allOf"):
            kinds = _both(kinds, self.kinds(part))
        if kinds is None and ("properties" in schema or "additionalProperties" in schema):
            return frozenset({"object"})
        if kinds is None and ("items" in schema or "prefixItems" in schema):
            return frozenset({"array"})
        return kinds


def own_copy(name: str, what: str, schema: Any) -> dict[str, Any] | None:
    """A schema that is the tool's own, so that its giver may change theirs; None for none."""
    if not schema:
        return None
    if not isinstance(schema, Mapping):
        raise ToolDefinitionError(f"tool {name!r}: {what} must be a JSON Schema (a dict), not {type(schema).__name__}")
    level: list[Any] = [schema]
    for _ in range(_DEEPEST_SCHEMA):  # schemas come from servers too, and everything that reads them recurses
        nested = [part for item in level for part in (item.values() if isinstance(item, Mapping) else item)]
        level = [part for part in nested if isinstance(part, Mapping | list)]
    if level:
        raise ToolDefinitionError(f"tool {name!r}: {what} is nested deeper than {_DEEPEST_SCHEMA} levels")
    import copy

    return copy.deepcopy(dict(schema))


def object_schema(name: str, schema: Any) -> dict[str, Any]:
    """The schema of a tool's parameters, if arguments can be bound to it."""
    if not isinstance(schema, dict):
        raise ToolDefinitionError(
            f"tool {name!r}: parameters must be a JSON Schema (a dict), not {type(schema).__name__}"
        )
    if not schema:
        return {"type": "object", "properties": {}}
    declared = SchemaDocument(schema).kinds(schema)
    if declared is not None and "object" not in declared:
        raise ToolDefinitionError(
            f"tool {name!r}: parameters must be a JSON Schema of type object, not {'|'.join(sorted(declared))}"
        )
    return schema


def with_parts(schema: dict[str, Any], change: Callable[[Schema, str], Schema]) -> dict[str, Any]:
    """A schema in which each schema directly within it is what `change` makes of it and its role, see `_ROLES`."""
    changed = dict(schema)
    for keyword, value in schema.items():
        role = _ROLES.get(keyword)
        if role is None:
            continue
        if isinstance(value, list):
            changed[keyword] = [change(part, role) for part in value]
        elif keyword not in _NAMED_PARTS:
            changed[keyword] = change(value, role)
        elif isinstance(value, dict):
            changed[keyword] = {name: change(part, role) for name, part in value.items()}
    return changed


def roles(schema: dict[str, Any]) -> Iterator[tuple[str, Schema]]:
    """Each schema directly within a schema, with the keyword that it stands under."""
    for keyword in _ROLES.keys() & schema.keys():
        value = schema[keyword]
        if isinstance(value, list):
            inner: Iterable[Schema] = value
        elif keyword not in _NAMED_PARTS:
            inner = (value,)
        else:
            inner = value.values() if isinstance(value, dict) else ()
        yield from ((keyword, part) for part in inner)


def parts(schema: dict[str, Any], *roles: str) -> list[Schema]:
    """The schemas directly within a schema that have these roles."""
    found: list[Schema] = []
    with_parts(schema, lambda part, role: found.append(part) if role in roles else None)
    return found


def listed(schema: Schema) -> list[Any] | None:
    """The values that a schema lists as the only ones; None where it lists none."""
    if not isinstance(schema, dict):
        return None
    options = [schema["const"]] if "const" in schema else schema.get("enum")
    return options if isinstance(options, list) else None


def elements(schema: dict[str, Any]) -> tuple[list[Schema], Schema]:
    """The schemas of an array's first elements, and that of the others; None where nothing is said of them."""
    first, others = schema.get("prefixItems"), schema.get("items")
    if isinstance(others, list):  # drafts before 2020-12
        first, others = others, schema.get("additionalItems")
    return first if isinstance(first, list) else [], others


def kind_of(value: Any) -> str:
    """The JSON type of a plain value; a whole number is an integer, bytes are a string."""
    return _KINDS.get(type(value), "object")


def accepts(wanted: Kinds, kind: str) -> bool:
    """Whether a value of that JSON type can fit."""
    return wanted is None or kind in wanted or (kind == "integer" and "number" in wanted)


def _parts(schema: dict[str, Any], keyword: str) -> list[Schema]:
    parts = schema.get(keyword)
    return parts if isinstance(parts, list) else []


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


_KINDS = {
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
