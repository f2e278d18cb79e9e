"""Counts with their nouns."""

from __future__ import annotations

import pytest

from moonbox import Tool
from moonbox.errors import ArgumentError
from moonbox.wording import counted, noun, seconds


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 calls"), (1, "1 call"), (2, "2 calls"), (1_500, "1,500 calls"), (-1, "-1 calls")]
)
def test_counted(number: int, text: str) -> None:
    assert counted(number, "call") == text


def test_other_plurals() -> None:
    assert [counted(number, "entry", "entries") for number in (1, 2)] == ["1 entry", "2 entries"]
    assert [noun(number, "token") for number in (1, 2)] == ["token", "tokens"]


@pytest.mark.parametrize(
    ("rule", "value", "message"),
    [
        ({"type": "array", "minItems": 1}, [], "expected at least 1 item, got 0"),
        ({"type": "array", "minItems": 2}, [1], "expected at least 2 items, got 1"),
        ({"type": "string", "maxLength": 1}, "ab", "expected at most 1 character, got 2 in"),
        ({"type": "object", "maxProperties": 1}, {"a": 1, "b": 2}, "expected at most 1 key, got 2"),
    ],
)
def test_bounds_of_arguments(rule: dict[str, object], value: object, message: str) -> None:
    tool = Tool.from_schema(
        name="f", description="", parameters={"type": "object", "properties": {"x": rule}}, call=lambda arguments: None
    )
    with pytest.raises(ArgumentError, match=message):
        tool.bind({"x": value})


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (0.0000005, "0 µs"),
        (0.25, "250 ms"),
        (90, "90.0 s"),
        (3_600, "60.0 min"),
        (86_400, "24.0 h"),
        (604_800, "7.0 days"),
    ],
)
def test_lengths_of_time_have_a_natural_unit(duration: float, text: str) -> None:
    assert seconds(duration) == text
