"""Tools of the host: Tool, Toolbox, schemas, binding, rendering and search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# At once, because the submodule `tool` would otherwise take the decorator's place as an attribute of this package.
from moonbox.tools.tool import Policy, Tool, tool

if TYPE_CHECKING:
    from moonbox.tools.function import Context, Injected
    from moonbox.tools.hints import Hints
    from moonbox.tools.results import scrub, to_tool_error
    from moonbox.tools.search import ToolSearch
    from moonbox.tools.signature import LEVELS, Level, render
    from moonbox.tools.toolbox import Toolbox

# Loaded on first use; pydantic and jsonschema-rs only when a schema is built or checked.
_EXPORTS = {
    "LEVELS": "signature",
    "Context": "function",
    "Hints": "hints",
    "Injected": "function",
    "Level": "signature",
    "ToolSearch": "search",
    "Toolbox": "toolbox",
    "render": "signature",
    "scrub": "results",
    "to_tool_error": "results",
}

__all__ = [
    "LEVELS",
    "Context",
    "Hints",
    "Injected",
    "Level",
    "Policy",
    "Tool",
    "ToolSearch",
    "Toolbox",
    "render",
    "scrub",
    "to_tool_error",
    "tool",
]


if not TYPE_CHECKING:  # checkers read the imports above; with this they would accept any name

    def __getattr__(name: str) -> Any:
        if name in _EXPORTS:
            from importlib import import_module

            return getattr(import_module(f"moonbox.tools.{_EXPORTS[name]}"), name)
        raise AttributeError(f"module 'moonbox.tools' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
