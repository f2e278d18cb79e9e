"""What workers are told of the tools beside their names: the order of parameters, and types for the checker."""

from __future__ import annotations

from typing import Any


def describe(toolbox: Any) -> dict[str, Any]:
    """The names of each tool's parameters in order."""
    tools = [tool for tool in toolbox if tool.policy != "direct"]
    return {"parameters": {f"tools.{tool.path}": list((tool.parameters or {}).get("properties", {})) for tool in tools}}
