"""Calls as tasks, in the protocol of 2025-11-25: started, asked for, cancelled, and nobody else's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tests.mcp.conftest import filled
from tests.mcp.mcp_driver import ACCEPT, HELLO, HOLD, SERVE, bearer, served
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION = "2025-11-25"
TOOLS = f"""{HOLD}
@tool(policy="direct")
def plain() -> int:
    return 1
"""


class Peer:
    """A client that speaks JSON-RPC by itself: the SDK's has no tasks."""

    def __init__(self, url: str, token: str) -> None:
        self._client = httpx2.Client(headers={**ACCEPT, **bearer(token)}, timeout=100)
        self._url = url
        params = {**HELLO["params"], "protocolVersion": VERSION}  # type: ignore[dict-item]
        answer = self._client.post(url, json={**HELLO, "params": params})
        self._client.headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
        self._client.headers["MCP-Protocol-Version"] = VERSION
        self.capabilities = _result(answer)["result"]["capabilities"]
        self._client.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, **params: Any) -> Any:
        """The whole answer."""
        body = {"jsonrpc": "2.0", "id": 2, "method": method, "params": params}
        return _result(self._client.post(self._url, json=body))

    def result(self, method: str, **params: Any) -> Any:
        answer = self.ask(method, **params)
        assert "result" in answer, answer
        return answer["result"]

    def start(self, source: str, **task: Any) -> Any:
        arguments = {"source_code": source}
        return self.result("tools/call", name="lua_repl", arguments=arguments, task=task)["task"]

    def close(self) -> None:
        self._client.close()


def _result(answer: Any) -> Any:
    """The message with an id, from JSON or from a stream."""
    if answer.headers["content-type"].startswith("application/json"):
        return answer.json()
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
    return next(message for message in map(json.loads, lines) if "id" in message and "method" not in message)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("tasks"), SERVE, TOOLS) as address:
        yield address


@pytest.fixture
def alice(url: str) -> Iterator[Peer]:
    peer = Peer(url, "alice")
    yield peer
    peer.close()


@pytest.fixture
def bob(url: str) -> Iterator[Peer]:
    peer = Peer(url, "bob")
    yield peer
    peer.close()


def test_a_script_as_a_task(alice: Peer, tmp_path: Path) -> None:
    assert alice.capabilities["tasks"] == {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    listed = {tool["name"]: tool.get("execution") for tool in alice.result("tools/list")["tools"]}
    assert listed == {"lua_repl": {"taskSupport": "optional"}, "plain": None}
    gate = tmp_path / "gate"
    task = alice.start(f"return tools.hold{{path = '{gate}'}}", ttl=60_000)
    assert (task["status"], task["ttl"]) == ("working", 60_000)
    wait_until((tmp_path / "gate.entered").exists)
    assert alice.result("tasks/get", taskId=task["taskId"])["status"] == "working"
    assert [item["taskId"] for item in alice.result("tasks/list")["tasks"]] == [task["taskId"]]
    gate.touch()
    result = alice.result("tasks/result", taskId=task["taskId"])
    assert result["structuredContent"]["value"] == "released"
    assert result["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": task["taskId"]}
    assert alice.result("tasks/get", taskId=task["taskId"])["status"] == "completed"
    assert alice.ask("tasks/cancel", taskId=task["taskId"])["error"]["message"] == (
        "the task cannot be cancelled: it is completed"
    )


def test_a_task_that_fails(alice: Peer) -> None:
    task = alice.start("error('broken')")
    result = alice.result("tasks/result", taskId=task["taskId"])
    assert result["isError"] is True
    assert "broken" in result["content"][0]["text"]
    assert alice.result("tasks/get", taskId=task["taskId"])["status"] == "failed"


def test_a_task_is_cancelled(alice: Peer, tmp_path: Path) -> None:
    task = alice.start(f"return tools.hold{{path = '{tmp_path / 'gate'}'}}")
    wait_until((tmp_path / "gate.entered").exists)
    assert alice.result("tasks/cancel", taskId=task["taskId"])["status"] == "cancelled"
    wait_until((tmp_path / "gate.cancelled").exists)
    assert alice.result("tasks/get", taskId=task["taskId"])["status"] == "cancelled"
    assert "cancelled" in alice.ask("tasks/result", taskId=task["taskId"])["error"]["message"]


def test_a_task_outlives_its_connection_and_is_nobody_elses(url: str, alice: Peer, bob: Peer) -> None:
    task = alice.start("return 'hers'")
    refused = bob.ask("tasks/result", taskId=task["taskId"])
    assert refused["error"]["message"] == "unknown task; it may have expired"
    again = Peer(url, "alice")
    assert again.result("tasks/result", taskId=task["taskId"])["structuredContent"]["value"] == "hers"
    again.close()


def test_more_sessions_do_not_keep_more_tasks(url: str, alice: Peer, bob: Peer) -> None:
    """What has ended is kept for its owner: 64 in all, however many sessions started them."""
    his = bob.start("return 'his'")
    ids = []
    for _ in range(3):
        session = Peer(url, "alice")
        ids += [session.start("return 1", ttl=3_600_000)["taskId"] for _ in range(30)]
        session.result("tasks/result", taskId=ids[-1])
        session.close()
    known = ["result" in alice.ask("tasks/get", taskId=task) for task in ids]
    assert known[-1]
    assert 32 <= sum(known) <= 64
    assert bob.result("tasks/get", taskId=his["taskId"])["taskId"] == his["taskId"]


def test_results_that_are_kept_have_a_budget(alice: Peer) -> None:
    """8 MiB each as text, of 32 in all: the oldest go first. Scripts in the background are kept in the same way."""
    ids = []
    for _ in range(6):
        ids.append(alice.start("return tools.picture()", ttl=3_600_000)["taskId"])
        alice.result("tasks/result", taskId=ids[-1])
    known = ["result" in alice.ask("tasks/get", taskId=task) for task in ids]
    assert known == [False, False, False, True, True, True]


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/call", {"name": "plain", "arguments": {}, "task": {}}, -32601),
        ("tools/call", {"name": "unknown", "arguments": {}, "task": {}}, -32601),
        ("tools/call", {"name": "lua_repl", "arguments": {}, "task": {"ttl": "long"}}, -32602),
        ("tasks/get", {}, -32602),
        ("tasks/get", {"taskId": "guessed"}, -32602),
    ],
)
def test_refusals(alice: Peer, method: str, params: dict[str, Any], code: int) -> None:
    assert alice.ask(method, **params)["error"]["code"] == code


def test_a_task_of_a_server_behind_moonbox(tmp_path: Path) -> None:
    config = filled('[codemode]\nmode = "never"\n[mcp.servers.everything]\ncommand = "<everything>"\nprefix = ""\n')
    with served(tmp_path, config) as url:
        peer = Peer(url, "none")
        tools = {tool["name"]: tool for tool in peer.result("tools/list")["tools"]}
        assert tools["simulate-research-query"]["execution"] == {"taskSupport": "optional"}
        assert "execution" not in tools["echo"]
        call = {"name": "simulate-research-query", "arguments": {"topic": "bees"}}
        task = peer.result("tools/call", **call, task={})["task"]
        result = peer.result("tasks/result", taskId=task["taskId"])
        assert "bees" in result["content"][0]["text"]
        peer.close()
