"""smolagents, run in an environment of its own: its agents against OpenAI's wire format."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image  # type: ignore[import-not-found]  # comes with smolagents
from pydantic import BaseModel
from smolagents import CodeAgent, FinalAnswerTool, OpenAIModel, ToolCallingAgent
from smolagents import tool as smolagents_tool

from moonbox import Media, Tool, Toolbox, tool
from moonbox.adapters.smolagents import Smolagents
from moonbox.errors import ClosedError, ToolDefinitionError
from tests.adapters.conformance import SUM, Say, Scripted, Use, serve
from tests.adapters.loops import double, fail, guarded

if TYPE_CHECKING:
    from moonbox import CodeMode, Sandbox


def final(text: str) -> Use:
    return Use("final_answer", {"answer": text})


def agent(adapter: Any, wire: Any, **options: Any) -> ToolCallingAgent:
    model = OpenAIModel("loopback", api_base=f"{wire.url}/v1", api_key="loopback", client_kwargs={"max_retries": 0})
    settings = {"tools": adapter.tools, "instructions": adapter.system_prompt, "verbosity_level": 0, **options}
    return ToolCallingAgent(model=model, **settings)


def observed(agent: Any) -> list[str]:
    """What each step that called a tool was answered, its failures included."""
    steps = [step for step in agent.memory.steps if getattr(step, "tool_calls", None)]
    return [str(step.error) if step.error else step.observations for step in steps]


@pytest.mark.parametrize("stream", [False, True])
def test_three_turns_keep_the_script_state(mode: CodeMode, stream: bool) -> None:
    adapter = Smolagents(mode)
    with serve(Scripted(SUM, SUM, SUM, final("It is 60."))) as wire:
        made = agent(adapter, wire, stream_outputs=stream)
        assert made.run("Count.") == "It is 60."
    assert observed(made)[:3] == ["20", "40", "60"]
    seen = wire.seen[0]
    assert list(seen.tools) == ["lua_repl", "delete_file", "broken", "meet", "final_answer"]
    assert seen.tools["lua_repl"]["description"] == mode.description
    assert seen.tools["lua_repl"]["parameters"]["required"] == ["source_code"]
    assert seen.tools["delete_file"]["parameters"]["required"] == ["path"]
    assert adapter.system_prompt in seen.system
    assert "Observation:\n60" in wire.seen[3].prompts[-1]
    assert wire.refused == []


def test_tools_inside_a_script_and_outside(mode: CodeMode) -> None:
    script = """
        local sum = 0
        for id = 1, 3 do
          for _, item in ipairs(tools.get_expenses{employee_id = id}) do sum = sum + item.amount end
        end
        return sum
    """
    turns = [Use("lua_repl", {"source_code": script}), Use("delete_file", {"path": "a.txt"}), final("Done.")]
    with serve(Scripted(*turns)) as wire:
        made = agent(Smolagents(mode), wire)
        assert made.run("Add up, then delete a.txt.") == "Done."
    assert observed(made)[:2] == ["360", "deleted a.txt"]


def test_parallel_calls(mode: CodeMode) -> None:
    together = [Use("meet", {"name": "a"}), SUM, Use("meet", {"name": "b"})]
    with serve(Scripted(together, SUM, final("ok"))) as wire:
        made = agent(Smolagents(mode), wire)
        made.run("Do it all at once.")
    assert observed(made)[:2] == ["a met\n20\nb met", "40"]


def test_mistakes_are_answered_to_the_model(mode: CodeMode) -> None:
    wrong = [
        Use("lua_repl", {}),
        Use("add", {"a": 1, "b": 2}),
        Use("delete_file", {"pth": "a"}),
        Use("lua_repl", "{not json"),
        Use("lua_repl", "[1]"),
        Use("delete_file", {"path": 1}),
        Use("broken"),
        Use("lua_repl", {"source_code": "return 1 +"}),
        SUM,
    ]
    with serve(Scripted(*wrong, final("Sorry."))) as wire:
        made = agent(Smolagents(mode), wire)
        assert made.run("Make mistakes.") == "Sorry."
    texts = [
        str(step.error) if step.error else step.observations
        for step in made.memory.steps
        if hasattr(step, "observations")
    ]
    assert texts[0] == "Argument source_code is required"
    assert texts[1].startswith("Unknown tool add, should be one of: lua_repl, delete_file, broken, meet")
    assert texts[2] == "Argument pth is not in the tool's input schema"
    code = 'error: lua_repl takes one argument: {"source_code": "<script>"}; the arguments were not a JSON object'
    assert texts[3] == code
    assert texts[4] == "Argument has type 'list' but should be 'string'"
    assert texts[5] == "Argument path has type 'integer' but should be 'string'"
    assert texts[6] == "tool error (broken, tool_error): RuntimeError: out of luck"
    assert texts[7].startswith("syntax error on line 1")
    assert texts[8] == "20"
    assert all("Error:" in wire.seen[number].prompts[-1] for number in (1, 2, 3))


def test_an_agent_is_a_conversation(mode: CodeMode) -> None:
    adapter = Smolagents(mode)
    with serve(Scripted(SUM, final("20"), SUM, final("40"), SUM, final("20"))) as wire:
        ada, bob = agent(adapter, wire), agent(adapter, wire)
        ada.run("Count.")
        ada.run("And again.", reset=False)
        bob.run("Count.")
    assert observed(ada)[::2] == ["20", "40"]
    assert observed(bob)[0] == "20"


def test_a_conversation_by_its_name(mode: CodeMode) -> None:
    adapter = Smolagents(mode)
    with serve(Scripted(SUM, final("20"), SUM, final("40"))) as wire:
        for expected in ("20", "40"):
            made = agent(adapter, wire, tools=adapter.tools_for("ada"))
            made.run("Count.")
            assert observed(made)[0] == expected
    assert mode.end("ada")


class Node(BaseModel):
    """One of a tree."""

    x: int
    kids: list[Node] = []


@tool(policy="direct")
def odd(
    node: Node,
    some: int | None = None,
    both: float | str = 1.0,
    maybe: Node | None = None,
    rest: dict[str, int] | list[int] | None = None,
) -> str:
    """Takes odd things."""
    return f"{node.x} {some} {both} {maybe} {rest}"


def test_schemas_in_the_form_of_smolagents() -> None:
    given = {"node": {"x": 1, "kids": [{"x": 2}]}, "both": 5, "some": None, "rest": {"a": 1}}
    with Smolagents([odd]) as adapter, serve(Scripted(Use("odd", given), final("ok"))) as wire:
        made = agent(adapter, wire)
        made.run("Go.")
    assert observed(made)[0] == "1 None 5.0 None {'a': 1}"
    parameters = wire.seen[0].tools["odd"]["parameters"]
    assert parameters["required"] == ["node"]
    types = {name: part["type"] for name, part in parameters["properties"].items()}
    assert types == {
        "node": "object",
        "some": ["integer", "null"],
        "both": ["number", "string", "integer"],
        "maybe": ["null", "object"],
        "rest": ["array", "null", "object"],
    }
    assert parameters["properties"]["node"]["properties"]["kids"]["items"]["properties"]["x"] == {"type": "integer"}
    assert "$ref" not in str(parameters)


def test_types_that_refer_to_each_other_stay_small() -> None:
    names = [f"T{number}" for number in range(30)]
    everything = {name: {"$ref": f"#/$defs/{name}"} for name in names}
    schema = {
        "type": "object",
        "properties": {"one": everything["T0"], "other": {"type": "string"}},
        "$defs": {name: {"type": "object", "properties": everything} for name in names},
    }
    many = Tool.from_schema(name="many", description="", parameters=schema, call=lambda _: 1, policy="direct")
    with Smolagents([many]) as adapter:
        inputs = next(made.inputs for made in adapter.tools if made.name == "many")
    assert list(inputs["one"]["properties"]) == names
    assert inputs["other"]["type"] == "string"
    assert len(str(inputs)) < 50_000


def test_names_that_are_no_identifiers() -> None:
    tools = [
        Tool.from_schema(name=name, parameters={}, call=lambda given, name=name: name, policy="direct")
        for name in ("a-b", "a_b", "class", "2fa code")
    ]
    uses = [Use(name) for name in ("a_b", "a_b_2", "class_", "_2fa_code")]
    with Smolagents(Toolbox(tools)) as adapter, serve(Scripted(uses, final("ok"))) as wire:
        made = agent(adapter, wire)
        made.run("Go.")
    assert observed(made)[0] == "a-b\na_b\nclass\n2fa code"


def test_a_code_agent_calls_it_like_any_tool(mode: CodeMode) -> None:
    said = Say("Thought: I compute.\n<code>\nfinal_answer(lua_repl(source_code='return 6 * 7'))\n</code>")
    with serve(Scripted(said)) as wire:
        model = OpenAIModel("loopback", api_base=f"{wire.url}/v1", api_key="loopback")
        assert CodeAgent(tools=Smolagents(mode).tools, model=model, verbosity_level=0).run("6 * 7?") == "42"


def test_asynchronous_tools_and_a_loop_around(mode: CodeMode) -> None:
    """The agent blocks; inside a loop it belongs into a thread."""

    @tool
    async def later(x: int) -> int:
        """Double it, later."""
        return 2 * x

    use = Use("lua_repl", {"source_code": "return tools.later{x = 21}"})
    with Smolagents([later]) as adapter, serve(Scripted(use, lambda seen: final("ok"))) as wire:
        made = agent(adapter, wire)
        assert asyncio.run(asyncio.to_thread(made.run, "Go.")) == "ok"
    assert observed(made)[0] == "42"


def test_what_it_made_itself_is_closed(box: Sandbox) -> None:
    with Smolagents() as adapter:
        code = adapter.tools[0]
        assert code(source_code="6 * 7") == "42"
        assert [code(source_code="x = (x or 0) + 1 return x") for _ in range(2)] == ["1", "2"]
    with pytest.raises(ClosedError):
        code(source_code="1")
    with Smolagents(box, mode="never") as adapter:
        assert [made.name for made in adapter.tools] == ["add", "get_expenses", "delete_file", "broken", "meet"]
        assert adapter.system_prompt == ""
    assert box.run("return 1").value == 1


def picture() -> Media:
    return Media.from_picture(Image.new("RGB", (3, 2), "red"))


def media_tools() -> list[Tool]:
    """Tools that return an image and a file."""
    empty = {"type": "object", "properties": {}}
    return [
        Tool.from_schema(name=name, description="", parameters=empty, call=lambda _, medium=medium: medium)
        for name, medium in (("chart", picture()), ("paper", Media(b"%PDF-1.7 paper", name="paper.pdf")))
    ]


@pytest.mark.parametrize("shows", [True, False])
def test_media_are_described_and_images_shown_with_the_step(shows: bool) -> None:
    turns = [Use("lua_repl", {"source_code": "show(tools.paper{}) return tools.chart{}"}), final("A chart.")]
    with serve(Scripted(*turns)) as wire, Smolagents(media_tools()) as adapter:
        made = agent(adapter, wire, step_callbacks=[adapter.show_images] if shows else [])
        assert made.run("Draw.") == "A chart."
    assert wire.refused == []
    text = observed(made)[0]
    assert (
        '"name":"image.png","size":73,"type":"image/png"' in text and "[paper.pdf: application/pdf, 14 bytes]" in text
    )
    assert picture().base64 not in text
    messages = wire.seen[-1].body["messages"]
    parts = [part for message in messages if isinstance(message["content"], list) for part in message["content"]]
    images = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    assert [url.partition(",")[0] for url in images] == ["data:image/png;base64"] * shows
    assert not any(picture().base64 in part["text"] for part in parts if part["type"] == "text")


def test_images_are_shown_to_the_agent_that_asked_for_them() -> None:
    chart = Use("lua_repl", {"source_code": "return tools.chart{}"})
    with serve(Scripted(chart, final("A chart."))) as wire, Smolagents(media_tools()) as adapter:
        asking = agent(adapter, wire)  # does not show them
        assert asking.run("Draw.") == "A chart."
        with serve(Scripted(SUM, final("20."))) as other:
            another = agent(adapter, other, step_callbacks=[adapter.show_images])
            assert another.run("Count.") == "20."
    assert not any(getattr(step, "observations_images", None) for step in another.memory.steps)


def test_an_image_that_cannot_be_read_is_left_out() -> None:
    drawing = Tool.from_function(lambda: Media(b"<svg/>", "image/svg+xml", "a.svg"), name="chart")
    turns = [Use("lua_repl", {"source_code": "return tools.chart{}"}), final("A chart.")]
    with serve(Scripted(*turns)) as wire, Smolagents([drawing]) as adapter:
        made = agent(adapter, wire, step_callbacks=[adapter.show_images])
        assert made.run("Draw.") == "A chart."
    assert "a.svg" in observed(made)[0]


def test_the_tools_of_an_agent_behind_code_mode() -> None:
    script = "local ok, problem = pcall(tools.fail, {x = 1}) return {tools.double{x = 21}, problem.message}"
    own = [*map(smolagents_tool, (double, fail, guarded)), FinalAnswerTool()]
    with (
        Smolagents(leave_direct=["gu*"]) as adapter,
        serve(Scripted(Use("lua_repl", {"source_code": script}), final("Done."))) as wire,
    ):
        made = agent(adapter, wire, tools=adapter.hiding(own))
        assert made.run("Go.") == "Done."
        with pytest.raises(ToolDefinitionError, match=r"Smolagents\(…\).hiding\(\[…\]\)"):
            Smolagents(own[:1])
    assert observed(made)[0] == '[42,"ValueError: no luck"]'
    assert list(wire.seen[0].tools) == ["lua_repl", "guarded", "final_answer"]
