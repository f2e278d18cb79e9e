"""Closing: a schema in which a key that no part of it names is an error, at every depth.

A schema that names properties and does not speak of others means no others: `additionalProperties: false` is added.
It stays open where it says so (`additionalProperties`, `unevaluatedProperties`), and where it names no property.
Closing works on schemas as they are written, because it writes another one, for the validator.

Several parts may speak of one object (`allOf`, `if`, a union beside properties): their names count together, as one
rule for `propertyNames`, and no part is closed by itself. A definition that is used both alone and as such a part
therefore gets a copy that is not closed. Conditions (`if`, `not`, `contains`) mean the same as before at every depth.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from moonbox.schema.tree import DEFINITIONS, ROLES, UNIONS, Schema, is_pointer, pointed, roles, with_parts

_Mode = Literal["whole", "part", "condition"]
"""The only schema of a value; one of several for the same value; a condition, which keeps its meaning."""

_MOST_STEPS = 100_000  # schemas that are closed, and names that are gathered for it
_COMBINED = (*UNIONS, "allOf")
_BY_NAME = frozenset({"patternProperties", "properties"})
_DEPENDENT = ("dependencies", "dependentSchemas")
_ABOUT_KEYS = frozenset({*_BY_NAME, *_DEPENDENT, "additionalProperties", "else", "if", "then", "unevaluatedProperties"})
_OTHER_RULES = _ABOUT_KEYS - _BY_NAME | {*_COMBINED, "$ref"}
_UNREADABLE = frozenset({"$dynamicRef", "$recursiveRef", "const", "enum"})
_HEAD = frozenset({*DEFINITIONS, "$id", "$schema"})
_OLD_DRAFTS = ("draft-03", "draft-04", "draft-06", "draft-07")


def close(parameters: dict[str, Any]) -> dict[str, Any]:
    """The schema of a tool's parameters, closed at every depth; only at its top where that cannot be done."""
    try:
        closed = _Closer(parameters).close()
    except (_Unclosable, RecursionError, TypeError, AttributeError):
        closed = parameters  # the latter two: not a schema, which the validator reports
    if "properties" in closed and not closed.keys() & (_OTHER_RULES | {"$dynamicRef", "patternProperties"}):
        return {**closed, "additionalProperties": False}  # a tool that names no parameter takes none
    return closed


class _Unclosable(Exception):
    """A schema that is too large, or whose references cannot be followed."""


class _KnownKeys(NamedTuple):
    """The keys that the parts of a schema know; as dicts, which keep their order."""

    declared: dict[str, None]
    """Described by a part; a schema that describes none is not closed."""
    mentioned: dict[str, None]
    """Required, or part of a condition."""
    patterns: dict[str, None]


class _Closer:
    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        declared = root.get("$schema")
        self.refs_stand_alone = isinstance(declared, str) and any(draft in declared for draft in _OLD_DRAFTS)
        self.left = _MOST_STEPS
        self.copies: dict[tuple[str, _Mode], str] = {}
        self.waiting: list[tuple[str, str, _Mode]] = []

    def close(self) -> dict[str, Any]:
        closed: dict[str, Any] = self.walk(self.root, "whole")
        copied: dict[str, Any] = {}
        while self.waiting:
            name, ref, mode = self.waiting.pop()
            target = pointed(self.root, ref)
            if target is self.root:
                target = {keyword: value for keyword, value in self.root.items() if keyword not in _HEAD}
            copied[name] = self.walk(target, mode)
        return {**closed, "$defs": {**closed.get("$defs", {}), **copied}} if copied else closed

    def walk(self, schema: Schema, mode: _Mode) -> Schema:
        if not isinstance(schema, dict):
            return schema
        self.spend(1)
        if "$id" in schema and schema is not self.root:
            raise _Unclosable
        same: _Mode = "part" if mode == "whole" and not self.delegates(schema) else mode
        inside: _Mode = "condition" if mode == "condition" else "whole"
        modes: dict[str, _Mode] = {"same": same, "inside": inside, "definition": inside, "condition": "condition"}
        walked = with_parts(schema, lambda part, role: self.walk(part, modes[role]))
        if isinstance(ref := schema.get("$ref"), str):
            walked["$ref"] = self.reference(ref, same)
        return self.closed(schema, walked) if mode == "whole" else walked

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise _Unclosable

    def reference(self, ref: str, mode: _Mode) -> str:
        """The reference itself where it leads to a definition of whole values, else one to a copy for this use."""
        if not is_pointer(ref):
            return ref
        holder, _, name = ref[2:].partition("/")
        if mode == "whole" and (ref == "#" or (holder in DEFINITIONS and "/" not in name)):
            return ref
        if (ref, mode) not in self.copies:
            taken = self.root.get("$defs") or {}
            label = f"{mode}{len(self.copies) + 1}"
            while label in taken:
                label += "_"
            self.copies[ref, mode] = label
            self.waiting.append((label, ref, mode))
        return f"#/$defs/{self.copies[ref, mode]}"

    def delegates(self, schema: dict[str, Any]) -> bool:
        """Whether it leaves all keys to one other schema, or to one of several."""
        if "$ref" in schema and self.refs_stand_alone:
            return True
        others = [keyword for keyword in (*_COMBINED, "$ref") if keyword in schema]
        if len(others) != 1 or schema.keys() & _ABOUT_KEYS:
            return False
        return others != ["allOf"] or len(schema["allOf"]) == 1

    def closed(self, schema: dict[str, Any], walked: dict[str, Any]) -> dict[str, Any]:
        if self.delegates(schema) or schema.keys() & {"additionalProperties", "unevaluatedProperties"}:
            return walked
        known = _KnownKeys({}, {}, {})
        if not self.collect(schema, known, set()) or not known.declared:
            return walked
        names = known.declared | known.mentioned
        patterns = known.patterns
        alone = names.keys() == (schema.get("properties") or {}).keys() and not patterns
        if alone and not schema.keys() & _OTHER_RULES:
            return {**walked, "additionalProperties": False}
        rule: dict[str, Any] = {"enum": list(names)}
        if patterns:
            rule = {"anyOf": [rule, *({"pattern": pattern} for pattern in patterns)]}
        return {**walked, "allOf": [*walked.get("allOf", ()), {"propertyNames": rule}]}

    def collect(self, schema: Schema, known: _KnownKeys, seen: set[int]) -> bool:
        """Gather the keys that a schema and its parts know; False where one allows keys that it does not name."""
        if not isinstance(schema, dict) or id(schema) in seen:
            return True
        seen.add(id(schema))
        self.spend(1)
        if schema.keys() & _UNREADABLE or any(
            schema.get(keyword, False) is not False for keyword in ("additionalProperties", "unevaluatedProperties")
        ):
            return False
        if "$ref" in schema and not is_pointer(schema["$ref"]):
            return False
        for keyword, gathered in (("properties", known.declared), ("patternProperties", known.patterns)):
            if isinstance(schema.get(keyword), dict):
                self.spend(len(schema[keyword]))
                gathered.update(dict.fromkeys(schema[keyword]))
        mentioned = _required(schema)
        self.spend(len(mentioned))
        known.mentioned.update(dict.fromkeys(mentioned))
        asked = known._replace(declared=known.mentioned)
        beside = [pointed(self.root, schema["$ref"])] if "$ref" in schema else []
        beside += [part for keyword, part in roles(schema) if ROLES[keyword] == "same"]
        return self.collect(schema.get("if"), asked, seen) and all(self.collect(part, known, seen) for part in beside)


def _required(schema: dict[str, Any]) -> list[str]:
    """Names that a schema asks for, whether it describes them or not."""
    names = list(schema["required"]) if isinstance(schema.get("required"), list) else []
    for keyword in ("dependentRequired", *_DEPENDENT):
        for name, needed in (schema[keyword] if isinstance(schema.get(keyword), dict) else {}).items():
            names += [name, *(needed if isinstance(needed, list) else ())]
    return [name for name in names if isinstance(name, str)]
