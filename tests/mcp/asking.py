"""A server of the current protocol whose tool asks for input: once, or again and again if it is called `endless`."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListToolsResult,
    TextContent,
    Tool,
)

SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


async def list_tools(_: Any, __: Any) -> ListToolsResult:
    return ListToolsResult(tools=[Tool(name=name, input_schema=SCHEMA) for name in ("once", "endless")])


async def call_tool(_: Any, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
    answers = params.input_responses or {}
    color = answers.get("color")
    if params.name == "once" and isinstance(color, ElicitResult):
        return CallToolResult(content=[TextContent(text=f"{color.action}, {params.request_state}")])
    question = ElicitRequest(params=ElicitRequestFormParams(message="Which color?", requested_schema=SCHEMA))
    return InputRequiredResult(input_requests={"color": question}, request_state="the same state")


async def main() -> None:
    server: Server[Any] = Server("asking", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
