"""Many clients of three kinds at once, and a signal in the middle: every script that succeeds has its answer."""

from __future__ import annotations

import http.client
import itertools
import json
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

from moonbox.audit.sqlite import SqliteSink
from tests.long import LONG
from tests.mcp.mcp_driver import ACCEPT, CURRENT, EARLIER, HELLO, modern, server_process
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLIENTS = 200 if LONG else 9
CONFIG = """
[serve]
max_calls = 40
max_waiting = 1000
max_conversations = 1000
wait_seconds = 60
requests_per_minute = 1000000
[audit]
path = "trail.db"
"""
TOOLS = """
import asyncio
from moonbox import tool

@tool
async def echo(number: int) -> int:
    await asyncio.sleep(0.02)
    return number
"""
SCRIPTS = (
    "return {}",
    "kept = {}\nreturn kept",
    "return tools.echo{{number = {}}}",
    "local sum = 0\nfor i = 1, 10000 do sum = sum + i end\nreturn {}",
    "return {}, nil + 1",
)
STOPPED = "the server is being stopped, and the request with it"


class Sender:
    """A client on one connection. Subclasses know a protocol."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)

    def post(self, path: str, body: Any, headers: dict[str, str]) -> tuple[dict[str, str], str]:
        sent = {"Content-Type": "application/json", **ACCEPT, **headers}
        self.connection.request("POST", path, json.dumps(body), sent)
        answer = self.connection.getresponse()
        return dict(answer.getheaders()), answer.read().decode()

    def run(self, source: str) -> str:
        """What the server said to the script."""
        raise NotImplementedError


class ApiSender(Sender):
    def run(self, source: str) -> str:
        return self.post("/run", {"source_code": source}, {})[1]


class CurrentSender(Sender):
    def run(self, source: str) -> str:
        request = modern("tools/call", {"name": "lua_repl", "arguments": {"source_code": source}})
        assert request["headers"]["MCP-Protocol-Version"] == CURRENT
        return self.post("/mcp", request["json"], request["headers"])[1]


class EarlierSender(Sender):
    def __init__(self, port: int) -> None:
        super().__init__(port)
        hello = {**HELLO, "params": {**HELLO["params"], "protocolVersion": EARLIER}}
        session = {name.lower(): value for name, value in self.post("/mcp", hello, {})[0].items()}["mcp-session-id"]
        self.headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": EARLIER}
        self.post("/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}, self.headers)

    def run(self, source: str) -> str:
        params = {"name": "lua_repl", "arguments": {"source_code": source}}
        return self.post("/mcp", {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}, self.headers)[1]


def test_every_script_that_succeeds_has_its_answer(tmp_path: Path) -> None:
    (tmp_path / "moonbox.toml").write_text(CONFIG)
    (tmp_path / "kit.py").write_text(TOOLS)
    numbers: Iterator[int] = itertools.count(1_000_000)
    said: dict[int, str] = {}
    problems: list[BaseException] = []
    home = {"MOONBOX_HOME": str(tmp_path / "home"), "MOONBOX_TRUST": "1"}
    with server_process("--tools", "kit.py", env=home, cwd=tmp_path) as (url, process):
        port = int(url.rpartition(":")[2].partition("/")[0])

        def work(kind: type[Sender], which: int) -> None:
            try:
                sender = kind(port)
                for script in itertools.islice(itertools.cycle(SCRIPTS), which, None):
                    number = next(numbers)
                    said[number] = sender.run(script.format(number))
                    if STOPPED in said[number]:
                        return
            except (OSError, http.client.HTTPException):
                pass  # the server takes no further requests
            except BaseException as problem:  # noqa: BLE001 - raised in the test
                problems.append(problem)
            finally:
                sender.connection.close()

        kinds = itertools.cycle((ApiSender, CurrentSender, EarlierSender))
        threads = [threading.Thread(target=work, args=(next(kinds), which)) for which in range(CLIENTS)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(said) >= 4 * CLIENTS or problems)
        process.terminate()
        for thread in threads:
            thread.join(100)
        assert process.wait(100) == 0
    assert not problems
    assert "Traceback" not in (tmp_path / "serve.log").read_text()
    with closing(SqliteSink(tmp_path / "trail.db")) as sink:
        succeeded = [sink.get(summary.id).value for summary in sink.list(limit=100_000) if not summary.kind]
    assert len(succeeded) >= CLIENTS
    unanswered = [number for number in succeeded if str(number) not in said.get(number, "")]
    assert not unanswered
    for number, answer in said.items():
        expected = str(number) in answer or "nil" in answer or STOPPED in answer or '"unavailable"' in answer
        assert expected, answer
