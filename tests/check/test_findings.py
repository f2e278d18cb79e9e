"""What a look at a script finds, and what it leaves alone."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Tool, Toolbox
from moonbox.check.checker import Checker
from moonbox.check.tools import ScriptTools
from moonbox.languages.registry import LANGUAGES

if TYPE_CHECKING:
    from .conftest import Find

CASES = tomllib.loads(Path(__file__).with_name("findings.toml").read_text(encoding="utf-8"))
PRELUDES = {"lua": CASES["prelude"], "rhai": "", "python": ""}


def rows(kind: str) -> list[Any]:
    """The cases of one kind, of every language."""
    cases = [(language, row) for language in LANGUAGES for row in CASES[f"{language}_{kind}"]]
    return [
        pytest.param(language, row, id=f"{language}: {row if kind == 'nothing' else row[0]}") for language, row in cases
    ]


@pytest.mark.parametrize(("language", "row"), rows("errors"))
def test_an_error(language: str, row: tuple[str, str], find: Find) -> None:
    source, message = row
    errors = [item for item in find(PRELUDES[language] + source, language) if item.severity == "error"]
    assert [item.message for item in errors] == [message]
    assert language != "lua" or errors[0].line == 3


@pytest.mark.parametrize(("language", "row"), rows("notes"))
def test_a_note(language: str, row: tuple[str, str], find: Find) -> None:
    source, message = row
    assert [(item.severity, item.message) for item in find(PRELUDES[language] + source, language)] == [
        ("note", message)
    ]


@pytest.mark.parametrize(("language", "source"), rows("nothing"))
def test_nothing_to_say(language: str, source: str, find: Find) -> None:
    found = find(PRELUDES[language] + source, language, names=["rows"] if language == "python" else [])
    harmless = [
        item for item in found if language == "rhai" and item.severity == "note" and "escape" not in item.message
    ]
    assert [item for item in found if item not in harmless] == []


@pytest.mark.parametrize(("source", "language", "severity"), CASES["caught"])
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
    findings = Checker(spoken).check(source, ScriptTools(tools, spoken))
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


@pytest.mark.parametrize(
    ("source", "language", "hint"),
    [
        (
            "local x = tools.hand_over{to = 'a'} return x.id",
            "lua",
            "it is text; if that is JSON, write: json.decode(x)",
        ),
        ('let x = hand_over("a"); x.id', "rhai", "it is text; if that is JSON, write: parse_json(x)"),
        ("for (k, n) in totals() { print(k); }", "rhai", "write: for key in totals().keys()"),
    ],
)
def test_what_a_result_is_instead(source: str, language: str, hint: str, find: Find) -> None:
    (finding,) = find(source, language)
    assert finding.hint == hint


def test_arguments_say_what_the_call_would_say(find: Find) -> None:
    (finding,) = find("return tools.get_expenses{employe_id = 1, limit = n, note = 'x'}", names=["n"])
    assert finding.message == (
        "invalid arguments for get_expenses:\n- employee_id: missing, expected integer\n"
        "- employe_id: unknown parameter; did you mean 'employee_id'?\n- note: unknown parameter\n"
        "valid parameters: employee_id* (integer), limit (integer, default 10)"
    )


@pytest.mark.parametrize("source", CASES["fitting"])
def test_arguments_that_may_fit(source: str, find: Find) -> None:
    assert find(source, names=["id", "name", "list"]) == ()


@pytest.mark.parametrize("ids", ["{1, 2, nil}", "{[1] = 1, [2] = 2}", "{table.unpack(list)}"])
def test_tables_that_are_lists_in_a_run_may_fit(ids: str) -> None:
    numbers = {"type": "array", "items": {"type": "integer"}}
    parameters = {"type": "object", "properties": {"ids": numbers}}
    view = ScriptTools(Toolbox([Tool.from_schema(name="f", parameters=parameters, call=lambda _: 1)]), LANGUAGES["lua"])
    assert Checker(LANGUAGES["lua"]).check(f"return tools.f{{ids = {ids}}}", view, frozenset({"list"})) == ()


def test_a_global_of_an_earlier_script_may_keep_its_value(find: Find) -> None:
    source = "if not rows then rows = tools.search{query = 'x'} end return #rows"
    assert find(source, names=["rows"]) == ()
    assert [item.severity for item in find(source)] == ["error"]
    rows = "rows = tools.search{query = 'x'} return #rows"
    assert [item.severity for item in find(rows, names=["rows"])] == ["error"]


def test_what_the_host_added_is_known(find: Find) -> None:
    assert find("return rows", names=["rows"]) == ()


def test_scripts_that_take_turns_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    look = Checker._look

    def counted(checker: Checker, source: str, *given: Any) -> Any:
        looked.append(source)
        return look(checker, source, *given)

    monkeypatch.setattr(Checker, "_look", counted)
    lua = LANGUAGES["lua"]
    view = ScriptTools(Toolbox(), lua)
    scripts = [f"return tools.nothing_{n}{{}}" for n in range(129)]
    for _ in range(3):
        assert [len(Checker(lua).check(script, view)) for script in scripts[:128]] == [1] * 128
    assert looked == scripts[:128]
    for script in (
        scripts[128],
        scripts[127],
        scripts[0],
    ):  # one more than are remembered: the oldest is looked at again
        Checker(lua).check(script, view)
    assert looked[128:] == [scripts[128], scripts[0]]
