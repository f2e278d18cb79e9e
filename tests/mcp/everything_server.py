"""An everything-server: every feature of the protocol under the names that the conformance suite expects.

python tests/mcp/everything_server.py http PORT     streamable HTTP at /mcp; PORT 0 takes a free one and prints it
python tests/mcp/everything_server.py stdio

With --legacy it speaks only the earlier protocols, which have a handshake. With --asks it speaks both, and sends its
questions as requests of its own in both, as servers do that were written for the earlier ones: the SDK's own example.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import sys
import warnings
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server import NotificationOptions, Server
from mcp.server.connection import allowed_log_levels
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAD//w=="
ICON = types.Icon(src=f"data:image/png;base64,{PNG}", mime_type="image/png", sizes=["1x1"])
PAGE = 15
"""Tools on one page of tools/list."""

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


def _text_parameter(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "description": "Verification status", "default": True},
    },
    "required": [],
}
_TITLED = [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)]
ENUMS = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": _TITLED},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
    },
    "required": [],
}
CONTACT = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}
SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "celsius": {"type": "number"}},
    "required": ["city", "celsius"],
}


def _tool(name: str, description: str, parameters: dict[str, Any] = NOTHING, **more: Any) -> types.Tool:
    return types.Tool(name=name, description=description, input_schema=parameters, **more)


TOOLS = [
    _tool("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", SCHEMA_2020),
    _tool("test_reconnection", "Closes the stream of its call before it answers."),
    _tool("test_simple_text", "Returns a text."),
    _tool("test_image_content", "Returns an image."),
    _tool("test_audio_content", "Returns audio."),
    _tool("test_embedded_resource", "Returns an embedded resource."),
    _tool("test_multiple_content_types", "Returns a text, an image and a resource."),
    _tool("test_tool_with_logging", "Sends log messages while it runs."),
    _tool("test_error_handling", "Always fails."),
    _tool("test_tool_with_progress", "Reports its progress."),
    _tool("test_sampling", "Asks the client's model.", _text_parameter("prompt")),
    _tool("test_elicitation", "Asks the person.", _text_parameter("message")),
    _tool("test_elicitation_sep1034_defaults", "Asks the person, with defaults."),
    _tool("test_elicitation_sep1330_enums", "Asks the person, with choices."),
    _tool("test_roots", "Lists the client's roots."),
    _tool(
        "test_weather",
        "The weather of a city.",
        _text_parameter("city"),
        title="Weather",
        output_schema=WEATHER,
        icons=[ICON],
        annotations=types.ToolAnnotations(title="Weather", read_only_hint=True, open_world_hint=False),
    ),
    _tool("test_change_lists", "Adds a tool, a prompt and a resource.", title="Change the lists"),
    _tool("test_touch_resource", "Changes a resource.", _text_parameter("uri")),
    _tool("test_wait", "Never ends; says in a resource when it is cancelled."),
]
IMAGE = types.ImageContent(data=PNG, mime_type="image/png")


def _embedded(uri: str, kind: str, text: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=kind, text=text))


RESULTS: dict[str, list[Any]] = {
    "test_simple_text": [types.TextContent(text="This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [types.AudioContent(data=WAV, mime_type="audio/wav")],
    "test_embedded_resource": [
        _embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        types.TextContent(text="Multiple content types test:"),
        IMAGE,
        _embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
    "test_error_handling": [types.TextContent(text="This tool intentionally returns an error for testing")],
}
"""Of the tools that always return the same."""
PROMPTS = [
    types.Prompt(name="test_simple_prompt", description="A prompt without arguments.", icons=[ICON]),
    types.Prompt(
        name="test_prompt_with_arguments",
        description="A prompt with two arguments.",
        arguments=[
            types.PromptArgument(name="arg1", description="First test argument", required=True),
            types.PromptArgument(name="arg2", description="Second test argument", required=True),
        ],
    ),
    types.Prompt(
        name="test_prompt_with_embedded_resource",
        description="A prompt with a resource.",
        arguments=[types.PromptArgument(name="resourceUri", description="The resource to embed", required=True)],
    ),
    types.Prompt(name="test_prompt_with_image", description="A prompt with an image."),
]
RESOURCES = [
    types.Resource(
        uri="test://static-text", name="static text", description="A text.", mime_type="text/plain", icons=[ICON]
    ),
    types.Resource(uri="test://static-binary", name="static image", description="An image.", mime_type="image/png"),
    types.Resource(uri="test://watched-resource", name="watched", description="A text that changes."),
]
TEMPLATES = [
    types.ResourceTemplate(
        uri_template="test://template/{id}/data",
        name="template",
        description="Data by id.",
        mime_type="application/json",
        icons=[ICON],
    )
]
_TEMPLATE = re.compile(r"test://template/([^/]+)/data")
_CITIES = ["paris", "park", "party", "london"]


class Everything:
    """The server's state and its handlers."""

    def __init__(self, *, legacy: bool = False) -> None:
        self.bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self.bus)
        self.extra = 0
        self.versions: dict[str, int] = {}
        self.subscribers: dict[str, set[Any]] = {}
        self.cancelled = 0
        self.levels: dict[str, str] = {}
        with warnings.catch_warnings():
            # Logging is deprecated in the newest protocol, and part of all earlier ones.
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            self.app = _Announcing(
                "everything",
                version="1",
                icons=[ICON],
                on_list_tools=self.list_tools,
                on_call_tool=self.call_tool,
                on_list_prompts=self.list_prompts,
                on_get_prompt=self.get_prompt,
                on_list_resources=self.list_resources,
                on_list_resource_templates=self.list_templates,
                on_read_resource=self.read_resource,
                on_subscribe_resource=self.subscribe,
                on_unsubscribe_resource=self.unsubscribe,
                on_completion=self.complete,
                on_set_logging_level=self.set_level,
                on_subscriptions_listen=self.listen,
            )
        if legacy:
            self.app.middleware.append(_refuse_discovery)

    # Tools

    async def list_tools(self, _: Any, params: Any) -> types.ListToolsResult:
        tools = [*TOOLS, *(_tool(f"test_extra_{n}", "Was added.") for n in range(1, self.extra + 1))]
        start = int((params.cursor if params else None) or 0)
        after = start + PAGE
        return types.ListToolsResult(tools=tools[start:after], next_cursor=str(after) if after < len(tools) else None)

    async def call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> Any:
        if params.name in RESULTS:
            return types.CallToolResult(content=RESULTS[params.name], is_error=params.name == "test_error_handling")
        handler = getattr(self, f"_{params.name}", None)
        if handler is None:
            return _text(f"{params.name} was called")
        ctx.answers = params.input_responses or {}
        try:
            return await handler(ctx, params.arguments or {})
        except _InputRequired as question:
            return types.InputRequiredResult(input_requests={"question": question.request}, request_state="asked")

    async def _test_tool_with_logging(self, ctx: Any, _: Any) -> types.CallToolResult:
        for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await _log(ctx, "info", message)
            await asyncio.sleep(0.05)
        await _log(ctx, "debug", "A detail")
        return _text("Tool with logging executed successfully")

    async def _test_tool_with_progress(self, ctx: Any, _: Any) -> types.CallToolResult:
        for step in (0, 50, 100):
            await ctx.session.report_progress(step, 100, f"Completed step {step} of 100")
            await asyncio.sleep(0.05)
        return _text("Tool with progress executed successfully")

    async def _test_sampling(self, ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        message = types.SamplingMessage(role="user", content=types.TextContent(text=arguments["prompt"]))
        params = types.CreateMessageRequestParams(messages=[message], max_tokens=100)
        request = types.CreateMessageRequest(params=params)
        answer = await _ask(ctx, request, types.CreateMessageResult)
        return _text(f"LLM response: {getattr(answer.content, 'text', answer.content)}")

    async def _test_elicitation(self, ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        answer = await _elicit(ctx, arguments["message"], CONTACT)
        return _text(f"User response: action={answer.action}, content={json.dumps(answer.content)}")

    async def _test_elicitation_sep1034_defaults(self, ctx: Any, _: Any) -> types.CallToolResult:
        return await _completed(ctx, "Please review the defaults", DEFAULTS)

    async def _test_elicitation_sep1330_enums(self, ctx: Any, _: Any) -> types.CallToolResult:
        return await _completed(ctx, "Please choose", ENUMS)

    async def _test_roots(self, ctx: Any, _: Any) -> types.CallToolResult:
        answer = await _ask(ctx, types.ListRootsRequest(), types.ListRootsResult)
        return _text(json.dumps([str(root.uri) for root in answer.roots]))

    async def _test_reconnection(self, ctx: Any, _: Any) -> types.CallToolResult:
        if ctx.close_sse_stream is not None:
            await ctx.close_sse_stream()
        await asyncio.sleep(0.1)
        return _text("Reconnection test completed successfully")

    async def _test_weather(self, _: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        data = {"city": arguments["city"], "celsius": 21.5}
        return types.CallToolResult(
            content=[types.TextContent(text=json.dumps(data))], structured_content=data, _meta={"station": "7"}
        )

    async def _test_change_lists(self, ctx: Any, _: Any) -> types.CallToolResult:
        self.extra += 1
        for event in (ToolsListChanged(), PromptsListChanged(), ResourcesListChanged()):
            await self.bus.publish(event)
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            await ctx.session.send_tool_list_changed()
            await ctx.session.send_prompt_list_changed()
            await ctx.session.send_resource_list_changed()
        return _text(f"there are {self.extra} more of each")

    async def _test_touch_resource(self, _: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        uri = arguments["uri"]
        self.versions[uri] = self.versions.get(uri, 0) + 1
        await self.bus.publish(ResourceUpdated(uri))
        for session in list(self.subscribers.get(uri, ())):
            await session.send_resource_updated(uri)
        return _text(f"{uri} is at version {self.versions[uri]}")

    async def _test_wait(self, *_: Any) -> types.CallToolResult:
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled += 1
        return _text("")

    # Prompts

    async def list_prompts(self, *_: Any) -> types.ListPromptsResult:
        added = [types.Prompt(name=f"test_extra_{n}", description="Was added.") for n in range(1, self.extra + 1)]
        return types.ListPromptsResult(prompts=[*PROMPTS, *added])

    async def get_prompt(self, _: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        given = params.arguments or {}
        blocks: list[Any]
        match params.name:
            case "test_simple_prompt":
                blocks = [types.TextContent(text="This is a simple prompt for testing.")]
            case "test_prompt_with_arguments":
                text = f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"
                blocks = [types.TextContent(text=text)]
            case "test_prompt_with_embedded_resource":
                embedded = _embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
                blocks = [embedded, types.TextContent(text="Please process the embedded resource above.")]
            case "test_prompt_with_image":
                blocks = [IMAGE, types.TextContent(text="Please analyze the image above.")]
            case _:
                raise MCPError(types.INVALID_PARAMS, f"unknown prompt {params.name}")
        messages = [types.PromptMessage(role="user", content=block) for block in blocks]
        return types.GetPromptResult(description=f"the prompt {params.name}", messages=messages)

    async def complete(self, _: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
        values = [city for city in _CITIES if city.startswith(params.argument.value)]
        return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))

    # Resources

    async def list_resources(self, *_: Any) -> types.ListResourcesResult:
        added = [
            types.Resource(uri=f"test://extra/{n}", name=f"extra {n}", description="Was added.")
            for n in range(1, self.extra + 1)
        ]
        return types.ListResourcesResult(resources=[*RESOURCES, *added])

    async def list_templates(self, *_: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=TEMPLATES)

    async def read_resource(self, _: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        contents: Any
        if uri == "test://static-text":
            text = "This is the content of the static text resource."
            contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)
        elif uri == "test://static-binary":
            contents = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
        elif match := _TEMPLATE.fullmatch(uri):
            data = {"id": match[1], "templateTest": True, "data": f"Data for ID: {match[1]}"}
            contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=json.dumps(data))
        elif uri == "test://watched-resource":
            text = f"version {self.versions.get(uri, 0)}, {self.cancelled} cancelled, levels {sorted(self.levels)}"
            contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)
        else:
            raise MCPError(types.INVALID_PARAMS, f"unknown resource {uri}", {"uri": uri})
        return types.ReadResourceResult(contents=[contents])

    async def subscribe(self, ctx: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
        self.subscribers.setdefault(str(params.uri), set()).add(ctx.session)
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self.subscribers.get(str(params.uri), set()).clear()
        return types.EmptyResult()

    async def set_level(self, _: Any, params: types.SetLevelRequestParams) -> types.EmptyResult:
        self.levels[params.level] = params.level
        return types.EmptyResult()


async def _refuse_discovery(ctx: Any, call_next: Any) -> Any:
    """As a server of the earlier protocol does."""
    if ctx.method == "server/discover":
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found")
    return await call_next(ctx)


class _Announcing(Server[Any]):
    """Announces that its lists change."""

    def create_initialization_options(self, options: Any = None, *more: Any) -> Any:
        changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return super().create_initialization_options(options or changes, *more)


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)])


class _InputRequired(Exception):
    """In the current protocol a question is the result of the call, and the answer comes with the next one."""

    def __init__(self, request: Any) -> None:
        self.request = request


async def _ask(ctx: Any, request: Any, kind: Any) -> Any:
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS and "--asks" not in sys.argv:
        if "question" not in ctx.answers:
            raise _InputRequired(request)
        return ctx.answers["question"]
    metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
    return await ctx.session.send_request(request, kind, metadata=metadata)


async def _elicit(ctx: Any, message: str, schema: dict[str, Any]) -> types.ElicitResult:
    params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
    return await _ask(ctx, types.ElicitRequest(params=params), types.ElicitResult)


async def _completed(ctx: Any, message: str, schema: dict[str, Any]) -> types.CallToolResult:
    answer = await _elicit(ctx, message, schema)
    return _text(f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content)}")


async def _log(ctx: Any, level: Any, data: Any) -> None:
    if level not in allowed_log_levels(ctx.protocol_version, ctx.meta):
        return
    params = types.LoggingMessageNotificationParams(level=level, data=data, logger="everything")
    await ctx.session.send_notification(
        types.LoggingMessageNotification(params=params), related_request_id=ctx.request_id
    )


def http_app(*, legacy: bool) -> Any:
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.applications import Starlette
    from starlette.routing import Route

    from moonbox.mcp.server.web import EventLog

    security = TransportSecuritySettings(
        allowed_hosts=["127.0.0.1:*", "localhost:*"], allowed_origins=["http://127.0.0.1:*", "http://localhost:*"]
    )
    manager = StreamableHTTPSessionManager(
        Everything(legacy=legacy).app, event_store=EventLog(), retry_interval=500, security_settings=security
    )

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> Any:
        async with manager.run():
            yield

    return Starlette(routes=[Route("/mcp", StreamableHTTPASGIApp(manager))], lifespan=lifespan)


def main() -> None:
    legacy = "--legacy" in sys.argv
    if sys.argv[1:2] == ["http"]:
        import uvicorn

        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", int(sys.argv[2])))
        listening.listen(128)
        print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
        uvicorn.Server(uvicorn.Config(http_app(legacy=legacy), log_level="error")).run(sockets=[listening])
        return
    from mcp.server.runner import serve_loop
    from mcp.server.stdio import stdio_server

    async def serve() -> None:
        app = Everything(legacy=legacy).app
        async with stdio_server() as (reader, writer):
            options = app.create_initialization_options()
            if legacy:
                await serve_loop(app, reader, writer, lifespan_state={}, init_options=options)
            else:
                await app.run(reader, writer, options)

    asyncio.run(serve())


if __name__ == "__main__":
    main()
