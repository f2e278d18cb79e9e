"""What a Call's record says of its arguments: a dict by name wherever they can be named, else the list as given."""

from __future__ import annotations

from typing import Any

import pytest

from moonbox import Sandbox, tool
from tests.script_cases import ISOLATIONS


@tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tool
def keep(items: list[int]) -> int:
    """Takes a list."""
    return len(items)


CASES: list[tuple[str, Any]] = [
    ("tools.add{a = 1}", {"a": 1, "b": 1}),
    ("tools.add(1, 2)", {"a": 1, "b": 2}),
    ("tools.add{1, b = 2}", {"a": 1, "b": 2}),
    ("tools.keep{1, 2}", {"items": [1, 2]}),
    # refused, and still named
    ('tools.add{a = "x"}', {"a": "x"}),
    ('tools.add("x")', {"a": "x"}),
    ("tools.add{b = 2, c = 3}", {"b": 2, "c": 3}),
    ("tools.add()", {}),
    ("tools.add{}", {}),
    ('tools.keep("x")', {"items": "x"}),
    # named as far as there are names
    ("tools.add(1, 2, 3)", {"a": 1, "b": 2, 3: 3}),
    ("tools.add{1, a = 2}", {1: 1, "a": 2}),
    # functions of the host have no names for theirs
    ("double(4)", [4]),
    ("double{a = 4}", [{"a": 4}]),
]


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_arguments_of_calls(isolation: Any) -> None:
    with Sandbox([add, keep], isolation=isolation) as box, box.repl() as repl:
        repl.define("double", lambda value: value * 2)
        for source, expected in CASES:
            run = repl.run(f"local ok, result = pcall(function() local r = {source} return r end)\nreturn ok")
            assert [call.arguments for call in run.calls] == [expected], source


def test_arguments_of_direct_calls() -> None:
    with Sandbox([add]) as box:
        assert box.call("add", {"a": "x"}).calls[0].arguments == {"a": "x"}
        assert box.call("nope", {"a": 1}).calls[0].arguments == {"a": 1}
        assert box.call("add", [1, 2, 3]).calls[0].arguments == {"a": 1, "b": 2, 3: 3}
