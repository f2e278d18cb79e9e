"""Tests of search over tools."""

from __future__ import annotations

import pytest

from moonbox.tools.search import ToolSearch, close_to, words
from moonbox.tools.tool import Tool
from moonbox.tools.toolbox import Toolbox


def made(name: str, description: str = "", **parameters: str) -> Tool:
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    schema = {"type": "object", "properties": properties}
    return Tool.from_schema(name=name, description=description, parameters=schema, call=lambda args: None)


BOX = Toolbox(
    [
        made(
            "createIssue",
            "Open a new ticket in a repository.",
            title="Heading of the ticket",
            assignee="Who works on it",
        ),
        made("list_commits", "List the commits of a branch.", branch=""),
        made("get_weather", "Current temperature and conditions at a place.", city="Name of the city"),
        made("send_email", "Send a message to someone.", recipient="", subject=""),
        made("archive", "Create an issue of the archive.", year=""),
        made("convert_currency", "Convert an amount from one currency to another.", amount="", source="", target=""),
    ]
)


def first(query: str) -> str:
    return ToolSearch(BOX).search(query)[0][0].path


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("create issue", "createIssue"),
        ("create_issue", "createIssue"),
        ("createIssue", "createIssue"),
        ("creating issues", "createIssue"),
        ("tickets", "createIssue"),
        ("assignee", "createIssue"),
        ("wether", "get_weather"),
        ("temperatur", "get_weather"),
        ("commi", "list_commits"),
        ("currencies", "convert_currency"),
        ("please send mails to the recipients", "send_email"),
        ("Städte CITY", "get_weather"),
    ],
)
def test_the_right_tool_comes_first(query: str, path: str) -> None:
    assert first(query) == path


def test_names_weigh_more_than_descriptions() -> None:
    ranked = [found.path for found, _ in ToolSearch(BOX).search("create issue")]
    assert ranked[:2] == ["createIssue", "archive"]


def test_scores_fall_and_the_limit_holds() -> None:
    found = ToolSearch(BOX).search("the message of an issue in a city", limit=2)
    assert len(found) == 2
    assert found[0][1] >= found[1][1] > 0


@pytest.mark.parametrize("query", ["", "   ", "the of a", "qqqqqqqq", "🎉"])
def test_nothing_found(query: str) -> None:
    assert ToolSearch(BOX).search(query) == []


def test_changes_of_the_toolbox_are_seen() -> None:
    box = Toolbox([made("one")])
    search = ToolSearch(box)
    assert search.search("penguin") == []
    box.add(made("count_penguins"))
    assert search.search("penguin")[0][0].path == "count_penguins"
    box.remove("count_penguins")
    assert search.search("penguin") == []


def test_equal_tools_come_in_the_order_of_their_paths() -> None:
    box = Toolbox([made("b_same"), made("a_same")])
    assert [found.path for found, _ in ToolSearch(box).search("same")] == ["a_same", "b_same"]


def test_an_iterable_of_tools_is_enough() -> None:
    assert ToolSearch([made("alone")]).search("alone")[0][0].path == "alone"


def test_words() -> None:
    assert words("getHTTPResponse2 of_the files") == words("get http response 2 file")
    assert words("Café") == words("cafe")
    assert words("calculate") == words("calculations") == words("calculating") == words("compute")
    assert words("天気予報") == ["天気", "気予", "予報"]


@pytest.mark.parametrize(
    ("word", "other", "close"),
    [
        ("weather", "wether", True),
        ("weather", "weahter", True),
        ("weather", "weathers", True),
        ("weather", "wexther", True),
        ("weather", "weather", True),
        ("weather", "whether", False),
        ("ab", "ba", True),
        ("abcd", "badc", False),
        ("a", "", True),
    ],
)
def test_one_slip(word: str, other: str, close: bool) -> None:
    assert close_to(word, other) is close
    assert close_to(other, word) is close
