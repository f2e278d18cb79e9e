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
from moonbox.values import INT64_MAX, INT64_MIN, ValueLimits, from_jsonable, pack, plain, to_jsonable
from tests.strategies import plain_values


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
            plain(value, ValueLimits(allow_nan=False))


def test_cycles_end() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(ConversionError, match="nested too deeply") as caught:
        plain(cycle)
    assert caught.value.limit == "depth"


LIMITS = ValueLimits(max_string=40, max_array=6, max_depth=4, max_elements=12, allow_nan=False)


@pytest.mark.parametrize(
    ("value", "limit", "message"),
    [
        (["x" * 41], "string", "value[0] is a string of 41 bytes; max_string is 40"),
        ({"a": "é" * 21}, "string", "value.a is a string of 42 bytes; max_string is 40"),
        ({"a": b"x" * 41}, "string", "value.a is a string of 41 bytes; max_string is 40"),
        ({"a": [0] * 7}, "array", "value.a is an array of 7 elements; max_array is 6"),
        (dict.fromkeys("abcdefg"), "array", "value is a table of 7 elements; max_array is 6"),
        (range(10**8), "array", "value is an array of 100,000,000 elements; max_array is 6"),
        ({"a": [[[[]]]]}, "depth", "value.a[0][0][0] is nested too deeply (or contains itself)"),
        ([[0] * 6, [0] * 6], "array", "the value has more than 12 elements in all"),
        ([(0,) * 6, (0,) * 6], "array", "the value has more than 12 elements in all"),
        (math.inf, None, "value is inf, which is not a JSON number"),
    ],
)
def test_what_is_past_a_limit_is_refused(value: Any, limit: str | None, message: str) -> None:
    with pytest.raises(ConversionError) as caught:
        pack(value, LIMITS)
    assert (caught.value.limit, str(caught.value)) == (limit, message)


@pytest.mark.parametrize("wrap", [lambda inner: [inner, inner], lambda inner: (inner, inner)])
def test_a_list_that_is_shared_at_every_level_is_refused_early(wrap: Any) -> None:
    """Written out, it would have a thousand million elements."""
    value: Any = []
    for _ in range(30):
        value = wrap(value)
    with pytest.raises(ConversionError, match="more than 100,000 elements in all"):
        pack(value, ValueLimits(max_elements=100_000))


def test_what_was_packed_is_a_copy() -> None:
    inner = [1]
    row: dict[str, Any] = {"tags": inner}
    packed = pack([row])
    inner.append(2)
    row["more"] = 1
    assert packed.value == [{"tags": [1]}]
    assert packed == pack([{"tags": [1]}]) and packed != pack([])


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


_ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
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
def test_a_packed_value_is_the_plain_value(
    value: Any, max_string: int, max_array: int, max_depth: int, allow_nan: bool
) -> None:
    limits = ValueLimits(max_string=max_string, max_array=max_array, max_depth=max_depth, allow_nan=allow_nan)

    def outcome(convert: Any) -> Any:
        try:
            return repr(convert())
        except ConversionError as problem:
            return str(problem), problem.limit

    assert outcome(lambda: pack(value, limits).value) == outcome(lambda: plain(value, limits))


def test_half_of_a_surrogate_pair_is_replaced() -> None:
    assert pack({"a\ud800": ["\udfff"]}).value == {"a?": ["?"]}
