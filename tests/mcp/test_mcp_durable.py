"""Scripts in the background of a server with a journal: they survive the server, for their own client alone."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.mcp.mcp_driver import SECONDS, SERVE, Driver, Peer, Session, bearer, over_http, server_process, text
from tests.mcp.test_mcp_background import WAIT, handle, result_of
from tests.programs import program
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG = f"""{SERVE}
answer_within = 0.3
[codemode]
approvals = true
[journal]
path = "journal.db"
"""
TOOLS = """
import asyncio
import os
from moonbox import tool

def note(what):
    with open("notes", "a") as file:
        file.write(what + "\\n")

@tool
def count(name: str) -> str:
    note(name)
    return name

async def until(path):
    note("entered")
    while not os.path.exists(path):
        await asyncio.sleep(0.01)
    return "released"

@tool(hints={"idempotent": True})
async def hold(path: str) -> str:
    return await until(path)

@tool
async def risky(path: str) -> str:
    return await until(path)

@tool(policy="approve")
def delete(name: str) -> str:
    note("deleted " + name)
    return "gone"
"""
UNKNOWN = "is in the background: its result was given before, or was not asked for in time."


class Served:
    """A folder with a server that can be stopped and started again."""

    def __init__(self, folder: Path, driver: Driver) -> None:
        self.folder, self._driver = folder, driver
        self.env = {"MOONBOX_HOME": str(folder / "home"), "MOONBOX_TRUST": "1"}
        (folder / "moonbox.toml").write_text(CONFIG)
        (folder / "kit.py").write_text(TOOLS)

    @contextmanager
    def client(self, mode: str, name: str = "alice", stop: signal.Signals = signal.SIGKILL) -> Iterator[Session]:
        """A server for as long as this lasts, and a client of it."""
        with server_process("--tools", "kit.py", env=self.env, cwd=self.folder) as (url, process):
            self.url = url
            with self.more(mode, name) as session:
                yield session
            process.send_signal(stop)
            process.wait(SECONDS)
            wait_until(lambda: not listens(url))  # the server outlives its launcher for a moment: see tests/programs

    @contextmanager
    def more(self, mode: str, name: str) -> Iterator[Session]:
        """Another client of the same server."""
        with self._driver.session(over_http(self.url, bearer(name)), mode=mode) as session:
            yield session

    def notes(self) -> list[str]:
        path = self.folder / "notes"
        return path.read_text().splitlines() if path.exists() else []

    def moonbox(self, *args: str) -> str:
        command = program("-m", "moonbox", *args)
        done = subprocess.run(command, cwd=self.folder, env={**os.environ, **self.env}, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()


def listens(url: str) -> bool:
    address = urlsplit(url)
    with socket.socket() as sock:
        return sock.connect_ex((address.hostname, address.port)) == 0


@pytest.fixture
def server(tmp_path: Path, driver: Driver) -> Served:
    return Served(tmp_path, driver)


def script(tool: str) -> str:
    return f"local first = tools.count{{name = 'once'}} return first, tools.{tool}{{path = 'gate'}}"


@pytest.mark.parametrize(
    ("mode", "stop"), [("auto", signal.SIGKILL), *((mode, signal.SIGTERM) for mode in ("auto", "legacy"))]
)
def test_a_script_continues_after_a_restart(server: Served, mode: str, stop: signal.Signals) -> None:
    with server.client(mode, stop=stop) as session:
        run_id = handle(session.lua(script("hold")))
        wait_until(lambda: "entered" in server.notes())
    with server.client(mode) as session:
        with server.more(mode, "bob") as other:
            for arguments in ({}, {"cancel": True}, {"in_flight": "retry"}):
                refused = other.call(WAIT, {"run_id": run_id, **arguments})
                assert (refused.is_error, UNKNOWN in text(refused)) == (True, True)
        assert handle(session.call(WAIT, {"run_id": run_id, "seconds": 0})) == run_id
        (server.folder / "gate").touch()
        ended = result_of(session, run_id)
        assert ended.structured_content["value"] == ["once", "released"]
        assert UNKNOWN in text(session.call(WAIT, {"run_id": run_id}))
    assert server.notes() == ["once", "entered", "entered"]
    with server.client(mode) as session:
        assert UNKNOWN in text(session.call(WAIT, {"run_id": run_id}))


def states(server: Served) -> list[str]:
    """Those that `moonbox runs` tells."""
    return [json.loads(line)["state"] for line in server.moonbox("runs", "--json").splitlines()]


def test_a_result_that_was_not_fetched_is_given_after_a_restart(server: Served) -> None:
    with server.client("auto") as session:
        run_id = handle(session.lua(script("hold")))
        (server.folder / "gate").touch()
        wait_until(lambda: states(server) == ["ok"])
    with server.client("legacy") as session:
        assert result_of(session, run_id).structured_content["value"] == ["once", "released"]
        assert UNKNOWN in text(session.call(WAIT, {"run_id": run_id}))
    assert server.notes() == ["once", "entered"]


def test_any_front_end_answers_a_handle(server: Served, driver: Driver) -> None:
    other = Served(server.folder, driver)
    with server.client("auto") as session, other.client("auto") as elsewhere:
        run_id = handle(session.lua(script("risky")))
        assert handle(elsewhere.call(WAIT, {"run_id": run_id, "seconds": 0})) == run_id
        (server.folder / "gate").touch()
        assert result_of(elsewhere, run_id).structured_content["value"] == ["once", "released"]
        assert not session.lua("return 1").is_error  # the Repl stays where it is
    assert server.notes() == ["once", "entered"]


@pytest.mark.parametrize("seen", [True, False], ids=["asked for before", "not asked for"])
def test_any_front_end_stops_a_script(server: Served, driver: Driver, seen: bool) -> None:
    other = Served(server.folder, driver)
    with server.client("auto") as session, other.client("auto") as elsewhere:
        run_id = handle(session.lua(script("risky")))
        wait_until(lambda: "entered" in server.notes())
        if seen:
            assert handle(elsewhere.call(WAIT, {"run_id": run_id, "seconds": 0})) == run_id
        assert text(elsewhere.call(WAIT, {"run_id": run_id, "cancel": True})) == f"The run {run_id} was stopped."
        wait_until(lambda: states(server) == ["cancelled"])
        assert UNKNOWN in text(session.call(WAIT, {"run_id": run_id}))


@pytest.mark.parametrize(("choice", "value"), [("retry", "released"), ("fail", None)])
def test_the_model_decides_about_calls_in_doubt(server: Served, choice: str, value: str | None) -> None:
    with server.client("auto") as session:
        run_id = handle(session.lua(script("risky")))
        wait_until(lambda: "entered" in server.notes())
    (server.folder / "gate").touch()
    with server.client("auto") as session:
        for _ in range(2):
            asked = result_of(session, run_id)
            assert asked.is_error
            assert text(asked) == (
                "error: the server was restarted while this script made the calls below; whether they took effect is "
                'not known.\n  risky {"path": "gate"}\nThe script waits. Find out what you can, then call '
                f'lua_repl_wait with run_id = "{run_id}" and in_flight = "retry" to make these calls again, or '
                'in_flight = "fail" to let them fail with code in_doubt.'
            )
        answer = session.call(WAIT, {"run_id": run_id, "in_flight": choice})
        while (answer.structured_content or {}).get("running"):
            answer = session.call(WAIT, {"run_id": run_id})
        assert answer.is_error is (value is None)
        assert (value or "whether it took effect is not known") in text(answer)
    assert server.notes().count("entered") == (2 if value else 1)


def test_a_script_that_waits_for_a_person_is_killed_answered_and_continued(server: Served) -> None:
    with server.client("auto") as session:
        run_id = handle(session.lua("return tools.delete{name = 'x'}"))
        (question,) = wait_until(lambda: json.loads(server.moonbox("approvals", "list", "--json")))
    assert (question["run"], question["labels"]["client"]) == (run_id, "alice")
    server.moonbox("approvals", "answer", question["id"], "--allow")
    assert server.notes() == []
    with server.client("auto") as session:
        assert result_of(session, run_id).structured_content["value"] == "gone"
    assert server.notes() == ["deleted x"]


def test_what_is_cancelled_or_deleted_after_a_restart_is_gone(server: Served) -> None:
    with server.client("auto") as session:
        run_id = handle(session.lua(script("hold")))
        wait_until(lambda: "entered" in server.notes())
    with server.client("auto") as session:
        assert text(session.call(WAIT, {"run_id": run_id, "cancel": True})) == f"The run {run_id} was stopped."
        assert UNKNOWN in text(session.call(WAIT, {"run_id": run_id}))
        assert session.call(WAIT, {"run_id": "x", "in_flight": "maybe"}).is_error
        session.lua("return 1")
        found = json.loads(server.moonbox("repls", "list", "--json", "--label", "client=alice"))
    assert {repl["language"] for repl in found} == {"lua"}
    deleted = server.moonbox("repls", "delete", "--label", "client=alice", "--yes")
    assert deleted == f"deleted {len(found)} Repl{'s' * (len(found) != 1)}\n"


def test_a_task_is_found_after_a_restart(server: Served) -> None:
    with server.client("legacy") as session:
        run_id = handle(session.lua(script("hold")))
        wait_until(lambda: "entered" in server.notes())
    (server.folder / "gate").touch()
    with server.client("legacy"):
        peer = Peer(server.url, "alice")
        result = peer.result("tasks/result", taskId=run_id)
        peer.close()
        assert result["structuredContent"]["value"] == ["once", "released"]
