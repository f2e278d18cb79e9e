"""Which name was meant."""

from __future__ import annotations

import pytest

from moonbox.languages.lua.vocabulary import Tools
from moonbox.suggest import did_you_mean, nearest
from tests.languages.lua.explain.bench import MOST_CALLS, calls_made


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("tostrng", ["tostring", "tonumber"], ["tostring"]),
        ("Print", ["print", "pairs"], ["print"]),
        ("getWeather", ["get_weather", "get_news"], ["get_weather"]),
        ("weather_get", ["get_weather", "get_news"], ["get_weather"]),
        ("pirnt", ["print"], ["print"]),
        ("itmes", ["items", "times"], ["items"]),
        ("total", ["totals"], ["totals"]),
        ("get", ["set"], []),
        ("x", ["y"], []),
        ("ab", ["abc"], []),
        ("apple", ["orange"], []),
        ("", ["a"], []),
        ("n" * 500, ["n" * 501], []),
    ],
)
def test_nearest(name: str, options: list[str], expected: list[str]) -> None:
    assert nearest(name, options) == expected


def test_words_are_compared_only_when_asked() -> None:
    assert nearest("issue", ["create_issue", "send_mail"]) == []
    assert nearest("issue", ["create_issue", "send_mail"], parts=True) == ["create_issue"]


def test_did_you_mean() -> None:
    assert did_you_mean([]) is None
    assert did_you_mean(["a"]) == "did you mean a?"
    assert did_you_mean(["a", "b", "c"]) == "did you mean a, b or c?"


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
def test_tools(path: str, expected: list[str]) -> None:
    tools = Tools(["echo", "github.create_issue", "github\x1flist_issues", "weather.get_forecast"])
    assert tools.nearest(path) == expected


def test_tools_with_odd_names_are_written_in_brackets() -> None:
    assert Tools.written("github.create_issue") == "tools.github.create_issue"
    assert Tools.written("odd-name") == 'tools["odd-name"]'
    assert Tools.written("end") == 'tools["end"]'


def test_thousands_of_tools_are_searched_in_few_steps() -> None:
    tools = Tools([f"space{n % 50}.create_thing_number_{n}" for n in range(5_000)])
    assert calls_made(lambda: tools.nearest("space1.creat_thing_numbr_x")) < MOST_CALLS
