"""Coercions: what a script's author meant, where Lua's values and JSON's differ.

Directed by the schema, through `properties`, `items`, `$ref`, `anyOf`, `oneOf` and `allOf`:

    a whole float where only an integer fits        3.0 becomes 3
    an empty array where only an object fits        [] becomes {}, and the other way round
    integer keys where an object is wanted          {10: "x"} becomes {"10": "x"}
    null for an optional property that cannot be null    as if it had not been given

Nothing else changes: a string never becomes a number. A value that needs no change is returned as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moonbox.tools.shape import Document, Kinds, Schema, accepts

__all__ = ["Coerce", "compile_coercion"]

Coerce = Callable[[Any], Any]


def compile_coercion(document: Document) -> Coerce | None:
    """A function that coerces a value for this schema; None when there is nothing it could ever change."""
    return _Compiler(document).compile(document.root)


class _Compiler:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.refs: dict[str, Coerce | None] = {}
        self.open: set[str] = set()
        self.here: set[str] = set()
        """The open references that no property or item lies behind: following one again would never end."""

    def compile(self, schema: Schema) -> Coerce | None:
        if not isinstance(schema, dict):
            return None
        wanted = self.document.kinds(schema)
        steps = [
            _repair(wanted),
            self.reference(schema),
            *(self.compile(part) for part in schema.get("allOf") or ()),
            self.union(schema.get("anyOf")),
            self.union(schema.get("oneOf")),
            self.table(schema, wanted),
            self.array(schema),
        ]
        return _chain([step for step in steps if step is not None])

    def reference(self, schema: dict[str, Any]) -> Coerce | None:
        ref = schema.get("$ref")
        if not isinstance(ref, str) or not ref.startswith("#"):
            return None
        if ref in self.here:
            return None
        if ref in self.open:  # a type that contains itself: look the function up when it is needed
            return lambda value: found(value) if (found := self.refs.get(ref)) else value
        if ref not in self.refs:
            self.open.add(ref)
            self.here.add(ref)
            self.refs[ref] = self.compile(self.document.pointer(ref))
            self.open.discard(ref)
            self.here.discard(ref)
        return self.refs[ref]

    def inside(self, schema: Schema) -> Coerce | None:
        """Compile the schema of something within the value."""
        here, self.here = self.here, set()
        compiled = self.compile(schema)
        self.here = here
        return compiled

    def union(self, choices: Any) -> Coerce | None:
        if not isinstance(choices, list):
            return None
        steps = [self.compile(choice) for choice in choices]
        if not any(steps):
            return None
        best_branch = self.document.best_branch

        def choose(value: Any) -> Any:
            at = best_branch(choices, value)
            step = None if at is None else steps[at]
            return step(value) if step else value

        return choose

    def table(self, schema: dict[str, Any], wanted: Kinds) -> Coerce | None:
        named = schema.get("properties")
        named = named if isinstance(named, dict) else {}
        must = set(schema.get("required") or ())
        coerce = {name: self.inside(part) for name, part in named.items()}
        droppable = {
            name for name, part in named.items() if name not in must and not accepts(self.document.kinds(part), "null")
        }
        rest = self.inside(schema.get("additionalProperties"))
        if "patternProperties" in schema:  # matching a script's keys here would need a second pattern dialect
            rest = None
        if wanted is None or "object" not in wanted:
            return None

        def walk(value: Any) -> Any:
            if type(value) is not dict or not value:
                return value
            if any(type(name) is int for name in value) and "array" not in wanted:
                value = _string_keys(value)
            result = value
            for name, item in value.items():
                step = coerce.get(name, rest)
                if item is None and name in droppable:
                    result = dict(value) if result is value else result
                    del result[name]
                elif step is not None and (changed := step(item)) is not item:
                    result = dict(value) if result is value else result
                    result[name] = changed
            return result

        return walk

    def array(self, schema: dict[str, Any]) -> Coerce | None:
        items, first = schema.get("items"), schema.get("prefixItems")
        if isinstance(items, list):  # drafts before 2020-12
            first, items = items, schema.get("additionalItems")
        heads = [self.inside(part) for part in first or ()]
        rest = self.inside(items)
        if rest is None and not any(heads):
            return None

        def walk(value: Any) -> Any:
            if type(value) is not list:
                return value
            result = value
            for index, item in enumerate(value):
                step = heads[index] if index < len(heads) else rest
                if step is not None and (changed := step(item)) is not item:
                    result = list(value) if result is value else result
                    result[index] = changed
            return result

        return walk


def _repair(wanted: Kinds) -> Coerce | None:
    """The changes that depend on the value's own type alone."""
    if wanted is None:
        return None
    if "integer" in wanted and "number" not in wanted:
        whole = _whole
    else:
        whole = None
    array, table = "array" in wanted, "object" in wanted
    if array == table:
        return whole

    def repair(value: Any) -> Any:
        kind = type(value)
        if kind is list and not value and table:
            return {}
        if kind is dict and not value and array:
            return []
        return whole(value) if whole else value

    return repair


def _whole(value: Any) -> Any:
    if type(value) is float and value.is_integer() and abs(value) < 2.0**63:
        return int(value)
    return value


def _chain(steps: list[Coerce]) -> Coerce | None:
    if len(steps) < 2:
        return steps[0] if steps else None

    def run(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    return run


def _string_keys(value: dict[Any, Any]) -> dict[Any, Any]:
    """Integer keys as text, unless that would make two keys one."""
    renamed = {str(name): item for name, item in value.items()}
    return renamed if len(renamed) == len(value) else value
