"""Hints for scripts in Rhai: slips from Rust, reserved words as keys, limits with their number."""

from __future__ import annotations

from typing import Any

import pytest

from moonbox import Limits, Sandbox, tool


@tool
def add(a: int, b: int = 1) -> int:
    """The sum."""
    return a + b


def failure(source: str, **limits: Any) -> Any:
    with Sandbox([add], language="rhai", isolation="inline", check=False, limits=Limits(**limits)) as box:
        error = box.run(source).error
    assert error is not None
    return error


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("let v = vec![1, 2];", "there are no macros: an array is written [1, 2]"),
        ('println!("x {}", 1);', "there are no macros; write: print(x)"),
        ('format!("{}", 1)', "there are no macros; put values into text with backticks: `total: ${x}`"),
        ("let v = [1]; v.iter()", "lists need no iterator: for x in list { … }, or list.map(|x| …)"),
        ("let v = [1]; v.enumerate()", "write: for (x, index) in list { … }; map passes no index"),
        ("Some(1)", "there is no Option: a missing value is ()"),
        ('"a".to_uppercase()', "write: list.to_upper()"),
        ("let m = #{match: 1};", 'a reserved word as a name is written in quotes: #{"match": …}'),
        ("let m = #{a: 1,\n  default: 2};", 'a reserved word as a name is written in quotes: #{"default": …}'),
        ("let m = #{fn: 2};", 'a keyword as a name is written in quotes: #{"if": 1}, map["if"]'),
    ],
)
def test_a_slip(source: str, hint: str) -> None:
    assert failure(source).hint == hint


@pytest.mark.parametrize(
    ("source", "limits", "line", "hint"),
    [
        (
            "let i = 0;\nloop { i += 1; }",
            {"max_operations": 1_000},
            2,
            (
                "max_operations is 1000: do less in one run: filter in the tool calls, work on fewer items, or split "
                "the work over several runs"
            ),
        ),
        (
            'let s = "x";\nloop { s += s; }',
            {"max_string": 1_000},
            2,
            "max_string is 1000: make shorter strings: work on parts, or keep the parts in a list",
        ),
        (
            "let a = [];\nloop { a.push(1); }",
            {"max_array": 100},
            2,
            "max_array is 100: keep fewer elements: work on parts, and keep only what is needed",
        ),
        (
            "fn f(n) { f(n + 1) }\nf(1)",
            {},
            2,
            "a function calls itself too often: add a case that returns without another call, or use a loop",
        ),
        (
            "let x = 1;\nfor i in 0..9 {\n  add(#{a: i});\n}",
            {"max_tool_calls": 2},
            3,
            (
                "a run may make 2 tool calls (max_tool_calls): ask for more with each call, or split the work over "
                "several runs"
            ),
        ),
    ],
)
def test_a_limit(source: str, limits: dict[str, Any], line: int, hint: str) -> None:
    error = failure(source, **limits)
    assert (error.kind, error.hint) == ("limit", hint)
    assert error.line == line
