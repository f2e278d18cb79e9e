"""LlamaIndex: code mode as function tools, with the script state of the workflow's Context."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from moonbox.adapters.base import Shown, ToolsAdapter, imported_from, new_conversation
from moonbox.tools.importers import framework_context, from_llamaindex
from moonbox.tools.tool import Tool

with imported_from("llama-index-core", extra="llamaindex"):
    from llama_index.core.base.llms.types import AudioBlock, DocumentBlock, ImageBlock, TextBlock
    from llama_index.core.tools import BaseTool, FunctionTool, ToolMetadata, ToolOutput

if TYPE_CHECKING:
    from llama_index.core.workflow import Context

    from moonbox.codemode.mode import Reply
    from moonbox.media import Media


class LlamaIndex(ToolsAdapter["Context[Any]", FunctionTool]):
    """Code mode for LlamaIndex.

        box = LlamaIndex([get_expenses])
        agent = FunctionAgent(llm=llm, tools=box.tools, system_prompt=box.system_prompt)
        answer = await agent.run("…", ctx=Context(agent))

    Script state is kept for each Context: give the same one to the next run and it goes on. `conversation` may name it
    from the Context instead. A tool that is called by hand, without a Context, keeps its state for that one call.
    """

    async def conversation_of(self, context: Context[Any] | None) -> str | None:
        """The conversation that a call in this context belongs to; the context remembers it."""
        if context is None:
            return None
        if (named := self._named(context)) is not None:
            return named
        async with context.store.edit_state() as state:
            if _KEY not in state:
                state[_KEY] = new_conversation("context")
            return str(state[_KEY])

    def name_of(self, tool: Any) -> str:
        """The name of an agent's tool; a plain function's is its own."""
        return str(tool.metadata.get_name() if isinstance(tool, BaseTool) else getattr(tool, "__name__", ""))

    def _tool(self, function: dict[str, Any], shown: Shown) -> FunctionTool:
        return LlamaIndexTool(self, function, shown)

    def _converted(self, tool: Any) -> Tool | None:
        if not isinstance(tool, BaseTool):
            return Tool.from_function(tool)  # LlamaIndex would make a tool of it too
        if isinstance(tool, LlamaIndexTool) or tool.metadata.return_direct:  # whose result ends the agent's run
            return None
        [converted] = from_llamaindex([tool])
        return converted


class LlamaIndexTool(FunctionTool):
    """One tool of code mode. What the model got wrong is in its output, marked as an error."""

    def __init__(self, adapter: LlamaIndex, function: dict[str, Any], shown: Shown) -> None:
        self._adapter, self._shown = adapter, shown
        super().__init__(fn=_never_called, metadata=MoonboxMetadata(function))
        self.requires_context, self.ctx_param_name = True, _CONTEXT

    def call(self, /, *args: Any, **kwargs: Any) -> ToolOutput:
        kwargs.pop(_CONTEXT, None)  # its store can only be awaited
        name, arguments = self.metadata.get_name(), _arguments(args, kwargs)
        return self._output(arguments, self._adapter.answer(self._shown, name, arguments, None))

    async def acall(self, /, *args: Any, **kwargs: Any) -> ToolOutput:
        context = kwargs.pop(_CONTEXT, None)
        name, arguments = self.metadata.get_name(), _arguments(args, kwargs)
        conversation = await self._adapter.conversation_of(context)
        with framework_context(context):
            return self._output(arguments, await self._adapter.aanswer(self._shown, name, arguments, conversation))

    def _output(self, arguments: Any, reply: Reply) -> ToolOutput:
        blocks = [TextBlock(text=reply.text), *map(_block, reply.media)] if reply.text else []
        return ToolOutput(
            blocks=blocks,
            tool_name=self.metadata.get_name(),
            raw_input={"kwargs": arguments},
            raw_output=reply.text,
            is_error=reply.is_error,
        )


def _block(medium: Media) -> Any:
    match medium.kind:
        case "image":
            return ImageBlock(image=medium.data, image_mimetype=medium.type)
        case "audio":
            return AudioBlock(audio=medium.data, format=medium.type.partition("/")[2])
    return DocumentBlock(data=medium.data, title=medium.name, document_mimetype=medium.type)


class MoonboxMetadata(ToolMetadata):
    """A tool's description with its parameters as JSON Schema, without a model class to make them from."""

    def __init__(self, function: dict[str, Any]) -> None:
        super().__init__(description=function["description"], name=function["name"], fn_schema=None)
        self._parameters = function["parameters"]

    def get_parameters_dict(self) -> dict[str, Any]:
        return dict(self._parameters)

    @property
    def fn_schema_str(self) -> str:
        return json.dumps(self._parameters, ensure_ascii=False)


_KEY = "moonbox_conversation"
_CONTEXT = "moonbox_context"
"""The parameter in which the agent hands over its Context: no name that a tool's own parameter has."""


def _never_called(**arguments: Any) -> None:
    """LlamaIndex wants a function; `call` and `acall` answer instead of it."""


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the model gave; a single value that is not by name is passed on, to be refused in words."""
    return args[0] if args and not kwargs else kwargs
