"""Pydantic AI's tools in a toolbox, run in an environment of their own."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, FunctionToolset, ModelRetry, RunContext, Tool, ToolReturn
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed

from moonbox import Sandbox, Toolbox
from moonbox.adapters.pydantic_ai import PydanticAI
from moonbox.errors import ToolDefinitionError
from tests.adapters.inside_pydantic_ai import model
from tests.adapters.loops import Say, Scripted, Use, answers, awaited, serve, values_of


class Person(BaseModel):
    name: str
    age: int


def multiply(a: int, b: int = 2) -> int:
    """Multiply two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a * b


async def people(least: int, extra: Person | None = None) -> list[Person]:
    """People of some age."""
    found = [Person(name="Ada", age=36), Person(name="Bob", age=12), *([extra] if extra else [])]
    return [person for person in found if person.age >= least]


def picky(x: int) -> int:
    """Take only what is even."""
    match x:
        case 1:
            raise ModelRetry("try an even one")
        case 3:
            raise ToolFailed("three is no good")
        case 5:
            raise ApprovalRequired
        case 7:
            raise ValueError("seven")
    return x


def older(person: Person) -> ToolReturn[int]:
    """A year later."""
    return ToolReturn(return_value=person.age + 1, content="not for scripts", metadata={"x": 1})


values = values_of(Toolbox.from_pydantic_ai)


def test_names_descriptions_schemas() -> None:
    box = Toolbox.from_pydantic_ai([Tool(multiply), Tool(people, name="folk", description="Folk.")])
    assert box.paths() == ("multiply", "folk")
    assert [tool.description for tool in box] == ["Multiply two numbers.", "Folk."]
    assert box["multiply"].parameters["properties"]["a"] == {"description": "The first.", "type": "integer"}
    assert box["multiply"].parameters["required"] == ["a"]
    assert box["multiply"].returns == {"type": "integer"}


def test_calls() -> None:
    made = [Tool(multiply), Tool(people), Tool(older)]
    assert values(made, "return {tools.multiply{a = 3}, tools.multiply(3, 4)}") == [6, 12]
    script = "return tools.people{least = 30, extra = {name = 'Eve', age = 40}}"
    assert values(made, script) == [{"name": "Ada", "age": 36}, {"name": "Eve", "age": 40}]
    script = "return tools.older{" + ", ".join(f"{key} = {value}" for key, value in _person(made).items()) + "}"
    assert values(made, script) == 37


def _person(tools: Any) -> dict[str, str]:
    """A single model may be asked for by its own fields."""
    properties = Toolbox.from_pydantic_ai(tools)["older"].parameters["properties"]
    return {"person": "{name = 'Ada', age = 36}"} if "person" in properties else {"name": "'Ada'", "age": "36"}


def test_failures_stay_failures() -> None:
    script = """
        local said = {}
        for _, x in ipairs{1, 3, 5, 7, "a"} do
          local ok, problem = pcall(tools.picky, {x = x})
          said[#said + 1] = {ok, problem.code, problem.message:match("[^\\n]*"), problem.retryable}
        end
        return said
    """
    assert values([Tool(picky)], script) == [
        [False, "retry", "try an even one", True],
        [False, "tool_error", "three is no good", False],
        [False, "denied", "this call needs a person's approval, for which a script cannot wait", False],
        [False, "tool_error", "ValueError: seven", False],
        [False, "invalid", "invalid arguments for picky:", False],
    ]


def test_settings() -> None:
    box = Toolbox.from_pydantic_ai([Tool(multiply, requires_approval=True, sequential=True, timeout=3)])
    made = box["multiply"]
    assert (made.policy, made.max_concurrency, made.timeout) == ("approve", 1, 3)


def test_a_toolset() -> None:
    toolset: FunctionToolset[Any] = FunctionToolset([multiply])

    @toolset.tool_plain
    def half(x: float) -> float:
        """Halve it."""
        return x / 2

    assert values(toolset, "return tools.half(tools.multiply(4))") == 4.0
    assert values([toolset, Tool(people)], "return #tools.people(1)") == 2


def whoami(ctx: RunContext[str], greeting: str = "Hello") -> str:
    """Who is asking."""
    return f"{greeting}, {ctx.deps} of {ctx.tool_name}"


async def only_for_ada(ctx: RunContext[str], definition: Any) -> Any:
    return definition if ctx.deps == "Ada" else None


def polite(ctx: RunContext[str], greeting: str = "Hello") -> None:
    if greeting == "Oi":
        raise ModelRetry(f"be polite to {ctx.deps}")


def ask(tool: Tool[Any], script: str, deps: str) -> str:
    """The answer to a script that an agent runs for somebody."""
    with (
        PydanticAI(Toolbox.from_pydantic_ai([tool])) as adapter,
        serve(Scripted(Use("lua_repl", {"source_code": script}), Say("ok"))) as wire,
    ):
        agent = Agent(model(wire), toolsets=[adapter.toolset], deps_type=str)
        awaited(agent.run("Go.", deps=deps))
    return answers(wire.seen[-1])[0]


def test_the_context_of_the_agent() -> None:
    """A tool that takes the RunContext gets it inside of scripts too, and its guards are asked."""
    assert ask(Tool(whoami), "return tools.whoami{}", "Ada") == "Hello, Ada of whoami"
    guarded = Tool(whoami, prepare=only_for_ada, args_validator=polite)
    assert ask(guarded, "return tools.whoami{greeting = 'Hi'}", "Ada") == "Hi, Ada of whoami"
    assert "the tool 'whoami' is not available now" in ask(guarded, "return tools.whoami{}", "Bob")
    assert "be polite to Ada" in ask(guarded, "return tools.whoami{greeting = 'Oi'}", "Ada")


def test_without_an_agent_there_is_no_context() -> None:
    for made in (Tool(whoami), Tool(multiply, prepare=lambda ctx, definition: definition)):
        with Sandbox(Toolbox.from_pydantic_ai([made])) as box:
            error = box.run(f"return tools.{made.name}{{a = 1}}" if made.name == "multiply" else "tools.whoami{}").error
        assert error is not None and error.code == "missing_context"
        assert error.message == (
            f"{made.name} needs the context of the agent that runs it; use it through the adapter of its framework"
        )


def test_options_and_things_that_are_no_tools() -> None:
    box = Toolbox.from_pydantic_ai([Tool(multiply)], namespace="math", policy="direct")
    assert (box.paths(), box["math.multiply"].policy) == (("math.multiply",), "direct")
    assert Toolbox.from_pydantic_ai(Tool(multiply)).paths() == ("multiply",)  # type: ignore[arg-type]  # one alone
    with pytest.raises(ToolDefinitionError, match="is not a Pydantic AI tool"):
        Toolbox.from_pydantic_ai([multiply])
