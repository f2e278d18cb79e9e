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
from moonbox.cli.prompt import ScriptCompleter, names_in, prompt
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
        return prompt("lua", DummyCompleter(), language("lua").completeness()).prompt()


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
def completer() -> ScriptCompleter:
    def find_customer(name: str) -> str:
        """Find one."""
        return name

    with Sandbox({"crm": [find_customer]}, isolation="inline") as sandbox:
        return completer_of(sandbox)


def completer_of(sandbox: Sandbox) -> ScriptCompleter:
    return ScriptCompleter(sandbox, ["function", "for"], {"docs": "", "limits": ""})


def offered(completer: ScriptCompleter, begun: str, /, **defined: str) -> list[str]:
    completer.look(defined)
    return [found.text for found in completer.get_completions(Document(begun), CompleteEvent())]


def test_names(completer: ScriptCompleter) -> None:
    assert offered(completer, "tools.") == ["crm"]
    assert offered(completer, "x = tools.crm.f") == ["find_customer"]
    assert offered(completer, "fo") == ["for"]
    assert "print" in offered(completer, "return pr")
    assert offered(completer, "math.max") == ["max", "maxinteger"]
    assert offered(completer, "s:gs") == ["gsub"]
    assert offered(completer, "coroutine.") == offered(completer, "setmeta") == offered(completer, "io.") == []
    assert offered(completer, 'docs["parallel.m') == ['parallel.map"]']
    assert offered(completer, ":") == ["docs", "limits"]
    assert offered(completer, ":docs tools.crm") == ["tools.crm.find_customer"]
    assert offered(completer, "tot", total="number") == ["total"]


def test_methods_are_offered_only_where_a_value_may_have_them(completer: ScriptCompleter) -> None:
    known = {"total": "number", "text": "string", "rows": "table"}
    assert [offered(completer, f"{value}:gs", **known) for value in ("text", "unknown")] == [["gsub"]] * 2
    for value in ("total", "rows", "tools", "print", "tools.crm"):
        assert offered(completer, f"{value}:gs", **known) == []


@pytest.mark.parametrize("language_name", ["lua", "rhai", "python"])
def test_every_name_that_is_offered_exists(language_name: Any) -> None:
    def find_customer(name: str) -> str:
        """Find one."""
        return name

    with Sandbox({"crm": [find_customer]}, language=language_name) as sandbox, sandbox.repl() as repl:
        for path in names_in(sandbox):
            if language_name == "lua":
                assert path == "null" or repl.run(f"return {path} ~= nil").value is True, path
            else:
                error = repl.run(f"{path}()").error
                assert error is None or f"unknown function '{path}'" not in error.message, path
        has_docs = repl.run('docs["print"]').error is None
        assert ('print"]' in offered(completer_of(sandbox), 'docs["pr')) is has_docs


def test_features_bring_their_names() -> None:
    with Sandbox(isolation="inline", lua_features={"coroutines", "metatables"}) as sandbox:
        completer = completer_of(sandbox)
    assert "wrap" in offered(completer, "coroutine.")
    assert offered(completer, "setm") == ["setmetatable"]
