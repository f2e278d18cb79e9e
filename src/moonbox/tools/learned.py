"""Learned shapes: what tools without a result schema have returned so far, as schemas without a single value.

Beside them, how large the results of every tool were.

A shape is a JSON Schema of types, fields (`required` are those that every object had) and elements. Names of fields
that are redacted stay out. Shapes are bounded in size and depth, and so is how much of a result is looked at. Objects
that are used as maps (many different keys) become `{"type": "object"}` without fields.
"""

from __future__ import annotations

import json
import re
import threading
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moonbox.tools.document import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ["LearnedShapes", "ResultSize", "merge", "shape_of"]

_DEEPEST = 6
_MOST_FIELDS = 60
_MOST_ELEMENTS = 50  # looked at in one list
_MOST_NODES = 2_000  # looked at in one result
_MOST_TOOLS = 2_000
_LONGEST_NAME = 64
_LARGEST = 16_000  # characters of one shape as JSON
_FIELD = r"[A-Za-z_$@][\w$@. -]*"
_FORMAT = 1
_MANY, _SELDOM = 32, 16  # after _MANY results of a tool, the shape of every _SELDOM-th is read
_WORTH_SAVING = (3, 8)  # results of one tool


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


class LearnedShapes:
    """The shapes of one toolbox, by the paths of its tools. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shapes: dict[str, dict[str, Any]] = {}
        self._counts: dict[str, int] = {}
        self._sizes: dict[str, ResultSize] = {}
        self._path: Path | None = None
        self.revision = 0
        """Grows when a shape changes."""

    def schema(self, path: str) -> dict[str, Any] | None:
        """The shape of a tool's results; None where none was seen."""
        return self._shapes.get(path)

    def is_due(self, path: str) -> bool:
        """Count a result; whether to learn from it: from the first ones, and later now and again."""
        count = self._counts[path] = self._counts.get(path, 0) + 1
        return count <= _MANY or count % _SELDOM == 0

    def learn(self, path: str, result: Any, *, hides: Callable[[str], bool] | None = None) -> None:
        """Take in a result. `hides` says which fields must not be remembered, not even by name."""
        seen = shape_of(result, hides=hides)
        with self._lock:
            known = self._shapes.get(path)
            if known is None and len(self._shapes) >= _MOST_TOOLS:
                return
            merged = seen if known is None else merge(known, seen)
            if merged == known or len(json.dumps(merged)) > _LARGEST:
                return
            self._shapes[path] = merged
            self.revision += 1
            self._save()

    def size(self, path: str) -> ResultSize:
        """How large a tool's results were."""
        return self._sizes.get(path, _NO_SIZE)

    def sizes(self) -> dict[str, ResultSize]:
        """All sizes as they are now."""
        with self._lock:
            return dict(self._sizes)

    def measure(self, path: str, size: int, *, scripted: bool) -> None:
        """Take in how large a result is, and whether a script asked for it."""
        with self._lock:
            known = self._sizes.get(path, _NO_SIZE)
            if known is _NO_SIZE and len(self._sizes) >= _MOST_TOOLS:
                return
            self._sizes[path] = ResultSize(known.results + 1, known.bytes + size, known.scripted or scripted)
            if known.results + 1 in _WORTH_SAVING:
                self._save()

    def snapshot(self) -> dict[str, dict[str, Any]]:
        """All shapes as they are now."""
        with self._lock:
            return dict(self._shapes)

    def forget(self, path: str | None = None) -> None:
        """Forget one tool's shape, or all."""
        with self._lock:
            if path is None:
                self._shapes.clear()
                self._sizes.clear()
            else:
                self._shapes.pop(path, None)
                self._sizes.pop(path, None)
            self.revision += 1
            self._save()

    def add(self, shapes: Mapping[str, Any]) -> None:
        """Take over the shapes of an earlier time, of tools that have none yet."""
        with self._lock:
            for name, shape in list(shapes.items())[:_MOST_TOOLS]:
                if isinstance(shape, dict) and len(json.dumps(shape)) <= _LARGEST:
                    self._shapes.setdefault(name, shape)
            self.revision += 1

    def to_dict(self) -> dict[str, Any]:
        sizes = {name: [size.results, size.bytes, size.scripted] for name, size in self._sizes.items()}
        return {"version": _FORMAT, "shapes": dict(self._shapes), "sizes": sizes}

    def keep_in(self, path: str | Path) -> None:
        """Read what was kept in that file, and keep there what is learned from now on."""
        from pathlib import Path  # slow to load

        self._path = Path(path)
        try:
            data = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        shapes = data.get("shapes") if isinstance(data, dict) and data.get("version") == _FORMAT else None
        if isinstance(shapes, dict):
            self.add(shapes)
            self._add_sizes(data.get("sizes"))

    def _add_sizes(self, sizes: Any) -> None:
        """Those of a file, which is not trusted."""
        for name, size in list(sizes.items())[:_MOST_TOOLS] if isinstance(sizes, dict) else ():
            match size:
                case [int(results), int(total), bool(scripted)] if results > 0 and total >= 0:
                    self._sizes.setdefault(name, ResultSize(results, total, scripted))

    def _save(self) -> None:
        """Write the file anew; a file that cannot be written costs nothing but its memory."""
        if self._path is None:
            return
        beside = self._path.with_name(self._path.name + ".new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(json.dumps(self.to_dict(), indent=1, sort_keys=True), encoding="utf-8")
            beside.replace(self._path)
        except OSError:
            return


def shape_of(value: Any, *, hides: Callable[[str], bool] | None = None) -> dict[str, Any]:
    """The shape of one value."""
    return _Reader(hides).shape(value, 0)


class _Reader:
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
        return self._table(value, depth) if kind == "object" else {"type": kind}

    def _list(self, value: list[Any], depth: int) -> dict[str, Any]:
        items: dict[str, Any] | None = None
        for item in value[:_MOST_ELEMENTS]:
            seen = self.shape(item, depth + 1)
            items = seen if items is None or items == seen else merge(items, seen)
        return {"type": "array"} if items is None else {"type": "array", "items": items}

    def _table(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        names = list(value)
        if len(names) > _MOST_FIELDS or not all(_is_field(name) for name in names):
            return _MAP
        shown = [name for name in names if self.hides is None or not self.hides(name)]
        hidden = len(shown) < len(names)
        shape: dict[str, Any] = {
            "type": "object",
            "properties": {name: self.shape(value[name], depth + 1) for name in shown},
            "required": sorted(shown),
        }
        if hidden:
            shape["additionalProperties"] = True
        return shape


def merge(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """The shape of what has either shape."""
    if left == right:
        return left
    kinds = list(dict.fromkeys([*_kinds(left), *_kinds(right)]))
    if "number" in kinds and "integer" in kinds:
        kinds.remove("integer")
    merged: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else sorted(kinds)}
    if "object" in kinds:
        merged.update(_merged_tables(left, right))
    if "array" in kinds:
        items = [shape["items"] for shape in (left, right) if "items" in shape]
        if items:
            merged["items"] = items[0] if len(items) == 1 else merge(*items)
    return merged


def _merged_tables(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    tables = [shape for shape in (left, right) if "object" in _kinds(shape)]
    if any("properties" not in shape for shape in tables):
        return {}
    if len(tables) == 1:
        return {key: tables[0][key] for key in ("properties", "required", "additionalProperties") if key in tables[0]}
    properties = dict(tables[0]["properties"])
    for name, shape in tables[1]["properties"].items():
        properties[name] = merge(properties[name], shape) if name in properties else shape
    if len(properties) > _MOST_FIELDS:
        return {}
    required = set(tables[0].get("required", ())) & set(tables[1].get("required", ()))
    merged: dict[str, Any] = {"properties": properties, "required": sorted(required)}
    if any(shape.get("additionalProperties") for shape in tables):
        merged["additionalProperties"] = True
    return merged


def _kinds(shape: dict[str, Any]) -> list[str]:
    kind = shape.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)


def _is_field(name: Any) -> bool:
    """Whether a key is the name of a field rather than data."""
    return isinstance(name, str) and len(name) <= _LONGEST_NAME and re.fullmatch(_FIELD, name) is not None


_NO_SIZE = ResultSize()
_MAP: dict[str, Any] = {"type": "object"}
