"""Tools that a configuration disables, whoever brings them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import pytest

from moonbox import Tool
from moonbox.config import Config
from moonbox.project.assembly import assemble

if TYPE_CHECKING:
    from pathlib import Path

    from moonbox.tools.hints import HintOptions


def named(name: str, **hints: Unpack[HintOptions]) -> Tool:
    return Tool.from_schema(name=name, call=lambda given: name, hints=hints)


TOOLS = [named("read"), named("bash", risk="high"), named("send", risk="medium", category="mail"), named("bash_it")]


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ("", ("read", "bash", "send", "bash_it")),
        ('disabled = ["bash*"]', ("read", "send")),
        ('disabled = ["category:mail"]', ("read", "bash", "bash_it")),
        ('max_risk = "low"', ("read", "bash_it")),
        ('max_risk = "medium"', ("read", "send", "bash_it")),
    ],
)
def test_tools_that_are_disabled_are_not_there(tmp_path: Path, settings: str, left: tuple[str, ...]) -> None:
    config = Config.parse(f"[tools]\n{settings}\n[audit]\nenabled = false\n", tmp_path / "moonbox.toml")
    with assemble(config, tools=TOOLS) as parts:
        assert parts.sandbox.toolbox.paths() == left
        if "bash" not in left:
            run = parts.sandbox.run("return tools.bash{}")
            assert run.error is not None and run.error.code == "unknown_tool"
