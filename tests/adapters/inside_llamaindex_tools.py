"""LlamaIndex's tools in a toolbox, run in an environment of their own."""

# No `from __future__ import annotations`: LlamaIndex reads the annotations of functions as they are.

from typing import Any

import pytest
from llama_index.core.base.response.schema import Response
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import Document
from llama_index.core.tools import FunctionTool, QueryEngineTool, ToolMetadata, ToolOutput
from llama_index.core.workflow import Context
from pydantic import BaseModel

from moonbox import Sandbox, Toolbox
from moonbox.adapters.llamaindex import LlamaIndex
from moonbox.errors import ToolDefinitionError
from tests.adapters.inside_llamaindex import model
from tests.adapters.loops import Say, Scripted, Use, answers, awaited, serve, values_of

# The package uses what pydantic has deprecated; a warning of ours is still an error.
pytestmark = pytest.mark.filterwarnings("ignore", "error:::moonbox")


class Person(BaseModel):
    name: str
    age: int


def multiply(a: int, b: int = 2) -> int:
    """Multiply two numbers."""
    return a * b


async def people(least: int) -> list[Person]:
    """People of some age."""
    return [person for person in (Person(name="Ada", age=36), Person(name="Bob", age=12)) if person.age >= least]


def picky(x: int) -> int:
    """Take only what is even."""
    if x % 2:
        raise ValueError(f"{x} is odd")
    return x


values = values_of(Toolbox.from_llamaindex)


def test_names_descriptions_schemas() -> None:
    box = Toolbox.from_llamaindex([FunctionTool.from_defaults(multiply), FunctionTool.from_defaults(async_fn=people)])
    assert box.paths() == ("multiply", "people")
    assert box["multiply"].description == "multiply(a: int, b: int = 2) -> int\nMultiply two numbers."
    assert box["multiply"].parameters["required"] == ["a"]
    assert box["multiply"].parameters["properties"]["b"] == {"default": 2, "title": "B", "type": "integer"}
    assert (box["multiply"].is_async, box["people"].is_async) == (False, True)


def test_calls() -> None:
    made = [FunctionTool.from_defaults(multiply), FunctionTool.from_defaults(people)]
    assert values(made, "return {tools.multiply{a = 3}, tools.multiply(3, 4)}") == [6, 12]
    assert values(made, "return tools.people{least = 30}") == [{"name": "Ada", "age": 36}]


def test_failures_stay_failures() -> None:
    made = FunctionTool.from_defaults(picky)
    script = "local ok, problem = pcall(tools.picky, {x = 1}) return {ok, problem.code, problem.message}"
    assert values([made], script) == [False, "tool_error", "ValueError: 1 is odd"]

    class Reports(FunctionTool):
        def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
            return ToolOutput(tool_name="picky", content="it did not work", raw_input={}, is_error=True)

    reports = Reports(fn=picky, metadata=made.metadata)
    assert values([reports], script) == [False, "tool_error", "it did not work"]


def test_what_was_fixed_beforehand_stays_fixed() -> None:
    made = FunctionTool.from_defaults(multiply, partial_params={"b": 10})
    assert list(Toolbox.from_llamaindex([made])["multiply"].parameters["properties"]) == ["a"]
    assert values([made], "return tools.multiply{a = 3}") == 30
    with Sandbox(Toolbox.from_llamaindex([made])) as box:
        error = box.run("return tools.multiply{a = 3, b = 1}").error
        assert error is not None and error.code == "invalid"


def test_the_text_that_a_callback_makes() -> None:
    made = FunctionTool.from_defaults(multiply, callback=lambda result: f"it is {result}")
    assert values([made], "return tools.multiply{a = 3}") == "it is 6"
    documents = FunctionTool.from_defaults(lambda: [Document(text="one"), Document(text="two")], name="read")
    assert values([documents], "return tools.read{}") == "one\ntwo"


def test_a_query_engine() -> None:
    class Engine(CustomQueryEngine):
        def custom_query(self, query_str: str) -> Response:
            return Response(f"about {query_str}")

    made = QueryEngineTool(Engine(), ToolMetadata(name="ask", description="Ask the books."))
    assert values([made], "return tools.ask{input = 'Lua'}") == "about Lua"


async def remember(ctx: Context, word: str) -> int:
    """Remember a word."""
    words = [*(await ctx.store.get("words", default=[])), word]
    await ctx.store.set("words", words)
    return len(words)


def test_the_context_of_the_agent() -> None:
    """A tool that takes the workflow's Context gets it inside of scripts too."""
    tools = Toolbox.from_llamaindex([FunctionTool.from_defaults(async_fn=remember)])
    assert list(tools["remember"].parameters["properties"]) == ["word"]
    with LlamaIndex(tools) as adapter:
        script = "tools.remember('a') return tools.remember{word = 'b'}"

        async def go(wire: Any) -> list[str]:
            from llama_index.core.agent.workflow import FunctionAgent

            agent = FunctionAgent(llm=model(wire), tools=adapter.tools)
            context = Context(agent)
            await agent.run("Remember.", ctx=context)
            return list(await context.store.get("words"))

        with serve(Scripted(Use("lua_repl", {"source_code": script}), Say("ok"))) as wire:
            assert awaited(go(wire)) == ["a", "b"]
        assert answers(wire.seen[-1]) == ["2"]
        error = adapter.mode.reply("lua_repl", {"source_code": script}).run.error  # type: ignore[union-attr]  # it ran
    assert error is not None and error.code == "missing_context"
    assert error.message == (
        "remember needs the context of the agent that runs it; use it through the adapter of its framework"
    )


def test_options_and_things_that_are_no_tools() -> None:
    made = FunctionTool.from_defaults(multiply)
    box = Toolbox.from_llamaindex([made], namespace="math", policy="approve")
    assert (box.paths(), box["math.multiply"].policy) == (("math.multiply",), "approve")
    assert Toolbox.from_llamaindex(made).paths() == ("multiply",)  # type: ignore[arg-type]  # one alone
    with pytest.raises(ToolDefinitionError, match="is not a LlamaIndex tool"):
        Toolbox.from_llamaindex([len])
