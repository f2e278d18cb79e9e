"""Tool scripts: loaded in the sandbox, validated, executed, reloaded."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Sandbox, Toolbox
from moonbox.audit.sinks import MemorySink, open_trail
from moonbox.config import Config
from moonbox.errors import ArgumentError, ConfigError, ToolError
from moonbox.knowledge import KnowledgeBase
from moonbox.knowledge.records import KnowledgeError
from moonbox.project.assembly import assemble, script_library
from moonbox.project.sections import read_knowledge
from moonbox.scripts.connector import ScriptConnectorKind

if TYPE_CHECKING:
    from pathlib import Path

    from moonbox.scripts.library import ScriptLibrary

GREET = """
tool = {
  name = "greet", description = "Greets. More.", version = "2.1",
  parameters = {
    { name = "who", type = "string", required = true },
    { name = "times", type = "integer", default = 2 },
    { name = "tone", type = "string", enum = {"warm", "cold"} },
  },
}
function tool.execute(params, context)
  count = (count or 0) + 1
  return { text = (params.who .. " "):rep(params.times), tone = params.tone, config = context.config, count = count }
end
"""


def library(folder: Path, toml: str = "", files: dict[str, str] | None = None, **options: Any) -> ScriptLibrary:
    (folder / "tools").mkdir(exist_ok=True)
    for name, text in (files or {}).items():
        (folder / "tools" / name).write_text(text)
    path = folder / "moonbox.toml"
    path.write_text(toml or '[tools]\nfolders = ["tools"]\n')
    return script_library(Config.load(path, environ={"GREETING": "hi"}), **options)


def test_a_file_in_the_folder_is_a_tool(tmp_path: Path) -> None:
    library(tmp_path, files={"greet.lua": GREET}).close()
    with closing(Toolbox.from_scripts(tmp_path / "moonbox.toml").library) as lib:
        tool = lib.toolbox["greet"]
        assert tool.call({"who": "a", "times": 1})["text"] == "a "
        assert tool.description == "Greets. More."
        assert tool.parameters["required"] == ["who"]
        assert lib.scripts[0].definition is not None
        assert lib.scripts[0].definition.version == "2.1"


def test_an_empty_table_is_a_list_where_the_result_schema_says_so(tmp_path: Path) -> None:
    source = """local fields = {orders = {type = "array"}, by = {type = "object"}}
    tool = {name = "late", returns = {type = "object", properties = fields}}
    function tool.execute() return {orders = {}, by = {}} end"""
    with library(tmp_path, files={"late.lua": source}) as lib, Sandbox(tools=lib.toolbox) as box:
        assert box.run("return tools.late()").value == {"orders": [], "by": {}}


def test_the_configured_key_is_the_name_and_further_keys_are_config(tmp_path: Path) -> None:
    toml = '[tools.script.hello]\npath = "tools/greet.lua"\nword = "${GREETING}"\nother = "${NOPE:-x}"\nlist = [1, 2]\n'
    with library(tmp_path, toml, {"greet.lua": GREET.replace('name = "greet", ', "")}) as lib:
        assert lib.toolbox.paths() == ("hello",)
        run = lib.execute(lib.scripts[0], lib.toolbox["hello"].bind({"who": "me"}))
        assert run.value == {"text": "me me ", "config": {"word": "hi", "other": "x", "list": [1, 2]}, "count": 1}


def test_named_fields_are_hidden_in_the_runs_of_tool_scripts(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "login.lua").write_text(
        'tool = {name = "login"}\nfunction tool.execute() local pin = "12" return {pin = pin} end\n'
    )
    (tmp_path / "moonbox.toml").write_text(
        '[tools]\nfolders = ["tools"]\n[audit]\npath = "t.jsonl"\nredact = ["pin"]\n'
    )
    with assemble(Config.load(tmp_path / "moonbox.toml")) as assembly:
        assert assembly.sandbox.call("login", {}).value == {"pin": "12"}
    runs = open_trail(tmp_path / "t.jsonl").list()
    assert [run.title for run in runs] == ["tool script login", "login"]
    assert '"12"' not in (tmp_path / "t.jsonl").read_text().replace("\\", "")


def test_each_execution_is_fresh_and_has_its_own_run(tmp_path: Path) -> None:
    sink = MemorySink()
    with library(tmp_path, files={"greet.lua": GREET}, audit=sink) as lib:
        tool = lib.toolbox["greet"]
        assert [tool.call({"who": "a", "times": 1})["count"] for _ in range(3)] == [1, 1, 1]
        assert [run.tool for run in sink.runs()] == ["greet"] * 3, "loading is not recorded"
        with Sandbox([lib.toolbox]) as box:
            run = box.run('return tools.greet{who = "x"}.text', labels={"user": "ann"})
        [inner] = [one for one in sink.runs() if one.parent]
        assert (inner.tool, inner.parent, inner.labels) == ("greet", run.id, {"user": "ann"})


def test_scripts_are_tools_for_other_scripts(tmp_path: Path) -> None:
    with library(tmp_path, files={"greet.lua": GREET}) as lib, Sandbox([lib.toolbox]) as box:
        assert box.run('return tools.greet{who = "x"}.text').value == "x x "
        error = box.run('tools.greet{wo = "x", tone = "hot"}').error
        assert error is not None
        assert "who: missing, expected string" in error.message
        assert "did you mean 'who'?" in error.message
        assert "warm" in error.message


BROKEN_FILES = {
    "x =": "cannot be loaded: syntax",
    "while true do end": "cannot be loaded: limit",
    "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end": "cannot be loaded: limit",
    "error('no')": "cannot be loaded: runtime",
    "http.get('http://example.com')": "hint: http can be used only while tool.execute runs",
    "return 1": "the global table `tool` is missing",
    "tool = {}": "tool.execute is not a function",
}
BROKEN_TABLES = {
    "parameters = 1": "tool.parameters must be a list, not 1",
    "parameters = {1}": "tool.parameters[1]: must be a table, not integer",
    "parameters = {{name = 'a', type = 'strin'}}": 'tool.parameters[1]: type must be one of "string", ',
    "parameters = {{type = 'string'}}": "tool.parameters[1]: name is missing",
    "parameters = {{name = ''}}": "tool.parameters[1]: name is missing",
    "parameters = {{name = 'a', enum = 1}}": "tool.parameters[1]: enum must be an array, not integer",
    "parameters = {{name = 'a', required = 1}}": "tool.parameters[1]: required must be a boolean, not integer",
    "parameters = {{name = 'a'}, {name = 'a'}}": "tool.parameters[2]: duplicate parameter 'a'",
    "parameters = {{name = 'a', requird = 1}}": "tool.parameters[1]: unknown key 'requird'; did you mean 'required'?",
    "parameters = {{name = 'a', type = 'integer', default = 'x'}}": 'the default of a: expected integer, got "x"',
    "parameters = {{name = 'a', enum = {'x'}, default = 'z'}}": "the default of a: ",
    "parameters = {type = 'object', properties = {a = {type = 'integer', default = 'x'}}}": "the default of a: ",
    "polcy = 'approve'": "unknown key 'polcy'; did you mean 'policy'?",
    "parameter = {{name = 'a'}}": "unknown key 'parameter'; did you mean 'parameters'?",
    "parameters = {type = 'object', properties = 5}": "properties",
    "description = 1": "tool.description must be a string, not integer",
    "uses = {1}": "tool.uses must be a list of tool names, not [1]",
}
BROKEN = {
    **BROKEN_FILES,
    **{f"tool = {{{text}}} function tool.execute() end": message for text, message in BROKEN_TABLES.items()},
}


@pytest.mark.parametrize(("text", "message"), BROKEN.items(), ids=[*BROKEN_FILES, *BROKEN_TABLES])
def test_a_broken_script_says_why_and_leaves_the_others_working(tmp_path: Path, text: str, message: str) -> None:
    with library(tmp_path, files={"bad.lua": text, "greet.lua": GREET}) as lib:
        problems = {script.settings.name: script.problem for script in lib.scripts}
        assert message in (problems["bad"] or "")
        assert problems["greet"] is None
        assert lib.toolbox.paths() == ("greet",)


def test_an_empty_table_is_the_default_of_a_list(tmp_path: Path) -> None:
    text = """
    tool = {parameters = {{name = "tags", type = "array", default = {}}, {name = "by", type = "object", default = {}}}}
    tool.helper = function(list) return #list end
    function tool.execute(params) return tool.helper(params.tags), params.by end
    """
    with library(tmp_path, files={"count.lua": text}) as lib:
        assert lib.scripts[0].problem is None
        assert lib.toolbox["count"].bind({}) == {"tags": [], "by": {}}


def test_a_json_schema_is_accepted(tmp_path: Path) -> None:
    text = """
    tool = {parameters = {type = "object", properties = {n = {type = "integer", minimum = 3}}, required = {"n"}}}
    function tool.execute(params) return params.n * 2 end
    """
    with library(tmp_path, files={"double.lua": text}) as lib:
        assert lib.toolbox["double"].call({"n": 4}) == 8
        with pytest.raises(ArgumentError, match="n"):
            lib.toolbox["double"].bind({"n": 1})


def test_changed_new_and_removed_files_are_taken_up(tmp_path: Path) -> None:
    with library(tmp_path, files={"greet.lua": GREET}) as lib:
        assert lib.refresh() is False
        path = tmp_path / "tools" / "greet.lua"
        path.write_text(GREET.replace("Greets.", "Salutes."))
        os.utime(path, ns=(1, 1))
        (tmp_path / "tools" / "other.lua").write_text("tool = {} function tool.execute() return 1 end")
        assert lib.refresh() is True
        assert lib.toolbox["greet"].description.startswith("Salutes")
        assert set(lib.toolbox.paths()) == {"greet", "other"}
        path.unlink()
        assert lib.refresh() is True
        assert lib.toolbox.paths() == ("other",)


RAISES = """
tool = {}

function tool.execute()
  error{ code = "rate_limited", message = "slow down", retryable = true, data = { after = 5 } }
end
"""


def test_failures_become_tool_errors_and_an_error_that_a_script_raises_passes_through_whole(tmp_path: Path) -> None:
    files = {
        "busy.lua": RAISES,
        "oops.lua": "tool = {}\nfunction tool.execute() error('no luck') end",
        "slow.lua": "tool = {} function tool.execute() while true do end end",
    }
    toml = '[tools]\nfolders = ["tools"]\n[tools.script.slow]\npath = "tools/slow.lua"\ntimeout = 0.3\n'
    with library(tmp_path, toml, files) as lib, Sandbox(lib.toolbox) as box:
        run = box.run("local ok, e = pcall(tools.busy, {}) return e, tostring(e)")
        assert run.values == (
            {
                "code": "rate_limited",
                "message": "slow down",
                "retryable": True,
                "data": {"after": 5},
                "tool": "busy",
                "where": "busy.lua:5",
            },
            "busy: slow down",
        )
        assert run.calls[0].error is not None
        assert (run.calls[0].error.detail or "").startswith("busy.lua:5\n")
        error = box.run("return tools.busy{}").error
        assert error is not None
        assert (error.code, error.message, error.retryable) == ("rate_limited", "slow down", True)
        assert error.data == {"after": 5}
        for name, code, message in (("oops", "runtime", "oops.lua:2: no luck"), ("slow", "limit_time", "")):
            with pytest.raises(ToolError) as caught:
                lib.toolbox[name].call({})
            assert (caught.value.code, caught.value.retryable) == (code, name == "slow")
            assert caught.value.message.startswith(message)


def test_context_functions_reach_the_host(tmp_path: Path) -> None:
    files = {"find.lua": "tool = {} function tool.execute(p, context) return context.search('x', {limit = 2}) end"}
    with library(tmp_path, files=files, context={"search": lambda query, options: [query, options]}) as lib:
        assert lib.toolbox["find"].call({}) == ["x", {"limit": 2}]


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ('[tools]\nfolder = ["x"]', "[tools] unknown key 'folder'; did you mean 'folders'?"),
        ("[tools.script.a]\ntimeout = 3", "[tools.script.a] path is missing"),
        ('[tools.script.a]\npath = "a.lua"\ntimeout = -1', "[tools.script.a] timeout must be more than 0, not -1"),
        ('[tools]\nfolders = ["${NOT_SET}"]', "[tools] folders[0]: the environment variable NOT_SET is not set"),
        ('[tools.script.a]\npath = "a.lua"\nhttp = "x"', "[tools.script.a]"),
        ('[tools]\nfolders = ["none"]', "does not exist or is not a folder"),
    ],
)
def test_wrong_configuration(tmp_path: Path, toml: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        library(tmp_path, toml).close()
    assert message in str(caught.value)


NAMED = 'tool = {name = "own_name"} function tool.execute(params, context) return context.tool end'


def test_a_script_in_a_folder_has_one_name_everywhere(tmp_path: Path) -> None:
    denied = 'tool = {name = "own_name"} function tool.execute() return env.get("HOME") end'
    with library(tmp_path, files={"file_name.lua": NAMED}) as lib:
        assert lib.toolbox.paths() == ("own_name",)
        assert [script.settings.name for script in lib.scripts] == ["own_name"]
        assert lib.execute(lib.scripts[0], {}).value == "own_name"
        (tmp_path / "tools" / "file_name.lua").write_text(denied)
        assert lib.refresh()
        with pytest.raises(ToolError, match=r"under \[tools\.script\.own_name\]$"):
            lib.toolbox["own_name"].call({})


def test_a_table_and_its_script_must_agree_on_the_name(tmp_path: Path) -> None:
    with library(tmp_path, '[tools.script.own_name]\npath = "tools/file_name.lua"\n', {"file_name.lua": NAMED}) as lib:
        assert lib.toolbox.paths() == ("own_name",)
    with library(tmp_path, '[tools.script.other]\npath = "tools/file_name.lua"\n') as lib:
        assert lib.toolbox.paths() == ()
        [script] = lib.scripts
        assert script.problem == (
            "[tools.script.other] runs file_name.lua, whose tool.name is 'own_name'; use one name: "
            "rename the table to [tools.script.own_name], or change or remove tool.name"
        )


def test_two_scripts_of_one_name(tmp_path: Path) -> None:
    toml = '[tools]\nfolders = ["tools"]\n[tools.script.own_name]\npath = "third.lua"\n'
    (tmp_path / "third.lua").write_text(NAMED)
    with library(tmp_path, files={"a.lua": NAMED, "b.lua": NAMED}) as lib:
        assert lib.toolbox.paths() == ("own_name",)
        taken = f"{tmp_path}/tools/b.lua and {tmp_path}/tools/a.lua both define the tool 'own_name'; rename one of them"
        assert [script.problem for script in lib.scripts] == [None, taken]
        (tmp_path / "tools" / "a.lua").unlink()
        assert lib.refresh()
        assert [script.problem for script in lib.scripts] == [None]
    with library(tmp_path, toml) as lib:
        assert [(script.settings.path.name, script.problem is None) for script in lib.scripts] == [
            ("third.lua", True),
            ("b.lua", False),
        ]


def test_a_script_that_breaks_while_it_is_used_says_so(tmp_path: Path) -> None:
    with library(tmp_path, files={"greet.lua": GREET}) as lib, Sandbox([lib.toolbox]) as box:
        (tmp_path / "tools" / "greet.lua").write_text("tool = {")
        assert lib.refresh()
        error = box.run('return tools.greet{who = "x"}').error
        assert error is not None and error.code == "unavailable"
        assert "the tool script greet cannot be used: greet.lua cannot be loaded" in error.message
        (tmp_path / "tools" / "greet.lua").write_text(GREET)
        assert lib.refresh()
        assert box.run('return tools.greet{who = "x"}.text').value == "x x "


HELPER = "local function helper(x)\n  return x.y.z\nend\ntool = {}\nfunction tool.execute() return helper({}) end"
PAIR = "tool = {}\nfunction tool.execute(params, context) return {params.n, context.tool} end"


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "\nreturn 1",
        "\n  return tool -- with a comment",
        " return {function() end}",
        "\nlocal params = 1",
        "\nlocal x, context = 1\nreturn ...",
    ],
)
def test_a_call_is_one_run_with_the_lines_of_the_file_however_the_script_ends(tmp_path: Path, ending: str) -> None:
    sink = MemorySink()
    with library(tmp_path, files={"ends.lua": PAIR + ending, "oops.lua": HELPER + ending}, audit=sink) as lib:
        assert lib.execute(lib.scripts[0], {"n": 5}).value == [5, "ends"]
        error = lib.execute(lib.scripts[1], {}).error
    assert error is not None
    assert (error.kind, error.line) == ("runtime", 2)
    assert len(list(sink.runs())) == 2


DEEP = """
tool = { name = "deep", description = "Fails." }
local function inner(t)
  local b = t.a.b
  return b
end
function tool.execute(params)
  local x = inner({})
  return x
end
"""


@pytest.mark.parametrize("ending", ["", "return\n", "local params\n"], ids=["plain", "returns", "shadows"])
@pytest.mark.parametrize(
    ("body", "traceback"),
    [
        (DEEP, "in function 'inner' (line 4),\ncalled from function 'execute' (line 8)"),
        (DEEP.replace("inner({})", "params.a.b"), "in function 'execute' (line 8)"),
    ],
    ids=["two calls", "one call"],
)
def test_a_traceback_names_lines_of_the_file_only(tmp_path: Path, body: str, traceback: str, ending: str) -> None:
    with library(tmp_path, files={"deep.lua": body + ending}) as lib:
        error = lib.execute(lib.scripts[0], {}).error
        assert error is not None and error.traceback.splitlines()[2:] == traceback.splitlines()
        assert max(frame.line or 0 for frame in error.frames) == 8
        with pytest.raises(ToolError) as caught:
            lib.toolbox["deep"].call({})
    assert (caught.value.detail or "").splitlines()[3:] == traceback.splitlines()


@pytest.mark.parametrize("call", ["search('x')", "get('a:b')", "sources()"])
def test_without_a_knowledge_base_its_functions_say_what_to_configure(tmp_path: Path, call: str) -> None:
    script = f"tool = {{}} function tool.execute(params, context) return context.{call} end"
    with library(tmp_path, files={"find.lua": script}) as lib, pytest.raises(ToolError) as caught:
        lib.toolbox["find"].call({})
    assert caught.value.message == (
        f"context.{call.partition('(')[0]} needs a knowledge base; "
        "add [knowledge.sources.NAME] to moonbox.toml and run `moonbox sync`"
    )
    assert (caught.value.code, caught.value.retryable) == ("unavailable", False)


def test_scripts_find_the_knowledge_base_wherever_they_are_loaded(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Lunch\n\nSoup at noon.")
    toml = '[tools]\nfolders = ["tools"]\n[knowledge.sources.notes]\nconnector = "filesystem"\npath = "notes"\n'
    (tmp_path / "tools").mkdir()
    script = (
        "tool = {} function tool.execute(params, context) return context.get(context.search('soup')[1].id).body end"
    )
    (tmp_path / "tools" / "find.lua").write_text(script)
    (tmp_path / "moonbox.toml").write_text(toml)
    config = Config.load(tmp_path / "moonbox.toml")
    with KnowledgeBase.from_config(read_knowledge(config)) as base:
        base.sync("notes")
    with closing(Toolbox.from_scripts(tmp_path / "moonbox.toml").library) as lib:
        assert lib.toolbox["find"].call({}) == "# Lunch\n\nSoup at noon."


PAGES = """
connector = { name = "pages" }

function connector.scan(config, cursor)
  if not cursor then
    return { items = { { source_id = "first", title = type(cursor), body = "a" } }, next = 2 }
  end
  return { items = { { source_id = "last", title = type(cursor), body = tostring(config.note) } }, next = nil }
end
"""


def test_the_first_cursor_is_nil(tmp_path: Path) -> None:
    (tmp_path / "pages.lua").write_text(PAGES)
    connector = ScriptConnectorKind().build({"path": "pages.lua"}, tmp_path, "knowledge.sources.pages")
    assert list(connector.scan({})) == [
        {"source_id": "first", "title": "nil", "body": "a"},
        {"source_id": "last", "title": "number", "body": "nil"},
    ]


def test_a_page_of_a_connector_with_an_unknown_key_loses_no_documents(tmp_path: Path) -> None:
    (tmp_path / "pages.lua").write_text(PAGES.replace("next = 2", "nxt = 2"))
    connector = ScriptConnectorKind().build({"path": "pages.lua"}, tmp_path, "knowledge.sources.pages")
    with pytest.raises(KnowledgeError, match=r"^pages\.lua: connector\.scan returned an unknown key .nxt.; did you"):
        list(connector.scan({}))


def test_a_connector_script_has_no_tools(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^\[knowledge\.sources\.pages\] a connector script cannot call tools"):
        ScriptConnectorKind().build({"path": "pages.lua", "tools": ["x"]}, tmp_path, "knowledge.sources.pages")


@pytest.mark.parametrize(("line", "direct"), [("direct = true\n", ["greet"]), ("", [])])
def test_a_script_can_be_direct_too(tmp_path: Path, line: str, direct: list[str]) -> None:
    (tmp_path / "greet.lua").write_text(GREET)
    (tmp_path / "moonbox.toml").write_text(f'[tools.script.greet]\npath = "greet.lua"\n{line}')
    with assemble(Config.load(tmp_path / "moonbox.toml")) as project:
        assert [tool.path for tool in project.mode.direct_tools] == direct
        assert [tool.path for tool in project.mode.hidden_tools] == ["greet"]
