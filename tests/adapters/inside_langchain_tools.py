"""LangChain's tools in a toolbox, run in an environment of their own."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, ToolException, tool
from langchain_core.tools import Tool as SimpleTool
from langgraph.prebuilt import InjectedState
from pydantic import BaseModel, Field

from moonbox import Sandbox, Toolbox
from moonbox.errors import ToolDefinitionError
from tests.adapters.loops import awaited, values_of


class Person(BaseModel):
    """Who it is."""

    name: str
    age: int = Field(description="In years.", ge=0)


@tool
def multiply(a: int, b: int = 2) -> int:
    """Multiply two numbers."""
    return a * b


@tool(parse_docstring=True)
async def people(least: int, extra: Person | None = None) -> list[Person]:
    """People of some age.

    Args:
        least: How old at least.
        extra: One more.
    """
    found = [Person(name="Ada", age=36), Person(name="Bob", age=12), *([extra] if extra else [])]
    return [person for person in found if person.age >= least]


class Shout(BaseTool):
    """A tool that is a class."""

    name: str = "shout"
    description: str = "Make it loud."

    def _run(self, text: str, times: int = 1) -> str:
        return text.upper() * times


@tool
def picky(x: int) -> int:
    """Take only what is even."""
    if x % 2:
        raise ToolException(f"{x} is odd")
    if x > 100:
        raise ValueError(f"{x} is too much")
    return x


def handled(handler: Any) -> BaseTool:
    made = picky.model_copy(update={"handle_tool_error": handler})
    assert made.invoke({"x": 1}) != 1  # LangChain makes an answer of it
    return made


values = values_of(Toolbox.from_langchain)


def test_names_descriptions_schemas() -> None:
    box = Toolbox.from_langchain([multiply, people, Shout()])
    assert box.paths() == ("multiply", "people", "shout")
    assert [tool.description for tool in box] == ["Multiply two numbers.", "People of some age.", "Make it loud."]
    assert box["multiply"].parameters == {
        "type": "object",
        "properties": {"a": {"title": "A", "type": "integer"}, "b": {"default": 2, "title": "B", "type": "integer"}},
        "required": ["a"],
    }
    assert box["people"].parameters["properties"]["least"]["description"] == "How old at least."
    assert (box["multiply"].is_async, box["people"].is_async, box["shout"].is_async) == (False, True, False)


def test_calls() -> None:
    assert values([multiply], "return {tools.multiply{a = 3}, tools.multiply(3, 4)}") == [6, 12]
    script = "return tools.people{least = 30, extra = {name = 'Eve', age = 40}}"
    assert values([people], script) == [{"name": "Ada", "age": 36}, {"name": "Eve", "age": 40}]
    assert values([Shout()], "return tools.shout{text = 'hi', times = 2}") == "HIHI"


def test_a_tool_of_one_text() -> None:
    old = SimpleTool(name="echo", description="Say it again.", func=lambda text: f"{text}!")
    assert values([old], "return tools.echo('hi')") == "hi!"


def test_a_json_schema_and_both_functions() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "title": "Args"}

    async def asynchronous(**given: Any) -> str:
        return f"awaited {given['x']}"

    made = StructuredTool(
        name="both",
        description="Two of them.",
        args_schema=schema,
        func=lambda x: f"called {x}",
        coroutine=asynchronous,
    )
    assert values([made], "return tools.both{x = 1}") == "awaited 1"
    assert Toolbox.from_langchain([made])["both"].parameters == {
        "type": "object",
        "properties": {"x": {"type": "integer"}},
        "required": ["x"],
    }


def test_content_and_artifact() -> None:
    @tool(response_format="content_and_artifact")
    def report() -> tuple[str, list[int]]:
        """Words and numbers."""
        return "three numbers", [1, 2, 3]

    assert values([report], "return tools.report{}") == "three numbers"


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        (picky, "1 is odd"),
        (handled(True), "1 is odd"),
        (handled("it must be even"), "it must be even"),
        (handled(lambda error: f"sorry: {error}"), "sorry: 1 is odd"),
    ],
    ids=["none", "true", "text", "function"],
)
def test_failures_stay_failures(tool: BaseTool, message: str) -> None:
    script = "local ok, problem = pcall(tools.picky, {x = 1}) return {ok, problem.code, problem.message}"
    assert values([tool], script) == [False, "tool_error", message]


def test_other_exceptions() -> None:
    with Sandbox(Toolbox.from_langchain([picky])) as box:
        assert box.run("return tools.picky{x = 102}").error.message == "ValueError: 102 is too much"  # type: ignore[union-attr]  # there is one
        wrong = box.run("return tools.picky{x = 'a'}").error
        assert wrong is not None and wrong.code == "invalid"


def test_arguments_that_the_schema_cannot_judge() -> None:
    class Even(BaseModel):
        x: int

        def model_post_init(self, context: Any) -> None:
            if self.x % 2:
                raise ValueError("odd")

    made = StructuredTool.from_function(
        lambda x: x, name="even", description="Even.", args_schema=Even, handle_validation_error="only even ones"
    )
    script = "local ok, problem = pcall(tools.even, {x = 1}) return {problem.code, problem.message}"
    assert values([made], script) == ["invalid", "only even ones"]


def test_callbacks_see_the_calls_of_scripts() -> None:
    """A traced agent's trace goes on inside the script."""
    from langchain_core.runnables import RunnableLambda

    class Heard(BaseCallbackHandler):
        def __init__(self) -> None:
            self.parents: list[bool] = []

        def on_tool_start(self, *args: Any, parent_run_id: Any = None, **kwargs: Any) -> None:
            self.parents.append(parent_run_id is not None)

    with Sandbox(Toolbox.from_langchain([multiply, people])) as box:
        script = "tools.multiply{a = 1} tools.people{least = 1}"
        for run in (
            lambda heard: RunnableLambda(lambda _: box.run(script).ok).invoke(1, {"callbacks": [heard]}),
            lambda heard: awaited(_arun(box, script, heard)),
        ):
            heard = Heard()
            assert run(heard)
            assert heard.parents == [True, True]


async def _arun(box: Sandbox, script: str, heard: Any) -> bool:
    from langchain_core.runnables import RunnableLambda

    async def inner(_: int) -> bool:
        return (await box.arun(script)).ok

    return bool(await RunnableLambda(inner).ainvoke(1, {"callbacks": [heard]}))


@tool
def with_state(x: int, state: Annotated[dict[str, Any], InjectedState]) -> int:
    """Needs the graph's state."""
    return x


@tool
def with_call_id(x: int, tool_call_id: Annotated[str, InjectedToolCallId]) -> int:
    """Needs the call's id."""
    return x


@tool
def with_default(x: int, user: Annotated[str, InjectedToolArg] = "nobody") -> str:
    """Has a default."""
    return f"{user}: {x}"


def test_what_only_a_graph_can_give() -> None:
    for made, name in ((with_state, "state"), (with_call_id, "tool_call_id")):
        with pytest.raises(ToolDefinitionError) as caught:
            Toolbox.from_langchain([made])
        assert str(caught.value) == (
            f"the LangChain tool {made.name!r} takes {name!r} from the agent's graph, which a script cannot give; "
            "keep it as a tool of the agent itself"
        )
    assert values([with_default], "return tools.with_default{x = 1}") == "nobody: 1"
    with Sandbox(Toolbox.from_langchain([with_default])) as box:
        error = box.run("return tools.with_default{x = 1, user = 'root'}").error
        assert error is not None and error.code == "invalid"


def test_options_and_things_that_are_no_tools() -> None:
    box = Toolbox.from_langchain([multiply], namespace="math", policy="approve")
    assert (box.paths(), box["math.multiply"].policy) == (("math.multiply",), "approve")
    assert Toolbox.from_langchain(multiply).paths() == ("multiply",)  # type: ignore[arg-type]  # one alone
    with pytest.raises(ToolDefinitionError, match="is not a LangChain tool"):
        Toolbox.from_langchain([len])
    with pytest.raises(ToolDefinitionError, match="is not a LangChain tool"):
        Toolbox.from_langchain([Shout])
