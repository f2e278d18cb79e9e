"""The compiler: results, errors, the cache, and time in proportion to the text."""

from __future__ import annotations

import contextlib
import time

import pytest

from moonbox.errors import MoonboxError
from moonbox.languages.rhai import Compiler, ParseLimits, RhaiSyntaxError, compile


def test_the_same_text_gives_the_same_chunk() -> None:
    assert compile("let x = 1; x + 1") == compile("let x = 1; x + 1")


def test_a_syntax_error_tells_where_and_what_to_write() -> None:
    with pytest.raises(RhaiSyntaxError) as caught:
        compile("let x = 1;\nlet y = null;")
    error = caught.value
    assert isinstance(error, MoonboxError)
    assert (error.message, error.line, error.position) == ("'null' is a reserved keyword", 2, 9)
    assert error.text == str(error) == "Syntax error: 'null' is a reserved keyword (line 2, position 9)"
    assert error.hint == "Rhai has no null: the empty value is ()"


def test_an_error_without_a_position() -> None:
    with pytest.raises(RhaiSyntaxError) as caught:
        compile("x" * 250_001)
    assert str(caught.value) == "Syntax error: the script is longer than 250,000 characters"
    assert caught.value.line is None


def test_limits_of_the_parser() -> None:
    with pytest.raises(RhaiSyntaxError, match="Expression exceeds maximum complexity"):
        compile("1 + (2 + (3 + (4 + 5)))", ParseLimits(expr_depth=4))
    with pytest.raises(RhaiSyntaxError, match="Length of string exceeds the maximum limit"):
        compile('"abcdef"', ParseLimits(max_string=5))
    with pytest.raises(RhaiSyntaxError, match="Number of functions defined exceeds maximum limit"):
        compile("fn a() {} fn b() {}", ParseLimits(max_functions=1))


def test_recent_scripts_are_remembered() -> None:
    compiler = Compiler(remember=2)
    first = compiler.compile("1")
    assert compiler.compile("1") is first
    compiler.compile("2")
    assert compiler.compile("1") is first
    compiler.compile("3")  # "2" was used longest ago
    assert compiler.compile("1") is first
    second = compiler.compile("2")
    compiler.compile("3")
    compiler.compile("4")
    assert compiler.compile("2") is not second


def test_memory_for_scripts_is_bounded() -> None:
    compiler = Compiler(remember_size=2_000)
    small = compiler.compile("1")
    assert compiler.compile("1") is small
    compiler.compile("'a'; " * 400)
    assert compiler.compile("1") is not small


def test_errors_are_not_remembered_as_results() -> None:
    compiler = Compiler()
    for _ in range(2):
        with pytest.raises(RhaiSyntaxError):
            compiler.compile("let")


_REPEATED = {
    "variables": lambda n: "".join(f"let a{i} = {i};" for i in range(n)),
    "uses": lambda n: "".join(f"let a{i} = 0;" for i in range(n)) + "".join(f"a{i} = a{i + 1};" for i in range(n - 1)),
    "constants": lambda n: "".join(f"const A{i} = {i}; print(A{i});" for i in range(n)),
    "functions": lambda n: "".join(f"fn f{i}(a) {{ f{i + 1}(a) }}\n" for i in range(n)),
    "closures": lambda n: "".join(f"let f{i} = |x| x + {i};" for i in range(n)),
    "interpolation": lambda n: "let x = 1; `" + "${x} " * n + "`",
    "elements": lambda n: "let x = 1; [" + "x, " * n + "]",
    "keys": lambda n: "#{" + ",".join(f"k{i}: {i}" for i in range(n)) + "}",
    "cases": lambda n: "switch x {" + ",".join(f"{i} => {i}" for i in range(n)) + "}",
    "calls in scope": lambda n: "".join(f"let a{i} = 0;" for i in range(n)) + "fn f() {} " + "f!();" * n,
    "statements": lambda n: "let x = 0;" + "x += 1;" * n,
    "comments": lambda n: "/*" * n + "*/" * n,
    "open comments": lambda n: "/*" * n,
    "backticks": lambda n: "`" * n,
    "digits": lambda n: "1" * n,
    "underscores": lambda n: "1" + "_" * n,
    "open brackets": lambda n: "[" * n,
    "long constants": lambda n: f'const A = "{"a" * n}";' + "print(A + A);" * n,
}


@pytest.mark.parametrize("name", _REPEATED)
def test_time_and_size_grow_with_the_text(name: str) -> None:
    small, large = _measured(_REPEATED[name](200)), _measured(_REPEATED[name](2_000))
    assert large[0] < max(30 * small[0], 0.3), "ten times the text took more than 30 times as long"
    assert large[1] < max(14 * small[1], 100_000), "ten times the text gave more than 14 times as much Lua"


def _measured(source: str) -> tuple[float, int]:
    best, size = 1e9, 0
    for _ in range(2):
        started = time.process_time()
        with contextlib.suppress(RhaiSyntaxError):
            size = len(compile(source).lua)
        best = min(best, time.process_time() - started)
    return best, size
