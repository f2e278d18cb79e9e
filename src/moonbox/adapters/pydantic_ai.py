"""Pydantic AI: code mode as a toolset, and as a capability that hides an agent's own tools."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox.adapters.base import FrameworkAdapter, ModelCall, aanswer, imported_from
from moonbox.tools.importers import framework_context

with imported_from("pydantic-ai-slim", extra="pydantic-ai"):
    from pydantic_ai import RunContext, ToolDefinition
    from pydantic_ai.exceptions import ToolFailed
    from pydantic_ai.messages import BinaryContent, InstructionPart, ModelResponse
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

if TYPE_CHECKING:
    from pydantic_ai.toolsets.abstract import SchemaValidatorProt

    from moonbox.adapters.agent_tools import Shown
    from moonbox.adapters.pydantic_ai_capability import MoonboxCapability


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
        return MoonboxToolset(self)

    @property
    def capability(self) -> MoonboxCapability:
        """The same, with the agent's own tools and toolsets behind the code tool; `leave_direct` names exceptions."""
        from moonbox.adapters.pydantic_ai_capability import MoonboxCapability

        return MoonboxCapability(self)

    def conversation_of(self, context: RunContext[Any]) -> str | None:
        """The conversation that a call in this context belongs to."""
        return self._named(context) or context.conversation_id or context.run_id

    def tools_of(self, shown: Shown, toolset: AbstractToolset[Any]) -> dict[str, ToolsetTool[Any]]:
        return {function["name"]: _tool(function, shown, toolset) for function in shown.functions()}

    async def call(self, tool: MoonboxToolsetTool, arguments: dict[str, Any], ctx: RunContext[Any]) -> Any:
        """The answer to a call of one of those; ToolFailed where it failed."""
        conversation = self.conversation_of(ctx)
        given = arguments[_MALFORMED] if set(arguments) == {_MALFORMED} else arguments
        call = ModelCall(ctx.tool_call_id or "", tool.called, given, cut=_is_cut(ctx))
        with framework_context(ctx), self.conversation_key(conversation) as key, tool.shown.running() as mode:
            reply = await aanswer(mode, call, key)
        if reply.is_error:
            raise ToolFailed(reply.text)
        media = [BinaryContent(data=medium.data, media_type=medium.type) for medium in reply.media]
        return [reply.text, *media] if media else reply.text


@dataclass(kw_only=True)
class MoonboxToolsetTool(ToolsetTool[Any]):
    """A tool of code mode, and what the model was shown with it."""

    shown: Shown
    called: str
    """Its name in code mode: other toolsets may rename it."""


class MoonboxToolset(AbstractToolset[Any]):
    """Answers an agent's calls through code mode. Make it with `PydanticAI(…).toolset`."""

    def __init__(self, adapter: PydanticAI) -> None:
        self.adapter = adapter

    @property
    def id(self) -> str | None:
        return "moonbox"

    async def get_instructions(self, ctx: RunContext[Any]) -> InstructionPart | None:
        return instructions(self.adapter.system_prompt)

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return self.adapter.tools_of(self.adapter.alone, self)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        assert isinstance(tool, MoonboxToolsetTool)
        return await self.adapter.call(tool, tool_args, ctx)


def instructions(prompt: str) -> InstructionPart | None:
    return InstructionPart(content=prompt, dynamic=False) if prompt else None


def _tool(function: dict[str, Any], shown: Shown, toolset: AbstractToolset[Any]) -> MoonboxToolsetTool:
    definition = ToolDefinition(
        name=function["name"],
        description=function["description"],
        parameters_json_schema=function["parameters"],
        strict=False,
    )
    return MoonboxToolsetTool(
        toolset=toolset,
        tool_def=definition,
        max_retries=0,
        args_validator=_AnyArguments(),
        shown=shown,
        called=definition.name,
    )


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
