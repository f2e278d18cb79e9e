"""The tools of the OpenAI Agents SDK's agents behind code mode, run in an environment of its own."""

from __future__ import annotations

from typing import Any

from agents import Agent, RunContextWrapper, WebSearchTool, function_tool

from moonbox.adapters.openai_agents import OpenAIAgents
from tests.adapters import loops
from tests.adapters.inside_openai_agents import model, run
from tests.adapters.loops import Hiding, Say, Scripted, Use, answers, serve

double, later, fail = map(function_tool, (loops.double, loops.later, loops.fail))
guarded = function_tool(loops.guarded, is_enabled=lambda context, agent: True)


class TestTools(Hiding):
    adapter = OpenAIAgents
    taker = r"OpenAIAgents\(…\).hiding\(\[…\]\)"

    def own_tools(self) -> list[Any]:
        return [double, later, fail, guarded]

    def ask(self, adapter: Any, wire: Any, tools: list[Any], *, conversation: str = "ada") -> None:
        agent = Agent("Clerk", instructions=adapter.system_prompt, model=model(wire), tools=adapter.hiding(tools))
        run(agent, "Go.", "async", run_config=adapter.run_config(group_id=conversation))


def test_the_context_of_the_run_reaches_tools() -> None:
    @function_tool
    def who(context: RunContextWrapper[str], greeting: str) -> str:
        """Say who it is."""
        return f"{greeting}, {context.context}"

    turns = [Use("lua_repl", {"source_code": "return tools.who{greeting = 'Hi'}"}), Say("ok")]
    with OpenAIAgents() as adapter, serve(Scripted(*turns)) as wire:
        agent = Agent("Clerk", model=model(wire), tools=adapter.hiding([who]))
        run(agent, "Go.", "async", context="Ada")
    assert answers(wire.seen[-1]) == ["Hi, Ada"]


def test_tools_that_stay_the_agents() -> None:
    asking = function_tool(lambda x: x, name_override="asking", description_override="Ask.", needs_approval=True)
    with OpenAIAgents() as adapter:
        names = [item.name for item in adapter.hiding([double, asking, WebSearchTool()])]
    assert names == ["lua_repl", "asking", "web_search"]
