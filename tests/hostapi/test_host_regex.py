"""regex functions: what they find, and patterns that would stop another engine."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.errors import ArgumentError, ToolError
from moonbox.scripts.hostapi import HostApi, HostLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    MakeApi = Callable[..., HostApi]


def test_match(make_api: MakeApi) -> None:
    api = make_api()
    assert api.call("regex.match", [r"(?P<year>\d+)-(\d+)?-?", "é 2026-x"]) == {
        "text": "2026-",
        "start": 4,
        "stop": 8,
        "groups": ["2026", None],
        "names": {"year": "2026"},
    }
    assert api.call("regex.match", ["^b", "ab"]) is None
    assert api.call("regex.match", ["^B.c$", "a\nb\nc\n", {"ignore_case": True, "multiline": True, "dot_all": True}])
    assert api.call("regex.match", ["é", "caf\u00e9"])["start"] == 4
    assert api.call("regex.match", ["", ""]) == {"text": "", "start": 1, "stop": 0, "groups": [], "names": {}}


def test_binary_text(make_api: MakeApi) -> None:
    found = make_api().call("regex.match", [b"\xfe.", b"a\xfe\xffb"])
    assert (found["text"], found["start"], found["stop"]) == (b"\xfe\xff", 2, 3)


def test_find_all_replace_split(make_api: MakeApi) -> None:
    api = make_api()
    found = api.call("regex.find_all", [r"(\w)=(\d)", "a=1, b=2, c=3"])
    assert [match["groups"] for match in found] == [["a", "1"], ["b", "2"], ["c", "3"]]
    assert len(api.call("regex.find_all", ["a", "aaaa", {"limit": 2}])) == 2
    assert [match["start"] for match in api.call("regex.find_all", ["x*", "éx"])] == [1, 3, 4]
    assert api.call("regex.replace", [r"(?P<k>\w)=(\d)", "a=1, b=2", "${2}:${k}$$"]) == "1:a$, 2:b$"
    assert api.call("regex.replace", ["a|(b)", "ab", "[$1]", {"limit": 5}]) == "[][b]"
    assert api.call("regex.replace", ["a", "aaa", "$0$0", {"limit": 1}]) == "aaaa"
    assert api.call("regex.split", [r"\s*,\s*", "a , b,,c"]) == ["a", "b", "", "c"]
    assert api.call("regex.split", [",", "a,b,c", {"limit": 1}]) == ["a", "b,c"]
    assert api.call("regex.replace", ["x*", "éx", "-"]) == "-é--"
    assert api.call("regex.split", ["x*", "axb"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("regex.match", ["(a", "x"], "regex.match: invalid pattern: missing ): (a"),
        ("regex.match", ["(?=a)", "x"], "regex.match: invalid pattern: invalid perl operator: (?="),
        ("regex.match", [r"(a)\1", "x"], r"regex.match: invalid pattern: invalid escape sequence: \1"),
        ("regex.match", ["a{1,1001}", "x"], "regex.match: invalid pattern: invalid repetition size: {1,1001}"),
        ("regex.match", ["a" * 10_001, "x"], "regex.match: the pattern is longer than 10,000 bytes"),
        ("regex.replace", ["(a)", "x", "$2"], "regex.replace: unknown group '2'"),
        ("regex.replace", ["(a)", "x", "${" + "9" * 5000 + "}"], f"regex.replace: unknown group '{'9' * 60}…'"),
        ("regex.replace", ["(a)", "x", "${n}"], "regex.replace: unknown group 'n'"),
    ],
)
def test_wrong_patterns(make_api: MakeApi, name: str, args: list[Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        make_api().call(name, args)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a+)+$", "a" * 100_000 + "!"),
        ("(a|aa)+$", "a" * 100_000 + "!"),
        ("(.*)*x", "a" * 100_000),
        ("(x+x+)+y", "x" * 100_000),
        ("^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 100_000),
        (r"(\w*)*\W", "a" * 100_000),
        ("(a?){50}a{50}", "a" * 50),
    ],
)
def test_patterns_that_would_never_end_in_another_engine(make_api: MakeApi, pattern: str, text: str) -> None:
    match = make_api().call("regex.match", [pattern, text])
    assert match is None or match["text"] == text


@pytest.mark.parametrize(
    "pattern", ["(a?){500}b", "(?:(a)|(b)|(a.)|(..)){400}$", "((a{0,100}){0,10}){0,1}b", "(" * 300 + ".*" + ")" * 300]
)
def test_a_pattern_that_is_large_is_refused_for_a_large_text(make_api: MakeApi, pattern: str) -> None:
    """RE2 is linear in the text, but each step costs as much as the pattern is large."""
    with pytest.raises(ToolError) as caught:
        make_api().call("regex.match", [pattern, "a" * 1_000_000])
    assert (caught.value.code, caught.value.tool) == ("too_large", "regex.match")
    assert "the pattern is too large for 1,000,000 bytes of text, at most " in str(caught.value)


@pytest.mark.parametrize("name", ["regex.find_all", "regex.replace", "regex.split"])
def test_many_searches_over_the_whole_text_end_with_the_clock(make_api: MakeApi, name: str) -> None:
    """Each match makes the engine look through all the rest: quadratic in any engine."""
    clock = itertools.count()  # each look at it takes a second
    api = make_api(limits=HostLimits(regex_seconds=20, max_matches=1_000_000), timer=lambda: next(clock))
    args = [".*[^A]|[A]", "A" * 20_000] if name != "regex.replace" else [".*[^A]|[A]", "A" * 20_000, "x"]
    with pytest.raises(ToolError) as caught:
        api.call(name, args)
    assert (caught.value.code, str(caught.value)) == ("timeout", f"{name} took more than 20 s of processor time")
    assert next(clock) == 22, "it stopped at the first match after the time was up"


def test_results_are_bounded(make_api: MakeApi) -> None:
    api = make_api()
    with pytest.raises(ToolError, match=r"regex\.find_all found more than 10,000 matches; give options\.limit"):
        api.call("regex.find_all", ["a", "a" * 20_000])
    for name in ("regex.match", "regex.find_all"):
        with pytest.raises(ToolError, match=rf"{name} gives more than 100,000 bytes"):
            make_api(limits=HostLimits(max_text=100_000)).call(name, ["(" * 20 + ".*" + ")" * 20, "a" * 10_000])
    with pytest.raises(ToolError, match=r"regex\.find_all gives more than"):
        make_api(timer=lambda: 0.0).call("regex.find_all", ["(x)?" * 60 + "a", "a" * 9_000])
    with pytest.raises(ToolError, match=r"regex\.replace gives more than 10,000,000 bytes"):
        api.call("regex.replace", [".*", "a" * 1_000_000, "$0" * 50_000])
    with pytest.raises(ToolError, match=r"at most 100,000 bytes"):
        api.call("regex.replace", ["a", "a", "x" * 100_001])


def test_patterns_do_not_pile_up(make_api: MakeApi) -> None:
    import re2

    api = make_api()
    for number in range(100):
        api.call("regex.match", [f"a{number}", "a"])
    assert re2._Regexp._make.cache_info().currsize == 0
