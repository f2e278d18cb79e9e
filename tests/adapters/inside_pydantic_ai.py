"""Pydantic AI, run in an environment of its own: its agents against OpenAI's wire formats."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import openai
import pytest
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from wire import Turn

from moonbox.adapters.pydantic_ai import PydanticAI
from tests.adapters.loops import CUT, SUM, Loop, Say, Scripted, Use, answers, awaited, closed_later, serve

if TYPE_CHECKING:
    from moonbox import CodeMode


def model(wire: Any, kind: Any = OpenAIChatModel) -> Any:
    client = closed_later(openai.AsyncOpenAI(base_url=f"{wire.url}/v1", api_key="loopback", max_retries=0))
    return kind("loopback", provider=OpenAIProvider(openai_client=client))


def run(agent: Agent[Any, Any], prompt: str, form: str, **options: Any) -> Any:
    async def stream() -> Any:
        async with agent.run_stream(prompt, **options) as result:
            await result.get_output()
            return result

    match form:
        case "sync":
            return agent.run_sync(prompt, **options)
        case "async":
            return awaited(agent.run(prompt, **options))
        case _:
            return awaited(stream())


class TestChat(Loop):
    adapter = PydanticAI
    explains_unknown = False
    kind: Any = OpenAIChatModel

    def ask(
        self, adapter: Any, wire: Any, prompt: str, *, form: str, conversation: str | None = None, system: str = ""
    ) -> str:
        agent = Agent(model(wire, self.kind), toolsets=[adapter.toolset], instructions=system or None)
        result = run(agent, prompt, form, conversation_id=conversation)
        return str(result.response.text)

    def heard(self, text: str) -> str:
        return json.dumps({"error": text}, ensure_ascii=False, separators=(",", ":"))


class TestResponses(TestChat):
    kind = OpenAIResponsesModel
    forms = ("async",)


def test_calls_that_are_not_json(mode: CodeMode) -> None:
    """However often: they are not counted as retries."""
    wrong = [Use("lua_repl", "{not json"), Use("lua_repl", "[1]"), Use("lua_repl", '"x"'), Use("delete_file", "[1]")]
    with serve(Scripted(*wrong, [*wrong, SUM], Say("Sorry."))) as wire:
        result = run(Agent(model(wire), toolsets=[PydanticAI(mode).toolset]), "Make mistakes.", "async")
    assert result.output == "Sorry."
    texts = [json.loads(text)["error"] if text.startswith("{") else text for text in answers(wire.seen[-1])]
    code = 'error: lua_repl takes one argument: {"source_code": "<script>"}; the arguments were not a JSON object'
    delete = "error: the arguments of delete_file must be a JSON object, not [1]"
    assert texts == [code, code, code, delete] * 2 + ["20"]
    assert wire.refused == []


def test_a_call_that_was_cut_off_is_not_run(mode: CodeMode) -> None:
    first = Use("lua_repl", {"source_code": "x = 1 return x"})
    cut = Use("lua_repl", {"source_code": "x = 2 -- and then"})
    turns = [Turn(uses=(first, cut), cut=True), Use("lua_repl", {"source_code": "x"}), Say("ok")]
    with serve(Scripted(*turns)) as wire:
        run(Agent(model(wire), toolsets=[PydanticAI(mode).toolset]), "Write much.", "async")
    assert answers(wire.seen[-1]) == ["1", json.dumps({"error": CUT}, separators=(",", ":")), "1"]


def test_a_message_history_goes_on_with_its_state(mode: CodeMode) -> None:
    with serve(Scripted(SUM, Say("20"), SUM, Say("40"))) as wire:
        agent = Agent(model(wire), toolsets=[PydanticAI(mode).toolset])
        first = run(agent, "Count.", "async")
        run(agent, "And again.", "async", message_history=first.all_messages())
    assert answers(wire.seen[-1]) == ["20", "40"]


def test_failed_calls_are_marked(mode: CodeMode) -> None:
    with serve(Scripted([SUM, Use("broken")], Say("ok"))) as wire:
        result = run(Agent(model(wire), toolsets=[PydanticAI(mode).toolset]), "Go.", "async")
    parts = [part for message in result.all_messages() for part in message.parts if part.part_kind == "tool-return"]
    assert [(part.tool_name, part.outcome) for part in parts] == [("lua_repl", "success"), ("broken", "failed")]


def test_tools_that_change_are_shown_as_they_are_now() -> None:
    from moonbox import Toolbox

    def double(x: int) -> int:
        """Double it."""
        return 2 * x

    box = Toolbox([])

    def grow(seen: Any) -> Say | Use:
        box.add(double)
        return Use("lua_repl", {"source_code": "return 1"})

    with PydanticAI(box) as adapter, serve(Scripted(grow, Say("ok"))) as wire:
        run(Agent(model(wire), toolsets=[adapter.toolset]), "Go.", "async")
    described = [seen.tools["lua_repl"]["description"] for seen in wire.seen]
    assert ["- double(x: integer) -> integer" in text for text in described] == [False, True]


@pytest.mark.parametrize("prefix", ["", "box"])
def test_beside_other_tools_and_prefixed(mode: CodeMode, prefix: str) -> None:
    toolset = PydanticAI(mode).toolset
    name = f"{prefix}_lua_repl" if prefix else "lua_repl"
    with serve(Scripted([Use(name, SUM.arguments), Use("greet", {"name": "Ada"})], Say("ok"))) as wire:
        agent = Agent(model(wire), toolsets=[toolset.prefixed(prefix) if prefix else toolset])

        @agent.tool_plain
        def greet(name: str) -> str:
            """Greet somebody."""
            return f"Hello, {name}."

        run(agent, "Go.", "async")
    assert answers(wire.seen[-1]) == ["20", "Hello, Ada."]


def test_two_adapters_of_one_agent_give_their_own_instructions() -> None:
    with PydanticAI(name="one") as one, PydanticAI(name="two") as two, serve(Scripted(Say("ok"))) as wire:
        run(Agent(model(wire), toolsets=[one.toolset], capabilities=[two.capability]), "Go.", "async")
    assert wire.seen[0].system == "Use `one` to compute.\nScripts for `two` call the tools."


def test_an_image_is_binary_content() -> None:
    from pydantic_ai.messages import BinaryContent, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from moonbox import Media, Tool

    picture = Media(b"\x89PNG\r\n\x1a\npixels", name="chart.png")
    seen: list[Any] = []

    def model(messages: Any, info: Any) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("lua_repl", {"source_code": "show(tools.chart{}) return 1"})])
        seen.extend(messages[-1].parts)
        return ModelResponse(parts=[TextPart("Nice.")])

    with PydanticAI([Tool.from_schema(name="chart", call=lambda given: picture)]) as box:
        assert Agent(FunctionModel(model), toolsets=[box.toolset]).run_sync("Draw.").output == "Nice."
    text, image = seen[0].content
    assert image == BinaryContent(data=picture.data, media_type="image/png")
    assert picture.base64 not in text
