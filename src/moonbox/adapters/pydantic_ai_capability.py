"""The capability for Pydantic AI's agents: code mode over all the tools that an agent has."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox.adapters.base import imported_from
from moonbox.adapters.pydantic_ai import MoonboxToolsetTool, PydanticAI, instructions
from moonbox.errors import Denied
from moonbox.tools.hints import Hints
from moonbox.tools.importers import needed_context, pydantic_ai_errors
from moonbox.tools.tool import Tool

with imported_from("pydantic-ai-slim", extra="pydantic-ai"):
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tool_manager import ToolManager
    from pydantic_ai.tools import ToolDenied
    from pydantic_ai.toolsets import WrapperToolset

if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.messages import InstructionPart
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool


@dataclass
class MoonboxCapability(AbstractCapability[Any]):
    """Puts an agent's tools behind code mode. Make it with `PydanticAI(…).capability`."""

    adapter: PydanticAI

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return HidingToolset(toolset, self.adapter)


@dataclass
class HidingToolset(WrapperToolset[Any]):
    """The code tool, the direct tools, and those of the wrapped toolset that scripts cannot reach."""

    adapter: PydanticAI

    async def get_instructions(self, ctx: RunContext[Any]) -> list[str | InstructionPart]:
        inherited = await super().get_instructions(ctx)
        parts = inherited if isinstance(inherited, list | tuple) else [inherited]
        tools = ctx.tool_manager.tools if ctx.tool_manager is not None else None
        shown = next((tool.shown for tool in (tools or {}).values() if isinstance(tool, MoonboxToolsetTool)), None)
        own = instructions((shown or self.adapter.alone).mode.system_prompt)
        return [part for part in (*parts, own) if part is not None]

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await self.wrapped.get_tools(ctx)
        shown = self.adapter.agent_tools.shown(tools.values(), lambda tool: self._converted(tool, tools))
        kept = {name: tool for name, tool in tools.items() if name not in shown.hidden}
        return {**self.adapter.tools_of(shown, self), **kept}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        if isinstance(tool, MoonboxToolsetTool):
            return await self.adapter.call(tool, tool_args, ctx)
        return await self.wrapped.call_tool(name, tool_args, ctx, tool)

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
