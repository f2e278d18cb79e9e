"""OpenAI: its own client against the wire formats of chat completions and responses."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, cast

import pytest

from moonbox.adapters.openai import OpenAIChat, OpenAIResponses
from moonbox.errors import MoonboxError
from tests.adapters.conformance import SUM, Conformance, Provider, Say, Scripted, Turn, Use, serve
from tests.lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

    import openai
    from openai.types import chat as chat_types
    from openai.types import responses as response_types

    from moonbox import CodeMode, Sandbox
else:
    openai, chat_types, response_types = map(lazy, ("openai", "openai.types.chat", "openai.types.responses"))

BROKEN = '{"source_code": "return 1'


def client(wire: Any) -> openai.OpenAI:
    http = openai.DefaultHttpxClient(verify=False)  # reading certificates would be most of a test's time
    return openai.OpenAI(base_url=f"{wire.url}/v1", api_key="loopback", max_retries=0, http_client=http)


def aclient(wire: Any) -> openai.AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(verify=False)
    return openai.AsyncOpenAI(base_url=f"{wire.url}/v1", api_key="loopback", max_retries=0, http_client=http)


def environment(wire: Any) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{wire.url}/v1", "OPENAI_API_KEY": "from-the-environment"}


@contextlib.contextmanager
def served(*turns: Any, **options: Any) -> Iterator[tuple[Any, openai.OpenAI]]:
    with serve(Scripted(*turns), **options) as wire, client(wire) as opened:
        yield wire, opened


class TestChat(Conformance):
    provider = Provider(
        OpenAIChat,
        client,
        aclient,
        environment=environment,
        empty=lambda: [
            chat_types.ChatCompletion.construct(choices=[]),
            chat_types.ChatCompletion.construct(choices=[{"message": {}}]),
        ],
    )


class TestResponses(Conformance):
    provider = Provider(
        OpenAIResponses,
        client,
        aclient,
        environment=environment,
        calls=lambda answer: [item for item in answer.output if item.type == "function_call"],
        result=lambda id, text: {"type": "function_call_output", "call_id": id, "output": text},
        empty=lambda: [
            response_types.Response.construct(output=[], status=status) for status in ("completed", "incomplete")
        ],
    )


@pytest.mark.parametrize("adapter", [OpenAIChat, OpenAIResponses])
@pytest.mark.parametrize("on_text", [None, lambda text: None])
def test_malformed_arguments_are_answered(adapter: Any, mode: CodeMode, on_text: Any) -> None:
    wrong = [Use("lua_repl", BROKEN), Use("delete_file", "[1]"), Use("delete_file", ""), Use("lua_repl", '"return 1"')]
    with served(wrong, Say("Sorry.")) as (wire, opened):
        done = adapter(mode).run("Go.", model="loopback", client=opened, on_text=on_text)
    texts = [reply.text for reply in done.replies]
    wanted = 'error: lua_repl takes one argument: {"source_code": "<script>"}; the arguments were not a JSON object'
    assert texts[0] == texts[3] == wanted
    assert texts[1] == "error: the arguments of delete_file must be a JSON object, not '[1]'"
    assert "path" in texts[2]
    assert wire.refused == []


@pytest.mark.parametrize("depth", [100, 300, 490, 600, 900, 1100, 5000])
@pytest.mark.parametrize("leaf", ["x", "\\ud83d", "a\nb"])
def test_arguments_of_any_depth_are_answered(mode: CodeMode, depth: int, leaf: str) -> None:
    text = '{"source_code": ' + '{"a":' * depth + f'"{leaf}"' + "}" * depth + "}"
    call = {"id": "call_1", "type": "function", "function": {"name": "lua_repl", "arguments": text}}
    chat: Any = {"choices": [{"message": {"role": "assistant", "tool_calls": [call]}}]}
    said, told = cast(Any, OpenAIChat(mode).turn(chat))
    assert told["content"].startswith("error: lua_repl takes one argument")
    assert "\n" not in said["tool_calls"][0]["function"]["arguments"]
    item = {"type": "function_call", "call_id": "call_1", "name": "lua_repl", "arguments": text}
    response: Any = {"output": [item], "status": "completed"}
    _, told = cast(Any, OpenAIResponses(mode).turn(response))
    assert told["output"].startswith("error: lua_repl takes one argument")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ('{"source_code": "1"}', '{"source_code": "1"}'),
        ('{"source_code":  "a\nb"}', '{"source_code": "a\\nb"}'),
        ({"source_code": "1"}, '{"source_code": "1"}'),
        ('{"source_code": "\\ud83d"}', '{"source_code": "\\ufffd"}'),
        ('{"n": NaN}', '{"n": null}'),
        ("{", '{"malformed": "{"}'),
        ("[1]", '{"malformed": "[1]"}'),
        ("", "{}"),
        (None, "{}"),
    ],
)
def test_arguments_are_repeated_as_json_that_any_server_reads(mode: CodeMode, given: Any, kept: str) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "lua_repl", "arguments": given}}
    chat: Any = {"choices": [{"message": {"role": "assistant", "tool_calls": [call]}}]}
    said, _ = cast(Any, OpenAIChat(mode).turn(chat))
    assert said["tool_calls"][0]["function"]["arguments"] == kept


@pytest.mark.parametrize("adapter", [OpenAIChat, OpenAIResponses])
@pytest.mark.parametrize("on_text", [None, lambda text: None])
def test_a_freeform_tool_takes_the_script_as_it_is(adapter: Any, mode: CodeMode, on_text: Any) -> None:
    script = 'return [[a "quoted" \\ text]]'
    with served(Use("lua_repl", script, freeform=True), Use("delete_file", {"path": "x"}), Say("ok")) as (wire, opened):
        agent = adapter(mode, freeform=True)
        done = agent.run("Go.", model="loopback", client=opened, on_text=on_text)
    assert [reply.text for reply in done.replies] == ['a "quoted" \\ text', "deleted x"]
    assert wire.seen[0].tools["lua_repl"]["parameters"] is None
    assert wire.seen[0].tools["lua_repl"]["description"] == mode.description
    assert wire.seen[0].tools["delete_file"]["parameters"] is not None


def test_responses_with_what_the_server_keeps(mode: CodeMode) -> None:
    agent = OpenAIResponses(mode)
    with served(SUM, SUM, Say("40"), SUM, Say("60")) as (wire, opened):
        answer = opened.responses.create(model="loopback", input="Count.", tools=agent.tools)
        while results := agent.handle_all(answer, conversation="ada"):
            answer = opened.responses.create(
                model="loopback", input=[*results], previous_response_id=answer.id, tools=agent.tools
            )
        kept: Any = {"previous_response_id": answer.id, "conversation": "ada"}
        after = agent.run("And now?", model="loopback", client=opened, **kept)
    assert (answer.output_text, after.text) == ("40", "60")
    assert wire.seen[-1].prompts == ("Count.", "And now?")
    assert [result.text for result in wire.seen[-1].results] == ["20", "40", "60"]


def test_the_clients_own_stream_helpers(mode: CodeMode) -> None:
    chat, responses = OpenAIChat(mode), OpenAIResponses(mode)
    with served(Turn("Wait.", (SUM,)), Turn("Wait.", (SUM,)), Say("ok"), Say("ok")) as (wire, opened):
        with opened.chat.completions.stream(
            model="loopback", messages=[{"role": "user", "content": "hi"}], tools=chat.tools
        ) as stream:
            more = chat.turn(stream.get_final_completion())
        assert more[1] == {"role": "tool", "tool_call_id": "call_1_0", "content": "20"}
        with opened.responses.stream(model="loopback", input="hi", tools=responses.tools) as events:
            items = responses.turn(events.get_final_response())
        assert items[-1] == {"type": "function_call_output", "call_id": "call_2_0", "output": "40"}
        opened.chat.completions.create(model="loopback", messages=[{"role": "user", "content": "hi"}, *more])
        opened.responses.create(model="loopback", input=[{"role": "user", "content": "hi"}, *items])
    assert wire.refused == []


def test_collect_makes_the_clients_own_answer(mode: CodeMode) -> None:
    chat, responses = OpenAIChat(mode), OpenAIResponses(mode)
    heard: list[str] = []
    both = Turn("Wait a moment.", (SUM, Use("delete_file", {"path": "ä"})))
    with served(both, both) as (_, opened):
        stream = opened.chat.completions.create(
            model="loopback", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        completion = chat.collect(stream, heard.append)
        response = responses.collect(opened.responses.create(model="loopback", input="hi", stream=True))
    assert isinstance(completion, chat_types.ChatCompletion) and isinstance(response, response_types.Response)
    assert "".join(heard) == completion.choices[0].message.content == response.output_text == "Wait a moment."
    assert completion.choices[0].finish_reason == "tool_calls"
    calls = completion.choices[0].message.tool_calls or []
    assert [(call.id, call.function.name) for call in calls if call.type == "function"] == [
        ("call_1_0", "lua_repl"),
        ("call_1_1", "delete_file"),
    ]
    assert completion.usage is not None and completion.usage.total_tokens == 110
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call", "function_call"]


def test_an_asynchronous_listener(mode: CodeMode) -> None:
    heard: list[str] = []

    async def listen(text: str) -> None:
        heard.append(text)

    async def main() -> str:
        with serve(Scripted(Say("Hello there."))) as wire:
            async with aclient(wire) as opened:
                return (await OpenAIChat(mode).arun("hi", model="loopback", client=opened, on_text=listen)).text

    assert asyncio.run(main()) == "Hello there."
    assert heard == ["Hello t", "here."]


def test_a_server_that_takes_only_short_descriptions(box: Sandbox) -> None:
    with served(SUM, Say("ok"), longest_description=1024) as (wire, opened):
        with pytest.raises(openai.BadRequestError, match="string too long"):
            OpenAIChat(box).run("hi", model="loopback", client=opened)
        with OpenAIChat(box, description_chars=1024) as agent:
            agent.run("hi", model="loopback", client=opened)
            shown = wire.seen[0].tools["lua_repl"]
            assert len(shown["description"]) <= 1024
            head = shown["description"].removesuffix("\n(Continued in the description of source_code.)")
            rest = shown["parameters"]["properties"]["source_code"]["description"]
            assert f"{head}\n{rest.removeprefix('The script.')}".replace("\n\n", "\n") == (agent.mode.description)


def test_tools_and_system_messages_of_ones_own(mode: CodeMode) -> None:
    own: Any = {"type": "function", "function": {"name": "mine", "parameters": {"type": "object", "properties": {}}}}
    with served(Use("mine"), Say("ok")) as (wire, opened):
        messages: list[Any] = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "hi"}]
        done = OpenAIChat(mode).run(messages, model="loopback", client=opened, tools=[own], temperature=0.5)
    assert list(wire.seen[0].tools) == ["lua_repl", "delete_file", "broken", "meet", "mine"]
    assert wire.seen[0].system == f"Be brief.\n\n{mode.system_prompt}"
    assert wire.seen[0].body["temperature"] == 0.5
    assert done.replies[0].text.startswith("error: unknown tool 'mine'")


@pytest.mark.parametrize("adapter", [OpenAIChat, OpenAIResponses])
def test_the_providers_errors_are_raised(adapter: Any, mode: CodeMode) -> None:
    with served() as (_, opened), pytest.raises(openai.InternalServerError, match="the script of this model is over"):
        adapter(mode).run("hi", model="loopback", client=opened)
    assert len(mode.conversations) == 0


def test_a_stream_that_ends_too_early(mode: CodeMode) -> None:
    with pytest.raises(MoonboxError, match="the stream ended before the response was complete"):
        OpenAIResponses(mode).collect([])


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        (  # every call whole, all at index 0
            [
                [{"index": 0, "id": "a", "function": {"name": "x", "arguments": "{}"}}],
                [{"index": 0, "id": "b", "function": {"name": "y", "arguments": "{}"}}],
            ],
            [("a", "x", "{}"), ("b", "y", "{}")],
        ),
        (  # no ids
            [
                [{"index": 0, "function": {"name": "x", "arguments": '{"k"'}}],
                [{"index": 0, "function": {"arguments": ":1}"}}, {"index": 1, "function": {"name": "y"}}],
            ],
            [("call_0", "x", '{"k":1}'), ("call_1", "y", None)],
        ),
        (  # the id repeated in each delta, the pieces of two calls mixed
            [
                [{"index": 0, "id": "a", "function": {"name": "x", "arguments": "{"}}],
                [{"index": 1, "id": "b", "function": {"name": "y", "arguments": "{"}}],
                [{"index": 0, "id": "a", "function": {"name": "x", "arguments": "}"}}],
                [{"index": 1, "id": "b", "function": {"name": "y", "arguments": "}"}}],
            ],
            [("a", "x", "{}"), ("b", "y", "{}")],
        ),
        (  # what else belongs to a call, repeated in each delta
            [
                [{"index": 0, "id": "a", "extra": "sig", "function": {"name": "x", "arguments": "{"}}],
                [{"index": 0, "id": "a", "extra": "sig", "function": {"arguments": "}"}}],
            ],
            [("a", "x", "{}")],
        ),
    ],
)
def test_deltas_of_other_servers(mode: CodeMode, deltas: list[Any], expected: list[Any]) -> None:
    chunks = [
        chat_types.ChatCompletionChunk.construct(
            id="1", choices=[{"index": 0, "delta": {"tool_calls": calls}}], model="m"
        )
        for calls in deltas
    ]
    whole = OpenAIChat(mode).collect(chunks)
    calls: Any = whole.choices[0].message.tool_calls
    assert [(call.id, call.function.name, call.function.arguments) for call in calls] == expected
    assert {getattr(call, "extra", "sig") for call in calls} == {"sig"}


def test_a_message_without_a_name_gets_none(mode: CodeMode) -> None:
    deltas: list[Any] = [{"name": None, "content": "Hi"}, {"name": "", "content": "."}]
    agent = OpenAIChat(mode)
    whole = agent.collect([{"choices": [{"index": 0, "delta": delta}]} for delta in deltas])
    assert agent.assistant_messages(whole) == [{"role": "assistant", "content": "Hi."}]


def test_what_servers_add_to_a_message_goes_back_to_them(mode: CodeMode) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "lua_repl", "arguments": '{"source_code": "1"}'}}
    extra = {"google": {"thought_signature": "c2ln"}}
    message = {"role": "assistant", "reasoning_content": "Hm.", "tool_calls": [{**call, "extra_content": extra}]}
    answer = chat_types.ChatCompletion.construct(
        choices=[{"index": 0, "finish_reason": "tool_calls", "message": message}]
    )
    said: Any = OpenAIChat(mode).turn(answer)[0]
    assert said["reasoning_content"] == "Hm."
    assert said["tool_calls"][0]["extra_content"] == extra


def test_the_outcome_counts_tokens_and_reads_well(mode: CodeMode) -> None:
    with (
        served(Use("lua_repl", {"source_code": "return 1"}), Say("It is 1.")) as (_, opened),
        OpenAIChat(mode) as agent,
    ):
        done = agent.run("How many?", client=opened, model="loopback")
    assert done.tokens.input > 0 and done.tokens.output > 0
    counts = f"{done.tokens.input:,} + {done.tokens.output:,} tokens"
    assert repr(done) == f"<Outcome 'It is 1.', finished, 1 reply, {counts}>"
