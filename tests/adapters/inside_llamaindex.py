"""LlamaIndex, run in an environment of its own: its agents against OpenAI's wire format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent, ToolCallResult
from llama_index.core.base.llms.types import AudioBlock, DocumentBlock, ImageBlock
from llama_index.core.workflow import Context
from llama_index.llms.openai import OpenAIResponses
from llama_index.llms.openai_like import OpenAILike

from moonbox import Media, Tool
from moonbox.adapters.llamaindex import LlamaIndex
from tests.adapters.loops import SUM, Loop, Say, Scripted, Use, answers, awaited, closed_later, serve

if TYPE_CHECKING:
    from moonbox import CodeMode, Sandbox

# The package uses what pydantic has deprecated; a warning of ours is still an error.
pytestmark = pytest.mark.filterwarnings("ignore", "error:::moonbox")


def model(wire: Any) -> OpenAILike:
    return OpenAILike(
        model="loopback",
        api_base=f"{wire.url}/v1",
        api_key="loopback",
        is_chat_model=True,
        is_function_calling_model=True,
        context_window=100_000,
        max_retries=0,
        async_http_client=closed_later(httpx.AsyncClient()),
    )


class TestAgent(Loop):
    adapter = LlamaIndex
    forms = ("async", "stream")
    explains_unknown = False

    def ask(
        self, adapter: Any, wire: Any, prompt: str, *, form: str, conversation: str | None = None, system: str = ""
    ) -> str:
        words = "\n\n".join(part for part in (system, adapter.system_prompt) if part)
        agent = FunctionAgent(llm=model(wire), tools=adapter.tools, system_prompt=words, streaming=form == "stream")

        async def ask() -> str:
            context = self.contexts.setdefault((wire.url, conversation), Context(agent)) if conversation else None
            return str(await agent.run(prompt, ctx=context))

        return str(awaited(ask()))

    contexts: dict[Any, Any] = {}  # noqa: RUF012 - one for each conversation of a test, by its server


def test_a_stored_context_goes_on_with_its_state(mode: CodeMode) -> None:
    async def go(wire: Any) -> None:
        agent = FunctionAgent(llm=model(wire), tools=LlamaIndex(mode).tools)
        first = Context(agent)
        await agent.run("Count.", ctx=first)
        second = Context.from_dict(agent, first.to_dict())
        await agent.run("And again.", ctx=second)

    with serve(Scripted(SUM, Say("20"), SUM, Say("40"))) as wire:
        awaited(go(wire))
    assert answers(wire.seen[-1])[-1] == "40"


def test_outputs_say_whether_they_failed(mode: CodeMode) -> None:
    async def go(wire: Any) -> list[Any]:
        agent = FunctionAgent(llm=model(wire), tools=LlamaIndex(mode).tools)
        handler = agent.run("Go.")
        events = [event async for event in handler.stream_events() if isinstance(event, ToolCallResult)]
        await handler
        return [(event.tool_name, event.tool_output.is_error, event.tool_output.content) for event in events]

    with serve(Scripted(SUM, Use("broken"), Say("ok"))) as wire:
        seen = awaited(go(wire))
    broken = "tool error (broken, tool_error): RuntimeError: out of luck"
    assert seen == [("lua_repl", False, "20"), ("broken", True, broken)]


def test_a_workflow_of_agents_shares_the_context(mode: CodeMode) -> None:
    async def go(wire: Any) -> None:
        agent = FunctionAgent(name="clerk", description="Counts.", llm=model(wire), tools=LlamaIndex(mode).tools)
        await AgentWorkflow(agents=[agent], root_agent="clerk").run("Count.")

    with serve(Scripted(SUM, SUM, Say("40"))) as wire:
        awaited(go(wire))
    assert answers(wire.seen[-1]) == ["20", "40"]


def test_an_agent_that_thinks_aloud(mode: CodeMode) -> None:
    """ReAct: calls are text, and the description is part of the prompt."""
    said = Say('Thought: I compute.\nAction: lua_repl\nAction Input: {"source_code": "return 6 * 7"}\n')
    with serve(Scripted(said, Say("Thought: I can answer.\nAnswer: 42"))) as wire:

        async def go() -> str:
            return str(await ReActAgent(llm=model(wire), tools=LlamaIndex(mode).tools).run("6 * 7?"))

        assert awaited(go()) == "42"
    assert "Observation: 42" in wire.seen[-1].prompts[-1]


def test_tools_called_by_hand(box: Sandbox) -> None:
    with LlamaIndex(box) as adapter:
        code, delete, *_ = adapter.tools
        assert code.call(source_code="return 6 * 7").content == "42"
        assert awaited(delete.acall(path="x")).content == "deleted x"
        assert [code(source_code="x = (x or 0) + 1 return x").content for _ in range(2)] == ["1", "1"]
        wrong = code.call("return 1")
        assert (wrong.is_error, wrong.content.partition(":")[0]) == (True, "error")
        assert code.metadata.get_parameters_dict()["required"] == ["source_code"]
        assert len(adapter.mode.conversations) == 0


PNG = Media(b"\x89PNG\r\n\x1a\npixels", name="chart.png")
WAV = Media(b"RIFF....WAVEfmt ", "audio/wav", "voice.wav")
PDF = Media(b"%PDF-1.7 paper", name="paper.pdf")


def media_tools() -> list[Tool]:
    """Tools that return an image, an audio clip and a file."""
    empty = {"type": "object", "properties": {}}
    return [
        Tool.from_schema(name=name, description="", parameters=empty, call=lambda _, medium=medium: medium)
        for name, medium in (("chart", PNG), ("voice", WAV), ("paper", PDF))
    ]


def test_media_are_blocks_of_the_result() -> None:
    with LlamaIndex(media_tools()) as adapter:
        tool = adapter.tools[0]
        script = "show(tools.chart{}) show(tools.voice{}) show(tools.paper{}) return 1"
        output = tool.call(source_code=script)
        text, image, audio, document = output.blocks
        assert (type(image), type(audio), type(document)) == (ImageBlock, AudioBlock, DocumentBlock)
        assert image.resolve_image().read() == PNG.data and image.image_mimetype == "image/png"
        assert audio.resolve_audio().read() == WAV.data and audio.format == "wav"
        assert document.resolve_document().read() == PDF.data and document.document_mimetype == "application/pdf"
        for medium in (PNG, WAV, PDF):
            assert f"[{medium.name}: {medium.type}, {medium.size} bytes]" in text.text
            assert medium.base64 not in text.text


def draw(wire: Any, llm: Any) -> list[dict[str, Any]]:
    """What the provider is sent after a script has returned an image."""

    async def go(adapter: LlamaIndex) -> str:
        return str(await FunctionAgent(llm=llm, tools=adapter.tools, streaming=False).run("Draw."))

    with LlamaIndex(media_tools()) as adapter:
        assert awaited(go(adapter)) == "A chart."
    assert wire.refused == []
    body = wire.seen[-1].body
    return list(body.get("messages") or body["input"])


DRAW = (Use("lua_repl", {"source_code": "return tools.chart{}"}), Say("A chart."))


def test_an_image_reaches_the_model_as_its_own_block() -> None:
    with serve(Scripted(*DRAW)) as wire:
        http = closed_later(httpx.AsyncClient())
        where: dict[str, Any] = {"api_base": f"{wire.url}/v1", "api_key": "loopback", "max_retries": 0}
        sent = draw(wire, OpenAIResponses(model="gpt-4o", strict=True, async_http_client=http, **where))
    (result,) = [item for item in sent if item.get("type") == "function_call_output"]
    text, image = result["output"]
    assert image["image_url"] == PNG.data_uri
    assert '"name":"chart.png"' in text["text"] and PNG.base64 not in text["text"]


def test_chat_completions_have_no_images_in_results_so_that_the_model_reads_the_handle() -> None:
    with serve(Scripted(*DRAW)) as wire:
        sent = draw(wire, model(wire))
    (result,) = [item for item in sent if item["role"] == "tool"]
    assert '"name":"chart.png"' in result["content"] and PNG.base64 not in result["content"]
