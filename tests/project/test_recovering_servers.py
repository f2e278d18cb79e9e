"""Servers that were killed: their next start continues by itself what no call in doubt holds back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

import httpx2
import pytest

from moonbox.durable.index import JournalFilter
from moonbox.durable.questions import Questions
from moonbox.durable.store import open_journal
from tests.mcp.mcp_driver import SECONDS, announced_address, text
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from moonbox.durable.store import Journal
    from tests.mcp.mcp_driver import Driver

CONFIG = f"""
[journal]
path = "journal.db"
[codemode]
approvals = true
[mcp.servers.slow]
command = {json.dumps(sys.executable)}
args = ["slow.py"]
"""
TOOLS = """
import asyncio
import os
from moonbox import tool

def note(what):
    with open("notes", "a") as file:
        file.write(what + "\\n")

async def until(path):
    note("entered")
    while not os.path.exists(path):
        await asyncio.sleep(0.01)
    return "released"

@tool
def count(name: str) -> str:
    note(name)
    return name

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
SLOW = """
import os, time
while os.path.exists("not yet"):
    time.sleep(0.01)
with open("notes", "a") as file:
    file.write("server is up\\n")
from mcp.server.mcpserver import MCPServer
server = MCPServer("slow")

@server.tool()
def last(name: str) -> str:
    with open("notes", "a") as file:
        file.write(f"last {name}\\n")
    return "the end"

server.run("stdio")
"""
SCRIPT = "local a = tools.count{name = 'once'} local b = tools.%s return a, b, tools.slow.last{name = 'x'}"


class Served:
    """A folder with a server that is killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {**os.environ, "MOONBOX_HOME": str(folder / "home"), "MOONBOX_TRUST": "1"}
        (folder / "moonbox.toml").write_text(CONFIG)
        (folder / "kit.py").write_text(TOOLS)
        (folder / "slow.py").write_text(SLOW)

    @contextmanager
    def running(self, *command: str, stop: signal.Signals = signal.SIGKILL) -> Iterator[str]:
        """A server for as long as this lasts; its address."""
        log = self.folder / "serve.log"
        whole = [sys.executable, "-m", "moonbox", *command, "--port", "0", "--tools", "kit.py"]
        with log.open("w") as errors:
            process = subprocess.Popen(whole, stdout=errors, stderr=errors, cwd=self.folder, env=self.env)
        try:
            yield announced_address(process, log)
            process.send_signal(stop)
        finally:
            process.kill() if stop is signal.SIGKILL else process.send_signal(stop)
            process.wait(SECONDS)

    def begin(self, url: str, script: str) -> None:
        """Run a script that the end of the server cuts off."""

        def post() -> None:
            with suppress(httpx2.HTTPError):
                httpx2.post(url.replace("/mcp", "/run"), json={"source_code": script}, timeout=SECONDS)

        threading.Thread(target=post, daemon=True).start()

    def notes(self) -> list[str]:
        path = self.folder / "notes"
        return [] if not path.exists() else path.read_text().splitlines()

    def moonbox(self, *args: str) -> None:
        whole = [sys.executable, "-m", "moonbox", *args]
        subprocess.run(whole, cwd=self.folder, env=self.env, check=True, capture_output=True, timeout=SECONDS)

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        with closing(open_journal(str(self.folder / "journal.db"))) as journal:
            yield journal

    def states(self) -> list[str]:
        with self.journal() as journal:
            return sorted(run.state for run in journal.runs())

    def questions(self) -> list[str]:
        with self.journal() as journal:
            return [question.id for question in Questions(journal.backend).pending()]


@pytest.fixture
def server(tmp_path: Path) -> Served:
    return Served(tmp_path)


def killed_in(server: Served, call: str, stop: signal.Signals = signal.SIGKILL) -> None:
    with server.running("serve", "--http", stop=stop) as url:
        wait_until(lambda: '"slow.last"' in httpx2.get(url.replace("/mcp", "/tools/list")).text)
        server.begin(url, SCRIPT % call)
        wait_until(lambda: "entered" in server.notes() or server.questions() != [])


@pytest.mark.parametrize("front", ["serve --console", "console --no-browser", "serve"])
def test_a_run_without_a_call_in_doubt_goes_on_once_its_servers_are_ready(
    server: Served, front: str, driver: Driver
) -> None:
    killed_in(server, "hold{path = 'gate'}")
    (server.folder / "gate").touch()
    (server.folder / "not yet").touch()
    before = server.notes()

    def goes_on() -> None:
        assert server.states() == ["interrupted"]  # the server that its last call needs is not there yet
        assert server.notes() == before
        (server.folder / "not yet").unlink()
        wait_until(lambda: server.states() == ["ok"])

    if front == "serve":
        from mcp import StdioServerParameters
        from mcp.client.stdio import stdio_client

        command = ["-m", "moonbox", "serve", "--tools", "kit.py"]
        known = StdioServerParameters(command=sys.executable, args=command, env=server.env, cwd=server.folder)
        with driver.session(stdio_client(known)):
            goes_on()
    else:
        with server.running(*front.split()):
            goes_on()
    done = server.notes()[len(before) :]
    assert [note for note in done if note != "server is up"] == ["entered", "last x"]
    assert done.index("server is up") < done.index("entered")
    assert server.notes().count("once") == 1


def test_one_in_doubt_waits_for_a_person(server: Served) -> None:
    killed_in(server, "risky{path = 'gate'}")
    (server.folder / "gate").touch()
    with server.running("serve", "--http") as url:
        server.begin(url, "return tools.hold{path = 'gate'}")
        wait_until(lambda: server.notes().count("entered") == 2)
        wait_until(lambda: server.states() == ["interrupted", "ok"])
    with server.journal() as journal:
        (run,) = journal.runs(JournalFilter(state="interrupted"))
    server.moonbox("resume", run.id, "--in-flight", "retry", "--tools", "kit.py")
    assert server.notes()[-1] == "last x"


def test_an_approval_is_an_open_question_that_is_answered_from_elsewhere(server: Served) -> None:
    killed_in(server, "delete{name = 'x'}")
    with server.running("serve", "--http"):
        wait_until(lambda: server.states() == ["running"])
        (question,) = server.questions()
        server.moonbox("approvals", "answer", question, "--allow")
        wait_until(lambda: server.states() == ["ok"])
    assert [note for note in server.notes() if note != "server is up"] == ["once", "deleted x", "last x"]


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGTERM])
def test_what_goes_on_by_itself_outlives_a_second_stop(server: Served, stop: signal.Signals) -> None:
    killed_in(server, "hold{path = 'gate'}")
    with server.running("serve", "--http", stop=stop):
        wait_until(lambda: server.notes().count("entered") == 2)
    assert server.states() == ["interrupted"]
    (server.folder / "gate").touch()
    with server.running("serve", "--http"):
        wait_until(lambda: server.states() == ["ok"])
    assert server.notes().count("once") == 1


def test_it_can_be_switched_off(server: Served) -> None:
    killed_in(server, "hold{path = 'gate'}")
    (server.folder / "gate").touch()
    (server.folder / "moonbox.toml").write_text(CONFIG.replace("[journal]", "[journal]\nrecover = false"))
    with server.running("serve", "--http") as url:
        server.begin(url, "return tools.hold{path = 'gate'}")
        wait_until(lambda: server.states() == ["interrupted", "ok"])
    assert server.notes().count("entered") == 2


def test_a_run_whose_tools_are_missing_waits_for_them(server: Served) -> None:
    killed_in(server, "hold{path = 'gate'}")
    (server.folder / "gate").touch()
    head, _, _ = CONFIG.partition("[mcp.servers")
    (server.folder / "moonbox.toml").write_text(head)
    with server.running("serve", "--http"):
        with server.journal() as journal:
            wait_until(lambda: journal.runs()[0].reason == "1 tool of it missing: slow.last")
        assert server.states() == ["interrupted"]
    (server.folder / "moonbox.toml").write_text(CONFIG)
    with server.running("serve", "--http"):
        wait_until(lambda: server.states() == ["ok"])


def test_its_client_still_gets_the_result_or_stops_it(server: Served, driver: Driver) -> None:
    from tests.mcp.mcp_driver import over_http
    from tests.mcp.test_mcp_background import WAIT, handle

    (server.folder / "moonbox.toml").write_text(CONFIG + "[serve]\nanswer_within = 0.3\n")
    with server.running("serve", "--http") as url, driver.session(over_http(url, {})) as session:
        first, second = (handle(session.lua(SCRIPT % f"hold{{path = '{gate}'}}")) for gate in ("gate", "never"))
        wait_until(lambda: server.notes().count("entered") == 2)
    (server.folder / "gate").touch()
    with server.running("serve", "--http") as url, driver.session(over_http(url, {})) as session:
        wait_until(lambda: server.states() == ["ok", "running"])
        answer = session.call(WAIT, {"run_id": first})
        assert (answer.structured_content or {})["value"] == ["once", "released", {"result": "the end"}]
        assert text(session.call(WAIT, {"run_id": second, "cancel": True})) == f"The run {second} was stopped."
        wait_until(lambda: server.states() == ["cancelled", "ok"])
