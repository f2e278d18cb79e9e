"""Middleware for LangChain agents: the tools, the system prompt, and the run that a script's state belongs to."""

# No `from __future__ import annotations`: LangGraph reads the state's annotations as they are.

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from moonbox.adapters.base import ModelCall, Shown, answer, imported_from, new_conversation
from moonbox.adapters.langchain import running_agent, shown_to_model
from moonbox.closing import during
from moonbox.codemode.sessions import Sessions

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
    """Gives an agent the code tool and the direct tools, and hides its own. Make it with `LangChain(…).middleware`."""

    state_schema = MoonboxState

    def __init__(self, adapter: "LangChain") -> None:
        super().__init__()
        self.adapter = adapter
        self.tools = adapter.tools
        self._names = {tool.name for tool in self.tools}
        self._shown: Sessions[Shown] = Sessions(lambda _: None, most=_MOST_RUNS, idle_seconds=None)
        """What the model of each run was shown last."""

    # One run of the agent; LangChain calls these hooks when it is awaited, too

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return {"moonbox_run": new_conversation("run")}

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        if run := state.get("moonbox_run"):
            self._shown.end(run)
            self.adapter.mode.end(run)
        return None

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(self._request(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return await handler(self._request(request))

    def _request(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """The request with the prompt's addition, the tools as they are now, and without those that scripts reach."""
        shown = self._show(request)
        current = {tool.name: tool for tool in self.adapter.tools_of(shown) if tool.name in self._names}
        kept = [tool for tool in request.tools if self.adapter.name_of(tool) not in shown.hidden]
        tools = [current.get(self.adapter.name_of(tool), tool) for tool in kept]
        prompt = shown.mode.system_prompt
        if not prompt:
            return request.override(tools=tools)
        return request.override(tools=tools, system_message=_with(request.system_message, prompt))

    def _show(self, request: ModelRequest[Any]) -> Shown:
        """What this request shows, remembered for the calls that the model answers with."""
        run, shown = _state(request).get("moonbox_run"), self.adapter.shown(request.tools)
        if run is None or (shown.hidden and shown.mode.tool_name not in self._names):
            return self.adapter.alone
        self._shown.end(run)
        return self._shown.open(run, lambda: shown)

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        with self._within(request) as shown:
            return self._refused(request, shown) or handler(request)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        with self._within(request) as shown:
            return self._refused(request, shown) or await handler(request)

    def _refused(self, request: Any, shown: Shown) -> ToolMessage | None:
        """The answer to a call of a tool that only scripts reach."""
        call, mode = request.tool_call, shown.mode
        only_scripts = {tool.path for tool in mode.hidden_tools if tool not in mode.direct_tools}
        is_guessed = request.tool is None and call["name"].replace("__", ".") in only_scripts
        is_refused = is_guessed or call["name"] in shown.hidden
        return _message(call, mode.reply(call["name"], call["args"])) if is_refused else None

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

    @contextmanager
    def _within(self, request: Any) -> Iterator[Shown]:
        """Around a call, so that its tool knows the run that it belongs to, and what the model was shown."""
        run = _state(request).get("moonbox_run")
        shown = self._shown.get(run or "") or self.adapter.alone
        with during(running_agent, run), during(shown_to_model, shown):
            yield shown


def _state(request: Any) -> dict[str, Any]:
    return request.state if isinstance(request.state, dict) else {}


_MOST_RUNS = 1000
"""Of which the middleware knows what the model was shown: runs that failed, or were left, do not say so."""


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
