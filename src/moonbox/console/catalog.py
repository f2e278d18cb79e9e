"""The catalog as pages show it: tools by server and script, with schemas, counts and latencies from the trail."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from moonbox.console.rendering import as_json
from moonbox.durable.approvals import hint_names
from moonbox.languages.registry import LANGUAGES
from moonbox.schema.tree import SchemaNode
from moonbox.schema.type_reader import type_text
from moonbox.tools.signature import render

if TYPE_CHECKING:
    from moonbox.audit.query import ToolStats
    from moonbox.http.app import Service
    from moonbox.tools.tool import Tool

STATS_RUNS = 2_000
"""Counts and latencies are those of so many of the latest runs, so that a page takes the same time with any trail."""
_PER_PAGE = 200
_COMPLETED_TOOLS = 2_000


def catalog_of(service: Service) -> dict[str, Any]:
    """What the editor completes: tools with their signatures and fields, and the words of the language."""
    tools = [tool for tool in service.sandbox.toolbox if tool.policy != "direct"]
    alias = service.sandbox.toolbox.alias
    return {
        "tools": [
            {
                "call": f"tools.{alias(tool.path)}",
                "signature": render(tool, "signature", name=""),
                "fields": [*tool.parameter_names, *_result_fields(tool)],
            }
            for tool in islice(tools, _COMPLETED_TOOLS)
        ],
        "words": sorted(LANGUAGES[service.sandbox.language].docs),
    }


def tools_page(service: Service, query: str, page: int) -> dict[str, Any]:
    """The tools in groups; with a query, the ones that scripts would find, best first."""
    service.refresh()
    toolbox, stats, count = service.sandbox.toolbox, _stats(service), 1
    spaces: dict[str, list[dict[str, Any]]] = {}
    if query := query.strip():
        page = 1
        for tool in service.sandbox.docs.find_tools(query, 50):
            spaces.setdefault("Best matches first", []).append(_describe(tool, stats))
    else:
        tools = sorted(toolbox, key=lambda tool: (tool.namespace or "", tool.name))
        count = max(1, -(-len(tools) // _PER_PAGE))
        page = min(page, count)
        for tool in tools[(page - 1) * _PER_PAGE : page * _PER_PAGE]:
            origin = "Built in" if tool.path in service.builtin else tool.namespace or "Without a namespace"
            spaces.setdefault(origin, []).append(_describe(tool, stats))
    groups = [{"name": name, "tools": members, "total": len(members)} for name, members in spaces.items()]
    known = {"total": len(toolbox), "stats_runs": STATS_RUNS}
    return {**known, "q": query, "groups": groups, "page": page, "page_count": count}


def tool_page(service: Service, tool: Tool) -> dict[str, Any]:
    """One tool with its schemas."""
    return {
        "tool": _describe(tool, _stats(service)),
        "parameters": as_json(tool.parameters),
        "returns": as_json(tool.returns) if tool.returns else "",
        "stats_runs": STATS_RUNS,
    }


def learned_shape(service: Service, tool: Tool) -> str:
    """The type of what the tool has returned, where it does not say what it returns."""
    shape = service.sandbox.toolbox.learned.schema(tool.path)
    return type_text(SchemaNode(shape), nested=3) if shape else ""


def _describe(tool: Tool, stats: dict[str, ToolStats]) -> dict[str, Any]:
    return {
        "path": tool.path,
        "description": tool.description,
        "signature": render(tool, "signature"),
        "policy": tool.policy,
        "hints": hint_names(tool),
        "timeout": tool.timeout,
        "max_concurrency": tool.max_concurrency,
        "stats": stats.get(tool.path),
    }


def _stats(service: Service) -> dict[str, ToolStats]:
    return {item.tool: item for item in service.readable.stats(latest=STATS_RUNS).tools}


def _result_fields(tool: Tool) -> list[str]:
    """The names of the result's fields, also those of the rows of a list."""
    node = tool.returned
    for _ in range(4):
        node = node.items if node.items.says else node
    return list(node.fields)[:50]
