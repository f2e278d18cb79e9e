"""The tools search, get and sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest

from moonbox.errors import ArgumentError, ToolError
from moonbox.knowledge.base import knowledge_tools

from .conftest import item

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.knowledge import KnowledgeBase
    from moonbox.tools.tool import Tool


@pytest.fixture
def tools(filled: Callable[..., KnowledgeBase]) -> dict[str, Tool]:
    base = filled(item("a.md", "# Zebra\n\nstripes", title="Animals"), item("b.md", "other"))
    return {tool.name: tool for tool in knowledge_tools(base)}


def call(tool: Tool, **arguments: Any) -> Any:
    jsonschema_rs.validate(tool.parameters, arguments)
    result = tool.call(arguments)
    assert tool.returns is not None
    jsonschema_rs.validate(tool.returns, result)
    return result


def test_what_the_tools_give(tools: dict[str, Tool]) -> None:
    (row,) = call(tools["search"], query="zebra", mode="keyword", limit=3, source="notes")
    assert (row["title"], row["snippet"]) == ("Animals", "# **Zebra** stripes")
    document = call(tools["get"], id=row["id"])
    assert document["chunks"] == [{"position": 0, "heading": "Zebra", "text": "# Zebra\n\nstripes"}]
    assert call(tools["get"], id="notes:b.md")["chunks"][0]["text"] == "other"
    (source,) = call(tools["sources"])
    assert (source["name"], source["documents"], source["healthy"]) == ("notes", 2, True)
    assert all(tool.hints.read_only for tool in tools.values())


def test_what_goes_wrong_is_told_to_the_script(tools: dict[str, Tool]) -> None:
    with pytest.raises(ArgumentError, match=r"^unknown source 'nots'; did you mean 'notes'\?$"):
        call(tools["search"], query="x", source="nots")
    with pytest.raises(ArgumentError, match=r"^semantic search needs an embedder"):
        call(tools["search"], query="x", mode="semantic")
    with pytest.raises(ToolError, match=r"^unknown document 'notes:99'; search returns valid ids$") as caught:
        call(tools["get"], id="notes:99")
    assert (caught.value.code, caught.value.retryable) == ("not_found", False)
    assert call(tools["search"], query='" OR (NEAR') == []
