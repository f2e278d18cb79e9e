"""The tests that every agent framework's adapter passes: the same conversations, driven by the framework's own loop."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
from typing import TYPE_CHECKING, Any

import pytest
import wire

from moonbox import Tool, Toolbox, tool
from moonbox.errors import ClosedError, ToolDefinitionError, UsageError
from tests.adapters.conformance import CUT, EXPENSES, ODD, SUM, Say, Scripted, Use, forms_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from wire import Seen, Wire

    from moonbox import CodeMode, Sandbox

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
    "serve",
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


def answers(seen: Seen) -> list[str]:
    """What the model's calls were answered, in the order of the calls."""
    by_id = {result.id: result.text for result in seen.results}
    return [by_id[call.id] for call in seen.called]


class Loop:
    """Inherit, and say how the framework is driven."""

    forms: tuple[str, ...] = ("sync", "async", "stream")
    """The ways in which an agent can be run."""
    every_form = True
    """Whether each case is run in all of them; otherwise in one, in turn: where another class has shown the rest."""
    explains_unknown = True
    """Whether a call of a tool that only scripts reach is answered in our words."""

    adapter: Callable[..., Any]

    def ask(
        self, adapter: Any, wire: Wire, prompt: str, *, form: str, conversation: str | None = None, system: str = ""
    ) -> str:
        """Run an agent once, with its own system prompt and in a conversation of the framework's; its last words."""
        raise NotImplementedError

    def heard(self, text: str) -> str:
        """A failed call's answer as the model gets it from this framework."""
        return text

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "form" in metafunc.fixturenames:
            metafunc.parametrize("form", forms_of(metafunc, type(self).forms, every=type(self).every_form))

    @pytest.fixture
    def agent(self, mode: CodeMode) -> Any:
        return type(self).adapter(mode)

    def test_a_question_without_calls(self, agent: Any, form: str) -> None:
        with serve(Scripted(Say("Hello, Ada."))) as wire:
            assert self.ask(agent, wire, "Greet Ada.", form=form, system="Be polite.") == "Hello, Ada."
        seen = wire.seen[0]
        assert seen.prompts == ("Greet Ada.",)
        assert "Be polite." in seen.system and seen.system.endswith(agent.system_prompt)
        assert list(seen.tools) == ["lua_repl", "delete_file", "broken", "meet"]
        assert seen.tools["lua_repl"]["description"] == agent.mode.description
        assert seen.tools["lua_repl"]["parameters"]["required"] == ["source_code"]
        assert seen.tools["delete_file"]["parameters"]["required"] == ["path"]

    def test_three_turns_keep_the_script_state(self, agent: Any, form: str) -> None:
        with serve(Scripted(SUM, SUM, SUM, lambda seen: Say(f"It is {seen.results[-1].text}."))) as wire:
            assert self.ask(agent, wire, "Count.", form=form) == "It is 60."
        assert answers(wire.seen[-1]) == ["20", "40", "60"]
        assert wire.refused == []

    def test_tools_inside_a_script_and_outside(self, agent: Any, form: str) -> None:
        turns = [Use("lua_repl", {"source_code": EXPENSES}), Use("delete_file", {"path": "a.txt"}), Say("Done.")]
        with serve(Scripted(*turns)) as wire:
            assert self.ask(agent, wire, "Add up, then delete a.txt.", form=form) == "Done."
        assert answers(wire.seen[-1]) == ["360", "deleted a.txt"]

    def test_parallel_calls(self, agent: Any, form: str) -> None:
        together = [Use("meet", {"name": "a"}), SUM, Use("meet", {"name": "b"})]
        with serve(Scripted(together, SUM, Say("ok"))) as wire:
            self.ask(agent, wire, "Do it all at once.", form=form)
        assert answers(wire.seen[-1]) == ["a met", "20", "b met", "40"]

    def test_mistakes_are_answered_to_the_model(self, agent: Any, form: str) -> None:
        wrong = [
            Use("lua_repl", {}),
            Use("add", {"a": 1, "b": 2}),
            Use("delete_fil", {"path": "a"}),
            Use("delete_file", {"pth": "a"}),
            Use("broken"),
            Use("lua_repl", {"source_code": "return 1 +"}),
        ]
        with serve(Scripted(wrong, SUM, Say("Sorry."))) as wire:
            assert self.ask(agent, wire, "Make mistakes.", form=form) == "Sorry."
        texts = answers(wire.seen[-1])
        assert texts[0] == self.heard('error: lua_repl takes one argument: {"source_code": "<script>"}, not {}')
        if self.explains_unknown:
            assert texts[1] == "error: add is called from a script: use lua_repl and write tools.add{...}"
        else:
            assert "add" in texts[1]
        assert "delete_fil" in texts[2]
        assert "pth: unknown parameter; did you mean 'path'?" in texts[3]
        assert texts[4] == self.heard("tool error (broken, tool_error): RuntimeError: no such luck")
        assert "syntax error on line 1" in texts[5]
        assert texts[6] == "20"

    def test_a_conversation_goes_on(self, agent: Any, form: str) -> None:
        with serve(Scripted(SUM, Say("20"), SUM, Say("40"), SUM, Say("20"))) as wire:
            for name in ("ada", "ada", "bob"):
                self.ask(agent, wire, "Count.", form=form, conversation=name)
        assert [answers(wire.seen[number])[-1] for number in (1, 3, 5)] == ["20", "40", "20"]

    def test_each_run_has_its_own_state(self, agent: Any, form: str) -> None:
        with serve(Scripted(SUM, SUM, Say("40"), SUM, SUM, Say("40"))) as wire:
            self.ask(agent, wire, "Count.", form=form)
            self.ask(agent, wire, "Count.", form=form)
        assert [answers(wire.seen[number])[-2:] for number in (2, 5)] == [["20", "40"], ["20", "40"]]

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

    def test_unicode_survives(self, agent: Any, form: str) -> None:
        text = "Grüße, 世界 🌍 \\n \"quoted\" 'and' \t tabs"
        script = f"return [==[{text}]==]"
        with serve(Scripted(Use("lua_repl", {"source_code": script}), lambda seen: Say(seen.results[-1].text))) as wire:
            assert self.ask(agent, wire, text, form=form) == text

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

    def test_odd_names_and_schemas_are_acceptable(self, form: str) -> None:
        uses = [
            Use("_2fa_code"),
            Use("either", {"id": 1}),
            Use("either", {"x": 1}),
            Use("a__b__ref", {"x": [{"x": []}]}),
        ]
        with type(self).adapter(Toolbox(ODD)) as agent, serve(Scripted(uses, Say("ok"))) as wire:
            self.ask(agent, wire, "Try them.", form=form)
        assert list(wire.seen[0].tools) == ["lua_repl", "_2fa_code", "either", "a__b__ref"]
        texts = answers(wire.seen[-1])
        assert (texts[0], texts[1], texts[3]) == ("ok", '{"id":1}', '{"x":[{"x":[]}]}')
        assert "invalid arguments for either" in texts[2]

    def test_direct_mode(self, box: Sandbox, form: str) -> None:
        calls = [Use("add", {"a": 1, "b": 2}), Use("add", {"a": 3, "b": 4})]
        with type(self).adapter(box, mode="never") as agent, serve(Scripted(calls, Say("3 and 7"))) as wire:
            self.ask(agent, wire, "Add.", form=form)
        assert "lua_repl" not in wire.seen[0].tools
        assert "lua_repl" not in wire.seen[0].system
        assert answers(wire.seen[-1]) == ["3", "7"]
        assert box.run("return 1").value == 1

    def test_without_tools_it_is_a_calculator(self, form: str) -> None:
        calculate = Use("lua_repl", {"source_code": "6 * 7"})
        with type(self).adapter() as agent, serve(Scripted(calculate, Say("42"))) as wire:
            assert self.ask(agent, wire, "6 * 7?", form=form) == "42"
        assert list(wire.seen[0].tools) == ["lua_repl"]
        assert answers(wire.seen[-1]) == ["42"]
        with pytest.raises(ClosedError):
            agent.mode.handle("lua_repl", {"source_code": "1"})

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

    They are `double(x)`, `later(x)`, which is asynchronous where the framework has such, `fail(x)`, which raises
    ValueError("no luck"), and `guarded(x)`, which the framework gives a reason to keep out of scripts.
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
