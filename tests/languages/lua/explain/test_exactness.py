"""Hints must not be wrong: scripts that look like a slip and are none, or where nothing is known for sure."""

from __future__ import annotations

import pytest

from tests.languages.lua.explain.bench import CASES, Bench


@pytest.mark.parametrize("source", CASES["silent"])
def test_no_hint(source: str, bench: Bench) -> None:
    assert bench.fails(source).hint is None


@pytest.mark.parametrize(("source", "hint"), CASES["hints"])
def test_the_right_hint(source: str, hint: str, bench: Bench) -> None:
    assert bench.fails(source).hint == hint


def test_a_tool_failure_that_will_not_pass_has_no_hint() -> None:
    bench = Bench(failures={"save": {"code": "full", "message": "disk full", "tool": "save", "retryable": False}})
    assert bench.fails("local x = tools.save{}\nreturn x").hint is None


def test_names_that_the_sandbox_opens_are_not_called_absent() -> None:
    bench = Bench(features=["coroutines", "metatables"])
    assert bench.run("setmetatable({}, {}) coroutine.wrap(function() end)()") is None
    assert bench.fails("coroutine.yield(1)").hint == (
        "coroutine.yield works only inside a function that coroutine.wrap or coroutine.create runs"
    )


def test_a_function_of_the_scripts_own_is_preferred_to_another_languages(bench: Bench) -> None:
    assert bench.run("function total(list) return #list end") is None
    assert bench.fails("return totl({})").hint == "did you mean total?"
    assert bench.fails("return len({})\n").hint == "Lua has no len; write: #{}"
    assert bench.run("function len(list) return #list end return len({})") is None
