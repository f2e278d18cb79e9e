"""CodeMode: what the model is shown beside the tools, and the answers to its calls."""

from __future__ import annotations

import asyncio
import functools
import json
import threading
import tomllib
from dataclasses import fields
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moonbox import CodeMode, Limits, Sandbox, Tool, tool
from moonbox.codemode.catalog import rough_tokens
from moonbox.config.reader import read
from moonbox.config.sections import CodeModeSettings
from moonbox.errors import ClosedError, ConfigError, UsageError
from moonbox.runs.environment import Additions


def code(text: str) -> dict[str, str]:
    return {"source_code": text}


# The system prompt


def test_the_system_prompt_is_short(box: Sandbox) -> None:
    with CodeMode(box) as mode, Sandbox() as bare, CodeMode(bare) as calculator:
        assert 0 < len(mode.system_prompt.encode()) <= 500
        assert 0 < len(calculator.system_prompt.encode()) <= 500
        assert "lua_repl" in mode.system_prompt and "tools." not in calculator.system_prompt
    with CodeMode(box, name="a" * 64) as mode:
        assert len(mode.system_prompt.encode()) <= 500
    with CodeMode(box, system_prompt="Mine.") as mode:
        assert mode.system_prompt == "Mine."
    with CodeMode(box, mode="never") as mode:
        assert mode.system_prompt == ""


# Names and texts


def test_name_parameter_and_description_can_be_changed(box: Sandbox) -> None:
    with CodeMode(box, name="run", parameter="script", description="Runs Lua.") as mode:
        first = mode.definitions("anthropic")[0]
        assert (mode.tool_name, mode.parameter) == (first["name"], "script") == ("run", "script")
        assert first["description"].startswith("Runs Lua.\nTools:\n- add(")
        assert first["input_schema"]["required"] == ["script"]
        assert mode.handle("run", {"script": "return tools.add{a = 1, b = 2}"}) == "3"
        assert mode.handle("lua_repl", {"script": "1"}).startswith("error: unknown tool 'lua_repl'")


# Choosing


@tool
def tiny() -> int:
    """One."""
    return 1


def large_tools() -> list[Tool]:
    properties = {f"parameter_{number}": {"type": "string", "description": "words " * 20} for number in range(10)}
    schema = {"type": "object", "properties": properties}
    return [Tool.from_schema(name=f"t{number}", parameters=schema, call=lambda args: "called") for number in range(20)]


def names(mode: CodeMode) -> list[str]:
    return [item["name"] for item in mode.definitions("anthropic")]


def test_auto_takes_the_code_tool_where_it_is_smaller() -> None:
    with Sandbox(large_tools()) as many, CodeMode(many, mode="auto") as mode:
        assert mode.choice.code and not mode.choice.both
        assert mode.choice.reason.startswith("the code tool is smaller (")
        sent = json.dumps(mode.definitions("anthropic"), separators=(",", ":"))
        assert mode.choice.code_tokens == rough_tokens(sent) + rough_tokens(mode.system_prompt)
        assert names(mode) == ["lua_repl"]
    with Sandbox([tiny.with_(policy="direct")]) as none, CodeMode(none, mode="auto") as mode:
        assert mode.choice.reason.startswith("no tool may be called from scripts (")
        assert mode.choice.code is False
    with Sandbox() as bare, CodeMode(bare, mode="auto") as mode:
        assert mode.choice.code and not mode.choice.both


@pytest.mark.parametrize("language", ["lua", "rhai", "python"])
def test_auto_shows_a_small_toolbox_both_ways(language: str) -> None:
    calls = {"lua": "return tools.tiny{} + tools.tiny{}", "rhai": "tiny(#{}) + tiny(#{})", "python": "tiny() + tiny()"}
    call = calls[language]
    with Sandbox([tiny], language=language) as few, CodeMode(few, mode="auto") as mode:
        choice = mode.choice
        assert choice.code and choice.both and choice.direct_tokens < choice.both_tokens < choice.code_tokens
        sizes = (
            f"{choice.code_tokens} tokens with the code tool, {choice.direct_tokens} with every tool direct, "
            f"{choice.both_tokens} with both"
        )
        assert choice.reason == f"direct definitions are smaller, and a lean code tool is beside them ({sizes})"
        assert names(mode) == [mode.tool_name, "tiny"]
        assert mode.system_prompt == ""
        assert [tool.path for tool in mode.hidden_tools] == ["tiny"]
        assert mode.handle("tiny", {}) == "1"
        assert mode.handle(mode.tool_name, code(call)) == "2"
        lean = mode.definitions("openai")[0]
        assert rough_tokens(json.dumps(lean)) <= 250
        assert "Tools:" not in mode.description


def test_the_lean_code_tool_says_what_scripts_need_to_know() -> None:
    row = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}
    rows = Tool.from_schema(name="rows", namespace="db", call=lambda args: [], returns={"type": "array", "items": row})
    with Sandbox([rows, tiny.with_(policy="direct")]) as box, CodeMode(box, mode="auto") as mode:
        assert mode.choice.both
        assert names(mode) == ["lua_repl", "db__rows", "tiny"]
        assert (
            "`space__name` is tools.space.name. Not in scripts: tiny.\nResults: db.rows {id?: integer"
            in mode.description
        )
        assert "scripts cannot call 'tiny'" in mode.handle("lua_repl", code("return tools.tiny{}"))


def test_the_lean_code_tool_stays_small() -> None:
    fields = {f"a_rather_long_name_{number}": {"type": "string"} for number in range(12)}
    returns = {"type": "object", "properties": fields}
    tools = [Tool.from_schema(name=f"t{number}", call=lambda args: {}, returns=returns) for number in range(6)]
    with Sandbox(tools) as box, CodeMode(box, mode="auto") as mode:
        assert mode.choice.both
        assert 150 < rough_tokens(json.dumps(mode.definitions("anthropic")[0], separators=(",", ":"))) <= 250


def test_what_is_learned_of_results_decides_from_then_on() -> None:
    @tool
    def rows(count: int) -> list[dict[str, int]]:
        """Rows."""
        return [{"number": number} for number in range(count)]

    def taught(count: int, *, scripted: bool = False, times: int = 3) -> CodeMode:
        box = Sandbox([rows], isolation="inline")
        with CodeMode(box, mode="auto") as mode:
            for _ in range(times):
                if scripted:
                    mode.handle("lua_repl", code(f"return #tools.rows{{count = {count}}}"))
                else:
                    mode.handle("rows", {"count": count})
            assert mode.choice.both, "what is shown does not change in the middle of a conversation"
        return CodeMode(box, mode="auto")

    assert taught(2, times=2).choice.both
    small = taught(2)
    assert small.choice.reason.startswith("results are small, and no script asked for them (")
    assert names(small) == ["rows"] and small.system_prompt == ""
    assert taught(2, scripted=True).choice.both
    large = taught(5000)
    assert large.choice.reason.startswith("results are large, up to ")
    assert names(large) == ["lua_repl"] and "Tools:\n- rows(" in large.description
    asked = CodeMode(Sandbox([rows], isolation="inline"), mode="auto")
    for _ in range(3):
        asked.handle("rows", {"count": 2})
    assert asked.choice.both
    asked.show_learned()
    assert not asked.choice.code


def test_ones_own_counter_of_tokens(box: Sandbox) -> None:
    with CodeMode(box, mode="auto", count_tokens=len, catalog_tokens=80) as mode:
        assert mode.catalog.tokens == len(mode.catalog.text)
        assert mode.catalog.detail == "signatures"


# Answers


def test_values_output_and_errors(mode: CodeMode) -> None:
    assert mode.handle("lua_repl", code("return {1, 2}, 'x'")) == '2 values:\n1: [1,2]\n2: "x"'
    assert mode.handle("lua_repl", code("print('hi') return 1")) == "printed:\nhi\n\nreturned:\n1"
    reply = mode.reply("lua_repl", code("tools.add{a = 1}\nerror('no')"))
    assert reply.is_error and reply.run is not None and not reply.run.ok
    assert reply.text.startswith("runtime error on line 2: no")
    assert '1. add {"a":1,"b":0}: ok' in reply.text
    assert mode.reply("lua_repl", code("1")).is_error is False
    assert "on line 2" in mode.handle("lua_repl", code("```lua\nerror('no')\n```")), "fences keep the line numbers"


def test_a_long_answer_keeps_its_ends_and_says_what_is_missing(box: Sandbox, mode: CodeMode) -> None:
    with CodeMode(box, max_chars=500) as small:
        text = small.handle("lua_repl", code("return ('x'):rep(100000)"))
        assert len(text) <= 500 and text.startswith("xxx") and text.endswith("x")
    text = mode.handle("lua_repl", code("local t = {} for i = 1, 30000 do t[i] = i end return t"))
    assert len(text) <= 20_000
    assert text.startswith("[1,2,3,") and text.endswith(",29999,30000]")
    note = next(line for line in text.splitlines() if line.startswith("[… "))
    assert "characters left out here; the value is an array of 30,000 elements, kept as _1." in note
    assert note.endswith("Read on without calling anything again: return {table.unpack(_1, 1, 50)} …]")
    assert mode.handle("lua_repl", code("return {table.unpack(_1, 1, 3)}")) == "[1,2,3]"


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ('{"source_code": "6 * 7"}', "42"),
        (b'{"source_code": "6 * 7"}', "42"),
        ('{"source_code": "x = 6\nreturn x * 7"}', "42"),
        ({"code": "6 * 7"}, "42"),
        ({"Source": "6 * 7"}, "42"),
        ({"source_code": "```lua\nreturn 6 * 7\n```"}, "42"),
        ({"source_code": "6 * 7", "note": "more"}, "42"),
    ],
)
def test_calls_are_read_kindly(mode: CodeMode, arguments: Any, answer: str) -> None:
    assert mode.handle("lua_repl", arguments) == answer


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(depth):
        inner = {"a": inner}
    return inner


WANTED = 'error: lua_repl takes one argument: {"source_code": "<script>"}'


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ("{", f"{WANTED}; the arguments were not a JSON object"),
        ("[1]", f"{WANTED}; the arguments were not a JSON object"),
        ("[" * 100_000, f"{WANTED}; the arguments were not a JSON object"),
        (7, f"{WANTED}; the arguments were not a JSON object"),
        (None, f"{WANTED}, not {{}}"),
        ("", f"{WANTED}, not {{}}"),
        ({"source_code": 1}, f"{WANTED}, not {{'source_code': 1}}"),
        ({"code": 1}, f"{WANTED}, not {{'code': 1}}"),
        ({"malformed": "os.time()"}, f"{WANTED}, not {{'malformed': 'os.time()'}}"),
        ({"a": "x" * 500}, f"{WANTED}, not {{'a': '{'x' * 72}…"),
        ({1: "x"}, f"{WANTED}, not {{1: 'x'}}"),
        (nested(100_000), f"{WANTED}, not a dict that is nested too deeply"),
        ({"source_code": 10**5000}, f"{WANTED}, not a dict that cannot be shown"),
        (bytearray(b"{"), f"{WANTED}; the arguments were not a JSON object"),
        (b"\xff\xfe", f"{WANTED}; the arguments were not a JSON object"),
    ],
)
def test_calls_that_make_no_sense(mode: CodeMode, arguments: Any, answer: str) -> None:
    assert mode.reply("lua_repl", arguments).text == answer
    assert asyncio.run(mode.areply("lua_repl", arguments)).is_error


def test_unknown_and_hidden_tools(mode: CodeMode) -> None:
    names = "lua_repl, rm, pay, github__delete_repo"
    assert mode.handle("rn", {}) == f"error: unknown tool 'rn'; known tools: {names}"
    assert mode.handle("repl_lua", {}).startswith("error: unknown tool 'repl_lua'; did you mean 'lua_repl'?")
    assert mode.handle("lua_rep", {}).startswith("error: unknown tool 'lua_rep'; did you mean 'lua_repl'?")
    direct = "error: {} is called from a script: use lua_repl and write tools.{}{{...}}"
    assert mode.handle("add", {"a": 1}) == direct.format("add", "add")
    assert mode.handle("github__list_repos", {}) == direct.format("github__list_repos", "github.list_repos")
    assert mode.handle("github.list_repos", {}) == direct.format("github.list_repos", "github.list_repos")


@pytest.mark.parametrize("name", [None, 7, ["rm"], {"name": "rm"}, b"rm"])
def test_names_that_are_no_text(mode: CodeMode, name: Any) -> None:
    wanted = f"error: the tool's name must be a string, not {name!r}"
    assert mode.handle(name, {}) == wanted
    assert asyncio.run(mode.ahandle(name, {})) == wanted


def test_the_answer_about_a_name_is_short() -> None:
    tools = [tiny.with_(name=f"tool_{number:03}", policy="direct") for number in range(200)]
    with Sandbox(tools, isolation="inline") as box, CodeMode(box) as mode:
        answer = mode.handle("x" * 100_000, {})
        assert answer.startswith(f"error: unknown tool '{'x' * 64}…'; known tools: lua_repl, tool_000, ")
        assert answer.endswith(", tool_017, tool_018 and 181 more")
    with Sandbox(isolation="inline") as box, CodeMode(box, mode="never") as mode:
        assert mode.handle("x", {}) == "error: unknown tool 'x'; there are no tools"


HOSTILE: list[Any] = [
    *(None, "", b"", "{", "[]", "null", "1", '"x"', b"\xff", "1" * 5000, "[" * 200_000, '{"a":' * 200_000, 1.5, True),
    *({1: 2}, {("a",): 1}, {"path": float("nan")}, {"path": "\ud800"}, {"path": 10**5000}, {"path": object()}, [1]),
    *(
        {"source_code": text}
        for text in ("\ud800", "\x00", "return '\\u{D800}'", "", "```", "``````\n", "a" * 11_000_000)
    ),
    {"path": nested(100_000)},
    {"source_code": nested(100_000)},
    '{"path": NaN}',
    '\ufeff{"path": "x"}',
]


@pytest.mark.parametrize("arguments", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_that_a_model_sends_is_raised(mode: CodeMode, arguments: Any) -> None:
    for name in ("lua_repl", "rm", "add", "nobody", "", "\ud800\n"):
        text = mode.handle(name, arguments)
        assert 0 < len(text) <= 20_000
        text.encode()


def test_direct_calls(mode: CodeMode) -> None:
    assert mode.handle("rm", {"path": "x"}) == "removed x"
    assert mode.handle("rm", '{"path": "x"}') == "removed x"
    assert mode.handle("github.delete_repo", {}) == "delete_repo"
    assert mode.handle("rm", "{") == "error: the arguments of rm must be a JSON object, not '{'"
    reply = asyncio.run(mode.areply("rm", {"pth": "x"}))
    assert reply.is_error and "path" in reply.text and reply.run is not None
    assert [call.tool for call in reply.run.calls] == ["rm"]


# Approvals


def test_approvals_inside_scripts_and_outside() -> None:
    asked: list[str] = []

    @tool(policy="approve")
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    def approve(call: Any) -> bool:
        asked.append(call.tool)
        return bool(call.arguments["amount"] < 10)

    with Sandbox([pay], approve=approve) as box:
        with CodeMode(box) as outside:
            assert outside.hidden_tools == ()
            assert outside.handle("pay", {"amount": 5}) == "paid 5"
            assert outside.reply("pay", {"amount": 50}).is_error
        with CodeMode(box, approvals=True) as inside:
            assert [item["name"] for item in inside.definitions("anthropic")] == ["lua_repl"]
            assert inside.handle("lua_repl", code("return tools.pay{amount = 5}")) == "paid 5"
            refused = inside.handle("lua_repl", code("return tools.pay{amount = 50}"))
            assert "denied" in refused
    assert asked == ["pay"] * 4


# Tools that only the model may call


@pytest.mark.parametrize(
    "script",
    [
        "return tools.rm{path = 'x'}",
        "return tools . rm {path = 'x'}",
        "return tools['rm']{path = 'x'}",
        "local t = tools\nreturn t.rm{path = 'x'}",
        "rm('x')",
        "docs.describe('rm')",
    ],
)
def test_a_script_that_calls_a_direct_tool_is_told_so(mode: CodeMode, script: str) -> None:
    run = mode.reply("lua_repl", code(script)).run
    assert run is not None and run.error is not None
    assert run.error.hint == "scripts cannot call 'rm'; call the tool 'rm' directly, outside a script"


def test_a_direct_tool_of_a_namespace(mode: CodeMode) -> None:
    text = mode.handle("lua_repl", code("tools.github.delete_repo{}"))
    hint = "scripts cannot call 'github.delete_repo'; call the tool 'github__delete_repo' directly, outside a script"
    assert f"hint: {hint}\n" in text


@pytest.mark.parametrize(
    ("language", "script"),
    [
        ("lua", "tools.db.drop{}"),
        ("rhai", "drop(#{})"),
        ("rhai", "db::drop(#{})"),
        ("rhai", 'docs_describe("db.drop")'),
        ("python", "drop()"),
        ("python", "db.drop()"),
        ("python", "tools.db.drop()"),
        ("python", 'docs.describe("db.drop")'),
    ],
)
def test_the_same_in_every_language(language: str, script: str) -> None:
    only = Tool.from_schema(name="drop", namespace="db", call=lambda args: None, policy="direct")
    tools = [only.with_(namespace=None) if script.startswith("drop") else only, tiny]
    with Sandbox(tools, language=language) as box, CodeMode(box) as mode:
        text = mode.handle(mode.tool_name, code(script))
    assert f"call the tool '{'drop' if script.startswith('drop') else 'db__drop'}' directly" in text


@pytest.mark.parametrize(
    "script", ["return nothing.rm", "local rm = 1\nreturn x.y", "return tools.nope{}", "error('rm')"]
)
def test_other_mistakes_are_not_taken_for_that(mode: CodeMode, script: str) -> None:
    assert "outside a script" not in mode.handle("lua_repl", code(script))


# Conversations


def test_each_conversation_has_its_state(mode: CodeMode) -> None:
    count = code("n = (n or 0) + 1 return n")
    assert [mode.handle("lua_repl", count, conversation=key) for key in ("a", "b", "a", "a")] == ["1", "1", "2", "3"]
    assert mode.end("a") is True
    assert mode.end("a") is False
    assert mode.handle("lua_repl", count, conversation="a") == "1"
    assert mode.repl("b").run("return n").value == 1
    assert asyncio.run(mode.ahandle("lua_repl", count, conversation="b")) == "2"


def test_ending_a_conversation_stops_its_script() -> None:
    inside, go_on = threading.Event(), threading.Event()

    @tool
    def wait() -> None:
        """Wait."""
        inside.set()
        go_on.wait(30)

    with Sandbox([wait]) as box, CodeMode(box) as mode:
        replies: list[Any] = []
        thread = threading.Thread(target=lambda: replies.append(mode.reply("lua_repl", code("tools.wait{}"))))
        thread.start()
        inside.wait(30)
        mode.end()
        go_on.set()
        thread.join()
        assert replies[0].is_error


def test_after_closing(box: Sandbox) -> None:
    mode = CodeMode(box)
    mode.handle("lua_repl", code("1"))
    mode.close()
    with pytest.raises(ClosedError, match="this CodeMode is closed"):
        mode.handle("lua_repl", code("1"))
    with pytest.raises(ClosedError, match="this CodeMode is closed"):
        mode.definitions()
    assert box.run("return 1").value == 1
    closed = Sandbox()
    mode = CodeMode(closed)
    closed.close()
    with pytest.raises(ClosedError, match="the Sandbox is closed"):
        mode.handle("lua_repl", code("1"))


def test_no_free_worker_is_told_to_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    with Sandbox(max_workers=1) as box, CodeMode(box) as mode, box.repl() as busy:
        busy.run("x = 1")
        monkeypatch.setattr(box, "repl", functools.partial(box.repl, timeout=0.01))
        reply = mode.reply("lua_repl", code("1"))
        assert reply.is_error and reply.run is None and reply.text.startswith("error: ")


# Made from tools, and with replies as JSON


def test_tools_in_place_of_a_sandbox() -> None:
    def double(x: int) -> int:
        """Twice as much."""
        return 2 * x

    with CodeMode([double]) as mode:
        assert mode.handle("lua_repl", code("return tools.double(21)")) == "42"
        box = mode.sandbox
    assert box.closed


def test_replies_as_json(box: Sandbox) -> None:
    with CodeMode(box, reply="json") as mode:

        def reply(source: str) -> Any:
            return json.loads(mode.handle("lua_repl", code(source)))

        assert reply("print('hi') return {a = {1, 2}}") == {"result": {"a": [1, 2]}, "output": "hi\n"}
        assert reply("return 1, 'x'") == {"result": [1, "x"], "output": ""}
        assert reply("x = 1") == {"result": None, "output": ""}
        failed = reply("print('before') error('no')")
        assert failed["output"] == "before\n"
        assert failed["error"]["kind"] == "runtime" and "no" in failed["error"]["message"]


@pytest.mark.parametrize("source", ["return ('x'):rep(5000)", "return ('\\0'):rep(5000)", "error(('\\0'):rep(5000))"])
def test_replies_as_json_are_bounded(box: Sandbox, source: str) -> None:
    with CodeMode(box, reply="json", max_chars=500) as mode:
        text = mode.handle("lua_repl", code(source))
    assert len(text) <= 500
    json.loads(text)


def test_tools_kept_visible_by_pattern() -> None:
    def named(name: str) -> Tool:
        return Tool.from_schema(name=name, call=lambda given: name)

    tools = {"shell": [named("bash"), named("ls")], "other": [named("bash_run"), named("zip")]}
    with CodeMode(tools, keep_visible=["bash*", "other.z?p", "later_*"]) as mode:
        assert [tool.path for tool in mode.direct_tools] == ["shell.bash", "other.bash_run", "other.zip"]
        mode.sandbox.toolbox.add(named("bashful"))
        assert "bashful" in [tool.path for tool in mode.direct_tools]
        assert "shell.ls" in [tool.path for tool in mode.hidden_tools]
        assert "- shell.ls(" in mode.description and "- shell.bash(" not in mode.description


IDENTIFIER = "must be 1 to 64 letters, digits and underscores, not beginning with a digit"
NAMES = ", ".join(item.name for item in fields(CodeModeSettings))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"keep_visble": []}, "unknown key 'keep_visble'; did you mean 'keep_visible'?"),
        ({1: 2}, f"unknown key '1'; known keys: {NAMES}"),
        ({"mode": "sometimes"}, "mode must be 'always', 'auto' or 'never', not 'sometimes'"),
        ({"name": "lua repl"}, f"name {IDENTIFIER}, not 'lua repl'"),
        ({"name": ""}, f"name {IDENTIFIER}, not ''"),
        ({"name": "x" * 65}, f"name {IDENTIFIER}, not {'x' * 65!r}"),
        ({"parameter": "1x"}, f"parameter {IDENTIFIER}, not '1x'"),
        ({"catalog_tokens": 0}, "catalog_tokens must be at least 1, not 0"),
        ({"description_chars": 10}, "description_chars must be at least 200, not 10"),
        ({"max_chars": 499}, "max_chars must be at least 500, not 499"),
    ],
)
def test_what_is_refused(given: dict[Any, Any], message: str, box: Sandbox) -> None:
    with pytest.raises(ConfigError) as caught:
        CodeMode.from_config(box, given)
    assert str(caught.value) == f"[codemode] {message}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_conversations": 0}, "max_conversations must be a whole number of at least 1, not 0"),
        ({"max_conversations": "9"}, "max_conversations must be a whole number of at least 1, not '9'"),
        ({"idle_seconds": -1}, "idle_seconds must be a positive number or None, not -1"),
        ({"idle_seconds": float("nan")}, "idle_seconds must be a positive number or None, not nan"),
        ({"idle_seconds": "60"}, "idle_seconds must be a positive number or None, not '60'"),
    ],
)
def test_wrong_bounds_of_conversations(given: dict[str, Any], message: str, box: Sandbox) -> None:
    with pytest.raises(UsageError) as caught:
        CodeMode(box, **given)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", [5, None, b"a"])
def test_a_conversation_has_a_name(mode: CodeMode, name: Any) -> None:
    with pytest.raises(UsageError, match="conversation must be a name, not"):
        mode.handle("lua_repl", {"source_code": "return 1"}, conversation=name)


def test_from_toml(box: Sandbox) -> None:
    text = 'keep_visible = ["add"]\nfull_schemas = true\nmode = "auto"\nname = "run_lua"\nmax_chars = 1000'
    with CodeMode.from_config(box, tomllib.loads(text), max_conversations=3) as mode:
        assert mode.settings == CodeModeSettings(
            keep_visible=("add",), full_schemas=True, mode="auto", name="run_lua", max_chars=1000
        )
    defaults = {name: part["default"] for name, part in CodeMode.config_schema()["properties"].items()}
    assert read(CodeModeSettings, defaults, "codemode") == CodeMode.from_config(box, None).settings


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 2000),
    st.sampled_from([0.5, 700.25]),  # JSON Schema takes 1.0 for an integer, we do not
    st.sampled_from(["always", "auto", "never", "", "x", "a b", "ä", "1", "a\n", "_"]),
    st.lists(st.one_of(st.text(max_size=3), st.integers()), max_size=2),
)


@given(
    st.dictionaries(st.sampled_from([*(item.name for item in fields(CodeModeSettings)), "other"]), values, max_size=3)
)
def test_the_schema_and_the_contract_agree(data: dict[str, Any]) -> None:
    try:
        read(CodeModeSettings, data, "codemode")
        accepted = True
    except ConfigError:
        accepted = False
    assert jsonschema_rs.is_valid(CodeMode.config_schema(), data) is accepted


def test_a_repl_as_the_sandbox() -> None:
    """Its functions are described, and the conversation without a name is that Repl."""

    def rate(currency: str) -> float:
        """Euros for one unit of the currency."""
        return {"usd": 0.5}[currency]

    with Sandbox([tiny]) as box, box.repl(limits=Limits(max_tool_calls=3)) as repl:
        repl.define("rate", rate)
        repl.run("n = 3")
        with CodeMode(repl) as mode:
            assert "- rate — Euros for one unit of the currency." in mode.description
            assert "3 tool calls" in mode.description
            assert mode.handle("lua_repl", code("return n * rate('usd')")) == "1.5"
            assert (
                mode.handle("lua_repl", code("return n == nil, rate('usd')"), conversation="b")
                == "2 values:\n1: true\n2: 0.5"
            )
            mode.handle("lua_repl", code("m = 4"))
            assert repl.globals() == {"m": "number", "n": "number"}
            assert mode.end()
            assert repl.globals() == {}
        assert repl.run("return 1").value == 1, "it stays open"


def test_a_sandbox_takes_the_functions_of_another() -> None:
    with Sandbox([tiny]) as box, Sandbox() as other:
        other.define("rate", lambda currency: 2, doc="rate(currency) -> dollars.")
        other.define("vat", 0.5, doc="vat: the tax")
        box.define_as(other)
        assert "- rate(currency) -> dollars." in CodeMode(box).description
        assert box.run("return rate('x') * vat").value == 1
        assert "sleep" not in box.docs.added(Additions.standard().docs)


def test_text_that_was_json_is_said_to_be_so_in_the_next_code_mode() -> None:
    @tool
    def types() -> str:
        """All types of products."""
        return '[{"name": "shoe", "count": 3}]'

    with Sandbox([types]) as box:
        assert "- types() -> string — " in CodeMode(box).catalog.text
        box.run("return tools.types{}")
        assert "- types() -> string (JSON: {name: string, count: integer}[]) — " in CodeMode(box).catalog.text
