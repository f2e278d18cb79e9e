"""What is said of a failed run: the hint, the line and the traceback, by the data of cases.toml and in a few Repls."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from moonbox.errors import Frame, ScriptError
from moonbox.languages.language import EngineError
from tests.languages.lua.explain.bench import CASES, Bench

DOWN: dict[str, Any] = {
    "code": "connection",
    "message": "no answer",
    "tool": "fetch",
    "retryable": True,
    "data": {"n": 1},
}
FULL = {"code": "full", "message": "disk full", "tool": "save", "retryable": False}


@pytest.fixture
def bench() -> Bench:
    return Bench(failures={"fetch": DOWN, "save": FULL})


@pytest.mark.parametrize(("source", "hint"), [*((source, None) for source in CASES["silent"]), *CASES["hints"]])
def test_hint(source: str, hint: str | None, bench: Bench) -> None:
    """Hints must not be wrong: some scripts look like a slip and are none, or nothing is known for sure."""
    assert bench.fails(source).hint == hint


@pytest.mark.parametrize(
    ("kind", "source", "line"),
    [(kind, *row) for kind, rows in (("tool", "tool_lines"), ("runtime", "library_lines")) for row in CASES[rows]],
)
def test_line(kind: str, source: str, line: int, bench: Bench) -> None:
    """A function of the script that returned what it called left no frame."""
    error = bench.fails(source)
    assert (error.kind, error.line or 0) == (kind, line)


@pytest.mark.parametrize(("source", "traceback"), CASES["tracebacks"])
def test_source_line_and_caret(source: str, traceback: str, bench: Bench) -> None:
    assert bench.fails(source).traceback == traceback


def test_a_tool_failure_that_will_not_pass_has_no_hint(bench: Bench) -> None:
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


def test_what_a_tool_said_is_carried_over(bench: Bench) -> None:
    error = bench.fails("local x = tools.fetch{}\nreturn x")
    assert error == ScriptError(
        "tool",
        "no answer",
        line=1,
        column=17,
        code="connection",
        tool="fetch",
        retryable=True,
        data={"n": 1},
        hint="a retry may succeed; to continue without it write: local ok, result = pcall(tools.fetch, {…})",
        traceback="1 | local x = tools.fetch{}\n  |                 ^",
        frames=error.frames,
    )


def test_data_of_a_table_that_the_script_raised(bench: Bench) -> None:
    error = bench.fails('error({code = "E7", message = "no such order", order = 5})')
    assert (error.kind, error.code, error.message) == ("runtime", "E7", "no such order")
    assert error.data == {"code": "E7", "message": "no such order", "order": 5}


def test_names_that_a_script_gave_an_error_are_cut(bench: Bench) -> None:
    source = """
    local ok, problem = pcall(tools.fetch)
    problem.tool, problem.code = ("x"):rep(100000), ("y"):rep(100000)
    error(problem)
    """
    error = bench.fails(source)
    assert (error.tool, error.code) == ("x" * 200, "y" * 200)
    assert error.hint is not None
    assert len(error.hint) < 400


# Tracebacks


def test_one_call(bench: Bench) -> None:
    error = bench.fails(
        "local function total(list)\n  local sum = list.first + 1\n  return sum\nend\nlocal x = total({})"
    )
    assert (error.line, error.column) == (2, 20)
    assert error.traceback == dedent("""
        2 |   local sum = list.first + 1
          |                    ^
        in function 'total' (line 2), called from line 5
    """).strip("\n")
    assert error.frames == (
        Frame(2, "function 'total'", "local sum = list.first + 1", "script"),
        Frame(5, "main chunk", "local x = total({})", "script"),
    )


def test_recursion_is_counted_and_not_repeated(bench: Bench) -> None:
    error = bench.fails("local function f(n) return 1 + f(n) end\nlocal x = f(1)")
    assert error.traceback.split("\n")[-1] == "in function 'f' (line 1) 24 times"


def test_many_calls_are_cut_in_the_middle() -> None:
    frames = tuple(("script", line, f"local 'f{line}'") for line in range(1, 41))
    error = Bench().explain(EngineError("runtime", "script:1: x", frames=frames))
    lines = error.traceback.split("\n")
    assert len(lines) == 11
    assert lines[7] == "called from … 30 more …,"


def test_function_of_an_earlier_run(bench: Bench) -> None:
    assert bench.run("function first(user)\n  local name = user.name.first\n  return name\nend") is None
    assert bench.run("x = 1") is None
    error = bench.fails("local y = 2\nlocal name = first({})")
    assert (error.line, error.column) == (2, None)
    assert error.traceback == dedent("""
        in run 1, an earlier one:
        2 |   local name = user.name.first
          |                     ^
        in function 'first' (line 2 of run 1: local name = user.name.first), called from line 2
    """).strip("\n")
    assert [frame.chunk for frame in error.frames] == ["script", "script#3"]


def test_source_of_an_earlier_run_may_be_gone(bench: Bench) -> None:
    assert bench.run("function fail() error('no') end") is None
    ending = bench.error("local x = 1\nfail()\nreturn x")
    assert ending is not None
    del bench.sources["script"]
    error = bench.explain(ending)
    assert (error.line, error.message) == (2, "no")
    assert error.traceback == "in function 'fail' (line 1 of run 1), called from line 2"


def test_error_that_was_caught_and_raised_again(bench: Bench) -> None:
    error = bench.fails("local ok, e = pcall(function() error('inner') end)\n\nerror(e)")
    assert (error.line, error.message) == (3, "line 1: inner")


def test_long_lines_are_cut_around_the_caret(bench: Bench) -> None:
    source = f"local a = {'1 + ' * 100}t.x.y + {'1 + ' * 100}1"
    line, caret = bench.fails(f"local t = {{}}\n{source}").traceback.split("\n")
    assert len(line) < 120
    assert line[caret.index("^")] == "x" or line[caret.index("^")] == "t"
    assert line.startswith("2 | …") and line.endswith("…")
