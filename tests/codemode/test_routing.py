"""Routing: one predicate hides and exposes, and no tool can become unreachable, whatever the toolbox."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moonbox import CodeMode, Sandbox, Tool, Toolbox, tool
from moonbox.codemode.routing import Routes, is_eligible
from moonbox.errors import ConfigError, ToolDefinitionError
from moonbox.tools.hints import Hints
from tests.long import times

parts = st.one_of(
    st.sampled_from(["add", "end", "lua_repl", "a", "a_", "search", "docs", "tools", "2fa", "a-b", "ä", "and", "A"]),
    st.text(
        st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="."), min_size=1, max_size=9
    ),
)
flags = st.sampled_from([None, True, False])


@st.composite
def tools(draw: Any) -> Tool:
    name = draw(parts)
    hints = Hints(read_only=draw(flags), destructive=draw(flags), cpu_bound=draw(flags), client_side=draw(flags))
    space = draw(st.one_of(st.none(), parts, st.builds("{}.{}".format, parts, parts)))
    return Tool.from_schema(
        name=name,
        namespace=space,
        call=lambda args: f"this is {space}/{name}",
        policy=draw(st.sampled_from(["auto", "approve", "direct"])),
        hints=hints,
        execution=draw(st.booleans()),
    )


@st.composite
def toolboxes(draw: Any) -> Toolbox:
    box = Toolbox()
    for item in draw(st.lists(tools(), max_size=8)):
        try:
            box.add(item)
        except ToolDefinitionError:
            assert item.path in box  # taken already
    return box


@given(toolboxes(), st.data(), st.booleans(), st.sampled_from(["always", "auto", "never"]))
@settings(max_examples=times(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_tool_is_reachable(toolbox: Toolbox, data: Any, approvals: bool, mode: Any) -> None:
    kept = data.draw(st.lists(st.sampled_from(toolbox.paths()), unique=True)) if len(toolbox) else []
    options = {"keep_visible": kept, "approvals": approvals, "mode": mode}
    with (
        Sandbox(toolbox, isolation="inline", approve=lambda call: True) as box,
        CodeMode(box, **options) as shown,
    ):
        names = [item["function"]["name"] for item in shown.definitions("openai")]
        assert len(names) == len(set(names)) == len(shown.direct_tools) + shown.choice.code
        hidden = {tool.path for tool in shown.hidden_tools}
        direct = {tool.path for tool in shown.direct_tools}
        eligible = {path for path in toolbox.paths() if is_eligible(toolbox[path], approvals=approvals)}
        assert hidden | direct == set(toolbox.paths())
        assert hidden == (eligible if shown.choice.code else set())
        if shown.choice.code and not shown.choice.both:
            assert hidden & direct == eligible & set(kept)
        called = dict(zip(names[shown.choice.code :], shown.direct_tools, strict=True))
        for name, item in called.items():
            assert shown.handle(name, {}) == f"this is {item.namespace}/{item.name}"
        aliases = Toolbox(shown.hidden_tools).aliases()
        for item in shown.hidden_tools:
            alias = aliases[item.path]
            script = f"return tools.{alias}{{}}"
            assert shown.handle(shown.tool_name, {"source_code": script}) == f"this is {item.namespace}/{item.name}"
            listed = not shown.choice.both and item.path not in kept
            assert (f"- {alias}(" in shown.description) is listed


@pytest.mark.parametrize(
    ("changes", "eligible", "with_approvals"),
    [
        ({}, True, True),
        ({"hints": {"read_only": True}}, True, True),
        ({"hints": {"destructive": False}}, True, True),
        ({"hints": {"open_world": True}}, True, True),
        ({"hints": {"destructive": True}}, False, False),
        ({"hints": {"client_side": True}}, False, False),
        ({"hints": {"cpu_bound": True}}, False, False),
        ({"execution": True}, False, False),
        ({"policy": "direct"}, False, False),
        ({"policy": "approve"}, False, True),
        ({"policy": "approve", "hints": {"destructive": True}}, False, True),
        ({"policy": "approve", "hints": {"client_side": True}}, False, False),
        ({"policy": "approve", "execution": True}, False, False),
    ],
)
def test_the_predicate(changes: dict[str, Any], eligible: bool, with_approvals: bool) -> None:
    made = Tool.from_schema(name="x", call=lambda args: None, **changes)
    assert is_eligible(made) is eligible
    assert is_eligible(made, approvals=True) is with_approvals


def test_tools_come_and_go(box: Sandbox) -> None:
    @tool
    def one() -> int:
        """One."""
        return 1

    toolbox = Toolbox([one])
    with Sandbox(toolbox) as changing, CodeMode(changing) as mode:
        script = {"source_code": "return tools.one{}"}
        assert mode.handle("lua_repl", script) == "1"
        before = mode.description
        toolbox.add(one.with_(name="two"))
        assert "- two() -> integer — One." in mode.description
        assert mode.handle("lua_repl", {"source_code": "return tools.two{}"}) == "1"
        toolbox.remove("one")
        assert mode.reply("lua_repl", script).is_error
        toolbox.add(one.with_(policy="direct"))
        assert [item["name"] for item in mode.definitions("anthropic")] == ["lua_repl", "one"]
        assert mode.handle("one", {}) == "1"
        toolbox.remove("two", "one")
        toolbox.add(one)
        assert mode.description == before


def test_keep_visible_names_tools_that_exist(box: Sandbox) -> None:
    with CodeMode(box, keep_visible=["github.list_repos"]) as mode:
        assert [tool.path for tool in mode.hidden_tools] == ["add", "github.list_repos"]
        assert mode.handle("github__list_repos", {}) == "list_repos"
        assert mode.handle("lua_repl", {"source_code": "return tools.github.list_repos{}"}) == "list_repos"
        assert mode.description.endswith("Scripts may also call, as tools.<name>: github.list_repos.")
        assert "- github.list_repos" not in mode.description
    with pytest.raises(ConfigError) as caught:
        CodeMode(box, keep_visible=["list_repo"])
    assert str(caught.value) == "keep_visible: unknown tool 'list_repo'; did you mean 'github.list_repos'?"


def test_a_kept_tool_may_come_later() -> None:
    toolbox = Toolbox()
    with Sandbox(toolbox) as box, CodeMode(box, keep_visible=["far.ask"], later=["far"]) as mode:
        assert list(mode.direct_tools) == []
        toolbox.add(Tool.from_schema(name="ask", namespace="far", call=lambda args: 1))
        toolbox.add(Tool.from_schema(name="other", namespace="far", call=lambda args: 2))
        assert [tool.path for tool in mode.direct_tools] == ["far.ask"]
        assert mode.handle("lua_repl", {"source_code": "return tools.far.ask{} + tools.far.other{}"}) == "3"
    with Sandbox(toolbox) as box, pytest.raises(ConfigError, match=r"unknown tool 'farther\.ask'"):
        CodeMode(box, keep_visible=["farther.ask"], later=["far"])


TEXT = {"type": "string"}


def test_narration_is_filled_in_for_scripts() -> None:
    schema = {
        "type": "object",
        "properties": {"human_intent": TEXT, "x": {"type": "integer"}, "note": TEXT},  # two share one schema
        "required": ["human_intent", "x"],
    }
    seen: list[Any] = []
    told = Tool.from_schema(name="told", parameters=schema, call=seen.append)
    routes = Routes(Toolbox([told]))
    assert routes.hidden["told"].parameters["required"] == ["x"]
    assert told.parameters["required"] == ["human_intent", "x"]
    with Sandbox([told]) as box, CodeMode(box) as mode:
        mode.handle("lua_repl", {"source_code": "tools.told{x = 1}"})
        assert "human_intent" not in json.dumps(mode.definitions())
    assert seen == [{"x": 1, "human_intent": "Called from a script."}]


def test_narration_that_is_optional_is_left_out() -> None:
    seen: list[Any] = []
    schema = {"type": "object", "properties": {"human_intent": TEXT, "x": {"type": "integer"}}}
    with Sandbox([Tool.from_schema(name="told", parameters=schema, call=seen.append)]) as box, CodeMode(box) as mode:
        mode.handle("lua_repl", {"source_code": "tools.told{x = 1}"})
        assert "human_intent" not in json.dumps(mode.definitions())
    assert seen == [{"x": 1}]
