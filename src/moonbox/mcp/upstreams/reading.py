"""What scripts read of servers: `mcp.read` and `mcp.prompt`, for servers whose configuration grants it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types

from moonbox.errors import ArgumentError
from moonbox.mcp.upstreams.tools import reference

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from moonbox.mcp.upstreams.manager import Upstreams

READ = "mcp.read(uri) -> the text of a resource of an MCP server; the handle of a medium if it is binary."
PROMPT = "mcp.prompt(name, arguments?) -> the messages of a prompt of an MCP server: an array of {role, content}."


def reader(upstreams: Upstreams) -> Callable[..., Awaitable[Any]]:
    async def read(uri: Any = None) -> Any:
        if not isinstance(uri, str):
            raise ArgumentError("mcp.read takes the address of a resource, a string")
        result = await upstreams.read_resource(types.ReadResourceRequestParams(uri=uri), granted=True)
        items = [
            item.text
            if isinstance(item, types.TextResourceContents)
            else reference(types.EmbeddedResource(resource=item), upstreams.media)
            for item in result.contents
        ]
        return items[0] if len(items) == 1 else items

    return read


def prompter(upstreams: Upstreams) -> Callable[..., Awaitable[Any]]:
    async def prompt(name: Any = None, arguments: Any = None) -> Any:
        if not isinstance(name, str):
            raise ArgumentError("mcp.prompt takes the name of a prompt, a string")
        if arguments not in (None, []) and not isinstance(arguments, dict):
            raise ArgumentError("mcp.prompt takes the arguments as a table with names")
        given = {str(key): str(value) for key, value in arguments.items()} if arguments else None
        result = await upstreams.get_prompt(types.GetPromptRequestParams(name=name, arguments=given), granted=True)
        return [{"role": message.role, "content": content(message.content)} for message in result.messages]

    def content(block: types.ContentBlock) -> Any:
        return block.text if isinstance(block, types.TextContent) else reference(block, upstreams.media)

    return prompt
