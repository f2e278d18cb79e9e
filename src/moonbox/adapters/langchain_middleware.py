"""Middleware for LangChain agents: the tools, the system prompt, and the run that a script's state belongs to."""

# No `from __future__ import annotations`: LangGraph reads the state's annotations as they are.

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from moonbox.adapters.base import ModelCall, answer, imported_from, new_conversation
from moonbox.adapters.langchain import running_agent

with imported_from("langchain", extra="langchain"):
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, hook_config
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain_core.messages import AIMessage, SystemMessage, ToolMessage

if TYPE_CHECKING:
    from moonbox.adapters.langchain import LangChain
    from moonbox.codemode.mode import Reply


class MoonboxState(AgentState[Any]):
    """An agent's state, and the name of the run where no thread names the conversation."""

    moonbox_run: Annotated[str | None, PrivateStateAttr]


class MoonboxMiddleware(AgentMiddleware[MoonboxState, Any, Any]):
    """Gives an agent the code tool and the direct tools. Make it with `LangChain(…).middleware`."""

    state_schema = MoonboxState

    def __init__(self, adapter: "LangChain") -> None:
        super().__init__()
        self.adapter = adapter
        self.tools = adapter.tools
        self._names = {tool.name for tool in self.tools}

    # One run of the agent

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return {"moonbox_run": new_conversation("run")}

    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return self.before_agent(state, runtime)

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        if state.get("moonbox_run"):
            self.adapter.mode.end(state["moonbox_run"])
        return None

    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return self.after_agent(state, runtime)

    # What the model is shown

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(self._shown(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return await handler(self._shown(request))

    def _shown(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """The request with the system prompt's addition, and the tools as they are described now."""
        current = {tool.name: tool for tool in self.adapter.tools if tool.name in self._names}
        tools = [current.get(getattr(tool, "name", ""), tool) for tool in request.tools]
        prompt = self.adapter.system_prompt
        if not prompt:
            return request.override(tools=tools)
        return request.override(tools=tools, system_message=_with(request.system_message, prompt))

    # The model's calls

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        call = request.tool_call
        if request.tool is None and self._is_hidden(call["name"]):
            return _message(call, self.adapter.mode.reply(call["name"], call["args"]))
        with self._within(request):
            return handler(request)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        call = request.tool_call
        if request.tool is None and self._is_hidden(call["name"]):
            return _message(call, self.adapter.mode.reply(call["name"], call["args"]))
        with self._within(request):
            return await handler(request)

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Answer calls whose arguments are not JSON, where LangChain would end the run, and one that was cut off."""
        message = state["messages"][-1]
        if not isinstance(message, AIMessage):
            return None
        mode, cut = self.adapter.mode, _cut_off(message)
        wrong = [call for call in message.invalid_tool_calls if call["name"] in self._names and call["id"]]
        answers = [_message(call, mode.reply(call["name"] or "", "(malformed JSON)")) for call in wrong]
        if cut is not None and cut["name"] in self._names:
            answers.append(_message(cut, answer(mode, ModelCall(cut["id"], cut["name"], {}, cut=True), "")))
        if not answers:
            return None
        update: dict[str, Any] = {"messages": [*([_readable(message, wrong)] if wrong else []), *answers]}
        if not message.tool_calls:
            update["jump_to"] = "model"
        return update

    @hook_config(can_jump_to=["model"])
    async def aafter_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        answered: dict[str, Any] | None = self.after_model(state, runtime)
        return answered

    @contextmanager
    def _within(self, request: Any) -> Iterator[None]:
        """Around a call, so that its tool knows the run that it belongs to."""
        state = request.state if isinstance(request.state, dict) else {}
        token = running_agent.set(state.get("moonbox_run"))
        try:
            yield
        finally:
            running_agent.reset(token)

    def _is_hidden(self, name: str) -> bool:
        mode = self.adapter.mode
        return name.replace("__", ".") in {tool.path for tool in mode.hidden_tools if tool not in mode.direct_tools}


def _with(message: Any, prompt: str) -> SystemMessage:
    """The system message with the addition at its end."""
    if message is None:
        return SystemMessage(prompt)
    if isinstance(message.content, str):
        return SystemMessage(f"{message.content}\n\n{prompt}")
    return SystemMessage([*message.content, {"type": "text", "text": prompt}])


def _message(call: Any, reply: "Reply") -> ToolMessage:
    return ToolMessage(
        reply.text, name=call["name"], tool_call_id=call["id"], status="error" if reply.is_error else "success"
    )


def _cut_off(message: AIMessage) -> Any:
    """The call in which the model's answer ended at its token limit."""
    metadata = message.response_metadata
    reasons = {str(metadata.get(key)).lower() for key in ("finish_reason", "stop_reason", "done_reason")}
    return message.tool_calls[-1] if message.tool_calls and reasons & {"length", "max_tokens"} else None


def _readable(message: AIMessage, wrong: list[Any]) -> AIMessage:
    """The message with the malformed calls as empty ones: many servers refuse a history that is not JSON."""
    emptied = [{"name": call["name"], "args": {}, "id": call["id"], "type": "tool_call"} for call in wrong]
    others = [call for call in message.invalid_tool_calls if call not in wrong]
    return message.model_copy(update={"tool_calls": [*message.tool_calls, *emptied], "invalid_tool_calls": others})
