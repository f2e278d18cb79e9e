"""The tests that every provider's adapter passes: the same conversations, through its own client and wire format."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from wire import Say, Scripted, Seen, Turn, Use, Wire, serve

from moonbox import Media, Tool, Toolbox
from moonbox.errors import ClosedError, UsageError
from tests.long import LONG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moonbox import CodeMode, Sandbox
    from moonbox.adapters.loop import ModelAdapter, Outcome

SUM = Use("lua_repl", {"source_code": "total = (total or 0) + 20\nreturn total"})

EXPENSES = """
    local sum = 0
    for id = 1, 3 do
      for _, item in ipairs(tools.get_expenses{employee_id = id}) do sum = sum + item.amount end
    end
    return sum
"""
ODD = [
    Tool.from_schema(name="2fa code", parameters={}, call=lambda args: "ok", policy="direct"),
    Tool.from_schema(
        name="either",
        description="Takes one of two.",
        parameters={
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "oneOf": [
                {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
                {"type": "object", "properties": {"tags": {"type": "array"}}, "required": ["tags"]},
            ],
        },
        call=lambda args: args,
        policy="direct",
    ),
    Tool.from_schema(
        name="ref",
        parameters={
            "$ref": "#/$defs/Args",
            "$defs": {
                "Args": {
                    "type": "object",
                    "properties": {"x": {"type": ["array", "null"], "items": {"$ref": "#/$defs/Args"}}},
                }
            },
        },
        call=lambda args: args,
        namespace="a.b",
        policy="direct",
    ),
]
"""Tools with names and schemas that no provider takes as they are."""
CUT = (
    "error: your answer ended at its token limit in the middle of this call, so it was not run; "
    "write a shorter script, or several smaller ones"
)


@dataclass(frozen=True)
class Provider:
    """How a provider's adapter and clients are made, and what differs in what the model sees."""

    adapter: Callable[..., ModelAdapter[Any, Any, Any, Any, Any]]
    client: Callable[[Wire], Any] = lambda wire: None
    aclient: Callable[[Wire], Any] = lambda wire: None
    options: Callable[[Wire], dict[str, Any]] = lambda wire: {}
    """More for each request, where that is how the package learns of the server."""
    error_mark: bool | None = None
    """What the model sees on results that are errors; None where the wire format has no word for it."""
    has_clients: bool = True
    environment: Callable[[Wire], dict[str, str]] | None = None
    """The variables from which the package makes a client, with the key `from-the-environment`."""
    calls: Callable[[Any], list[Any]] = lambda answer: list(answer.choices[0].message.tool_calls)
    """The package's own objects for the calls in an answer."""
    result: Callable[[str, str], Any] = lambda id, text: {"role": "tool", "tool_call_id": id, "content": text}
    """The package's own object for the result of the call with that id."""
    empty: Callable[[], list[Any]] = list
    """Answers without anything in them."""


def forms_of(metafunc: pytest.Metafunc, forms: tuple[str, ...], *, every: bool) -> tuple[str, ...]:
    """The forms in which one case of a class is run: every one, or the one whose turn it is.

    Outside of long runs, every form has only the cases in which an adapter treats forms differently.
    """
    assert metafunc.cls is not None
    name = metafunc.function.__name__
    if every and (LONG or name.startswith(_DIFFERS)):
        return forms
    cases = sorted(case for case in dir(metafunc.cls) if case.startswith("test_"))
    return (forms[cases.index(name) % len(forms)],)


_DIFFERS = ("test_three_turns", "test_parallel", "test_mistakes", "test_a_conversation_goes_on", "test_a_call_that")


def answers(seen: Seen) -> list[str]:
    """What the model's calls were answered, in the order of the calls."""
    by_id = {result.id: result.text for result in seen.results}
    return [by_id[call.id] for call in seen.called]


class Conversations:
    """The conversations that every adapter has. Inherit, and say how it is driven."""

    forms: tuple[str, ...] = ("sync", "async", "stream")
    """The ways in which a conversation can be run."""
    every_form = True
    """Whether each case is run in all of them; otherwise in one, in turn: where another class has shown the rest."""
    explains_unknown = True
    """Whether a call of a tool that only scripts reach is answered in our words."""
    exact_system = False
    """Whether the system prompt has nothing but the user's and ours."""
    serve: Any = staticmethod(serve)

    def make(self, *args: Any, **settings: Any) -> Any:
        """An adapter."""
        raise NotImplementedError

    def ask(
        self, adapter: Any, wire: Wire, prompt: str, *, form: str, conversation: str | None = None, system: str = ""
    ) -> str:
        """Run a conversation, with its own system prompt; the model's last words."""
        raise NotImplementedError

    def heard(self, text: str) -> str:
        """A failed call's answer as the model gets it."""
        return text

    def check_errors(self, seen: Seen) -> None:
        """What else the model sees of six calls that failed."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "form" in metafunc.fixturenames:
            metafunc.parametrize("form", forms_of(metafunc, type(self).forms, every=type(self).every_form))

    @pytest.fixture
    def agent(self, mode: CodeMode) -> Any:
        return self.make(mode)

    def test_a_question_without_calls(self, agent: Any, form: str) -> None:
        with self.serve(Scripted(Say("Hello, Ada."))) as wire:
            assert self.ask(agent, wire, "Greet Ada.", form=form, system="Be polite.") == "Hello, Ada."
        seen = wire.seen[0]
        assert seen.prompts == ("Greet Ada.",)
        assert "Be polite." in seen.system and seen.system.endswith(agent.system_prompt)
        assert not self.exact_system or seen.system == f"Be polite.\n\n{agent.system_prompt}"
        assert list(seen.tools) == ["lua_repl", "delete_file", "broken", "meet"]
        assert seen.tools["lua_repl"]["description"] == agent.mode.description
        assert seen.tools["lua_repl"]["parameters"]["required"] == ["source_code"]
        assert seen.tools["delete_file"]["parameters"]["required"] == ["path"]

    def test_three_turns_keep_the_script_state(self, agent: Any, form: str) -> None:
        with self.serve(Scripted(SUM, SUM, SUM, lambda seen: Say(f"It is {seen.results[-1].text}."))) as wire:
            assert self.ask(agent, wire, "Count.", form=form) == "It is 60."
        assert answers(wire.seen[-1]) == ["20", "40", "60"]
        assert wire.refused == []

    def test_tools_inside_a_script_and_outside(self, agent: Any, form: str) -> None:
        turns = [Use("lua_repl", {"source_code": EXPENSES}), Use("delete_file", {"path": "a.txt"}), Say("Done.")]
        with self.serve(Scripted(*turns)) as wire:
            assert self.ask(agent, wire, "Add up, then delete a.txt.", form=form) == "Done."
        assert answers(wire.seen[-1]) == ["360", "deleted a.txt"]

    def test_parallel_calls(self, agent: Any, form: str) -> None:
        together = [Use("meet", {"name": "a"}), SUM, Use("meet", {"name": "b"})]
        with self.serve(Scripted(together, SUM, Say("ok"))) as wire:
            self.ask(agent, wire, "Do it all at once.", form=form)
        assert answers(wire.seen[-1]) == ["a met", "20", "b met", "40"]
        assert not self.exact_system or [result.text for result in wire.seen[-1].results] == answers(wire.seen[-1])

    def test_mistakes_are_answered_to_the_model(self, agent: Any, form: str) -> None:
        wrong = [
            Use("lua_repl", {}),
            Use("add", {"a": 1, "b": 2}),
            Use("delete_fil", {"path": "a"}),
            Use("delete_file", {"pth": "a"}),
            Use("broken"),
            Use("lua_repl", {"source_code": "return 1 +"}),
        ]
        with self.serve(Scripted(wrong, SUM, Say("Sorry."))) as wire:
            assert self.ask(agent, wire, "Make mistakes.", form=form) == "Sorry."
        texts = answers(wire.seen[-1])
        assert texts[0] == self.heard('error: lua_repl takes one argument: {"source_code": "<script>"}, not {}')
        if self.explains_unknown:
            assert texts[1] == "error: add is called from a script: use lua_repl and write tools.add{...}"
        else:
            assert "add" in texts[1]
        assert "delete_fil" in texts[2]
        assert "pth: unknown parameter; did you mean 'path'?" in texts[3]
        assert texts[4] == self.heard("tool error (broken, tool_error): RuntimeError: out of luck")
        assert "syntax error on line 1" in texts[5]
        assert texts[6] == "20"
        self.check_errors(wire.seen[-1])

    def test_each_run_has_its_own_state(self, agent: Any, form: str) -> None:
        with self.serve(Scripted(SUM, SUM, Say("40"), SUM, SUM, Say("40"))) as wire:
            self.ask(agent, wire, "Count.", form=form)
            self.ask(agent, wire, "Count.", form=form)
        assert [answers(wire.seen[number])[-2:] for number in (2, 5)] == [["20", "40"], ["20", "40"]]

    def test_unicode_survives(self, agent: Any, form: str) -> None:
        text = "Grüße, 世界 🌍 \\n \"quoted\" 'and' \t tabs"
        script = f"return [==[{text}]==]"
        with self.serve(
            Scripted(Use("lua_repl", {"source_code": script}), lambda seen: Say(seen.results[-1].text))
        ) as wire:
            assert self.ask(agent, wire, text, form=form) == text
        assert wire.seen[0].prompts == (text,)

    def test_odd_names_and_schemas_are_acceptable(self, form: str) -> None:
        uses = [
            Use("_2fa_code"),
            Use("either", {"id": 1}),
            Use("either", {"x": 1}),
            Use("a__b__ref", {"x": [{"x": []}]}),
        ]
        with self.make(Toolbox(ODD)) as agent, self.serve(Scripted(uses, Say("ok"))) as wire:
            self.ask(agent, wire, "Try them.", form=form)
        assert list(wire.seen[0].tools) == ["lua_repl", "_2fa_code", "either", "a__b__ref"]
        texts = answers(wire.seen[-1])
        assert (texts[0], texts[1], texts[3]) == ("ok", '{"id":1}', '{"x":[{"x":[]}]}')
        assert "invalid arguments for either" in texts[2]

    def test_direct_mode(self, box: Sandbox, form: str) -> None:
        calls = [Use("add", {"a": 1, "b": 2}), Use("add", {"a": 3, "b": 4})]
        with self.make(box, mode="never") as agent, self.serve(Scripted(calls, Say("3 and 7"))) as wire:
            self.ask(agent, wire, "Add.", form=form)
        assert "lua_repl" not in wire.seen[0].tools
        assert "lua_repl" not in wire.seen[0].system
        assert not self.exact_system or wire.seen[0].system == ""
        assert answers(wire.seen[-1]) == ["3", "7"]
        assert box.run("return 1").value == 1

    def test_without_tools_it_is_a_calculator(self, form: str) -> None:
        calculate = Use("lua_repl", {"source_code": "6 * 7"})
        with self.make() as agent, self.serve(Scripted(calculate, Say("42"))) as wire:
            assert self.ask(agent, wire, "6 * 7?", form=form) == "42"
        assert list(wire.seen[0].tools) == ["lua_repl"]
        assert answers(wire.seen[-1]) == ["42"]
        with pytest.raises(ClosedError):
            agent.mode.handle("lua_repl", {"source_code": "1"})


class Conformance(Conversations):
    """Inherit, and give `provider`."""

    provider: Provider
    forms = ("sync", "async", "stream", "async-stream")
    exact_system = True

    def make(self, *args: Any, **settings: Any) -> Any:
        return self.provider.adapter(*args, **settings)

    def ask(
        self, adapter: Any, wire: Wire, prompt: str, *, form: str, conversation: str | None = None, system: str = ""
    ) -> str:
        done = _run(self.provider, form, adapter, wire, prompt, conversation=conversation, system=system or None)
        return str(done.text)

    def check_errors(self, seen: Seen) -> None:
        assert [result.is_error for result in seen.results][:6] == [self.provider.error_mark] * 6

    @pytest.fixture
    def run(self, form: str) -> Callable[..., Outcome[Any, Any]]:
        """`agent.run` in its four forms; streamed text must be the text of the outcome's last answer in the end."""
        return lambda agent, wire, *args, **kw: _run(self.provider, form, agent, wire, *args, **kw)

    def test_the_outcome_has_every_reply(self, agent: Any, run: Any) -> None:
        uses = [Use("lua_repl", {"source_code": EXPENSES}), Use("delete_file", {"path": "a"}), Use("delete_fil", {})]
        with serve(Scripted(Turn("One more.", (*uses, Use("broken"))), Say("Done."))) as wire:
            done = run(agent, wire, "Go.")
        assert (done.text, done.finished, wire.refused) == ("Done.", True, [])
        assert [reply.text for reply in done.replies[:2]] == ["360", "deleted a"]
        assert [call.tool for call in done.replies[0].run.calls] == ["get_expenses"] * 3
        assert done.replies[2].text.startswith("error: unknown tool 'delete_fil'; did you mean 'delete_file'?")
        assert [reply.is_error for reply in done.replies] == [False, False, True, True]
        marks = [result.is_error for result in wire.seen[-1].results]
        assert marks[2:] == [self.provider.error_mark] * 2
        assert len(agent.mode.conversations) == 0

    def test_a_call_that_was_cut_off_is_not_run(self, agent: Any, run: Any) -> None:
        first = Use("lua_repl", {"source_code": "x = 1 return x"})
        cut = Use("lua_repl", {"source_code": "x = 2 -- and then"})
        turns = [Turn(uses=(first, cut), cut=True), Use("lua_repl", {"source_code": "x"}), Say("ok")]
        with serve(Scripted(*turns)) as wire:
            done = run(agent, wire, "Write a long script.")
        assert [reply.text for reply in done.replies] == ["1", CUT, "1"]
        assert wire.refused == []

    def test_half_a_character_does_not_end_the_conversation(self, agent: Any, run: Any) -> None:
        """JSON can escape one half of a surrogate pair, and no client can send it back."""
        half = Turn("half \ud83d", (Use("lua_repl", {"source_code": "return #'\ud83d' > 0"}),))
        with serve(Scripted(half, Say("ok"))) as wire:
            done = run(agent, wire, "Count.")
        assert (done.text, len(done.replies), wire.refused) == ("ok", 1, [])

    def test_max_turns(self, agent: Any, run: Any) -> None:
        with serve(lambda seen: SUM) as wire:
            done = run(agent, wire, "Never stop.", max_turns=3)
        assert (done.finished, len(done.replies), len(wire.seen)) == (False, 3, 3)

    def test_a_conversation_goes_on(self, agent: Any, run: Any) -> None:
        with serve(Scripted(SUM, Say("20"), SUM, Say("40"))) as wire:
            first = run(agent, wire, "Count.", conversation="ada")
            again = [*first.messages, *agent.begin("And again.", None, {})[0][-1:]]
            second = run(agent, wire, again, conversation="ada")
        assert second.replies[0].text == "40"
        seen = wire.seen[-1]
        assert seen.prompts == ("Count.", "And again.")
        assert seen.system == agent.system_prompt
        assert len(seen.called) == 2
        assert agent.mode.end("ada")

    def test_the_messages_given_are_not_changed(self, agent: Any, run: Any) -> None:
        messages = agent.begin("Count.", None, {})[0][-1:]
        before = repr(messages)
        with serve(Scripted(SUM, Say("ok"))) as wire:
            run(agent, wire, messages)
        assert repr(messages) == before

    def test_a_loop_of_ones_own(self, agent: Any) -> None:
        """`turn` gives what to add, until the model is done."""
        turns = [[SUM, Use("delete_file", {"path": "x"})], SUM, Say("over")]
        with serve(Scripted(*turns)) as wire, _opened(self.provider, wire) as client:
            messages, request = agent.begin("Count.", None, {"model": "loopback", **self.provider.options(wire)})
            client = agent.default_client(awaited=False) if client is None else client
            for _ in range(5):
                response = agent.send(client, agent.request_for(messages, request), awaited=False, stream=False)
                more = agent.turn(response)
                if not more:
                    break
                messages = [*messages, *more]
        assert agent.text_of(response) == "over"
        assert [result.text for result in wire.seen[-1].results] == ["20", "deleted x", "40"]

    def test_images_and_files_reach_the_model(self, run: Any) -> None:
        png, pdf = Media(b"\x89PNG\r\n\x1a\n" + b"pixels", name="chart.png"), Media(b"%PDF-1.7 x", name="paper.pdf")
        tools = [
            Tool.from_schema(name="chart", call=lambda given: {"of": "sales", "picture": png}),
            Tool.from_schema(name="paper", call=lambda given: pdf, policy="direct"),
        ]
        script = Use("lua_repl", {"source_code": "local c = tools.chart{} show(c.picture) return c.of"})
        with self.provider.adapter(tools) as agent, serve(Scripted([script, Use("paper", {})], Say("Nice."))) as wire:
            done = run(agent, wire, "Draw.")
        assert wire.refused == [] and [reply.media for reply in done.replies] == [(png,), (pdf,)]
        said = json.dumps(wire.seen[-1].body)
        for medium in (png, pdf):
            urlsafe = base64.urlsafe_b64encode(medium.data).decode()
            assert medium.base64 in said or urlsafe in said
            assert not any(medium.base64 in result.text for result in wire.seen[-1].results)

    def test_calls_that_the_client_answers(self, run: Any) -> None:
        pick = Tool.from_schema(name="pick", parameters={"type": "object", "properties": {"n": {"type": "integer"}}})
        script = Use("lua_repl", {"source_code": "return tools.pick{n = 1} + tools.pick{n = 2}"})
        brain = Scripted([script, Use("pick", {"n": 3})], Say("Done."))
        asked: list[int] = []

        def client(call: Any) -> int:
            asked.append(call.arguments["n"])
            return 10 * int(call.arguments["n"])

        provider = type(self).provider
        with provider.adapter([pick], keep_visible=["pick"], client_calls=client) as agent, serve(brain) as wire:
            done = run(agent, wire, "Pick.")
        assert [reply.text for reply in done.replies] == ["30", "30"]
        assert sorted(asked) == [1, 2, 3]

    def test_the_wrong_client(self, agent: Any) -> None:
        if not self.provider.has_clients:
            pytest.skip("this package has no clients of two kinds")
        with serve(Scripted(Say("hi"), Say("hi"))) as wire, _opened(self.provider, wire) as client:
            with pytest.raises(UsageError, match=r"run needs a synchronous client, not Async.*; use arun with this"):
                agent.run("hi", model="loopback", client=self.provider.aclient(wire))
            with pytest.raises(UsageError, match=r"arun needs an asynchronous client, not .*; use run with this one"):
                asyncio.run(agent.arun("hi", model="loopback", client=client))

    def test_results_are_the_clients_own(self, agent: Any) -> None:
        with serve(Scripted(SUM)) as wire, _opened(self.provider, wire) as client:
            messages, request = agent.begin("hi", None, {"model": "loopback", **self.provider.options(wire)})
            client = agent.default_client(awaited=False) if client is None else client
            made = agent.send(client, agent.request_for(messages, request), awaited=False, stream=False)
        [call] = self.provider.calls(made)
        first, second = (self.provider.result(agent.read_call(call).id, text) for text in ("20", "40"))
        assert agent.handle(call, conversation="a") == first
        assert asyncio.run(agent.ahandle(call, conversation="b")) == first
        assert agent.handle_all(made, conversation="a") == [second]
        assert asyncio.run(agent.ahandle_all(made, conversation="b")) == [second]

    def test_the_default_client_comes_from_the_environment(self, agent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        if self.provider.environment is None:
            pytest.skip("this package is not told of another server by the environment")
        with serve(Scripted(Say("hi"), Say("hi"))) as wire:
            for name, value in self.provider.environment(wire).items():
                monkeypatch.setenv(name, value)
            assert agent.run("hi", model="loopback").text == "hi"
            assert asyncio.run(agent.arun("hi", model="loopback")).text == "hi"
        assert len(wire.headers) == 2
        assert all("from-the-environment" in str(headers) for headers in wire.headers)

    def test_an_empty_answer_is_an_end(self, agent: Any) -> None:
        assert [agent.turn(answer) for answer in self.provider.empty()] == [[]] * len(self.provider.empty())

    def test_wrong_options(self, agent: Any, mode: CodeMode) -> None:
        with pytest.raises(UsageError, match="max_turns must be a whole number of at least 1, not 0"):
            agent.run("hi", model="m", client=object(), max_turns=0)
        with pytest.raises(UsageError, match="keep_visible is a setting of the CodeMode; pass it there"):
            self.provider.adapter(mode, keep_visible=["add"])


def _run(provider: Provider, form: str, agent: Any, wire: Wire, messages: Any, **options: Any) -> Any:
    heard: list[str] = []
    options = {"model": "loopback", **provider.options(wire), **options}
    if "stream" in form:
        options["on_text"] = heard.append
    if form.startswith("async"):
        done = asyncio.run(_awaited(provider, agent, wire, messages, options))
    else:
        with _opened(provider, wire) as client:
            done = agent.run(messages, client=client, **options)
    if "stream" in form:
        assert "".join(heard).endswith(done.text)
        assert all(seen.streaming for seen in wire.seen)
    return done


async def _awaited(provider: Provider, agent: Any, wire: Wire, messages: Any, options: dict[str, Any]) -> Any:
    client = provider.aclient(wire)
    try:
        return await agent.arun(messages, client=client, **options)
    finally:
        if hasattr(client, "aio"):
            await client.aio.aclose()
            client.close()
        elif client is not None:
            await client.close()


@contextlib.contextmanager
def _opened(provider: Provider, wire: Wire) -> Iterator[Any]:
    client = provider.client(wire)
    try:
        yield client
    finally:
        if client is not None and hasattr(client, "close"):
            client.close()


__all__ = [
    "SUM",
    "Conformance",
    "Conversations",
    "Provider",
    "Say",
    "Scripted",
    "Seen",
    "Turn",
    "Use",
    "answers",
    "serve",
]
