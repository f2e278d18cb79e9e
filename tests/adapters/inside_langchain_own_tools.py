"""The tools of LangChain agents behind code mode, run in an environment of its own."""

from __future__ import annotations

from typing import Annotated, Any

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain_core.tools import tool
from langgraph.prebuilt import InjectedState
from pydantic import create_model

from moonbox.adapters.langchain import LangChain
from tests.adapters import loops
from tests.adapters.inside_langchain import model, run, thread
from tests.adapters.loops import Hiding, Say, Scripted, Use, answers, serve

double, later, fail = map(tool, (loops.double, loops.later, loops.fail))


@tool
def guarded(x: int, state: Annotated[dict[str, Any], InjectedState]) -> str:
    """Use the graph's state."""
    return f"guarded {x}"


class TestSync(Hiding):
    adapter = LangChain
    taker = r"Toolbox.from_langchain\(\[…\]\)"
    form = "sync"

    def own_tools(self) -> list[Any]:
        return [double, later, fail, guarded]

    def ask(self, adapter: Any, wire: Any, tools: list[Any], *, conversation: str = "ada") -> None:
        agent = create_agent(model(wire), tools=tools, middleware=[adapter.middleware])
        run(agent, "Go.", self.form, thread(conversation))


class TestAsync(TestSync):
    form = "async"


def test_what_another_middleware_takes_away_is_out_of_reach() -> None:
    """A filter before ours may stand for what a user is allowed: scripts have what the request has."""
    allowed = ["double", "lua_repl"]

    @wrap_model_call
    def only_some(request: Any, handler: Any) -> Any:
        return handler(request.override(tools=[item for item in request.tools if item.name in allowed]))

    call = Use("lua_repl", {"source_code": "total = (total or 0) + 1 return {total, tools.double{x = 1}}"})
    with LangChain() as adapter, serve(Scripted(call, Say("ok"), call, Say("ok"), call, Say("ok"))) as wire:
        agent = create_agent(model(wire), tools=[double, fail], middleware=[only_some, adapter.middleware])
        run(agent, "Go.", "sync", thread("ada"))
        run(agent, "Go.", "sync", thread("ada"))
        allowed.remove("double")
        run(agent, "Go.", "sync", thread("ada"))
    first, second, third = (answers(wire.seen[number])[-1] for number in (1, 3, 5))
    assert (first, second) == ("[1,2]", "[2,2]")
    assert "unknown tool" in third
    assert "fail(" not in wire.seen[0].tools["lua_repl"]["description"]


def test_tools_that_look_alike_are_those_of_the_request() -> None:
    """Tools that are made for each user, with the same description, are not mixed up."""

    def made_for(user: str) -> Any:
        @tool
        def whoami() -> str:
            """Say who it is."""
            return user

        return whoami

    call = Use("lua_repl", {"source_code": "return tools.whoami{}"})
    with LangChain() as adapter, serve(Scripted(call, Say("ok"), call, Say("ok"))) as wire:
        for user in ("ada", "bob"):
            run(create_agent(model(wire), tools=[made_for(user)], middleware=[adapter.middleware]), "Go.", "sync")
    assert [answers(wire.seen[number])[-1] for number in (1, 3)] == ["ada", "bob"]


def test_tools_that_stay_the_agents() -> None:
    @tool(return_direct=True)
    def last() -> str:
        """End the run."""
        return "over"

    destructive = double.model_copy(update={"name": "erase", "metadata": {"destructiveHint": True}})
    with LangChain([lambda_free]) as adapter, serve(Scripted(Say("ok"))) as wire:
        tools = [double, last, destructive, {"type": "web_search"}, guarded]
        shown = [getattr(item, "name", item) for item in adapter.hiding(tools)]
    assert shown == ["lua_repl", "last", "erase", {"type": "web_search"}, "guarded"]
    assert wire.seen == []


def lambda_free(x: int) -> int:
    """Keep it."""
    return x


def test_a_graph_of_ones_own() -> None:
    strict = create_model("Args", x=(int, ...))
    named = double.model_copy(update={"name": "twice", "args_schema": strict})
    with LangChain() as adapter:
        [code] = adapter.hiding([named])
        assert code.invoke({"source_code": "return tools.twice{x = 4}"}) == "8"
