"""A server over HTTP: the time and the processor time of `return 1`, by one client and by ten at once.

    health   GET /health
    run      POST /run
    mcp      a call of `lua_repl` over MCP, of the current protocol, on the same kind of connection

The clients send bytes that are ready and look only for the end of the answer, so that they take little of the machine.
Processor time is that of the server and of all processes that it has started. On a busy machine it is the
figure to trust (Linux).

    python benchmarks/http_serving.py [--requests 400] [--clients 10] [--seconds 5]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mcp_serving import process, processor_ms

from tests.mcp.mcp_driver import modern

CONFIG = """
[serve]
requests_per_minute = 10000000
calls_per_minute = 10000000
max_waiting = 1000
[audit]
path = "trail.db"
"""
SCRIPT = {"source_code": "return 1"}


def request(method: str, path: str, body: object = None, **headers: str) -> bytes:
    """A request as bytes."""
    content = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, f"Content-Length: {len(content)}", "", ""]).encode() + content


def requests() -> dict[str, bytes]:
    call = modern("tools/call", {"name": "lua_repl", "arguments": SCRIPT})
    return {
        "health": request("GET", "/health"),
        "run": request("POST", "/run", SCRIPT),
        "mcp": request("POST", "/mcp", call["json"], **call["headers"], Accept="application/json, text/event-stream"),
    }


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: bytes) -> None:
    """Send a request and read its answer."""
    writer.write(sent)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    assert head.startswith(b"http/1.1 200"), head
    if length := re.search(rb"content-length: (\d+)", head):
        await reader.readexactly(int(length[1]))
    else:
        await reader.readuntil(b"\r\n0\r\n\r\n" if b"chunked" in head else b"\n\n")


async def measure(url: str, sent: bytes, pid: int, *, count: int, clients: int, seconds: float) -> list[float]:
    """Milliseconds of a request by one client, of the processor, and requests a second by several."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    for _ in range(20):
        await ask(reader, writer, sent)
    times, before = [], processor_ms(pid)
    for _ in range(count):
        began = time.perf_counter()
        await ask(reader, writer, sent)
        times.append((time.perf_counter() - began) * 1000)
    writer.close()
    spent = (processor_ms(pid) - before) / count
    end, answered = time.perf_counter() + seconds, 0

    async def client() -> None:
        nonlocal answered
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        while time.perf_counter() < end:
            await ask(reader, writer, sent)
            answered += 1
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    tenth = statistics.quantiles(times, n=10)
    return [tenth[0], statistics.median(times), tenth[-1], spent, answered / seconds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "moonbox.toml").write_text(CONFIG)
        command = [sys.executable, "-m", "moonbox", "serve", "--http", "--port", "0"]
        with process(command, folder, announced="stderr") as (url, pid):
            print(f"{'':8} fastest tenth, median, slowest tenth; processor; requests a second by {options.clients}")
            for kind, sent in requests().items():
                given = {"count": options.requests, "clients": options.clients, "seconds": options.seconds}
                low, median, high, spent, rate = asyncio.run(measure(url, sent, pid, **given))
                print(f"{kind:8} {low:.2f}, {median:.2f}, {high:.2f} ms; {spent:.2f} ms; {rate:,.0f}")


if __name__ == "__main__":
    main()
