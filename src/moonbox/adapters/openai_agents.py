"""OpenAI Agents SDK: code mode as function tools, with the run's own script state."""

from __future__ import annotations

import json
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from moonbox.adapters.base import FrameworkAdapter, imported_from, new_conversation

with imported_from("openai-agents", extra="openai-agents"):
    from agents import FunctionTool, RunConfig, ToolOutputFileContent, ToolOutputImage, ToolOutputText
    from agents.run_config import CallModelData, ModelInputData
    from agents.tool_context import ToolContext

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agents.run_config import ToolErrorFormatterArgs

    from moonbox.media import Media


class OpenAIAgents(FrameworkAdapter[ToolContext[Any]]):
    """Code mode for the OpenAI Agents SDK.

        box = OpenAIAgents([get_expenses])
        agent = Agent("Clerk", instructions=box.system_prompt, tools=box.tools)
        result = await Runner.run(agent, "…", run_config=box.run_config(group_id="ada"))

    Script state is kept for each `group_id`, or for what `conversation` makes of the ToolContext; without either for
    one run: it ends when the run's result is no longer used.
    """

    def __init__(
        self,
        source: Any = (),
        *,
        conversation: Callable[[ToolContext[Any]], str | None] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(source, conversation=conversation, **settings)
        self._lock = threading.Lock()
        self._runs: dict[int, str] = {}
        self._over: deque[int] = deque()

    @property
    def tools(self) -> list[FunctionTool]:
        """The code tool and the direct tools."""
        return [
            FunctionTool(
                name=function["name"],
                description=function["description"],
                params_json_schema=function["parameters"],
                on_invoke_tool=self._invoker(function["name"]),
                strict_json_schema=False,
            )
            for function in self.functions()
        ]

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

    def _invoker(self, name: str) -> Callable[[ToolContext[Any], str], Awaitable[Any]]:
        async def invoke(context: ToolContext[Any], arguments: str) -> Any:
            reply = await self.aanswer(name, arguments, self.conversation_of(context))
            parts = [_output(medium) for medium in reply.media if medium.kind != "audio"]
            return [ToolOutputText(text=reply.text), *parts] if parts else reply.text

        return invoke

    def _explain(self, failure: ToolErrorFormatterArgs[Any]) -> str | None:
        if failure.kind != "tool_not_found":
            return None
        names = [function["name"] for function in self.functions()]
        return self.mode.reply(failure.tool_name, {}).text if failure.tool_name not in names else None

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


def _output(medium: Media) -> ToolOutputImage | ToolOutputFileContent:
    if medium.kind == "image":
        return ToolOutputImage(image_url=medium.data_uri)
    return ToolOutputFileContent(file_data=medium.data_uri, filename=medium.name)


def _readable(data: CallModelData[Any]) -> ModelInputData:
    """The input with malformed calls as empty ones: many servers refuse a history that is not JSON."""
    given: list[Any] = list(data.model_data.input)
    return ModelInputData(input=[_readable_item(item) for item in given], instructions=data.model_data.instructions)


def _readable_item(item: Any) -> Any:
    is_malformed = item.get("type") == "function_call" and not _is_json(item["arguments"])
    return {**item, "arguments": "{}"} if is_malformed else item


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text or "{}"), dict)
    except (ValueError, RecursionError):
        return False
