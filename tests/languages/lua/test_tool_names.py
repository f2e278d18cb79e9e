"""Tools whose names are also namespaces of others: each is reached by its alias."""

from __future__ import annotations

from itertools import combinations

import pytest

from moonbox import Sandbox, Tool
from moonbox.errors import ToolDefinitionError
from moonbox.tools.toolbox import Toolbox

NAMES = [
    (None, "add"),
    ("add", "add"),
    ("add.add", "add"),
    (None, "add.add"),
    ("add", "add.add"),
    (None, "add.add.add"),
]


def make(namespace: str | None, name: str) -> Tool:
    return Tool.from_schema(
        name=name,
        namespace=namespace,
        description="Says who it is.",
        parameters={"type": "object", "properties": {}},
        call=lambda arguments: f"{namespace}/{name}",
    )


@pytest.mark.parametrize("names", [*combinations(NAMES, 2), *combinations(NAMES, 3)], ids=str)
def test_every_tool_is_reached_by_its_alias(names: tuple[tuple[str | None, str], ...]) -> None:
    toolbox = Toolbox()
    for namespace, name in names:
        try:
            toolbox.add(make(namespace, name))
        except ToolDefinitionError:
            assert any(tool.path == (f"{namespace}.{name}" if namespace else name) for tool in toolbox)
    with Sandbox(toolbox, isolation="inline") as box:
        for tool in toolbox:
            run = box.run(f"return tools.{toolbox.alias(tool)}{{}}")
            assert run.unwrap() == f"{tool.namespace}/{tool.name}"
