"""Google GenAI: its own client against the wire format of generateContent."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.adapters.google import GoogleGenAI
from moonbox.errors import MoonboxError
from tests.adapters.conformance import SUM, Conformance, Provider, Say, Scripted, Turn, Use, serve
from tests.lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google import genai
    from google.genai import types

    from moonbox import CodeMode
else:
    genai = lazy("google.genai")
    types = lazy("google.genai.types")


def client(wire: Any) -> genai.Client:
    plain = {"verify": False}  # reading certificates would be most of a test's time
    options = types.HttpOptions(base_url=wire.url, client_args=plain, async_client_args=plain)
    return genai.Client(api_key="loopback", http_options=options)


@contextlib.contextmanager
def served(*turns: Any) -> Iterator[tuple[Any, genai.Client]]:
    with serve(Scripted(*turns)) as wire, contextlib.closing(client(wire)) as opened:
        yield wire, opened


REASONS = ("STOP", "MAX_TOKENS")


def ended(reason: str) -> dict[str, Any]:
    return {"content": {"role": "model"}, "finish_reason": reason}


class TestGenerateContent(Conformance):
    provider = Provider(
        GoogleGenAI,
        client,
        client,
        error_mark=True,
        has_clients=False,
        environment=lambda wire: {
            "GOOGLE_API_KEY": "from-the-environment",
            "GOOGLE_GEMINI_BASE_URL": wire.url,
        },
        calls=lambda answer: answer.function_calls,
        result=lambda id, text: types.Part(
            function_response=types.FunctionResponse(id=id, name="lua_repl", response={"output": text})
        ),
        empty=lambda: [
            types.GenerateContentResponse.model_validate(answer)
            for answer in ({}, {"candidates": [{}]}, *({"candidates": [ended(reason)]} for reason in REASONS))
        ],
    )


def test_a_chat_of_the_client(mode: CodeMode) -> None:
    agent = GoogleGenAI(mode)
    with served(SUM, [SUM, SUM], Say("60")) as (wire, opened):
        config = types.GenerateContentConfig(tools=list(agent.tools), system_instruction=agent.system_prompt)
        chat = opened.chats.create(model="loopback", config=config)
        response = chat.send_message("Count.")
        while parts := agent.handle_all(response):
            response = chat.send_message(list(parts))
    assert response.text == "60"
    assert [result.text for result in wire.seen[-1].results] == ["20", "40", "60"]


def test_collect_makes_the_clients_own_answer(mode: CodeMode) -> None:
    agent = GoogleGenAI(mode)
    heard: list[str] = []
    turn = Turn("Wait a moment.", (SUM, Use("delete_file", {"path": "ä"})))
    with served(turn) as (_, opened):
        stream = opened.models.generate_content_stream(model="loopback", contents="hi")
        whole = agent.collect(stream, heard.append)
    assert isinstance(whole, types.GenerateContentResponse)
    assert "".join(heard) == "Wait a moment."
    assert [(call.name, call.args) for call in whole.function_calls or ()] == [
        ("lua_repl", SUM.arguments),
        ("delete_file", {"path": "ä"}),
    ]
    assert agent.assistant_messages(whole)[0].parts is not None
    assert whole.usage_metadata is not None and whole.usage_metadata.total_token_count == 110


def test_a_config_of_ones_own(mode: CodeMode) -> None:
    own = types.Tool(function_declarations=[types.FunctionDeclaration(name="mine", description="Mine.")])
    configs: list[Any] = [
        types.GenerateContentConfig(temperature=0.5, system_instruction="Be brief.", tools=[own]),
        {"temperature": 0.5, "system_instruction": "Be brief.", "tools": [own]},
    ]
    for config in configs:
        with served(Say("ok")) as (wire, opened):
            GoogleGenAI(mode).run("hi", model="loopback", client=opened, system="And kind.", config=config)
        seen = wire.seen[0]
        assert seen.system == f"Be brief.\n\nAnd kind.\n\n{mode.system_prompt}"
        assert list(seen.tools) == ["lua_repl", "delete_file", "broken", "meet", "mine"]
        assert seen.body["generationConfig"] == {"temperature": 0.5}
    assert configs[0].tools == [own]


def test_a_client_of_its_own_is_closed(mode: CodeMode, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    close = genai.client.AsyncClient.aclose

    async def aclose(opened: Any) -> None:
        closed.append("awaited")
        await close(opened)

    monkeypatch.setattr(genai.client.AsyncClient, "aclose", aclose)
    with serve(Scripted(Say("ok"))) as wire:
        monkeypatch.setenv("GOOGLE_API_KEY", "loopback")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", wire.url)

        async def main() -> None:
            assert (await GoogleGenAI(mode).arun("hi", model="loopback")).text == "ok"
            assert closed == ["awaited"]

        asyncio.run(main())


def test_a_malformed_call_is_asked_for_again(mode: CodeMode) -> None:
    malformed = {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "content": {"role": "model"}}]}
    agent = GoogleGenAI(mode)
    more = agent.turn(types.GenerateContentResponse.model_validate(malformed))
    assert [(content.role, [part.text for part in content.parts or ()]) for content in more] == [
        (
            "user",
            ["Your last function call was malformed and was not run. Write it again as a plain call of one function."],
        )
    ]
    with served(Say("ok")) as (wire, opened):
        contents: list[Any] = ["hi", *more]
        opened.models.generate_content(model="loopback", contents=contents)
    assert wire.refused == []


def test_streamed_arguments_are_put_together(mode: CodeMode) -> None:
    def chunk(*calls: dict[str, Any], reason: str | None = None) -> types.GenerateContentResponse:
        parts = [{"function_call": call} for call in calls]
        candidate = {"content": {"role": "model", "parts": parts}, "finish_reason": reason}
        return types.GenerateContentResponse.model_validate({"candidates": [candidate]})

    chunks = [
        chunk({"id": "1", "name": "lua_repl", "will_continue": True}),
        chunk(
            {
                "partial_args": [{"json_path": "$.source_code", "string_value": "return ", "will_continue": True}],
                "will_continue": True,
            }
        ),
        chunk({"partial_args": [{"json_path": "$.source_code", "string_value": "6 * 7"}], "will_continue": True}),
        chunk({}),
        chunk(
            {
                "id": "2",
                "name": "delete_file",
                "partial_args": [
                    {"json_path": "$.path", "string_value": "a"},
                    {"json_path": "$.deep.list[1]['key']", "number_value": 2},
                    {"json_path": "$.flag", "bool_value": False},
                    {"json_path": "$.huge[999999999]", "bool_value": False},
                    {"json_path": "nowhere", "bool_value": False},
                ],
            },
            reason="STOP",
        ),
    ]
    agent = GoogleGenAI(mode)
    whole = agent.collect(chunks)
    assert [(call.id, call.name, call.args) for call in whole.function_calls or ()] == [
        ("1", "lua_repl", {"source_code": "return 6 * 7"}),
        ("2", "delete_file", {"path": "a", "deep": {"list": [None, {"key": 2.0}]}, "flag": False}),
    ]
    answered = agent.handle_all(whole)[0].function_response
    assert answered is not None and answered.response == {"output": "42"}
    with pytest.raises(MoonboxError, match="the stream ended before the answer was complete"):
        agent.collect(chunks[:3])
