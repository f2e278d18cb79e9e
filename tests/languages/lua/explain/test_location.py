"""Lines of errors, where a function of the script returned what it called, and no frame was left of it."""

from __future__ import annotations

from typing import Any

import pytest

from moonbox.errors import ScriptError
from tests.languages.lua.explain.bench import CASES, Bench

DOWN: dict[str, Any] = {
    "code": "connection",
    "message": "no answer",
    "tool": "fetch",
    "retryable": True,
    "data": {"n": 1},
}


@pytest.mark.parametrize(("source", "line"), CASES["tool_lines"])
def test_line_of_a_failed_tool(source: str, line: int) -> None:
    error = Bench(failures={"fetch": DOWN}).fails(source)
    assert (error.kind, error.line or 0) == ("tool", line)


@pytest.mark.parametrize(("source", "line"), CASES["library_lines"])
def test_line_of_an_error_of_the_library(source: str, line: int, bench: Bench) -> None:
    error = bench.fails(source)
    assert (error.kind, error.line or 0) == ("runtime", line)


def test_what_a_tool_said_is_carried_over() -> None:
    error = Bench(failures={"fetch": DOWN}).fails("local x = tools.fetch{}\nreturn x")
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


def test_names_that_a_script_gave_an_error_are_cut() -> None:
    source = """
    local ok, problem = pcall(tools.fetch)
    problem.tool, problem.code = ("x"):rep(100000), ("y"):rep(100000)
    error(problem)
    """
    error = Bench(failures={"fetch": DOWN}).fails(source)
    assert (error.tool, error.code) == ("x" * 200, "y" * 200)
    assert error.hint is not None
    assert len(error.hint) < 400
