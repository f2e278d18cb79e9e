"""LangChain and LangGraph: code mode as LangChain tools and as middleware of an agent."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from moonbox.adapters.base import Shown, ToolsAdapter, imported_from
from moonbox.tools.hints import Hints
from moonbox.tools.importers import from_langchain

with imported_from("langchain", extra="langchain"):
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import BaseTool, ToolException
    from pydantic import Field

if TYPE_CHECKING:
    from moonbox.adapters.langchain_middleware import MoonboxMiddleware
    from moonbox.codemode.mode import Reply
    from moonbox.tools.tool import Tool


class LangChain(ToolsAdapter[RunnableConfig, BaseTool]):
    """Code mode for LangChain and LangGraph.

        agent = create_agent(model, middleware=[LangChain([get_expenses]).middleware])
        agent = create_agent(model, tools=[my_langchain_tool], middleware=[LangChain().middleware])

    Script state is kept for each thread: `{"configurable": {"thread_id": "…"}}`, or what `conversation` makes of the
    RunnableConfig. Without either, it lasts for one run of an agent with the middleware, and else for one call.
    `tools` and `hiding` are for `bind_tools`, `ToolNode` and agents without the middleware.
    """

    @property
    def middleware(self) -> MoonboxMiddleware:
        """For `create_agent`: tools, system prompt, state for each run, and answers to invalid calls.

        The agent's own tools that scripts can reach are hidden from the model; `leave_direct` names exceptions.
        """
        from moonbox.adapters.langchain_middleware import MoonboxMiddleware

        return MoonboxMiddleware(self)

    def conversation_of(self, config: RunnableConfig) -> str | None:
        """The conversation that a call with this configuration belongs to; None where nothing names one."""
        if (named := self._named(config)) is not None:
            return named
        thread = (config.get("configurable") or {}).get("thread_id")
        return f"thread-{thread}" if thread is not None else running_agent.get()

    def _tool(self, function: dict[str, Any], shown: Shown) -> BaseTool:
        return LangChainTool(
            name=function["name"],
            description=function["description"],
            args_schema=function["parameters"],
            adapter=self,
            shown=shown,
        )

    def _converted(self, tool: Any) -> Tool | None:
        if not isinstance(tool, BaseTool) or isinstance(tool, LangChainTool) or tool.return_direct:
            return None
        [converted] = from_langchain([tool], hints=Hints.from_mcp(tool.metadata))
        return converted


class LangChainTool(BaseTool):
    """One tool of code mode. What the model got wrong is in its answer, with the status "error"."""

    adapter: Any = Field(exclude=True, repr=False)
    shown: Any = Field(exclude=True, repr=False)
    handle_tool_error: Any = True

    # Arguments of the model's come by name: these two must not be in the way of any.
    def _run(self, /, *, moonbox_config: RunnableConfig, **arguments: Any) -> Any:
        conversation = self.adapter.conversation_of(moonbox_config)
        return _content(self.adapter.answer(self._shown(), self.name, arguments, conversation))

    async def _arun(self, /, *, moonbox_config: RunnableConfig, **arguments: Any) -> Any:
        conversation = self.adapter.conversation_of(moonbox_config)
        return _content(await self.adapter.aanswer(self._shown(), self.name, arguments, conversation))

    def _shown(self) -> Shown:
        return shown_to_model.get() or self.shown


running_agent: ContextVar[str | None] = ContextVar("moonbox_running_agent", default=None)
"""The conversation of the agent's run in which a tool is called, set by the middleware."""
shown_to_model: ContextVar[Shown | None] = ContextVar("moonbox_shown_to_model", default=None)
"""What the model was shown that made the call, set by the middleware."""


def _content(reply: Reply) -> str | list[dict[str, Any]]:
    if reply.is_error:
        raise ToolException(reply.text)
    # Audio has no place in a tool's message: LangChain would make text of the whole list.
    blocks: list[dict[str, Any]] = [
        {"type": medium.kind, "base64": medium.base64, "mime_type": medium.type}
        | ({} if medium.kind == "image" else {"extras": {"filename": medium.name}})
        for medium in reply.media
        if medium.kind != "audio"
    ]
    return [{"type": "text", "text": reply.text}, *blocks] if blocks else reply.text
