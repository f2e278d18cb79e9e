"""What a look at a script finds, and what it leaves alone."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moonbox import Tool, Toolbox
from moonbox.check.checker import Checker
from moonbox.check.tools import ToolView
from moonbox.languages.registry import LANGUAGES

if TYPE_CHECKING:
    from .conftest import Find

CASES = tomllib.loads(Path(__file__).with_name("findings.toml").read_text(encoding="utf-8"))
PRELUDE = CASES["prelude"]


@pytest.mark.parametrize(("source", "message"), CASES["lua_errors"])
def test_an_error(source: str, message: str, find: Find) -> None:
    errors = [item for item in find(PRELUDE + source) if item.severity == "error"]
    assert [item.message for item in errors] == [message]
    assert errors[0].line == 3


@pytest.mark.parametrize(("source", "message"), CASES["lua_notes"])
def test_a_note(source: str, message: str, find: Find) -> None:
    assert [(item.severity, item.message) for item in find(PRELUDE + source)] == [("note", message)]


@pytest.mark.parametrize("source", CASES["lua_nothing"])
def test_nothing_to_say(source: str, find: Find) -> None:
    assert find(PRELUDE + source) == ()


@pytest.mark.parametrize(("source", "message"), CASES["rhai_errors"])
def test_an_error_in_rhai(source: str, message: str, find: Find) -> None:
    assert [item.message for item in find(source, "rhai") if item.severity == "error"] == [message]


@pytest.mark.parametrize(("source", "message"), CASES["rhai_notes"])
def test_a_note_in_rhai(source: str, message: str, find: Find) -> None:
    assert [(item.severity, item.message) for item in find(source, "rhai")] == [("note", message)]


@pytest.mark.parametrize("source", CASES["rhai_nothing"])
def test_nothing_to_say_in_rhai(source: str, find: Find) -> None:
    assert [item.message for item in find(source, "rhai") if item.severity == "error" or "escape" in item.message] == []


@pytest.mark.parametrize(("source", "message"), CASES["python_errors"])
def test_an_error_in_python(source: str, message: str, find: Find) -> None:
    assert [item.message for item in find(source, "python") if item.severity == "error"] == [message]


@pytest.mark.parametrize(("source", "message"), CASES["python_notes"])
def test_a_note_in_python(source: str, message: str, find: Find) -> None:
    assert [(item.severity, item.message) for item in find(source, "python")] == [("note", message)]


@pytest.mark.parametrize("source", CASES["python_nothing"])
def test_nothing_to_say_in_python(source: str, find: Find) -> None:
    assert find(source, "python", names=["rows"]) == ()


@pytest.mark.parametrize(
    ("source", "language", "severity"),
    [
        ("return pcall(tools.nope, {})", "lua", "note"),
        ("return pcall(function() return tools.nope{} end)", "lua", "note"),
        ("local function f() return tools.nope{} end return pcall(f)", "lua", "note"),
        ("local f = function() return tools.nope{} end return xpcall(f, print)", "lua", "note"),
        ("function f() return tools.nope{} end return pcall(function() f() end)", "lua", "note"),
        ("local function g() return tools.nope{} end local function f() g() end return pcall(f)", "lua", "note"),
        ("try { nope(1) } catch { 7 }", "rhai", "note"),
        ("fn f() { nope(1) } try { f() } catch { 7 }", "rhai", "note"),
        ("let f = || nope(1); try { f.call() } catch { 7 }", "rhai", "note"),
        ("try:\n    nope(1)\nexcept Exception:\n    7", "python", "note"),
        ("def f():\n    return nope(1)\ntry:\n    f()\nexcept Exception:\n    7", "python", "note"),
        ("f = lambda: nope(1)\ntry:\n    f()\nexcept Exception:\n    7", "python", "note"),
        ("try:\n    nope(1)\nfinally:\n    7", "python", "error"),
        ("try:\n    1\nexcept Exception:\n    nope(1)", "python", "error"),
        ("local function f() return tools.nope{} end local ok = pcall(print) return f()", "lua", "error"),
        ("pcall(print) return tools.nope{}", "lua", "error"),
        ("fn f() { nope(1) } try { 1 } catch { 7 } f()", "rhai", "error"),
    ],
)
def test_what_a_script_catches_is_a_note(source: str, language: str, severity: str, find: Find) -> None:
    assert [item.severity for item in find(source, language)] == [severity]


@pytest.mark.parametrize(
    ("source", "language", "is_noted"),
    [
        ("local x = tools.expense{} if not x.approved then return 1 end", "lua", True),
        ("local x = tools.expense{} if x.approved ~= true then return 1 end", "lua", True),
        ("let x = expense(#{}); if x.approved != true { 1 } else { 2 }", "rhai", True),
        ("local x = tools.expense{} if x.approved == false then return 1 end", "lua", False),
        ("local x = tools.expense{} if not x.paid then return 1 end", "lua", False),
        ("let x = expense(#{}); if x.approved == false { 1 } else { 2 }", "rhai", False),
    ],
)
def test_a_truth_value_that_may_be_null(source: str, language: str, is_noted: bool) -> None:
    fields = {"approved": {"type": ["boolean", "null"]}, "paid": {"type": "boolean"}}
    returns = {"type": "object", "properties": fields}
    tools = Toolbox([Tool.from_schema(name="expense", call=lambda _: None, returns=returns)])
    spoken = LANGUAGES[language]
    findings = Checker(spoken).check(source, ToolView(tools, spoken))
    said = "'x.approved' (from the result of {}) can be null: this counts null like false"
    name = "tools.expense" if language == "lua" else "expense"
    assert [(item.severity, item.message) for item in findings] == [("note", said.format(name))] * is_noted
    assert [item.hint for item in findings] == [
        f"where only one is meant, write: x.approved == false, or x.approved == {'nil' if language == 'lua' else '()'}"
    ] * is_noted


def test_where_and_what_instead(find: Find) -> None:
    (finding,) = find("local r = 1\nreturn tools.serch{query = 'x'}")
    assert (finding.line, finding.column, finding.hint) == (2, 14, "did you mean tools.search?")
    assert (finding.code, finding.tool) == ("unknown_tool", "serch")


def test_arguments_say_what_the_call_would_say(find: Find) -> None:
    (finding,) = find("return tools.get_expenses{employe_id = 1, limit = n, note = 'x'}", names=["n"])
    assert finding.message == (
        "invalid arguments for get_expenses:\n- employee_id: missing, expected integer\n"
        "- employe_id: unknown parameter; did you mean 'employee_id'?\n- note: unknown parameter\n"
        "valid parameters: employee_id* (integer), limit (integer, default 10)"
    )


@pytest.mark.parametrize(
    "source",
    [
        "return tools.get_expenses{employee_id = id}",
        "return tools.get_expenses{employee_id = 1, [name] = 2}",
        "return tools.get_expenses(id)",
        "return tools.get_expenses(table.unpack(list))",
        "return tools.get_expenses{employee_id = 3.0}",
        "return tools.get_expenses(1, 5)",
        "return tools.get_expenses{employee_id = 1, limit = nil}",
    ],
)
def test_arguments_that_may_fit(source: str, find: Find) -> None:
    assert find(source, names=["id", "name", "list"]) == ()


def test_what_the_host_added_is_known(find: Find) -> None:
    assert find("return rows", names=["rows"]) == ()
