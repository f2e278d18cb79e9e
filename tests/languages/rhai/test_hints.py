"""Hints for scripts in Rhai: slips from Rust, reserved words as keys, limits with their number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Sandbox, tool
from moonbox.languages.rhai.vocabulary import rhai_words

if TYPE_CHECKING:
    from collections.abc import Iterator


@tool
def add(a: int, b: int = 1) -> int:
    """The sum."""
    return a + b


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with Sandbox([add], language="rhai", isolation="inline", check=False) as box:
        yield box


def failure(box: Sandbox, source: str, **limits: Any) -> Any:
    error = box.run(source, limits=Limits(**limits)).error
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
        ("x = 5; x", "a variable is declared before it is assigned; write: let x = 5;"),
        ("let total = 1;\nif totl == 1 { 2 }", "did you mean total?"),
        ("JSON.stringify(1)", "write: to_json(x), or parse_json(text)"),
        ("json_encode(1)", "write: to_json(x)"),
        (
            "Math.floor(1.5)",
            "numbers have methods: x.floor(), x.round(), x.sqrt(); max(a, b) and min(a, b) are functions",
        ),
        ("let m = #{match: 1};", 'a reserved word as a name is written in quotes: #{"match": …}'),
        ("let m = #{a: 1,\n  default: 2};", 'a reserved word as a name is written in quotes: #{"default": …}'),
        ("let m = #{fn: 2};", 'a keyword as a name is written in quotes: #{"if": 1}, map["if"]'),
    ],
)
def test_a_slip(box: Sandbox, source: str, hint: str) -> None:
    assert failure(box, source).hint == hint


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
def test_a_limit(box: Sandbox, source: str, limits: dict[str, Any], line: int, hint: str) -> None:
    error = failure(box, source, **limits)
    assert (error.kind, error.hint) == ("limit", hint)
    assert error.line == line


RECEIVERS = ("[1, 2]", '["a", "b"]', '"a,b"', "#{a: 1}", "()", "1.5", '"12"')


def runs(box: Sandbox, code: str) -> bool:
    """Whether what a hint shows is Rhai and works on a value of some type."""
    code = (
        code.replace(".map(|x| …)", ".map(|x| x)")
        .replace("|x| …", "|x| x != ()")
        .replace("{ … }", "{ 1; }")
        .replace("condition", "true")
        .rstrip(".")
    )
    for receiver in RECEIVERS:
        values = f'let list = {receiver}; let text = "1"; let map = #{{a: 1}}; let x = list; let a = 1; let b = 1; '
        values += "let start = 0; let end = 1; let length = 1; "
        if box.run(values + code).ok:
            return True
    return False


def shown(hint: str) -> list[str]:
    """The code in a hint: what follows `write: `, up to a remark."""
    code = hint.partition("write: ")[2].partition("; map passes")[0]
    code = code.partition(", which")[0].replace(", or ", " or ")
    return code.split(" or ") if code else []


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (name, code)
        for name in sorted(rhai_words().foreign_methods)
        for argument in ["|x| x" if name == "sum" else '"a"', *(["…"] if name == "sum" else [])]
        for code in shown(rhai_words().foreign_method(name, "list", (argument,)) or "")
    ],
)
def test_the_code_in_hints_for_methods_works(box: Sandbox, name: str, code: str) -> None:
    assert runs(box, code) or runs(box, code.replace('"a"', "1")), code


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (name, code)
        for name, hint in sorted({**rhai_words().foreign_functions, **rhai_words().foreign_names}.items())
        for code in shown(hint)
    ],
)
def test_the_code_in_hints_for_functions_works(box: Sandbox, name: str, code: str) -> None:
    if code.startswith(("throw", "if ")):
        code = f"try {{ {code.rstrip(';')}; }} catch {{ 1 }}"
    assert runs(box, code), code


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("let e = #{m: ()}; !e.m", "a missing value is (), which is not false: write x == ()"),
        ("let m = #{}; m.n += 1; m", "one of the values is missing, (): give it a default, as in (x ?? 0) + 1"),
        ("let m = #{}; 2 * m.n", "one of the values is missing, (): give it a default, as in (x ?? 0) + 1"),
    ],
)
def test_a_missing_value(box: Sandbox, source: str, hint: str) -> None:
    error = box.run(source).error
    assert error is not None and error.hint == hint
    assert box.run("let x = (); [x == (), (x ?? 0) + 1]").value == [True, 1]


def test_a_field_of_a_text_is_an_error_in_rhais_own_words(box: Sandbox) -> None:
    error = box.run('let t = "a"; let u = [t]; u[0].content.x').error
    assert error is not None
    assert error.message == (
        "Unknown property 'content' - a getter is not registered for type 'string' (line 1, position 32)"
    )
