"""Attacks on validation: what is passed on is what was validated, at a bounded cost."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel

from moonbox import Sandbox, Tool, tool
from moonbox.errors import ArgumentError
from tests.counting import count_calls
from tests.long import times
from tests.tools.making import made, problems

PADDING = 6_000
"""More items than an explanation looks at."""


class Tree(BaseModel):
    ids: set[int] = set()
    children: list[Tree] = []


ITEM = {"type": "object", "properties": {"path": {"type": "string", "pattern": "^[a-z]*$"}}}
LIST = {"type": "array", "items": ITEM}
MANY = dict.fromkeys(map(str, range(PADDING)), "a")


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        # bytes where only short text of a pattern may stand, after more items than the explanation looks at
        (LIST, [*({"path": "a"} for _ in range(PADDING)), {"path": b"\xff/etc/passwd"}]),
        ({"type": "array", "items": {"type": "string"}}, ["a"] * PADDING + [b"\xff"]),
        ({"type": "object", "additionalProperties": {"maxLength": 3}}, {**MANY, "x": b"\xff" * 99}),
        # two keys that JSON writes the same: one would be validated, the other passed on
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {7: "not an integer", "7": 1}),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {7: 1, "7": "not an integer"}),
        (LIST, [*({"path": "a"} for _ in range(PADDING)), {7: {"path": "../.."}, "7": 1}]),
        ({"anyOf": [{"type": "object", "maxProperties": 1}, {"type": "null"}]}, {7: 1, "7": 2}),
        # text that cannot be written as UTF-8
        ({"type": "string", "maxLength": 2}, "\ud800" * 9),
        ({"type": "object", "propertyNames": {"maxLength": 1}}, {"\ud800\ud800": 1}),
        ({"type": "array", "items": {"enum": ["a"]}}, ["a"] * PADDING + ["\ud800"]),
        # numbers that JSON does not have, past a limit
        ({"maximum": 10}, float("inf")),
        ({"anyOf": [{"type": "string"}, {"not": {"type": "number"}}]}, float("nan")),
        ({"type": "array", "items": {"maximum": 10}}, [1.0] * PADDING + [float("inf")]),
        # behind a keyword that is not followed
        ({"type": "array", "uniqueItems": True}, [b"\xff", b"\xff"]),
        ({"allOf": [{"items": {"type": "integer"}}]}, [b"\xff"]),
        ({"patternProperties": {"": {"type": "integer"}}}, {"a": b"\xff"}),
        ({"$ref": "#/$defs/Any", "items": {"type": "integer"}}, [b"\xff"]),
        ({"if": {"type": "array"}, "then": {"items": {"type": "integer"}}}, [b"\xff"]),
        ({"type": "string", "format": "binary", "maxLength": 1}, b"\xff\xff"),
    ],
)
def test_what_cannot_be_validated_is_refused(schema: Any, value: Any) -> None:
    assert problems(made({"a": schema}, **{"$defs": {"Any": {}}}), {"a": value})


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        ({"type": "object"}, {7: 1, "7": 2}, "a: the keys 7 and '7' are the same in JSON"),
        ({"maximum": 10}, float("inf"), "a: inf is not a JSON number"),
        ({"maxLength": 1}, "\ud800", "a: the text is not valid Unicode: it has half of a surrogate pair"),
        ({"maxLength": 1}, b"\xff", "a: a string that is not UTF-8 is not accepted here"),
        ({"maxLength": 1}, {1.5: 1}, "a: the value has no exact JSON form, so that it cannot be validated here"),
    ],
)
def test_reasons(schema: Any, value: Any, reason: str) -> None:
    assert problems(made({"a": schema}), {"a": value}) == [reason]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, b"\xff"),
        ({"description": "anything", "default": 1}, {7: 1, "7": b"\xff"}),
        ({"type": "array"}, [b"\xff", float("nan"), "\ud800"]),
        ({"properties": {"x": {}}, "additionalProperties": {}}, {"x": b"\xff", "y": {1: 2, 3: 4}}),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {}]}, [1, b"\xff"]),
        ({"$ref": "#/$defs/Any"}, b"\xff"),
        ({"type": "string", "format": "binary"}, b"\xff"),
        ({"anyOf": [{"type": "null"}, {"type": "string", "format": "binary"}]}, b"\xff"),
        ({}, [{"x": b"\xff"}]),
    ],
)
def test_places_of_which_the_schema_says_nothing_take_everything(schema: Any, value: Any) -> None:
    bound = made({"a": schema}, **{"$defs": {"Any": {}}}).bind({"a": value})
    assert repr(bound) == repr({"a": value})


def test_from_a_script() -> None:
    calls: list[Any] = []
    save = Tool.from_schema(
        name="save",
        parameters={"type": "object", "properties": {"rows": LIST}, "required": ["rows"]},
        call=lambda arguments: calls.append(arguments),
    )
    with Sandbox([save]) as box:
        run = box.run(
            "local rows = {} for n = 1, 6000 do rows[n] = {path = 'a'} end rows[6001] = {path = '\\xff'} "
            "tools.save{rows = rows}"
        )
    assert run.error is not None and run.error.code == "invalid"
    assert calls == []


def test_functions_with_types_judge_for_themselves() -> None:
    @tool
    def keep(raw: bytes | None = None, names: list[str] | None = None, blobs: list[bytes] | None = None) -> Any:
        """Keep it."""
        return raw, names, blobs

    assert keep.invoke(keep.bind({"raw": b"\xff", "blobs": [b"\xfe"]})) == (b"\xff", None, [b"\xfe"])
    names = ["a"] * PADDING + [b"\xff"]
    with pytest.raises(ArgumentError):
        keep.invoke(keep.bind({"names": names}))


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.floats(), st.text(max_size=3), st.binary(max_size=2),
    st.sampled_from(["\ud800", "a\udfff"]),
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["7", "a", "\ud800"]) | st.sampled_from([7, 1]), inner, max_size=3)
    ),
    max_leaves=5,
)
RULES: list[Any] = [
    *({"type": kind} for kind in ("integer", "string", "number", "boolean", "object", "array", "null")),
    *({"maximum": 3}, {"maxLength": 1}, {"enum": ["a", 1]}, {"not": {"type": "string"}}, {"maxProperties": 1}),
]


@settings(max_examples=times(300), deadline=None)
@given(rule=st.sampled_from(RULES), value=VALUES, depth=st.integers(0, 2))
def test_nothing_that_json_cannot_express_stands_where_a_rule_applies(rule: Any, value: Any, depth: int) -> None:
    schema = rule
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
        value = [value]
    try:
        bound: Any = made({"a": schema}).bind({"a": value}).get("a")
    except ArgumentError:
        return
    for _ in range(depth if bound is not None else 0):
        bound = bound[0]
    assert not isinstance(bound, bytes)
    assert not (isinstance(bound, float) and bound - bound != 0)
    assert not (isinstance(bound, str) and any(0xD800 <= ord(char) < 0xE000 for char in bound))
    assert not (isinstance(bound, dict) and any(not isinstance(key, str) for key in bound))


# Cost


def test_numbers_that_collide_are_refused_before_they_are_hashed() -> None:
    @tool
    def sets(ids: set[int], by_id: dict[int, str] | None = None, rows: list[int] | None = None) -> int:
        """Count."""
        return len(ids)

    many = list(range(20_000))
    with pytest.raises(ArgumentError) as raised:
        sets.invoke(sets.bind({"ids": many}))
    assert (
        "- ids: too many items; sets and tables with integer keys take about 15,000 in one call\n"
        in raised.value.message
    )
    with pytest.raises(ArgumentError, match="by_id: too many items"):
        sets.invoke(sets.bind({"ids": [1], "by_id": {str(number): "x" for number in many}}))
    assert sets.invoke(sets.bind({"ids": many[:15_000], "rows": many})) == 15_000


HASHED = (set[int], frozenset[float], set[Any], set[tuple[int, int]], dict[int, str], list[set[int]], Tree)
NOT_HASHED = (set[str], frozenset[bytes], dict[str, int], list[int], set[bool], Any)


@pytest.mark.parametrize("annotation", [*HASHED, dict[str, dict[int, int]], *NOT_HASHED], ids=str)
def test_types_whose_hashes_can_be_predicted(annotation: Any) -> None:
    def count(items: Any) -> None:
        """Count."""

    count.__annotations__["items"] = annotation
    converter = Tool.from_function(count).plan.converter
    assert converter is not None
    assert converter.hashed == (frozenset() if annotation in NOT_HASHED else {"items"})


def costs(job: Any, small: int, large: int) -> float:
    """How many times more calls a job makes for ten times as much."""
    return count_calls(lambda: job(large)) / count_calls(lambda: job(small))


def test_explaining_grows_no_faster_than_the_value() -> None:
    rows = made(
        {"rows": {"anyOf": [{"type": "array", "items": {"anyOf": [ITEM, {"type": "null"}]}}, {"type": "null"}]}}
    )
    assert costs(lambda n: problems(rows, {"rows": [{"path": "a"}] * n + [{"path": b"\xff"}]}), 1_000, 10_000) < 12


def test_coercing_a_large_table_in_a_large_union_costs_no_more_than_the_table() -> None:
    fields = [{f"k{n}": {"type": "integer"}} for n in range(200)]
    branches = [{"type": "object", "properties": field, "additionalProperties": True} for field in fields]
    wide = made({"a": {"anyOf": branches}})
    table = {f"x{key}": 1.0 for key in range(10_000)}
    wide.bind({"a": {"x": 1.0}})  # what is worked out once
    assert count_calls(lambda: wide.bind({"a": table})) < 20 * len(table)  # not as many for each of the 200 branches


def test_coercing_many_values_in_a_union_of_many_branches_is_refused() -> None:
    kinds = [{"type": "object", "properties": {"a": {"type": "object"}}, "required": ["a"]} for _ in range(2_000)]
    wide = made({"v": {"items": {"anyOf": [*kinds, True]}}})
    assert wide.bind({"v": [{"a": 1}] * 100}) == {"v": [{"a": 1}] * 100}
    assert problems(wide, {"v": [{"a": 1}] * 1_000}) == ["the arguments are too large to be validated"]


def test_a_message_names_no_key_whole_that_is_megabytes_long() -> None:
    assert len(problems(made({"a": {}}), {"x" * 1_000_000: 1})[0]) < 200


def test_thousands_of_type_problems_are_cut_short() -> None:
    def no(value: int) -> int:
        raise ValueError("no")

    @tool
    def check(numbers: list[Annotated[int, AfterValidator(no)]]) -> None:
        """Check."""

    with pytest.raises(ArgumentError) as raised:
        check.invoke(check.bind({"numbers": list(range(10_000))}))
    assert len(raised.value.message.splitlines()) == 15
