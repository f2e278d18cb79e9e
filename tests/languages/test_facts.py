"""Facts that the checker and the explanations share: the tool that was meant."""

from __future__ import annotations

import pytest

from moonbox.languages.facts import nearest_tools, unknown_tool
from moonbox.languages.lua.vocabulary import tool_name
from tests.counting import count_calls
from tests.languages.lua.explain.bench import MOST_CALLS, TOOLS


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("create_issue", ["github.create_issue"]),
        ("github.creat_issue", ["github.create_issue"]),
        ("githb.create_issue", ["github.create_issue"]),
        ("gitlab.create_issue", ["github.create_issue"]),
        ("forecast", ["weather.get_forecast"]),
        ("getForecast", ["weather.get_forecast"]),
        ("quux", []),
    ],
)
def test_nearest_tools(path: str, expected: list[str]) -> None:
    assert nearest_tools(path, TOOLS) == expected


@pytest.mark.parametrize(
    ("tools", "hint"),
    [
        ((), "there are no tools here"),
        (("add", "odd-name"), 'the tools are: tools.add, tools["odd-name"]'),
        (("end", "searching"), "did you mean tools.searching?"),
        ([f"tool_{letter}" for letter in "abcdefghijklmnopqrst"], "no tool has that name; FIND finds tools"),
    ],
)
def test_a_tool_that_does_not_exist(tools: list[str], hint: str) -> None:
    assert unknown_tool("serching", tools, tool_name, "FIND") == hint


def test_thousands_of_tools_are_searched_in_few_steps() -> None:
    tools = [f"space{n % 50}.create_thing_number_{n}" for n in range(5_000)]
    assert count_calls(lambda: nearest_tools("space1.creat_thing_numbr_x", tools)) < MOST_CALLS
