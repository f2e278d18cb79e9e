"""Suggestions: which name was meant, and how a message says so."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moonbox.suggest import did_you_mean, nearest, suggestion, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("employe_id", ["employee_id", "limit"], ["employee_id"]),
        ("employeeId", ["limit", "employee_id"], ["employee_id"]),
        ("issue", ["create_issue", "close_issue", "add"], ["close_issue", "create_issue"]),
        ("create_issue", ["github.create_issue", "mail.send"], ["github.create_issue"]),
        ("sue_ad", ["issue_added", "mail"], ["issue_added"]),
        ("github.creat_issue", ["github.create_issue", "github.close_issue"], ["github.create_issue"]),
        ("github-create-issue", ["github.create_issue"], ["github.create_issue"]),
        ("get_curent_wether_of", ["get_current_weather_of"], ["get_current_weather_of"]),
        ("lmiit", ["limit"], ["limit"]),
        ("x", ["employee_id", "y"], []),
        ("zzzz", ["employee_id"], []),
        ("", ["a"], []),
    ],
)
def test_nearest_with_parts(name: str, options: list[str], expected: list[str]) -> None:
    assert nearest(name, options, parts=True, count=3) == expected


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ad", ["add", "sub"], "unknown tool 'ad'; did you mean 'add'?"),
        ("bd", ["add", "sub"], "unknown tool 'bd'; known tools: add, sub"),
        ("addd", ["add", "sub"], "unknown tool 'addd'; did you mean 'add'?"),
        ("zebra", ["b", "a", "b"], "unknown tool 'zebra'; known tools: b, a"),
        ("zebra", [], "unknown tool 'zebra'; there are no tools"),
        ("ze\nb\ud800", [], "unknown tool 'ze\\nb\\ud800'; there are no tools"),
        ("z" * 100, ["a"], f"unknown tool '{'z' * 64}…'; known tools: a"),
        (
            "zebra",
            [f"n{n}" for n in range(25)],
            f"unknown tool 'zebra'; known tools: {', '.join(f'n{n}' for n in range(20))} and 5 more",
        ),
    ],
)
def test_unknown(name: str, options: list[str], message: str) -> None:
    assert unknown("tool", name, options) == message


def test_unknown_with_several_suggestions() -> None:
    near = ["close_issue", "create_issue", "list_issues"]
    assert unknown("tool", "issue", near, count=3) == (
        "unknown tool 'issue'; did you mean 'close_issue', 'list_issues' or 'create_issue'?"
    )


@pytest.mark.parametrize(
    ("what", "plural"), [("policy", "policies"), ("key", "keys"), ("class", "classes"), ("switch", "switches")]
)
def test_plurals(what: str, plural: str) -> None:
    assert unknown(what, "zebra", ["a"]) == f"unknown {what} 'zebra'; known {plural}: a"


def test_suggestion() -> None:
    assert suggestion("limt", ["limit"]) == "; did you mean 'limit'?"
    assert suggestion("zebra", ["limit"]) == ""


def test_did_you_mean() -> None:
    assert did_you_mean(["'a'", "'b'"]) == "did you mean 'a' or 'b'?"
    assert did_you_mean([]) is None


def test_no_more_options_are_read_than_are_compared() -> None:
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        for number in itertools.count():
            read += 1
            yield f"option_number_{number}"

    assert nearest("optoin_number_7", endless(), parts=True) == ["option_number_7"]
    assert read == 5_000


def test_long_names_are_not_compared() -> None:
    long = "n" * 1_000_000
    assert nearest(long, [long + "x", "n"], parts=True) == []
    assert nearest("nnnn", [long], parts=True) == []


def slow_distance(a: str, b: str) -> int:
    """Edits between two words, by the book."""
    if not a or not b:
        return len(a) + len(b)
    best = min(
        slow_distance(a[:-1], b) + 1, slow_distance(a, b[:-1]) + 1, slow_distance(a[:-1], b[:-1]) + (a[-1] != b[-1])
    )
    if len(a) > 1 and len(b) > 1 and a[-1] == b[-2] and a[-2] == b[-1]:
        best = min(best, slow_distance(a[:-2], b[:-2]) + 1)
    return best


@given(st.text("abc", min_size=3, max_size=6), st.text("abc", min_size=3, max_size=6))
def test_distances_are_right(a: str, b: str) -> None:
    allowed = 1 if min(len(a), len(b)) < 6 else 2
    if allowed < 2 and a[0] != b[0]:
        allowed = 0
    assert (nearest(a, [b]) == [b]) == (slow_distance(a, b) <= allowed)
