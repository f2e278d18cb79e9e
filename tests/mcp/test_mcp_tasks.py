"""Calls as tasks, in the protocol of 2025-11-25: started, asked for, cancelled, and nobody else's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.mcp.conftest import filled
from tests.mcp.mcp_driver import HOLD, SERVE, Peer, served
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CONFIG = SERVE
TOOLS = f"""{HOLD}
@tool(policy="direct")
def plain() -> int:
    return 1
"""


@pytest.fixture
def peer(url: str) -> Iterator[Callable[[str], Peer]]:
    opened: list[Peer] = []

    def connected(name: str) -> Peer:
        opened.append(Peer(url, name))
        return opened[-1]

    yield connected
    for one in opened:
        one.close()


@pytest.fixture
def alice(peer: Callable[[str], Peer]) -> Peer:
    return peer("alice")


@pytest.fixture
def bob(peer: Callable[[str], Peer]) -> Peer:
    return peer("bob")


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


def test_a_task_outlives_its_connection_and_is_nobody_elses(peer: Any, alice: Peer, bob: Peer) -> None:
    task = alice.start("return 'hers'")
    assert bob.ask("tasks/result", taskId=task["taskId"])["error"]["message"] == "unknown task; it may have expired"
    alice.close()
    assert peer("alice").result("tasks/result", taskId=task["taskId"])["structuredContent"]["value"] == "hers"


def test_more_sessions_do_not_keep_more_tasks(peer: Any, alice: Peer, bob: Peer) -> None:
    """What has ended is kept for its owner: 64 in all, however many sessions started them."""
    his = bob.start("return 'his'")
    ids = []
    for _ in range(3):
        session = peer("alice")
        ids += [session.start("return 1", ttl=3_600_000)["taskId"] for _ in range(30)]
        session.result("tasks/result", taskId=ids[-1])
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
        peer = Peer(url)
        tools = {tool["name"]: tool for tool in peer.result("tools/list")["tools"]}
        assert tools["simulate-research-query"]["execution"] == {"taskSupport": "optional"}
        assert "execution" not in tools["echo"]
        call = {"name": "simulate-research-query", "arguments": {"topic": "bees"}}
        task = peer.result("tools/call", **call, task={})["task"]
        result = peer.result("tasks/result", taskId=task["taskId"])
        assert "bees" in result["content"][0]["text"]
        peer.close()
