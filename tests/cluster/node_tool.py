"""Tools that nodes can import."""

from __future__ import annotations

import os
from typing import Any

from moonbox import Context, Media, ToolError, tool


@tool(placement="node")
def where(text: str, context: Context) -> dict[str, object]:
    """The process that it runs in, and what it was given."""
    return {"pid": os.getpid(), "text": text, "call": context.index, "size": len(text)}


@tool(placement="node")
async def fails(code: str) -> None:
    """Fails with a code."""
    raise ToolError("it failed", code=code)


@tool(placement="node")
def big(size: int) -> str:
    """A large text."""
    return "x" * size


@tool(placement="node")
def picture() -> Media:
    """A picture."""
    return Media(b"\x89PNG\r\n\x1a\n", "image/png", "a.png")


@tool(placement="node")
def unsendable() -> object:
    """Something that is no data."""
    return os


@tool(placement="node")
def reserved() -> list[list[object]]:
    """What is reserved in Ray, and what waits for room: the states of groups, and their bundles."""
    from ray.util import placement_group_table

    groups: dict[str, dict[str, Any]] = placement_group_table()
    return [[each["state"], list(each["bundles"].values())] for each in groups.values() if each["state"] != "REMOVED"]
