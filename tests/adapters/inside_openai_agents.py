"""The OpenAI Agents SDK, run in an environment of its own: its runner against OpenAI's wire formats."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import openai
import pytest
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)

from moonbox.adapters.openai_agents import OpenAIAgents
from tests.adapters.loops import SUM, Loop, Say, Scripted, Use, another_loop, answers, awaited, closed_later, serve

if TYPE_CHECKING:
    from moonbox import CodeMode, Sandbox

set_tracing_disabled(True)


def model(wire: Any, kind: Any = OpenAIChatCompletionsModel) -> Any:
    client = closed_later(openai.AsyncOpenAI(base_url=f"{wire.url}/v1", api_key="loopback", max_retries=0))
    return kind("loopback", openai_client=client)


def run(agent: Agent[Any], prompt: str, form: str, **options: Any) -> Any:
    async def stream() -> Any:
        result = Runner.run_streamed(agent, prompt, **options)
        async for _ in result.stream_events():
            pass
        return result

    match form:
        case "sync":
            with another_loop():
                return Runner.run_sync(agent, prompt, **options)
        case "async":
            return awaited(Runner.run(agent, prompt, **options))
        case _:
            return awaited(stream())


class TestChat(Loop):
    adapter = OpenAIAgents
    kind: Any = OpenAIChatCompletionsModel

    def ask(
        self, adapter: Any, wire: Any, prompt: str, *, form: str, conversation: str | None = None, system: str = ""
    ) -> str:
        words = "\n\n".join(part for part in (system, adapter.system_prompt) if part)
        agent = Agent("Clerk", instructions=words, model=model(wire, self.kind), tools=adapter.tools)
        return str(run(agent, prompt, form, run_config=adapter.run_config(group_id=conversation)).final_output)


class TestResponses(TestChat):
    kind = OpenAIResponsesModel
    every_form = False


@pytest.mark.parametrize("kind", [OpenAIChatCompletionsModel, OpenAIResponsesModel])
def test_calls_that_are_not_json(mode: CodeMode, kind: Any) -> None:
    adapter = OpenAIAgents(mode)
    wrong = [Use("lua_repl", "{not json"), Use("lua_repl", "[1]"), Use("delete_file", "{"), SUM]
    with serve(Scripted(wrong, SUM, Say("Sorry."))) as wire:
        agent = Agent("Clerk", model=model(wire, kind), tools=adapter.tools)
        result = run(agent, "Make mistakes.", "async", run_config=adapter.run_config())
    assert result.final_output == "Sorry."
    code = 'error: lua_repl takes one argument: {"source_code": "<script>"}; the arguments were not a JSON object'
    delete = "error: the arguments of delete_file must be a JSON object, not '{'"
    assert answers(wire.seen[-1]) == [code, code, delete, "20", "40"]
    assert wire.refused == []


def test_the_state_of_a_run_ends_with_its_result(mode: CodeMode) -> None:
    adapter = OpenAIAgents(mode)
    with serve(Scripted(SUM, Say("20"), SUM, Say("20"))) as wire:
        first = run(Agent("Clerk", model=model(wire), tools=adapter.tools), "Count.", "async")
        assert len(mode.conversations) == 1
        del first
        gc.collect()
        second = run(Agent("Clerk", model=model(wire), tools=adapter.tools), "Count.", "async")
    assert second.final_output == "20"
    assert len(mode.conversations) == 1


def test_a_session_by_the_context(box: Sandbox) -> None:
    """A Session keeps the messages; `conversation` names the script state that belongs to them."""
    with (
        OpenAIAgents(box, conversation=lambda context: context.context.session_id) as adapter,
        serve(Scripted(SUM, Say("20"), SUM, Say("40"))) as wire,
    ):
        session = SQLiteSession("ada")
        agent = Agent("Clerk", model=model(wire), tools=adapter.tools)
        run(agent, "Count.", "async", session=session, context=session)
        run(agent, "And again.", "async", session=session, context=session)
        session.close()
    assert answers(wire.seen[-1]) == ["20", "40"]


def test_without_our_run_config(mode: CodeMode) -> None:
    """An unknown tool ends the run there, as the SDK's default is; everything else works."""
    adapter = OpenAIAgents(mode)
    with serve(Scripted([SUM, Use("broken")], SUM, Say("ok"))) as wire:
        run(Agent("Clerk", model=model(wire), tools=adapter.tools), "Go.", "async")
    assert answers(wire.seen[-1])[::2] == ["20", "40"]


def test_options_of_the_run_config(mode: CodeMode) -> None:
    config = OpenAIAgents(mode).run_config(workflow_name="expenses", tool_not_found_behavior="raise_error")
    assert (config.workflow_name, config.tool_not_found_behavior) == ("expenses", "raise_error")


def test_beside_other_tools(mode: CodeMode) -> None:
    @function_tool
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"Hello, {name}."

    adapter = OpenAIAgents(mode)
    with serve(Scripted([SUM, Use("greet", {"name": "Ada"}), Use("nothing")], Say("ok"))) as wire:
        agent = Agent("Clerk", model=model(wire), tools=[*adapter.tools, greet])
        run(agent, "Go.", "async", run_config=adapter.run_config())
    assert answers(wire.seen[-1])[:2] == ["20", "Hello, Ada."]
    assert answers(wire.seen[-1])[2].startswith("error: unknown tool 'nothing'")
