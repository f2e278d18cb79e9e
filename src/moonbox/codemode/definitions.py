"""Tool definitions in the form of each provider, from one neutral form."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from moonbox.codemode.acceptable import acceptable, sendable
from moonbox.errors import UsageError
from moonbox.suggest import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moonbox.tools.tool import Tool

__all__ = ["FORMATS", "Definition", "Format", "from_tool", "in_format", "provider_names"]

Format = Literal["openai", "openai-responses", "anthropic", "gemini", "mcp"]
FORMATS: tuple[str, ...] = get_args(Format)
_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64
_CONTINUED = "(Continued in the description of {}.)"


@dataclass(frozen=True, slots=True)
class Definition:
    """What a provider is told about one tool."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    returns: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    overflow: str | None = None
    """The parameter whose description takes what a provider has no room for in the tool's own."""

    def within(self, longest: int | None) -> Definition:
        """The same with a description of at most so many characters; the rest moves to the parameters."""
        if longest is None or len(self.description) <= longest:
            return self
        note = _CONTINUED.format(self.overflow) if self.overflow else "…"
        head, rest = _cut(self.description, longest - len(note) - 1)
        parameters = copy.deepcopy(dict(self.parameters))
        place = parameters["properties"][self.overflow] if self.overflow else parameters
        place["description"] = "\n".join([part for part in (place.get("description"), rest) if part])
        return replace(self, description=f"{head}\n{note}" if self.overflow else head + note, parameters=parameters)


def from_tool(tool: Tool, name: str) -> Definition:
    """What any client can send on, whatever the tool's own server has said."""
    description, parameters, returns = sendable([tool.description, tool.parameters, tool.returns])
    return Definition(name, description, parameters, returns, tool.hints.to_mcp())


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
    last: dict[str, int] = {}  # a server may have thousands of names that come out the same
    for tool in tools:
        name = base = _provider_name(tool.path)
        while name in used:
            last[base] = last.get(base, 1) + 1
            ending = f"_{last[base]}"
            name = base[: _LONGEST_NAME - len(ending)] + ending
        used.add(name)
        names[name] = tool
    return names


def _provider_name(path: str) -> str:
    """Letters, digits, `_` and `-`, a letter or `_` first, at most 64: what the strictest of them wants."""
    name = _NOT_ALLOWED.sub("_", path.replace(".", "__"))
    return (name if name[0].isalpha() or name[0] == "_" else f"_{name}")[:_LONGEST_NAME]


def _named(item: Definition, key: str) -> dict[str, Any]:
    description = item.description or item.name  # some providers refuse an empty one
    return {"name": item.name, "description": description, key: acceptable(dict(item.parameters))}


def _cut(text: str, longest: int) -> tuple[str, str]:
    """As many whole lines as fit, and the rest; of a single long line, as many characters as fit."""
    end = text.rfind("\n", 0, longest + 1)
    if end <= 0:
        return text[:longest], text[longest:]
    return text[:end], text[end + 1 :]


def _mcp(item: Definition) -> dict[str, Any]:
    schema = copy.deepcopy(dict(item.parameters))
    made = {"name": item.name, "description": item.description, "inputSchema": schema}
    if item.returns is not None and item.returns.get("type") == "object":
        made["outputSchema"] = dict(item.returns)
    if item.annotations:
        made["annotations"] = dict(item.annotations)
    return made
