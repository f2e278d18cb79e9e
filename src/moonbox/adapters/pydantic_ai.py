"""Pydantic AI: code mode as a toolset, and as a capability that hides an agent's own tools."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox.adapters.base import FrameworkAdapter, Shown, imported_from
from moonbox.errors import Denied
from moonbox.tools.hints import Hints
from moonbox.tools.importers import framework_context, needed_context, pydantic_ai_errors
from moonbox.tools.tool import Tool

with imported_from("pydantic-ai-slim", extra="pydantic-ai"):
    from pydantic_ai import FunctionToolset, RunContext, ToolDefinition
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ToolFailed
    from pydantic_ai.messages import BinaryContent, InstructionPart, ModelResponse, ToolCallPart
    from pydantic_ai.tool_manager import ToolManager
    from pydantic_ai.tools import ToolDenied
    from pydantic_ai.toolsets import ToolsetTool, WrapperToolset

if TYPE_CHECKING:
    from pydantic_ai.toolsets import AbstractToolset
    from pydantic_ai.toolsets.abstract import SchemaValidatorProt


class PydanticAI(FrameworkAdapter[RunContext[Any]]):
    """Code mode for Pydantic AI.

        agent = Agent(model, toolsets=[PydanticAI([get_expenses]).toolset])
        agent = Agent(model, tools=[get_expenses], capabilities=[PydanticAI().capability])

    Script state is kept for each conversation of Pydantic AI's: runs that continue a message history, or that are given
    the same `conversation_id`, share it; `conversation` may name it from the RunContext instead.
    """

    @property
    def toolset(self) -> MoonboxToolset:
        """The code tool and the direct tools, with the instructions that belong to them."""
        return MoonboxToolset(FunctionToolset(id="moonbox"), self)

    @property
    def capability(self) -> MoonboxCapability:
        """The same, with the agent's own tools and toolsets behind the code tool; `leave_direct` names exceptions."""
        return MoonboxCapability(self)

    def conversation_of(self, context: RunContext[Any]) -> str | None:
        """The conversation that a call in this context belongs to."""
        return self._named(context) or context.conversation_id or context.run_id


@dataclass
class MoonboxCapability(AbstractCapability[Any]):
    """Puts an agent's tools behind code mode. Make it with `PydanticAI(…).capability`."""

    adapter: PydanticAI

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return MoonboxToolset(toolset, self.adapter)


@dataclass(kw_only=True)
class MoonboxToolsetTool(ToolsetTool[Any]):
    """A tool of code mode, and what the model was shown with it."""

    adapter: PydanticAI
    shown: Shown
    called: str
    """Its name in code mode: other toolsets may rename it."""


@dataclass
class MoonboxToolset(WrapperToolset[Any]):
    """The code tool, the direct tools, and those of the wrapped toolset that scripts cannot reach."""

    adapter: PydanticAI

    @property
    def id(self) -> str | None:
        return self.wrapped.id

    async def get_instructions(self, ctx: RunContext[Any]) -> list[str | InstructionPart]:
        inherited = await super().get_instructions(ctx)
        parts = inherited if isinstance(inherited, list | tuple) else [inherited]
        tools = ctx.tool_manager.tools if ctx.tool_manager is not None else None
        ours = [tool for tool in (tools or {}).values() if isinstance(tool, MoonboxToolsetTool)]
        shown = next((tool.shown for tool in ours if tool.adapter is self.adapter), self.adapter.alone)
        prompt = shown.mode.system_prompt
        own = InstructionPart(content=prompt, dynamic=False) if prompt else None
        return [part for part in (*parts, own) if part is not None]

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await self.wrapped.get_tools(ctx)
        shown = self.adapter.shown_with(tools.values(), lambda tool: self._converted(tool, tools))
        ours = {function["name"]: self._tool(function, shown) for function in shown.functions()}
        return {**ours, **{name: tool for name, tool in tools.items() if name not in shown.hidden}}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """The answer to a call; ToolFailed where one of ours failed."""
        if not isinstance(tool, MoonboxToolsetTool):
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        given = tool_args[_MALFORMED] if set(tool_args) == {_MALFORMED} else tool_args
        conversation = self.adapter.conversation_of(ctx)
        with framework_context(ctx):
            reply = await self.adapter.aanswer(tool.shown, tool.called, given, conversation, cut=_is_cut(ctx))
        if reply.is_error:
            raise ToolFailed(reply.text)
        media = [BinaryContent(data=medium.data, media_type=medium.type) for medium in reply.media]
        return [reply.text, *media] if media else reply.text

    def _tool(self, function: dict[str, Any], shown: Shown) -> MoonboxToolsetTool:
        definition = ToolDefinition(
            name=function["name"],
            description=function["description"],
            parameters_json_schema=function["parameters"],
            strict=False,
        )
        return MoonboxToolsetTool(
            toolset=self,
            tool_def=definition,
            max_retries=0,
            args_validator=_AnyArguments(),
            adapter=self.adapter,
            shown=shown,
            called=definition.name,
        )

    def _converted(self, tool: ToolsetTool[Any], tools: dict[str, ToolsetTool[Any]]) -> Tool | None:
        """A tool of the agent for scripts; None for one that Pydantic AI answers in its own way."""
        definition = tool.tool_def
        special = (definition.defer_loading, definition.tool_kind, definition.unless_native, definition.with_native)
        if definition.kind != "function" or any(special) or isinstance(tool, MoonboxToolsetTool):
            return None

        async def call(arguments: dict[str, Any]) -> Any:
            ctx = needed_context(definition.name)
            part = ToolCallPart(definition.name, arguments)
            with pydantic_ai_errors():
                # Validation and the hooks of other capabilities, as for the model's own calls.
                result = await self._manager(ctx, tools).handle_call(part, wrap_validation_errors=False)
            if isinstance(result, ToolDenied):
                raise Denied(result.message)
            return result.return_value if hasattr(result, "return_value") else result

        return Tool.from_schema(
            name=definition.name,
            description=definition.description or "",
            parameters=definition.parameters_json_schema,
            returns=definition.return_schema,
            hints=Hints.from_mcp((definition.metadata or {}).get("annotations")),
            max_concurrency=1 if definition.sequential else None,
            call=call,
        )

    def _manager(self, ctx: RunContext[Any], tools: dict[str, ToolsetTool[Any]]) -> ToolManager[Any]:
        own: dict[str, Any] = {"toolset": self.wrapped, "ctx": ctx, "tools": tools}
        if ctx.tool_manager is None:
            return ToolManager(**own)
        return dataclasses.replace(ctx.tool_manager, **own, failed_tools=set(), succeeded_tools=set())


class _AnyArguments:
    """Takes whatever the model wrote: code mode says what is wrong with it, however often."""

    def validate_json(self, input: str | bytes | bytearray, **_: Any) -> dict[str, Any]:
        try:
            return self.validate_python(json.loads(input))
        except (ValueError, RecursionError):
            return self.validate_python(input if isinstance(input, str) else bytes(input).decode("utf-8", "replace"))

    def validate_python(self, input: Any, **_: Any) -> dict[str, Any]:
        return input if isinstance(input, dict) else {_MALFORMED: input}


_MALFORMED = "INVALID_JSON"
"""The key under which Pydantic AI itself sends malformed arguments back to the model."""


def _is_cut(ctx: RunContext[Any]) -> bool:
    """Whether the model's answer ended at its token limit in this very call, the last of the answer."""
    response = next((message for message in reversed(ctx.messages) if isinstance(message, ModelResponse)), None)
    if response is None or response.finish_reason != "length" or not response.tool_calls:
        return False
    return bool(response.tool_calls[-1].tool_call_id == ctx.tool_call_id)


if TYPE_CHECKING:
    _: SchemaValidatorProt = _AnyArguments()
