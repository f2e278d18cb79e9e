"""Tool definitions in the form of each provider, from one neutral form."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from moonbox.errors import UsageError
from moonbox.tools.naming import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moonbox.tools.tool import Tool

__all__ = ["FORMATS", "Definition", "Format", "from_tool", "in_format", "provider_names"]

Format = Literal["openai", "openai-responses", "anthropic", "gemini", "mcp"]
FORMATS: tuple[str, ...] = get_args(Format)
_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class Definition:
    """What a provider is told about one tool."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    returns: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)


def from_tool(tool: Tool, name: str) -> Definition:
    return Definition(name, tool.description, tool.parameters, tool.returns, tool.hints.to_mcp())


def in_format(definitions: Iterable[Definition], form: str) -> list[dict[str, Any]]:
    """The definitions as plain dicts of that provider."""
    match form:
        case "openai":
            return [{"type": "function", "function": _named(item, "parameters")} for item in definitions]
        case "openai-responses":
            return [{"type": "function", **_named(item, "parameters"), "strict": False} for item in definitions]
        case "anthropic":
            return [_named(item, "input_schema") for item in definitions]
        case "gemini":
            return [{"function_declarations": [_named(item, "parameters_json_schema") for item in definitions]}]
        case "mcp":
            return [_mcp(item) for item in definitions]
    raise UsageError(f"unknown format {form!r}{suggestion(str(form), FORMATS)}; choose one of: {', '.join(FORMATS)}")


def provider_names(tools: Iterable[Tool], taken: Iterable[str]) -> dict[str, Tool]:
    """Names that every provider accepts, for tools that are called directly."""
    names: dict[str, Tool] = {}
    used = set(taken)
    for tool in tools:
        name = base = _NOT_ALLOWED.sub("_", tool.path.replace(".", "__"))[:_LONGEST_NAME]
        number = 2
        while name in used:
            ending = f"_{number}"
            name = base[: _LONGEST_NAME - len(ending)] + ending
            number += 1
        used.add(name)
        names[name] = tool
    return names


def _named(item: Definition, key: str) -> dict[str, Any]:
    return {"name": item.name, "description": item.description, key: dict(item.parameters)}


def _mcp(item: Definition) -> dict[str, Any]:
    made = _named(item, "inputSchema")
    if item.returns is not None and item.returns.get("type") == "object":
        made["outputSchema"] = dict(item.returns)
    if item.annotations:
        made["annotations"] = dict(item.annotations)
    return made
