"""The bridge from a script to a FastMCP server: its external functions, and its tools by their names."""

from __future__ import annotations

import contextlib
import inspect
import json
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from moonbox.adapters.framework import imported_from
from moonbox.errors import ToolDefinitionError, ToolError
from moonbox.tools.hints import Hints
from moonbox.tools.tool import Tool

with imported_from("fastmcp", extra="fastmcp"):
    from fastmcp.exceptions import FastMCPError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from fastmcp.tools.base import Tool as ServerTool

    from moonbox.tools.toolbox import Toolbox

__all__ = ["ScriptTools", "dispatcher", "executing"]

CALL_TOOL = "call_tool"
_WRAPPED = "x-fastmcp-wrap-result"
_functions: ContextVar[Mapping[str, Callable[..., Any]]] = ContextVar("moonbox_external_functions")


@contextlib.contextmanager
def executing(functions: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    """Around one execution, which brings its own external functions."""
    token = _functions.set(functions)
    try:
        yield
    finally:
        _functions.reset(token)


def dispatcher(name: str) -> Callable[..., Any]:
    """A function for scripts that calls the external function of the execution that is under way."""

    async def dispatch(*arguments: Any) -> Any:
        if name == CALL_TOOL and (len(arguments) == 1 or arguments[1:] == ([],)):
            arguments = (arguments[0], {})  # an empty table is an empty list until somebody says what it is
        try:
            result = _functions.get()[name](*arguments)
            return await result if inspect.isawaitable(result) else result
        except (FastMCPError, NotFoundError) as problem:
            raise ToolError(str(problem)) from problem

    return dispatch


class ScriptTools:
    """A server's tools as scripts call them; each is made once for as long as its description stays the same."""

    def __init__(self) -> None:
        self._made: dict[str, Tool | None] = {}
        self._call = dispatcher(CALL_TOOL)

    def put_into(self, toolbox: Toolbox, catalog: Iterable[ServerTool]) -> None:
        """Make the toolbox hold exactly these. One that a script cannot have is still there for `call_tool`."""
        keys = [_key(tool) for tool in catalog]
        self._made = {key: self._made[key] if key in self._made else self._make(key) for key in keys}
        wanted = {tool.path: tool for tool in self._made.values() if tool is not None}
        if gone := [path for path in toolbox.paths() if path not in wanted]:
            toolbox.remove(*gone)
        if new := [tool for path, tool in wanted.items() if toolbox.get(path) is not tool]:
            toolbox.add(new, replace=True)

    def _make(self, key: str) -> Tool | None:
        name, description, parameters, returns, annotations = json.loads(key)
        wrapped = bool(returns and returns.get(_WRAPPED))

        async def call(arguments: dict[str, Any]) -> Any:
            result = await self._call(name, arguments)
            return result["result"] if wrapped and isinstance(result, dict) and "result" in result else result

        try:
            return Tool.from_schema(
                name=name,
                description=description or "",
                parameters=parameters,
                returns=_unwrapped(returns) if wrapped else returns,
                hints=Hints.from_mcp(annotations),
                call=call,
            )
        except ToolDefinitionError:
            return None


def _key(tool: ServerTool) -> str:
    annotations = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else None
    return json.dumps([tool.name, tool.description, tool.parameters, tool.output_schema, annotations])


def _unwrapped(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a value that FastMCP puts into `{"result": …}`, because MCP knows only objects."""
    inner = schema.get("properties", {}).get("result", {})
    return {**inner, "$defs": schema["$defs"]} if "$defs" in schema else inner
