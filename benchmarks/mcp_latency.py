"""What moonbox adds to a call of an upstream tool, against the SDK's client calling the same server in the same run.

    direct     SDK client → server
    script     a script in a Sandbox → server, in one process
    loop       SDK client → `moonbox serve`, one script that makes all the calls → server
    single     SDK client → `moonbox serve` → server, one tool call each, without a script
    bare       the same with nothing of moonbox: the SDK's server passes each call on to the SDK's client

The ways take turns, a few calls at a time, so that whatever else the machine does meets them all alike. Calls of
scripts are held against `direct`. A single call goes through one more process, as it would with any server in between:
it is held against `bare`, and its whole cost is printed beside.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from moonbox import Limits, Sandbox
from moonbox.config.mcp import ServerSettings
from moonbox.mcp.upstreams.manager import Upstreams

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.mcp import peers

BARE = """
import asyncio, sys
from mcp import Client, StdioServerParameters
from mcp.server import Server
from mcp.server.stdio import stdio_server

async def main():
    async with Client(StdioServerParameters(command=sys.argv[1])) as upstream:
        async def list_tools(context, params):
            return await upstream.list_tools()

        async def call_tool(context, params):
            return await upstream.call_tool(params.name, params.arguments)

        server = Server("bare", on_list_tools=list_tools, on_call_tool=call_tool)
        async with stdio_server() as streams:
            await server.run(*streams, server.create_initialization_options())

asyncio.run(main())
"""
SERVERS = {
    "everything": ("echo", {"message": "hello"}, '{message = "hello"}'),
    "time": ("get_current_time", {"timezone": "UTC"}, '{timezone = "UTC"}'),
}
TARGET = 2.0


async def measure(name: str, rounds: int, batch: int) -> dict[str, list[float]]:
    """Milliseconds for each call, by way."""
    tool, arguments, written = SERVERS[name]
    alias = tool.replace("-", "_")
    found: dict[str, list[float]] = {"direct": [], "script": [], "loop": [], "single": [], "bare": []}
    loop_script = f"for i = 1, {batch} do tools.{name}.{alias}{written} end"
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "moonbox.toml"
        config.write_text(
            f'[codemode]\nkeep_visible = ["kept.{tool}"]\n[limits]\nmax_tool_calls = {batch}\n'
            f'[mcp.servers.{name}]\ncommand = "{peers.server(name)}"\n'
            f'[mcp.servers.kept]\ncommand = "{peers.server(name)}"\n'
        )
        command = [sys.executable, "-m", "moonbox", "serve", "--trust", "--config", str(config)]
        served = StdioServerParameters(command=command[0], args=command[1:], env={"MOONBOX_HOME": folder})
        settings = ServerSettings(name=name, command=peers.server(name))
        with Upstreams([settings]) as upstreams:
            upstreams.wait(30)
            limits = Limits(timeout=None, max_tool_calls=None)
            async with (
                Client(StdioServerParameters(command=peers.server(name))) as direct,
                Client(served) as moonbox,
                Client(StdioServerParameters(command=sys.executable, args=["-c", BARE, peers.server(name)])) as bare,
                Sandbox(upstreams.toolbox, limits=limits) as box,
                box.repl() as repl,
            ):
                await moonbox.list_tools()
                await bare.list_tools()

                async def one_by_one(call: Any) -> list[float]:
                    took = []
                    for _ in range(batch):
                        began = time.perf_counter()
                        await call()
                        took.append((time.perf_counter() - began) * 1000)
                    return took

                for turn in range(rounds + 1):
                    step = {
                        "direct": await one_by_one(lambda: direct.call_tool(tool, arguments)),
                        "script": await _shared(repl.arun(loop_script), batch),
                        "loop": await _shared(moonbox.call_tool("lua_repl", {"source_code": loop_script}), batch),
                        "single": await one_by_one(lambda: moonbox.call_tool(f"kept__{tool}", arguments)),
                        "bare": await one_by_one(lambda: bare.call_tool(tool, arguments)),
                    }
                    if turn:  # the first round warms everything up
                        for way, took in step.items():
                            found[way] += took
    return found


async def _shared(work: Any, calls: int) -> list[float]:
    """The time of one script, divided by its calls."""
    began = time.perf_counter()
    result = await work
    took = (time.perf_counter() - began) * 1000 / calls
    failed = result.is_error if hasattr(result, "is_error") else result.error is not None
    assert not failed, result
    return [took]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--batch", type=int, default=20)
    given = options.parse_args()
    peers.install()
    worst = dict.fromkeys(("script", "loop", "single"), 0.0)
    print(f"{'server':<12}{'way':<10}{'median ms':>10}{'added ms':>10}")
    for name in SERVERS:
        found = asyncio.run(measure(name, given.rounds, given.batch))
        base = statistics.median(found["direct"])
        for way, took in found.items():
            middle = statistics.median(took)
            added = middle - base
            if way in worst:
                before = statistics.median(found["bare"]) if way == "single" else base
                worst[way] = max(worst[way], middle - before)
            print(f"{name:<12}{way:<10}{middle:>10.2f}{'' if way == 'direct' else f'{added:.2f}':>10}")
    print(
        f"\na call of a script: at most {max(worst['script'], worst['loop']):.2f} ms added to the server's own answer"
    )
    print(f"a single call: at most {worst['single']:.2f} ms added to what passing it on takes without moonbox")
    print(f"the aim is under {TARGET:g} ms")
    sys.exit(max(worst.values()) >= TARGET)


if __name__ == "__main__":
    main()
