"""A server that two clients share: it gives back what it is told, in every form that the protocol has.

Its tool `once` asks for input, and `endless` asks again and again.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from base64 import b64encode
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ResourceUpdated

BUS = InMemorySubscriptionBus()
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


async def list_tools(*_: Any) -> types.ListToolsResult:
    names = ("keep", "picture", "fail", "log", "touch", "crash")
    tools = [types.Tool(name=name, input_schema=SCHEMA) for name in names]
    tools += [types.Tool(name=name, input_schema=NOTHING) for name in ("once", "endless")]
    return types.ListToolsResult(tools=tools)


async def call_tool(
    context: Any, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    if params.name in ("once", "endless"):
        return ask(params)
    text = str((params.arguments or {})["text"])
    content: types.ContentBlock = types.TextContent(text=json.dumps({text: {text: text}}))
    match params.name:
        case "picture":
            content = types.ImageContent(data=b64encode(text.encode()).decode(), mime_type="image/png")
        case "fail":
            raise MCPError(-32000, text, {text: text})
        case "log":
            message = types.LoggingMessageNotificationParams(level="error", data={text: text}, logger=text)
            await context.session.send_notification(types.LoggingMessageNotification(params=message))
        case "touch":
            await BUS.publish(ResourceUpdated(f"note://{text}"))
        case "crash":
            sys.stderr.write(f"cannot handle {text}\n")
            sys.stderr.flush()
            os._exit(3)
    return types.CallToolResult(content=[content])


def ask(params: types.CallToolRequestParams) -> types.CallToolResult | types.InputRequiredResult:
    color = (params.input_responses or {}).get("color")
    if params.name == "once" and isinstance(color, types.ElicitResult):
        return types.CallToolResult(content=[types.TextContent(text=f"{color.action}, {params.request_state}")])
    form = types.ElicitRequestFormParams(message="Which color?", requested_schema=NOTHING)
    return types.InputRequiredResult(
        input_requests={"color": types.ElicitRequest(params=form)}, request_state="the same state"
    )


async def list_prompts(*_: Any) -> types.ListPromptsResult:
    arguments = [types.PromptArgument(name="text")]
    return types.ListPromptsResult(prompts=[types.Prompt(name="greet", arguments=arguments)])


async def get_prompt(_: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    text = types.TextContent(text=str(params.arguments))
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text)])


async def complete(_: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
    return types.CompleteResult(completion=types.Completion(values=[params.argument.value * 2]))


async def list_resources(*_: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[])


async def list_templates(*_: Any) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(
        resource_templates=[types.ResourceTemplate(name="note", uri_template="note://{text}")]
    )


async def read_resource(_: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text=str(params.uri))])


async def nothing(*_: Any) -> types.EmptyResult:
    return types.EmptyResult()


async def main() -> None:
    server: Server[Any] = Server(
        "shared",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscriptions_listen=ListenHandler(BUS),
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, nothing)
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
