"""FastMCP: its code mode with Lua scripts in moonbox's sandbox."""

from __future__ import annotations

import contextlib
import inspect
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from moonbox.adapters.base import imported_from
from moonbox.closing import during
from moonbox.codemode.sessions import Sessions
from moonbox.errors import ToolDefinitionError, UsageError
from moonbox.errors import ToolError as ScriptToolError
from moonbox.languages.registry import language
from moonbox.limits import Limits
from moonbox.media import Media
from moonbox.sandbox.sandbox import Sandbox
from moonbox.tools.hints import Hints
from moonbox.tools.importers import WRAPPED, unwrapped
from moonbox.tools.tool import Tool as ScriptTool
from moonbox.tools.toolbox import Toolbox

with imported_from("fastmcp", extra="fastmcp"):
    from fastmcp.exceptions import FastMCPError, NotFoundError, ToolError
    from fastmcp.experimental.transforms.code_mode import CodeMode
    from fastmcp.server.dependencies import get_context
    from fastmcp.tools import Tool
    from fastmcp.tools.base import ToolResult
    from fastmcp.tools.tool_transform import forward_raw
    from fastmcp.utilities.types import Audio, File, Image
    from mcp_types import TextContent

if TYPE_CHECKING:
    from fastmcp.server.context import Context

    from moonbox.audit.records import Run
    from moonbox.sandbox.repl import Repl


class MoonboxSandboxProvider:
    """Runs the scripts of FastMCP's code mode: `CodeMode(sandbox_provider=MoonboxSandboxProvider(), …)`.

    Use it through `LuaCodeMode`, which also tells the model that the language is Lua and offers `tools.<name>{…}`.

    sandbox        where scripts run; by default one of its own, whose calls FastMCP counts
    conversation   a function from FastMCP's Context to the name of the conversation whose globals a script finds, or
                   None for none; by default every script starts afresh, as with FastMCP's own provider
    max_chars      the longest answer to the model
    """

    def __init__(
        self,
        sandbox: Sandbox | None = None,
        *,
        conversation: Callable[[Context], str | None] | None = None,
        max_chars: int = 20_000,
    ) -> None:
        if conversation is not None and not callable(conversation):
            raise UsageError(f"conversation must be a function that returns a name, not {conversation!r}")
        self.sandbox = sandbox if sandbox is not None else Sandbox(limits=Limits(max_tool_calls=None))
        self.keeps_state = conversation is not None
        self._conversation = conversation
        self._max_chars = max_chars
        self._repls: Sessions[Repl] = Sessions(lambda repl: repl.close(), idle_seconds=3600.0, most=100)
        self._is_own = sandbox is None

    async def run(
        self,
        code: str,
        *,
        inputs: dict[str, Any] | None = None,
        external_functions: dict[str, Callable[..., Any]] | None = None,
        tools: Sequence[Tool] | None = None,
    ) -> Any:
        """Run a script: its value, or a text for the model where it printed something or returned very much.

        `tools` are callable as `tools.<name>{…}`, through the external function `call_tool`.
        """
        functions = dict(external_functions or {})
        async with self._repl() as repl:
            made = [_script_tool(_key(tool)) for tool in tools or ()]
            wanted = {tool.path: tool for tool in made if tool is not None}
            if list(repl.toolbox) != list(wanted.values()):
                repl.toolbox.set_namespace(None, wanted.values())
            for name, value in (inputs or {}).items():
                repl.define(name, value)
            for name in functions:
                repl.define(name, _dispatcher(name), doc=_DOCS.get(name, ""))
            with during(_functions, functions), during(_media, {}):
                return self._outcome(await repl.arun(code))

    def close(self) -> None:
        """End the sandbox, if it is the provider's own."""
        self._repls.end_all()
        if self._is_own:
            self.sandbox.close()

    def _new_repl(self) -> Repl:
        return self.sandbox.repl(toolbox=Toolbox())

    @contextlib.asynccontextmanager
    async def _repl(self) -> AsyncIterator[Repl]:
        name = self._conversation(get_context()) if self._conversation is not None else None
        if name is not None:
            with self._repls.use(name, self._new_repl) as repl:
                yield repl
            return
        async with self._new_repl() as repl:
            yield repl

    def _outcome(self, run: Run) -> Any:
        if not run.ok:
            shown = run if self.keeps_state else replace(run, repl="", state_lost=False)
            raise ToolError(shown.for_model(self._max_chars))
        text = run.for_model(self._max_chars)
        if run.media:
            return ToolResult(content=[text, *map(_block, run.media)])
        plain = not run.output and len(run.values) == 1
        return run.value if plain and len(text) < self._max_chars else text


def _block(medium: Media) -> Any:
    """A medium as FastMCP sends it."""
    match medium.kind:
        case "image":
            return Image(data=medium.data).to_image_content(medium.type)
        case "audio":
            return Audio(data=medium.data).to_audio_content(medium.type)
    return File(data=medium.data, name=medium.name).to_resource_content(medium.type)


class LuaCodeMode(CodeMode):
    """FastMCP's code mode in Lua: `FastMCP("server", transforms=[LuaCodeMode()])`.

    `options` are those of FastMCP's CodeMode: discovery_tools, execute_tool_name, execute_description, max_tool_calls.
    """

    def __init__(self, provider: MoonboxSandboxProvider | None = None, **options: Any) -> None:
        self.provider = provider or MoonboxSandboxProvider()
        words = language().texts
        state = "Globals persist between calls; locals do not." if self.provider.keeps_state else _AFRESH
        lines = [_FIRST.format(state), *words.description.splitlines()[1:], words.with_tools, _BY_NAME]
        self._parameter_description = words.parameter_description
        super().__init__(
            sandbox_provider=SimpleNamespace(run=self._run), **{"execute_description": "\n".join(lines), **options}
        )

    async def transform_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        return [self._described(tool) for tool in await super().transform_tools(tools)]

    async def get_tool(self, name: str, call_next: Any, **options: Any) -> Tool | None:
        tool = await super().get_tool(name, call_next, **options)
        if tool is None or name == self.execute_tool_name:
            return self._described(tool) if tool is not None else None
        called_by_script = _media.get(None) is not None
        return Tool.from_tool(tool, transform_fn=_keep_media) if called_by_script and not tool.output_schema else tool

    async def _run(self, code: str, **given: Any) -> Any:
        """Run a script with the tools that the caller of the server may see."""
        return await self.provider.run(code, tools=await self.get_tool_catalog(get_context()), **given)

    def _described(self, tool: Tool) -> Tool:
        """The execute tool with its parameter described as what it is here; FastMCP says Python."""
        if tool.name != self.execute_tool_name:
            return tool
        properties = {
            name: {**part, "description": self._parameter_description}
            for name, part in tool.parameters["properties"].items()
        }
        return tool.model_copy(update={"parameters": {**tool.parameters, "properties": properties}})


_FIRST = "Runs a Lua 5.4 script in a sandbox and returns its value. {}"
_AFRESH = "Every call starts afresh: nothing is left of earlier scripts."
_BY_NAME = 'A tool whose name is not a Lua name: call_tool("the-name", {key = value}).'


_CALL_TOOL = "call_tool"
_MOST_TOOLS = 2_000
_DOCS = {_CALL_TOOL: "call_tool(name, {key = value}): call a tool of the server by its name."}
_functions: ContextVar[Mapping[str, Callable[..., Any]]] = ContextVar("moonbox_external_functions")
"""The external functions of the execution that is under way: each brings its own."""
_media: ContextVar[dict[str, Any]] = ContextVar("moonbox_media")
"""The results with media of the execution that is under way, by the text that stands in their place."""


def _dispatcher(name: str) -> Callable[..., Any]:
    """A function for scripts that calls the external function of the execution that is under way."""

    async def dispatch(*arguments: Any) -> Any:
        if name == _CALL_TOOL and (len(arguments) == 1 or arguments[1:] == ([],)):
            # An empty table is an empty list as long as nothing says that it is an object.
            arguments = (arguments[0], {})
        try:
            result = _functions.get()[name](*arguments)
            value = await result if inspect.isawaitable(result) else result
            return _media.get({}).get(value, value) if isinstance(value, str) else value
        except (FastMCPError, NotFoundError) as problem:
            raise ScriptToolError(str(problem)) from problem

    return dispatch


async def _keep_media(**arguments: Any) -> ToolResult:
    """Around a tool of the server: FastMCP hands scripts the text of results, so one with media is given by a name."""
    result = await forward_raw(**arguments)
    blocks = [_medium(block) or block for block in result.content]
    media = [block for block in blocks if isinstance(block, Media)]
    if not media or result.is_error:
        return result
    others = (block for block in blocks if not isinstance(block, Media))
    text = "\n".join(block.text if isinstance(block, TextContent) else str(block) for block in others)
    value = media[0] if len(media) == 1 and not text else {**({"text": text} if text else {}), "content": media}
    named = TextContent(type="text", text=media[0].address)
    _media.get()[named.text] = value
    return ToolResult(content=[named], structured_content=result.structured_content, meta=result.meta)


def _medium(block: Any) -> Media | None:
    """What a block of a result holds besides text."""
    inner = getattr(block, "resource", block)
    data = getattr(inner, "blob", None) or getattr(inner, "data", None)
    if not isinstance(data, str):
        return None
    try:
        return Media.from_base64(data, getattr(inner, "mime_type", None) or "", str(getattr(inner, "uri", "")))
    except UsageError:
        return None


@lru_cache(maxsize=_MOST_TOOLS)
def _script_tool(key: str) -> ScriptTool | None:
    """A server's tool as scripts call it, made once for as long as its description stays the same.

    None if scripts cannot have it under its name; `call_tool` still reaches it.
    """
    name, description, parameters, returns, annotations = json.loads(key)
    wrapped = bool(returns and returns.get(WRAPPED))

    async def call(arguments: dict[str, Any]) -> Any:
        result = await _dispatcher(_CALL_TOOL)(name, arguments)
        return result["result"] if wrapped and isinstance(result, dict) and "result" in result else result

    try:
        return ScriptTool.from_schema(
            name=name,
            description=description or "",
            parameters=parameters,
            returns=unwrapped(returns),
            hints=Hints.from_mcp(annotations),
            call=call,
        )
    except ToolDefinitionError:
        return None


def _key(tool: Tool) -> str:
    annotations = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else None
    return json.dumps([tool.name, tool.description, tool.parameters, tool.output_schema, annotations])
