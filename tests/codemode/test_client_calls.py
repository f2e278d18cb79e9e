"""Client-side tools: a script, or the model's own call, waits for the caller's answer."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from moonbox import Answer, CodeMode, Paused, Sandbox, Tool, tool
from moonbox.audit.sinks import MemorySink
from moonbox.errors import ToolDefinitionError, UsageError

PICK = Tool.from_schema(
    name="pick",
    description="Let the user pick one.",
    parameters={
        "type": "object",
        "properties": {"of": {"type": "array", "items": {"type": "string"}}},
        "required": ["of"],
    },
)


@tool
def double(n: int) -> int:
    """Twice."""
    return 2 * n


def code(text: str) -> dict[str, str]:
    return {"source_code": text}


def paused(answer: str) -> Paused:
    assert isinstance(answer, Paused), answer
    return answer


@pytest.fixture(params=["process", "inline"])
def mode(request: pytest.FixtureRequest) -> Any:
    with Sandbox([PICK, double], isolation=request.param) as box, CodeMode(box) as made:
        yield made


def test_a_script_waits_for_the_client(mode: CodeMode) -> None:
    waiting = paused(mode.handle("lua_repl", code("n = 3 local x = tools.pick{of = {'a', 'b'}} return x .. n")))
    assert waiting == "paused: waiting for the client's answer to pick"
    [call] = waiting.calls
    assert (call.tool, call.arguments) == ("pick", {"of": ["a", "b"]})
    assert waiting.resume(["b"]) == "b3"
    assert mode.handle("lua_repl", code("return n")) == "3", "the conversation keeps its state"


def test_several_pauses_and_the_other_calls_of_a_batch(mode: CodeMode) -> None:
    source = """
        local r = parallel{
          function() return tools.pick{of = {'x'}} end,
          function() return tools.double{n = 4} end,
          function() return tools.pick{of = {'y'}} end,
        }
        return r[1], r[2], r[3], tools.pick{of = {'z'}}
    """
    first = paused(mode.handle("lua_repl", code(source)))
    assert [call.arguments["of"] for call in first.calls] == [["x"], ["y"]]
    second = paused(first.resume({first.calls[0].id: "X", first.calls[1].id: Answer.value("Y")}))
    reply = second.reply(["Z"])
    assert reply.run is not None and reply.run.values == ("X", 8, "Y", "Z")
    assert [(call.tool, call.status) for call in reply.run.calls] == [
        ("pick", "ok"),
        ("double", "ok"),
        ("pick", "ok"),
        ("pick", "ok"),
    ]


def test_a_failure_of_the_client_is_an_error_in_the_script(mode: CodeMode) -> None:
    source = "local ok, e = pcall(tools.pick, {of = {'a'}}) return ok, e.code, e.message"
    answer = paused(mode.handle("lua_repl", code(source))).resume(Answer.error("the user left", code="gone"))
    assert answer == '3 values:\n1: false\n2: "gone"\n3: "the user left"'


def test_wrong_arguments_never_reach_the_client(mode: CodeMode) -> None:
    assert "of: expected string[]" in mode.handle("lua_repl", code("local v = 1 return tools.pick{of = v}"))
    assert not isinstance(mode.handle("pick", {"of": 1}), Paused)


def test_a_direct_call_waits_too(mode: CodeMode) -> None:
    with CodeMode(mode.sandbox, keep_visible=["pick"]) as shown:
        waiting = paused(shown.handle("pick", {"of": ["a"]}))
        assert [call.arguments for call in waiting.calls] == [{"of": ["a"]}]
        reply = waiting.reply(["a"])
        assert reply.text == "a" and reply.run is not None
        assert [(call.tool, call.arguments, call.result) for call in reply.run.calls] == [("pick", {"of": ["a"]}, "a")]
        assert paused(shown.handle("pick", {"of": ["a"]})).resume(Answer.error("no")) == (
            "tool error (pick, tool_error): no"
        )
        with pytest.raises(UsageError, match="this call was answered or cancelled before"):
            waiting.resume(["b"])
        given_up = paused(shown.handle("pick", {"of": ["a"]}))
        given_up.cancel()
        with pytest.raises(UsageError, match="this call was answered or cancelled before"):
            given_up.resume(["b"])


def test_answers_must_fit(mode: CodeMode) -> None:
    waiting = paused(mode.handle("lua_repl", code("return tools.pick{of = {'a'}}")))
    for wrong in ([], ["a", "b"], {99: "a"}, "a"):
        with pytest.raises(UsageError, match="give one answer for each of the calls"):
            waiting.resume(wrong)
    assert waiting.resume(["a"]) == "a"
    with pytest.raises(UsageError, match="was resumed or cancelled before"):
        waiting.resume(["a"])


def test_meanwhile_the_conversation_is_busy_and_others_are_not(mode: CodeMode) -> None:
    waiting = paused(mode.handle("lua_repl", code("return tools.pick{of = {'a'}}"), conversation="one"))
    busy = mode.reply("lua_repl", code("return 1"), conversation="one")
    assert busy.is_error
    assert busy.text == (
        "error: an earlier script of this conversation waits for the client's answers; resume it first"
    )
    assert mode.handle("lua_repl", code("return 1"), conversation="two") == "1"
    waiting.cancel()
    assert mode.handle("lua_repl", code("return 2"), conversation="one") == "2"


def test_a_conversation_that_ended_does_not_go_on(mode: CodeMode) -> None:
    waiting = paused(mode.handle("lua_repl", code("return tools.pick{of = {'a'}}"), conversation="one"))
    mode.end("one")
    assert waiting.resume(["a"]) == "error: the conversation was ended while the script waited; its state is lost"
    mode.handle("lua_repl", code("x = 1"), conversation="one")
    assert waiting.reply(["a"]).is_error, "the new conversation of that name is another"


def test_awaited(mode: CodeMode) -> None:
    async def go() -> tuple[str, str]:
        waiting = paused(await mode.ahandle("lua_repl", code("return tools.pick{of = {'a'}}, tools.double{n = 1}")))
        direct = paused(await mode.ahandle("lua_repl", code("return tools.pick{of = {'b'}}"), conversation="b"))
        return await waiting.aresume(["x"]), await direct.aresume(["y"])

    assert asyncio.run(go()) == ('2 values:\n1: "x"\n2: 2', "y")


def test_a_function_that_answers_them() -> None:
    def first(call: Any) -> Any:
        if not call.arguments["of"]:
            raise ValueError("nothing to pick from")
        return call.arguments["of"][0]

    async def later(call: Any) -> Any:
        await asyncio.sleep(0)
        return first(call)

    with Sandbox([PICK], isolation="inline") as box:
        with CodeMode(box, client_calls=first) as mode:
            assert mode.handle("lua_repl", code("return tools.pick{of = {'a', 'b'}}")) == "a"
            assert "nothing to pick from" in mode.handle("lua_repl", code("return tools.pick{of = array{}}"))
            assert mode.reply("lua_repl", code("return tools.pick{of = {'c'}}")).text == "c"
        with CodeMode(box, client_calls=later) as mode:
            assert asyncio.run(mode.ahandle("lua_repl", code("return tools.pick{of = {'a', 'b'}}"))) == "a"
            assert "client_calls is asynchronous" in mode.handle("lua_repl", code("return tools.pick{of = {'a'}}"))
        with pytest.raises(UsageError, match="client_calls must be a function"):
            CodeMode(box, client_calls="pick")  # type: ignore[arg-type]


def test_the_model_sees_it_directly_unless_a_function_answers_it(mode: CodeMode) -> None:
    assert [item.name for item in mode.neutral_definitions()] == ["lua_repl", "pick"]
    assert "pick" in mode.description, "scripts reach it too, where the caller can wait"
    assert paused(mode.handle("pick", {"of": ["a"]})).resume(["a"]) == "a"
    with CodeMode(mode.sandbox, client_calls=lambda call: "b") as answered:
        assert [item.name for item in answered.neutral_definitions()] == ["lua_repl"]


def test_where_nothing_can_wait_the_model_calls_it_directly(mode: CodeMode) -> None:
    source = code("return tools.pick{of = {'a'}}")
    nobody = "this tool is answered by the client, and nothing asks the client here"
    for name, arguments in (("lua_repl", source), ("pick", {"of": ["a"]})):
        reply = mode.reply(name, arguments, pause=False)
        assert reply.is_error and nobody in reply.text and reply.paused is None
    run = mode.sandbox.run(source["source_code"])
    assert run.error is not None and run.error.code == "client_unavailable"
    with CodeMode(mode.sandbox, can_pause=False) as direct:
        assert [item.name for item in direct.neutral_definitions()] == ["lua_repl", "pick"]
        assert "pick" not in direct.description
        assert "call the tool 'pick' directly, outside a script" in direct.handle("lua_repl", source)


def test_a_loop_of_ones_own_answers_with_reply(mode: CodeMode) -> None:
    for name, arguments in (("lua_repl", code("return tools.pick{of = {'a'}}")), ("pick", {"of": ["a"]})):
        reply = mode.reply(name, arguments)
        while reply.paused is not None:
            reply = reply.paused.reply([call.arguments["of"][0] for call in reply.paused.calls])
        assert (reply.text, reply.is_error) == ("a", False)


def test_scripts_that_wait_for_the_client_have_threads_of_their_own() -> None:
    """As many as there are scripts: the default executor of asyncio has four more than there are processors."""
    many = 20
    together = threading.Barrier(many)

    @tool
    def meet() -> None:
        """Wait for all the others."""
        together.wait(20)

    async def main() -> list[str]:
        with Sandbox([PICK, meet], max_workers=many) as box, CodeMode(box) as mode:
            source = code("tools.meet{} return 1")
            return await asyncio.gather(
                *(mode.ahandle("lua_repl", source, conversation=str(number)) for number in range(many))
            )

    assert asyncio.run(main()) == ["1"] * many


def test_a_client_side_tool_cannot_ask_for_approval() -> None:
    with pytest.raises(ToolDefinitionError, match="policy 'approve' needs a function"):
        Tool.from_schema(name="pick", policy="approve")


def test_only_the_model_calls_a_direct_one() -> None:
    with Sandbox([PICK.with_(policy="direct")], isolation="inline") as box, CodeMode(box) as mode:
        assert "scripts cannot call 'pick'" in mode.handle("lua_repl", code("return tools.pick{of = {'a'}}"))
        assert paused(mode.handle("pick", {"of": ["a"]})).resume(["a"]) == "a"


def test_scripts_of_one_conversation_that_come_together_do_not_wait_for_the_client(mode: CodeMode) -> None:
    busy = "error: an earlier script of this conversation waits for the client's answers; resume it first"

    async def main() -> None:
        source = code("return tools.double{n = tools.pick{of = {'a'}}}")
        answers = await asyncio.gather(*(mode.ahandle("lua_repl", source) for _ in range(4)))
        (waiting,) = [answer for answer in answers if isinstance(answer, Paused)]
        assert [answer for answer in answers if answer is not waiting] == [busy] * 3
        assert await waiting.aresume([4]) == "8"
        assert await mode.ahandle("lua_repl", code("return 1")) == "1"

    asyncio.run(main())
    with ThreadPoolExecutor(4) as threads:
        source = code("return tools.double{n = tools.pick{of = {'a'}}}")
        answers = list(threads.map(lambda _: mode.handle("lua_repl", source), range(4)))
    (waiting,) = [answer for answer in answers if isinstance(answer, Paused)]
    assert waiting.resume([4]) == "8"


def test_scripts_that_come_together_where_a_function_answers_follow_each_other() -> None:
    async def answer(call: Any) -> int:
        await asyncio.sleep(0)
        return int(call.arguments["of"][0])

    async def main() -> None:
        with CodeMode([PICK, double], client_calls=answer) as mode:
            sources = [code(f"return tools.double{{n = tools.pick{{of = {{'{n}'}}}}}}") for n in range(6)]
            answers = await asyncio.gather(*(mode.ahandle("lua_repl", source) for source in sources))
            assert answers == ["0", "2", "4", "6", "8", "10"]

    asyncio.run(main())


async def cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("call", [("lua_repl", code("return tools.pick{of = {'a'}}")), ("pick", {"of": ["a"]})])
def test_a_cancelled_task_gives_up_what_it_asked_the_client(call: tuple[str, dict[str, Any]]) -> None:
    asked = asyncio.Event()

    async def never(_: Any) -> None:
        asked.set()
        await asyncio.Event().wait()

    async def main() -> None:
        trail = MemorySink()
        with Sandbox([PICK], audit=trail) as box:
            mode = CodeMode(box, client_calls=never, keep_visible=["pick"])
            task = asyncio.create_task(mode.areply(*call, conversation="a"))
            await asked.wait()
            await cancelled(task)
            assert await mode.ahandle("lua_repl", code("return 1"), conversation="a") == "1"
            assert sorted(run.ok for run in trail.runs()) == [False, True]

    asyncio.run(main())


def test_a_cancelled_task_gives_up_a_script_that_has_not_asked_yet() -> None:
    entered, leave = threading.Event(), threading.Event()

    @tool
    def hold() -> None:
        """Hold the script."""
        entered.set()
        leave.wait()

    async def main() -> None:
        with CodeMode([PICK, hold]) as mode:
            source = code("tools.hold{} return tools.pick{of = {'a'}}")
            task = asyncio.create_task(mode.ahandle("lua_repl", source, conversation="a"))
            await asyncio.to_thread(entered.wait)
            await cancelled(task)
            leave.set()
            assert await mode.ahandle("lua_repl", code("return 1"), conversation="a") == "1"

    asyncio.run(main())


def test_an_interrupt_while_the_client_is_asked_gives_up_the_script() -> None:
    def interrupt(_: Any) -> None:
        raise KeyboardInterrupt

    with CodeMode([PICK], client_calls=interrupt) as mode:
        with pytest.raises(KeyboardInterrupt):
            mode.handle("lua_repl", code("return tools.pick{of = {'a'}}"))
        assert mode.handle("lua_repl", code("return 1")) == "1"
