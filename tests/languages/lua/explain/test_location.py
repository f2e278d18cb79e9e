"""Lines of errors, where a function of the script returned what it called, and no frame was left of it."""

from __future__ import annotations

from typing import Any

import pytest

from moonbox.errors import ScriptError
from tests.languages.lua.explain.bench import Bench

DOWN: dict[str, Any] = {
    "code": "connection",
    "message": "no answer",
    "tool": "fetch",
    "retryable": True,
    "data": {"n": 1},
}


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("tools.fetch{}", 1),
        ("\n\ntools.fetch{}", 3),
        ("local x = 1\nreturn tools.fetch{}", 2),
        ("local x = 1\nreturn tools.fetch{}, 5", 2),
        ("local function get()\n  return tools.fetch{}\nend\nlocal x = get()\nreturn x", 2),
        ("local function get()\n  return tools.fetch{}\nend\nreturn get()", 2),
        ("if a then\n  return tools.fetch{}\nend\nreturn tools.fetch{}", 4),
        ("local a = tools.echo{}\nif a then\n  return tools.fetch{}\nend\nreturn tools.fetch{}", 3),
        ("local function get(n)\n  return tools.fetch{n = n}\nend\ntools.echo{}\nlocal x = get(1)", 2),
        ("local function get(n)\n  return tools['fetch']{n = n}\nend\ntools.echo{}\nlocal x = get(1)", 2),
        ("local function one(n)\n  return tools.fetch(n)\nend\nlocal function two(n)\n  return one(n)\nend\ntwo(1)", 2),
        ("local function get(n)\n  return tools.fetch{\n    n = n,\n  }\nend\nlocal x = get(1)", 2),
        ("local function get(n)\n  return f(n) + tools.fetch{}\nend\nf = tools.fetch\nlocal x = get(1)", 2),
        (
            "local function a()\n  return tools.fetch{}\nend\nfunction b()\n  return tools.fetch{}\nend\nlocal x = b()",
            7,
        ),
        ("if a then\n  local x = tools.fetch{a = 1}\nend\nlocal y = tools.fetch{}\nreturn y", 4),
        ('local n = "fetch"\nlocal f = tools.fetch\nlocal y = tools[n]{}\nreturn y', 3),
        ("local f = tools.fetch\nreturn f()", 2),
        ("local function call(f)\n  local x = f()\n  return x\nend\nlocal y = call(tools.fetch)", 2),
        ("return parallel{\n  function() return 1 end,\n  function() return tools.fetch{} end,\n}", 3),
    ],
)
def test_line_of_a_failed_tool(source: str, line: int | None) -> None:
    error = Bench(failures={"fetch": DOWN}).fails(source)
    assert (error.kind, error.line) == ("tool", line)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ('local x = 1\nreturn string.format("%d", "x")', 2),
        ('local x = 1\nreturn json.parse("{")', 2),
        ('if a then\n  return 1\nend\nreturn json.decode("{")', 4),
        ("local t = {}\nt.f = print\nreturn t", 3),
        ("if a then\n  return 1\nend\nreturn print", 4),
        ("if a then\n  return\nend\nreturn { print }", 4),
        ("if a then\n  return { f = print }\nend\nreturn print", None),
        ("local f = function()\n  return 1\nend\nreturn f", 4),
        ("local x = 1\nreturn parallel{5}", 2),
        ("local x = 1\nreturn tools.echo{value = print}", 2),
        ("local function f(x)\n  local y = tools.echo{value = x}\n  return y\nend\nlocal z = f(print)", 2),
        ("local function f(x)\n  return json.decode(x)\nend\nlocal z = f(5)", 2),
        ("local function f(x)\n  return x:rep({})\nend\nlocal z = f('x')", 2),
        ("local function f(x)\n  return x:gsub({})\nend\nlocal z = f('x')", 2),
        ("local function f(x)\n  return ipairs(x)\nend\nfor _ in f(nil) do end", 2),
        ("local function f(x)\n  return pairs(x)\nend\nfor _ in f(nil) do end", 2),
        ("local function f(x)\n  return x.a.b\nend\nreturn f({})", 2),
        ("local function f(x)\n  error('no', 2)\nend\nlocal function g()\n  f()\nend\nreturn g()", 5),
        ("local x = 1\nreturn array(5)", 2),
        ("for _, v in ipairs(nil) do\nend", 1),
        ("for _, v in pairs(nil) do\nend", 1),
    ],
)
def test_line_of_an_error_of_the_library(source: str, line: int | None, bench: Bench) -> None:
    error = bench.fails(source)
    assert (error.kind, error.line) == ("runtime", line)


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


@pytest.mark.parametrize("code", ["denied", "approval_denied", "approval_unavailable", "not_granted"])
def test_refused_calls_are_denied(code: str) -> None:
    failure = {"code": code, "message": "a person declined this call", "tool": "fetch", "retryable": False}
    error = Bench(failures={"fetch": failure}).fails("local x = tools.fetch{}\nreturn x")
    assert (error.kind, error.code, error.line) == ("denied", code, 1)
    assert error.hint == "do not repeat this call: continue without it, or ask for permission"


def test_data_of_a_table_that_the_script_raised(bench: Bench) -> None:
    error = bench.fails('error({code = "E7", message = "no such order", order = 5})')
    assert (error.kind, error.code, error.message) == ("runtime", "E7", "no such order")
    assert error.data == {"code": "E7", "message": "no such order", "order": 5}


def test_tools_are_found_by_name(bench: Bench) -> None:
    assert bench.fails("tools.create_issue{}").hint == "did you mean tools.github.create_issue?"
    assert bench.fails("tools.githb.create_issue{}").hint == "did you mean tools.github.create_issue?"
    assert bench.fails('tools["creat_issue"]{}').hint == "did you mean tools.github.create_issue?"
    for name, source in (("github", "github.create_issue{}"), ("create_issue", "create_issue{}")):
        assert bench.fails(source).hint == (
            f"'{name}' is not a global: tools are called through the table 'tools'; "
            "write: tools.github.create_issue{…}"
        )
    assert bench.fails("tools.github{}").hint == (
        "tools.github holds several tools; call one of them: tools.github.create_issue, tools.github.list_issues"
    )


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
