"""LangChain and LangGraph, run in an environment of their own: their agents against OpenAI's wire format."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from wire import Turn

from moonbox import CodeMode, Media, Sandbox, Tool, Toolbox
from moonbox.adapters.langchain import LangChain
from tests.adapters.loops import CUT, SUM, Loop, Say, Scripted, Use, answers, awaited, serve


def model(wire: Any, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(base_url=f"{wire.url}/v1", api_key="loopback", model="loopback", max_retries=0, **options)


def run(agent: Any, prompt: str, form: str, config: dict[str, Any] | None = None) -> list[Any]:
    """The messages in the end."""
    given = {"messages": [("user", prompt)]}
    match form:
        case "sync":
            return list(agent.invoke(given, config)["messages"])
        case "async":
            return list(awaited(agent.ainvoke(given, config))["messages"])
        case _:
            return list(list(agent.stream(given, config, stream_mode="values"))[-1]["messages"])


def thread(conversation: str | None) -> dict[str, Any] | None:
    return None if conversation is None else {"configurable": {"thread_id": conversation}}


class TestAgent(Loop):
    """`create_agent` with the middleware."""

    adapter = LangChain

    def ask(
        self, adapter: Any, wire: Any, prompt: str, *, form: str, conversation: str | None = None, system: str = ""
    ) -> str:
        made = create_agent(model(wire), middleware=[adapter.middleware], system_prompt=system or None)
        return str(run(made, prompt, form, thread(conversation))[-1].content)


class TestGraph(Loop):
    """A graph of one's own, with `bind_tools` and `ToolNode`."""

    adapter = LangChain
    every_form = False
    explains_unknown = False

    def ask(
        self, adapter: Any, wire: Any, prompt: str, *, form: str, conversation: str | None = None, system: str = ""
    ) -> str:
        bound = model(wire).bind_tools(adapter.tools)
        words = SystemMessage("\n\n".join(part for part in (system, adapter.system_prompt) if part))
        graph = StateGraph(MessagesState)
        graph.add_node("model", lambda state: {"messages": [bound.invoke([words, *state["messages"]])]})
        graph.add_node("tools", ToolNode(adapter.tools))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")
        config = None if conversation == "" else thread(conversation or f"run {len(wire.seen)}")
        return str(run(graph.compile(), prompt, form, config)[-1].content)

    def test_without_a_thread_nothing_is_kept(self, agent: Any, form: str) -> None:
        """Nothing tells one run from another here, and one person's data must not be in another's script."""
        with serve(Scripted(SUM, SUM, Say("20"))) as wire:
            self.ask(agent, wire, "Count.", form=form, conversation="")
        assert answers(wire.seen[-1]) == ["20", "20"]
        assert len(agent.mode.conversations) == 0


def test_calls_that_are_not_json(mode: CodeMode) -> None:
    turns = [Use("lua_repl", "{not json"), [Use("lua_repl", '{"sour'), SUM, Use("delete_file", "{")], Say("Sorry.")]
    for form in ("sync", "async"):
        with serve(Scripted(*turns)) as wire:
            agent = create_agent(model(wire), middleware=[LangChain(mode).middleware])
            messages = run(agent, "Make mistakes.", form)
        assert messages[-1].content == "Sorry."
        wrong = 'error: lua_repl takes one argument: {"source_code": "<script>"}; the arguments were not a JSON object'
        texts = {result.id: result.text for result in wire.seen[-1].results}
        assert (texts["call_1_0"], texts["call_2_0"], texts["call_2_1"]) == (wrong, wrong, "20")
        assert texts["call_2_2"] == "error: the arguments of delete_file must be a JSON object, not '(malformed JSON)'"
        assert wire.refused == []
        assert [message.status for message in messages if isinstance(message, ToolMessage)].count("error") == 3


def test_a_call_that_was_cut_off_is_not_run(mode: CodeMode) -> None:
    first = Use("lua_repl", {"source_code": "x = 1 return x"})
    cut = Use("lua_repl", {"source_code": "x = 2 -- and then"})
    turns = [Turn(uses=(first, cut), cut=True), Turn(uses=(cut,), cut=True), Use("lua_repl", {"source_code": "x"})]
    with serve(Scripted(*turns, Say("ok"))) as wire:
        run(create_agent(model(wire), middleware=[LangChain(mode).middleware]), "Write much.", "sync")
    assert answers(wire.seen[-1]) == ["1", CUT, CUT, "1"]


def test_the_status_of_messages(mode: CodeMode) -> None:
    with serve(Scripted([SUM, Use("broken"), Use("add")], Say("ok"))) as wire:
        messages = run(create_agent(model(wire), middleware=[LangChain(mode).middleware]), "Go.", "sync")
    tools = [message for message in messages if isinstance(message, ToolMessage)]
    assert [(message.name, message.status) for message in tools] == [
        ("lua_repl", "success"),
        ("broken", "error"),
        ("add", "error"),
    ]


def test_the_states_of_runs_end_with_them(mode: CodeMode) -> None:
    with serve(Scripted(SUM, Say("20"), SUM, Say("20"))) as wire:
        agent = create_agent(model(wire), middleware=[LangChain(mode).middleware])
        run(agent, "Count.", "sync")
        run(agent, "Count.", "async")
    assert len(mode.conversations) == 0


def test_threads_and_a_checkpointer(mode: CodeMode) -> None:
    """State goes on with the thread, and the history is stored without anything that cannot be."""
    with serve(Scripted(SUM, Say("20"), SUM, Say("40"))) as wire:
        agent = create_agent(model(wire), middleware=[LangChain(mode).middleware], checkpointer=InMemorySaver())
        run(agent, "Count.", "sync", thread("ada"))
        messages = run(agent, "And again.", "sync", thread("ada"))
    assert [message.content for message in messages if isinstance(message, ToolMessage)] == ["20", "40"]
    assert mode.end("thread-ada")


def test_other_tools_and_middleware_beside_ours(mode: CodeMode) -> None:
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"Hello, {name}."

    with serve(Scripted([SUM, Use("greet", {"name": "Ada"})], Say("ok"))) as wire:
        agent = create_agent(
            model(wire), tools=[greet], middleware=[LangChain(mode, leave_direct=["greet"]).middleware]
        )
        run(agent, "Go.", "sync")
    assert answers(wire.seen[-1]) == ["20", "Hello, Ada."]
    assert list(wire.seen[0].tools) == ["lua_repl", "delete_file", "broken", "meet", "greet"]


def test_a_system_message_of_parts(mode: CodeMode) -> None:
    parts = SystemMessage([{"type": "text", "text": "Be polite."}])
    with serve(Scripted(Say("ok"))) as wire:
        agent = create_agent(model(wire), middleware=[LangChain(mode).middleware], system_prompt=parts)
        run(agent, "Go.", "sync")
    assert wire.seen[0].system == f"Be polite.{mode.system_prompt}"


def test_tools_that_change_are_shown_as_they_are_now() -> None:
    box = Toolbox([])
    with LangChain(box) as adapter, serve(Scripted(Say("ok"), Say("ok"))) as wire:
        agent = create_agent(model(wire), middleware=[adapter.middleware])
        run(agent, "Go.", "sync")

        def double(x: int) -> int:
            """Double it."""
            return 2 * x

        box.add(double)
        run(agent, "Go.", "sync")
    described = [seen.tools["lua_repl"]["description"] for seen in wire.seen]
    assert ["- double(x: integer) -> integer" in text for text in described] == [False, True]


def test_tools_called_by_hand(box: Sandbox) -> None:
    with LangChain(box) as adapter:
        code, delete, *_ = adapter.tools
        assert code.invoke({"source_code": "return 6 * 7"}) == "42"
        assert awaited(delete.ainvoke({"path": "x"})) == "deleted x"
        call = {
            "type": "tool_call",
            "id": "1",
            "name": "lua_repl",
            "args": {"source_code": "x = (x or 0) + 1 return x"},
        }
        kept = [code.invoke(call, {"configurable": {"thread_id": "t"}}).content for _ in range(2)]
        fresh = [code.invoke(call).content for _ in range(2)]
        assert (kept, fresh) == (["1", "2"], ["1", "1"])
        assert len(adapter.mode.conversations) == 1
        wrong = code.invoke({**call, "args": {"source_code": "return nil + 1"}})
        assert (wrong.status, wrong.content.partition(":")[0]) == ("error", "runtime error on line 1")


def test_callbacks_see_the_calls(mode: CodeMode) -> None:
    from langchain_core.callbacks import BaseCallbackHandler

    class Heard(BaseCallbackHandler):
        tools: list[str]

        def __init__(self) -> None:
            self.tools = []

        def on_tool_start(self, serialized: dict[str, Any], input_str: str, **kwargs: Any) -> None:
            self.tools.append(serialized["name"])

    heard = Heard()
    with serve(Scripted(SUM, Use("broken"), Say("ok"))) as wire:
        agent = create_agent(model(wire), middleware=[LangChain(mode).middleware])
        run(agent, "Go.", "sync", {"callbacks": [heard]})
    assert heard.tools == ["lua_repl", "broken"]


def test_a_message_that_is_not_the_models(mode: CodeMode) -> None:
    middleware = LangChain(mode).middleware
    assert middleware.after_model({"messages": [SystemMessage("hi")]}, None) is None
    assert middleware.after_model({"messages": [AIMessage("hi")]}, None) is None


def test_an_image_is_a_content_block() -> None:
    picture = Media(b"\x89PNG\r\n\x1a\npixels", name="chart.png")
    with LangChain([Tool.from_schema(name="chart", call=lambda given: picture)]) as box:
        code = next(item for item in box.tools if item.name == "lua_repl")
        script = {"source_code": "show(tools.chart{}) return 1"}
        message = code.invoke({"name": "lua_repl", "args": script, "id": "1", "type": "tool_call"})
    assert [block["type"] for block in message.content] == ["text", "image"]
    assert message.content[1] == {"type": "image", "base64": picture.base64, "mime_type": "image/png"}
    assert picture.base64 not in message.content[0]["text"]
