"""Tools of upstreams as tools of ours: name, schema, annotations, policy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from moonbox.errors import ToolDefinitionError
from moonbox.mcp.upstreams.results import WRAPPED
from moonbox.tools.hints import Hints
from moonbox.tools.tool import Policy, Tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcp_types import Tool as Listed

    from moonbox.config.mcp import ServerSettings

__all__ = ["MOST_TOOLS", "Offer", "annotations_of", "make_tools", "placeholder"]

MOST_TOOLS = 2_000
_LONGEST_DESCRIPTION = 16_000


@dataclass(frozen=True, slots=True)
class Offer:
    """What a server's listing came to: tools, and what is wrong with the others."""

    tools: tuple[Tool, ...] = ()
    problems: tuple[str, ...] = ()


def make_tools(
    listed: Sequence[Listed], settings: ServerSettings, invoke: Callable[[Listed, dict[str, Any]], Awaitable[Any]]
) -> Offer:
    """The tools that are wanted; one that cannot be taken is reported and left out."""
    tools: dict[str, Tool] = {}
    problems: list[str] = []
    if len(listed) > MOST_TOOLS:
        problems.append(f"it lists {len(listed):,} tools; those after the first {MOST_TOOLS:,} are left out")
    for item in listed[:MOST_TOOLS]:
        if not settings.offers(item.name):
            continue
        if item.name in tools:
            problems.append(f"it lists {item.name!r} twice")
            continue
        try:
            tools[item.name] = _make(item, settings, invoke)
        except ToolDefinitionError as problem:
            problems.append(str(problem)[:300])
    known = {item.name for item in listed}
    problems += [
        f"the configuration names a tool {name!r} that it does not have" for name in settings.tools if name not in known
    ]
    return Offer(tuple(tools.values()), tuple(problems[:20]))


def placeholder(refuse: Callable[[], Exception]) -> Tool:
    """Stands where tools would be that were never seen: tells the model that there is such a server."""

    async def unavailable(_: dict[str, Any]) -> Any:
        raise refuse()

    return Tool.from_schema(
        name="unavailable",
        description="This MCP server is configured but could not be reached yet. Call it to learn why.",
        parameters={"type": "object", "properties": {}},
        call=unavailable,
        hints={"read_only": True},
    )


def annotations_of(tool: Tool) -> Hints:
    """What the tool says about itself, whatever policy the configuration gave it."""
    said = tool.meta.get("mcp_hints")
    return said if isinstance(said, Hints) else tool.hints


def _make(item: Listed, settings: ServerSettings, invoke: Callable[[Listed, dict[str, Any]], Awaitable[Any]]) -> Tool:
    async def call(arguments: dict[str, Any]) -> Any:
        return await invoke(item, arguments)

    hints = Hints.from_mcp(item.annotations)
    policy = settings.policy_of(item.name)
    return Tool.from_schema(
        name=item.name,
        description=_description(item),
        parameters=item.input_schema,
        returns=_returned(item.output_schema),
        call=call,
        policy=policy or "auto",
        hints=_routed(hints, policy),
        meta={"mcp_server": settings.name, "mcp_tool": item.name, "mcp_hints": hints},
    )


def _routed(hints: Hints, policy: Policy | None) -> Hints:
    """A destructive tool stays direct by its hint; a configuration that says auto has the last word."""
    return replace(hints, destructive=None) if policy == "auto" else hints


def _description(item: Listed) -> str:
    text = item.description or item.title or (item.annotations.title if item.annotations else None) or ""
    return text if len(text) <= _LONGEST_DESCRIPTION else text[:_LONGEST_DESCRIPTION] + "…"


def _returned(schema: dict[str, Any] | None) -> dict[str, Any] | None:
    """The schema of what scripts get: the inner one of a value that is wrapped only for the protocol's sake."""
    if schema is None or not schema.get(WRAPPED):
        return schema
    properties = schema.get("properties")
    inner = properties.get("result") if isinstance(properties, dict) else None
    if not isinstance(inner, dict):
        return schema
    return {**inner, **({"$defs": schema["$defs"]} if "$defs" in schema else {})}
