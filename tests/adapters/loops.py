"""The tests that every agent framework's adapter passes: the same conversations, driven by the framework's own loop."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
from typing import TYPE_CHECKING, Any

import pytest
import wire

from moonbox import Sandbox, Tool, tool
from moonbox.errors import ToolDefinitionError, UsageError
from tests.adapters.conformance import CUT, SUM, Conversations, Say, Scripted, Use, answers

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from wire import Seen, Wire

    from moonbox import Toolbox

__all__ = [
    "CUT",
    "SUM",
    "Hiding",
    "Loop",
    "Say",
    "Scripted",
    "Use",
    "another_loop",
    "answers",
    "awaited",
    "closed_later",
    "double",
    "fail",
    "guarded",
    "later",
    "serve",
    "values_of",
]


# One loop for all: some packages keep a client for the whole process, which belongs to the loop that it was made in.
_runner = asyncio.Runner()
_runner.get_loop()  # from now on the current one, for packages that run their agents in that
atexit.register(_runner.close)
_clients: list[Any] = []


def awaited(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return _runner.run(coroutine)


def closed_later(client: Any) -> Any:
    """An asynchronous client, to be closed when its server is."""
    _clients.append(client)
    return client


async def _close_clients() -> None:
    while _clients:
        client = _clients.pop()
        await (client.aclose() if hasattr(client, "aclose") else client.close())


@contextlib.contextmanager
def serve(brain: Any) -> Iterator[Wire]:
    with wire.serve(brain) as server:
        try:
            yield server
        finally:
            awaited(_close_clients())


def values_of(take: Callable[[Any], Toolbox]) -> Callable[[Any, str], Any]:
    """A function from a framework's tools and a script to what the script returns, the same in both ways of running."""

    def values(tools: Any, script: str) -> Any:
        with Sandbox(take(tools)) as box:
            value = box.run(script).unwrap()
            assert awaited(box.arun(script)).unwrap() == value
            return value

    return values


@contextlib.contextmanager
def another_loop() -> Iterator[None]:
    """For a package that runs its agents in the current loop and leaves it unusable."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield
        loop.run_until_complete(_close_clients())
    finally:
        loop.close()
        asyncio.set_event_loop(_runner.get_loop())


class Loop(Conversations):
    """The conversations of an agent framework, in its own loop. Inherit, and say how the framework is driven."""

    adapter: Callable[..., Any]
    serve = staticmethod(serve)

    def make(self, *args: Any, **settings: Any) -> Any:
        return type(self).adapter(*args, **settings)

    def test_a_conversation_goes_on(self, agent: Any, form: str) -> None:
        with serve(Scripted(SUM, Say("20"), SUM, Say("40"), SUM, Say("20"))) as wire:
            for name in ("ada", "ada", "bob"):
                self.ask(agent, wire, "Count.", form=form, conversation=name)
        assert [answers(wire.seen[number])[-1] for number in (1, 3, 5)] == ["20", "40", "20"]

    def test_a_conversation_by_your_own_name(self, box: Sandbox, form: str) -> None:
        named: list[Any] = []

        def name(context: Any) -> str:
            named.append(context)
            return "shared"

        with (
            type(self).adapter(box, conversation=name) as agent,
            serve(Scripted(SUM, Say("20"), SUM, Say("40"))) as wire,
        ):
            self.ask(agent, wire, "Count.", form=form, conversation="ada")
            self.ask(agent, wire, "Count.", form=form, conversation="bob")
            assert agent.mode.repl("shared").run("return total").value == 40
        assert answers(wire.seen[-1])[-1] == "40"
        assert len(named) == 2

    def test_parameters_with_any_name(self, form: str) -> None:
        names = ["self", "cls", "config", "ctx", "context", "input", "args", "kwargs", "name", "run_manager", "state"]
        names += ["callbacks", "tool", "arguments", "tool_call_id", "runtime", "moonbox"]
        odd = Tool.from_schema(
            name="odd",
            parameters={"type": "object", "properties": {name: {"type": "integer"} for name in names}},
            call=lambda given: sum(given.values()),
            policy="direct",
        )
        given = {name: number for number, name in enumerate(names)}
        with type(self).adapter([odd]) as agent, serve(Scripted(Use("odd", given), Say("ok"))) as wire:
            self.ask(agent, wire, "Call it.", form=form)
        assert answers(wire.seen[-1]) == [str(sum(given.values()))]
        assert list(wire.seen[0].tools["odd"]["parameters"]["properties"]) == names

    def test_async_tools(self, form: str) -> None:
        @tool
        async def later(x: int) -> int:
            """Double it, later."""
            return 2 * x

        script = "return parallel.map({1, 2, 3}, function(x) return tools.later{x = x} end)"
        use = Use("lua_repl", {"source_code": script})
        with type(self).adapter([later]) as agent, serve(Scripted(use, Say("ok"))) as wire:
            self.ask(agent, wire, "Double.", form=form)
        assert answers(wire.seen[-1]) == ["[2,4,6]"]

    def test_wrong_options(self, box: Sandbox) -> None:
        with pytest.raises(UsageError, match="conversation must be a function that returns a name, not 'ada'"):
            type(self).adapter(box, conversation="ada")
        with pytest.raises(UsageError, match="unknown setting 'keep_visble'; did you mean 'keep_visible'"):
            type(self).adapter(box, keep_visble=["add"])


class Hiding:
    """Code mode as a filter over tools that an agent has of its own. Inherit, and say what these are.

    They are made of the functions `double`, `later`, `fail` and `guarded`; the last one has a reason to be kept out of
    scripts.
    """

    adapter: Callable[..., Any]
    explains_unknown = True
    guarded_ends_the_run = False

    def own_tools(self) -> list[Any]:
        raise NotImplementedError

    def ask(self, adapter: Any, wire: Wire, tools: list[Any], *, conversation: str = "ada") -> None:
        """Run an agent that has these tools, in a conversation."""
        raise NotImplementedError

    def heard(self, seen: Seen) -> list[str]:
        return answers(seen)

    @staticmethod
    def script(source: str) -> Use:
        return Use("lua_repl", {"source_code": source})

    def test_scripts_reach_what_the_model_is_not_shown(self) -> None:
        both = self.script("return {tools.double{x = 21}, tools.later{x = 4}, tools.add{a = 1, b = 2}}")
        with type(self).adapter([add]) as adapter, serve(Scripted(both, Use("guarded", {"x": 5}), Say("ok"))) as wire:
            self.ask(adapter, wire, self.own_tools())
        assert self.heard(wire.seen[-1])[:2] == ["[42,8,3]", *([] if self.guarded_ends_the_run else ["guarded 5"])]
        shown = wire.seen[0].tools
        assert [name for name in shown if name != "final_answer"] == ["lua_repl", "guarded"]
        assert "double(x: integer)" in shown["lua_repl"]["description"]
        assert "guarded" not in shown["lua_repl"]["description"]

    def test_failures_are_errors_in_the_script(self) -> None:
        tried = self.script("local ok, problem = pcall(tools.fail, {x = 1}) return {ok, tostring(problem)}")
        with type(self).adapter() as adapter, serve(Scripted(tried, Say("ok"))) as wire:
            self.ask(adapter, wire, self.own_tools())
        heard = self.heard(wire.seen[-1])[0]
        assert heard.startswith("[false,") and "no luck" in heard

    def test_a_direct_call_of_a_hidden_tool_is_refused(self) -> None:
        with type(self).adapter() as adapter, serve(Scripted(Use("double", {"x": 1}), Say("ok"))) as wire:
            self.ask(adapter, wire, self.own_tools())
        heard = self.heard(wire.seen[-1])[0]
        if self.explains_unknown:
            assert heard == "error: double is called from a script: use lua_repl and write tools.double{...}"
        assert "double" in heard and heard != "2"

    def test_tools_that_are_left_direct(self) -> None:
        turns = [Use("double", {"x": 1}), self.script("return tools.double{x = 1}"), Say("ok")]
        with type(self).adapter(leave_direct=["d*", "fail"]) as adapter, serve(Scripted(*turns)) as wire:
            self.ask(adapter, wire, self.own_tools())
        assert set(wire.seen[0].tools) - {"final_answer"} == {"lua_repl", "double", "fail", "guarded"}
        heard = self.heard(wire.seen[-1])
        assert heard[0] == "2" and "double" in heard[1] and heard[1] != "2"

    def test_state_and_its_end(self) -> None:
        turns = [SUM, Say("20"), SUM, Say("40")]
        with type(self).adapter() as adapter, serve(Scripted(*turns)) as wire:
            tools = self.own_tools()
            self.ask(adapter, wire, tools)
            self.ask(adapter, wire, tools)
            [name] = adapter.mode.conversations
            assert adapter.mode.end(name)
            assert adapter.mode.conversations == ()
        assert self.heard(wire.seen[-1])[-1] == "40"

    def test_another_agent_does_not_reach_them(self) -> None:
        """Two agents share an adapter and the name of a conversation: each has its own tools alone."""
        call = self.script("return tools.double{x = 1}")
        with type(self).adapter([add]) as adapter, serve(Scripted(call, Say("ok"), call, Say("ok"))) as wire:
            self.ask(adapter, wire, self.own_tools())
            self.ask(adapter, wire, [])
        assert self.heard(wire.seen[1])[0] == "2"
        assert "unknown tool" in self.heard(wire.seen[-1])[-1]

    def test_the_tools_that_the_adapter_does_not_take(self) -> None:
        with pytest.raises(ToolDefinitionError, match=self.taker):
            type(self).adapter([self.own_tools()[0]])

    taker = ""
    """What the error recommends."""


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


# What an agent has of its own: plain functions, of which each framework makes tools


def double(x: int) -> int:
    """Double it.

    Args:
        x: The number.
    """
    return 2 * x


async def later(x: int) -> int:
    """Double it, later."""
    return 2 * x


def fail(x: int) -> int:
    """Fail always.

    Args:
        x: The number.
    """
    raise ValueError("no luck")


def guarded(x: int) -> str:
    """Stay with the agent.

    Args:
        x: The number.
    """
    return f"guarded {x}"
