"""Tests of results on their way to a script."""

from __future__ import annotations

import dataclasses
import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from moonbox.errors import ToolError
from moonbox.tools import Tool
from moonbox.values import ValueLimits


def answering(**options: Any) -> Tool:
    return Tool.from_schema(name="f", call=lambda args: None, **options)


@dataclasses.dataclass
class Point:
    x: int


class Item(BaseModel):
    when: dt.date
    price: Decimal


def test_values_are_lowered() -> None:
    value = {
        "point": Point(1),
        "items": (Item(when=dt.date(2024, 1, 2), price=Decimal("1.5")),),
        "set": {2, 1},
        "raw": b"\xff",
    }
    assert answering().convert_result(value) == {
        "point": {"x": 1},
        "items": [{"when": "2024-01-02", "price": "1.5"}],
        "set": [1, 2],
        "raw": b"\xff",
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, null]}', {"a": [1, None]}),
        (" [1, 2]\n", [1, 2]),
        ("42", "42"),
        ('"x"', '"x"'),
        ("{not json}", "{not json}"),
        ("[NaN]", "[NaN]"),
        ('{"big": 99999999999999999999999}', '{"big": 99999999999999999999999}'),
        ("[" * 100_000, "[" * 100_000),
        ("[" * 200 + "]" * 200, "[" * 200 + "]" * 200),
        ("", ""),
    ],
)
def test_text_that_is_json(text: str, value: Any) -> None:
    assert answering().convert_result(text) == value
    assert answering(parse_json=False).convert_result(text) == text
    assert answering(returns={"type": "string"}).convert_result(text) == text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("x" * 101, "the result of f cannot be used: result is a string of 101 bytes; max_string is 100"),
        ({"a": [0] * 11}, "the result of f cannot be used: result.a is an array of 11 elements; max_array is 10"),
        ([[[[[[1]]]]]], "the result of f cannot be used: result[0][0][0][0] is nested too deeply (or contains itself)"),
    ],
)
def test_too_large_names_size_and_limit(value: Any, message: str) -> None:
    with pytest.raises(ToolError) as raised:
        answering().convert_result(value, ValueLimits(max_string=100, max_array=10, max_depth=4))
    assert (raised.value.code, raised.value.message, raised.value.tool) == ("result_too_large", message, "f")


class Hostile(BaseModel):
    raw: bytes


def test_what_cannot_be_converted() -> None:
    with pytest.raises(ToolError) as raised:
        answering().convert_result({"x": object()})
    assert raised.value.code == "bad_result"
    assert raised.value.message == (
        "the result of f cannot be used: result.x is an object, which cannot cross to a script; "
        "return JSON-like data, a dataclass or a pydantic model"
    )
    with pytest.raises(ToolError) as raised:
        answering().convert_result(Hostile(raw=b"\xff"))
    assert (raised.value.code, raised.value.message) == (
        "bad_result",
        "the result of f cannot be converted: UnicodeDecodeError",
    )
    with pytest.raises(ToolError, match="result is nan, which is not a JSON number"):
        answering().convert_result(float("nan"), ValueLimits(allow_nan=False))
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(ToolError) as raised:
        answering().convert_result(cycle)
    assert raised.value.code == "result_too_large"
