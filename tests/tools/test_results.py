"""Tests of results on their way to a script."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from moonbox import Sandbox
from moonbox.errors import ToolDefinitionError, ToolError
from moonbox.tools.tool import Tool, tool
from moonbox.values import ValueLimits


def answering(**options: Any) -> Tool:
    return Tool.from_schema(name="f", call=lambda args: None, **options)


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


def test_results_are_validated_where_that_is_asked_for() -> None:
    rows = {"type": "array", "items": {"type": "object", "required": ["id"]}}
    strict, loose = answering(returns=rows, validate_result=True), answering(returns=rows)
    assert strict.convert_result([{"id": 1}]) == [{"id": 1}]
    assert loose.convert_result([{}]) == [{}]
    with pytest.raises(ToolError) as raised:
        strict.convert_result([{"id": 1}, {}])
    assert (raised.value.code, raised.value.message) == (
        "bad_result",
        "the result of f does not fit its declared type: result[1].id: missing",
    )


def test_a_result_of_another_type_is_a_note() -> None:
    def odd() -> list[int]:
        """A list, it says."""
        return "none"  # type: ignore[return-value]  # that is the point

    with Sandbox([Tool.from_function(odd), Tool.from_function(odd, name="strict", validate_result=True)]) as box:
        run = box.run("tools.odd{} return (tools.odd{})")
        strict = box.run("return tools.strict{}")
    assert (run.value, [str(note) for note in run.notes]) == (
        "none",
        ["the result of odd is of type string, not array as declared"],
    )
    assert "[note: the result of odd is of type string, not array as declared]" in run.for_model()
    assert strict.error is not None and strict.error.code == "bad_result"


class Animal(BaseModel):
    name: str


class Dog(Animal):
    breed: str


def test_a_script_may_read_more_than_is_declared() -> None:
    def pet() -> Animal:
        """A pet."""
        return Dog(name="Rex", breed="spitz")

    with Sandbox([Tool.from_function(pet)]) as box:
        run, other = box.run("return tools.pet().breed"), box.run("return tools.pet().size")
        value = box.run("return tools.pet().spitz")
        probed = box.run("local r = tools.pet{} if r.error or r.success == false then return 0 end return r.name")
    assert (run.value, run.notes) == ("spitz", ())  # the result shows that there is such a field
    assert [note.message for note in other.notes] == ["the field 'size' is not in the result of tools.pet"]
    assert len(value.notes) == 1, "it is a value, and no field"
    assert (probed.value, probed.notes) == ("Rex", ())  # a failure might have come as data


class NoSuchOrder(Exception):
    pass


class NoSuchOrderYet(NoSuchOrder):
    pass


class OrderNotFound(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NoSuchOrder("#1"), "gone"),
        (NoSuchOrderYet("#1"), "gone"),
        (KeyError("#1"), "invalid"),
        (ValueError("Order not found"), "not_found"),
        (ValueError("the order #1 does not exist"), "not_found"),
        (OrderNotFound("#1"), "not_found"),
        (RuntimeError("status code: 404"), "not_found"),
        (RuntimeError("the name already exists"), "conflict"),
        (RuntimeError("Permission denied"), "denied"),
        (RuntimeError("Too many requests"), "rate_limited"),
        (ValueError("the order is odd"), "tool_error"),
    ],
)
def test_codes_of_exceptions(error: Exception, code: str) -> None:
    @tool(errors={NoSuchOrder: "gone", KeyError: "invalid"})
    def load() -> int:
        raise error

    with Sandbox([load]) as box:
        run = box.run("local ok, e = pcall(tools.load) return e.code, e.retryable")
    assert run.values == (code, code == "rate_limited")


def test_errors_are_codes_by_class() -> None:
    with pytest.raises(ToolDefinitionError) as raised:
        tool(errors={"KeyError": "invalid"})(lambda: None)  # type: ignore[dict-item]
    assert "a lambda has no name" in str(raised.value)
    with pytest.raises(ToolDefinitionError) as raised:

        @tool(errors={"KeyError": "invalid"})  # type: ignore[dict-item]
        def load() -> int:
            return 1

    assert str(raised.value) == (
        "tool 'load': errors must have a code for each class of exceptions, such as {LookupError: 'not_found'}, "
        "not {'KeyError': 'invalid'}"
    )


@pytest.mark.parametrize(
    ("declared", "value", "note"),
    [
        (
            list[dict[str, int]],
            [1],
            "the first element of the result of odd is of type integer, not object as declared",
        ),
        (list[int], [1, "x"], None),
        (Animal, {"name": 1}, "the field 'name' of the result of odd is of type integer, not string as declared"),
        (
            list[Animal],
            [{"name": None}],
            "the field 'name' of the first element of the result of odd is of type null, not string as declared",
        ),
        (list[Animal], [Dog(name="Rex", breed="spitz")], None),
        (Animal, {}, None),
    ],
)
def test_a_result_that_is_wrong_inside_is_noted(declared: Any, value: Any, note: str | None) -> None:
    def odd():
        return value

    odd.__annotations__["return"] = declared
    with Sandbox([odd]) as box:
        run = box.run("return tools.odd{}")
    assert [found.message for found in run.notes] == ([] if note is None else [note])
