"""LiteLLM, run in an environment of its own: its completions against three providers' wire formats."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import litellm
import pytest

from moonbox.adapters.litellm import LiteLLM
from tests.adapters.conformance import SUM, Conformance, Provider, Say, Scripted, Turn, Use, serve

if TYPE_CHECKING:
    from moonbox import CodeMode


class TestOpenAI(Conformance):
    provider = Provider(
        LiteLLM,
        options=lambda wire: {"model": "openai/loopback", "api_base": f"{wire.url}/v1", "api_key": "loopback"},
        has_clients=False,
    )


class TestAnthropic(Conformance):
    every_form = False
    provider = Provider(
        LiteLLM,
        options=lambda wire: {"model": "anthropic/loopback", "api_base": wire.url, "api_key": "loopback"},
        error_mark=False,  # the package has no way to say it
        has_clients=False,
    )


@pytest.mark.parametrize("on_text", [None, lambda text: None])
def test_gemini(mode: CodeMode, on_text: Any) -> None:
    with serve(Scripted([SUM, Use("delete_file", {"path": "x"})], SUM, Say("40"))) as wire:
        options: Any = {"model": "gemini/loopback", "api_base": f"{wire.url}/v1beta", "api_key": "loopback"}
        done = LiteLLM(mode).run("Count.", on_text=on_text, **options)
    assert [result.text for result in wire.seen[-1].results] == ["20", "deleted x", "40"]
    assert (done.text, wire.refused) == ("40", [])


def test_streams_are_the_packages_own(mode: CodeMode) -> None:
    agent = LiteLLM(mode)
    heard: list[str] = []
    with serve(Scripted(Turn("Wait.", (SUM,)))) as wire:
        options: dict[str, Any] = {
            "model": "openai/loopback",
            "api_base": f"{wire.url}/v1",
            "api_key": "loopback",
            "messages": [{"role": "user", "content": "hi"}],
            "tools": agent.tools,
        }
        streamed = agent.collect(litellm.completion(**options, stream=True), heard.append)
    assert isinstance(streamed, litellm.ModelResponse)
    assert "".join(heard) == streamed.choices[0].message.content == "Wait."
    assert agent.handle(streamed.choices[0].message.tool_calls[0])["content"] == "20"


def test_a_router(mode: CodeMode) -> None:
    with serve(Scripted(Use("delete_file", {"path": "x"}), Say("Gone."), Say("Yes."))) as wire:
        parameters = {"model": "openai/loopback", "api_base": f"{wire.url}/v1", "api_key": "loopback"}
        router = litellm.Router(model_list=[{"model_name": "mine", "litellm_params": parameters}], num_retries=0)
        done = LiteLLM(mode).run("Delete x.", model="mine", client=router)
        again = asyncio.run(LiteLLM(mode).arun("Gone?", model="mine", client=router))
    assert (done.text, done.replies[0].text, again.text) == ("Gone.", "deleted x", "Yes.")


def test_malformed_arguments_are_answered(mode: CodeMode) -> None:
    with serve(Scripted([Use("lua_repl", '{"source_code": '), Use("nothing", "{}")], Say("Sorry."))) as wire:
        options: Any = {"model": "openai/loopback", "api_base": f"{wire.url}/v1", "api_key": "loopback"}
        done = LiteLLM(mode).run("Go.", **options)
    assert done.replies[0].text.endswith("the arguments were not a JSON object")
    assert done.replies[1].text.startswith("error: unknown tool 'nothing'")
    assert done.text == "Sorry."
