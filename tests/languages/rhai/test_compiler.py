"""The compiler: results, errors, what it remembers, and work in proportion to the text."""

from __future__ import annotations

import pytest

from tests.long import times

from .machine import Machine, NoScript


def test_a_syntax_error_tells_where_and_what_to_write(machine: Machine) -> None:
    with pytest.raises(NoScript) as caught:
        machine.compile("let x = 1;\nlet y = null;")
    error = caught.value
    assert (error.message, error.line, error.position) == ("'null' is a reserved keyword", 2, 9)
    assert error.text == str(error) == "Syntax error: 'null' is a reserved keyword (line 2, position 9)"
    assert error.hint == "Rhai has no null: the empty value is ()"


def test_an_error_without_a_position(machine: Machine) -> None:
    with pytest.raises(NoScript) as caught:
        machine.compile("x" * 250_001)
    assert str(caught.value) == "Syntax error: the script is longer than 250,000 characters"
    assert caught.value.line is None


@pytest.mark.parametrize(
    ("source", "line", "position"),
    [
        ("let é", 1, 5),
        ('"é" null', 1, 5),
        ("/* é */ null", 1, 9),
        ("// é\nnull", 2, 1),
        ("/* é\nü */ null", 2, 6),
        ("`é${1}ü${2}` null", 1, 14),
        ('#"é\nü"# null', 2, 5),
        ('"é\\q"', 1, 4),
        ("'éé'", 1, 1),
        ("\r\n\tnull", 2, 2),
        ("x" * 70_000 + " null", 1, 65_535),
    ],
)
def test_positions_count_characters(machine: Machine, source: str, line: int, position: int) -> None:
    with pytest.raises(NoScript) as caught:
        machine.compile(source)
    assert (caught.value.line, caught.value.position) == (line, position)


def test_a_text_that_is_not_utf_8(machine: Machine) -> None:
    compile_bytes = machine.lua.eval("function(R) return pcall(R.compiler.compile, '\\xff') end")
    fine, problem = compile_bytes(machine.runtime)
    assert not fine
    assert problem.text == "Syntax error: the script is not valid UTF-8"


def test_limits_of_the_parser(machine: Machine) -> None:
    with pytest.raises(NoScript, match="Expression exceeds maximum complexity"):
        machine.compile("1 + (2 + (3 + (4 + 5)))", {"expr_depth": 4})
    with pytest.raises(NoScript, match="Length of string exceeds the maximum limit"):
        machine.compile('"abcdef"', {"max_string": 5})
    with pytest.raises(NoScript, match="Number of functions defined exceeds maximum limit"):
        machine.compile("fn a() {} fn b() {}", {"max_functions": 1})


def _compiled(machine: Machine, *sources: str) -> list[str]:
    """The sources that were compiled in this order, as against those that were remembered."""
    noting = machine.lua.eval(
        """function(R, note)
          local compile = R.compiler.compile
          R.compiler.compile = function(source, limits) note(source) return compile(source, limits) end
        end"""
    )
    compiled: list[str] = []
    noting(machine.runtime, compiled.append)
    for source in sources:
        machine.run(source)
    return compiled


_OTHERS = [f"{number} + 0" for number in range(200)]
_LONG = "'a'; " * 2_000


@pytest.mark.parametrize(
    ("steps", "source", "times"),
    [
        (["1", "2", "1", "2", "1"], "1", 1),
        (["1", *_OTHERS, "1"], "1", 2),
        ([source for other in _OTHERS for source in ("1", other)], "1", 1),
        ([_LONG, _LONG], _LONG, 2),
    ],
    ids=["recent", "long ago", "in use", "long"],
)
def test_recent_scripts_are_remembered(steps: list[str], source: str, times: int) -> None:
    assert _compiled(Machine(), *steps).count(source) == times


def test_what_does_not_compile_is_not_remembered() -> None:
    machine = Machine()
    for _ in range(2):
        with pytest.raises(NoScript):
            machine.run("let")


def test_a_remembered_script_runs_afresh() -> None:
    machine = Machine()
    for _ in range(3):
        assert machine.run("let a = [1]; a.push(2); let f = || a.len(); f.call()").raw == 2


_REPEATED = {
    "variables": lambda n: "".join(f"let a{i} = {i};" for i in range(n)),
    "uses": lambda n: "".join(f"let a{i} = 0;" for i in range(n)) + "".join(f"a{i} = a{i + 1};" for i in range(n - 1)),
    "constants": lambda n: "".join(f"const A{i} = {i}; print(A{i});" for i in range(n)),
    "functions": lambda n: "".join(f"fn f{i}(a) {{ f{i + 1}(a) }}\n" for i in range(n)),
    "closures": lambda n: "".join(f"let f{i} = |x| x + {i};" for i in range(n)),
    "interpolation": lambda n: "let x = 1; `" + "${x} " * n + "`",
    "constants in text": lambda n: "`" + "${1} " * n + "`",
    "elements": lambda n: "let x = 1; [" + "x, " * n + "]",
    "keys": lambda n: "#{" + ",".join(f"k{i}: {i}" for i in range(n)) + "}",
    "cases": lambda n: "switch x {" + ",".join(f"{i} => {i}" for i in range(n)) + "}",
    "calls in scope": lambda n: "".join(f"let a{i} = 0;" for i in range(n)) + "fn f() {} " + "f!();" * n,
    "calls": lambda n: "".join(f"let a{i} = 0;" for i in range(n)) + "".join(f"g{i}(1);" for i in range(n)),
    "looking for variables": lambda n: "".join(f'let a{i} = is_def_var("b");' for i in range(n)),
    "names in closures": lambda n: "".join(f"let a{i} = 0;" for i in range(n)) + "[|| " * 5 + "1" + "]" * 5,
    "changes": lambda n: "let a = []; let b = 0;" + "a.push({ b += 1; b }); [b, { b = 2; b }];" * n,
    "statements": lambda n: "let x = 0;" + "x += 1;" * n,
    "comments": lambda n: "/*" * n + "*/" * n,
    "open comments": lambda n: "/*" * n,
    "backticks": lambda n: "`" * n,
    "quotes": lambda n: '"é" + ' * (n // 50) + '"é"',
    "characters": lambda n: "let s = [" + '"é",' * n + "];",
    "digits": lambda n: "1" * n,
    "underscores": lambda n: "1" + "_" * n,
    "zeros": lambda n: "0" + "_" * n + "x1",
    "open brackets": lambda n: "[" * n,
    "long constants": lambda n: f'const A = "{"a" * n}";' + "print(A + A);" * n,
    "hashes": lambda n: "#" * n,
    "raw text": lambda n: 'let a = #"' + "\n" * n + '"#;',
}


@pytest.mark.parametrize("name", _REPEATED)
def test_work_and_size_grow_with_the_text(machine: Machine, name: str) -> None:
    size = times(400)
    small, large = machine.compiling(_REPEATED[name](size)), machine.compiling(_REPEATED[name](10 * size))
    assert large[0] < max(14 * small[0], 500), "ten times the text took more than 14 times the instructions"
    assert large[1] < max(14 * small[1], 100_000), "ten times the text gave more than 14 times as much Lua"


_EXPLODING = {
    "calls in scope of each other": lambda k: (
        "fn c(){1} fn b(){" + "c!();" * k + "} fn a(){" + "b!();" * k + "} " + "a!();" * k
    ),
    "a function in scope of itself": lambda k: "fn a(){" + "a!();" * k + "} " + "a!();" * k,
    "a large function in scope": lambda k: "fn a(){" + "let x = [1, 2, 3];" * k + "} " + "a!();" * k,
}


@pytest.mark.parametrize("name", _EXPLODING)
def test_calls_in_scope_meet_a_limit(machine: Machine, name: str) -> None:
    source = _EXPLODING[name](100)
    with pytest.raises(NoScript) as caught:
        machine.compile(source)
    assert caught.value.message == "Too many calls that run in the caller's scope"
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("call the function as ")
    assert machine.compiling(source)[0] < 20_000  # thousands of instructions
