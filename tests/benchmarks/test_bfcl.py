"""The leaderboard's tasks: how its calls, schemas and results are read. The package itself is not needed."""

from __future__ import annotations

import pytest


def test_how_a_call_is_read() -> None:
    from tokens.bfcl import _known_call
    from tokens.conversation import Failed

    order = {"sort": ["file_name"], "mv": ["source", "destination"]}
    assert _known_call("sort('a.txt')", order) == ("sort", {"file_name": "a.txt"})
    assert _known_call("mv('a', destination=['b', 1.5])", order) == ("mv", {"source": "a", "destination": ["b", 1.5]})
    with pytest.raises(Failed, match="not a plain call"):
        _known_call("a.b()", {})


def test_its_types_become_those_of_json_schema() -> None:
    from tokens.bfcl import _schema

    given = {
        "type": "dict",
        "properties": {
            "type": {"type": "string", "default": "None"},
            "amounts": {"type": "tuple", "items": {"type": "float"}, "default": [1.0]},
        },
    }
    assert _schema(given) == {
        "type": "object",
        "properties": {
            "type": {"type": "string"},
            "amounts": {"type": "array", "items": {"type": "number"}, "default": [1.0]},
        },
    }


def test_results_are_compared_as_the_benchmark_writes_them() -> None:
    from tokens.bfcl import _comparable, _parsed, _presentable

    for value, text in (({"a": [1]}, '{"a": [1]}'), ("plain", "plain"), (None, "None"), (2.5, "2.5")):
        assert _comparable(value) == _comparable(_parsed(text))
        assert _comparable(value) != _comparable(_parsed("other"))
    assert _presentable({"a": 1}) == {"a": 1}
    assert _presentable([1, ...]) == "[1, Ellipsis]", "what JSON cannot hold goes as text"


def test_tools_carry_their_own_part_of_the_description() -> None:
    from tokens.bfcl import _tool

    document = {
        "name": "cat",
        "description": "This tool belongs to a file system. Tool description: Show a file.",
        "parameters": {"type": "dict", "properties": {"file_name": {"type": "string"}}, "required": ["file_name"]},
    }
    made = _tool(document, lambda file_name: {"content": file_name})
    assert made.description == "Show a file."
    assert made.call({"file_name": "x"}) == {"content": "x"}
