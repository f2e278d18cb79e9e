"""Tracebacks: the source line, the caret, and the calls that led there."""

from __future__ import annotations

from textwrap import dedent

import pytest

from moonbox.errors import Frame
from moonbox.languages.language import EngineError
from tests.languages.lua.explain.bench import CASES, Bench


def shown(text: str) -> str:
    return dedent(text).strip("\n")


@pytest.mark.parametrize(("source", "traceback"), CASES["tracebacks"])
def test_source_line_and_caret(source: str, traceback: str, bench: Bench) -> None:
    assert bench.fails(source).traceback == traceback


def test_column_is_where_the_caret_stands(bench: Bench) -> None:
    error = bench.fails("local t = {}\nreturn t.a.b")
    assert (error.line, error.column) == (2, 10)


def test_one_call(bench: Bench) -> None:
    error = bench.fails(
        "local function total(list)\n  local sum = list.first + 1\n  return sum\nend\nlocal x = total({})"
    )
    assert error.traceback == shown("""
        2 |   local sum = list.first + 1
          |                    ^
        in function 'total' (line 2), called from line 5
    """)
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
    assert error.traceback == shown("""
        in run 1, an earlier one:
        2 |   local name = user.name.first
          |                     ^
        in function 'first' (line 2 of run 1: local name = user.name.first), called from line 2
    """)
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
