"""Bounds: what it costs to validate against a schema, estimated before a validator sees it.

The validator holds Python's lock while it works. The schema of a server or of a script could stop every thread with it.
An estimate is an upper bound, read from the keywords: a value is looked at by each schema that applies to it, once for
each way that leads there. A schema that refers to itself adds its own work once, because the validator remembers what
it has found. The unit is one look at one value, about 25 ns.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moonbox.errors import ToolDefinitionError
from moonbox.schema.tree import DEFINITIONS, pointed, roles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from moonbox.schema.tree import Schema, SchemaNode

MOST_WORK = 1_500_000
"""For one call of the validator: about 40 ms."""
ORDINARY = 16
"""Looks at each value that are allowed at any size: to read the value costs more."""
_DEEPEST = 100
_MOST_LOOKS = 100_000  # at one value
_MOST_PARTS = 20_000  # tables, lists and values in a schema
_MOST_LOOPS = 50
_MOST_BASES = 20  # schemas with identifiers
_MOST_STEPS = 300_000
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


class Estimate:
    """The work of a schema and of its parts, in looks at one value. Raises TooCostly where it is above the bounds."""

    def __init__(self, root: SchemaNode) -> None:
        self._root: Schema = root.schema
        self._bases: list[Schema] = [self._root]
        self._anchors: dict[str, list[Schema]] = {}
        self._known: dict[int, int] = {}
        self._open: dict[int, None] = {}
        self._loops: dict[int, Schema] = {}
        self._patterns: dict[str, int] = {}
        self._built = self._paths = self._repeated = 0
        self._left = _MOST_STEPS
        self.reads_text = False
        """Whether its work grows with the length of texts, and not only with the number of values."""
        self.is_divisible = True
        """Whether all references lead to definitions, so that a part means the same alone."""
        self._scan()
        looks = self._work(self._root)
        waiting = list(self._loops)
        for key in waiting:  # the loop adds to it
            if len(waiting) > _MOST_LOOPS:
                raise TooCostly("its schema refers to itself in too many places")
            self._repeated += self._alone(self._loops[key])
            waiting += [other for other in self._loops if other not in waiting]
        if looks + self._repeated > _MOST_LOOKS or self._paths > _MOST_PATHS:
            raise TooCostly("its schema nests too many alternatives within alternatives")
        if self._built > _MOST_BUILT:
            raise TooCostly("its schema has patterns that are too large")

    def looks(self, schema: Schema) -> int:
        """How often a validator looks at one value, at most."""
        self._left = _MOST_STEPS
        return self._work(schema) + self._repeated

    def affords(self, schema: Schema, value: Any) -> bool:
        """Whether a value can be compared with a part of the schema at once."""
        looks = self.looks(schema)
        most = MOST_WORK // looks
        return looks <= ORDINARY or size(value, most, texts=self.reads_text) <= most

    def _scan(self) -> None:
        """Count the parts, and find those that references name other than by their places."""
        waiting, left = [self._root], _MOST_PARTS
        while waiting:
            item = waiting.pop()
            left -= 1
            if left < 0:
                raise TooCostly("its schema is too large")
            if isinstance(item, dict):
                ref = item.get("$ref", "#/$defs/")
                if not str(ref).startswith(("#/$defs/", "#/definitions/")) or item.keys() & _DYNAMIC:
                    self.is_divisible = False
                for keyword in ("$anchor", "$dynamicAnchor"):
                    if isinstance(name := item.get(keyword), str):
                        self._anchors.setdefault(name, []).append(item)
                ids = [name for keyword in ("$id", "id") if isinstance(name := item.get(keyword), str)]
                if ids and item is not self._root:
                    self._bases.append(item)
                    for name in ids:
                        self._anchors.setdefault(name.rpartition("#")[2], []).append(item)
                waiting += item.values()
            elif isinstance(item, list):
                waiting += item

    def _alone(self, schema: Schema) -> int:
        """The work of a schema that refers to itself, seen from itself."""
        known, self._known = self._known, {}
        work = self._work(schema)
        self._known = known
        return work

    def _work(self, schema: Schema) -> int:
        self._left -= 1
        if self._left < 0 or len(self._bases) > _MOST_BASES:
            raise TooCostly("its schema is too large")
        if not isinstance(schema, dict):
            return 1
        key = id(schema)
        if key in self._open:
            self._loops.setdefault(key, schema)
            return 1
        if key not in self._known:
            if len(self._open) > _LONGEST_WAY:
                raise TooCostly("its schema has a chain of references that is too long")
            self._open[key] = None
            self._known[key] = min(self._read(schema), _MOST_LOOKS + 1)
            del self._open[key]
        return self._known[key]

    def _read(self, schema: dict[str, Any]) -> int:
        same = 1 + sum(self._rules(schema))
        member = each = name = 0
        for keyword, part in roles(schema):
            work = self._work(part)
            if keyword in _OF_EACH_MEMBER:
                each += work
            elif keyword in _OF_A_MEMBER:
                member = max(member, work)
            elif keyword == "propertyNames":
                name = work
            elif keyword not in DEFINITIONS:
                same += work
        patterns = schema.get("patternProperties")
        each += sum(map(self._pattern, patterns)) if isinstance(patterns, dict) else 0
        if "unevaluatedItems" in schema or "unevaluatedProperties" in schema:
            self._paths += same
            same *= _UNEVALUATED
        return same + max(member + each, name)

    def _rules(self, schema: dict[str, Any]) -> Iterator[int]:
        """The work of what is not a schema within it."""
        for keyword, rule in schema.items():
            match keyword:
                case "$ref" | "$dynamicRef" | "$recursiveRef" if isinstance(rule, str):
                    yield sum(map(self._work, self._targets(rule)))
                    yield _METASCHEMA if "json-schema.org" in rule else 0
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

    def _targets(self, ref: str) -> Iterable[Schema]:
        """All that a reference may lead to: which one it is depends on identifiers where a schema has several."""
        fragment = ref.partition("#")[2]
        if fragment and not fragment.startswith("/"):
            return self._anchors.get(fragment, ())
        return [pointed(base, f"#{fragment}") for base in self._bases]

    def _pattern(self, pattern: str) -> int:
        """The work for each character of a text."""
        if pattern not in self._patterns:
            self.reads_text = True
            states = _states(pattern)
            self._built += 20 + states
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
    except RecursionError:
        return "its schema is nested too deeply"
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
    return min(sum(sums), _MOST_BUILT + 1)


_OF_A_MEMBER = frozenset({"additionalItems", "additionalProperties", "items", "prefixItems", "properties"})
_OF_EACH_MEMBER = frozenset({"contains", "patternProperties", "unevaluatedItems", "unevaluatedProperties"})
_DYNAMIC = frozenset({"$dynamicRef", "$recursiveRef"})
_TOKEN = re.compile(
    r"\\[pP](?:\{[^}]*\})?|\\.|\[\^?(?:\\.|[^\]\\])*\]|\{(?P<count>\d+)(?:,(?P<most>\d*))?\}|.", re.DOTALL | re.ASCII
)
_NEEDS_STEPS_BACK = r"\(\?(?![:a-zA-Z-]|P?<\w+>)|\\[1-9kKG]|[*+?}]\+|\(\?>"
