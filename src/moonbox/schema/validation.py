"""Validation: whether a value fits a schema, without holding Python's lock for long.

The schema of a stranger is used if its `Estimate` is within the bounds. A value that is too large to be compared with
it at once is compared in pieces. TooCostly is raised where that is not possible.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from moonbox.schema.bounds import BACKTRACKS, ORDINARY, Estimate, TooCostly
from moonbox.schema.coercion import stand_in

if TYPE_CHECKING:
    from collections.abc import Callable

    import jsonschema_rs

    from moonbox.schema.tree import SchemaNode

_MOST_PIECES = 1_000_000
_OUTERMOST = frozenset({"type", "minItems", "maxItems", "minProperties", "maxProperties", "required"})
_COMBINED = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
_SPLIT = (
    _OUTERMOST
    | _COMBINED
    | {"additionalItems", "additionalProperties", "items", "prefixItems", "properties"}
    | {"$comment", "$defs", "default", "definitions", "deprecated", "description", "examples", "format", "title"}
    | {"$schema", "otherNames"}
)
"""The keywords that can be judged piece by piece, or say nothing."""


class Invalid(Exception):
    """A schema that is not a JSON Schema, with the place of the mistake in it."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message)
        self.where = where


class Validator:
    """A schema to compare values with. Bounds do not apply to the host program's `own` schemas."""

    def __init__(self, root: SchemaNode, *, own: bool = False) -> None:
        self._root, self._own = root, own
        self._parts: dict[tuple[str, int], jsonschema_rs.Validator | None] = {}

    def check(self) -> None:
        """Raise Invalid if the schema is not valid, TooCostly if it is not used."""
        _ = self._whole

    @cached_property
    def is_valid(self) -> Callable[[Any], bool]:
        """Whether a value fits. Raises ValueError or TypeError for what JSON cannot express."""
        whole, estimate = self._whole
        at_once = estimate is None or estimate.looks(self._root.schema) <= ORDINARY
        return whole.is_valid if at_once else self._is_valid

    def _is_valid(self, value: Any) -> bool:
        whole, estimate = self._whole
        if estimate is None or estimate.affords(self._root.schema, value):
            return whole.is_valid(value)
        return _Pieces(estimate, self._part).fits(self._root, value)

    def fits(self, rule: dict[str, Any], value: Any) -> bool:
        """Whether a value fits one keyword of the schema; True where that cannot be said, or would take too long."""
        ((keyword, inner),) = rule.items()
        _, estimate = self._whole
        validator = self._part(rule, keyword, inner)
        if validator is None or (estimate is not None and not estimate.affords(rule, value)):
            return True
        try:
            return bool(validator.is_valid(stand_in(value)))
        except (ValueError, TypeError):
            return True

    def takes(self, schema: dict[str, Any], value: Any) -> bool:
        """The same for a part of the schema."""
        validator = self._part(schema, "", schema)
        return validator is None or bool(validator.is_valid(value))

    @cached_property
    def _whole(self) -> tuple[jsonschema_rs.Validator, Estimate | None]:
        import jsonschema_rs

        try:
            estimate = None if self._own else Estimate(self._root)
        except RecursionError:
            raise TooCostly("its schema is nested too deeply") from None
        try:
            return _compiled(self._root.schema, own=self._own), estimate
        except jsonschema_rs.ValidationError as error:
            where = "".join(f"[{part!r}]" for part in error.instance_path)
            raise Invalid(error.message, where) from None
        except (jsonschema_rs.ReferencingError, ValueError, TypeError) as error:
            raise Invalid(str(error)) from None

    def _part(self, schema: dict[str, Any], keyword: str, kept: Any) -> jsonschema_rs.Validator | None:
        """A validator for a part of the document, which `kept` is or holds; None where it refers to what only the
        whole has."""
        key = (keyword, id(kept))  # it is a part of the document, so that it lives as long as this does
        if key not in self._parts:
            self._parts[key] = self._compile(schema)
        return self._parts[key]

    def _compile(self, schema: dict[str, Any]) -> jsonschema_rs.Validator | None:
        import jsonschema_rs

        root = self._root.schema
        shared = {name: root[name] for name in ("$schema", "$defs", "definitions") if name in root}
        try:
            return _compiled({**shared, **schema}, own=self._own)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
            return None


class _Pieces:
    """A value that is compared with a schema member by member, each at once if that is quick."""

    def __init__(self, estimate: Estimate, part: Any) -> None:
        self._estimate, self._part = estimate, part
        self._left = _MOST_PIECES

    def fits(self, node: SchemaNode, value: Any) -> bool:
        self._left -= 1
        schema = node.schema
        if isinstance(schema, bool):
            return schema
        if self._left < 0:
            raise TooCostly("it is too large for its schema")
        if self._estimate.affords(schema, value):
            return self._judge(schema, "", schema, value)
        if schema.keys() - _SPLIT - ({"$id"} if node is node.root else set()) or not self._estimate.is_divisible:
            raise TooCostly("it is too large for its schema")
        if node.target is not node:
            return self.fits(node.target, value)
        outermost = {keyword: rule for keyword, rule in node.says.items() if keyword in _OUTERMOST}
        if not self._judge(outermost, "outermost", schema, value) or not self._combined(node, value):
            return False
        if isinstance(value, list):
            heads = node.heads
            return all(self.fits(heads[at] if at < len(heads) else node.items, item) for at, item in enumerate(value))
        return not isinstance(value, dict) or all(
            self.fits(node.named.get(name, node.rest), item) for name, item in value.items()
        )

    def _judge(self, schema: dict[str, Any], name: str, kept: Any, value: Any) -> bool:
        validator = self._part(schema, name, kept)
        if validator is None:
            raise TooCostly("it is too large for its schema")
        return bool(validator.is_valid(value))

    def _combined(self, node: SchemaNode, value: Any) -> bool:
        unions = node.unions
        return (
            all(self.fits(part, value) for part in node.parts)
            and ("anyOf" not in unions or any(self.fits(part, value) for part in unions["anyOf"]))
            and ("oneOf" not in unions or sum(self.fits(part, value) for part in unions["oneOf"]) == 1)
        )


def _compiled(schema: Any, *, own: bool) -> jsonschema_rs.Validator:
    import jsonschema_rs

    options = None if own else jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS)
    return jsonschema_rs.validator_for(
        schema, validate_formats=False, retriever=_refuse_to_fetch, pattern_options=options
    )


def _refuse_to_fetch(uri: str) -> Any:
    """A schema never makes the host fetch or open anything."""
    raise LookupError("schemas are not fetched; put it under $defs")
