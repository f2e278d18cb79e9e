"""Whether a script is complete, and what can be completed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent, DummyCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from moonbox import Sandbox
from moonbox.cli.prompt import Names, Prompt, ScriptCompleter
from moonbox.languages.registry import language

if TYPE_CHECKING:
    from pathlib import Path


COMPLETE = {
    "lua": ("1 + 1", "x = 1", "function f()\n  return 1\nend", "x = = 1", "'open string", "end", "'\ud800'"),
    "rhai": ("1 + 1", "let x = 5;", "let = 5"),
    "python": ("1 + 1", "x = 5", "if True:\n    x = 1\n", "x = = 5", "await add(1)", "'\ud800'"),
}
INCOMPLETE = {
    "lua": ("for i = 1, 2 do", "{1,", "return [[text", "--[[ comment", "f("),
    "rhai": ("if true {", "let x = #{a: 1,"),
    "python": ("if True:", "if True:\n    x = 1", "x = {'a': 1,"),
}


@pytest.mark.parametrize("name", COMPLETE)
def test_more_lines_only_where_they_can_help(name: str) -> None:
    is_complete = language(name).completeness()
    assert [text for text in COMPLETE[name] if not is_complete(text)] == []
    assert [text for text in INCOMPLETE[name] if is_complete(text)] == []


def test_checking_runs_nothing() -> None:
    assert language("lua").completeness()("while true do end")


def typed(keys: str) -> str:
    """What the prompt gives after these keys."""
    with create_pipe_input() as keyboard, create_app_session(input=keyboard, output=DummyOutput()):
        keyboard.send_text(keys)
        return Prompt("lua", DummyCompleter(), language("lua").completeness()).ask()


def test_lines_are_set_in_and_closed_where_they_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOONBOX_HOME", str(tmp_path))
    keys = "for i = 1, 2 do\rif i > 1 then\rprint(i)\relse\rprint{\r1,\r}\rend\rend\r"
    assert typed(keys).splitlines() == [
        "for i = 1, 2 do",
        "  if i > 1 then",
        "    print(i)",
        "  else",
        "    print{",
        "      1,",
        "    }",
        "  end",
        "end",
    ]


def test_enter_alone_and_commands_are_handed_over_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOONBOX_HOME", str(tmp_path))
    assert typed("\r") == ""
    assert typed(":docs (\r") == ":docs ("
    assert typed("f(\x1b\r") == "f("  # Alt-Enter: as it is


@pytest.fixture(scope="module")
def names() -> Names:
    def find_customer(name: str) -> str:
        """Find one."""
        return name

    with Sandbox({"crm": [find_customer]}, isolation="inline") as sandbox:
        return Names.of(sandbox)


def offered(names: Names, text: str) -> list[str]:
    completer = ScriptCompleter(names, ["function", "for"], {"docs": "", "limits": ""})
    return [found.text for found in completer.get_completions(Document(text), CompleteEvent())]


def test_names(names: Names) -> None:
    assert offered(names, "tools.") == ["crm"]
    assert offered(names, "x = tools.crm.f") == ["find_customer"]
    assert offered(names, "fo") == ["for"]
    assert "print" in offered(names, "return pr")
    assert offered(names, "math.max") == ["max", "maxinteger"]
    assert offered(names, "s:gs") == ["gsub"]
    assert offered(names, "coroutine.") == offered(names, "setmeta") == offered(names, "io.") == []
    assert offered(names, 'docs["parallel.m') == ['parallel.map"]']
    assert offered(names, ":") == ["docs", "limits"]
    assert offered(names, ":docs tools.crm") == ["tools.crm.find_customer"]
    assert offered(names.with_globals({"total": "number"}), "tot") == ["total"]


def test_methods_are_offered_only_where_a_value_may_have_them(names: Names) -> None:
    known = names.with_globals({"total": "number", "text": "string", "rows": "table"})
    assert offered(known, "text:gs") == offered(known, "unknown:gs") == ["gsub"]
    assert offered(known, "total:gs") == offered(known, "rows:gs") == offered(known, "tools:gs") == []
    assert offered(known, "print:gs") == offered(known, "tools.crm:gs") == []


@pytest.mark.parametrize("language_name", ["lua", "rhai", "python"])
def test_every_name_that_is_offered_exists(language_name: Any) -> None:
    def find_customer(name: str) -> str:
        """Find one."""
        return name

    with Sandbox({"crm": [find_customer]}, language=language_name) as sandbox, sandbox.repl() as repl:
        names = Names.of(sandbox)
        for path in names.paths:
            if language_name == "lua":
                assert path == "null" or repl.run(f"return {path} ~= nil").value is True, path
            else:
                error = repl.run(f"{path}()").error
                assert error is None or f"unknown function '{path}'" not in error.message, path
        has_docs = repl.run('docs["print"]').error is None
        assert ('print"]' in offered(names, 'docs["pr')) is has_docs


def test_features_bring_their_names() -> None:
    with Sandbox(isolation="inline", lua_features={"coroutines", "metatables"}) as sandbox:
        names = Names.of(sandbox)
    assert "wrap" in offered(names, "coroutine.")
    assert offered(names, "setm") == ["setmetatable"]
