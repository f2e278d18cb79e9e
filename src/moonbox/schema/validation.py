"""Validation: whether a value fits a schema, without holding Python's lock for long.

The schema of a stranger is used if its `Estimate` is within the bounds. A value that is too large to be compared with
it at once is compared in pieces. TooCostly is raised where that is not possible.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from moonbox.schema.bounds import BACKTRACKS, UNEVALUATED, Estimate, TooCostly
from moonbox.schema.coercion import OTHER_NAMES, stand_in
from moonbox.schema.tree import UNIONS, WORDS, is_pointer

if TYPE_CHECKING:
    import jsonschema_rs

    from moonbox.schema.tree import SchemaNode

_MOST_PIECES = 1_000_000
_COMBINED = ("allOf", *UNIONS)
_OUTERMOST = frozenset({"type", "minItems", "maxItems", "minProperties", "maxProperties", "required"})
"""Keywords that judge a value without what is in it."""
_SPLIT = (
    WORDS
    | {*_COMBINED, "$id", "$ref", "format", OTHER_NAMES, "additionalItems", "items", "prefixItems"}
    | {"additionalProperties", "else", "if", "not", "patternProperties", "properties", "then"}
)
"""The keywords that are judged piece by piece, or say nothing."""
_TOO_LARGE = "it is too large for its schema"


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
        self._last = threading.local()
        """`pieces`: those of the last value, which are asked again for what is wrong with it."""

    def check(self) -> None:
        """Raise Invalid if the schema is not valid, TooCostly if it is not used."""
        _ = self._whole

    @cached_property
    def is_valid(self) -> Callable[[Any], bool]:
        """Whether a value fits. Raises ValueError or TypeError for what JSON cannot express."""
        whole, estimate = self._whole
        return whole.is_valid if estimate is None or estimate.is_ordinary else self._is_valid

    def _is_valid(self, value: Any) -> bool:
        whole, estimate = self._whole
        if estimate is None or estimate.affords(estimate.whole, value):
            return whole.is_valid(value)
        self._last.pieces = _Pieces(estimate, self._part)
        return bool(self._last.pieces.fits(self._root, value))

    def fits(self, rule: dict[str, Any], value: Any) -> bool:
        """Whether a value fits one keyword of the schema; True where that cannot be said, or would take too long."""
        ((keyword, inner),) = rule.items()
        _, estimate = self._whole
        try:
            if estimate is not None and not estimate.affords(estimate.work_of(rule), value):
                if keyword not in _COMBINED:
                    return True
                pieces = getattr(self._last, "pieces", None) or _Pieces(estimate, self._part)
                pieces.explains = True
                return bool(pieces.combined(keyword, [(self._root.tree.node(part), value) for part in inner]))
            validator = self._part(rule, keyword, inner)
            return validator is None or bool(validator.is_valid(stand_in(value)))
        except (TooCostly, ValueError, TypeError):
            return True

    def takes(self, schema: dict[str, Any], value: Any) -> bool:
        """The same for a part of the schema; False where it would take too long."""
        _, estimate = self._whole
        if estimate is None:
            validator = self._part(schema, "", schema)
            return validator is None or bool(validator.is_valid(value))
        try:
            return _Pieces(estimate, self._part).fits(self._root.tree.node(schema), value)
        except TooCostly:
            return False

    @cached_property
    def _whole(self) -> tuple[jsonschema_rs.Validator, Estimate | None]:
        import jsonschema_rs

        estimate = None if self._own else Estimate(self._root)
        try:
            if estimate is not None and estimate.whole.loops:  # only its parts are used; compiling it may never end
                jsonschema_rs.meta.validate(self._root.schema)
                return _compiled(True, own=False), estimate
            return _compiled(self._root.schema, own=self._own), estimate
        except jsonschema_rs.ValidationError as error:
            where = "".join(f"[{part!r}]" for part in error.instance_path)
            raise Invalid(error.message, where) from None
        except (jsonschema_rs.ReferencingError, ValueError, TypeError) as error:
            raise Invalid(str(error)) from None

    def _part(self, schema: dict[str, Any], keyword: str, kept: Any) -> jsonschema_rs.Validator | None:
        """A validator for a schema made of a part of the document; None if it refers to what only the whole has.

        `kept` is a part of the document, which lives as long as this validator.
        """
        key = (keyword, id(kept))
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
        self.explains = False
        """Whether it only explains a refusal, so that values may have parts that JSON cannot express."""
        self._known: dict[tuple[int, int], tuple[bool, Any]] = {}  # with the value, so that its id stays its own

    def fits(self, node: SchemaNode, value: Any) -> bool:
        if isinstance(node.schema, bool):
            return node.schema
        key = id(node), id(value)
        if key not in self._known:
            self._known[key] = True, value  # for a schema that leads back to itself at this value
            fitting = self._at_once(node, value)
            if fitting is None:
                fitting = True
                for keyword, parts in self._split(node, value):  # not all(…): values may be deep, and each call counts
                    if not self.combined(keyword, parts):
                        fitting = False
                        break
            self._known[key] = fitting, value
        return self._known[key][0]

    def combined(self, keyword: str, parts: Iterable[tuple[SchemaNode, Any]]) -> bool:
        """Whether values fit their schemas: all of them (`allOf`), any, exactly one (`oneOf`) or none (`not`)."""
        count = 0
        for node, value in parts:
            fits = self.fits(node, value)
            if keyword in ("allOf", "anyOf") and fits == (keyword == "anyOf"):
                return fits
            count += fits
        return keyword == "allOf" or (keyword == "oneOf" and count == 1) or (keyword == "not" and count == 0)

    def _at_once(self, node: SchemaNode, value: Any) -> bool | None:
        """Whether a value fits, if that can be said at once."""
        self._left -= 1
        schema = node.schema
        work = self._estimate.work(schema)
        if self._left >= 0 and not work.refers and self._estimate.affords(work, value):
            return self._judge(schema, "", schema, value)
        has_other_root = "$id" in schema and node is not node.root
        if self._left < 0 or has_other_root or not is_pointer(node.reference or "#"):
            raise TooCostly(_TOO_LARGE)
        return None

    def _split(self, node: SchemaNode, value: Any) -> Iterator[tuple[str, list[tuple[SchemaNode, Any]]]]:
        """The schemas that a value, and what is in it, must fit, with the keyword that says how many of them."""
        if node.target is not node:
            yield "allOf", [(node.target, value)]
            return
        if not self._fits_rest(node, value):
            yield "anyOf", []
        says, part = node.says, node.tree.node
        for keyword, branches in {"allOf": node.parts, **node.unions}.items():
            yield keyword, [(branch, value) for branch in branches]
        if "not" in says:
            yield "not", [(part(says["not"]), value)]
        if "if" in says:
            branch = "then" if self.fits(part(says["if"]), value) else "else"
            yield "allOf", [(part(says.get(branch, True)), value)]
        if isinstance(value, list):
            heads, rest = node.heads, node.items
            yield "allOf", [(heads[at] if at < len(heads) else rest, item) for at, item in enumerate(value)]
        elif isinstance(value, dict):
            yield "allOf", list(self._members(node, value))

    def _fits_rest(self, node: SchemaNode, value: Any) -> bool:
        """Whether a value fits the rules of a schema that are not compared in pieces."""
        rest = {keyword: rule for keyword, rule in node.says.items() if keyword not in _SPLIT}
        if rest.keys() <= _OUTERMOST:
            value = [None] * len(value) if isinstance(value, list) else value
            value = dict.fromkeys(value) if isinstance(value, dict) else value
            return not rest or self._judge(rest, "rest", node.schema, value)
        return self._judge_rule(rest, "rest", node.schema, value)

    def _judge_rule(self, rule: dict[str, Any], name: str, kept: Any, value: Any) -> bool:
        work = self._estimate.work_of(rule)
        if work.refers or not rule.keys().isdisjoint(UNEVALUATED) or not self._estimate.affords(work, value):
            raise TooCostly(_TOO_LARGE)
        return self._judge(rule, name, kept, value)

    def _members(self, node: SchemaNode, value: dict[str, Any]) -> Iterator[tuple[SchemaNode, Any]]:
        """The members of an object, each with every schema that it must fit."""
        patterns = node.says.get("patternProperties", {})
        other = node.tree.node(node.says.get("additionalProperties", True))
        for name, item in value.items():
            parts = [node.named[name]] if name in node.named else []
            for pattern, part in patterns.items():
                if self._judge_rule({"pattern": pattern}, "pattern", pattern, name):
                    parts.append(node.tree.node(part))
            yield from ((part, item) for part in parts or [other])

    def _judge(self, schema: dict[str, Any], name: str, kept: Any, value: Any) -> bool:
        validator = self._part(schema, name, kept)
        if validator is None:
            raise TooCostly(_TOO_LARGE)
        return bool(validator.is_valid(stand_in(value) if self.explains else value))


def _compiled(schema: Any, *, own: bool) -> jsonschema_rs.Validator:
    import jsonschema_rs

    options = None if own else jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS)
    return jsonschema_rs.validator_for(
        schema, validate_formats=False, retriever=_refuse_to_fetch, pattern_options=options
    )


def _refuse_to_fetch(uri: str) -> Any:
    """A schema never makes the host fetch or open anything."""
    raise LookupError("schemas are not fetched; put it under $defs")
