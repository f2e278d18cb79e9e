"""Learned shapes: what tools that do not fully declare it have returned so far, as schemas without a single value.

Beside them, how large the results of every tool were.

A shape is a JSON Schema of types, fields (`required` are those that every object had) and elements. Names of fields
that are redacted stay out. Shapes are bounded in size and depth, and so is how much of a result is looked at. They are
written schemas, because they are merged, kept in a file, and put into schemas that tools declare.

The keys of a map are data: they may be names or addresses of people. An object is taken for a map, of which only the
shape of the values is kept, if one of its keys is not an identifier or looks like data, if its values are
objects of one shape, or if more keys differ than agree from one object to the next.

A server with several clients serves several owners, and what one of them has learned is not shown to another.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections import Counter
from contextvars import ContextVar
from functools import reduce
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from moonbox.compact import json_in
from moonbox.files import write_private_file
from moonbox.schema.tree import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

_DEEPEST = 6
_MOST_FIELDS = 60
_MOST_ELEMENTS = 50  # looked at in one list
_MOST_NODES = 2_000  # looked at in one result
_MOST_SHAPES = 2_000
_LONGEST_NAME = 40
_MOST_DIGITS = 3  # in one name
_MOST_ALIKE = 4  # names that differ only in their digits
_SAME_OBJECTS = 3  # so many values of one object, all of them objects of one shape
_LONGEST_JSON = 1_000_000  # characters of JSON in a text
_LARGEST = 16_000  # characters of one shape as JSON
_FIELD = r"[A-Za-z_$][A-Za-z0-9_$]*(-[A-Za-z0-9_$]+)*"
_MANY, _SELDOM = 32, 16  # after _MANY results of a tool, the shape of every _SELDOM-th is read
_WORTH_SAVING = (3, 8)  # results of one tool

LOCAL = "local"
"""The owner of what is learned where there is one client, or where clients need not authenticate."""
OWNER: ContextVar[str] = ContextVar("moonbox_shapes_owner", default=LOCAL)
"""The client for which tools are called now."""


class ResultSize(Struct, frozen=True):
    """How large the results of one tool were."""

    results: int = 0
    """How many were measured."""
    bytes: int = 0
    """What they came to together, as they went to the scripts."""
    scripted: bool = False
    """Whether a script has asked for one."""

    @property
    def mean(self) -> float:
        return self.bytes / self.results if self.results else 0.0


_Count = Annotated[int, Meta(gt=0)]


class _File(Struct):
    """What is kept in a file."""

    version: Literal[2]
    shapes: list[tuple[str, str, dict[str, Any]]] = []
    sizes: list[tuple[str, _Count, Annotated[int, Meta(ge=0)], bool]] = []
    uses: list[tuple[str, str, _Count]] = []


class LearnedShapes:
    """The shapes of one toolbox, by owner and by the paths of its tools. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shapes: dict[tuple[str, str], dict[str, Any]] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._sizes: dict[str, ResultSize] = {}
        self._path: Path | None = None
        self._revision = 0

    @property
    def state(self) -> tuple[str, int]:
        """Equal to an earlier one if the current owner has learned nothing since."""
        return OWNER.get(), self._revision

    def schema(self, path: str) -> dict[str, Any] | None:
        """The shape of what a tool has returned to the current owner; None where it has returned nothing."""
        return self._shapes.get((OWNER.get(), path))

    def is_due(self, path: str) -> bool:
        """Count a result; whether to learn from it: from the first ones, and later now and again."""
        with self._lock:
            if len(self._counts) > 10 * _MOST_SHAPES:
                self._counts.clear()
            key = OWNER.get(), path
            self._counts[key] += 1
            return self._counts[key] <= _MANY or self._counts[key] % _SELDOM == 0

    def learn(self, path: str, result: Any, *, hides: Callable[[str], bool] | None = None) -> None:
        """Take in a result. `hides` says which fields must not be remembered, not even by name."""
        seen = shape_of(result, hides=hides)
        key = OWNER.get(), path
        with self._lock:
            known = self._shapes.get(key)
            merged = seen if known is None else merge(known, seen)
            if merged == known or len(json.dumps(merged)) > _LARGEST:
                return
            if known is None and len(self._shapes) >= _MOST_SHAPES:
                del self._shapes[next(iter(self._shapes))]
            self._shapes[key] = merged
            self._revision += 1
            self._save()

    def sizes(self) -> dict[str, ResultSize]:
        """How large the results of each tool were, of all owners."""
        with self._lock:
            return dict(self._sizes)

    def uses(self) -> dict[str, int]:
        """How many results each tool has given to the current owner."""
        current = OWNER.get()
        with self._lock:
            return {path: count for (owner, path), count in self._counts.items() if owner == current}

    def measure(self, path: str, size: int, *, scripted: bool) -> None:
        """Take in how large a result is, and whether a script asked for it."""
        with self._lock:
            known = self._sizes.get(path, _NO_SIZE)
            if known is _NO_SIZE and len(self._sizes) >= _MOST_SHAPES:
                return
            self._sizes[path] = ResultSize(known.results + 1, known.bytes + size, known.scripted or scripted)
            if known.results + 1 in _WORTH_SAVING:
                self._save()

    def snapshot(self) -> dict[str, dict[str, Any]]:
        """All shapes of the current owner as they are now, by the paths of the tools."""
        current = OWNER.get()
        with self._lock:
            return {path: shape for (owner, path), shape in self._shapes.items() if owner == current}

    def keep_in(self, path: str | Path) -> None:
        """Read what was kept in that file, and keep there what is learned from now on."""
        from pathlib import Path  # slow to load

        self._path = Path(path)
        try:
            kept = msgspec.json.decode(self._path.read_bytes(), type=_File)
        except (OSError, ValueError, msgspec.MsgspecError):  # the file is not trusted
            return
        with self._lock:
            for owner, name, shape in kept.shapes[:_MOST_SHAPES]:
                if len(json.dumps(shape)) <= _LARGEST:
                    self._shapes.setdefault((owner, name), shape)
            for name, results, total, scripted in kept.sizes[:_MOST_SHAPES]:
                self._sizes.setdefault(name, ResultSize(results, total, scripted))
            for owner, name, count in kept.uses[:_MOST_SHAPES]:
                self._counts[owner, name] += count
            self._revision += 1

    def _save(self) -> None:
        """Write the file anew, for its user alone. What is learned is lost at the end where that fails."""
        if self._path is None:
            return
        kept = _File(
            2,
            [(*key, shape) for key, shape in self._shapes.items()],
            [(name, size.results, size.bytes, size.scripted) for name, size in self._sizes.items()],
            [(*key, count) for key, count in self._counts.most_common(_MOST_SHAPES)],
        )
        with contextlib.suppress(OSError):
            write_private_file(self._path, msgspec.json.format(msgspec.json.encode(kept), indent=1))


def shape_of(value: Any, *, hides: Callable[[str], bool] | None = None) -> dict[str, Any]:
    """The shape of one value."""
    return _ShapeReader(hides).shape(value, 0)


class _ShapeReader:
    def __init__(self, hides: Callable[[str], bool] | None) -> None:
        self.hides = hides
        self.nodes = 0

    def shape(self, value: Any, depth: int) -> dict[str, Any]:
        self.nodes += 1
        kind = kind_of(value)
        if depth >= _DEEPEST or self.nodes > _MOST_NODES:
            return {"type": kind}
        if kind == "array":
            return self._list(value, depth)
        if kind == "string" and depth == 0 and isinstance(value, str):
            return self._text(value)
        return self._table(value, depth) if kind == "object" else {"type": kind}

    def _text(self, value: str) -> dict[str, Any]:
        """A result that is text: the shape of the JSON in it, if that is what it holds."""
        data = json_in(value) if len(value) <= _LONGEST_JSON else None
        if data is None:
            return {"type": "string"}
        return {"type": "string", "contentMediaType": "application/json", "contentSchema": self.shape(data, 1)}

    def _list(self, value: list[Any], depth: int) -> dict[str, Any]:
        seen = [self.shape(item, depth + 1) for item in value[:_MOST_ELEMENTS]]
        return {"type": "array", "items": reduce(merge, seen)} if seen else {"type": "array"}

    def _table(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        if not _are_fields(value):
            seen = [item for name, item in islice(value.items(), _MOST_ELEMENTS) if not self._is_hidden(name)]
            return _map_of([self.shape(item, depth + 1) for item in seen])
        shown = [name for name in value if not self._is_hidden(name)]
        properties = {name: self.shape(value[name], depth + 1) for name in shown}
        if len(properties) >= _SAME_OBJECTS:
            first, *others = properties.values()
            if first["type"] == "object" and all(other == first for other in others):
                return _map_of([first])
        shape: dict[str, Any] = {"type": "object", "properties": properties, "required": sorted(shown)}
        if len(shown) < len(value):
            shape["additionalProperties"] = True
        return shape

    def _is_hidden(self, name: Any) -> bool:
        return self.hides is not None and isinstance(name, str) and self.hides(name)


def merge(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """The shape of values that have one of two shapes."""
    if left == right:
        return left
    kinds = list(dict.fromkeys([*_kinds(left), *_kinds(right)]))
    if "number" in kinds and "integer" in kinds:
        kinds.remove("integer")
    merged: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else sorted(kinds)}
    if all("contentSchema" in shape for shape in (left, right)):
        merged["contentMediaType"] = "application/json"
        merged["contentSchema"] = merge(left["contentSchema"], right["contentSchema"])
    if "object" in kinds:
        merged.update(_merged_tables(left, right))
    if items := [shape["items"] for shape in (left, right) if "items" in shape]:
        merged["items"] = reduce(merge, items)
    return merged


def _merged_tables(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    tables = [shape for shape in (left, right) if "object" in _kinds(shape)]
    if any("properties" not in shape for shape in tables):
        return _merged_map(tables)
    if len(tables) == 1:
        return {key: tables[0][key] for key in ("properties", "required", "additionalProperties") if key in tables[0]}
    properties = dict(tables[0]["properties"])
    known, seen = properties.keys(), tables[1]["properties"].keys()
    if known and seen and len(known ^ seen) > len(known & seen):
        return _merged_map(tables)
    for name, shape in tables[1]["properties"].items():
        properties[name] = merge(properties[name], shape) if name in properties else shape
    if len(properties) > _MOST_FIELDS:
        return _merged_map(tables)
    required = set(tables[0].get("required", ())) & set(tables[1].get("required", ()))
    merged: dict[str, Any] = {"properties": properties, "required": sorted(required)}
    if any(shape.get("additionalProperties") for shape in tables):
        merged["additionalProperties"] = True
    return merged


def _merged_map(tables: list[dict[str, Any]]) -> dict[str, Any]:
    """What tables with different keys have in common: the shape of their values."""
    values: list[dict[str, Any]] = []
    for shape in tables:
        rest = shape.get("additionalProperties")
        values += [*shape.get("properties", {}).values(), *([rest] if isinstance(rest, dict) else [])]
    return {key: part for key, part in _map_of(values).items() if key != "type"}


def is_vague(schema: Any) -> bool:
    """Whether a result schema leaves out what can be learned: fields of objects, elements of lists, JSON in text."""
    return _completed(schema, None) is None


def completed(declared: Any, shape: dict[str, Any] | None) -> Any:
    """The declared schema of a result, with learned parts where it is vague."""
    if shape is None:
        return declared
    return shape if declared is None else _completed(declared, shape)


def _completed(declared: Any, shape: dict[str, Any] | None) -> Any:
    """The declared schema with learned parts where it is vague; None where it is, and nothing was learned."""
    if not isinstance(declared, dict) or "$ref" in declared:
        return declared
    kind = declared.get("type")
    if kind == "object" and not declared.get("properties") and not _says_much(declared.get("additionalProperties")):
        return shape if shape is None or "object" in _kinds(shape) else declared
    if kind == "string" and declared.keys() <= {"type", "title", "description"}:
        return shape if shape is None or "contentMediaType" in shape else declared
    for keyword in ("items", "additionalProperties"):
        if isinstance(declared.get(keyword), dict):
            inner = None if shape is None else shape.get(keyword, {})
            part = _completed(declared[keyword], inner)
            if part is not declared[keyword]:
                return None if part is None else {**declared, keyword: part}
    return _completed_fields(declared, shape)


def _completed_fields(declared: dict[str, Any], shape: dict[str, Any] | None) -> Any:
    fields = declared.get("properties")
    if not isinstance(fields, dict):
        return declared
    known = None if shape is None else shape.get("properties", {})
    completed = {
        name: _completed(part, None if known is None else known.get(name, {})) for name, part in fields.items()
    }
    if None in completed.values():
        return None
    is_same = all(completed[name] is part for name, part in fields.items())
    return declared if is_same else {**declared, "properties": completed}


def _says_much(rest: Any) -> bool:
    """Whether the values of a map are described, beyond being of a plain type."""
    return isinstance(rest, dict) and not rest.keys().isdisjoint(_TELLING)


def _kinds(shape: dict[str, Any]) -> list[str]:
    kind = shape.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)


def _are_fields(names: Collection[Any]) -> bool:
    """Whether the keys of an object are names of fields rather than data."""
    if len(names) > _MOST_FIELDS or not all(type(name) is str and re.fullmatch(_FIELD, name) for name in names):
        return False
    alike = Counter(re.sub(r"\d+", "0", name) for name in names)
    is_short = all(len(name) <= _LONGEST_NAME and sum(map(str.isdigit, name)) <= _MOST_DIGITS for name in names)
    return is_short and max(alike.values(), default=0) <= _MOST_ALIKE


def _map_of(values: list[dict[str, Any]]) -> dict[str, Any]:
    """The shape of a map: nothing of its keys, and what its values have in common where they are objects or lists."""
    inner = reduce(merge, values) if values else {}
    return {"type": "object", "additionalProperties": inner} if _kinds(inner) else _MAP


_TELLING = frozenset({"$ref", "additionalProperties", "anyOf", "enum", "items", "oneOf", "properties"})
_NO_SIZE = ResultSize()
_MAP: dict[str, Any] = {"type": "object"}
