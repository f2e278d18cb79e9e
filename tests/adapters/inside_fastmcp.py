"""FastMCP, run in an environment of its own: its server and its client, with Lua in its code mode."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client, Context, FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError
from fastmcp.experimental.transforms.code_mode import CodeMode, ListTools
from fastmcp.server.middleware import Middleware
from fastmcp.utilities.types import Audio, File, Image
from pydantic import BaseModel

from moonbox import Limits, Media, Sandbox
from moonbox.adapters.fastmcp import LuaCodeMode, MoonboxSandboxProvider
from moonbox.errors import ClosedError, UsageError

# FastMCP reports failing tools in its log; here they are meant to fail.
pytestmark = pytest.mark.filterwarnings("ignore", "error:::moonbox")


class Item(BaseModel):
    name: str
    amount: float


def server(transform: Any, **options: Any) -> FastMCP:
    made = FastMCP("shop", transforms=[transform], **options)

    @made.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @made.tool
    async def items(shop: int) -> list[Item]:
        """What a shop has."""
        return [Item(name="tea", amount=2.5 * shop), Item(name="cake", amount=1.5)]

    @made.tool(name="odd-name")
    def odd(ctx: Context) -> str:
        """Has an odd name."""
        return f"odd in {ctx.fastmcp.name}"

    @made.tool
    def fails() -> None:
        """Fail always."""
        raise ToolError("out of luck")

    return made


def talk(made: FastMCP, *calls: tuple[str, dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    """The tools that a client is shown, and the results of its calls, one after another."""

    async def go() -> tuple[list[Any], list[Any]]:
        async with Client(made) as client:
            shown = list(await client.list_tools())
            return shown, [await client.call_tool(name, given, raise_on_error=False) for name, given in calls]

    return asyncio.run(go())


def execute(transform: Any, *scripts: str, **options: Any) -> list[Any]:
    """The results of scripts, one after another through one client."""
    return talk(server(transform, **options), *(("execute", {"code": script}) for script in scripts))[1]


def text(result: Any) -> str:
    return str(result.content[0].text)


def test_what_the_model_is_shown() -> None:
    search, schema, run = talk(server(LuaCodeMode()))[0]
    assert (search.name, schema.name, run.name) == ("search", "get_schema", "execute")
    assert run.description.startswith(
        "Runs a Lua 5.4 script in a sandbox and returns its value. "
        "Every call starts afresh: nothing is left of earlier scripts.\n- End with `return value`"
    )
    assert "tools.name{key = value}" in run.description
    assert run.description.endswith('call_tool("the-name", {key = value}).')
    assert run.input_schema["properties"]["code"] == {
        "type": "string",
        "description": "The script.",
    }
    assert "Python" not in run.description


def test_discover_then_execute() -> None:
    """The way of FastMCP's code mode: search, read a schema, write one script."""
    script = """
        local total = 0
        for shop = 1, 3 do
          for _, item in ipairs(tools.items{shop = shop}) do total = total + item.amount end
        end
        return total
    """
    calls: list[tuple[str, dict[str, Any]]] = [
        ("search", {"query": "what a shop has"}),
        ("get_schema", {"tools": ["items"]}),
        ("execute", {"code": script}),
    ]
    found, read, done = talk(server(LuaCodeMode()), *calls)[1]
    assert "- items: What a shop has." in text(found)
    assert "`shop` (integer, required)" in text(read)
    assert (text(done), done.is_error) == ("19.5", False)


def test_values_and_printed_text() -> None:
    results = execute(
        LuaCodeMode(),
        "return {a = 1, list = {1, 2}}",
        "print('hello') return {a = 1}",
        "print('only this')",
        "return 1, 2",
        "return",
        "6 * 7",
    )
    assert results[0].structured_content == {"a": 1, "list": [1, 2]}
    assert [text(result) for result in results[1:]] == [
        'printed:\nhello\n\nreturned:\n{"a":1}',
        "only this",
        "2 values:\n1: 1\n2: 2",
        "ok (no value returned; end the script with `return <expression>` to see a result)",
        "42",
    ]


def test_tools_by_either_way() -> None:
    results = execute(
        LuaCodeMode(),
        "return tools.add{a = 1, b = 2} + tools.add(3, 4)",
        "return call_tool('add', {a = 1, b = 2})",
        "return tools.odd_name{}",
        "return call_tool('odd-name')",
        "return call_tool('odd-name', {})",
        "return tools.items{shop = 1}",
        "return parallel.map({1, 2, 3}, function(x) return tools.add{a = x, b = x} end)",
        "return docs.describe('items')",
        "return docs.call_tool",
    )
    wrapped = '{"result":"odd in shop"}'
    assert [text(result) for result in results[:5]] == ["10", '{"result":3}', "odd in shop", wrapped, wrapped]
    assert json.loads(text(results[5])) == [{"name": "tea", "amount": 2.5}, {"name": "cake", "amount": 1.5}]
    assert text(results[6]) == "[2,4,6]"
    assert "items(shop: integer) -> {name: string, amount: number}[]" in text(results[7])
    assert text(results[8]).startswith("call_tool(name, {key = value})")


def test_mistakes_are_answered_to_the_model() -> None:
    results = execute(
        LuaCodeMode(),
        "return 1 +",
        "local x = 1\nreturn tools.add{a = 'x'}",
        "return call_tool('add', {a = 'x'})",
        "return call_tool('ad', {})",
        "return tools.ad{}",
        "tools.add{a = 1, b = 2} return tools.fails{}",
        "local ok, problem = pcall(tools.fails) return problem.message",
        "return call_tool()",
    )
    assert [result.is_error for result in results] == [True] * 6 + [False, True]
    texts = [text(result) for result in results]
    assert texts[0].startswith("syntax error on line 1")
    assert texts[0].endswith("\n\nnothing was run")
    assert texts[1].startswith("check failed on line 2: invalid arguments for add:\n- b: missing")
    assert "call_tool('add') failed: a: Input should be a valid integer" in texts[2]
    assert "Valid parameters for add (* = required): a*, b*" in texts[2]
    assert "Unknown tool: ad" in texts[3]
    assert "add" in texts[4]
    assert "call_tool('fails') failed: out of luck" in texts[5]
    assert '1. add {"a":1,"b":2}: ok' in texts[5]
    assert not [each for each in texts if "state was lost" in each or "state kept" in each], "there is no state"
    assert texts[6] == "call_tool('fails') failed: out of luck"


def test_every_script_starts_afresh() -> None:
    results = execute(LuaCodeMode(), *["x = (x or 0) + 1 return x"] * 3)
    assert [text(result) for result in results] == ["1", "1", "1"]


def test_state_for_each_conversation() -> None:
    named = iter(["ada", "ada", "bob", None, None, "ada"])
    provider = MoonboxSandboxProvider(conversation=lambda context: next(named))
    results = execute(LuaCodeMode(provider), *["x = (x or 0) + 1 return x"] * 5, "return x")
    assert [text(result) for result in results] == ["1", "2", "1", "1", "1", "2"]
    provider.close()


def test_the_description_with_state() -> None:
    mode = LuaCodeMode(MoonboxSandboxProvider(conversation=lambda context: "one"))
    assert mode.execute_description.startswith(
        "Runs a Lua 5.4 script in a sandbox and returns its value. Globals persist between calls; locals do not.\n"
    )
    mode.provider.close()


def test_scripts_at_once_call_their_own_functions() -> None:
    """In one conversation, whose environment they share: each calls through its own execution."""
    provider = MoonboxSandboxProvider(conversation=lambda context: "one")

    async def go() -> list[str]:
        async with Client(server(LuaCodeMode(provider, max_tool_calls=3))) as client:
            script = "for i = 1, 3 do tools.add{a = i, b = i} end return 'done'"
            calls = [client.call_tool("execute", {"code": script}) for _ in range(4)]
            return [text(result) for result in await asyncio.gather(*calls)]

    assert asyncio.run(go()) == ["done"] * 4
    provider.close()


def test_the_provider_in_fastmcps_own_code_mode() -> None:
    """Without LuaCodeMode: only `call_tool`, and whatever description you give."""
    mode = CodeMode(
        sandbox_provider=MoonboxSandboxProvider(),
        discovery_tools=[ListTools()],
        execute_description="Lua: call_tool(name, {key = value})",
    )
    results = execute(mode, "return call_tool('add', {a = 1, b = 2}).result", "return tools.add{a = 1, b = 2}")
    assert text(results[0]) == "3"
    assert "hint: there are no tools here" in text(results[1])


def test_options_of_fastmcps_code_mode() -> None:
    mode = LuaCodeMode(execute_tool_name="run_lua", discovery_tools=[ListTools()], max_tool_calls=2)
    tools, [done] = talk(server(mode), ("run_lua", {"code": "for i = 1, 5 do tools.add{a = i, b = i} end"}))
    assert [tool.name for tool in tools] == ["list_tools", "run_lua"]
    assert "Tool call limit exceeded: at most 2 call_tool() invocations are allowed per execute()." in text(done)


def test_middleware_sees_the_calls_of_scripts() -> None:
    heard: list[tuple[str, Any]] = []

    class Heard(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            heard.append((context.message.name, context.message.arguments))
            return await call_next(context)

    execute(LuaCodeMode(), "return tools.add{a = 1, b = 2}", middleware=[Heard()])
    assert [name for name, _ in heard] == ["execute", "add"]
    assert heard[1][1] == {"a": 1, "b": 2}


def test_tools_that_come_and_go() -> None:
    async def go() -> list[str]:
        made = server(LuaCodeMode())
        async with Client(made) as client:
            before = await client.call_tool("execute", {"code": "return tools.later ~= nil"})

            @made.tool
            def later() -> str:
                """Comes later."""
                return "here"

            after = await client.call_tool("execute", {"code": "return tools.later{}"})
            return [text(before), text(after)]

    assert asyncio.run(go()) == ["false", "here"]


def test_limits_and_long_answers() -> None:
    with Sandbox(limits=Limits(timeout=1, max_memory=8 << 20)) as box:
        provider = MoonboxSandboxProvider(box, max_chars=1000)
        results = execute(
            LuaCodeMode(provider),
            "while true do end",
            "return #('x'):rep(9000000)",
            "return ('x'):rep(5000)",
        )
        provider.close()
        assert [result.is_error for result in results] == [True, True, False]
        assert text(results[0]).startswith("limit reached (time)") or "time" in text(results[0]).splitlines()[0]
        assert "memory" in text(results[1]).splitlines()[0]
        assert len(text(results[2])) <= 1000 and "characters left out here" in text(results[2])
        assert box.run("return 1").value == 1


def test_a_cancelled_call_stops_the_script() -> None:
    provider = MoonboxSandboxProvider()
    started = asyncio.Event()

    async def wait() -> None:
        started.set()
        await asyncio.sleep(60)

    async def go() -> Any:
        task = asyncio.create_task(provider.run("wait()", external_functions={"wait": wait}))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await provider.run("return 1")

    assert asyncio.run(go()) == 1
    provider.close()


def test_inputs_and_plain_functions() -> None:
    provider = MoonboxSandboxProvider()

    async def go() -> Any:
        given = {"rows": [{"n": 1}, {"n": 2}], "name": "Ada"}
        functions = {"double": lambda x: 2 * x}
        script = "return {double(rows[2].n), name}"
        return await provider.run(script, inputs=given, external_functions=functions)

    assert asyncio.run(go()) == [4, "Ada"]
    provider.close()
    with pytest.raises(ClosedError):
        asyncio.run(provider.run("return 1"))


def test_the_example_server_over_stdio() -> None:
    """A process of its own, as clients start it."""
    path = Path(__file__).parents[2] / "examples" / "frameworks" / "fastmcp_server.py"

    async def go() -> tuple[list[str], str]:
        transport = StdioTransport(sys.executable, [str(path), "--serve"], keep_alive=False)
        async with Client(transport) as client:
            names = [tool.name for tool in await client.list_tools()]
            result = await client.call_tool("execute", {"code": "return #tools.get_expenses{employee_id = 1}"})
            return names, text(result)

    assert asyncio.run(go()) == (["search", "get_schema", "execute"], "2")


def test_wrong_options() -> None:
    with pytest.raises(UsageError, match="conversation must be a function that returns a name, not 'ada'"):
        MoonboxSandboxProvider(conversation="ada")  # type: ignore[arg-type]  # that is the point


PNG = Media(b"\x89PNG\r\n\x1a\npixels", name="chart.png")


def studio() -> FastMCP:
    """A server whose tools return media."""
    made = FastMCP("studio", transforms=[LuaCodeMode()])

    @made.tool
    def chart() -> Image:
        """An image."""
        return Image(data=PNG.data, format="png")

    @made.tool
    def both() -> list[Any]:
        """Text and an image."""
        return ["two parts", Image(data=PNG.data, format="png")]

    @made.tool
    def voice() -> Audio:
        """An audio clip."""
        return Audio(data=b"RIFF....WAVEfmt ", format="wav")

    @made.tool
    def paper() -> File:
        """A file."""
        return File(data=b"%PDF-1.7 paper", format="pdf", name="paper")

    return made


@pytest.mark.parametrize(
    ("script", "says", "kinds"),
    [
        ("return tools.chart{}", '"type":"image/png"', ["image"]),
        ("show(tools.chart{}) return 1", "[image.png: image/png, 14 bytes]", ["image"]),
        ("local r = tools.both{} show(r.content[1]) return r.text", "two parts", ["image"]),
        ("return tools.voice{}", '"type":"audio/', ["audio"]),
        ("return tools.paper{}", '"type":"application/pdf"', ["resource"]),
        ('return call_tool("chart", {})', '"type":"image/png"', ["image"]),
        ("return tools.chart{}.size", "14", []),
    ],
)
def test_media_of_the_servers_tools(script: str, says: str, kinds: list[str]) -> None:
    [result] = talk(studio(), ("execute", {"code": script}))[1]
    first, *media = result.content
    assert not result.is_error and says in first.text, first.text
    assert PNG.base64 not in first.text
    assert [block.type for block in media] == kinds
    assert all(block.data == PNG.base64 for block in media if block.type == "image")
