"""Anthropic: its own client against the wire format of messages."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.adapters.anthropic import AnthropicMessages
from moonbox.errors import MoonboxError
from tests.adapters.conformance import CUT, SUM, Conformance, Provider, Say, Scripted, Turn, Use, serve
from tests.lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

    import anthropic
    from anthropic.types import MessageParam

    from moonbox import CodeMode
else:
    anthropic = lazy("anthropic")

HELLO: list[MessageParam] = [{"role": "user", "content": "hi"}]


def client(wire: Any) -> anthropic.Anthropic:
    http = anthropic.DefaultHttpxClient(verify=False)  # reading certificates would be most of a test's time
    return anthropic.Anthropic(base_url=wire.url, api_key="loopback", max_retries=0, http_client=http)


def aclient(wire: Any) -> anthropic.AsyncAnthropic:
    http = anthropic.DefaultAsyncHttpxClient(verify=False)
    return anthropic.AsyncAnthropic(base_url=wire.url, api_key="loopback", max_retries=0, http_client=http)


@contextlib.contextmanager
def served(*turns: Any) -> Iterator[tuple[Any, anthropic.Anthropic]]:
    with serve(Scripted(*turns)) as wire, client(wire) as opened:
        yield wire, opened


class TestMessages(Conformance):
    provider = Provider(
        AnthropicMessages,
        client,
        aclient,
        error_mark=True,
        environment=lambda wire: {"ANTHROPIC_BASE_URL": wire.url, "ANTHROPIC_API_KEY": "from-the-environment"},
        calls=lambda answer: [block for block in answer.content if block.type == "tool_use"],
        result=lambda id, text: {"type": "tool_result", "tool_use_id": id, "content": text},
        empty=lambda: [{"role": "assistant", "content": [], "stop_reason": "max_tokens"}],
    )


def test_collect_makes_the_clients_own_message(mode: CodeMode) -> None:
    agent = AnthropicMessages(mode)
    heard: list[str] = []
    turn = Turn("Wait a moment.", (SUM, Use("delete_file", {"path": "ä"})))
    with served(turn, turn) as (_, opened):
        whole = opened.messages.create(model="loopback", max_tokens=100, messages=HELLO)
        stream = opened.messages.create(model="loopback", max_tokens=100, messages=HELLO, stream=True)
        message = agent.collect(stream, heard.append)
    assert isinstance(message, anthropic.types.Message)
    assert "".join(heard) == "Wait a moment."
    assert message.stop_reason == "tool_use"
    kinds = [block.type for block in message.content]
    assert kinds == [block.type for block in whole.content] == ["thinking", "text", "tool_use", "tool_use"]
    first = message.content[0]
    assert first.type == "thinking" and (first.thinking, first.signature) == ("A script does it.", "signed-2")
    last = message.content[3]
    assert last.type == "tool_use" and last.input == {"path": "ä"}
    assert (message.usage.input_tokens, message.usage.output_tokens) == (100, 10)


def test_the_clients_own_stream_helper(mode: CodeMode) -> None:
    agent = AnthropicMessages(mode)
    script = Use("lua_repl", {"source_code": "x = 1"})
    with served(Turn("So.", (SUM,)), Turn(uses=(script,), cut=True), Say("ok")) as (wire, opened):
        options: dict[str, Any] = {"model": "loopback", "max_tokens": 100, "tools": agent.tools}
        with opened.messages.stream(messages=HELLO, **options) as stream:
            more = agent.turn(stream.get_final_message())
        with opened.messages.stream(messages=[*HELLO, *more], **options) as stream:
            final = stream.get_final_message()
        assert final.content[-1].type == "tool_use" and final.content[-1].input == {}
        cut = agent.turn(final)  # the client has made an object of the JSON that was cut off
        opened.messages.create(messages=[*HELLO, *more, *cut], **options)
    assert [result.text for result in wire.seen[-1].results] == ["20", CUT]
    assert wire.refused == []


def test_thinking_goes_back_with_its_signature(mode: CodeMode) -> None:
    with served(SUM, Say("ok")) as (wire, opened):
        AnthropicMessages(mode).run("hi", model="loopback", client=opened, on_text=lambda text: None)
    block = wire.seen[1].body["messages"][1]["content"][0]
    assert block == {"type": "thinking", "thinking": "A script does it.", "signature": "signed-1"}


def test_a_turn_that_paused_goes_on(mode: CodeMode) -> None:
    with served(Turn("Let me see.", paused=True), SUM, Say("20")) as (wire, opened):
        done = AnthropicMessages(mode).run("Count.", model="loopback", client=opened)
    assert done.text == "20"
    assert [message["role"] for message in wire.seen[1].body["messages"]] == ["user", "assistant"]


def test_the_cache_breakpoint(mode: CodeMode) -> None:
    with served(Say("ok")) as (wire, opened):
        AnthropicMessages(mode, cache=True).run("hi", model="loopback", client=opened)
    tools = wire.seen[0].body["tools"]
    assert [tool.get("cache_control") for tool in tools] == [None, None, None, {"type": "ephemeral"}]
    assert AnthropicMessages(mode, cache=True).tools == AnthropicMessages(mode, cache=True).tools


def test_system_blocks_and_max_tokens(mode: CodeMode) -> None:
    blocks: Any = [{"type": "text", "text": "Be brief. ", "cache_control": {"type": "ephemeral"}}]
    with served(Say("ok"), Say("ok")) as (wire, opened):
        agent = AnthropicMessages(mode)
        agent.run("hi", model="loopback", client=opened, system=blocks, max_tokens=77)
        agent.run("hi", model="loopback", client=opened)
    assert wire.seen[0].system == f"Be brief. {mode.system_prompt}"
    assert [seen.body["max_tokens"] for seen in wire.seen] == [77, 8192]


def test_an_empty_answer_ends_a_run(mode: CodeMode) -> None:
    with served(SUM, Say("")) as (_, opened):
        done = AnthropicMessages(mode).run("hi", model="loopback", client=opened)
    assert (done.text, done.finished, done.messages[-1]["role"]) == ("", True, "user")


def test_a_signature_comes_whole(mode: CodeMode) -> None:
    pieces = [
        {"type": "thinking_delta", "thinking": "So"},
        {"type": "thinking_delta", "thinking": "."},
        *({"type": "signature_delta", "signature": signature} for signature in ("first", "last")),
    ]
    events: list[Any] = [
        {"type": "message_start", "message": {"id": "1", "role": "assistant", "content": [], "model": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": piece} for piece in pieces),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    ]
    (block,) = AnthropicMessages(mode).collect(events).content
    assert block.type == "thinking" and (block.thinking, block.signature) == ("So.", "last")


def test_malformed_input_is_answered(mode: CodeMode) -> None:
    events: list[Any] = [
        {"type": "message_start", "message": {"id": "1", "role": "assistant", "content": [], "model": "m"}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "a", "name": "lua_repl", "input": {}},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"so'}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    agent = AnthropicMessages(mode)
    result = agent.handle_all(agent.collect(events))[0]
    wanted = 'error: lua_repl takes one argument: {"source_code": "<script>"}'
    assert result["content"] == f"{wanted}, not {{'malformed': '{{\"so'}}"
    assert result["is_error"] is True
    with pytest.raises(MoonboxError, match="the stream ended before the message was complete"):
        agent.collect(events[:3])


@pytest.mark.parametrize("depth", [100, 300, 490, 600, 900, 5000])
def test_an_input_of_any_depth_is_answered(mode: CodeMode, depth: int) -> None:
    deep: Any = "half \ud83d"
    for _ in range(depth):
        deep = {"a": deep}
    block = {"type": "tool_use", "id": "toolu_1", "name": "lua_repl", "input": {"source_code": deep}}
    answer: Any = {"role": "assistant", "content": [block], "stop_reason": "tool_use"}
    _, told = AnthropicMessages(mode).turn(answer)
    assert told["content"][0]["content"].startswith("error: lua_repl takes one argument")  # type: ignore[index, union-attr, typeddict-item]
