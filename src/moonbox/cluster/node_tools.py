"""Tools that run on a node: each call is a task of Ray, which imports the tool's function there."""

from __future__ import annotations

import asyncio
import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any

from moonbox.errors import ToolError
from moonbox.tools.function import Context
from moonbox.tools.results import to_tool_error
from moonbox.tools.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Mapping

_RETRIES = 3
"""Of calls whose tools are `read_only` or `idempotent`, where a node fails."""


def call_on_node(tool: Tool, arguments: Mapping[str, Any], context: Context | None) -> Any:
    """Call a tool on the node that Ray chooses. Large arguments and results go through Ray's object store once."""
    import ray

    repeatable = bool(tool.hints.read_only or tool.hints.idempotent)
    task = ray.remote(_call).options(max_retries=_RETRIES if repeatable else 0, num_cpus=0)
    about = {} if context is None else {name: getattr(context, name) for name in _FOR_NODES}
    place = tool.call.__module__, tool.call.__qualname__
    try:
        result, failed = ray.get(task.remote(place, dict(arguments), about))
    except ray.exceptions.RayError as problem:
        code = "unavailable" if repeatable else "in_doubt"
        message = f"the node that ran {tool.path} is gone, or the tool cannot be imported there"
        raise ToolError(message, code=code, retryable=repeatable, detail=str(problem)) from None
    if failed is not None:
        raise ToolError(**failed)
    return result


_FOR_NODES = ("run_id", "repl_id", "tool", "index", "idempotency_key")
"""What a tool on a node finds in its Context; `extra` belongs to the caller's process."""


def _call(place: tuple[str, str], arguments: dict[str, Any], about: dict[str, Any]) -> tuple[Any, Any]:
    """On the node: the result, or how it failed."""
    found: Any = import_module(place[0])
    for name in place[1].split("."):
        found = getattr(found, name)
    tool = Tool.from_function(found)
    try:
        result = tool.invoke(arguments, Context(**about) if about else None)
        return asyncio.run(_awaited(result)) if inspect.isawaitable(result) else result, None
    except Exception as raised:  # noqa: BLE001 - the caller raises it
        error = to_tool_error(raised, tool.path)
        names = ("message", "code", "retryable", "data", "detail")
        return None, {name: getattr(error, name) for name in names}


async def _awaited(value: Any) -> Any:
    return await value
