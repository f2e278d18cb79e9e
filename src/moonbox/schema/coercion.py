"""Coercion: a script's values made to fit JSON, and the values that JSON cannot express.

Changes are directed by the schema, through `properties`, `items`, `$ref`, `anyOf`, `oneOf` and `allOf`:

    a whole float where only an integer fits        3.0 becomes 3
    an empty array where only an object fits        [] becomes {}, and the other way round
    integer keys where an object is wanted          {10: "x"} becomes {"10": "x"}
    null for an optional property that cannot be null    as if it had not been given
    another name of a property                      the name that the schema has, unless both are given

Nothing else changes: a string never becomes a number. A value that needs no change is returned as it is.

Bytes that are not UTF-8 text, integer keys, NaN, infinity and half surrogate pairs have no JSON form, so that a
validator cannot judge them. They are accepted only in places of which the schema says nothing at all, and bytes also
where it says `"format": "binary"`; anywhere else they are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from moonbox.schema.document import Kinds, Schema, SchemaDocument, accepts, elements

Coerce = Callable[[Any], Any]
OTHER_NAMES = "otherNames"
"""A keyword of ours, never shown: names that properties have besides those in the schema, with the latter."""
Path = tuple[str | int, ...]


def compile_coercion(document: SchemaDocument) -> Coerce | None:
    """A function that coerces a value for this schema; None when there is nothing it could ever change."""
    return _Compiler(document).compile(document.root)


def is_json(value: Any) -> bool:
    """Whether JSON can express the value exactly."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        kind = type(item)
        if kind is str:
            if not _is_text(item):
                return False
        elif kind is dict:
            if not all(type(name) is str and _is_text(name) for name in item):
                return False
            waiting.extend(item.values())
        elif kind is list or kind is tuple:
            waiting.extend(item)
        elif kind is float:
            if not math.isfinite(item):
                return False
        elif kind is not int and kind is not bool and item is not None:
            return False
    return True


class NotJson(Exception):
    """A value that JSON cannot express, in a place where the schema would have to judge it."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(reason)
        self.path, self.reason = path, reason


def json_form(value: Any, document: SchemaDocument, schema: Schema = ..., path: Path = ()) -> Any:
    """The value for the validator: what JSON cannot express is replaced where the schema says nothing about it.

    Raises NotJson where the schema does. The schema is followed only along keywords that leave no doubt about which
    part of it judges which part of the value.
    """
    schema = document.root if schema is ... else schema
    schema = _target(schema, document)
    if _says_nothing(schema):
        return None
    if isinstance(value, bytes) and _is_binary(schema, document):
        return value.decode("latin-1")
    if not isinstance(value, list | dict) or not isinstance(schema, dict) or schema.keys() - _PLAIN_KEYWORDS:
        if is_json(value):
            return value
        raise NotJson(path, _reason(value))
    if isinstance(value, list):
        heads, rest = schema.get("prefixItems") or [], schema.get("items", True)
        return [
            json_form(item, document, heads[at] if at < len(heads) else rest, (*path, at))
            for at, item in enumerate(value)
        ]
    if not all(type(name) is str and _is_text(name) for name in value):
        raise NotJson(path, _reason(value))
    named, rest = schema.get("properties") or {}, schema.get("additionalProperties", True)
    return {name: json_form(item, document, named.get(name, rest), (*path, name)) for name, item in value.items()}


def stand_in(value: Any) -> Any:
    """The value with what JSON cannot express replaced by similar text: for explanations, never for a decision."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8") if not value.isascii() else value
    if isinstance(value, list):
        return [stand_in(item) for item in value]
    if isinstance(value, dict):
        return {stand_in(name) if isinstance(name, str) else str(name): stand_in(item) for name, item in value.items()}
    return value


class _Compiler:
    def __init__(self, document: SchemaDocument) -> None:
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
            return lambda value: step(value) if (step := self.refs.get(ref)) else value
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
        others = schema.get(OTHER_NAMES) or {}
        if wanted is None or "object" not in wanted:
            return None

        def walk(value: Any) -> Any:
            if type(value) is not dict or not value:
                return value
            if int in map(type, value):
                value = _string_keys(value)
            if others and not others.keys().isdisjoint(value):
                value = _renamed(value, others)
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
        first, others = elements(schema)
        heads = [self.inside(part) for part in first]
        rest = self.inside(others)
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


def _renamed(value: dict[Any, Any], others: Mapping[str, str]) -> dict[Any, Any]:
    """With the names that the schema has, as far as these are not taken."""
    renamed: dict[Any, Any] = {}
    for name, item in value.items():
        shown = others.get(name, name)
        renamed[name if shown != name and (shown in value or shown in renamed) else shown] = item
    return renamed


_ANNOTATIONS = frozenset({"$comment", "default", "deprecated", "description", "examples", "title"})
_PLAIN_KEYWORDS = _ANNOTATIONS | {
    *("$defs", "$schema", "additionalProperties", "definitions", "items", "maxItems", "maxProperties", "minItems"),
    *("minProperties", "prefixItems", "properties", "required", "type", OTHER_NAMES),
}


def _says_nothing(schema: Schema) -> bool:
    return schema is True or (isinstance(schema, dict) and schema.keys() <= _ANNOTATIONS)


def _target(schema: Schema, document: SchemaDocument) -> Schema:
    """The schema behind a reference; what stands beside the reference would apply too, so that it must say nothing."""
    if isinstance(schema, dict) and "$ref" in schema and schema.keys() - _ANNOTATIONS != {"$ref"}:
        return None
    return document.deref(schema)


def _is_binary(schema: Schema, document: SchemaDocument) -> bool:
    """Whether the schema accepts every string of bytes."""
    if not isinstance(schema, dict):
        return False
    rules = schema.keys() - _ANNOTATIONS
    if rules == {"anyOf"}:
        return any(_is_binary(_target(branch, document), document) for branch in schema["anyOf"])
    return rules == {"type", "format"} and schema["type"] == "string" and schema["format"] == "binary"


def _is_text(value: str) -> bool:
    """Whether it can be written as UTF-8: half of a surrogate pair cannot."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _reason(value: Any) -> str:
    if isinstance(value, bytes):
        return "a string that is not UTF-8 is not accepted here"
    if isinstance(value, float):
        return f"{value} is not a JSON number"
    if isinstance(value, str):
        return "the text is not valid Unicode: it has half of a surrogate pair"
    if isinstance(value, dict):
        integers = [name for name in value if isinstance(name, int) and str(name) in value]
        if integers:
            return f"the keys {integers[0]} and '{integers[0]}' are the same in JSON"
    return "the value has no exact JSON form, so that it cannot be validated here"
