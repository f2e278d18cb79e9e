"""Validation within bounds: in pieces or at once, a value is judged alike."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moonbox.schema import bounds
from moonbox.schema.bounds import Estimate, TooCostly, refusal
from moonbox.schema.tree import SchemaNode
from moonbox.schema.validation import Validator
from tests.long import times

KINDS = ("integer", "string", "number", "boolean", "null", "array", "object")
SIMPLE = st.sampled_from([
    *({}, {"enum": ["a", 1]}, {"const": None}, {"minLength": 2}, {"maximum": 3}, {"$ref": "#/$defs/Tree"}),
    *({"$ref": "#/$defs/Either"}, {"$ref": "#/$defs/Tree", "maxProperties": 1}),
    *({"type": kind} for kind in KINDS),
])  # fmt: skip
SCHEMAS = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.builds(lambda item, most: {"type": "array", "items": item, "maxItems": most}, inner, st.integers(0, 3)),
        st.builds(
            lambda first, rest: {"prefixItems": first, "items": rest},
            st.lists(inner, min_size=1, max_size=2),
            inner | st.booleans(),
        ),
        st.builds(
            lambda word, parts: {word: parts},
            st.sampled_from(["allOf", "anyOf", "oneOf"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(
            lambda named, rest: {"properties": named, "required": sorted(named)[:1], "additionalProperties": rest},
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            inner | st.booleans(),
        ),
        st.builds(lambda part: {"not": part}, inner),
        st.builds(
            lambda named, rest: {"patternProperties": named, "additionalProperties": rest},
            st.dictionaries(st.sampled_from(["^a", "[bc]", "a|b"]), inner, max_size=2),
            inner | st.booleans(),
        ),
    ),
    max_leaves=8,
)
TREE = {"type": "object", "properties": {"a": {"$ref": "#/$defs/Tree"}}, "additionalProperties": False}
EITHER = {
    "anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/Either"}}, {"$ref": "#/$defs/Members"}]
}
MEMBERS = {
    "type": "object",
    "patternProperties": {"^[ab]": {"$ref": "#/$defs/Either"}},
    "properties": {"b": {"oneOf": [{"type": "array", "maxItems": 2}, {"$ref": "#/$defs/Either"}]}},
    "additionalProperties": {"enum": [1, "a"]},
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=times(600), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(schema=SCHEMAS, value=VALUES, work=st.sampled_from([1, 20, 60]))
def test_a_value_is_judged_alike_at_once_and_in_pieces(
    schema: Any, value: Any, work: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = {**schema, "$defs": {"Tree": TREE, "Either": EITHER, "Members": MEMBERS}}
    monkeypatch.setattr(bounds, "MOST_WORK", work)
    monkeypatch.setattr(bounds, "ORDINARY", 1)
    try:
        judged = Validator(SchemaNode(root)).is_valid(value)
    except TooCostly:
        return
    assert judged == jsonschema_rs.is_valid(root, value)


def test_deep_values_are_compared_in_pieces() -> None:
    either = {"anyOf": [{"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}}, {}]}
    node = {"allOf": [{"anyOf": [{"type": "object", "properties": {"of": either}}, {"type": "string"}]}]}
    value: Any = "leaf"
    for _ in range(60):
        value = {"of": [value]}
    assert Validator(SchemaNode({"$ref": "#/$defs/Node", "$defs": {"Node": node}})).is_valid(value)


def looks(schema: Any) -> int:
    return Estimate(SchemaNode(schema)).whole.looks


def test_the_work_of_a_schema() -> None:
    assert looks({"type": "integer"}) == 1
    assert looks({"anyOf": [{"type": "integer"}, {"type": "null"}]}) == 3
    assert looks({"items": {"anyOf": [{}, {}]}, "required": ["a", "b"]}) == 6
    assert looks({"properties": {"a": {}, "b": {"anyOf": [{}, {}]}}, "patternProperties": {"x": {}}}) == 6
    assert looks({"$ref": "#/$defs/A", "$defs": {"A": {"items": {"$ref": "#/$defs/A"}}}}) == 4


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"enum": list(range(20_001))}, "its schema is too large"),
        ({"anyOf": [{"anyOf": [{"$ref": "#/$defs/a"}] * 400}] * 3, "$defs": {"a": {"anyOf": [{}] * 400}}}, "nests"),
        ({"pattern": "((a{99}){99}){99}"}, "its schema has patterns that are too large"),
        ({"allOf": [{}] * 3_000, "unevaluatedProperties": False}, "nests"),
        ({"items": {"contains": {"$ref": "#"}}}, "its schema refers to itself by 'contains'"),
    ],
)
def test_schemas_above_the_bounds(schema: Any, reason: str) -> None:
    nests = "its schema nests too many alternatives within alternatives"
    assert refusal(SchemaNode(schema)) == (nests if reason == "nests" else reason)


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": r"^[\w.-]{1,255}@[a-z]{1,63}(\.[a-z]{1,63}){0,8}$"},
        {"pattern": r"^(?=.*\d)(?=.*[a-z]).{8,}$"},
        {"pattern": r"^\p{L}{1,60}$"},
        {"properties": {str(number): {"type": ["string", "null"]} for number in range(2_000)}},
    ],
)
def test_ordinary_schemas_are_used(schema: Any) -> None:
    assert refusal(SchemaNode(schema)) is None
