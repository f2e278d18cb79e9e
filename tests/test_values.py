"""Values: what each Python type becomes on its way to a script, and the tagged JSON of records."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import ipaddress
import json
import math
import pathlib
import types
import uuid
from collections import OrderedDict, UserDict, deque, namedtuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moonbox.errors import ConversionError
from moonbox.values import INT64_MAX, INT64_MIN, from_jsonable, measure, measured, plain, to_jsonable


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Point:
    x: int
    y: Any = None


Pair = namedtuple("Pair", "left right")


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (5, 5),
        (INT64_MAX, INT64_MAX),
        (INT64_MIN, INT64_MIN),
        (1.5, 1.5),
        ("é", "é"),
        (b"\xff", b"\xff"),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"ab"), b"ab"),
        ((1, 2), [1, 2]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        (deque([1]), [1]),
        (range(3), [0, 1, 2]),
        (OrderedDict(a=1), {"a": 1}),
        (UserDict({"a": (1,)}), {"a": [1]}),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        ({1: "one", "b": 2}, {1: "one", "b": 2}),
        ({Colour.RED: 1}, {"red": 1}),
        ({dt.date(2024, 1, 2): 1}, {"2024-01-02": 1}),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Point(1, Point(2)), {"x": 1, "y": {"x": 2, "y": None}}),
        (Pair(1, (2,)), {"left": 1, "right": [2]}),
        (Text("x"), "x"),
        (dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC), "2024-01-02T03:04:05+00:00"),
        (dt.date(2024, 1, 2), "2024-01-02"),
        (dt.time(3, 4), "03:04:00"),
        (dt.timedelta(minutes=1, milliseconds=500), 60.5),
        (decimal.Decimal("5"), 5),
        (decimal.Decimal("0.5"), 0.5),
        (decimal.Decimal("0.1"), 0.1),
        (decimal.Decimal("1.10"), 1.1),
        (decimal.Decimal("0.1234567890123456789"), "0.1234567890123456789"),
        (decimal.Decimal(2**70 + 1), "1180591620717411303425"),
        (fractions.Fraction(1, 3), "1/3"),
        (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (ipaddress.ip_address("::1"), "::1"),
    ],
)
def test_lowering(value: Any, expected: Any) -> None:
    lowered = plain(value)
    assert lowered == expected
    assert type(lowered) is type(expected)


def test_pydantic_models() -> None:
    from pydantic import BaseModel, Field

    class Model(BaseModel):
        when: dt.date
        name: str = Field(serialization_alias="Name")

    assert plain(Model(when=dt.date(2024, 1, 2), name="x")) == {"when": "2024-01-02", "Name": "x"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "value is an object, which cannot cross to a script; return JSON-like data, a dataclass"),
        ({"a": [1, object()]}, "value.a[1] is an object"),
        (2**63, "value is an integer of more than 64 bits (9223372036854775808); send it as a string"),
        (2**500, "value is an integer of more than 64 bits (about 2^501)"),
        ({1.5: 1}, "value has a key of type float; keys must be strings or integers"),
        ({True: 1}, "value has a key of type bool"),
        ({2**64: 1}, "value has an integer key of more than 64 bits"),
        ({(1, 2): 1}, "value has a key of type tuple"),
        (lambda: 1, "value is a function"),
        (iter([1]), "value is a list_iterator"),
    ],
)
def test_refusals(value: Any, message: str) -> None:
    with pytest.raises(ConversionError) as caught:
        plain(value)
    assert str(caught.value).startswith(message)


def test_nan() -> None:
    assert math.isnan(plain(math.nan))
    for value in (math.nan, math.inf, [-math.inf], {"a": math.nan}):
        with pytest.raises(ConversionError, match="which is not a JSON number"):
            plain(value, allow_nan=False)


def test_cycles_end() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(ConversionError, match="nested too deeply") as caught:
        plain(cycle)
    assert caught.value.limit == "depth"


def test_measure() -> None:
    limits: dict[str, Any] = {"max_string": 100, "max_array": 3, "max_depth": 2}
    measure({"a": ["x" * 100, 1, 2]}, **limits)
    for value, limit, message in (
        ("x" * 101, "string", "value is a string of 101 bytes; max_string is 100"),
        ({"a": "é" * 70}, "string", "value.a is a string of 140 bytes; max_string is 100"),
        ([1, 2, 3, 4], "array", "value is an array of 4 elements; max_array is 3"),
        ({"a": dict.fromkeys("abcd")}, "array", "value.a is a table of 4 elements; max_array is 3"),
        ([[[1]]], "depth", "value[0][0] is nested deeper than max_depth"),
    ):
        with pytest.raises(ConversionError) as caught:
            measure(value, **limits)
        assert (caught.value.limit, str(caught.value)) == (limit, message)


def plain_values() -> st.SearchStrategy[Any]:
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(INT64_MIN, INT64_MAX),
        st.floats(),
        st.text(),
        st.binary(),
    )
    keys = st.one_of(st.text(), st.integers(INT64_MIN, INT64_MAX))
    return st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=20)


def same(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return (left == right and math.copysign(1, left) == math.copysign(1, right)) or (
            left != left and right != right
        )
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(item, right[key]) for key, item in left.items())
    return bool(left == right)


@given(plain_values())
def test_plain_values_stay_as_they_are(value: Any) -> None:
    assert same(plain(value), value)


@given(plain_values())
def test_tagged_json_goes_both_ways(value: Any) -> None:
    text = json.dumps(to_jsonable(value), allow_nan=False)
    assert same(from_jsonable(json.loads(text)), value)


@given(st.sampled_from(["$bytes", "$pairs", "$float"]), plain_values())
def test_tables_that_look_like_tags(key: str, value: Any) -> None:
    text = json.dumps(to_jsonable({key: value}), allow_nan=False)
    assert same(from_jsonable(json.loads(text)), {key: value})


# The native part does what `plain` and `measure` do, or leaves it to them

_BOUNDS: dict[str, Any] = {"max_string": 40, "max_array": 6, "max_depth": 4, "allow_nan": False}
_CROSSING: dict[str, Any] = {
    "nothing": None,
    "a row": {"id": 1, "name": "x", "amount": 1.5, "tags": ["a", "b"], "ok": True, "note": None},
    "a tuple": (1, (2, [3])),
    "bytes": [b"\xff", b""],
    "the largest integers": [2**63 - 1, -(2**63)],
    "an integer of 65 bits": [{"n": 2**63}],
    "an integer far below": -(2**70),
    "NaN": {"a": [float("nan")]},
    "infinity": float("inf"),
    "text at the limit": "x" * 40,
    "text past it": ["x" * 41],
    "text of many bytes": ["é" * 21],
    "short text of few characters": "\U0001f600" * 10,
    "half of a surrogate pair": ["a\ud800"],
    "bytes past the limit": {"a": b"x" * 41},
    "an array at the limit": [0] * 6,
    "an array past it": {"a": [0] * 7},
    "a table past it": {str(n): n for n in range(7)},
    "as deep as allowed": [[[[]]]],
    "too deep": {"a": [[[[]]]]},
    "integer keys": {1: "a"},
    "a key that cannot cross": {1.5: "a"},
    "a subclass of dict": OrderedDict(a=1),
    "a subclass of str": [type("Name", (str,), {})("x")],
    "an enum": [Colour.RED],
    "a set": {"s": {2, 1}},
    "a date": [dt.date(2026, 1, 2)],
    "a bare object": [object],
}


@pytest.mark.parametrize("name", _CROSSING)
def test_values_are_measured_alike_with_and_without_the_native_part(name: str) -> None:
    value = _CROSSING[name]

    def in_python() -> Any:
        lowered = plain(value, allow_nan=False, max_depth=_BOUNDS["max_depth"])
        measure(lowered, max_string=40, max_array=6, max_depth=4)
        return lowered

    def outcome(work: Any) -> Any:
        try:
            return repr(work())
        except ConversionError as problem:
            return str(problem), problem.limit

    assert outcome(lambda: measured(value, **_BOUNDS)) == outcome(in_python)


def test_what_was_measured_is_a_copy() -> None:
    inner = [1]
    row: dict[str, Any] = {"tags": inner}
    rows = [row]
    copy = measured(rows, max_string=100, max_array=100, max_depth=64, allow_nan=True)
    inner.append(2)
    row["more"] = 1
    rows.append(row)
    assert copy == [{"tags": [1]}]


def test_a_value_that_holds_itself_is_too_deep() -> None:
    rows: list[Any] = []
    rows.append(rows)
    with pytest.raises(ConversionError, match="nested too deeply"):
        measured(rows, max_string=100, max_array=100, max_depth=180, allow_nan=True)


_ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats()
    | st.text(max_size=60)
    | st.binary(max_size=60)
    | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=8)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers(0, 3), inner, max_size=8)
    ),
    max_leaves=30,
)


@given(_ANYTHING, st.integers(1, 60), st.integers(0, 9), st.integers(0, 5), st.booleans())
def test_any_value_is_measured_alike_with_and_without_the_native_part(
    value: Any, max_string: int, max_array: int, max_depth: int, allow_nan: bool
) -> None:
    limits: dict[str, Any] = {"max_string": max_string, "max_array": max_array, "max_depth": max_depth}

    def outcome(*, native: bool) -> Any:
        try:
            if native:
                return repr(measured(value, **limits, allow_nan=allow_nan))
            lowered = plain(value, allow_nan=allow_nan, max_depth=max_depth)
            measure(lowered, **limits)
            return repr(lowered)
        except ConversionError as problem:
            return str(problem), problem.limit

    assert outcome(native=True) == outcome(native=False)
