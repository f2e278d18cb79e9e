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

import functools
import math
import threading
from collections.abc import Callable, Mapping
from typing import Any

from moonbox.schema.bounds import TooCostly
from moonbox.schema.tree import WORDS, Kinds, SchemaNode, accepts, best_branch

Coerce = Callable[[Any], Any]
OTHER_NAMES = "otherNames"
"""A keyword of ours, never shown: names that properties have besides those in the schema, with the latter."""
Path = tuple[str | int, ...]
_MOST_LOOKS = 500_000  # at branches of unions: about 2 seconds
_FIELDS_A_LOOK = 8


def compile_coercion(node: SchemaNode) -> Coerce | None:
    """A function that coerces a value for this schema; None when there is nothing it could ever change.

    It raises TooCostly where the branches of unions are looked at too often.
    """
    compiler = _Compiler()
    step = compiler.compile(node)
    if step is None or not (compiler.loops or compiler.chooses):
        return step

    def coerce(value: Any) -> Any:
        compiler.run.done, compiler.run.looks = {}, _MOST_LOOKS
        return step(value)

    return coerce


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
            for name in item:
                if type(name) is not str or not _is_text(name):
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


def json_form(value: Any, node: SchemaNode, path: Path = ()) -> Any:
    """The value for the validator: what JSON cannot express is replaced where the schema says nothing about it.

    Raises NotJson where the schema does. The schema is followed only along keywords that leave no doubt about which
    part of it judges which part of the value.
    """
    node = node.target
    rules = node.says.keys() - WORDS
    if not rules and not node.is_false:
        return None
    if isinstance(value, bytes) and _is_binary(node):
        return value.decode("latin-1")
    if not isinstance(value, list | dict) or node.is_false or rules - _PLAIN_KEYWORDS:
        if is_json(value):
            return value
        raise NotJson(path, _reason(value))
    if isinstance(value, list):
        heads = node.heads
        return [
            json_form(item, heads[at] if at < len(heads) else node.items, (*path, at)) for at, item in enumerate(value)
        ]
    if not all(type(name) is str and _is_text(name) for name in value):
        raise NotJson(path, _reason(value))
    return {name: json_form(item, node.named.get(name, node.rest), (*path, name)) for name, item in value.items()}


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
    def __init__(self) -> None:
        self.known: dict[int, Coerce | None] = {}
        self.open: set[int] = set()
        self.here: set[int] = set()
        """The open nodes that no property or item lies behind: compiling one again would never end."""
        self.loops = self.chooses = False
        self.run = threading.local()
        """`done`: what a type that contains itself has made of each value; several ways may lead to the same. `looks`:
        how many looks at a branch of a union are left."""

    def compile(self, node: SchemaNode) -> Coerce | None:
        node = node.target
        if not isinstance(node.schema, dict) or (key := id(node)) in self.here:
            return None
        if key in self.open:  # a type that contains itself: look the function up when it is needed
            self.loops = True
            return functools.partial(self.again, key)
        if key not in self.known:
            self.open.add(key)
            self.here.add(key)
            self.known[key] = self.steps(node)
            self.open.discard(key)
            self.here.discard(key)
        return self.known[key]

    def again(self, key: int, value: Any) -> Any:
        step = self.known.get(key)
        if step is None or not isinstance(value, list | dict):
            return step(value) if step else value
        done: dict[tuple[int, int], tuple[Any, Any]] = self.run.done
        known = done.get((key, id(value)))
        if known is None:
            changed = step(value)
            known = done[key, id(value)] = done[key, id(changed)] = value, changed
        return known[1]

    def steps(self, node: SchemaNode) -> Coerce | None:
        steps = [
            _repair(node.kinds),
            *map(self.compile, node.parts),
            *map(self.union, node.unions.values()),
            self.table(node),
            self.array(node),
        ]
        return _chain([step for step in steps if step is not None])

    def inside(self, node: SchemaNode) -> Coerce | None:
        """Compile the schema of something within the value."""
        here, self.here = self.here, set()
        compiled = self.compile(node)
        self.here = here
        return compiled

    def union(self, choices: list[SchemaNode]) -> Coerce | None:
        steps = list(map(self.compile, choices))
        if not any(steps):
            return None
        self.chooses = True
        looks = len(choices) + sum(len(choice.fields) for choice in choices) // _FIELDS_A_LOOK

        def choose(value: Any) -> Any:
            self.run.looks -= looks
            if self.run.looks < 0:
                raise TooCostly("it is too large for the unions of its schema")
            at = best_branch(choices, value)
            step = None if at is None else steps[at]
            return step(value) if step else value

        return choose

    def table(self, node: SchemaNode) -> Coerce | None:
        if node.kinds is None or "object" not in node.kinds:
            return None
        coerce = {name: self.inside(part) for name, part in node.named.items()}
        droppable = node.named.keys() - node.needed
        droppable = {name for name in droppable if not accepts(node.named[name].kinds, "null")}
        rest = self.inside(node.rest)
        others = node.says.get(OTHER_NAMES) or {}

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

    def array(self, node: SchemaNode) -> Coerce | None:
        heads, rest = list(map(self.inside, node.heads)), self.inside(node.items)
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
    whole = _whole if "integer" in wanted and "number" not in wanted else None
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


_PLAIN_KEYWORDS = frozenset({
    *("additionalProperties", "items", "maxItems", "maxProperties", "minItems", "minProperties", "prefixItems"),
    *("properties", "required", "type", OTHER_NAMES),
})  # fmt: skip


def _is_binary(node: SchemaNode) -> bool:
    """Whether the schema accepts every string of bytes."""
    rules = {key: rule for key, rule in node.target.says.items() if key not in WORDS}
    if rules.keys() == {"anyOf"}:
        return any(map(_is_binary, node.unions.get("anyOf", ())))
    return rules == {"type": "string", "format": "binary"}


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
