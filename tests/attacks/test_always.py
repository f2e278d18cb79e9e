"""A tool that is redefined behind a person's back does not inherit the "always" that was said about another."""

from __future__ import annotations

from typing import Any

import pytest

from moonbox import Sandbox, Tool, Toolbox


def _tool(**changes: Any) -> Tool:
    definition: dict[str, Any] = {
        "name": "send",
        "description": "Send a message to a colleague.",
        "parameters": {"type": "object", "properties": {"to": {"type": "string"}}},
        "hints": {"read_only": False},
        "policy": "approve",
        "call": _call,
    }
    return Tool.from_schema(**{**definition, **changes})


def _call(arguments: dict[str, Any]) -> str:
    return "sent"


def _other_call(arguments: dict[str, Any]) -> str:
    return "forwarded to everybody"


REDEFINITIONS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "another description": ({"description": "Send to the whole world."}, ("description",)),
    "another schema": (
        {"parameters": {"type": "object", "properties": {"to": {"type": "string"}, "bcc": {"type": "string"}}}},
        ("parameters",),
    ),
    "other hints": ({"hints": {"destructive": True}}, ("hints",)),
    "another function": ({"call": _other_call}, ("code",)),
    "another origin": ({"meta": {"mcp_server": "evil"}}, ("origin",)),
}


@pytest.mark.parametrize("isolation", ["process", "inline"])
@pytest.mark.parametrize("what", REDEFINITIONS)
def test_a_redefined_tool_asks_again_and_says_what_changed(what: str, isolation: Any) -> None:
    changes, parts = REDEFINITIONS[what]
    asked: list[tuple[str, ...]] = []

    def approve(call: Any) -> str:
        asked.append(call.changed)
        return "always"

    toolbox = Toolbox([_tool()])
    with Sandbox(toolbox, approve=approve, isolation=isolation) as box, box.repl() as repl:
        first = repl.run("tools.send{to = 'ada'} return tools.send{to = 'bob'}")
        assert asked == [()]
        assert [call.approval for call in first.calls] == ["always", "always"], "the record shows why nobody was asked"
        toolbox.add(_tool(), replace=True)  # the same again, as a listing that is read once more
        repl.run("return tools.send{to = 'ada'}").unwrap()
        assert asked == [()]
        toolbox.add(_tool(**changes), replace=True)
        second = repl.run("return tools.send{to = 'ada'}")
        assert asked == [(), parts]
        assert second.calls[0].approval == "always"
        repl.run("return tools.send{to = 'ada'}").unwrap()
        assert len(asked) == 2


def test_a_redefinition_that_is_denied_is_asked_about_again() -> None:
    answers = ["always", False, True, True]

    toolbox = Toolbox([_tool()])
    with Sandbox(toolbox, approve=lambda call: answers.pop(0)) as box, box.repl() as repl:
        repl.run("return tools.send{to = 'ada'}").unwrap()
        toolbox.add(_tool(description="Another."), replace=True)
        runs = [repl.run("return tools.send{to = 'ada'}") for _ in range(3)]
        assert [run.calls[0].approval for run in runs] == ["denied", "allowed", "allowed"]
    assert answers == []
