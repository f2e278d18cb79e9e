"""LlamaIndex, run in an environment of its own: its agents against OpenAI's wire format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent, ToolCallResult
from llama_index.core.workflow import Context
from llama_index.llms.openai_like import OpenAILike

from moonbox.adapters.llamaindex import LlamaIndex
from tests.adapters.loops import SUM, Loop, Say, Scripted, Use, answers, awaited, closed_later, serve

if TYPE_CHECKING:
    from moonbox import CodeMode, Sandbox

# The package uses what pydantic has deprecated; a warning of ours is still an error.
pytestmark = pytest.mark.filterwarnings("ignore", "error:::moonbox")


def model(wire: Any) -> OpenAILike:
    return OpenAILike(
        model="loopback",
        api_base=f"{wire.url}/v1",
        api_key="loopback",
        is_chat_model=True,
        is_function_calling_model=True,
        context_window=100_000,
        max_retries=0,
        async_http_client=closed_later(httpx.AsyncClient()),
    )


class TestAgent(Loop):
    adapter = LlamaIndex
    forms = ("async", "stream")
    explains_unknown = False

    def ask(
        self, adapter: Any, wire: Any, prompt: str, *, form: str, conversation: str | None = None, system: str = ""
    ) -> str:
        words = "\n\n".join(part for part in (system, adapter.system_prompt) if part)
        agent = FunctionAgent(llm=model(wire), tools=adapter.tools, system_prompt=words, streaming=form == "stream")

        async def ask() -> str:
            context = self.contexts.setdefault((wire.url, conversation), Context(agent)) if conversation else None
            return str(await agent.run(prompt, ctx=context))

        return str(awaited(ask()))

    contexts: dict[Any, Any] = {}  # noqa: RUF012 - one for each conversation of a test, by its server


def test_a_stored_context_goes_on_with_its_state(mode: CodeMode) -> None:
    async def go(wire: Any) -> None:
        agent = FunctionAgent(llm=model(wire), tools=LlamaIndex(mode).tools)
        first = Context(agent)
        await agent.run("Count.", ctx=first)
        second = Context.from_dict(agent, first.to_dict())
        await agent.run("And again.", ctx=second)

    with serve(Scripted(SUM, Say("20"), SUM, Say("40"))) as wire:
        awaited(go(wire))
    assert answers(wire.seen[-1])[-1] == "40"


def test_outputs_say_whether_they_failed(mode: CodeMode) -> None:
    async def go(wire: Any) -> list[Any]:
        agent = FunctionAgent(llm=model(wire), tools=LlamaIndex(mode).tools)
        handler = agent.run("Go.")
        events = [event async for event in handler.stream_events() if isinstance(event, ToolCallResult)]
        await handler
        return [(event.tool_name, event.tool_output.is_error, event.tool_output.content) for event in events]

    with serve(Scripted(SUM, Use("broken"), Say("ok"))) as wire:
        seen = awaited(go(wire))
    broken = "tool error (broken, tool_error): RuntimeError: no such luck"
    assert seen == [("lua_repl", False, "20"), ("broken", True, broken)]


def test_a_workflow_of_agents_shares_the_context(mode: CodeMode) -> None:
    async def go(wire: Any) -> None:
        agent = FunctionAgent(name="clerk", description="Counts.", llm=model(wire), tools=LlamaIndex(mode).tools)
        await AgentWorkflow(agents=[agent], root_agent="clerk").run("Count.")

    with serve(Scripted(SUM, SUM, Say("40"))) as wire:
        awaited(go(wire))
    assert answers(wire.seen[-1]) == ["20", "40"]


def test_an_agent_that_thinks_aloud(mode: CodeMode) -> None:
    """ReAct: calls are text, and the description is part of the prompt."""
    said = Say('Thought: I compute.\nAction: lua_repl\nAction Input: {"source_code": "return 6 * 7"}\n')
    with serve(Scripted(said, Say("Thought: I can answer.\nAnswer: 42"))) as wire:

        async def go() -> str:
            return str(await ReActAgent(llm=model(wire), tools=LlamaIndex(mode).tools).run("6 * 7?"))

        assert awaited(go()) == "42"
    assert "Observation: 42" in wire.seen[-1].prompts[-1]


def test_tools_called_by_hand(box: Sandbox) -> None:
    with LlamaIndex(box) as adapter:
        code, delete, *_ = adapter.tools
        assert code.call(source_code="return 6 * 7").content == "42"
        assert awaited(delete.acall(path="x")).content == "deleted x"
        assert [code(source_code="x = (x or 0) + 1 return x").content for _ in range(2)] == ["1", "1"]
        wrong = code.call("return 1")
        assert (wrong.is_error, wrong.content.partition(":")[0]) == (True, "error")
        assert code.metadata.get_parameters_dict()["required"] == ["source_code"]
        assert len(adapter.mode.conversations) == 0
