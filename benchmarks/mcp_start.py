"""How long `moonbox serve` takes to answer the first `tools/list`, with many servers behind it.

The first start lists what the servers say; each further one shows what it knows from the last, and starts the servers
afterwards. Wall time counts from the start of the process; the processor time is that of moonbox without the servers
(Linux). On a busy machine the processor time is the figure to trust.

    python benchmarks/mcp_start.py [--servers 20] [--starts 10]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SERVER = """
import json, sys

INFO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "many", "version": "1"}}
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS = [{"name": f"tool{number}", "description": "Does nothing.", "inputSchema": SCHEMA} for number in range(10)]
ANSWERS = {"initialize": INFO, "tools/list": {"tools": TOOLS}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        unknown = {"error": {"code": -32601, "message": "unknown method"}}
        known = message["method"] in ANSWERS
        answer = {"result": ANSWERS[message["method"]]} if known else unknown
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "1"}}
TARGET = 1.5


def start(folder: Path) -> tuple[float, float]:
    """The seconds until the first list of tools, by the clock and of the processor."""
    env = {**os.environ, "MOONBOX_HOME": str(folder / "home"), "MOONBOX_TRUST": "1"}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "moonbox", "serve"], cwd=folder, env=env, text=True, **pipes
    ) as served:
        assert served.stdin is not None
        assert served.stdout is not None

        def send(**message: Any) -> None:
            assert served.stdin is not None
            served.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            served.stdin.flush()

        send(id=1, method="initialize", params=HELLO)
        next(line for line in served.stdout if json.loads(line).get("id") == 1)
        send(method="notifications/initialized")
        send(id=2, method="tools/list")
        answer = next(line for line in served.stdout if json.loads(line).get("id") == 2)
        seconds, processor = time.perf_counter() - began, processor_seconds(served.pid)
        assert "tool9" in answer
        served.stdin.close()
    return seconds, processor


def processor_seconds(pid: int) -> float:
    """The processor time of a process; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=20)
    parser.add_argument("--starts", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "server.py").write_text(SERVER)
        command = f'command = "{sys.executable}"\nargs = ["-I", "server.py"]\n'
        servers = [f"[mcp.servers.many{number}]\n{command}" for number in range(options.servers)]
        (folder / "moonbox.toml").write_text("\n".join(servers))
        first = start(folder)
        starts = [start(folder) for _ in range(options.starts)]
    print(f"first start     {first[0]:.2f} s, processor {first[1]:.2f} s")
    for kind, times in zip(("wall", "processor"), zip(*starts, strict=True), strict=True):
        print(f"further starts  {kind:<10} min {min(times):.2f} s, median {statistics.median(times):.2f} s")
    print(f"target: a median of at most {TARGET} s")


if __name__ == "__main__":
    main()
