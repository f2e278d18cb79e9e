"""Bounds: what it costs to validate against a schema, estimated before a validator sees it.

The validator holds Python's lock while it works. The schema of a server or of a script could stop every thread with it.
An estimate is an upper bound, read from the keywords: a value is looked at by each schema that applies to it, once for
each way that leads there. The estimate itself reads each schema once. The unit is one look at one value, about 25 ns.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from moonbox.errors import ToolDefinitionError
from moonbox.schema.tree import Schema, SchemaNode, pointed, roles

MOST_WORK = 1_500_000
"""For one call of the validator: about 40 ms."""
ORDINARY = 16
"""Looks at each value that are allowed at any size: to read the value costs more."""
_DEEPEST = 100
_MOST_LOOKS = 100_000  # at one value
_MOST_PARTS = 20_000  # tables, lists and values in a schema
_MOST_BASES = 20  # schemas with identifiers
_MOST_BUILT = 20_000  # states of all patterns
_MOST_PATHS = 2_000  # below `unevaluatedProperties` and `unevaluatedItems`
_LONGEST_WAY = 200
_UNEVALUATED = 256  # times the work of its parts
_FANCY = 1_400  # for each character, with the limit on steps back of BACKTRACKS
_METASCHEMA = 1_000
_UNIQUE, _MULTIPLE, _ODD_MULTIPLE = 32, 60, 4_000
BACKTRACKS = 10_000
"""Steps back in one look at a text, for patterns that need them."""


class TooCostly(Exception):
    """Validating would take too long."""


class _SchemaParts(NamedTuple):
    """What a validator does with a schema."""

    rules: int
    """Looks that are not those of a schema within it."""
    times: int
    """How often it judges the value to know what is left for `unevaluatedItems` and `unevaluatedProperties`."""
    same: list[Schema]
    """What judges the same value."""
    inside: tuple[_Inside, _Inside]
    """What judges the elements of an array, and the members of an object."""


class _Inside(NamedTuple):
    one: dict[Any, Schema]
    """What judges the element or member of a name; under None, all others."""
    each: list[Schema]
    """What judges all of them."""


class _Work(NamedTuple):
    """The work of a schema."""

    looks: int
    """At any one value, at most."""
    way: int = 0
    """The most steps from schema to schema."""
    loops: bool = False
    """Whether it leads to a schema that refers to itself: then a value is compared with it only in pieces."""
    refers: bool = False
    """Whether it refers to what is no definition of the whole schema: alone it would mean something else."""


_ONE = _Work(1)
_AGAIN = _Work(1, loops=True, refers=True)


class Estimate:
    """The work of a schema and of its parts. Raises TooCostly where it is above the bounds.

    A validator may try all ways through a schema that refers to itself, so that no estimate of it is worth much.
    """

    def __init__(self, root: SchemaNode) -> None:
        self._root: Schema = root.schema
        self._bases: list[Schema] = [self._root]
        self._anchors: dict[str, list[Schema]] = {}
        self._known: dict[int, _Work] = {}
        self._patterns: dict[str, int] = {}
        self._built = self._paths = 0
        self._has_identifiers = False
        self.reads_text = False
        """Whether its work grows with the length of texts, and not only with the number of values."""
        self._scan()
        try:
            self.whole = self.work(self._root)
        except RecursionError:
            raise TooCostly(_LONG_CHAIN) from None
        if self._paths > _MOST_PATHS:
            raise TooCostly("its schema nests too many alternatives within alternatives")

    @property
    def is_ordinary(self) -> bool:
        """Whether values of any size can be compared with the whole at once."""
        return self.whole.looks <= ORDINARY and not self.whole.loops

    def affords(self, work: _Work, value: Any) -> bool:
        """Whether a value can be compared at once with a part of the schema that takes this work."""
        most = MOST_WORK // work.looks
        return not work.loops and (work.looks <= ORDINARY or size(value, most, texts=self.reads_text) <= most)

    def _scan(self) -> None:
        """Count the parts, and find those that references name other than by their places."""
        waiting, left = [self._root], _MOST_PARTS
        while waiting:
            item = waiting.pop()
            left -= 1
            if left < 0 or len(self._bases) > _MOST_BASES:
                raise TooCostly("its schema is too large")
            if isinstance(item, dict):
                for keyword in ("$anchor", "$dynamicAnchor"):
                    if isinstance(name := item.get(keyword), str):
                        self._anchors.setdefault(name, []).append(item)
                ids = [name for keyword in ("$id", "id") if isinstance(name := item.get(keyword), str)]
                self._has_identifiers |= bool(ids)
                if ids and item is not self._root:
                    self._bases.append(item)
                    for name in ids:
                        self._anchors.setdefault(name.rpartition("#")[2], []).append(item)
                waiting += item.values()
            elif isinstance(item, list):
                waiting += item

    def work(self, schema: Schema) -> _Work:
        """The work of a part of the schema."""
        if not isinstance(schema, dict):
            return _ONE
        if id(schema) not in self._known:
            self._known[id(schema)] = _AGAIN  # until it is known: for what leads back to it
            self._known[id(schema)] = self.work_of(schema)
        return self._known[id(schema)]

    def work_of(self, schema: dict[str, Any]) -> _Work:
        """The work of keywords that are no part of the schema, but whose rules are."""
        whole = next((word for word, part in roles(schema) if word in _WHOLE and self.work(part).loops), None)
        if whole is not None:
            raise TooCostly(f"its schema refers to itself below '{whole}'")
        parts = self._read(schema)
        works = [self.work(part) for part in parts.same]
        looks, most = parts.rules + sum(part.looks for part in works), 0
        if parts.times > 1:
            self._paths += looks
        for one, each in parts.inside:
            ones, others = (list(map(self.work, inside)) for inside in (one.values(), each))
            most = max(most, max((part.looks for part in ones), default=0) + sum(part.looks for part in others))
            works += [*ones, *others]
        refers = not str(schema.get("$ref", _DEFINED[0])).startswith(_DEFINED) or any(part.refers for part in works)
        refers |= not schema.keys().isdisjoint(_REFERENCES[1:])
        way = 1 + max((part.way for part in works), default=0)
        work = _Work(parts.times * looks + most, way, any(part.loops for part in works), refers)
        if work.looks > _MOST_LOOKS:
            raise TooCostly("its schema nests too many alternatives within alternatives")
        if way > _LONGEST_WAY:
            raise TooCostly(_LONG_CHAIN)
        return work

    def _read(self, schema: dict[str, Any]) -> _SchemaParts:
        same, elements, members = list(self._referred(schema)), _Inside({}, []), _Inside({}, [])
        rules = 1 + sum(self._rules(schema))
        for keyword, part in roles(schema):
            match keyword:
                case "prefixItems" | "items" if isinstance(schema[keyword], list):
                    elements.one[len(elements.one)] = part
                case "items" | "additionalItems":
                    elements.one[None] = part
                case "additionalProperties":
                    members.one[None] = part
                case "contains" | "unevaluatedItems":
                    elements.each.append(part)
                case "patternProperties" | "propertyNames" | "unevaluatedProperties":
                    members.each.append(part)
                case "properties" | "$defs" | "definitions":
                    pass
                case _:
                    same.append(part)
        named = schema.get("properties")
        members.one.update(named if isinstance(named, dict) else {})
        patterns = schema.get("patternProperties")
        rules += sum(map(self._pattern, patterns)) if isinstance(patterns, dict) else 0
        times = 1 if schema.keys().isdisjoint(("unevaluatedItems", "unevaluatedProperties")) else _UNEVALUATED
        return _SchemaParts(rules, times, same, (elements, members))

    def _rules(self, schema: dict[str, Any]) -> Iterator[int]:
        """The work of what is not a schema within it."""
        for keyword, rule in schema.items():
            match keyword:
                case "$ref" | "$dynamicRef" | "$recursiveRef" if isinstance(rule, str) and "json-schema.org" in rule:
                    yield _METASCHEMA
                case "pattern" if isinstance(rule, str):
                    yield self._pattern(rule)
                case "enum" | "const":
                    yield size(rule, _MOST_PARTS, texts=False) // 8
                case "required" if isinstance(rule, list):
                    yield len(rule)
                case "dependentRequired" | "dependencies" if isinstance(rule, dict):
                    yield len(rule) + sum(len(names) for names in rule.values() if isinstance(names, list))
                case "uniqueItems":
                    yield _UNIQUE
                case "multipleOf" if isinstance(rule, int | float):
                    plain = isinstance(rule, int) and abs(rule) < 2**63
                    yield 1 if plain else _MULTIPLE if 1e-12 < abs(rule) < 1e15 else _ODD_MULTIPLE
                case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" if isinstance(rule, int):
                    yield 2 * rule.bit_length() if abs(rule) >= 2**63 else 0

    def _referred(self, schema: dict[str, Any]) -> Iterator[Schema]:
        """All that its references may lead to: which one it is depends on identifiers where a schema has several."""
        for keyword in _REFERENCES:
            if not isinstance(ref := schema.get(keyword), str):
                continue
            document, _, fragment = ref.partition("#")
            if document and not self._has_identifiers:  # of another document, which is not read
                continue
            if fragment and not fragment.startswith("/"):
                yield from self._anchors.get(fragment, ())
            else:
                yield from (pointed(base, f"#{fragment}") for base in self._bases)

    def _pattern(self, pattern: str) -> int:
        """The work for each character of a text."""
        if pattern not in self._patterns:
            self.reads_text = True
            states = _states(pattern)
            self._built += 20 + states
            if self._built > _MOST_BUILT:
                raise TooCostly("its schema has patterns that are too large")
            self._patterns[pattern] = 1 + states // 16 + (_FANCY if re.search(_NEEDS_STEPS_BACK, pattern) else 0)
        return self._patterns[pattern]


def size(value: Any, most: int, *, texts: bool) -> int:
    """How many values are within a value, and with `texts` also the characters of its texts; counted up to `most`."""
    count, waiting = 0, [value]
    while waiting and count <= most:
        item = waiting.pop()
        count += 1
        kind = type(item)
        if kind is dict:
            waiting.extend(item.values())
            count += sum(len(name) for name in item if isinstance(name, str)) if texts else 0
        elif kind is list:
            waiting.extend(item)
        elif kind is str or kind is bytes:
            count += len(item) if texts else 0
        elif kind is int and not -(2**63) < item < 2**63:
            count += 2 * item.bit_length()
        elif kind is float and abs(item) > 1e18:
            count += 100
    return count


def refusal(root: SchemaNode) -> str | None:
    """Why a schema is not used, in words that follow its name; None if it is within the bounds."""
    try:
        Estimate(root)
    except TooCostly as problem:
        return str(problem)
    return None


def own_copy(name: str, what: str, schema: Any) -> dict[str, Any] | None:
    """A schema that is the tool's own, so that its giver may change theirs; None for none."""
    if not schema:
        return None
    if not isinstance(schema, Mapping):
        raise ToolDefinitionError(f"tool {name!r}: {what} must be a JSON Schema (a dict), not {type(schema).__name__}")
    level: list[Any] = [schema]
    for _ in range(_DEEPEST):  # schemas come from servers too, and everything that reads them recurses
        nested = [part for item in level for part in (item.values() if isinstance(item, Mapping) else item)]
        level = [part for part in nested if isinstance(part, Mapping | list)]
    if level:
        raise ToolDefinitionError(f"tool {name!r}: {what} is nested deeper than {_DEEPEST} levels")
    return copy.deepcopy(dict(schema))


def _states(pattern: str) -> int:
    """About how large a pattern is when its repetitions are written out, in characters."""
    sums, last = [0], 0
    for found in _TOKEN.finditer(pattern):
        token = found[0]
        if token == "(":
            sums.append(0)
            continue
        if token == ")" and len(sums) > 1:
            last = sums.pop()
        elif found["count"] is not None:
            last *= max(int(found["count"][:6]), int((found["most"] or "0")[:6])) - 1
        else:
            last = 1 + len(token) // 8 + 250 * len(re.findall(r"\\[pP]", token)) + 4 * token.startswith((".", "[^"))
        sums[-1] += max(last, 0)
        if sums[-1] > _MOST_BUILT:
            break
    return min(sum(sums), _MOST_BUILT + 1)


_WHOLE = frozenset({
    *("contains", "dependencies", "dependentSchemas", "else", "if", "not", "propertyNames", "then"),
    *("unevaluatedItems", "unevaluatedProperties"),
})  # fmt: skip
"""Keywords that are not compared in pieces."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_DEFINED = ("#/$defs/", "#/definitions/")
_LONG_CHAIN = "its schema has a chain of references that is too long"
_TOKEN = re.compile(
    r"\\[pP](?:\{[^}]{0,60}\})?|\\.|\[\^?(?:\\.|[^\]\\]){0,300}+\]|\{(?P<count>\d+)(?:,(?P<most>\d*))?\}|.",
    re.DOTALL | re.ASCII,
)
_NEEDS_STEPS_BACK = r"\(\?(?![:a-zA-Z-]|P?<\w+>)|\\[1-9kKG]|[*+?}]\+|\(\?>"
