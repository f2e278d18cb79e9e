"""The tools of Pydantic AI agents behind code mode, run in an environment of its own."""

from __future__ import annotations

import json
from typing import Any

from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.toolsets import FunctionToolset

from moonbox.adapters.pydantic_ai import PydanticAI
from tests.adapters.inside_pydantic_ai import model, run
from tests.adapters.loops import Hiding, Say, Scripted, Use, answers, double, fail, guarded, later, serve


class TestCapability(Hiding):
    adapter = PydanticAI
    explains_unknown = False
    taker = r"Toolbox.from_pydantic_ai\(\[…\]\)"

    def own_tools(self) -> list[Any]:
        return [
            Tool(double),
            Tool(later),
            Tool(fail),
            Tool(guarded, metadata={"annotations": {"destructiveHint": True}}),
        ]

    def ask(self, adapter: Any, wire: Any, tools: list[Any], *, conversation: str = "ada") -> None:
        agent = Agent(model(wire), tools=tools, capabilities=[adapter.capability])
        run(agent, "Go.", "async", conversation_id=conversation)

    def heard(self, seen: Any) -> list[str]:
        return [json.loads(text).get("error", text) if text.startswith("{") else text for text in answers(seen)]


def test_deps_toolsets_hooks_and_instructions() -> None:
    """Scripts call tools as the model would: with the run's context, and through the hooks of other capabilities."""
    heard: list[str] = []

    class Watch(AbstractCapability[Any]):
        async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
            heard.append(call.tool_name)
            if args.get("name") == "Eve":
                raise ModelRetry("not Eve")
            return args

    def greet(ctx: RunContext[str], name: str) -> str:
        """Greet somebody."""
        return f"{ctx.deps}, {name} ({ctx.tool_name})"

    script = """
        local ok, problem = pcall(tools.greet, {name = "Eve"})
        return {tools.greet{name = "Ada"}, tools.double{x = 1}, problem.message}
    """
    turns = [Use("lua_repl", {"source_code": script}), Say("ok")]
    with PydanticAI() as adapter, serve(Scripted(*turns)) as wire:
        toolset: FunctionToolset[str] = FunctionToolset([greet], id="polite")
        agent = Agent(
            model(wire),
            deps_type=str,
            tools=[double],
            toolsets=[toolset],
            capabilities=[adapter.capability, Watch()],
            instructions="Be polite.",
        )
        assert run(agent, "Go.", "async", deps="Hello").output == "ok"
    assert answers(wire.seen[-1]) == ['["Hello, Ada (greet)",2,"not Eve"]']
    assert heard == ["lua_repl", "greet", "greet", "double"]
    assert wire.seen[0].system.startswith("Be polite.")
    assert "lua_repl" in wire.seen[0].system


def test_tools_that_need_approval_stay_the_agents() -> None:
    tools = [Tool(double), Tool(guarded, requires_approval=True)]
    with PydanticAI() as adapter, serve(Scripted(Say("ok"))) as wire:
        run(Agent(model(wire), tools=tools, capabilities=[adapter.capability]), "Go.", "async")
    assert list(wire.seen[0].tools) == ["lua_repl", "guarded"]
