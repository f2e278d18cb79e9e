"""OpenAI Agents SDK: code mode as function tools, with the run's own script state."""

from __future__ import annotations

import dataclasses
import json
import threading
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any

from moonbox.adapters.base import Shown, ToolsAdapter, imported_from, is_json_object, new_conversation
from moonbox.tools.importers import framework_context, needed_context
from moonbox.tools.tool import Tool as ScriptTool

with imported_from("openai-agents", extra="openai-agents"):
    from agents import FunctionTool, RunConfig, ToolOutputFileContent, ToolOutputImage, ToolOutputText
    from agents.run_config import CallModelData, ModelInputData
    from agents.tool_context import ToolContext

if TYPE_CHECKING:
    from agents.run_config import ToolErrorFormatterArgs


class OpenAIAgents(ToolsAdapter[ToolContext[Any], FunctionTool]):
    """Code mode for the OpenAI Agents SDK.

        box = OpenAIAgents([get_expenses])
        agent = Agent("Clerk", instructions=box.system_prompt, tools=box.tools)
        result = await Runner.run(agent, "…", run_config=box.run_config(group_id="ada"))

    Script state is kept for each `group_id`, or for what `conversation` makes of the ToolContext; without either for
    one run: it ends when the run's result is no longer used. Of the tools that are given to `hiding`, hosted ones stay
    the agent's, and so do those with guardrails, with approval, or with an `is_enabled`.
    """

    def __init__(
        self,
        source: Any = (),
        *,
        conversation: Callable[[ToolContext[Any]], str | None] | None = None,
        leave_direct: Collection[str] = (),
        **settings: Any,
    ) -> None:
        super().__init__(source, conversation=conversation, leave_direct=leave_direct, **settings)
        self._lock = threading.Lock()
        self._runs: dict[int, str] = {}
        self._over: deque[int] = deque()

    def _tool(self, function: dict[str, Any], shown: Shown) -> FunctionTool:
        return FunctionTool(
            name=function["name"],
            description=function["description"],
            params_json_schema=function["parameters"],
            on_invoke_tool=self._invoker(function["name"], shown),
            strict_json_schema=False,
        )

    def run_config(self, **options: Any) -> RunConfig:
        """A RunConfig under which invalid calls are answered to the model; `options` are RunConfig's own."""
        ours: dict[str, Any] = {
            "tool_not_found_behavior": "return_error_to_model",
            "tool_error_formatter": self._explain,
            "call_model_input_filter": _readable,
        }
        return RunConfig(**(ours | options))

    def conversation_of(self, context: ToolContext[Any]) -> str:
        """The conversation that a call in this context belongs to."""
        if (named := self._named(context)) is not None:
            return named
        group = context.run_config.group_id if context.run_config is not None else None
        return f"group-{group}" if group else self._of_run(context)

    def _converted(self, tool: Any) -> ScriptTool | None:
        """A tool of the agent for scripts; None for one in which the SDK's runner has a say."""
        if not isinstance(tool, FunctionTool) or tool.is_enabled is not True or tool.needs_approval is not False:
            return None
        if tool.tool_input_guardrails or tool.tool_output_guardrails or tool.defer_loading:
            return None
        raising = _raising(tool)

        async def call(arguments: dict[str, Any]) -> Any:
            outer: ToolContext[Any] = needed_context(tool.name)
            text = json.dumps(arguments)
            inner: ToolContext[Any] = ToolContext(
                outer.context,
                usage=outer.usage,
                tool_name=tool.name,
                tool_call_id=outer.tool_call_id,
                tool_arguments=text,
                agent=outer.agent,
                run_config=outer.run_config,
            )
            return await raising.on_invoke_tool(inner, text)

        return ScriptTool.from_schema(
            name=tool.name,
            description=tool.description,
            parameters=tool.params_json_schema,
            returns=tool.output_json_schema,
            timeout=tool.timeout_seconds,
            call=call,
        )

    def _invoker(self, name: str, shown: Shown) -> Callable[[ToolContext[Any], str], Awaitable[Any]]:
        async def invoke(context: ToolContext[Any], arguments: str) -> Any:
            with framework_context(context):
                reply = await self.aanswer(shown, name, arguments, self.conversation_of(context))
            parts = [
                ToolOutputImage(image_url=medium.data_uri)
                if medium.kind == "image"
                else ToolOutputFileContent(file_data=medium.data_uri, filename=medium.name)
                for medium in reply.media
                if medium.kind != "audio"
            ]
            return [ToolOutputText(text=reply.text), *parts] if parts else reply.text

        return invoke

    def _explain(self, failure: ToolErrorFormatterArgs[Any]) -> str | None:
        if failure.kind != "tool_not_found":
            return None
        names = [function["name"] for function in self.alone.functions()]
        if failure.tool_name in names:
            return None
        return self.mode_that_hides(failure.tool_name).reply(failure.tool_name, {}).text

    def _of_run(self, context: ToolContext[Any]) -> str:
        """The conversation of the run, for which its usage record stands: the SDK gives its tools no id of the run."""
        usage = context.usage
        with self._lock:
            while self._over:
                self.mode.end(self._runs.pop(self._over.popleft()))
            key = self._runs.get(id(usage))
            if key is None:
                key = self._runs[id(usage)] = new_conversation("run")
                # The garbage collector may call this at any moment, even while a lock is held: it only takes a note.
                weakref.finalize(usage, self._over.append, id(usage))
        return key


def _raising(tool: FunctionTool) -> FunctionTool:
    """The tool without its text for failures: a script should see that a call failed."""
    unhandled = {"_failure_error_function": None, "_use_default_failure_error_function": False}
    known = {field.name for field in dataclasses.fields(tool)}
    return dataclasses.replace(tool, **{name: value for name, value in unhandled.items() if name in known})


def _readable(data: CallModelData[Any]) -> ModelInputData:
    """The input with malformed calls as empty ones."""

    def readable(item: Any) -> Any:
        is_call = item.get("type") == "function_call"
        return {**item, "arguments": "{}"} if is_call and not is_json_object(item["arguments"] or "{}") else item

    given: list[Any] = list(data.model_data.input)
    return ModelInputData(input=[readable(item) for item in given], instructions=data.model_data.instructions)
