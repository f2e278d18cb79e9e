"""Hints for scripts in Rhai: slips from Rust, reserved words as keys, limits with their number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Sandbox, tool
from moonbox.languages.rhai.vocabulary import rhai_vocabulary, rhai_words

from .machine import CASES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox import Repl


@tool
def add(a: int, b: int = 1) -> int:
    """The sum."""
    return a + b


@pytest.fixture(scope="module")
def repl() -> Iterator[Repl]:
    with Sandbox([add], language="rhai", isolation="inline", check=False) as box, box.repl() as repl:
        yield repl


def failure(repl: Repl, source: str, **limits: Any) -> Any:
    error = repl.run(source, limits=Limits(**limits)).error
    assert error is not None
    return error


@pytest.mark.parametrize(("source", "hint"), CASES["hints"])
def test_a_slip(repl: Repl, source: str, hint: str) -> None:
    assert failure(repl, source).hint == hint


@pytest.mark.parametrize(("source", "limits", "line", "hint"), CASES["limits"])
def test_a_limit(repl: Repl, source: str, limits: dict[str, Any], line: int, hint: str) -> None:
    error = failure(repl, source, **limits)
    assert (error.kind, error.hint) == ("limit", hint)
    assert error.line == line


RECEIVERS = ("[1, 2]", '["a", "b"]', '"a,b"', "#{a: 1}", "()", "1.5", '"12"')


def runs(repl: Repl, code: str) -> bool:
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
        if repl.run(values + code).ok:
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
        for name in sorted(rhai_words()["foreign_methods"])
        for argument in ["|x| x" if name == "sum" else '"a"', *(["…"] if name == "sum" else [])]
        for code in shown(rhai_vocabulary().method_advice(name, "list", (argument,)) or "")
    ],
)
def test_the_code_in_hints_for_methods_works(repl: Repl, name: str, code: str) -> None:
    assert runs(repl, code) or runs(repl, code.replace('"a"', "1")), code


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (name, code)
        for name, hint in sorted({**rhai_words()["foreign_functions"], **rhai_words()["foreign_names"]}.items())
        for code in shown(hint)
    ],
)
def test_the_code_in_hints_for_functions_works(repl: Repl, name: str, code: str) -> None:
    if code.startswith(("throw", "if ")):
        code = f"try {{ {code.rstrip(';')}; }} catch {{ 1 }}"
    assert runs(repl, code), code


def test_what_hints_say_of_missing_values_works(repl: Repl) -> None:
    assert repl.run("let x = (); [x == (), (x ?? 0) + 1]").value == [True, 1]


def test_a_field_of_a_text_is_an_error_in_rhais_own_words(repl: Repl) -> None:
    error = repl.run('let t = "a"; let u = [t]; u[0].content.x').error
    assert error is not None
    assert error.message == (
        "Unknown property 'content' - a getter is not registered for type 'string' (line 1, position 32)"
    )
