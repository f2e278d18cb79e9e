"""Bounds: what it costs to validate against a schema, estimated before a validator sees it.

The validator holds Python's lock while it works. The schema of a server or of a script could stop every thread with it.
An estimate is an upper bound, read from the keywords: a value is looked at by each schema that applies to it, once for
each way that leads there. It reads schemas as they are written, because the validator does, and before anything trusts
them; each schema once. The unit is one look at one value, about 25 ns.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from moonbox.errors import ToolDefinitionError
from moonbox.schema.tree import DEFINITIONS, Schema, SchemaNode, is_pointer, pointed, roles

MOST_WORK = 1_500_000
"""For one call of the validator: about 40 ms."""
ORDINARY = 16
"""Looks at each value that are allowed at any size: to read the value costs more."""
_DEEPEST = 100
_MOST_LOOKS = 100_000  # at one value
_MOST_PARTS = 20_000  # tables, lists and values in a schema
_MOST_BASES = 20  # schemas with identifiers
_MOST_BUILT = 10_000  # states of all patterns
_MOST_PATHS = 2_000  # below `unevaluatedProperties` and `unevaluatedItems`
_LONGEST_WAY = 200
_UNEVALUATED_TIMES = 256  # the work of its parts
_FANCY = 1_400  # for each character, with the limit on steps back of BACKTRACKS
_METASCHEMA = 1_000
_UNIQUE, _MULTIPLE, _ODD_MULTIPLE = 32, 60, 4_000
BACKTRACKS = 10_000
"""Steps back in one look at a text, for patterns that need them."""


class TooCostly(Exception):
    """Validating would take too long."""


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
        works: list[_Work] = []
        looks = 1 + sum(self._rules(schema))
        one, each = dict.fromkeys(_INSIDE.values(), 0), dict.fromkeys(_INSIDE.values(), 0)
        for keyword, part in (*self._referred(schema), *roles(schema)):
            if keyword in DEFINITIONS:
                continue
            work = self.work(part)
            works.append(work)
            if work.loops and keyword in _WHOLE:
                raise TooCostly(f"its schema refers to itself by '{keyword}'")
            if (kind := _INSIDE.get(keyword)) is None:
                looks += work.looks
            elif keyword in _EACH:
                each[kind] += work.looks
            else:
                one[kind] = max(one[kind], work.looks)
        if not schema.keys().isdisjoint(UNEVALUATED):  # the value is judged again to know what is left for them
            self._paths += looks
            looks *= _UNEVALUATED_TIMES
        looks += max(one[kind] + each[kind] for kind in one)
        way = 1 + max((work.way for work in works), default=0)
        if looks > _MOST_LOOKS:
            raise TooCostly("its schema nests too many alternatives within alternatives")
        if way > _LONGEST_WAY:
            raise TooCostly(_LONG_CHAIN)
        refers = any(not str(schema[keyword]).startswith(_DEFINED) for keyword in _REFERENCES if keyword in schema)
        return _Work(looks, way, any(work.loops for work in works), refers or any(work.refers for work in works))

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
                case "patternProperties" if isinstance(rule, dict):
                    yield sum(map(self._pattern, rule))
                case "uniqueItems":
                    yield _UNIQUE
                case "multipleOf" if isinstance(rule, int | float):
                    plain = isinstance(rule, int) and abs(rule) < 2**63
                    yield 1 if plain else _MULTIPLE if 1e-12 < abs(rule) < 1e15 else _ODD_MULTIPLE
                case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" if isinstance(rule, int):
                    yield 2 * rule.bit_length() if abs(rule) >= 2**63 else 0

    def _referred(self, schema: dict[str, Any]) -> Iterator[tuple[str, Schema]]:
        """All that its references may lead to: which one it is depends on identifiers where a schema has several."""
        for keyword in _REFERENCES:
            if not isinstance(ref := schema.get(keyword), str):
                continue
            document, _, fragment = ref.partition("#")
            if document and not self._has_identifiers:  # of another document, which is not read
                continue
            keyword = keyword if is_pointer(ref) else "$anchor"
            if fragment and not fragment.startswith("/"):
                yield from ((keyword, part) for part in self._anchors.get(fragment, ()))
            else:
                yield from ((keyword, pointed(base, f"#{fragment}")) for base in self._bases)

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
    """About how large a pattern is when its repetitions are written out, in characters.

    The compiler replaces shorthands one after the other, each time in the whole pattern, and folds the case of each
    character of a range.
    """
    sums, last = [0], 0
    folds = 600 if _FOLDS.search(pattern) else 0
    replaced: int = sum(_REPLACED.get(letter, int(letter.isalpha())) for letter in _SHORTHAND.findall(pattern))
    replaced += len(_LOOKS_AROUND.findall(pattern))
    for found in _TOKEN.finditer(pattern):
        token = found[0]
        if token == "(":
            sums.append(0)
            continue
        if token == ")" and len(sums) > 1:
            last = 1 + sums.pop()
        elif found["count"] is not None:
            last *= max(int(found["count"][:6]), int((found["most"] or "0")[:6])) - 1
        else:
            last = 1 + len(token) // 8 + 150 * len(re.findall(r"\\[pP]", token)) + 4 * token.startswith((".", "[^"))
            last += 2 * (token in "*+?|") + (token in ("\\W", "\\S", "\\D", "\\s"))
            last += 3 + folds if token.startswith("[") and not _PLAIN_CLASS.fullmatch(token) else 0
        sums[-1] += max(last, 0)
        if sums[-1] > _MOST_BUILT:
            break
    return min(sum(sums) + replaced * len(pattern) // 100, _MOST_BUILT + 1)


_INSIDE = {
    **dict.fromkeys(("additionalItems", "contains", "items", "prefixItems", "unevaluatedItems"), "array"),
    **dict.fromkeys(("additionalProperties", "patternProperties", "properties"), "object"),
    **dict.fromkeys(("propertyNames", "unevaluatedProperties"), "object"),
}
"""What a keyword judges the elements or members of."""
UNEVALUATED = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_EACH = UNEVALUATED | {"contains", "patternProperties", "propertyNames"}
"""Keywords that judge an element or member beside others."""
_WHOLE = UNEVALUATED | {
    *("$anchor", "$dynamicRef", "$recursiveRef", "contains", "dependencies", "dependentSchemas", "propertyNames"),
}
"""Keywords, and references by names, that are not compared in pieces."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_DEFINED = ("#/$defs/", "#/definitions/")
_LONG_CHAIN = "its schema has a chain of references that is too long"
_TOKEN = re.compile(
    r"\\[pP](?:\{[^}]{0,60}\})?|\\.|\[\^?(?:\\.|[^\]\\]){0,300}+\]|\{(?P<count>\d+)(?:,(?P<most>\d*))?\}|.",
    re.DOTALL | re.ASCII,
)
_SHORTHAND = re.compile(r"\\(.)", re.DOTALL)
_REPLACED = {"s": 100, "S": 100, "d": 40, "D": 40, "w": 40, "W": 40}
"""How long the compiler takes to replace a shorthand, in hundredths of a state for each character of the pattern.

That of another letter, and a look around, take one.
"""
_LOOKS_AROUND = re.compile(r"\(\?(?:<?[=!]|>)")
_FOLDS = re.compile(r"\(\?[a-zA-Z-]*i")
_PLAIN_CLASS = re.compile(r"\[\^?(?:(?!&&|--|~~)[ -Z^-~])*\]")
_NEEDS_STEPS_BACK = r"\(\?(?![:a-zA-Z-]|P?<\w+>)|\\[1-9kKG]|[*+?}]\+|\(\?>"
