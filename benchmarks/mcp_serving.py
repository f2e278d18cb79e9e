"""How fast a script is served over HTTP, with the SDK's own client: moonbox, a bare server, and FastMCP's code mode.

    bare      the SDK's server, whose one tool does nothing
    moonbox   `moonbox serve --http`: a script of five calls to a Python tool
    fastmcp   FastMCP's code mode: the same script for it

Latency is measured with one client, throughput with many, and with one client also the processor time of a call: of
client and server together, with all processes that the server has started (Linux). The three take turns, so that
whatever else the machine does meets them all alike; on a busy machine the processor time, with everything pinned to one
processor (`taskset -c 0`), is the figure to trust.

    python benchmarks/mcp_serving.py [--clients 50] [--calls 200] [--without-fastmcp]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

BARE = """
import socket, sys
import mcp_types as types
import uvicorn
from mcp.server import Server

async def list_tools(context, params):
    schema = {"type": "object", "properties": {"source_code": {"type": "string"}}}
    return types.ListToolsResult(tools=[types.Tool(name="lua_repl", description="Nothing.", input_schema=schema)])

async def call_tool(context, params):
    return types.CallToolResult(content=[types.TextContent(text="10")])

listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else asyncio sets no TCP_NODELAY
listening.bind(("127.0.0.1", 0))
listening.listen(1024)
print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
app = Server("bare", on_list_tools=list_tools, on_call_tool=call_tool).streamable_http_app()
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])
"""
TOOLS = """
from moonbox import tool

@tool
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b
"""
FASTMCP = """
import socket
from fastmcp import FastMCP
from fastmcp.experimental.transforms.code_mode import CodeMode

listening = socket.socket()
listening.bind(("127.0.0.1", 0))
port = listening.getsockname()[1]
listening.close()
server = FastMCP("code", transforms=[CodeMode()])

@server.tool
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

print(f"http://127.0.0.1:{port}/mcp", flush=True)
server.run(transport="http", host="127.0.0.1", port=port, show_banner=False, log_level="error")
"""
LUA = "local sum = 0\nfor i = 1, 5 do sum = tools.add{a = sum, b = i} end\nreturn sum"
PYTHON = """
total = 0
for i in range(1, 6):
    total = (await call_tool("add", {"a": total, "b": i}))["result"]
return total
"""
TARGET = 2.0
_ROUNDS = 5
_CHUNKS = 10


@contextlib.contextmanager
def process(command: list[str], folder: Path, *, announced: str) -> Iterator[tuple[str, int]]:
    """A server that writes its address on one of its first lines; the address, and its process."""
    pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, announced: subprocess.PIPE}
    running = subprocess.Popen(command, cwd=folder, text=True, **pipes)
    try:
        lines = getattr(running, announced)
        address = next(match[0] for line in lines if (match := re.search(r"http://127\S+", line)))
        yield address, running.pid
    finally:
        running.terminate()
        running.wait(30)
        getattr(running, announced).close()


@contextlib.contextmanager
def subjects(folder: Path, *, fastmcp: bool) -> Iterator[dict[str, tuple[tuple[str, int], str, dict[str, Any]]]]:
    """Address and process, tool, and arguments of each."""
    with contextlib.ExitStack() as stack:
        bare = stack.enter_context(process([sys.executable, "-c", BARE], folder, announced="stdout"))
        (folder / "serving_tools.py").write_text(TOOLS)
        (folder / "moonbox.toml").write_text("[audit]\nenabled = false\n[serve]\nrequests_per_minute = 1000000\n")
        serve = [sys.executable, "-m", "moonbox", "serve", "--http", "--port", "0", "--tools", "serving_tools.py"]
        ours = stack.enter_context(process(serve, folder, announced="stderr"))
        found = {
            "bare": (bare, "lua_repl", {"source_code": LUA}),
            "moonbox": (ours, "lua_repl", {"source_code": LUA}),
        }
        if fastmcp:
            from rivals import SUBJECTS

            subject = next(item for item in SUBJECTS if item.name == "fastmcp")
            command = [str(subject.python()), "-c", FASTMCP]
            theirs = stack.enter_context(process(command, folder, announced="stdout"))
            found["fastmcp"] = (theirs, "execute", {"code": PYTHON})
        yield found


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(timeout=120) as http,
        Client(streamable_http_client(url, http_client=http), cache=None) as client,
    ):
        yield client


def processor_ms(pid: int) -> float:
    """The processor time of a process and all that it has started; 0 where the system does not tell."""
    total = 0.0
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")
        for thread in Path(f"/proc/{pid}/task").iterdir():
            total += sum(processor_ms(int(child)) for child in (thread / "children").read_text().split())
    return total


async def call(client: Client, tool: str, arguments: dict[str, Any]) -> float:
    began = time.perf_counter()
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return (time.perf_counter() - began) * 1000


async def latencies(found: dict[str, Any], calls: int) -> dict[str, tuple[float, float]]:
    """The median of one client's calls, and the processor time of one, in milliseconds."""
    times: dict[str, list[float]] = {name: [] for name in found}
    spent: dict[str, float] = dict.fromkeys(found, 0.0)
    each = max(1, calls // _CHUNKS)
    async with contextlib.AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(connected(item[0][0])) for name, item in found.items()}
        for chunk in range(-1, _CHUNKS):  # the first one only warms up
            for name, ((_, pid), tool, arguments) in found.items():
                before = processor_ms(pid) + time.process_time() * 1000
                took = [await call(clients[name], tool, arguments) for _ in range(each)]
                if chunk >= 0:
                    times[name] += took
                    spent[name] += processor_ms(pid) + time.process_time() * 1000 - before
    return {name: (statistics.median(items), spent[name] / len(items)) for name, items in times.items()}


async def throughput(server: tuple[str, int], tool: str, arguments: dict[str, Any], clients: int, calls: int) -> float:
    """Calls in a second, of many clients at once."""

    async def work(client: Client) -> None:
        for _ in range(calls):
            await call(client, tool, arguments)

    async with contextlib.AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(connected(server[0])) for _ in range(clients)]
        began = time.perf_counter()
        await asyncio.gather(*(work(client) for client in opened))
        return clients * calls / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--without-fastmcp", action="store_true")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        subjects(Path(folder), fastmcp=not options.without_fastmcp) as found,
    ):
        times = asyncio.run(latencies(found, options.calls))
        rounds: dict[str, list[float]] = {name: [] for name in found}
        for _ in range(_ROUNDS):
            for name, item in found.items():
                rounds[name].append(asyncio.run(throughput(*item, options.clients, max(2, options.calls // 50))))
        rates = {name: statistics.median(items) for name, items in rounds.items()}
    many = f"calls/s with {options.clients}"
    print(f"{'':<10}{'ms (p50)':>10}{'× bare':>8}{'CPU ms':>10}{'× bare':>8}{many:>20}{'bare ÷':>8}")
    for name in found:
        (latency, spent), (bare_latency, bare_spent) = times[name], times["bare"]
        cpu = f"{spent:>10.2f}{spent / bare_spent:>8.2f}" if bare_spent else f"{'–':>10}{'–':>8}"
        rate = rates["bare"] / rates[name]
        print(f"{name:<10}{latency:>10.2f}{latency / bare_latency:>8.2f}{cpu}{rates[name]:>20.0f}{rate:>8.2f}")
    print(f"target: at most {TARGET} × bare")


if __name__ == "__main__":
    main()
