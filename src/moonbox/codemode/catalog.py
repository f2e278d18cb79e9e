"""The catalog: the hidden tools as text on the code tool's description, as detailed as a budget allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from moonbox.tools.signature import render

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.codemode.texts import Texts
    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox

__all__ = ["STEPS", "Catalog", "Detail", "make_catalog"]

Detail = Literal["schemas", "full", "signatures", "names", "search"]
STEPS: tuple[Detail, ...] = ("full", "signatures", "names", "search")


@dataclass(frozen=True, slots=True)
class Catalog:
    """The text, and how detailed it is."""

    text: str
    detail: Detail
    tools: int
    tokens: int


def make_catalog(
    toolbox: Toolbox, texts: Texts, *, full_schemas: bool, budget: int | None, count: Callable[[str], int]
) -> Catalog:
    """The most detailed catalog within the budget of tokens. Its text depends on the tools alone, byte for byte."""
    tools = sorted(toolbox, key=lambda tool: (tool.namespace or "", tool.name))
    if not tools:
        return Catalog("", "full", 0, 0)
    steps: tuple[Detail, ...] = ("schemas", *STEPS) if full_schemas else STEPS
    for step in steps:
        text = _written(step, tools, toolbox, texts)
        tokens = count(text)
        if budget is None or tokens <= budget or step == steps[-1]:
            return Catalog(text, step, len(tools), tokens)
    raise AssertionError


def _written(step: Detail, tools: list[Tool], toolbox: Toolbox, texts: Texts) -> str:
    match step:
        case "schemas" | "full" | "signatures":
            level = {"schemas": "schema", "full": "brief", "signatures": "signature"}[step]
            names = [texts.written(toolbox.alias(tool)) for tool in tools]
            lines = [f"- {render(tool, level, name=name)}" for tool, name in zip(tools, names, strict=True)]  # type: ignore[arg-type]
            return "\n".join([texts.catalog_title, *lines])
        case "names":
            return "\n".join([texts.names_title, *_by_namespace(tools, toolbox)])
        case "search":
            spaces = list(dict.fromkeys(tool.namespace or "tools" for tool in tools))
            shown = ", ".join(spaces[:60]) + (f" and {len(spaces) - 60} more" if len(spaces) > 60 else "")
            return texts.search_title.format(count=len(tools), namespaces=shown)


def _by_namespace(tools: list[Tool], toolbox: Toolbox) -> list[str]:
    groups: dict[str, list[str]] = {}
    for tool in tools:
        space, _, name = toolbox.alias(tool).rpartition(".")
        groups.setdefault(space, []).append(name)
    return [f"- {space + ': ' if space else ''}{', '.join(names)}" for space, names in groups.items()]
