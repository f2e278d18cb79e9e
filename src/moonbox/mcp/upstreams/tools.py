"""Tools of upstream servers as tools of ours, and what scripts read of servers besides.

A result is plain data for scripts:

structured content                      as it is
one block of text                       the text; data if it is a JSON object or array
several blocks of text                  joined with line breaks; an array of data if each is JSON
an image or audio                       {type, mimeType, size, uri}; the bytes stay in the host, `uri` names them there
an embedded resource                    {type = "resource", uri, mimeType, text}, or size and media instead of text
a link to a resource                    {type = "resource_link", uri, name, description, mimeType, size}
text together with others, or several   {text, content = {…}}
nothing                                 null
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import mcp_types as types

from moonbox.compact import json_in
from moonbox.errors import ArgumentError, ConversionError, ToolDefinitionError, ToolError, UsageError
from moonbox.media import Media, MediaStore
from moonbox.tools.hints import Hints
from moonbox.tools.importers import WRAPPED, unwrapped
from moonbox.tools.tool import Tool

if TYPE_CHECKING:
    from moonbox.config.mcp import ServerSettings
    from moonbox.mcp.upstreams.manager import Upstreams

    Invoke = Callable[[types.Tool, dict[str, Any]], Awaitable[Any]]

MAX_TOOLS = 2_000
_MAX_PROBLEMS = 20
_MAX_DESCRIPTION = 16_000
_MAX_ERROR = 2_000


def convert_tools(
    listed: Sequence[types.Tool], settings: ServerSettings, invoke: Invoke
) -> tuple[list[Tool], tuple[str, ...]]:
    """The tools that the settings include, and the problems with those that were left out."""
    tools: dict[str, Tool] = {}
    problems: list[str] = []
    if len(listed) > MAX_TOOLS:
        problems.append(f"it lists {len(listed):,} tools; only the first {MAX_TOOLS:,} are used")
    for item in listed[:MAX_TOOLS]:
        if not settings.offers(item.name):
            continue
        if item.name in tools:
            problems.append(f"it lists the tool {item.name!r} twice")
            continue
        try:
            tools[item.name] = _convert(item, settings, invoke)
        except ToolDefinitionError as problem:
            problems.append(str(problem)[:300])
    known = {item.name for item in listed}
    problems += [
        f"the configuration names a tool {name!r} that it does not have" for name in settings.tools if name not in known
    ]
    return list(tools.values()), tuple(problems[:_MAX_PROBLEMS])


UNAVAILABLE = types.Tool(name="unavailable", input_schema={"type": "object", "properties": {}})
"""Stands for the tools of a server that were never listed: it shows the model that the server exists."""


def placeholder(invoke: Invoke, description: str) -> Tool:
    async def call(arguments: dict[str, Any]) -> Any:
        return await invoke(UNAVAILABLE, arguments)

    return Tool.from_schema(
        name=UNAVAILABLE.name,
        description=description,
        parameters=UNAVAILABLE.input_schema,
        call=call,
        hints={"read_only": True},
    )


def annotations_of(tool: Tool) -> Hints:
    """What the tool says about itself, whatever policy the configuration gave it."""
    hints = tool.meta.get("mcp_hints")
    return hints if isinstance(hints, Hints) else tool.hints


def definition_of(tool: Tool) -> types.Tool | None:
    """The server's own definition of a tool; None if it is not a server's."""
    item = tool.meta.get("mcp_definition")
    return item if isinstance(item, types.Tool) else None


def _convert(item: types.Tool, settings: ServerSettings, invoke: Invoke) -> Tool:
    async def call(arguments: dict[str, Any]) -> Any:
        return await invoke(item, arguments)

    hints = Hints.from_mcp(item.annotations)
    policy = settings.setting_of(item.name, "policy")
    tool = Tool.from_schema(
        name=item.name,
        description=_description(item),
        parameters=item.input_schema,
        returns=unwrapped(item.output_schema),
        validate_result=True,  # scripts are written according to the schema
        call=call,
        policy=policy or "auto",
        failures=settings.setting_of(item.name, "failures"),
        retry=settings.setting_of(item.name, "retry") if hints.repeatable or item.name in settings.tools else None,
        # A destructive tool stays direct because of its hint, unless the configuration says auto.
        hints=replace(hints, destructive=None) if policy == "auto" else hints,
        meta={"mcp_server": settings.name, "mcp_tool": item.name, "mcp_hints": hints, "mcp_definition": item},
    )
    try:
        if tool.result_schema is not None:
            tool.result_schema.check_schema()
    except ToolError:
        return tool.with_(validate_result=False)  # nothing can be checked against an invalid schema
    return tool


def _description(item: types.Tool) -> str:
    text = item.description or item.title or (item.annotations.title if item.annotations else None) or ""
    return text if len(text) <= _MAX_DESCRIPTION else text[:_MAX_DESCRIPTION] + "…"


def result_value(result: types.CallToolResult, schema: dict[str, Any] | None, media: MediaStore | None = None) -> Any:
    """The value for the script; raises ToolError if the result is an error."""
    texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
    if result.is_error:
        raise _failure(texts, result.structured_content)
    if result.structured_content is not None:
        value = result.structured_content
        if _is_wrapped(result, schema) and isinstance(value, dict) and set(value) == {"result"}:
            value = value["result"]
        _check_failure_as_data(value)
        return value
    others = [reference(block, media) for block in result.content if not isinstance(block, types.TextContent)]
    if not others:
        if len(texts) == 1 and '"isError"' in texts[0]:
            _check_failure_as_data(json_in(texts[0]))
        return _text_value(texts)
    if len(others) == 1 and not texts:
        return others[0]
    return {**({"text": _text_value(texts)} if texts else {}), "content": others}


def _is_wrapped(result: types.CallToolResult, schema: dict[str, Any] | None) -> bool:
    """FastMCP says so in the tool's result schema, or with the result itself."""
    if schema is not None and schema.get(WRAPPED):
        return True
    meta = (result.meta or {}).get("fastmcp")
    return isinstance(meta, dict) and meta.get("wrap_result") is True


def _check_failure_as_data(value: Any) -> None:
    """Raises ToolError where the value is itself the result of a call that failed: a server passed it on as data."""
    if not (isinstance(value, dict) and value.get("isError") is True and isinstance(value.get("content"), list)):
        return
    texts = [block.get("text") for block in value["content"] if isinstance(block, dict)]
    structured = value.get("structuredContent")
    raise _failure([text for text in texts if isinstance(text, str)], structured)


def _text_value(texts: list[str]) -> Any:
    if len(texts) <= 1:
        return texts[0] if texts else None  # a single text that is JSON becomes data later, as with every other tool
    values = [json_in(text) for text in texts]
    return values if all(value is not None for value in values) else "\n".join(texts)


def reference(block: types.ContentBlock, store: MediaStore | None) -> dict[str, Any] | Media:
    """A block that is not text: its medium, which is also kept in the `store`, or what there is to say about it."""
    inner: Any = block.resource if isinstance(block, types.EmbeddedResource) else block
    said = inner.model_dump(mode="json", by_alias=True, exclude_none=True, include=_SAID)
    if (data := getattr(inner, "blob", None) or getattr(inner, "data", None)) is not None:
        medium = _medium(data, inner.mime_type or "", said.get("uri", ""), store)
        if medium is not None:
            return medium
        said["size"] = len(data) * 3 // 4 - data[-2:].count("=")
    return {"type": block.type, **said}


_SAID = {"uri", "name", "description", "text", "mime_type", "size"}
"""What scripts read of a block that is not text."""
READ = "mcp.read(uri) -> the text of a resource of an MCP server; the handle of a medium if it is binary."
PROMPT = "mcp.prompt(name, arguments?) -> the messages of a prompt of an MCP server: an array of {role, content}."


_OFFERS_SECONDS = 10.0
"""How long a script waits for servers that have just started and still list their resources and prompts."""


def reader(upstreams: Upstreams) -> Callable[..., Awaitable[Any]]:
    async def read(uri: Any = None) -> Any:
        if not isinstance(uri, str):
            raise ArgumentError("mcp.read takes the address of a resource, a string")
        await upstreams.async_wait(_OFFERS_SECONDS, "offers")
        result = await upstreams.read_resource(uri, granted=True)
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
        await upstreams.async_wait(_OFFERS_SECONDS, "offers")
        # Arguments of prompts are texts: whatever else a script passes is written as JSON.
        named = (arguments or {}).items()
        given = {str(key): value if isinstance(value, str) else json.dumps(value) for key, value in named} or None
        result = await upstreams.get_prompt(name, given, granted=True)
        return [{"role": message.role, "content": content(message.content)} for message in result.messages]

    def content(block: types.ContentBlock) -> Any:
        return block.text if isinstance(block, types.TextContent) else reference(block, upstreams.media)

    return prompt


def _medium(data: str, kind: str, name: str, store: MediaStore | None) -> Media | None:
    """None where a server sends what is no base64, or too much; what is no MIME type is guessed."""
    for mime_type in (kind, ""):
        with contextlib.suppress(UsageError):
            medium = Media.from_base64(data, mime_type, name)
            try:
                if store is not None:
                    store.keep(medium)
            except ConversionError:
                return None
            return medium
    return None


def _failure(texts: list[str], data: Any) -> ToolError:
    message = "\n".join(text.strip() for text in texts if text.strip()) or "the tool failed without a message"
    if len(message) > _MAX_ERROR:
        message = message[:_MAX_ERROR] + "…"
    code = "tool_error"
    if isinstance(data, dict) and isinstance(data.get("code"), str) and 0 < len(data["code"]) <= 60:
        code = data["code"]
    return ToolError(message, code=code, data=data)
