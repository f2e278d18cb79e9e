"""Hostile scripts and reports: explaining them is quick and never fails."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moonbox.languages.language import EngineError
from moonbox.languages.lua.explain.compose import compose, explain
from moonbox.limits import Limits
from tests.counting import count_calls
from tests.languages.lua.explain.bench import MOST_CALLS, Bench
from tests.long import LONG, times

MILLION = times(1_000_000)
LARGE = {
    "names": "x " * (MILLION // 2),
    "bangs": "!" * MILLION,
    "quotes": '"' * MILLION,
    "backslashes": '"' + "\\" * MILLION,
    "parentheses": "(" * MILLION,
    "braces": "{" * MILLION,
    "delimiters": "[" + "=" * MILLION,
    "long strings": "[=[" * (MILLION // 3),
    "long comments": "--[==[" * (MILLION // 6),
    "exponents": "1e+" * (MILLION // 3),
    "sums": "x + " * (MILLION // 4),
    "lines": "x = 1\n" * (MILLION // 6) + "x y",
    "letters": "é" * MILLION,
    "calls": "f(x) " * 12_000 + "!",
    "conditions": "if x then " * 6_000,
    "indexes": "a[b[" * 15_000,
    "increments": "x++ " * 15_000,
    "comments": "// a b " * 8_000,
    "fields": "{" + "a: 1, " * 9_000 + "}",
    "strings": '"a" ' * 15_000,
    "else ifs": "if x then else if x then " * 2_400,
}
MESSAGES = (
    "script:1: attempt to call a nil value (global 'len')",
    "script:1: attempt to index a nil value (field 'b')",
    "script:1: attempt to index a nil value (field '?')",
    "script:1: bad argument #1 to 'len' (string expected, got nil)",
    "script:1: attempt to compare number with nil",
    "attempt to index a nil value",
)
WIDE = {
    "fields": "x = " + "a.b.c + " * 8_000 + "1",
    "calls": "f(g(len(" * 5_000,
    "brackets": "a[" * 20_000 + "1" + "]" * 20_000,
    "brackets within the limit": "a[" * 3_500 + "1" + "]" * 3_500,
    "functions": "local len = function() len(x) end " * 1_000,
    "chains": "a" + ".b" * 5_000,
    "chains in brackets": "a[b" * 2_500 + "].b" * 2_500,
    "locals": "local a = 1\n" * 5_000 + "len(x)",
}


@pytest.mark.parametrize("name", LARGE)
def test_large_scripts_that_are_not_lua(name: str, bench: Bench) -> None:
    report = bench.error(LARGE[name])
    assert report is not None
    errors: list[Any] = []
    assert count_calls(lambda: errors.append(bench.explain(report))) < MOST_CALLS
    [error] = errors
    assert len(error.message) < 200
    assert len(error.traceback) < 400
    assert len(error.hint or "") < 300


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (name, message)
        for (number, name), (turn, message) in itertools.product(enumerate(WIDE), enumerate(MESSAGES))
        if LONG or (number + turn) % 3 == 0
    ],
)
def test_large_scripts_that_fail(name: str, message: str) -> None:
    bench = Bench(tools=())
    bench.sources["script"] = WIDE[name]
    report = EngineError("runtime", message, frames=(("script", 1, "main chunk"),))
    assert count_calls(lambda: bench.explain(report)) < MOST_CALLS


def test_long_messages_are_cut(bench: Bench) -> None:
    error = bench.fails('error(("x"):rep(1000000))')
    assert len(error.message) == 4_001
    assert error.message.endswith("x…")


def test_long_tokens_are_cut_in_the_message(bench: Bench) -> None:
    error = bench.fails(f"local x = 1\nlocal {'y' * 500} z {'w' * 500}")
    assert len(error.message) < 100
    assert error.message.startswith("syntax error near 'wwww") and error.message.endswith("…'")


def test_scripts_nested_too_deeply(bench: Bench) -> None:
    error = bench.fails("return " + "(" * 1_000 + "1" + ")" * 1_000)
    assert (error.kind, error.message) == ("syntax", "C stack overflow")
    assert error.hint == "the script is nested too deeply: put fewer brackets and blocks inside each other"


TEXT = st.text(max_size=200)
NUMBERS = st.integers(-(2**40), 2**40)
DATA: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
)
WORDS = st.lists(
    st.sampled_from(
        ["tools", "x", ".", ":", "(", ")", "[", "]", "{", "}", "0", "for", "in", "=", "do", "'a'", "..", "\n", "local"]
    ),
    max_size=20,
).map(" ".join)
REPORTS = st.builds(
    lambda **fields: EngineError(**fields),
    kind=st.sampled_from(["syntax", "runtime", "tool", "stop", "nonsense"]),
    message=st.sampled_from(MESSAGES) | TEXT | TEXT.map(lambda text: f"script:1: {text} near '{text}'"),
    limit=st.sampled_from(["", "time", "memory", "cancelled", "nonsense"]),
    frames=st.lists(st.tuples(st.sampled_from(["script", "script#2", "x"]), NUMBERS, TEXT), max_size=5).map(tuple),
    extra=st.fixed_dictionaries({"data": st.just([]) | st.tuples(DATA).map(list), "names": st.lists(TEXT, max_size=5)}),
)


@settings(max_examples=times(160), deadline=None)
@given(REPORTS, WORDS | TEXT, st.lists(TEXT, max_size=4))
def test_any_report_is_explained(ending: EngineError, source: str, tools: list[str]) -> None:
    error = compose(ending, sources={"x": "y = 1", "script": source}, tools=tools, limits=Limits())
    assert error.kind in ("syntax", "runtime", "tool", "denied", "limit", "cancelled")
    assert error.message or not ending.message.strip() or ending.message.startswith("script:")


@settings(max_examples=times(160), deadline=None)
@given(WORDS, st.sampled_from(["global", "local", "field", "method", "upvalue"]), st.sampled_from(["call", "index"]))
def test_any_complaint_is_explained(source: str, role: str, action: str) -> None:
    for name in ("tools", "x", "?", "integer index", "length"):
        message = f"script:1: attempt to {action} a nil value ({role} '{name}')"
        ending = EngineError("runtime", message, frames=(("script", 1, "main chunk"),), extra={"names": ["tool", "xx"]})
        error = compose(ending, sources={"script": source}, tools=["x.y"], limits=Limits())
        assert (error.kind, error.line) == ("runtime", 1)


def test_a_flaw_in_a_hint_does_not_cost_the_error() -> None:
    broken: Any = {"script": 5}
    error = explain(EngineError("runtime", "script:1: boom"), sources=broken, tools=(), limits=Limits())
    assert (error.kind, error.message, error.hint) == ("runtime", "script:1: boom", None)
    stopped = explain(EngineError("stop", "too long", "time"), sources=broken, tools=(), limits=Limits())
    assert (stopped.kind, stopped.limit, stopped.message) == ("limit", "time", "too long")


def test_no_source_at_all() -> None:
    error = explain(EngineError("runtime", "script:3: boom"), sources={}, tools=(), limits=Limits())
    assert (error.kind, error.message, error.line, error.traceback) == ("runtime", "boom", 3, "")
